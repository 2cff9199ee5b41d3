# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a motion that suits the arm, honest numbers, and the whole of it over DDS."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import domains
import numpy as np
import pytest
from drawn_figures import examined_figures
from rich.console import Console
from robots import public_urdfs

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.errors import Overload, RobodynError
from robodyn_ros.motions.point_to_point import suitable_motion
from robodyn_ros.ros.demo.tracking import (
    LAWS,
    TrackedRun,
    TrackingResults,
    moved_joints,
    save_plot,
    summary,
    tables,
)

TWO_ARMS = (
    *('--urdf', Path(__file__).parents[3] / 'urdf' / 'two_arms_on_a_torso.urdf.xacro'),
    *('--tip', 'left_hand', '--tip', 'right_hand'),
)
LIFT = (
    '<robot name="lift"><link name="base"/><link name="carriage"><inertial><mass value="2"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<link name="arm"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="lift" type="prismatic"><parent link="base"/><child link="carriage"/>'
    '<axis xyz="0 0 1"/><limit lower="0" upper="0.3" velocity="0.5" {effort}/></joint>'
    '<joint name="elbow" type="continuous"><parent link="carriage"/><child link="arm"/>'
    '<axis xyz="0 1 0"/><limit effort="50" velocity="0"/></joint></robot>'
)


def lift(effort='effort="100"'):
    return LIFT.format(effort=effort)


def made_up_results(prismatic=(False, True)):
    """Return results whose errors are known: 0.1, 0.01 and 0.001 on each joint."""
    model = RobotModel.from_urdf(lift())
    motion = suitable_motion(model)
    time = np.linspace(0.0, motion.duration, 200)
    still = np.tile(motion.start, (200, 1))
    still[-1, 0] += 0.002
    return TrackingResults(
        robot='lift',
        joint_names=model.joint_names,
        prismatic=np.array(prismatic),
        motion=motion,
        hold=TrackedRun(time, still, commands=200, missed_cycles=1),
        tracking={
            law: TrackedRun(time, motion.position(time) - error, commands=10, missed_cycles=0)
            for law, error in zip(LAWS, (0.1, 0.01, 0.001))
        },
    )


def small_arms():
    """Return the models of the public URDFs that are single chains."""
    for path in public_urdfs():
        try:
            yield path.name, RobotModel.from_urdf(path)
        except RobodynError:
            continue


@pytest.mark.longer
def test_the_motion_stays_within_the_limits_of_every_public_arm():
    moved = 0
    for name, model in small_arms():
        try:
            motion = suitable_motion(model)
        except Overload:
            continue
        moved += 1
        time = np.linspace(0, motion.duration, 500)
        position, velocity = motion.position(time), motion.velocity(time)
        assert np.isfinite(position).all(), name
        lower, upper = model.position_limits.T
        assert np.all(position >= np.minimum(lower, upper) - 1e-12), name
        assert np.all(position <= np.maximum(lower, upper) + 1e-12), name
        limited = model.velocity_limits > 0
        assert np.all(np.abs(velocity) <= model.velocity_limits + 1e-9, axis=0)[limited].all()
        torque = inverse_dynamics(model, position, velocity, motion.acceleration(time))
        limited = model.effort_limits > 0
        assert np.all(np.abs(torque) <= model.effort_limits, axis=0)[limited].all(), name
    assert moved > 10


def test_the_motion_begins_and_ends_at_rest_and_its_derivatives_are_those_of_the_position():
    motion = suitable_motion(RobotModel.from_urdf(lift()))
    ends = np.array([0.0, motion.duration])
    for times in (ends, ends + [-1.0, 1.0]):
        np.testing.assert_allclose(motion.position(times), [motion.start, motion.goal])
    np.testing.assert_array_equal(motion.velocity(ends), 0)
    np.testing.assert_allclose(motion.acceleration(ends), 0, atol=1e-12)
    time, h = np.linspace(0.1, 0.9, 9) * motion.duration, 1e-5
    velocity = (motion.position(time + h) - motion.position(time - h)) / (2 * h)
    np.testing.assert_allclose(motion.velocity(time), velocity, atol=1e-8)
    acceleration = (motion.velocity(time + h) - motion.velocity(time - h)) / (2 * h)
    np.testing.assert_allclose(motion.acceleration(time), acceleration, atol=1e-8)


def test_an_arm_too_weak_for_its_own_weight_is_refused_by_the_joint_s_name():
    with pytest.raises(Overload, match="joint 'lift' effort limit"):
        suitable_motion(RobotModel.from_urdf(lift('effort="20"')))


def test_summary_keeps_radians_and_metres_apart():
    numbers = summary(made_up_results())
    assert (numbers['hold_drift_rad'], numbers['hold_drift_m']) == pytest.approx((0.002, 0.0))
    for law, error in zip(LAWS, (0.1, 0.01, 0.001)):
        for unit in ('rad', 'm'):
            assert numbers[f'tracking_rms_{law}_{unit}'] == pytest.approx(error)
    assert (numbers['commands'], numbers['missed_cycles']) == (230, 1)
    results = made_up_results(prismatic=(True, True))
    numbers = json.loads(json.dumps(summary(results)))
    assert numbers['tracking_rms_pd_rad'] is None
    assert numbers['tracking_rms_pd_m'] == pytest.approx(0.1)
    assert len(tables(results)) == 1


def printed(results):
    file = io.StringIO()
    for table in tables(results):
        Console(file=file, width=120).print(table)
    return file.getvalue()


def test_tables_show_units_and_plain_numbers():
    results = made_up_results()
    far = results.tracking['pd']
    far = replace(far, position=far.position - 0.9)
    results = replace(results, robot='lift [b]', tracking={**results.tracking, 'pd': far})
    text = printed(results)
    for shown in ('lift [b]', 'RMS error [mrad]', 'peak error [mm]', ' 1000 '):
        assert shown in text
    assert 'e+' not in text
    assert 'moves' not in text
    hold = replace(results.hold, position=1e-9 * results.hold.position)
    assert 'drifted < 0.001 mrad' in printed(replace(results, hold=hold))


def test_a_law_under_which_the_arm_stands_still_is_said_to_move_no_joint(tmp_path):
    results = made_up_results()
    way = results.motion.position(results.hold.time)
    stuck = replace(results.hold, position=np.tile(way[:1], (len(way), 1)))
    half = replace(stuck, position=np.column_stack([way[:, 0], stuck.position[:, 1]]))
    still = replace(results, tracking={**results.tracking, 'pd': stuck, 'pd_gravity': half})
    assert moved_joints(still, 'pd').tolist() == [False, False]
    assert moved_joints(still, 'pd_gravity').tolist() == [True, False]
    assert moved_joints(still, 'computed_torque').all()
    text = printed(still)
    assert 'PD alone: moves no joint' in text
    assert 'PD + gravity: moves 1 of 2 joints' in text
    save_plot(still, tmp_path / 'tracking.svg')  # its comments hold the words
    words = (tmp_path / 'tracking.svg').read_text()
    assert 'PD + gravity moves 1 of 2 joints, computed torque all' in words
    assert 'closer' not in words


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('prismatic', [(False, True), (True, True), (False, False)])
def test_plot_is_a_picture_for_arms_of_any_joints(tmp_path, prismatic):
    from matplotlib.image import imread

    results = made_up_results(prismatic)
    far = {
        law: replace(made, position=made.position - 1e-3) for law, made in results.tracking.items()
    }
    named = replace(results, robot='\u95a2 $x_1$ ' + 40 * 'a', joint_names=('_' + 40 * 'b',) * 2)
    with examined_figures():
        for each in (named, replace(results, tracking=far)):
            save_plot(each, tmp_path / 'tracking.png')
    assert imread(tmp_path / 'tracking.png').shape[:2] == (1080, 1920)


# --- over DDS -----------------------------------------------------------------------------------


def robodyn_demo(*arguments):
    pytest.importorskip('rclpy', reason='needs ROS 2')
    pytest.importorskip('mujoco')
    return subprocess.run(
        [sys.executable, '-m', 'robodyn_ros.cli', 'demo', *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=280,
    )


def demo_processes(log):
    """Return the command lines of running processes that name a folder or file."""
    lines = []
    for path in Path('/proc').glob('[0-9]*/cmdline'):
        try:
            line = path.read_bytes().replace(b'\0', b' ').decode(errors='replace')
        except OSError:
            continue
        if str(log) in line:
            lines.append(line)
    return lines


@pytest.mark.slow
@pytest.mark.ros
def test_demo_drives_an_arm_with_a_prismatic_joint_and_writes_its_results(tmp_path):
    urdf = tmp_path / 'lift.urdf'
    urdf.write_text(lift(effort=''))
    result = robodyn_demo('--urdf', urdf, '--output', tmp_path / 'out', '--hold-time', 0.5)
    assert result.returncode == 0, result.stdout + result.stderr
    assert 'no effort limit for lift' in result.stdout
    numbers = json.loads((tmp_path / 'out' / 'summary.json').read_text())
    for unit in ('rad', 'm'):
        assert numbers[f'hold_drift_{unit}'] < 2e-4
        best = numbers[f'tracking_rms_computed_torque_{unit}']
        assert numbers[f'tracking_rms_pd_gravity_{unit}'] > 5 * best
        assert numbers[f'tracking_rms_pd_{unit}'] > 50 * best
    assert numbers['commands'] > 500 + 3 * 1000 * numbers['motion_time_s']
    assert (tmp_path / 'out' / 'tracking.png').stat().st_size > 10_000
    assert not demo_processes(urdf)


@pytest.mark.slow
@pytest.mark.ros
def test_demo_whose_motion_is_refused_prints_the_nodes_reason(tmp_path, monkeypatch):
    pytest.importorskip('rclpy', reason='needs ROS 2')
    pytest.importorskip('mujoco')
    from robodyn_ros.ros.demo import runner, tracking

    domain = domains.claim()
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    motion = suitable_motion(RobotModel.from_urdf(lift()))
    beyond = replace(motion, goal=np.array([0.9, 0.0]))  # where 0.3 m are the limit
    monkeypatch.setattr(tracking, 'suitable_motion', lambda model: beyond)
    urdf = tmp_path / 'lift.urdf'
    urdf.write_text(lift())
    try:
        with pytest.raises(runner.DemoFailed, match='node refused the motion: .*lift'):
            tracking.run_demo(runner.Arm(urdf), tmp_path / 'out', hold_time=0.1)
    finally:
        domains.release(domain)


@pytest.mark.slow
@pytest.mark.ros
def test_demo_that_cannot_go_on_says_why_and_leaves_nothing_behind(tmp_path):
    urdf = tmp_path / 'unphysical.urdf'
    urdf.write_text(lift().replace('ixx="0.1"', 'ixx="-0.1"'))
    result = robodyn_demo('--urdf', urdf, '--output', tmp_path / 'out')
    assert result.returncode != 0
    assert 'a mass and an inertia that a body can have' in result.stderr
    assert 'Traceback' not in result.stderr
    assert not demo_processes(urdf)


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize('robot', [(), TWO_ARMS], ids=['panda', 'two_arms_on_a_torso'])
def test_demo_meets_its_targets(robot, tmp_path):
    result = robodyn_demo(*robot, '--output', tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    numbers = json.loads((tmp_path / 'summary.json').read_text())
    best = numbers['tracking_rms_computed_torque_rad']
    assert numbers['hold_time_s'] == pytest.approx(10, abs=2e-3)
    assert numbers['hold_drift_rad'] < 1e-3
    assert best < 2e-4
    assert numbers['tracking_rms_pd_gravity_rad'] > 5 * best
    assert numbers['tracking_rms_pd_rad'] > 50 * best
