# SPDX-License-Identifier: Apache-2.0
"""The node feedforward in this process, a driver and a controller's topic beside it, over DDS."""

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from graph_rig import GraphRig
from rclpy.parameter import Parameter
from robots import public_urdf
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robodyn_ros as rd
from robodyn_ros.errors import RobodynError
from robodyn_ros.ros.feedforward.feedforward_node import FeedforwardNode

PANDA = public_urdf('panda.urdf')
MODEL = rd.RobotModel.from_urdf(PANDA, tip_link='panda_link8')
POSITION = np.array([0.1, -0.3, 0.2, -1.8, 0.3, 1.6, 0.5])


class Rig(GraphRig):
    """
    Holds the node, and what is around it.

    Parameters
    ----------
    parameters
        Of the node, on top of those of a Panda.
    """

    def __init__(self, **parameters):
        super().__init__('tester')
        self.tester, self.node = self.node, None
        given = {
            'urdf_file': str(PANDA),
            'tip_link': 'panda_link8',
            'algorithm': 'newton_euler',
            'state_timeout': 5.0,
            **parameters,
        }
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        try:
            node = FeedforwardNode(context=self.context, parameter_overrides=overrides)
        except RobodynError:
            self.close()
            raise
        self.node = self.add(node)
        self.out = []
        self.tester.create_subscription(
            JointTrajectory, 'joint_trajectory_controller/joint_trajectory', self.out.append, 10
        )
        self.told = []  # statuses
        self.tester.create_subscription(
            DiagnosticArray, '/diagnostics', lambda each: self.told.extend(each.status), 10
        )
        self.states = self.tester.create_publisher(JointState, 'joint_states', 10)
        self.trajectories = self.tester.create_publisher(
            JointTrajectory, 'feedforward/joint_trajectory', 10
        )

    def drive(self):
        """Publish the state of an arm at rest until the node has it."""
        self.until(lambda: self.node._filler._state is not None, self.tell_state)

    def tell_state(self):
        """Publish the state of an arm at rest once."""
        message = JointState(
            name=list(MODEL.joint_names), position=list(POSITION), velocity=[0.0] * 7
        )
        message.header.stamp = self.tester.get_clock().now().to_msg()
        self.states.publish(message)

    def send(self, message):
        """Return what the controller is sent for a trajectory."""
        self.until_subscribed(self.trajectories)
        self.until(lambda: self.node.count_subscribers(self.node._output.topic_name) > 0)
        count = len(self.out)
        self.trajectories.publish(message)
        self.until(lambda: len(self.out) > count)
        return self.out[-1]


def trajectory(*positions, names=MODEL.joint_names, seconds=1):
    points = []
    for k, position in enumerate(positions):
        point = JointTrajectoryPoint(positions=list(position), velocities=[0.0] * len(position))
        point.time_from_start.sec = (k + 1) * seconds
        points.append(point)
    return JointTrajectory(joint_names=list(names), points=points)
