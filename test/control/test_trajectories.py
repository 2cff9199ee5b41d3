# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories become references that do not jump, or are refused with a reason."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import NAMES, POSITION_LIMITS, TWO_JOINTS, Q, enabled, to
from hypothesis import given
from hypothesis import strategies as st

from robodyn_ros.control.planning import planned_reference
from robodyn_ros.control.polynomials import Polynomials
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.errors import RejectedTrajectory

REST = ReferenceState.at_rest(np.array([0.1, 0.2]))


def trajectory(
    times, positions, velocities=None, accelerations=None, efforts=None, names=NAMES, start=None
):
    none = [()] * len(times)
    return Trajectory.from_points(
        names,
        times,
        positions,
        velocities or none,
        accelerations or none,
        efforts or none,
        start=start,
    )


def planned(request, now=10.0, measured=REST, current=None, continuous=(False, False), **settings):
    limits = replace(TWO_JOINTS.reference_limits, continuous=np.array(continuous))
    given = TWO_JOINTS.settings(**{'ramp_time': 0.2, **settings})
    return planned_reference(request, now, measured, current, limits, given)


def largest_jump(reference, begin, end, order, samples=4000):
    """Return the largest change between neighbouring samples of a derivative."""
    fields = ('position', 'velocity', 'acceleration')
    times = np.linspace(begin, end, samples)
    values = np.array([getattr(reference.sample(t), fields[order]) for t in times])
    return np.abs(np.diff(values, axis=0)).max()


@pytest.mark.parametrize('has_accelerations', [False, True])
def test_velocities_given_make_a_cubic_and_accelerations_too_a_quintic_that_ends_at_rest(
    has_accelerations,
):
    rest, efforts = [[0.0, 0.0]], [[2.0, 0.0]]
    accelerations = rest if has_accelerations else None
    reference = planned(trajectory([1.0], [[1.1, 0.2]], rest, accelerations, efforts))
    for s in np.linspace(0.0, 1.0, 6):
        quintic, cubic = 10 * s**3 - 15 * s**4 + 6 * s**5, 3 * s**2 - 2 * s**3
        state = reference.sample(10.0 + s)
        way = quintic if has_accelerations else cubic
        assert state.position == pytest.approx([0.1 + way, 0.2], abs=1e-12)
        assert state.effort == pytest.approx([2.0 * s, 0.0])
    end = reference.sample(1e6)
    assert end.position == pytest.approx([1.1, 0.2]) and end.effort == pytest.approx([2.0, 0.0])
    assert reference.is_finished(11.0) and not reference.is_finished(10.99)


def test_positions_alone_give_continuous_accelerations():
    reference = planned(
        trajectory([0.5, 1.0, 1.5, 2.0], [[0.4, 0.2], [0.9, 0.0], [0.8, 0.3], [0.8, 0.9]])
    )
    assert largest_jump(reference, 9.9, 12.1, 2) < 0.2
    for time, wanted in ((10.5, 0.4), (11.0, 0.9), (12.0, 0.8)):
        assert reference.sample(time).position[0] == pytest.approx(wanted)


def test_positions_on_a_line_are_passed_at_constant_velocity():
    reference = planned(
        trajectory([1.0, 2.0, 3.0, 4.0], [[0.2, 0.2], [0.3, 0.2], [0.4, 0.2], [0.5, 0.2]])
    )
    assert reference.sample(11.5).velocity[0] == pytest.approx(0.1)
    assert reference.sample(11.5).acceleration[0] == pytest.approx(0.0, abs=1e-12)


def test_joints_are_known_by_name_and_those_that_are_not_named_hold():
    reference = planned(trajectory([1.0], [[0.9, 0.5]], names=('elbow', 'shoulder')))
    assert reference.sample(11.0).position == pytest.approx([0.5, 0.9])
    reference = planned(trajectory([1.0], [[0.9]], names=('elbow',)))
    assert reference.sample(10.7).position[0] == 0.1
    assert reference.sample(11.0).position == pytest.approx([0.1, 0.9])


def test_joints_not_named_that_move_come_to_rest_smoothly():
    first = planned(trajectory([1.0], [[0.9, 0.9]]))
    second = planned(trajectory([1.0], [[0.5]], names=('elbow',)), now=10.5, current=first)
    for order in range(3):
        assert largest_jump(second, 10.49, 12.0, order) < 0.2
    assert second.sample(10.5).velocity == pytest.approx(first.sample(10.5).velocity)
    assert second.sample(11.5).velocity == pytest.approx([0.0, 0.0], abs=1e-9)


def test_start_in_the_future_waits_at_the_measured_position():
    reference = planned(trajectory([1.0], [[0.5, 0.2]], start=12.0))
    assert reference.sample(11.9).position == pytest.approx(REST.position)
    assert reference.sample(13.0).position == pytest.approx([0.5, 0.2])


def test_start_in_the_future_goes_on_with_what_is_followed_until_then():
    first = planned(trajectory([1.0], [[0.9, 0.2]]))
    second = planned(trajectory([1.0], [[0.3, 0.2]], start=10.5), now=10.2, current=first)
    assert second.sample(10.4).position == pytest.approx(first.sample(10.4).position)
    for order in range(3):
        assert largest_jump(second, 10.2, 12.0, order) < 0.2


@pytest.mark.parametrize('begin, period', [(1.0, 1.01), (0.005, 0.01)])
def test_references_that_wait_or_are_over_do_not_pile_up(begin, period):
    current = None
    for k in range(50):
        now = 10.0 + 0.01 * k
        request = trajectory([0.1], [[0.1, 0.2]], start=10.0 + begin + period * k)
        current = planned(request, now=now, current=current)
    depth, before = 0, current.motion
    while before is not None:
        depth, before = depth + 1, before.before
    assert depth <= (2 if begin > 0.5 else 3)


def test_points_in_the_past_are_left_out():
    reference = planned(
        trajectory([0.2, 0.5, 2.0], [[0.1, 0.2], [0.12, 0.2], [0.9, 0.2]], start=9.0)
    )
    assert reference.sample(10.0).position == pytest.approx(REST.position)
    assert reference.sample(11.0).position == pytest.approx([0.9, 0.2])
    with pytest.raises(
        RejectedTrajectory, match='end in the future: a later header stamp or time_from_start'
    ):
        planned(trajectory([0.2], [[0.1, 0.2]], start=9.0))


def test_single_point_at_once_is_a_set_point():
    reference = planned(trajectory([0.0], [[0.15, 0.2]], [[0.5, 0.0]], [[1.0, 0.0]]))
    state = reference.sample(10.0)
    assert state.position == pytest.approx([0.15, 0.2])
    assert state.velocity == pytest.approx([0.5, 0.0])
    assert state.acceleration == pytest.approx([1.0, 0.0])


def test_stream_that_stops_settles_at_its_last_point():
    reference = planned(trajectory([0.0], [[0.15, 0.2]], [[0.5, 0.0]]))
    assert reference.sample(10.001).velocity[0] == pytest.approx(0.5, rel=1e-3)
    assert reference.sample(10.2).position == pytest.approx([0.15, 0.2])
    for order in range(2):
        assert largest_jump(reference, 10.0, 10.3, order) < 0.05


def test_planner_trajectory_that_ends_with_deceleration_does_not_overshoot():
    reference = planned(
        trajectory(
            [0.0, 1.0], [[0.1, 0.2], [0.9, 0.2]], [[0.0, 0.0]] * 2, [[4.0, 0.0], [-5.0, 0.0]]
        )
    )
    assert max(reference.sample(t).position[0] for t in np.linspace(11, 12, 200)) <= 0.9


@pytest.mark.parametrize(
    'changes, reason',
    [
        ({'names': ('shoulder', 'wrist')}, 'wrist'),
        ({'names': ('elbow', 'elbow')}, 'each joint once'),
        ({'names': ()}, 'at least one joint'),
        ({'times': [], 'positions': []}, 'at least one point'),
        ({'positions': [[0.1]]}, '1 values'),
        ({'positions': [[]]}, '0 values'),
        ({'positions': [[np.nan, 0.0]]}, 'finite'),
        ({'positions': [[np.inf, 0.0]]}, 'finite'),
        ({'velocities': [[0.0]]}, 'velocities'),
        ({'velocities': [[0.0, np.nan]]}, 'finite'),
        ({'accelerations': [[0.0, 0.0]]}, 'without velocities'),
        ({'efforts': [[1.0, 2.0, 3.0]]}, 'effort'),
        ({'times': [-1.0]}, 'negative'),
        ({'times': [np.nan]}, 'finite'),
        ({'times': [1.0, 1.0], 'positions': [[0.1, 0.2]] * 2}, 'later'),
        ({'times': [2.0, 1.0], 'positions': [[0.1, 0.2]] * 2}, 'later'),
        ({'positions': [[2.5, 0.2]]}, 'position limits'),
        ({'velocities': [[9.0, 0.0]], 'positions': [[1.9, 0.2]]}, 'position limits'),
        ({'times': [0.0], 'positions': [[0.5, 0.2]]}, 'max_reference_step'),
        ({'times': [0.001], 'positions': [[0.5, 0.2]]}, 'max_reference_step'),
        ({'times': [0.012], 'positions': [[0.5, 0.2]]}, 'max_reference_step'),
        (
            {'times': np.arange(MOST_POINTS + 1.0), 'positions': [[0.1, 0.2]] * (MOST_POINTS + 1)},
            f'{MOST_POINTS + 1}.*at most {MOST_POINTS}',
        ),
        ({'positions': [[0.1, 1e308]], 'velocities': [[0.0, 1e308]]}, 'too large'),
    ],
)
def test_malformed_trajectory_is_refused_with_its_reason(changes, reason):
    request = {'times': [1.0], 'positions': [[0.5, 0.2]], **changes}
    with pytest.raises(RejectedTrajectory, match=reason):
        planned(trajectory(**request))


def test_a_first_step_may_be_as_large_as_the_parameter_allows():
    request = trajectory([0.0], [[0.5, 0.2]])
    assert planned(request, max_reference_step=0.41).sample(10.0).position[0] == 0.5
    with pytest.raises(RejectedTrajectory, match='0.4 rad.*at most max_reference_step = 0.39'):
        planned(request, max_reference_step=0.39)


def test_continuous_joint_goes_the_shorter_way_whatever_turn_it_is_in():
    measured = ReferenceState.at_rest(np.array([0.1, 4.0 - 2.0 * np.pi]))
    current = Reference.hold(np.array([0.1, 4.0]), 9.0)
    goal = 4.0 - 2.0 * np.pi + 0.28
    for request in (
        trajectory([3.0], [[0.1, goal]]),
        trajectory([0.0, 3.0], [measured.position, [0.1, goal]]),
    ):
        reference = planned(request, 10.0, measured, current, (False, True))
        path = np.array([reference.sample(t).position[1] for t in np.linspace(10.0, 13.0, 50)])
        assert path.min() >= 4.0 - 1e-9 and path[-1] == pytest.approx(4.28)
    with pytest.raises(RejectedTrajectory, match='whole turn'):
        planned(request, 10.0, measured, current)


@pytest.mark.parametrize('order', range(4))
@pytest.mark.parametrize('is_quintic', [False, True])
def test_extremes_between_knots_are_those_of_dense_samples(order, is_quintic):
    """By NumPy's own polynomials; of short and long segments, and of joints that stand."""
    generator = np.random.default_rng(order)
    time = np.cumsum(10.0 ** generator.uniform(-3.0, 1.0, 40))
    states = generator.normal(size=(3, 40, 3))
    states[:, :, 2] = np.array([[0.5], [0.0], [0.0]])
    motion = Polynomials.interpolating(time, *(states if is_quintic else states[:2]))
    lowest, highest = motion.extremes(order)
    s = np.linspace(0.0, 1.0, 2001)
    for k, step in enumerate(np.diff(time)):
        for j in range(3):
            curve = np.polynomial.Polynomial(motion.coefficients[k, :, j]).deriv(order)
            values = curve(s) / step**order
            size = 1e-5 * np.abs(values).max() + 1e-12
            assert values.min() - size <= lowest[k, j] <= values.min() + 1e-3 * size
            assert values.max() - 1e-3 * size <= highest[k, j] <= values.max() + size


def test_path_is_outside_where_its_samples_are_and_nowhere_else():
    for seed in range(30):
        generator = np.random.default_rng(seed)
        points = ReferenceState(*generator.uniform(-1.0, 1.0, (4, 5, 2)))
        knots = [0.0, *np.cumsum(generator.uniform(0.5, 4.0, 4))]
        reference = Reference.through(knots, points, 1.0)
        times = np.linspace(reference.knots[0], reference.knots[-1], 5_000)
        path = np.array([reference.sample(time).position for time in times])
        for fraction in (0.5, 0.9, 0.999):
            limit = fraction * np.abs(path).max(axis=0)
            lowest, highest = reference.polynomials.extremes(0, (-limit, limit))
            found = ((lowest < -limit) | (highest > limit)).any(axis=0)
            assert (found == (np.abs(path).max(axis=0) > limit)).all(), (seed, fraction)
        wide = np.abs(path).max(axis=0) + 1e-5
        lowest, highest = reference.polynomials.extremes(0, (-wide, wide))
        assert (lowest >= -wide).all() and (highest <= wide).all(), seed


@pytest.mark.parametrize('begin, end', [(0.1, 2.0), (2.05, 1.0)])
def test_point_on_the_limit_is_accepted_and_an_arm_outside_may_come_back(begin, end):
    measured = ReferenceState.at_rest(np.array([begin, 0.2]))
    reference = planned(trajectory([1.0], [[end, 0.2]]), measured=measured)
    assert reference.sample(11.0).position[0] == pytest.approx(end)


points = st.lists(
    st.tuples(st.floats(0.05, 2.0), st.floats(-1.9, 1.9), st.floats(-3.0, 3.0)),
    min_size=1,
    max_size=5,
)


@given(points=points, kind=st.sampled_from(['positions', 'velocities', 'accelerations']))
def test_accepted_reference_stays_inside_the_limits_and_passes_its_points(points, kind):
    times = np.cumsum([p[0] for p in points])
    positions = [[p[1], p[1]] for p in points]
    velocities = [[p[2], 0.0] for p in points[:-1]] + [[0.0, 0.0]]
    given_velocities = velocities if kind != 'positions' else None
    given_accelerations = [[0.5, 0.0]] * len(points) if kind == 'accelerations' else None
    try:
        reference = planned(
            trajectory(times, positions, given_velocities, given_accelerations),
            max_reference_step=1.0,
        )
    except RejectedTrajectory:
        return
    for time, position in zip(times, positions):
        assert reference.sample(10.0 + time).position == pytest.approx(position, abs=1e-9)
    lowest, highest = POSITION_LIMITS[0] + [-1e-8, 1e-8]
    for t in np.linspace(10.0, 10.0 + times[-1] + 1.0, 300):
        assert lowest <= reference.sample(t).position[0] <= highest
    assert largest_jump(reference, 10.0, 10.0 + times[-1] + 0.5, 0) < 0.2


# --- speed -------------------------------------------------------------------------------------


@pytest.mark.parametrize('duration, is_refused', [(0.05, False), (0.008, False), (0.006, True)])
def test_trajectory_faster_than_a_velocity_limit_is_refused_with_its_speed(duration, is_refused):
    arm = enabled()
    arm.run(0.01)
    trajectory = to([0.19, 0.2], duration)
    # A quintic from rest to rest is 15/8 as fast at its middle as on average: limit 20 rad/s.
    speed = 15 / 8 * 0.09 / duration
    assert (speed > 1.1 * 20.0) == is_refused
    if is_refused:
        with pytest.raises(RejectedTrajectory, match=f"'shoulder' .*: {speed:.4g}"):
            arm.pipeline.follow(trajectory)
    else:
        arm.pipeline.follow(trajectory)


def test_setpoints_that_run_away_faster_than_the_joint_are_refused():
    arm = enabled(kind=replace(TWO_JOINTS, velocity_limits=np.array([2.0, 2.0])))
    arm.run(0.01)
    for position in (0.15, 0.17):
        arm.pipeline.follow(to([position, 0.2], 0.0))
        arm.run(0.01)
    with pytest.raises(RejectedTrajectory, match='speed'):
        arm.pipeline.follow(to([0.25, 0.2], 0.0))


FAR = np.array([[-90.0, 90.0], [-90.0, 90.0]])  # position limits that allow for turns
TURN = np.array([2.0 * np.pi, 0.0])


def refusal_of(times, points, velocities=None, limits=FAR, prismatic=(False, False)):
    """Return why an arm at rest at Q refuses a trajectory; empty: it is followed."""
    kind = replace(TWO_JOINTS, position_limits=limits, prismatic=np.array(prismatic))
    arm = enabled('computed_torque', kind=kind)
    arm.run(0.1, Q)
    none = len(points) * [()]
    given = Trajectory.from_points(NAMES, times, points, velocities or none, none, none)
    try:
        arm.pipeline.follow(given)
    except RejectedTrajectory as error:
        return str(error)
    return ''


@pytest.mark.parametrize(
    ('times', 'points', 'velocities', 'where'),
    [
        ([0.1, 0.2, 0.3], [Q, Q + 0.05, Q + 0.1 + TURN], None, 'points 1 and 2'),
        ([0.1], [Q + TURN], None, 'from where it is to point 0'),
        ([0.0], [Q - TURN], None, 'from where it is to point 0'),
        ([0.1, 0.2], [Q + TURN, Q + TURN], None, 'from where it is to point 0'),
        ([0.1, 0.2], [Q + TURN, Q + TURN], [(0, 0), (0, 0)], 'from where it is to point 0'),
    ],
)
def test_a_whole_turn_from_one_point_to_the_next_is_named_as_such(
    times, points, velocities, where
):
    for limits in (FAR, FAR / 30.0):  # beyond the second ones it ends, too
        words = refusal_of(times, points, velocities, limits)
        assert words.startswith(f"trajectory joint 'shoulder' {where}: ")
        assert 'whole turn' in words


def test_a_splice_of_a_whole_turn_into_a_stream_is_named_as_such():
    arm = enabled('computed_torque')
    arm.run(0.1, Q)
    for k in range(20):
        arm.pipeline.follow(to(Q + [0.001 * k, 0.0], 0.05))
        arm.run(0.02)
    with pytest.raises(RejectedTrajectory, match="'shoulder' from where it is.* whole turn"):
        arm.pipeline.follow(to(Q + [0.02, 0.0] - TURN, 0.05))


def test_what_is_no_whole_turn_that_is_too_fast_is_not_called_one():
    slow_then_fast = refusal_of([20.0, 20.01], [Q + TURN, Q + TURN + 1.0])
    assert 'speed on the way' in slow_then_fast
    assert 'speed on the way' in refusal_of([0.1], [Q + 0.95 * TURN])
    assert refusal_of([2.0], [Q + TURN]) == ''
    assert 'speed on the way' in refusal_of([0.1], [Q + TURN], prismatic=(True, False))
    assert 'first step' in refusal_of([0.1], [Q + 10.0 * TURN])
    degrees = refusal_of([0.1], [Q + 2.0 * TURN], limits=FAR / 30.0)
    assert 'position on the way' in degrees and degrees.endswith('in degrees?')
