# SPDX-License-Identifier: Apache-2.0
"""A node under faults, with every command recorded and held against the specification."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import rclpy
from node_rig import ARM, NodeRig, regularly
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL
from robodyn_ros.ros.demo.node_process import die_with_parent

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
EFFORT_LIMITS = np.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])
RATE_LIMIT = 200.0  # [N m/s], a fifth of the default: a step is easier to see
LONGEST_RATE_STEP = 0.01  # [s]
CLOCK_TOLERANCE = 1e-4  # between the steady clock and that of the source timestamps [s]
WATCHDOG_PERIOD = 0.01  # [s]
# That a killed node's watchdog and the next node both command: a second, more on a loaded machine.
LONGEST_OVERLAP = 2.0  # [s]
# A loaded machine delays joint states; only the tests of staleness let them stop for so long.
STATE_TIMEOUT = 0.5
# The drives take another unit, and some are reversed; powers of two divide out without rounding.
COMMAND_SCALE = np.array([-0.125, 4.0, 0.5, -8.0, 16.0, -0.25, 2.0])
# The observer runs in every cycle. The states here are no arm's: nothing may be a contact.
OBSERVED = {
    'on_contact': 'stop',
    'contact_threshold_moving': [1e9],
    'contact_threshold_stationary': [1e9],
}
PARAMETERS = {
    'command_scale': COMMAND_SCALE.tolist(),
    'state_timeout': STATE_TIMEOUT,
    'stale_hold_time': 0.4,
    'ramp_time': 0.1,
    'torque_rate_limit': [RATE_LIMIT],
    **OBSERVED,
}
ERROR = 2


def fault(name, happens):
    """Mark a test as showing what happens in a fault; docs/evidence.md lists it."""
    return pytest.mark.fault(name, happens)


def case(name, happens, *values):
    """Return a parameter set that is a fault of its own."""
    return pytest.param(*values, id=name.replace(' ', '_'), marks=fault(name, happens))


class FaultRig(NodeRig):
    """
    A rig that records when the node sent each command, and checks the recorded stream.

    The node and its watchdog command in another unit than N m; what is recorded and kept is N m.
    """

    command_scale = COMMAND_SCALE

    def __init__(self, log_path):
        super().__init__(log_path)
        # (when it was published [s], torque, its number, the node's label or a watchdog's)
        self.record = []
        self.last_checked = {}  # entries of the record, by label
        self._is_launched = False  # whether the next command of a node may be its first
        self._may_overlap_until = -np.inf  # [s]
        self.beginnings = []  # times after which a stream of commands may begin anew [s]
        self.children, self.strangers = [], []
        self.robot = {}
        self.node.create_subscription(
            Float64MultiArray, '/dynamics_node/commands', self._on_command, QoSProfile(depth=10000)
        )

    def close(self):
        for child in self.children:
            stop(child)
        for node, context in self.strangers:
            node.destroy_node()
            rclpy.shutdown(context=context)
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        super().close()

    def _on_command(self, message, info):
        self.record.append(
            (
                1e-9 * info['source_timestamp'],
                np.array(self.in_torques(message).data),
                info['publication_sequence_number'],
                message.layout.dim[0].label if message.layout.dim else '',
            )
        )

    # --- the node --------------------------------------------------------------------------

    def launch(self, **changes):
        """Start the node on the robot, and expect a new stream of commands."""
        self.begin_anew()
        return self.start(**{**self.robot, **PARAMETERS, **changes})

    def launch_patched(self, patch, **changes):
        """Start the node with a fault built in: a program to run before it."""
        self.begin_anew()
        return self.start(
            program=f'{patch}\nfrom robodyn_ros.ros.dynamics.dynamics_node import main\nmain()\n',
            **{**self.robot, **PARAMETERS, **changes},
        )

    @contextmanager
    def surviving(self):
        """Expect of the node that it is at work before and after a fault, in the same process."""
        self.recover()
        self.forget()
        process = self.process
        yield
        for child in self.children:
            stop(child)
        self.recover()
        assert self.process is process and process.poll() is None
        self.check_stream()

    def begin_anew(self):
        """Expect a stream that continues nothing: the node was away longer than the timeout."""
        self.spin(0.05)
        self.beginnings.append(time.time())

    def kill(self):
        """End the node without a chance to say anything."""
        self.process.kill()
        self.process.wait()
        self.spin(0.1)

    def pause(self):
        """Stop the node's process, all of it."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        """Let a stopped process go on."""
        self.process.send_signal(signal.SIGCONT)

    def in_motion(self, distance=0.3, seconds=3.0, stream=True):
        """Have the node follow a trajectory, and return when it does."""
        if self.report.get('mode') != 'computed_torque':
            assert self.set_parameter('mode', 'computed_torque', self.send_home).successful
            self.stream(POSITION, lambda: self.report.get('mode') == 'computed_torque')
        count, due = len(self.states), 0.0

        def move():
            nonlocal due
            self.send_home()
            if time.monotonic() >= due:  # refused while a busy machine keeps the states waiting
                due = time.monotonic() + 1.0
                self.follow([np.array(POSITION) + distance], [seconds])

        self.until(
            lambda: any(len(state.reference_position) for state in self.states[count:]), move
        )

    def send_home(self):
        """Publish the joint state of the arm at rest."""
        self.send(POSITION)

    def recover(self):
        """Stream good joint states until the node is at work again, and holds at most."""
        self.bring_up(POSITION)
        acknowledge = regularly(lambda: self.trajectories.publish(JointTrajectory()), 1.0)

        def is_at_work():
            is_following = self.report.get('reference') not in ('none', 'holding')
            return not is_following and self.report.get('level', ERROR) < ERROR

        stream = regularly(self.send_home)

        def act():
            stream()
            acknowledge()  # again: what ended drivers sent last may come after it

        self.until(is_at_work, act)

    # --- drivers ---------------------------------------------------------------------------

    def driver(self, *, rate=200.0, names=ARM, offset=0.0, stamp='now', velocity='yes'):
        """Start a driver in a process of its own; it reports the arm at rest until it ends."""
        child = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name('driver.py')),
                str(rate),
                ','.join(names),
                str(offset),
                stamp,
                velocity,
            ],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        self.children.append(child)
        return child

    def listener(self, topic):
        """Start a subscriber in a process of its own, and wait until it is connected."""
        count = self.node.count_subscribers(topic)
        child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name('driver.py')), '--listen', topic],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        self.children.append(child)
        self.stream(POSITION, lambda: self.node.count_subscribers(topic) > count)
        return child

    def until_commanded(self, more=20):
        """Wait for commands that a driver's joint states cause, not ours."""
        self.until(self.commanded_since(len(self.commands), more))

    def until_held(self):
        """Wait until joint states have been missed, and gravity was held, for their time."""
        self.until(lambda: self.report.get('level') == ERROR)
        self.until(lambda: self.is_quiet())

    def is_quiet(self, duration=0.2):
        """Return whether no command comes for a while."""
        count = len(self.commands)
        self.spin(duration)
        return len(self.commands) == count

    def stranger(self):
        """Return a node in a participant of its own, which another process could be."""
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=self.domain)
        node = rclpy.create_node('stranger', context=context)
        self.strangers.append((node, context))
        return node

    # --- what was commanded ----------------------------------------------------------------

    def check_stream(self, rate_limit=RATE_LIMIT, limits=EFFORT_LIMITS):
        """Check every command since the last check: finite, within limits, without steps."""
        self.spin(0.1)
        self.record.sort(key=lambda entry: entry[0])  # of two publishers: not in order of receipt
        for i, entry in enumerate(self.record):
            sent, torque, number, label = entry
            assert torque.shape == limits.shape
            assert np.isfinite(torque).all(), f'command {i}: {torque}'
            assert (np.abs(torque) <= limits).all(), f'command {i}: {torque}'
            before = self.record[max(i - 1, 0)]
            own = self.last_checked.get(label, (*before[:2], 0, label))
            begins = any(before[0] < begin <= sent for begin in self.beginnings)
            self._is_launched |= begins
            if self._is_launched and label != WATCHDOG_LABEL:
                self._is_launched, self._may_overlap_until = False, sent + LONGEST_OVERLAP
            if sent < self._may_overlap_until:  # each without steps
                before, begins = own, begins or number <= own[2]
            if i > 0 and not begins:
                # On a loaded machine the recorder may miss some; they were steps too.
                steps = max(number - own[2], 1)
                elapsed = min(sent - before[0] + CLOCK_TOLERANCE, steps * LONGEST_RATE_STEP)
                allowed = rate_limit * elapsed + 1e-9
                step = np.abs(torque - before[1]).max()
                assert step <= allowed, (
                    f'a step at command {i}: {step} of {allowed} N m, '
                    f'{1e3 * (sent - before[0])} ms after {before[2:]}, by {(number, label)}'
                )
            self.last_checked[label] = entry
        self.forget()

    def forget(self):
        """Begin a new record, continuing what was sent last."""
        self.record = self.record[-1:]
        self.beginnings.clear()
        for kept in (self.commands, self.torques, self.states):
            del kept[:-1]

    def commands_after(self, index):
        """Return the torques recorded from an index on, shape (N, n)."""
        return np.array([torque for _, torque, *_ in self.record[index:]])


def stop(child, number=signal.SIGKILL):
    """End a driver, whatever state it is in."""
    if child.poll() is None:
        child.send_signal(number)
        child.send_signal(signal.SIGCONT)
        child.wait()


def rig_in(folder, panda_urdf):
    """Return a rig for the Panda, its node not started."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'node.log').touch()
    rig = FaultRig(folder / 'node.log')
    rig.robot = {'urdf_file': panda_urdf, 'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
    return rig
