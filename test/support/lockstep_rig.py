# SPDX-License-Identifier: Apache-2.0
"""
A dynamics_node, a MuJoCo arm and the test take turns: the same numbers on any machine.

The arm moves on torques that the test has passed on. So simulated time waits for the test, too: it
misses no message, and what it sends takes effect at the simulated time that it means, however long
any of the three is kept waiting.
"""

import subprocess
import sys

import numpy as np
from builtin_interfaces.msg import Time
from node_rig import ARM, NodeRig
from sensor_msgs.msg import JointState

from robodyn_ros.ros import lockstep
from robodyn_ros.ros.demo.node_process import die_with_parent

TIME_STEP = 0.004  # of the physics and of the control cycle [s]
LEAD = 0.02  # from what the test sends to its effect, time for it to arrive [s]
IN_LOCKSTEP = {'use_sim_time': True, 'autostart': 'false', **lockstep.IN_LOCKSTEP}


class LockstepRig(NodeRig):
    """
    A NodeRig whose joint states come from a simulator in a process of its own.

    Attributes
    ----------
    takes_turns : bool
        Whether the simulator waits for the test, too; else it is faster, and the test hears late.
    """

    takes_turns = True

    def __init__(self, log_path):
        super().__init__(log_path)
        self.simulator = None
        if self.takes_turns:
            relay = self.node.create_publisher(JointState, '/torques_in_turn', 10)
            self.node.create_subscription(
                JointState, '/dynamics_node/torques', relay.publish, 10, raw=True
            )

    def close(self):
        """End both nodes and leave the graph."""
        if self.simulator is not None:
            self.simulator.kill()
            self.simulator.wait()
        super().close()

    def start(self, **parameters):
        """Start the node for lockstep with these changes on top, and configure it."""
        super().start(**{**IN_LOCKSTEP, **parameters})
        assert self.transition('configure')
        return self

    def start_simulator(self, **parameters):
        """Start the arm held by its brakes; it is let go by the first torque."""
        torques = 'torques_in_turn' if self.takes_turns else 'dynamics_node/torques'
        arguments = ['--ros-args', '-r', f'torques:={torques}']
        arguments += ['-r', 'commands:=dynamics_node/commands']
        for name, value in {'lockstep': True, 'time_step': TIME_STEP, **parameters}.items():
            value = list(map(float, value)) if isinstance(value, (list, np.ndarray)) else value
            arguments += ['-p', f'{name}:={value}']
        with open(self.log_path.with_name('simulator.log'), 'w', encoding='utf-8') as log:
            self.simulator = subprocess.Popen(
                [sys.executable, '-m', 'robodyn_ros.ros.simulator_node', *arguments],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )

    @property
    def time(self):
        """Simulated time of the last control cycle [s]."""
        return seconds(self.states[-1].header.stamp) if self.states else 0.0

    def follow(self, positions, seconds, names=ARM, **fields):
        """Publish a trajectory that starts soon, and return at which simulated time [s]."""
        start = self.time + LEAD
        # Where it may come late, its beginning is not to be left out.
        stamp = stamp_at(start) if self.takes_turns else None
        super().follow(positions, seconds, names, stamp, **fields)
        return start

    def run_until(self, time):
        """Spin until this simulated time [s]."""
        self.until(lambda: self.time >= time, patience=240.0)

    def measured(self, begin, end):
        """Return times (N,), positions and references (N, n) between two times [s]."""
        kept = [s for s in self.states if begin <= seconds(s.header.stamp) < end]
        return (
            np.array([seconds(state.header.stamp) for state in kept]),
            np.array([state.position for state in kept]),
            np.array([state.reference_position for state in kept]),
        )

    def torque_steps(self):
        """Return the change (N, n) of the commanded torques from one cycle to the next."""
        times = np.array([seconds(state.header.stamp) for state in self.states])
        steps = np.diff([state.total for state in self.states], axis=0)
        # A state that a loaded machine lost is none that the node did not command.
        return steps[np.abs(np.diff(times) - TIME_STEP) < 1e-6]


def stamp_at(time):
    """Return a time [s] as a stamp."""
    whole, nanoseconds = divmod(round(1e9 * time), 10**9)
    return Time(sec=whole, nanosec=nanoseconds)


def seconds(stamp):
    """Return a stamp in seconds."""
    return stamp.sec + 1e-9 * stamp.nanosec
