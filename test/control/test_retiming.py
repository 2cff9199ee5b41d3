# SPDX-License-Identifier: Apache-2.0
"""A path is timed as fast as limits allow, and never beyond them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from oracles import PinocchioArm
from robots import public_urdf, two_link_urdf

import robodyn_ros as rd
from robodyn_ros import retime
from robodyn_ros.control import retiming
from robodyn_ros.control.joint_path import MOST_WAYPOINTS, JointPath
from robodyn_ros.control.law import Terms
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.retiming import retimed_path
from robodyn_ros.control.timed_motion import Course, TimingLimits
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.errors import InvalidArgument, NonFiniteValue, NoSolution, Overload, WrongType

TIPS = {'panda.urdf': 'panda_hand_tcp', 'ur5_robot.urdf': 'tool0', 'xarm7.urdf': 'link7'}
FRICTION_VELOCITY = 0.01  # the nodes' width of the smooth sign [rad/s]
MASS, FORCE, WAY = 2.0, 30.0, 1.5  # of the slider [kg], [N], [m]


def slider(axis='1 0 0', viscous=0.0, coulomb=0.0, load=0.0):
    """Return a mass that slides."""
    text = f"""<robot name="slider"><link name="base"/><link name="mass"><inertial>
    <mass value="{MASS}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    </link><joint name="slide" type="prismatic"><parent link="base"/><child link="mass"/>
    <axis xyz="{axis}"/><limit lower="-5" upper="5" effort="{FORCE}" velocity="0"/>
    <dynamics damping="{viscous}" friction="{coulomb}"/></joint></robot>"""
    return replace(rd.RobotModel.from_urdf(text), load_friction=np.array([load]))


def arm(name, friction=0.0):
    """Return a public arm, with friction in parts of its effort limits."""
    model = rd.RobotModel.from_urdf(public_urdf(name), tip_link=TIPS[name])
    size = friction * model.effort_limits
    return replace(
        model,
        viscous_friction=0.5 * size,
        coulomb_friction=size,
        load_friction=np.full(model.n, friction),
    )


def waypoints(model, seed, count=5):
    """Return a walk of about a radian a step, well inside the position limits."""
    generator = np.random.default_rng(seed)
    low, high = np.clip(model.position_limits.T, -3.0, 3.0)
    middle, half = 0.5 * (low + high), 0.35 * (high - low)
    points = [generator.uniform(middle - half, middle + half)]
    for _ in range(count - 1):
        step = generator.uniform(-1.0, 1.0, model.n)
        points.append(np.clip(points[-1] + step, middle - half, middle + half))
    return np.array(points)


def torques_of(model, motion, rate=1000.0):
    """Return the torque at 1 kHz, the rigid body's by Pinocchio, with the model's friction."""
    time = np.append(np.arange(0.0, motion.duration, 1.0 / rate), motion.duration)
    q, qd, qdd = motion.at(time)
    name = next(name for name, tip in TIPS.items() if tip == model.tip_link)
    oracle = PinocchioArm.of(public_urdf(name), model)
    rigid = np.array([oracle.torque(*state) for state in zip(q, qd, qdd, strict=True)])
    return rigid + smooth_friction_torque(model, FRICTION_VELOCITY, qd, rigid), qd


# --- closed forms --------------------------------------------------------------------------------


def test_one_joint_is_timed_bang_bang():
    motion = retime(slider(), [[0.0], [WAY]])
    assert motion.duration == pytest.approx(2.0 * math.sqrt(WAY * MASS / FORCE), rel=1e-3)
    assert np.abs(motion.effort).max() == pytest.approx(FORCE, rel=1e-3)
    assert np.abs(motion.effort).max() <= FORCE


def test_speed_limit_makes_a_trapezoid():
    speed = 2.0
    motion = retime(slider(), [[0.0], [WAY]], velocity_limits=speed)
    assert motion.duration == pytest.approx(WAY / speed + speed * MASS / FORCE, rel=2e-3)
    assert np.abs(motion.velocity).max() <= speed


def test_acceleration_limit_is_one_of_torque_where_there_is_nothing_else():
    motion = retime(slider(), [[0.0], [WAY]], acceleration_limits=4.0)
    assert motion.duration == pytest.approx(2.0 * math.sqrt(WAY / 4.0), rel=1e-3)
    assert {each.limit for each in motion.active_limits} == {'acceleration'} and not motion.slowed


def switched(rise, fall):
    """Return the time over WAY that accelerates at ``rise`` and brakes at ``fall``."""
    speed = math.sqrt(2.0 * WAY / (1.0 / rise + 1.0 / fall))
    return speed / rise + speed / fall


DRY, LOAD = 6.0, 0.2


@pytest.mark.parametrize(
    ('given', 'rise', 'fall'),
    [
        ({'axis': '0 0 1'}, FORCE / MASS - 9.81, FORCE / MASS + 9.81),
        ({'coulomb': DRY}, (FORCE - DRY) / MASS, (FORCE + DRY) / MASS),
        ({'load': LOAD}, FORCE / MASS / (1.0 + LOAD), FORCE / MASS / (1.0 - LOAD)),
    ],
    ids=['weight', 'Coulomb friction', 'load friction'],
)
def test_what_slows_the_start_helps_to_brake(given, rise, fall):
    found = retime(slider(**given), [[0.0], [WAY]]).duration
    assert found == pytest.approx(switched(rise, fall), rel=3e-3)


@pytest.mark.parametrize('part', [0.7, 0.8, 0.9, 0.95])
def test_friction_that_gravity_leaves_little_torque_for_is_timed_as_any_other(part):
    weight = 9.81 * MASS
    dry = part * FORCE - weight
    for points, rise, fall in (
        ([[0.0], [WAY]], FORCE - weight - dry, FORCE + weight + dry),
        ([[WAY], [0.0]], FORCE + weight - dry, FORCE - weight + dry),
    ):
        motion = retime(slider('0 0 1', coulomb=dry), points)
        expected = switched(rise / MASS, fall / MASS)
        # The smooth sign of friction helps less to brake, at the end.
        assert 0.999 * expected <= motion.duration <= 1.01 * expected
        assert not motion.slowed


def test_friction_that_gravity_leaves_no_torque_for_is_refused_with_joint_torque_and_limit():
    weight, dry = 9.81 * MASS, 10.5
    up = slider('0 0 1', coulomb=dry)
    with pytest.raises(Overload, match=r"'slide' torque to begin to move at 0.000 .*") as caught:
        retime(up, [[0.0], [WAY]])
    assert caught.value.value == pytest.approx(weight + dry)
    assert str(FORCE)[:2] in caught.value.allowed
    assert retime(up, [[WAY], [0.0]]).duration > 0.0  # downwards its weight helps


def spline_by_toppra(points):
    """Return toppra's spline whose parameter is the distance between points, and its length."""
    toppra = pytest.importorskip('toppra')
    ways = np.linalg.norm(np.diff(points, axis=0), axis=1)
    return toppra.SplineInterpolator(np.append(0.0, np.cumsum(ways)), points), ways.sum()


def time_by_toppra(model, path, places, dry):
    """Return toppra's duration with dry friction of its own (n,), by torque and velocity."""
    from toppra.algorithm import TOPPRA
    from toppra.constraint import (
        DiscretizationType,
        JointTorqueConstraint,
        JointVelocityConstraint,
    )

    torque = JointTorqueConstraint(
        lambda q, qd, qdd: rd.inverse_dynamics(model, q, qd, qdd),
        np.outer(model.effort_limits, [-1.0, 1.0]),
        dry,
        discretization_scheme=DiscretizationType.Interpolation,
    )
    speed = JointVelocityConstraint(np.outer(model.velocity_limits, [-1.0, 1.0]))
    instance = TOPPRA([speed, torque], path, gridpoints=places, solver_wrapper='seidel')
    return along(places, instance.compute_parameterization(0.0, 0.0)[1])


def along(places, rates):
    """Return the time over places whose parameter passes at rates."""
    return (2.0 * np.diff(places) / (rates[1:] + rates[:-1])).sum()


@pytest.mark.repeats(check=1, test=2)
@pytest.mark.parametrize('name', ['panda.urdf', 'ur5_robot.urdf'])
@pytest.mark.parametrize('part', [0.75, 0.9])
def test_dry_friction_is_timed_as_by_toppra_with_its_own(name, part):
    """The largest share of a limit that gravity and friction take is given; joints reverse."""
    model, points = arm(name), waypoints(arm(name), 3)
    path, length = spline_by_toppra(points)
    places = np.linspace(0.0, length, 401)
    gravity = np.abs(rd.gravity_torque(model, path(places))) / model.effort_limits
    size = (part - gravity.max()) * model.effort_limits
    assert (size > 0.0).all()
    dry = replace(model, coulomb_friction=size)
    expected = time_by_toppra(model, path, places, size)
    motion = retime(dry, points)
    assert 0.99 * expected <= motion.duration <= 1.05 * expected
    assert not motion.slowed
    share = np.abs(torques_of(dry, motion)[0]) / model.effort_limits
    assert share.max() <= 1.0 + 1e-9


def test_places_far_apart_are_passed_slower_where_the_path_bends_not_everywhere():
    generator = np.random.default_rng(3)
    points = 1.2 * np.sin(np.cumsum(generator.uniform(-0.15, 0.15, (300, 6)), axis=0))
    assert not retime(arm('ur5_robot.urdf'), points).slowed


@pytest.mark.parametrize('viscous', [1.0, 10.0, 60.0])
def test_viscous_friction_is_timed_exactly(viscous):
    """The switch is where the speed fits both ends; acceleration and braking are exponentials."""
    lag, final = MASS / viscous, FORCE / viscous
    low, high = 0.0, 100.0
    for _ in range(200):
        rise = 0.5 * (low + high)
        fall = lag * math.log1p(-math.expm1(-rise / lag))
        low, high = (rise, high) if final * (rise - fall) < WAY else (low, rise)
    found = retime(slider(viscous=viscous), [[0.0], [WAY]])
    # In each interval the friction is that of its faster end: of the order of a grid step.
    assert rise + fall <= found.duration <= 1.008 * (rise + fall)
    assert np.abs(found.effort).max() <= FORCE


def test_start_and_end_have_the_velocities_that_are_asked_for():
    begin, end, rise = 2.0, 1.0, FORCE / MASS
    speed = math.sqrt((2.0 * rise * WAY + begin**2 + end**2) / 2.0)
    motion = retime(slider(), [[0.0], [WAY]], start_velocity=[begin], end_velocity=[end])
    assert motion.velocity[0] == pytest.approx(begin) and motion.velocity[-1] == pytest.approx(end)
    assert motion.duration == pytest.approx((2.0 * speed - begin - end) / rise, rel=1e-3)


def test_margin_is_a_part_of_the_limits():
    left = retime(slider(), [[0.0], [WAY]], effort_margin=0.2)
    assert left.duration == pytest.approx(2.0 * math.sqrt(WAY * MASS / (0.8 * FORCE)), rel=1e-3)


def test_rms_limit_slows_the_whole_motion():
    """Bang-bang torque has the mean square of its size, which falls with the square of time."""
    motion = retime(slider(), [[0.0], [WAY]], rms_effort_limits=0.25 * FORCE)
    assert motion.duration == pytest.approx(4.0 * math.sqrt(WAY * MASS / FORCE), rel=2e-3)
    assert motion.rms_effort[0] == pytest.approx(0.25 * FORCE, rel=1e-3)
    assert motion.slowed.startswith('2 times the time: rms effort of joint')


# --- within limits, and fast ---------------------------------------------------------------------


@pytest.mark.repeats(check=1, test=4)
@pytest.mark.parametrize('name', TIPS)
@pytest.mark.parametrize('friction', [0.0, 0.08])
def test_torque_by_pinocchio_never_exceeds_the_limits(name, friction):
    model = arm(name, friction)
    for seed in range(3):
        motion = retime(model, waypoints(model, seed))
        torques, speeds = torques_of(model, motion)
        share = np.abs(torques) / model.effort_limits
        assert share.max() <= 1.0 + 1e-9
        assert (np.abs(speeds) / model.velocity_limits).max() <= 1.0 + 1e-9
        assert max(share.max(), (np.abs(speeds) / model.velocity_limits).max()) >= 0.99


def grid_of(model, points, count=100):
    torque = ReferenceTorque.of(model)
    limits = TimingLimits.of(model)
    path = JointPath.through(points)
    return retiming._Grid.of(path, replace(torque, terms=Terms(friction=False)), limits, count)


@pytest.mark.repeats(check=1, test=4)
@pytest.mark.parametrize('name', ['panda.urdf', 'ur5_robot.urdf'])
@pytest.mark.parametrize('seed', range(4))
def test_grid_is_timed_as_by_toppra(name, seed, monkeypatch):
    """The same path, grid, scheme and limits: durations agree to a millionth."""
    path, _ = spline_by_toppra(waypoints(arm(name), seed))
    monkeypatch.setattr(retiming, '_HEADROOM', 0.0)
    model = arm(name)
    grid = grid_of(model, waypoints(model, seed))
    rows = grid._rows(None)
    x = grid._solution(rows, np.zeros((4, *grid.q[:, 0].shape)), grid.highest, 0.0, 0.0)
    places = grid.parameters()
    expected = time_by_toppra(model, path, places, np.zeros(model.n))
    assert along(places, np.sqrt(x)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.longer
@pytest.mark.parametrize('friction', [0.0, 0.15])
def test_no_search_of_the_phase_plane_is_faster(friction):
    """All sequences of 250 speeds at 40 places, by dynamic programming with the whole friction."""
    text = two_link_urdf().replace('0 0 1', '0 1 0')
    limit = np.array([60.0, 20.0])
    model = replace(
        rd.RobotModel.from_urdf(text),
        effort_limits=limit,
        velocity_limits=np.array([4.0, 6.0]),
        viscous_friction=friction * limit / 3.0,
        coulomb_friction=friction * limit,
        load_friction=np.full(2, friction),
    )
    points = np.array([[0.3, 0.2], [0.9, -0.6], [1.4, 0.5], [2.0, 0.1]])
    grid = grid_of(model, points, 40)
    fastest = retime(model, points, grid_points=40)
    highest = np.minimum(grid.highest, 1.5 * grid.highest.max())
    levels = np.linspace(0.0, 1.0, 250) ** 2
    step = grid.step

    def torque(k, end, u, x):
        rigid = grid.a[k, end] * u + grid.b[k, end] * x + grid.c[k, end]
        qd = grid.slope[k, end] * np.sqrt(x)
        return rigid + smooth_friction_torque(model, FRICTION_VELOCITY, qd, rigid)

    best = np.where(levels == 0.0, 0.0, np.inf)
    for k in reversed(range(len(step))):
        x = (levels * highest[k])[:, None, None]
        y = (levels * highest[k + 1])[None, :, None]
        u = (y - x) / (2.0 * step[k])
        allowed = (np.abs(torque(k, 0, u, x)) <= limit).all(axis=2)
        allowed &= (np.abs(torque(k, 1, u, y)) <= limit).all(axis=2)
        with np.errstate(divide='ignore'):
            time = 2.0 * step[k] / (np.sqrt(x) + np.sqrt(y))[..., 0]
        best = np.where(allowed, time + best, np.inf).min(axis=1)
    assert np.isfinite(best[0])
    assert fastest.duration <= 1.01 * best[0]
    assert fastest.duration >= 0.8 * best[0]  # the search's own grid of speeds is coarse


def test_time_does_not_depend_on_the_path_parameter():
    """A parabola by t, and by r with t = (r + r²) / 2, is the same path."""
    model = arm('panda.urdf')
    a, b, c = waypoints(model, 3, 3)
    parabola = JointPath.through(np.array([a, b, c]), parameters=np.array([0.0, 0.5, 1.0]))
    first = parabola.coefficients[0]
    whole = np.stack([first[0], 2.0 * first[1], 4.0 * first[2]])  # over 0 to 1
    of_r = np.zeros((1, 6, model.n))
    of_r[0, :5] = whole[0], whole[1] / 2, whole[1] / 2 + whole[2] / 4, whole[2] / 2, whole[2] / 4
    of_t = np.zeros((1, 6, model.n))
    of_t[0, :3] = whole
    torque, limits = ReferenceTorque.of(model), TimingLimits.of(model)
    ends = np.array([0.0, 1.0])
    durations = [
        retimed_path(
            JointPath(ends, each, ends, np.zeros(2, bool)), torque, limits, grid_points=400
        ).duration
        for each in (of_t, of_r)
    ]
    assert durations[0] == pytest.approx(durations[1], rel=2e-3)


def test_compiled_model_gives_the_same_motion():
    model = arm('ur5_robot.urdf', 0.05)
    points = waypoints(model, 1)
    plain, compiled = retime(model, points), retime(rd.compile_model(model), points)
    assert compiled.duration == pytest.approx(plain.duration, rel=1e-9)


# --- corners, jerk, payload ----------------------------------------------------------------------


def test_motion_stops_at_corners():
    model, points = arm('ur5_robot.urdf'), waypoints(arm('ur5_robot.urdf'), 2)
    motion = retime(model, points, corners='stop')
    for point in points:
        k = np.linalg.norm(motion.position - point, axis=1).argmin()
        assert motion.position[k] == pytest.approx(point, abs=1e-9)
        assert motion.velocity[k] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize('tolerance', [0.01, 0.1])
def test_blends_pass_corners_within_their_tolerance(tolerance):
    model, points = arm('ur5_robot.urdf'), waypoints(arm('ur5_robot.urdf'), 2)
    motion = retime(model, points, corners='blend', tolerance=tolerance)
    q = motion.at(np.linspace(0.0, motion.duration, 5000))[0]
    for point in points[1:-1]:
        distance = np.linalg.norm(q - point, axis=1).min()
        assert distance <= 1.005 * tolerance
        assert tolerance > 0.01 or distance >= 0.9 * tolerance  # longer ones meet the next corner
    assert motion.duration < retime(model, points, corners='stop').duration


def test_reversal_is_a_stop_though_corners_are_blended():
    motion = retime(slider(), [[0.0], [1.0], [0.5]], corners='blend', tolerance=0.1)
    assert motion.position.max() == pytest.approx(1.0)


@pytest.mark.repeats(check=1, test=2)
@pytest.mark.parametrize('corners', ['spline', 'stop'])
@pytest.mark.parametrize('limit', [200.0, 2000.0])
def test_jerk_limits_are_kept_without_leaving_path_or_torque(corners, limit):
    model = arm('ur5_robot.urdf', 0.03)
    points = waypoints(model, 4)
    rough = retime(model, points, corners=corners)
    motion = retime(model, points, corners=corners, jerk_limits=limit)
    assert motion.smoothing_cost == pytest.approx(motion.duration - rough.duration)
    assert motion.smoothing_cost > 0.0
    torques, speeds = torques_of(model, motion)
    assert (np.abs(torques) <= model.effort_limits * (1.0 + 1e-9)).all()
    assert (np.abs(speeds) <= model.velocity_limits * (1.0 + 1e-9)).all()
    step = 4e-3
    speeds = motion.at(np.arange(0.0, motion.duration, step))[1]
    assert np.abs(np.diff(speeds, n=2, axis=0)).max() / step**2 <= 1.02 * limit
    dense = rough.at(np.linspace(0.0, rough.duration, 20_000))[0]
    off = [np.linalg.norm(dense - q, axis=1).min() for q in motion.position[::20]]
    assert max(off) < 1e-3


@pytest.mark.parametrize('grid_points', [2, 5, 20, 200])
@pytest.mark.parametrize(
    'corners',
    [{'corners': 'spline'}, {'corners': 'stop'}, {'corners': 'blend', 'tolerance': 1e-3}],
)
def test_jerk_limits_hold_between_any_two_samples_however_few_there_are(corners, grid_points):
    model = arm('ur5_robot.urdf')
    for size, limit in ((1e-3, 20.0), (0.1, 500.0), (1.0, 20.0)):
        points = size * waypoints(model, 3, 4)
        motion = retime(model, points, jerk_limits=limit, grid_points=grid_points, **corners)
        step, velocity = np.diff(motion.time)[:, None], motion.velocity
        way = np.diff(motion.position, axis=0)
        jerk = 6.0 * (velocity[1:] + velocity[:-1]) / step**2 - 12.0 * way / step**3
        assert np.abs(jerk).max() <= limit


def test_jerk_of_one_joint_is_that_of_the_average():
    """Bang-bang, averaged so that twice the acceleration takes one window, lasts that longer."""
    rise = FORCE / MASS
    motion = retime(slider(), [[0.0], [WAY]], jerk_limits=10.0 * rise)
    assert motion.smoothing_cost <= 0.22  # the window in which the acceleration may turn round


def test_payload_is_carried_by_a_slower_motion():
    model, points = arm('ur5_robot.urdf'), waypoints(arm('ur5_robot.urdf'), 6)
    motion = retime(model, points)
    loaded = model.with_payload(rd.Payload(5.0))
    scale = Course(ReferenceTorque.of(loaded), motion.waypoints, TimingLimits.of(model)).scale()

    def share(factor):
        slower = replace(motion, time=motion.time * factor, velocity=motion.velocity / factor)
        q, qd, qdd = slower.at(np.arange(0.0, slower.duration, 1e-3))
        return (np.abs(rd.inverse_dynamics(loaded, q, qd, qdd)) / model.effort_limits).max()

    assert share(1.0) > 1.01 and share(scale) <= 1.0 + 1e-6
    assert share(0.99 * scale) > 1.0


# --- refusals ------------------------------------------------------------------------------------


def test_gravity_beyond_a_limit_is_refused_with_joint_place_and_torque():
    weight = MASS * 9.81
    with pytest.raises(Overload, match=r"'slide' torque at rest at 0.000 .* waypoint 0") as caught:
        retime(slider('0 0 1'), [[0.0], [1.0]], effort_limits=10.0)
    assert caught.value.value == pytest.approx(weight)
    assert '10' in caught.value.allowed


def test_start_that_cannot_be_braked_is_refused_with_joint_and_torque():
    fastest = math.sqrt(2.0 * WAY * FORCE / MASS)
    retime(slider(), [[0.0], [WAY]], start_velocity=[0.99 * fastest])
    with pytest.raises(NoSolution, match=r"start_velocity: joint 'slide' needs -\d") as caught:
        retime(slider(), [[0.0], [WAY]], start_velocity=[1.1 * fastest])
    allowed = float(caught.value.allowed.split()[2])
    assert allowed == pytest.approx(fastest, rel=2e-3)


@pytest.mark.parametrize('velocity', [[0.0, 1.0], [-1.0, 0.0]])
def test_velocity_across_or_against_the_path_is_refused(velocity):
    model = rd.RobotModel.from_urdf(two_link_urdf())
    with pytest.raises(InvalidArgument, match='along the path'):
        retime(model, [[0, 0], [1, 0]], effort_limits=50.0, start_velocity=velocity)


def test_path_without_any_limit_is_refused():
    with pytest.raises(InvalidArgument, match='nothing bounds the acceleration'):
        retime(rd.RobotModel.from_urdf(two_link_urdf()), [[0, 0], [1, 1]])


def massless(model):
    """Return an arm as most industrial URDFs have it: no masses, no rotors."""
    parameters = np.zeros_like(model.inertial_parameters)
    return replace(model, inertial_parameters=parameters, rotor_inertia=np.zeros(model.n))


def test_arm_without_masses_is_refused_unless_accelerations_are_limited():
    """8e6 rad/s² were within its effort limits."""
    model, points = massless(arm('ur5_robot.urdf')), waypoints(arm('ur5_robot.urdf'), 1)
    with pytest.raises(InvalidArgument, match=r"'elbow_joint'.* have no mass.*acceleration_limit"):
        retime(model, points)
    motion = retime(model, points, acceleration_limits=4.0)
    assert np.abs(motion.acceleration).max() <= 4.0


def test_joint_that_nothing_limits_is_refused_where_it_moves_and_only_there():
    limits = np.array([150.0, 150.0, 150.0, 28.0, 0.0, 28.0])
    model = replace(arm('ur5_robot.urdf'), effort_limits=limits)
    points = waypoints(model, 1)
    with pytest.raises(InvalidArgument, match=r"acceleration of 'wrist_2_joint'; allowed"):
        retime(model, points)
    points[:, 4] = 0.3
    assert retime(model, points).duration > 0.0


def test_path_beyond_the_position_limits_is_refused_between_waypoints_too():
    with pytest.raises(InvalidArgument, match=r"'slide' position at 0\.\d+ of the path"):
        retime(slider(), [[0.0], [4.9], [4.9 - 1e-3]])


class Endless:
    """Says that it is long, and has nothing."""

    def __len__(self):
        return 10**9

    def __array__(self, *_, **__):
        raise AssertionError('copied before its size was looked at')


@pytest.mark.parametrize(
    ('points', 'kind', 'match'),
    [
        ([[0.0]], InvalidArgument, '1 waypoints'),
        (Endless(), InvalidArgument, '1000000000 waypoints'),
        (np.zeros((MOST_WAYPOINTS + 1, 1)), InvalidArgument, f'2 to {MOST_WAYPOINTS}'),
        (np.zeros((2, 10**6)), InvalidArgument, 'shape'),
        ([[0.0], [math.nan]], NonFiniteValue, r'waypoints\[1\]\[0\]'),
        ([[0.0], [math.inf]], NonFiniteValue, r'waypoints\[1\]\[0\]'),
        ([[0.0], [1e300]], InvalidArgument, r'waypoints\[1\]\[0\]'),
        ([[0.0], [1.0], [1.0]], InvalidArgument, r'waypoints\[2\].*equal'),
        (3.0, WrongType, 'waypoints'),
    ],
)
def test_waypoints_are_refused_by_name(points, kind, match):
    with pytest.raises(kind, match=match):
        retime(slider(), points)


@pytest.mark.parametrize(
    ('arguments', 'match'),
    [
        ({'effort_margin': 1.0}, 'effort_margin'),
        ({'effort_margin': math.nan}, 'effort_margin'),
        ({'jerk_limits': 0.0}, 'jerk_limits'),
        ({'acceleration_limits': [1.0, 2.0]}, 'acceleration_limits'),
        ({'velocity_limits': -1.0}, 'velocity_limits'),
        ({'rms_effort_limits': math.nan}, 'rms_effort_limits'),
        ({'corners': 'round'}, 'corners'),
        ({'corners': 'blend'}, 'tolerance'),
        ({'tolerance': math.inf}, 'tolerance'),
        ({'parameters': [1.0, 1.0]}, 'parameters'),
        ({'grid_points': 10**9}, 'grid_points'),
        ({'start_velocity': [math.inf]}, 'start_velocity'),
        ({'jerk_limits': 1.0, 'start_velocity': [1.0]}, 'jerk_limits'),
    ],
)
def test_arguments_are_refused_by_name(arguments, match):
    with pytest.raises(InvalidArgument, match=match):
        retime(slider(), [[0.0], [1.0]], **arguments)
