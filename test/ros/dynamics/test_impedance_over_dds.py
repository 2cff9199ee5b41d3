# SPDX-License-Identifier: Apache-2.0
"""An arm that yields, over DDS: pushed, aimed, made stiffer, and what the node refuses."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from contact_rig import POSITION, ContactRig
from geometry_msgs.msg import PoseStamped, Transform, WrenchStamped
from lockstep_rig import seconds
from node_in_process import NodeInProcess
from node_rig import UNHURRIED
from scipy.spatial.transform import Rotation
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from robodyn_ros import forward_kinematics
from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL

pytestmark = pytest.mark.ros

SOFT = {'mode': 'cartesian_impedance', 'impedance__nullspace_stiffness': [10.0]}
RATE = 300.0  # [N m/s]


class Targets:
    """Publishers of a rig for the tip's targets, and what the node says of the tip."""

    def __init__(self, rig):
        self.rig = rig
        kinds = {
            'target_pose': PoseStamped,
            'target_wrench': WrenchStamped,
            'target_poses': MultiDOFJointTrajectory,
        }
        self.publishers = {
            name: rig.node.create_publisher(kind, f'/dynamics_node/{name}', 10)
            for name, kind in kinds.items()
        }
        self.references, self.poses, self.springs = [], [], []

    def listen(self):
        self.rig._keep(PoseStamped, 'tip_reference', self.references)
        self.rig._keep(PoseStamped, 'tip_pose', self.poses)
        self.rig._keep(WrenchStamped, 'spring_wrench', self.springs)

    def send(self, name, message):
        publisher = self.publishers[name]
        self.rig.until(lambda: publisher.get_subscription_count() > 0)
        publisher.publish(message)

    def aim(self, position, xyzw=(0.0, 0.0, 0.0, 1.0), frame=''):
        message = PoseStamped()
        message.header.frame_id = frame
        there, turn = message.pose.position, message.pose.orientation
        there.x, there.y, there.z = map(float, position)
        turn.x, turn.y, turn.z, turn.w = map(float, xyzw)
        self.send('target_pose', message)

    def add(self, wrench, frame=''):
        message = WrenchStamped()
        message.header.frame_id = frame
        force, moment = message.wrench.force, message.wrench.torque
        force.x, force.y, force.z, moment.x, moment.y, moment.z = map(float, wrench)
        self.send('target_wrench', message)

    def follow(self, times, positions, turns, frame=''):
        message = MultiDOFJointTrajectory()
        message.header.frame_id = frame
        for time, position, xyzw in zip(times, positions, turns):
            pose = Transform()
            pose.translation.x, pose.translation.y, pose.translation.z = map(float, position)
            turn = pose.rotation
            turn.x, turn.y, turn.z, turn.w = map(float, xyzw)
            point = MultiDOFJointTrajectoryPoint(transforms=[pose])
            point.time_from_start.sec = int(time)
            point.time_from_start.nanosec = round(1e9 * (time % 1))
            message.points.append(point)
        self.send('target_poses', message)


@pytest.fixture
def rig(tmp_path):
    result = ContactRig(tmp_path / 'node.log')
    result.targets = Targets(result)
    yield result
    result.close()


def float_softly(rig, robot, **parameters):
    """Start an arm in an impedance where it is, without any reference."""
    rig.start(**robot, **{**SOFT, **parameters})
    rig.start_simulator(**robot, initial_position=POSITION)
    rig.until(lambda: rig.push.get_subscription_count() > 0)
    assert rig.transition('activate')
    rig.run_until(0.5)


def tip(model, state):
    """Return the tip's pose (4, 4) of a state."""
    return forward_kinematics(model, np.array(state.position))


@pytest.mark.slow
def test_a_target_pose_is_reached_no_faster_than_tip_speed(rig, robot, model):
    float_softly(rig, robot, impedance__tip_speed=0.1)
    rig.targets.listen()
    begin = tip(model, rig.states[-1])
    goal = begin[:3, 3] + [0.1, 0.1, -0.1]
    turn = Rotation.from_rotvec([0.0, 0.0, 0.3]) * Rotation.from_matrix(begin[:3, :3])
    rig.targets.aim(goal, turn.as_quat(), 'panda_link0')
    rig.run_until(rig.time + 4.0)
    reached = tip(model, rig.states[-1])
    np.testing.assert_allclose(reached[:3, 3], goal, atol=2e-3)
    assert (turn.inv() * Rotation.from_matrix(reached[:3, :3])).magnitude() < 0.02
    told = rig.targets.references
    times = np.array([seconds(each.header.stamp) for each in told])
    places = np.array([[getattr(each.pose.position, axis) for axis in 'xyz'] for each in told])
    # A state that the simulator sends again is answered again.
    later = np.append(True, np.diff(times) > 0.0)
    times, places = times[later], places[later]
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / np.diff(times)
    assert 0.09 < speed.max() < 0.1001
    assert told[-1].header.frame_id == rig.targets.poses[-1].header.frame_id == 'panda_link0'
    pose = rig.targets.poses[-1].pose
    np.testing.assert_allclose(
        [pose.position.x, pose.position.y, pose.position.z], goal, atol=3e-3
    )
    assert rig.targets.springs


@pytest.mark.slow
def test_a_trajectory_of_poses_is_followed_relative_to_the_tip(rig, robot, model):
    float_softly(rig, robot)
    begin = tip(model, rig.states[-1])
    upright = [0.0, 0.0, 0.0, 1.0]
    rig.targets.follow(
        [1.0, 2.0], [[0.0, 0.05, 0.0], [0.05, 0.05, 0.0]], [upright] * 2, 'panda_link8'
    )
    start = rig.time
    rig.run_until(start + 4.5)
    path = [tip(model, s)[:3, 3] for s in rig.states if seconds(s.header.stamp) > start]
    along = (np.array(path) - begin[:3, 3]) @ begin[:3, :3]
    np.testing.assert_allclose(along[-1], [0.05, 0.05, 0.0], atol=1e-3)
    assert along[:, 0].min() > -2e-3  # first along y alone, then along x
    assert np.abs(along[:, 2]).max() < 3e-3
    assert along[np.searchsorted(along[:, 0], 0.005), 1] > 0.035


# --- without a simulator -------------------------------------------------------------------------


@pytest.fixture
def standing(tmp_path, robot):
    """A node in this process, whose arm stands still in an impedance."""
    result = NodeInProcess(tmp_path / 'node.log')
    result.targets = Targets(result)
    result.start(**robot, **SOFT, state_timeout=UNHURRIED)
    result.bring_up(POSITION)
    result.stream(
        POSITION, lambda: result.dynamics_node._cycle.stack.pipeline.tip_reference is not None
    )
    yield result
    result.close()


def refused(rig):
    """Return how many targets were refused."""
    return rig.dynamics_node._cycle.tip.refused


@pytest.mark.longer
def test_bad_targets_are_refused_by_name(standing):
    targets, tip_topics = standing.targets, standing.dynamics_node._cycle.tip
    upright = (0.0, 0.0, 0.0, 1.0)
    for act, words in (
        (lambda: targets.aim([np.nan, 0, 0]), 'finite numbers'),
        (lambda: targets.aim([0.3, 0, 0.5], (0, 0, 0, 0.5)), 'norm of the quaternion'),
        (lambda: targets.aim([0.3, 0, 0.5], frame='camera'), "'', 'panda_link8', 'panda_link0'"),
        (lambda: targets.aim([9.0, 0, 0.5]), 'the reach of the arm'),
        (lambda: targets.add([60.0, 0, 0, 0, 0, 0]), 'impedance.largest_force = 50'),
        (lambda: targets.add([0, np.inf, 0, 0, 0, 0]), 'finite numbers'),
        (lambda: targets.follow([], [], []), 'target poses: 0; allowed: 1 to'),
        (
            lambda: targets.follow([1.0, 1.0], [[0.3, 0, 0.5]] * 2, [upright] * 2),
            'target pose 1 time_from_start: 1.0',
        ),
    ):
        before = refused(standing)
        act()
        standing.stream(POSITION, lambda before=before: refused(standing) > before)
        assert words in tip_topics.last_refusal, tip_topics.last_refusal
    standing.stream(POSITION, lambda: standing.report.get('targets_refused') == '8')
    assert standing.set_parameter('mode', 'computed_torque').successful
    targets.aim([0.3, 0, 0.5])
    standing.stream(POSITION, lambda: refused(standing) > 8)
    assert 'set parameter mode to cartesian_impedance' in tip_topics.last_refusal


@pytest.mark.longer
def test_the_watchdog_holds_an_arm_whose_node_hangs_in_an_impedance(standing):
    assert standing.set_parameter('state_timeout', 0.1).successful
    standing.watch()
    standing.stream(POSITION, lambda: standing.is_watched)
    before = np.array(standing.commands[-1].data)

    def is_taken_over():
        return WATCHDOG_LABEL in [each.label for each in standing.commands[-1].layout.dim]

    standing.hang_until(is_taken_over)
    np.testing.assert_allclose(standing.commands[-1].data, before, atol=0.1)
    standing.stream(POSITION, lambda: not is_taken_over())


@pytest.mark.slow
def test_a_load_is_weighed_by_a_service_in_an_impedance_at_rest_alone(rig, robot):
    float_softly(rig, robot)
    rig.run_until(rig.time + 1.0)
    answer = rig.call(Trigger, 'weigh_payload', Trigger.Request())
    assert answer.success, answer.message
    assert rig.set_parameter('mode', 'gravity_compensation').successful
    refused = rig.call(Trigger, 'weigh_payload', Trigger.Request())
    assert not refused.success and 'the mode is gravity_compensation' in refused.message
