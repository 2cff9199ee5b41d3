# SPDX-License-Identifier: Apache-2.0
"""Launch files of this package in a domain of their own, and a listener beside them."""

import re
import unittest
from pathlib import Path

import domains
import launch_testing
from graph_rig import GraphRig
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription, SetEnvironmentVariable
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_testing.actions import ReadyToTest
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

ROOT = Path(__file__).parents[2]
ARM = ROOT / 'urdf' / 'arm.urdf.xacro'
DOMAIN = domains.claim()
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


class Listener(GraphRig):
    """A node beside what was launched: it remembers what it hears."""

    patience = 90.0

    def __init__(self):
        super().__init__('listener', DOMAIN)

    def heard(self, kind, topic):
        """Return a list that the messages of a topic are appended to."""
        messages = []
        self.node.create_subscription(kind, topic, messages.append, 100)
        return messages

    def follow(self, topic, names, position, seconds):
        """Send a trajectory to a position, to be reached after a time [s]."""
        publisher = self.node.create_publisher(JointTrajectory, topic, 10)
        point = JointTrajectoryPoint(positions=[float(value) for value in position])
        point.time_from_start.sec = seconds
        self.until_subscribed(publisher)
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
