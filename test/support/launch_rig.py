# SPDX-License-Identifier: Apache-2.0
"""Launch files of this package in a domain of their own, and a listener beside them."""

import re
import time
import unittest
from pathlib import Path

import domains
import launch_testing
import rclpy
from fair_spinning import spin_until
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription, SetEnvironmentVariable
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_testing.actions import ReadyToTest
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

ROOT = Path(__file__).parents[2]
ARM = ROOT / 'urdf' / 'arm.urdf.xacro'
DOMAIN = domains.claim()
PATIENCE = 90.0  # for anything that must happen; a loaded machine may take long [s]
PERIOD = 0.005  # between joint states that a test streams [s]
BAD = re.compile(r'\[(ERROR|FATAL)\]|Traceback')


def launched(name, **arguments):
    """Return one of the launch files with these arguments, ready to be tested at once."""
    source = PythonLaunchDescriptionSource(str(ROOT / 'launch' / f'{name}.launch.py'))
    environment = {
        'ROS_DOMAIN_ID': str(DOMAIN),
        'RCUTILS_LOGGING_BUFFERED_STREAM': '0',
    }
    return LaunchDescription(
        [
            GroupAction(
                [
                    *(SetEnvironmentVariable(*pair) for pair in environment.items()),
                    IncludeLaunchDescription(source, launch_arguments=arguments.items()),
                ]
            ),
            ReadyToTest(),
        ]
    )


def bad_lines(proc_output, *justified):
    """Return what any process logged as an error, but for what a test expects and justifies."""
    text = ''.join(chunk.text.decode(errors='replace') for chunk in proc_output)
    return [
        line
        for line in text.splitlines()
        if BAD.search(line) and not any(words in line for words in justified)
    ]


def ends_well(*justified):
    """Return the test that all processes end cleanly, with no error but those justified."""

    class TestTheEnd(unittest.TestCase):
        def test_all_nodes_ended_cleanly_and_nothing_went_wrong(self, proc_info, proc_output):
            launch_testing.asserts.assertExitCodes(proc_info)
            self.assertEqual(bad_lines(proc_output, *justified), [])

    return launch_testing.post_shutdown_test()(TestTheEnd)


class Listener:
    """A node beside what was launched: it remembers what it hears."""

    def __init__(self):
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=DOMAIN)
        self.node = rclpy.create_node('listener', context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)

    def heard(self, kind, topic):
        """Return a list that the messages of a topic are appended to."""
        messages = []
        self.node.create_subscription(kind, topic, messages.append, 100)
        return messages

    def until(self, condition, doing=None):
        """Spin, doing something again and again, until the condition holds; fail if it never."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, 'waited in vain'
            if doing is not None:
                doing()
            self.spin(PERIOD)

    def spin(self, duration):
        """Take in messages for a while [s]."""
        spin_until(self._executor, time.monotonic() + duration)

    def call(self, kind, name, request, doing=None):
        """Return the answer of a service."""
        client = self.node.create_client(kind, name)
        self.until(client.service_is_ready, doing)
        future = client.call_async(request)
        self.until(future.done, doing)
        self.node.destroy_client(client)
        return future.result()

    def follow(self, topic, names, position, seconds):
        """Send a trajectory to a position, to be reached after a time [s]."""
        publisher = self.node.create_publisher(JointTrajectory, topic, 10)
        point = JointTrajectoryPoint(positions=[float(value) for value in position])
        point.time_from_start.sec = seconds
        self.until(lambda: publisher.get_subscription_count() > 0)
        publisher.publish(JointTrajectory(joint_names=list(names), points=[point]))


class Driver:
    """The joint states and, where a text is given, the robot description of a robot at rest."""

    def __init__(self, listener, joint_states_topic, names, position):
        self._listener = listener
        self._publisher = listener.node.create_publisher(JointState, joint_states_topic, 10)
        self._message = JointState(
            name=list(names), position=list(position), velocity=[0.0] * len(position)
        )

    def send(self):
        """Publish the state of the joints, stamped now."""
        self._message.header.stamp = self._listener.node.get_clock().now().to_msg()
        self._publisher.publish(self._message)


def described(listener, topic, text):
    """Publish a robot description as robot_state_publisher does, and return the publisher."""
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = listener.node.create_publisher(String, topic, latched)
    publisher.publish(String(data=text))
    return publisher
