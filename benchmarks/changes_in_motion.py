# SPDX-License-Identifier: Apache-2.0
"""
Change what can be changed while an arm moves, and print its largest kinetic energy.

    python benchmarks/changes_in_motion.py [--repetitions 3] [--only NAME]

A Panda in MuJoCo, in real time and without friction, moves for 2 s under the node in computed
torque, each a process of its own, over DDS. Meanwhile something is changed, again and again, or
fails. For each case: the largest kinetic energy, its median over the repetitions and the worst,
and their ratios to the median of the same motion undisturbed in the same run; then, of the worst
repetition, the largest speed of a joint 3 s after the change; how far the arm is from the goal,
and how far it moves within the last half second. With the machine's load, as a late command is a
frozen torque.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import domains
import numpy as np
import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from robots import public_urdf
from scene import CHAIN, GOAL, MOTION_TIME, Scene
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.srv import SetPayload
from robodyn_ros import RobotModel, mass_matrix

SETTLING_TIME = 3.0
# The simulator tells the truth on a topic of its own, and holds its joint states back for 120 ms
# at a signal.
SIMULATOR_PATCH = """
import signal, time
from robodyn_ros.ros import simulator_node as module
class Simulator(module.SimulatorNode):
    silent_until = 0.0
    def __init__(self):
        super().__init__()
        signal.signal(signal.SIGURG, self.fall_silent)
        plain = self._states
        self._truth = self.create_publisher(module.JointState, 'truth', 1000)
        class Both:
            def publish(_, message):
                self._truth.publish(message)
                if time.monotonic() >= self.silent_until:
                    plain.publish(message)
        self._states = Both()
    def fall_silent(self, number, frame):
        self.silent_until = time.monotonic() + 0.12
module.SimulatorNode = Simulator
"""


class Trial:
    """One motion, what is done in it, and what the arm did."""

    def __init__(self, listener: Node, model: RobotModel, **parameters: Any) -> None:
        self.scene = Scene(listener, simulator_patch=SIMULATOR_PATCH, **parameters)
        self._listener, self._model = listener, model
        self._truth: list[tuple[float, np.ndarray, np.ndarray]] = []
        name = self.scene.name
        self._subscription = listener.create_subscription(
            JointState, '/truth', self._on_truth, QoSProfile(depth=10000)
        )
        self._parameters = listener.create_client(SetParameters, f'/{name}/set_parameters')
        self._enable = listener.create_client(SetBool, f'/{name}/enable')
        self._payload = listener.create_client(SetPayload, f'/{name}/set_payload')

    def _on_truth(self, message: JointState) -> None:
        self._truth.append(
            (time.monotonic(), np.array(message.position), np.array(message.velocity))
        )

    # --- what is done ----------------------------------------------------------------------

    def set(self, **values: Any) -> None:
        """Set parameters, without waiting."""
        request = SetParameters.Request(
            parameters=[
                Parameter(name, value=value).to_parameter_msg() for name, value in values.items()
            ]
        )
        self._parameters.call_async(request)

    def set_payload(self) -> None:
        """Set the payload that the arm has: none."""
        request = SetPayload.Request()
        request.payload.mass = 0.0
        self._payload.call_async(request)

    def enable(self, on: bool) -> None:
        """Switch commanding off or on, and wait for the response."""
        response = self._enable.call_async(SetBool.Request(data=on))
        self.scene.until(response.done)

    def cancel(self) -> None:
        """Send an empty trajectory."""
        self.scene._trajectories.publish(JointTrajectory())

    def fall_silent(self) -> None:
        """Have the driver send no joint states for 120 ms, by a signal that ends nothing."""
        self.scene.simulator.send_signal(signal.SIGURG)

    def repeat(self, rate: float, what: Callable[[int], None], seconds: float) -> None:
        """Do something at a rate [Hz] for some seconds."""
        begin, i = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            what(i)
            i += 1
            self.scene.spin(max(begin + i / rate - time.monotonic(), 0.0))

    # --- what came of it -------------------------------------------------------------------

    def run(self, disturb: Callable[[Trial], None]) -> dict[str, float]:
        """Move, disturb, let the arm settle; return the figures."""
        scene = self.scene
        try:
            scene.bring_up()
            for client in (self._parameters, self._enable, self._payload):
                scene.until(client.service_is_ready)
            scene.until(lambda: self._truth)
            self._truth.clear()
            scene.move(GOAL, 0.15 * MOTION_TIME)
            disturb(self)
            rest = self._truth[0][0] + MOTION_TIME + SETTLING_TIME - time.monotonic()
            scene.spin(max(rest, SETTLING_TIME))
            return self._figures()
        finally:
            scene.close()
            self._listener.destroy_subscription(self._subscription)
            for client in (self._parameters, self._enable, self._payload):
                self._listener.destroy_client(client)

    def _figures(self) -> dict[str, float]:
        position = np.array([q for _, q, _ in self._truth])
        velocity = np.array([qd for _, _, qd in self._truth])
        mass = mass_matrix(self._model, position)
        energy = 0.5 * np.einsum('ki,kij,kj->k', velocity, mass, velocity)
        times = np.array([at for at, _, _ in self._truth])
        late = times > times[-1] - 0.5
        return {
            'energy': float(energy.max()),
            'speed': float(np.abs(velocity[late]).max()),
            'from goal': float(np.abs(position[-1] - GOAL).max()),
            'drift': float(np.ptp(position[late], axis=0).max()),
        }


def modes_in_turns(trial: Trial) -> None:
    """Change between two modes at 20 Hz, the first one at the end."""
    modes = ('gravity_compensation', 'computed_torque')
    trial.repeat(20.0, lambda i: trial.set(mode=modes[i % 2]), 0.6 * MOTION_TIME)
    trial.set(mode='computed_torque')


def off_and_on(trial: Trial) -> None:
    """Disable for half a second, in the middle."""
    trial.scene.spin(0.3 * MOTION_TIME)
    trial.enable(False)
    trial.scene.spin(0.5)
    trial.enable(True)


def later(what: Callable[[Trial], None]) -> Callable[[Trial], None]:
    """Return something that is done in the middle of the motion."""

    def disturb(trial: Trial) -> None:
        trial.scene.spin(0.35 * MOTION_TIME)
        what(trial)

    return disturb


def at(rate: float, what: Callable[[Trial, int], None]) -> Callable[[Trial], None]:
    """Return something that is done at a rate for most of the motion."""
    return lambda trial: trial.repeat(rate, lambda i: what(trial, i), 0.75 * MOTION_TIME)


CASES: dict[str, Callable[[Trial], None]] = {
    'undisturbed': lambda trial: None,
    'kp set to itself at 20 Hz': at(20.0, lambda trial, i: trial.set(kp=[100.0])),
    'kp 100 and 101 at 20 Hz': at(20.0, lambda trial, i: trial.set(kp=[100.0 + i % 2])),
    'position_guard to itself at 10 Hz': at(10.0, lambda trial, i: trial.set(position_guard=0.05)),
    'modes in turns at 20 Hz': modes_in_turns,
    'payload set to itself at 20 Hz': at(20.0, lambda trial, i: trial.set_payload()),
    'cancel': later(Trial.cancel),
    '120 ms without joint states': later(Trial.fall_silent),
    'disabled for 0.5 s': off_and_on,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--repetitions', type=int, default=3)
    parser.add_argument('--only', help='a part of the names of the cases to run')
    options = parser.parse_args()
    os.environ.setdefault('ROS_DOMAIN_ID', str(101 + os.getpid() % 100))
    domains.stay_on_loopback()
    rclpy.init()
    listener = rclpy.create_node('bench')
    model = RobotModel.from_urdf(public_urdf('panda.urdf'), **CHAIN)
    plain = None
    for name, disturb in CASES.items():
        if plain is not None and options.only and options.only not in name:
            continue
        runs = [Trial(listener, model).run(disturb) for _ in range(options.repetitions)]
        worst = {key: max(run[key] for run in runs) for key in runs[0]}
        middle = float(np.median([run['energy'] for run in runs]))
        plain = plain or middle
        print(
            f'{name:34s} {middle:.3f} J, {middle / plain:.2f} times, worst '
            f'{worst["energy"]:.3f} J, {worst["energy"] / plain:.2f} times; after it '
            f'{worst["speed"]:.4f} rad/s, {1e3 * worst["from goal"]:.2f} mrad from the goal, '
            f'moves {1e3 * worst["drift"]:.3f} mrad in 0.5 s; load {os.getloadavg()[0]:.1f}',
            flush=True,
        )
    rclpy.shutdown()


if __name__ == '__main__':
    main()
