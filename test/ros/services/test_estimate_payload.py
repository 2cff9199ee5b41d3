# SPDX-License-Identifier: Apache-2.0
"""The service estimate_payload, asked about an arm whose efforts are computed."""

import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from simulated_recordings import TrueArm, motion

from robodyn_interfaces.srv import EstimatePayload
from robodyn_ros import Payload, gravity_torque, inverse_dynamics
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.load import Load
from robodyn_ros.errors import Overload
from robodyn_ros.ros.services.callbacks import Robot
from robodyn_ros.ros.services.payload_estimation import (
    MeasuredMotion,
    estimate_payload,
    last_motion,
)
from robodyn_ros.ros.shared_memory import Cycles

AMPERES = np.array([12.0, -11.0, 9.0, -10.0, 10.0, 8.0])
HELD = Payload(1.8, (0.02, -0.03, 0.09), np.diag([0.012, 0.011, 0.006]))
POSES = np.random.default_rng(4).uniform(-1.2, 1.2, (4, 6))


class Asked:
    """An arm that holds something, and the service that is asked about it."""

    def __init__(self, held=HELD, coulomb=0.0, **known):
        arm = TrueArm.drawn(13, 6)
        self.bare = replace(
            arm.bodies, viscous_friction=np.zeros(6), coulomb_friction=np.full(6, coulomb)
        )
        self.loaded = self.bare.with_payload(held)
        self.cycles = Cycles()
        self.cycles.begin(6)
        self.measured = MeasuredMotion(self.cycles)
        load = Load(self.bare.gravity)
        self.robot = Robot.under(load, self.bare, effort_scale=AMPERES, **known)
        self.applied = []
        self.clock = 100.0

    def write(self, q, qd, effort, step=0.01):
        """Write samples that end now."""
        received = time.monotonic() - step * np.arange(len(q))[::-1]
        for k in range(len(q)):
            self.clock += step
            state = MeasuredState(q[k], qd[k], self.clock, True, effort[k] / AMPERES)
            self.cycles.received(state, received[k])
            self.cycles.write()

    def move(self, duration=5.0):
        _, q, qd, qdd = motion(self.bare, 3, duration, 100.0)
        self.write(q, qd, inverse_dynamics(self.loaded, q, qd, qdd))

    def stand(self, pose, duration=1.6):
        q = np.tile(pose, (round(100 * duration), 1))
        self.write(q, np.zeros_like(q), gravity_torque(self.loaded, q))

    def apply(self, payload):
        self.applied.append(payload)
        return self.robot.load.changed(payload, self.bare)[0]

    def ask(self, **fields):
        request, response = EstimatePayload.Request(**fields), EstimatePayload.Response()
        return estimate_payload(self.robot, request, response, self.measured, self.apply)


def center(message):
    vector = message.payload.center_of_mass
    return np.array([vector.x, vector.y, vector.z])


def test_what_is_held_is_found_from_a_motion_in_amperes_and_not_applied():
    asked = Asked()
    asked.move()
    answer = asked.ask()
    assert answer.success, answer.message
    assert answer.payload.mass == pytest.approx(1.8, rel=0.01)
    assert center(answer) == pytest.approx(np.array(HELD.center_of_mass), abs=2e-3)
    assert answer.payload.link == asked.bare.tip_link
    assert 0.0 < answer.mass_deviation < 0.05
    assert len(answer.inertia_deviation) == 9
    assert answer.pose_count == 0
    assert not answer.applied and not asked.applied
    assert answer.message.endswith('not applied')
    assert list(answer.joint_names) == list(asked.bare.joint_names)


def test_it_is_applied_where_that_is_asked_for():
    asked = Asked()
    asked.move()
    answer = asked.ask(apply=True)
    assert answer.success and answer.applied
    (payload,) = asked.applied
    assert payload.mass == answer.payload.mass and payload.link == asked.bare.tip_link
    assert np.linalg.eigvalsh(payload.inertia).min() > 0.0


@pytest.mark.longer
def test_four_poses_determine_mass_and_centre():
    asked = Asked()
    for k, pose in enumerate(POSES):
        asked.stand(pose)
        answer = asked.ask(method='poses')
        assert answer.success, answer.message
        assert answer.pose_count == k + 1
    assert answer.payload.mass == pytest.approx(1.8, rel=0.01)
    assert center(answer) == pytest.approx(np.array(HELD.center_of_mass), abs=3e-3)
    # It is said that gravity does not show an inertia.
    assert any('inertia_from_prior' in each or 'guess' in each for each in answer.findings)
    rows, columns = (each.size for each in answer.poses_to_add.layout.dim)
    to_add = np.reshape(answer.poses_to_add.data, (rows, columns))
    assert columns == 6 and rows >= 1
    low, high = asked.bare.position_limits.T
    assert ((to_add >= low) & (to_add <= high)).all()


def test_a_pose_counts_once_until_it_is_forgotten_or_the_robot_is_another():
    asked = Asked()

    def poses_after(pose, **fields):
        asked.stand(pose)
        return asked.ask(method='poses', **fields).pose_count

    assert [poses_after(pose) for pose in (POSES[0], POSES[0], POSES[1])] == [1, 1, 2]
    assert poses_after(POSES[2], forget_poses=True) == 1
    asked.robot = replace(asked.robot, configured=1.0)
    assert poses_after(POSES[1]) == 1


def test_payload_of_another_link_counts_and_that_of_the_tip_is_replaced():
    asked = Asked()
    link = next(name for name in asked.bare.link_frames if name not in ('base', 'tip'))
    other = Payload(2.5, (0.1, 0.0, 0.0), link=link)
    before = Payload(0.7, (0.0, 0.0, 0.1), link='tip')
    load = asked.robot.load.changed(other, asked.bare)[0].changed(before, asked.bare)[0]
    asked.robot = Robot.under(load, asked.bare, effort_scale=AMPERES)
    asked.loaded = asked.bare.with_payload(other).with_payload(HELD)
    asked.move()
    assert asked.ask().payload.mass == pytest.approx(1.8, rel=0.01)


def test_what_is_uncertain_or_nothing_is_answered_but_not_applied():
    asked = Asked(coulomb=5.0)
    asked.stand(POSES[0])
    uncertain = asked.ask(method='poses', apply=True)
    assert 'estimated payload' in uncertain.message and 'set_payload' in uncertain.message
    assert uncertain.findings and uncertain.payload.mass > 0.0
    empty = Asked(held=Payload(0.0))
    empty.move()
    nothing = empty.ask(apply=True)
    assert 'not distinguishable from zero' in nothing.message
    for answer in (uncertain, nothing):
        assert not answer.success and not answer.applied
    assert not asked.applied and not empty.applied


def test_what_the_control_cycle_refuses_is_refused():
    asked = Asked()
    asked.move()

    def too_heavy(payload):
        raise Overload('gravity torque of joint j2', 300.0, 'its effort limit')

    asked.apply = too_heavy
    answer = asked.ask(apply=True)
    assert not answer.success and not answer.applied
    assert 'j2' in answer.message and answer.payload.mass == pytest.approx(1.8, rel=0.01)


def test_nothing_measured_and_something_old_are_refused():
    asked = Asked()
    answer = asked.ask()
    assert not answer.success and 'none with efforts came' in answer.message
    asked.move()
    asked.cycles.begin(6)  # as after clean-up and configure
    assert 'none with efforts came' in asked.ask().message
    asked = Asked(longest_age=-1.0)
    asked.move()
    assert 'age of the latest measured effort' in asked.ask().message


def test_what_cannot_be_estimated_from_is_refused_by_name():
    moving, standing = Asked(), Asked()
    moving.move()
    standing.stand(POSES[0], duration=0.5)
    shortly = Asked()
    shortly.stand(POSES[0], duration=0.2)
    for asked, fields, why in (
        (moving, {'method': 'poses'}, 'stands still'),
        (standing, {'method': 'poses'}, '1.5 s with efforts'),
        (shortly, {}, '1 s at least'),
        (moving, {'method': 'guess'}, "request method: 'guess'; allowed: motion, poses"),
        *((moving, {'duration': t}, f'request duration: {t}') for t in (-1.0, 3600.0, np.nan)),
    ):
        answer = asked.ask(**fields)
        assert not answer.success and why in answer.message
        assert not asked.measured.poses


# --- the motion that is looked back at ---------------------------------------------------------


def written(times, received=100.0, effort=1.0):
    """Return cycles with a state for each time, whose numbers are known from it."""
    cycles = Cycles()
    cycles.begin(3)
    for k, time_ in enumerate(times):
        joints = np.arange(3.0)
        efforts = None if effort is None else joints - time_
        state = MeasuredState(joints + time_, joints + 10.0 * time_, time_, True, efforts)
        cycles.received(state, received + 0.01 * k)
        cycles.write()
    return cycles


def test_a_clock_that_is_set_back_leaves_only_what_came_after_it():
    times = np.append(np.arange(50.0, 60.0, 0.1), np.arange(1.0, 2.0, 0.1))
    motion = last_motion(written(times), 60.0)
    assert motion.time[-1] == pytest.approx(1.9)
    assert len(motion.time) == 10


def test_samples_of_a_quick_driver_are_averaged():
    motion = last_motion(written(np.arange(1.0, 3.0, 0.0005)), 10.0)
    assert len(motion.time) == pytest.approx(2.0 * 250.0, abs=2)
    # All alike, so that they still belong together.
    np.testing.assert_allclose(motion.position[:, 0], motion.time)
    np.testing.assert_allclose(motion.effort[:, 1], 1.0 - motion.time)
