# SPDX-License-Identifier: Apache-2.0
"""A dynamics_node in a process of its own, and everything around it, over real DDS."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from graph_rig import GraphRig
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter as NodeParameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.msg import DynamicsState
from robodyn_ros.ros.demo.node_process import die_with_parent

CONFIG = Path(__file__).parents[2] / 'config' / 'dynamics_node.yaml'
PATIENCE = 30.0  # for anything that must happen; a loaded machine may take long [s]
REPETITION = 5.0  # of a request without an answer [s]
# For `state_timeout` where staleness is not what is tested: a loaded machine delays states [s].
UNHURRIED = 20.0
PERIOD = 0.005  # between joint states that a test streams [s]
ARM = [f'panda_joint{i}' for i in range(1, 8)]
MARK = 'ROBODYN_TEST_RIG'  # variable by which a rig knows the processes that it started


def processes_with(mark):
    """Return the processes that have a mark in their environment, or forked from one that has."""
    found = []
    for entry in Path('/proc').iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / 'environ').read_bytes().split(b'\0'):
                found.append(int(entry.name))
    return found


def regularly(action, period=PERIOD):
    """
    Return a function that does what is due since it was last called, once a period [s].

    On a loaded machine, which calls it too seldom, joint states come no slower for that.
    """
    due = time.monotonic()

    def act():
        nonlocal due
        due = max(due, time.monotonic() - 20 * PERIOD)
        while due <= time.monotonic():
            due += period
            action()

    return act


class NodeRig(GraphRig):
    """
    Starts the node, talks to it, and remembers what it said.

    Parameters
    ----------
    log_path : Path
        Where the node's log goes.

    Attributes
    ----------
    command_scale : array, shape (n,), or 1
        What the node is started with; ``commands`` holds torques all the same.
    patience : float
        For anything that must happen [s].
    """

    command_scale = 1.0
    patience = PATIENCE

    DEPTH = 20_000  # so many messages of a topic may wait

    def __init__(self, log_path):
        super().__init__()
        self.log_path = log_path
        self.process = None
        self.output = None  # where the node prints to; None: the log
        self.environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(self.domain),
            'RCUTILS_LOGGING_BUFFERED_STREAM': '0',
            'ROS_LOG_DIR': str(log_path.parent),
            MARK: uuid.uuid4().hex,
        }
        self._clients = {}
        self.commands, self.torques, self.states, self.reports = [], [], [], []
        self._keep(Float64MultiArray, 'commands', self.commands, self.in_torques)
        self._keep(JointState, 'torques', self.torques)
        self._keep(DynamicsState, 'dynamics_state', self.states)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._on_report, 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.description = self.node.create_publisher(String, '/robot_description', latched)
        self.joint_states = self.node.create_publisher(JointState, '/joint_states', 10)
        self.trajectories = self.node.create_publisher(
            JointTrajectory, '/dynamics_node/joint_trajectory', 10
        )

    def close(self):
        """End the node and leave the graph."""
        if self.process is not None:
            # Its watchdog would carry the arm on for a while, in the next test's domain. Nobody
            # else's process has the mark, whatever it runs and in whichever domain.
            mark = f'{MARK}={self.environment[MARK]}'.encode()
            while found := processes_with(mark):
                for pid in found:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            self.process.wait()
        super().close()

    def disconnect(self, *topics):
        """Leave topics without this publisher or subscriber."""
        for end in [*self.node.publishers, *self.node.subscriptions]:
            if end.topic_name in topics and not self.node.destroy_publisher(end):
                self.node.destroy_subscription(end)

    def start(self, *ros_arguments, program=None, **parameters):
        """Start the node, or a program, with the parameter file and these changes on top."""
        what = (
            ['-m', 'robodyn_ros.ros.dynamics.dynamics_node']
            if program is None
            else ['-c', program]
        )
        arguments = self.arguments(*ros_arguments, **parameters)
        with open(self.log_path, 'a', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [sys.executable, *what, *arguments],
                env=self.environment,
                stdout=log if self.output is None else self.output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )
        return self

    @staticmethod
    def arguments(*ros_arguments, **parameters):
        """Return the command line: the parameter file, states of each cycle, these on top."""
        arguments = ['--ros-args', '--params-file', str(CONFIG), *ros_arguments]
        parameters = {'state_publish_rate': 10_000.0, **parameters}
        for name, value in parameters.items():
            arguments += ['-p', f'{name.replace("__", ".")}:={value}']
        return arguments

    @property
    def log(self):
        """What the node has logged."""
        return self.log_path.read_text(encoding='utf-8')

    @property
    def report(self):
        """The last diagnostics: all values in a dictionary, level and message of the torque."""
        return self.reports[-1] if self.reports else {}

    # --- talking ---------------------------------------------------------------------------

    def send(self, position, velocity=None, names=ARM, stamp=None):
        """Publish one joint state, stamped now unless a stamp is given."""
        message = JointState(
            name=list(names),
            position=[float(value) for value in position],
            velocity=[0.0] * len(names) if velocity is None else velocity,
        )
        message.header.stamp = stamp or self.node.get_clock().now().to_msg()
        self.joint_states.publish(message)

    def stream(self, position, condition, **options):
        """Publish joint states regularly until the condition holds."""
        self.until(condition, doing=regularly(lambda: self.send(position, **options)))

    def commanded_since(self, count, more=5):
        """Return the condition that some more commands have come than a count."""
        return lambda: len(self.commands) >= count + more

    def bring_up(self, position):
        """Stream joint states until commands come, and from the node, not from a watchdog."""
        is_commanded, before = self.commanded_since(len(self.commands)), len(self.states)
        self.stream(position, lambda: is_commanded() and len(self.states) > before)

    def follow(self, positions, seconds, names=ARM, stamp=None, **fields):
        """Publish a trajectory through positions at times [s]; without a stamp, from now on."""
        message = JointTrajectory(joint_names=list(names))
        if stamp is not None:
            message.header.stamp = stamp
        for position, time_from_start in zip(positions, seconds):
            point = JointTrajectoryPoint(positions=[float(value) for value in position], **fields)
            point.time_from_start.sec = int(time_from_start)
            point.time_from_start.nanosec = round(1e9 * (time_from_start % 1))
            message.points.append(point)
        self.until(lambda: self.trajectories.get_subscription_count() > 0)
        self.trajectories.publish(message)

    def call(self, kind, name, request, doing=None):
        """
        Return the answer of one of the node's services, asked again where none comes.

        A node answers into the void until it has discovered the client that asks. What changes
        nothing when it is asked twice is asked again; a transition is only asked for once the node
        has answered a client that was made later than the one that asks.
        """
        client = self._client(kind, name)
        self.until(client.service_is_ready, doing)
        if kind is ChangeState:
            probe = self.node.create_client(GetState, '/dynamics_node/get_state')
            self.until(probe.service_is_ready, doing)
            self._ask(probe, GetState.Request(), doing)
            self.node.destroy_client(probe)
            future = client.call_async(request)
            self.until(future.done, doing)
            return future.result()
        return self._ask(client, request, doing)

    def _client(self, kind, name):
        """Return the one client of a service, so that it is discovered once."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, f'/dynamics_node/{name}')
        return self._clients[name]

    def _ask(self, client, request, doing):
        futures, asked = [], -math.inf

        def is_answered():
            nonlocal asked
            if time.monotonic() - asked > REPETITION:
                futures.append(client.call_async(request))
                asked = time.monotonic()
            return any(future.done() for future in futures)

        self.until(is_answered, doing)
        return next(future.result() for future in futures if future.done())

    def transition(self, label, doing=None):
        """Return whether the node made a lifecycle transition."""
        request = ChangeState.Request()
        request.transition.label = label
        return self.call(ChangeState, 'change_state', request, doing).success

    def lifecycle(self):
        """Return the node's lifecycle state."""
        return self.call(GetState, 'get_state', GetState.Request()).current_state.label

    def enable(self, on, doing=None):
        """Return the answer to enabling or disabling."""
        return self.call(SetBool, 'enable', SetBool.Request(data=on), doing)

    def set_parameter(self, name, value, doing=None):
        """Return the result of setting one parameter."""
        value = NodeParameter(name, value=value).get_parameter_value()
        assert isinstance(value, ParameterValue)
        request = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
        return self.call(SetParameters, 'set_parameters', request, doing).results[0]

    def end(self, number=signal.SIGINT):
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        self.until(lambda: self.process.poll() is not None)
        self.take_in()
        return self.process.returncode

    def take_in(self):
        """Take in commands until no more come; a loaded machine may be behind."""
        taken_in = -1
        while len(self.commands) > taken_in:
            taken_in = len(self.commands)
            self.spin(0.2)

    def in_torques(self, message):
        """Return a command with its numbers divided by the scale."""
        message.data = (np.array(message.data) / self.command_scale).tolist()
        return message

    def _keep(self, kind, name, into, converted=lambda message: message):
        self.node.create_subscription(
            kind,
            f'/dynamics_node/{name}',
            lambda message: into.append(converted(message)),
            self.DEPTH,
        )

    def _on_report(self, message):
        statuses = {
            status.name.rpartition('/')[2]: status
            for status in message.status
            if 'dynamics_node: ' in status.name
        }
        if statuses:
            torque, model = statuses['dynamics_node: torque'], statuses['dynamics_node: model']
            processes = statuses['dynamics_node: processes']
            values = {
                value.key: value.value
                for value in (*torque.values, *model.values, *processes.values)
            }
            self.reports.append(
                {
                    **values,
                    'level': torque.level[0],
                    'message': torque.message,
                    'model_level': model.level[0],
                    'model_message': model.message,
                }
            )
