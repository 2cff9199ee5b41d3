# SPDX-License-Identifier: Apache-2.0
"""An arm in a physics engine, in lockstep, while the node or the driver fails in its motion."""

import random
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from fault_rig import POSITION, WATCHDOG_PERIOD, fault, rig_in, stop
from node_rig import MARK, processes_with
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from robodyn_ros.ros.demo.node_process import die_with_parent

pytestmark = [pytest.mark.slow, pytest.mark.ros]

TOLERANCE = 0.01  # [rad]
TIME_STEP = 0.004  # [s]: fewer messages than with the usual millisecond
RATE_LIMIT = 5000.0  # by the wall clock, which lockstep outruns [N m/s]
# In lockstep real time means nothing: a loaded machine may take seconds over a step.
PARAMETERS = {
    'use_sim_time': 'true',
    'state_timeout': 20.0,
    'mode': 'computed_torque',
    'ramp_time': 0.1,
    'torque_rate_limit': f'[{RATE_LIMIT}]',
    # Nothing touches the arm: what a fault leaves behind is no contact either.
    'on_contact': 'stop',
    'contact_threshold_moving': '[10.0]',
    'contact_threshold_stationary': '[10.0]',
}
TARGET = np.array(POSITION) + 0.2


def time_of(message):
    """Return the time of a message's stamp [s]."""
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


class Plant:
    """The simulated arm, the node that moves it, and what both said."""

    def __init__(self, rig):
        self.rig = rig
        self.states = []
        # Few, so that what is looked at is new: the simulation may outrun the rig.
        rig.node.create_subscription(
            JointState, '/joint_states', self.states.append, QoSProfile(depth=5)
        )
        self.simulator = self.start_simulator()
        rig.launch(**PARAMETERS)
        self.until_moving()

    def start_simulator(self):
        arguments = ['--ros-args', '-r', 'torques:=/dynamics_node/torques']
        parameters = {
            **self.rig.robot,
            'lockstep': 'true',
            'lockstep_timeout': 0.2,
            'time_step': TIME_STEP,
            'initial_position': str(POSITION),
        }
        for name, value in parameters.items():
            arguments += ['-p', f'{name}:={value}']
        with open(self.rig.log_path.with_name('simulator.log'), 'a') as log:
            child = subprocess.Popen(
                [sys.executable, '-m', 'robodyn_ros.ros.simulator_node', *arguments],
                env=self.rig.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )
        self.rig.children.append(child)
        return child

    @property
    def time(self):
        return time_of(self.states[-1])

    @property
    def position(self):
        return np.array(self.states[-1].position)

    def until_moving(self):
        """Wait until a command has moved the clock of the simulation a little."""
        self.states.clear()
        self.rig.until(lambda: self.states)
        begin = self.time
        self.rig.until(lambda: self.time >= begin + 0.01)

    def run(self, duration):
        """Let simulated time pass [s]; patience begins again with every bit of it."""
        end = self.time + duration
        while (now := self.time) < end:
            self.rig.until(lambda now=now: self.time >= min(now + 0.02, end))

    def comes_to_rest_at(self, target):
        """Return whether the arm is where it should be, before long."""
        for _ in range(20):
            self.run(0.1)
            velocity = np.abs(self.states[-1].velocity).max()
            if np.abs(self.position - target).max() < TOLERANCE and velocity < TOLERANCE:
                return True
        return False

    def set_out(self, target, seconds=1.0):
        """Begin a motion, and return in the middle of it."""
        states = self.rig.states
        states.clear()
        for _ in range(100):
            self.rig.follow([target], [seconds])  # a killed node is still connected for a while
            self.rig.spin(0.3)
            if any(len(state.reference_position) for state in states):
                break
        self.run(0.4 * seconds)

    def arrives(self, target):
        """Send a motion, and return whether the arm comes to rest at its end."""
        self.set_out(target, 0.6)
        return self.comes_to_rest_at(target)


@pytest.fixture(scope='module')
def running(tmp_path_factory, panda_urdf):
    rig = rig_in(tmp_path_factory.mktemp('lockstep'), panda_urdf)
    yield Plant(rig)
    rig.close()


@pytest.fixture
def plant(running):
    yield running
    # Whatever happened, the arm can be moved again: by the same node, or by the one after it.
    assert running.arrives(np.array(POSITION))
    assert running.rig.process.poll() is None
    running.rig.check_stream(rate_limit=RATE_LIMIT)
    running.rig.until(lambda: running.rig.report.get('contact_observer') == 'active')
    assert running.rig.report['contacts'] == '0'


@fault(
    'deactivated and reactivated in motion, with physics',
    'Gravity is compensated, the trajectory is dropped.',
)
def test_reactivated_node_carries_the_arm(plant):
    plant.set_out(TARGET)
    assert plant.rig.transition('deactivate')
    plant.rig.spin(2.0 * WATCHDOG_PERIOD)
    plant.rig.begin_anew()
    assert plant.rig.transition('activate')
    plant.until_moving()
    plant.rig.until(lambda: not np.any(plant.rig.states[-1].reference_velocity))
    assert plant.arrives(TARGET)


@fault(
    'driver killed and restarted in motion, with physics',
    'Time restarts: the reference is dropped.',
)
def test_restarted_simulator_is_taken_over(plant):
    plant.set_out(TARGET)
    stop(plant.simulator)
    plant.simulator = plant.start_simulator()
    # Not before the node has seen it: what it accepts until then is dropped, too.
    plant.rig.until(lambda: np.any(np.diff([time_of(state) for state in plant.rig.states]) < 0.0))
    plant.rig.until(lambda: not np.any(plant.rig.states[-1].reference_velocity))
    assert plant.arrives(TARGET)


@fault(
    'node paused and continued in motion, with physics',
    'The motion continues to its end.',
)
def test_paused_node_goes_on_with_the_motion(plant):
    plant.set_out(TARGET)
    plant.rig.pause()
    plant.rig.spin(0.5)
    plant.rig.go_on()
    assert plant.comes_to_rest_at(TARGET)


@fault(
    'driver paused and continued in motion, with physics',
    'The motion continues to its end.',
)
def test_paused_simulator_goes_on_with_the_motion(plant):
    plant.set_out(TARGET)
    plant.simulator.send_signal(signal.SIGSTOP)
    plant.rig.spin(0.5)
    plant.simulator.send_signal(signal.SIGCONT)
    assert plant.comes_to_rest_at(TARGET)


@fault(
    'trajectory replaced and cancelled in motion, with physics',
    'No jump; cancelled, the arm is braked along the reference, and held.',
)
def test_replaced_and_cancelled_motion(plant):
    plant.set_out(TARGET)
    plant.set_out(np.array(POSITION) - 0.1)
    plant.rig.follow([], [])
    plant.rig.until(lambda: not np.any(plant.rig.states[-1].reference_velocity))
    plant.run(0.05)
    assert plant.arrives(TARGET)


@fault(
    'node killed and restarted in motion, with physics',
    'The new node compensates gravity of the moving arm.',
)
def test_killed_node_is_replaced_while_the_arm_moves(plant):
    plant.set_out(TARGET)
    plant.rig.kill()
    plant.rig.launch(**PARAMETERS)
    plant.until_moving()
    assert plant.arrives(TARGET)


@fault(
    'node ended by SIGKILL or SIGINT, and restarted, twenty times in motion, with physics',
    'Each new node compensates gravity; no earlier process is left.',
)
def test_storm_of_restarts(plant, monkeypatch):
    rig, chance = plant.rig, random.Random(3)
    monkeypatch.setattr(rig, 'patience', 120.0)  # a storm makes a busy machine busier
    mark = f'{MARK}={rig.environment[MARK]}'.encode()
    drivers = {child.pid for child in rig.children}
    of_one = len(set(processes_with(mark)) - drivers)
    for round_ in range(20):
        plant.set_out(TARGET if round_ % 2 else np.array(POSITION))
        if chance.random() < 0.5:
            rig.kill()
        else:
            assert rig.end() == 0
        rig.launch(**PARAMETERS)
        plant.until_moving()
        rig.check_stream(rate_limit=RATE_LIMIT)
    assert plant.arrives(TARGET)
    # What carried the arm in between is gone, or goes when it is no longer needed.
    rig.until(lambda: len(set(processes_with(mark)) - drivers) <= of_one)
