# SPDX-License-Identifier: Apache-2.0
"""Without a path, only a goal: the fastest motion there that limits allow."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from oracles import PinocchioArm

from robodyn_ros import RobotModel, retime
from robodyn_ros.errors import InvalidArgument, NoBackend, NoSolution

pytest.importorskip('ruckig', reason='needs Ruckig')

WAY, SPEED, ACCELERATION, JERK = 1.5, 1.0, 4.0, 20.0
SLIDER = """<robot name="slider"><link name="base"/><link name="mass"><inertial>
    <mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    </link><joint name="slide" type="prismatic"><parent link="base"/><child link="mass"/>
    <axis xyz="1 0 0"/><limit lower="-2" upper="2" effort="30" velocity="1"/></joint></robot>"""


def to_goal(model, ends, **options):
    return retime(model, ends, corners='goal', **options)


@pytest.fixture(scope='module')
def slider():
    return RobotModel.from_urdf(SLIDER)


@pytest.fixture(scope='module')
def panda(panda_urdf):
    return RobotModel.from_urdf(panda_urdf, tip_link='panda_link8')


def test_one_joint_takes_the_time_of_the_double_s(slider):
    ends = [[0.0], [WAY]]
    plain = to_goal(slider, ends, acceleration_limits=ACCELERATION)
    assert plain.duration == pytest.approx(WAY / SPEED + SPEED / ACCELERATION, rel=5e-4)
    smooth = to_goal(slider, ends, acceleration_limits=ACCELERATION, jerk_limits=JERK)
    expected = WAY / SPEED + SPEED / ACCELERATION + ACCELERATION / JERK
    assert smooth.duration == pytest.approx(expected, rel=5e-4)
    time = np.linspace(0.0, smooth.duration, 1001)
    q, qd, qdd = smooth.at(time)
    assert np.abs(qd).max() <= SPEED * (1 + 1e-6) and np.abs(qdd).max() <= ACCELERATION * (
        1 + 1e-6
    )
    assert np.abs(np.diff(qdd[:, 0])).max() <= JERK * time[1] * (1 + 1e-6)
    np.testing.assert_allclose(np.gradient(q[:, 0], time), qd[:, 0], atol=1e-2)


def test_a_mass_that_its_drive_cannot_accelerate_so_takes_longer(slider):
    # 30 N move 2 kg at 15 m/s²; with half of it left to a controller at 7.5.
    motion = to_goal(slider, [[0.0], [WAY]], acceleration_limits=100.0, effort_margin=0.5)
    assert np.abs(motion.effort).max() == pytest.approx(15.0, rel=2e-3)
    # The velocity limit of 1 m/s stays.
    assert motion.duration == pytest.approx(WAY / SPEED + SPEED / 7.5, rel=2e-3)


def test_friction_at_full_speed_that_a_drive_cannot_overcome_makes_it_slower(slider):
    """At 0.6 m/s 6 of 30 N are left to accelerate; at 1 m/s viscous friction needs 40 N."""
    thick = replace(slider, viscous_friction=np.array([40.0]))
    motion = to_goal(thick, [[0.0], [WAY]], acceleration_limits=100.0)
    assert np.abs(motion.effort).max() <= 30.0
    assert motion.duration == pytest.approx(WAY / 0.6 + 0.6 / 3.0, rel=5e-3)


def test_joints_move_along_a_straight_line_so_that_none_accelerates_more_than_it_must(panda):
    start = panda.position_limits.mean(axis=1)
    ends = np.array([start, start + 0.1 * np.arange(1, 8)])
    motion = to_goal(panda, ends, acceleration_limits=5.0)
    done = (motion.position - start) / (ends[1] - start)
    assert np.ptp(done, axis=1).max() < 1e-6


@pytest.mark.parametrize('seed', range(4))
def test_no_single_acceleration_for_ruckig_is_faster(panda, panda_urdf, seed):
    """The best one for this very motion, its torques by Pinocchio."""
    ruckig = pytest.importorskip('ruckig')
    oracle = PinocchioArm.of(panda_urdf, panda)
    generator = np.random.default_rng(seed)
    low, high = panda.position_limits.T
    ends = generator.uniform(0.7 * low + 0.3 * high, 0.3 * low + 0.7 * high, (2, 7))

    def motion(acceleration):
        given = ruckig.InputParameter(7)
        given.current_position, given.target_position = ends.tolist()
        given.max_velocity = panda.velocity_limits.tolist()
        given.max_acceleration = [acceleration] * 7
        found = ruckig.Trajectory(7)
        ruckig.Ruckig(7).calculate(given, found)
        return found

    def keeps(found):
        states = (found.at_time(t)[:3] for t in np.linspace(0.0, found.duration, 300))
        torques = [oracle.torque(*map(np.array, state)) for state in states]
        return bool((np.abs(torques) <= panda.effort_limits).all())

    slow, fast = 1.0, 50.0
    for _ in range(15):
        middle = np.sqrt(slow * fast)
        slow, fast = (middle, fast) if keeps(motion(middle)) else (slow, middle)
    found = to_goal(panda, ends, acceleration_limits=50.0)
    assert found.duration <= 1.02 * motion(slow).duration


@pytest.mark.parametrize('is_moving', [False, True])
def test_torque_between_random_states_stays_within_limits(panda, panda_urdf, is_moving):
    oracle = PinocchioArm.of(panda_urdf, panda)
    generator = np.random.default_rng(4)
    low, high = panda.position_limits.T
    limits = 0.4 * panda.effort_limits
    bound = 0
    for _ in range(3):
        ends = generator.uniform(0.7 * low + 0.3 * high, 0.3 * low + 0.7 * high, (2, 7))
        velocity = 0.2 * is_moving * generator.uniform(-1.0, 1.0, 7)
        motion = to_goal(
            panda,
            ends,
            acceleration_limits=40.0,
            jerk_limits=4000.0,
            start_velocity=velocity,
            effort_limits=np.where(np.arange(7) < 4, limits + 40.0, limits + 4.0),
        )
        time = np.arange(0.0, motion.duration, 1e-3)
        torques = np.array([oracle.torque(*state) for state in zip(*motion.at(time), strict=True)])
        share = np.abs(torques) / np.where(np.arange(7) < 4, limits + 40.0, limits + 4.0)
        assert share.max() <= 1.0 + 1e-4
        bound += share.max() > 0.98
        np.testing.assert_allclose(motion.position[[0, -1]], ends, atol=1e-9)
        np.testing.assert_allclose(motion.velocity[0], velocity, atol=1e-9)
        np.testing.assert_allclose(motion.velocity[-1], 0.0, atol=1e-9)
        assert np.abs(np.diff(motion.at(time)[0], axis=0)).max() < 5e-3
    assert bound  # of some the torque is what limits them


def test_what_cannot_be_is_refused_by_name(slider, panda, monkeypatch):
    ends = [[0.0], [WAY]]
    with pytest.raises(InvalidArgument, match='acceleration_limits'):
        to_goal(slider, ends)
    with pytest.raises(InvalidArgument, match='a start and a goal'):
        to_goal(slider, [[0.0], [1.0], [WAY]], acceleration_limits=ACCELERATION)
    with pytest.raises(InvalidArgument, match=r"'slide' position at .* on the way"):
        # Braked at 0.2 m/s², 1 m/s goes 2.5 m far.
        to_goal(slider, ends, acceleration_limits=0.2, start_velocity=[1.0])
    lift = RobotModel.from_urdf(SLIDER.replace('xyz="1 0 0"', 'xyz="0 0 1"'))
    with pytest.raises(NoSolution, match=r"'slide' torque to the goal: 19.62 N; .* however slow"):
        to_goal(lift, ends, acceleration_limits=5.0, effort_limits=1.0)
    with pytest.raises(InvalidArgument, match=r'Ruckig: no motion within its numerical limits'):
        middle, speeds = panda.position_limits.mean(axis=1), np.linspace(23.0, 25.0, 7)
        to_goal(panda, [middle, middle + 0.1], acceleration_limits=4e-5, end_velocity=speeds)
    with pytest.raises(InvalidArgument, match=r'Ruckig: \[ruckig\] error'):
        to_goal(slider, ends, acceleration_limits=1e-3, jerk_limits=600.0, start_velocity=[1e4])
    monkeypatch.setitem(sys.modules, 'ruckig', None)
    with pytest.raises(NoBackend, match='pip install ruckig'):
        to_goal(slider, ends, acceleration_limits=ACCELERATION)
