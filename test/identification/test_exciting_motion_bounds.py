# SPDX-License-Identifier: Apache-2.0
"""What holds between samples: bounds of series, torques and points, and distances."""

import numpy as np
import pytest
from robots import random_chain, random_tree
from urdf_parts import joint, link, robot

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.description.chain import Chain
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.errors import InvalidArgument, NoSuchName
from robodyn_ros.identification import Box, HalfSpace, LinkPoint
from robodyn_ros.identification.exciting_motion import verification
from robodyn_ros.identification.exciting_motion.fourier import FourierMotion, series_at_rest
from robodyn_ros.identification.exciting_motion.motion_limits import motion_limits
from robodyn_ros.identification.exciting_motion.obstacles import regions, watched_points
from robodyn_ros.identification.exciting_motion.verification import second_derivative_bounds
from robodyn_ros.motions.point_to_point import PointToPoint
from robodyn_ros.spatial import rotation_about, transform

EVERYWHERE = HalfSpace((0, 0, 1), -100.0)


def drawn(seed, n=3, harmonics=4, duration=6.0):
    generator = np.random.default_rng(seed)
    sines, cosines = generator.normal(size=(2, n, harmonics)) / np.arange(1, harmonics + 1)
    return FourierMotion(generator.normal(size=n), 0.5 * sines, 0.5 * cosines, duration)


def random_arm(seed, n=4):
    generator = np.random.default_rng(seed)
    model = RobotModel.from_urdf(random_chain(generator, n), base_link='base', tip_link='tip')
    return model.with_rotor_inertia(generator.uniform(0.0, 0.1, n))


def random_tree_arm(seed, n=4):
    generator = np.random.default_rng(seed)
    text, tips = random_tree(generator, n)
    model = RobotModel.from_urdf(text, tip_link=tips)
    return model.with_rotor_inertia(generator.uniform(0.0, 0.1, n))


def test_bounds_of_a_single_harmonic_are_its_amplitudes():
    motion = FourierMotion(np.array([0.3]), np.array([[0.0, 2.0]]), np.zeros((1, 2)), 5.0)
    frequency = 2 * 2 * np.pi / 5.0
    speed, acceleration = motion.rate_bounds()
    np.testing.assert_allclose(motion.range_bound(), [[0.3 - 2.0, 0.3 + 2.0]], rtol=0.01)
    np.testing.assert_allclose(speed, 2.0 * frequency, rtol=0.01)
    np.testing.assert_allclose(acceleration, 2.0 * frequency**2, rtol=0.01)
    assert speed[0] >= 2.0 * frequency


@pytest.mark.parametrize('seed', range(5))
def test_series_stay_within_their_bounds_and_come_within_a_percent_of_them(seed):
    motion = drawn(seed)
    time = np.linspace(0.0, motion.duration, 100_001)
    q, (low, high) = motion.position(time), motion.range_bound().T
    speed, acceleration = motion.rate_bounds()
    assert (q >= low).all() and (q <= high).all()
    assert (high - low <= 1.01 * np.ptp(q, axis=0)).all()
    for bound, values in (
        (speed, motion.velocity(time)),
        (acceleration, motion.acceleration(time)),
    ):
        reached = np.abs(values).max(axis=0)
        assert (reached <= bound).all() and (bound <= 1.01 * reached).all()


WAY = PointToPoint(*np.random.default_rng(3).normal(size=(2, 3)), 2.0)


@pytest.mark.parametrize('motion', [drawn(3), WAY], ids=['series', 'point to point'])
def test_derivatives_up_to_the_fourth_stay_within_their_bounds(motion):
    time = np.linspace(0.0, motion.duration, 20_001)
    step = time[1]
    acceleration = motion.acceleration(time)
    third = np.gradient(acceleration, step, axis=0)[1:-1]
    fourth = np.gradient(third, step, axis=0)[1:-1]
    reached = [np.abs(x).max(axis=0) for x in (motion.velocity(time), acceleration, third, fourth)]
    bounds = motion.derivative_bounds()
    assert (np.array(reached) <= bounds * (1 + 1e-6)).all()
    assert (bounds <= 5 * np.array(reached)).all()


def test_all_series_from_rest_to_rest_are_spanned():
    sines, cosines = series_at_rest(5)
    motion = FourierMotion(np.zeros(8), sines.T, cosines.T, 3.0)
    ends = np.array([0.0, 3.0])
    assert np.linalg.matrix_rank(np.vstack([sines, cosines])) == 8
    assert np.abs(motion.velocity(ends)).max() < 1e-12
    assert np.abs(motion.acceleration(ends)).max() < 1e-11


@pytest.mark.parametrize('arm', [random_arm, random_tree_arm])
@pytest.mark.parametrize('seed', range(8))
def test_torques_and_points_change_no_faster_than_bounded(seed, arm):
    model = arm(seed)
    motion = drawn(seed, n=4, duration=4.0)
    time = np.linspace(0.0, motion.duration, 8001)
    q, qd, qdd = motion.position(time), motion.velocity(time), motion.acceleration(time)
    torque, frames = second_derivative_bounds(
        model, np.abs(motion.range_bound()).max(axis=1), motion.derivative_bounds()
    )
    step = time[1]

    def second(values):
        return np.abs(values[2:] - 2 * values[1:-1] + values[:-2]).max(axis=0) / step**2

    assert (second(inverse_dynamics(model, q, qd, qdd)) <= torque).all()
    placed = frame_transforms(model.dh, q)
    for point in (np.zeros(3), np.array([0.3, -0.2, 0.5])):
        ways = placed[..., :3, :3] @ point + placed[..., :3, 3]
        length = float(np.linalg.norm(point))
        bound = frames[:, 0] + length * frames[:, 1]
        moved = np.linalg.norm(ways[2:] - 2 * ways[1:-1] + ways[:-2], axis=-1).max(axis=0)
        assert (moved / step**2 <= bound * (1 + 1e-6) + 1e-6).all()


@pytest.mark.longer
@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('fewest', [20, 500])
def test_what_a_motion_uses_is_never_less_than_what_dense_samples_show(seed, fewest, monkeypatch):
    monkeypatch.setattr(verification, '_FEWEST', fewest)
    monkeypatch.setattr(verification, '_MOST', fewest)
    model, motion = random_arm(seed), drawn(seed, n=4)
    near = regions(model, [Box((0.2, 0.1, -0.3), (0.6, 0.7, 0.4)), EVERYWHERE], 0.0, None)

    def torque(q, qd, qdd):
        return inverse_dynamics(model, q, qd, qdd)

    use = verification.limit_use(model, motion, torque, motion_limits(model), near)
    time = np.linspace(0.0, motion.duration, 10_001)
    q, qd, qdd = motion.position(time), motion.velocity(time), motion.acceleration(time)
    assert (np.abs(torque(q, qd, qdd)).max(axis=0) <= use.effort).all()
    frames = frame_transforms(model.dh, q)
    least = min(region.spare(region.points.positions(frames)).min() for region in near)
    assert use.spare <= least
    if fewest == 500:
        assert least - use.spare < 0.1


def test_distance_from_a_box_is_that_of_its_face_edge_and_corner():
    box = Box((-1, -2, -3), (1, 2, 3))
    points = np.array([[3.0, 0, 0], [4, 6, 0], [2, 3, 5], [0.5, 0, 0], [0, 0, 3]])
    np.testing.assert_allclose(box.distance(points), [2, 5, np.sqrt(6), -0.5, 0])


def test_a_turned_box_is_turned():
    pose = transform(rotation_about((0, 0, 1), np.pi / 2), (10, 0, 0))
    box = Box((0, 0, 0), (2, 1, 1), pose)  # x of the box is y of the base
    np.testing.assert_allclose(
        box.distance(np.array([[9.5, 3.0, 0.5], [9.5, 1.0, 0.5]])), [1, -0.5]
    )


@pytest.mark.parametrize(
    'region',
    [
        HalfSpace((1, 2, -2), 0.3),
        Box((-1, -0.5, -0.2), (0.4, 0.5, 0.6), transform(rotation_about((0, 0.6, 0.8), 0.7))),
    ],
)
def test_gradients_of_distances_are_their_finite_differences(region):
    points = np.random.default_rng(0).uniform(-2, 2, (200, 3))
    step = 1e-6 * np.eye(3)
    expected = np.stack(
        [(region.distance(points + e) - region.distance(points - e)) / 2e-6 for e in step], axis=1
    )
    np.testing.assert_allclose(region.gradient(points), expected, atol=1e-6)


def test_the_normal_of_a_half_space_may_have_any_length():
    assert HalfSpace((0, 0, 5), 0.2).distance(np.array([1.0, 1.0, 0.7])) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ('make', 'named'),
    [
        (lambda: HalfSpace((0, 0, 0), 1.0), 'normal'),
        (lambda: HalfSpace((0, 0, 1), np.inf), 'offset'),
        (lambda: Box((0, 0, 0), (1, 0, 1)), 'box'),
        (lambda: Box((0, 0, 0), (1, 1, 1), np.diag([1, 2, 1, 1])), 'box pose'),
        (lambda: LinkPoint('tip', radius=-1.0), 'radius'),
    ],
)
def test_obstacles_that_are_none_are_refused(make, named):
    with pytest.raises(InvalidArgument, match=named):
        make()


def test_every_point_of_the_lines_between_joints_and_links_is_in_a_watched_ball():
    chain = Chain.from_urdf(
        random_chain(np.random.default_rng(2), 4), base_link='base', tip_link='tip'
    )
    model = RobotModel.from_chain(chain)
    points = watched_points(model, None)
    placed = points.positions(frame_transforms(model.dh, np.zeros((1, 4))))[0]
    first = np.eye(
        4
    )  # the URDF's own frames at position zero, of joints and of what hangs on them
    joints = [first := first @ step for step in chain.joint_transforms]
    lines = list(zip(joints, joints[1:]))
    for placed_joint, body in zip(joints, chain.bodies[1:], strict=True):
        lines += [(placed_joint, placed_joint @ each) for each in body.link_transforms.values()]
    for begin, end in lines:
        for fraction in np.linspace(0.0, 1.0, 50):
            point = (begin + fraction * (end - begin))[:3, 3]
            assert (np.linalg.norm(placed - point, axis=1) <= points.radius + 1e-9).any()


def test_forces_on_watched_points_are_pulled_back_to_the_joints_that_move_them():
    model, step = random_tree_arm(3, n=6), 1e-6
    generator = np.random.default_rng(0)
    points = watched_points(model, None)
    q, forces = generator.normal(size=(1, 6)), generator.normal(size=(1, len(points.body), 3))

    def work(q):
        return (forces * points.positions(frame_transforms(model.dh, q))).sum()

    frames = frame_transforms(model.dh, q)
    pulled = points.pulled_back(frames, points.positions(frames), forces, model.dh)[0]
    moved = step * np.eye(6)
    expected = [(work(q + each) - work(q - each)) / (2 * step) for each in moved]
    np.testing.assert_allclose(pulled, expected, atol=1e-6)


def test_a_body_with_two_joints_behind_it_is_watched_along_the_ways_to_both():
    parts = [link('base'), link('torso'), link('left'), link('right')]
    parts += [joint('waist', 'base', 'torso'), joint('l', 'torso', 'left', xyz=(0, 1, 0))]
    text = robot(*parts, joint('r', 'torso', 'right', xyz=(0, -1, 0)))
    model = RobotModel.from_urdf(text, tip_link=['left', 'right'])
    points = watched_points(model, ['torso'])
    placed = points.positions(frame_transforms(model.dh, np.zeros((1, 3))))[0]
    assert placed[:, 1].min() == pytest.approx(-1.0) and placed[:, 1].max() == pytest.approx(1.0)
    assert len(regions(model, [], 0.0, 0.1)[0].points.names) == 2  # the heights of both tips


def test_a_link_that_is_not_there_or_does_not_move_cannot_be_watched():
    model = random_arm(2)
    with pytest.raises(NoSuchName, match='elbow'):
        watched_points(model, ['elbow'])
    with pytest.raises(NoSuchName, match='one that moves'):
        watched_points(model, ['base'])
