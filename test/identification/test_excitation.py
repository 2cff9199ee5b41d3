# SPDX-License-Identifier: Apache-2.0
"""Motions to identify an arm by: limits at every time, information, and what is said about it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from known_arms import known_arm
from numpy.testing import assert_allclose
from robots import random_chain, two_link_urdf
from urdf_parts import joint, link, robot

from robodyn_ros import RobotModel, forward_kinematics, friction_torque, inverse_dynamics
from robodyn_ros.errors import InvalidArgument, NoSolution
from robodyn_ros.identification import Box, HalfSpace, LinkPoint, excitation, motion_limits
from robodyn_ros.identification.exciting_motion import search
from robodyn_ros.identification.exciting_motion.fourier import Shapes
from robodyn_ros.identification.exciting_motion.information import ArmFunctions, Knowledge
from robodyn_ros.identification.exciting_motion.obstacles import regions
from robodyn_ros.identification.exciting_motion.search import Objective
from robodyn_ros.identification.prior import PARAMETERS, Prior, congruence, prior_pseudo_inertia
from robodyn_ros.parameters import regressor


@pytest.fixture
def hasty(monkeypatch):
    """Search for a tenth of the time: what a motion keeps does not depend on it."""
    monkeypatch.setattr(search, '_STAGES', ((30.0, 8), (1e3, 8), (1e5, 8)))
    monkeypatch.setattr(search, '_STARTS', 2)
    monkeypatch.setattr(search, '_FIRST_GUESSES', 20)


def random_arm(seed, n=3):
    """Return an arm with friction and rotors, and effort limits that a fast motion exceeds."""
    generator = np.random.default_rng(seed)
    text = random_chain(generator, n)
    model = RobotModel.from_urdf(text, base_link='base', tip_link='tip')
    return model.with_rotor_inertia(generator.uniform(0.0, 0.2, n))


def strong(model):
    """Return the arm's limits, but efforts that carry whatever weight was drawn."""
    return motion_limits(model, effort=1e4)


def scene(model, generator):
    """Return a floor under the arm's reach at zero, a box aside, and limits of effort."""
    tip = forward_kinematics(model, np.zeros(model.n))[:3, 3]
    aside = tip + generator.uniform(0.4, 0.8, 3)
    floor = HalfSpace((0, 0, 1), float(tip[2]) - 0.8, (LinkPoint('tip', radius=0.02),))
    return floor, Box(aside, aside + 0.5, watched=('tip',))


@pytest.mark.longer
@pytest.mark.parametrize('seed', range(6))
def test_no_limit_is_exceeded_at_any_of_ten_thousand_samples(seed, hasty):
    model, generator = random_arm(seed), np.random.default_rng(seed)
    limits = motion_limits(model, acceleration=generator.uniform(1.0, 4.0, model.n))
    q, qd, qdd = generator.uniform(-1, 1, (3, 2000, model.n)) * np.abs(limits.position).max(axis=1)
    bodies = inverse_dynamics(model, q, 0 * qd, 0 * qdd)
    # Enough for every pose, too little for the fastest motions.
    effort = 1.2 * np.abs(bodies).max(axis=0) + 0.5
    limits = motion_limits(model, acceleration=limits.acceleration, effort=effort)
    obstacles, margin = scene(model, generator), 0.04
    found = excitation(
        model,
        6.0,
        limits=limits,
        obstacles=obstacles,
        margin=margin,
        seed=seed,
        friction_motion=True,
        poses=2,
    )
    q, qd, qdd = found.states(np.linspace(0.0, found.duration, 10_001))
    assert (q >= limits.position[:, 0]).all() and (q <= limits.position[:, 1]).all()
    assert (np.abs(qd) <= limits.velocity * (1 + 1e-9)).all()
    assert (np.abs(qdd) <= limits.acceleration * (1 + 1e-9)).all()
    rigid = inverse_dynamics(model, q, qd, qdd)
    assert (np.abs(rigid + friction_torque(model, qd, rigid_torque=rigid)) <= limits.effort).all()
    tip = forward_kinematics(model, q)[:, :3, 3]
    assert (tip[:, 2] - 0.02 - obstacles[0].offset >= margin).all()
    assert (obstacles[1].distance(tip) >= margin).all()
    assert found.clearance >= margin


@pytest.mark.parametrize('seed', range(3))
def test_a_motion_is_smooth_and_begins_and_ends_at_rest_where_it_began(seed, hasty):
    model = random_arm(seed)
    found = excitation(model, 5.0, limits=strong(model), seed=seed, friction_motion=True, poses=2)
    time = np.linspace(0.0, found.duration, 40_001)
    q, qd, qdd = found.states(time)
    assert_allclose(q[[0, -1]], [found.start] * 2, atol=1e-12)
    assert np.abs(qd[[0, -1]]).max() < 1e-12 and np.abs(qdd[[0, -1]]).max() < 1e-9
    step = time[1]
    assert np.abs(np.gradient(q, step, axis=0) - qd)[1:-1].max() < 1e-3
    assert np.abs(np.diff(qd, axis=0)).max() < 10 * step * (1 + np.abs(qdd).max())
    assert_allclose(found.trajectory.q[-1], found.start, atol=1e-12)


def test_the_same_seed_gives_the_same_motion_and_another_one_another(hasty):
    model, seen = random_arm(0), []
    one, again, other = (
        excitation(
            model,
            5.0,
            limits=strong(model),
            seed=seed,
            progress=lambda fraction, what: seen.append((fraction, what)),
        )
        for seed in (3, 3, 4)
    )
    assert one == again
    assert np.abs(one.start - other.start).max() > 1e-3
    # Each time progress goes from nothing to everything.
    fractions = np.array([fraction for fraction, _ in seen])
    ends = 1 + np.flatnonzero(np.diff(fractions) < 0)
    for each in np.split(fractions, ends):
        assert (each[0], each[-1]) == (0.0, 1.0)
    assert len(ends) == 2
    assert all(what for _, what in seen)


# --- the objective --------------------------------------------------------------------------


def objective_of(model, seed, *, effort=1.0, harmonics=3):
    generator = np.random.default_rng(seed)
    limits = motion_limits(model)
    shapes = Shapes(limits, 5.0, harmonics)
    functions = ArmFunctions.of(model)
    typical = shapes.states(shapes.inside(shapes.random(generator)))
    knowledge = Knowledge.before(model, functions, tuple(typical), 0.25, None)
    torque = np.abs(inverse_dynamics(model, *typical)).max(axis=0)
    limits = motion_limits(model, effort=np.maximum(effort * torque, 1e-3))
    near = regions(model, scene(model, generator), 0.3, 0.1)
    return Objective(shapes, functions, knowledge, limits, near), generator


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('penalty', [0.0, 1e3])
def test_the_gradient_of_the_objective_is_its_finite_differences(seed, penalty):
    objective, generator = objective_of(random_arm(seed), seed, effort=0.5)
    x = 1.3 * objective.shapes.random(generator)
    value, gradient = objective.gradient(x, penalty)
    assert value == pytest.approx(objective.value(x, penalty), rel=1e-9)
    for _ in range(5):
        direction = generator.normal(size=x.shape)
        ahead, behind = (objective.value(x + s * direction, penalty) for s in (1e-6, -1e-6))
        along = (gradient * direction).sum()
        assert along == pytest.approx((ahead - behind) / 2e-6, rel=2e-4, abs=1e-4)


@pytest.mark.parametrize('size', [1e-3, 1.0, 1e3])
def test_whatever_the_numbers_are_limits_of_single_joints_are_kept(size):
    model = random_arm(1)
    limits = motion_limits(model, acceleration=2.0)
    shapes = Shapes(limits, 4.0, 5)
    x = size * np.random.default_rng(0).normal(size=(model.n, shapes.size))
    motion = shapes.motion(shapes.inside(x))
    time = np.linspace(0.0, 4.0, 10_001)
    q = motion.position(time)
    assert (q >= limits.position[:, 0]).all() and (q <= limits.position[:, 1]).all()
    assert (np.abs(motion.velocity(time)) <= limits.velocity).all()
    assert (np.abs(motion.acceleration(time)) <= limits.acceleration).all()


def test_numbers_that_lie_inside_are_those_of_their_raw_ones():
    model = random_arm(1)
    shapes = Shapes(motion_limits(model), 4.0, 4)
    inside = shapes.random(np.random.default_rng(3))
    assert_allclose(shapes.inside(shapes.raw(inside)), inside, rtol=1e-9)


@pytest.mark.parametrize('seed', range(3))
def test_information_and_deviations_are_those_of_all_parameters_of_the_links(seed, hasty):
    """Ten parameters a link and its own formula; only the base parameters are measured."""
    model = random_arm(seed)
    objective, generator = objective_of(model, seed)
    knowledge, shapes = objective.knowledge, objective.shapes
    motion = shapes.motion(shapes.inside(shapes.random(generator)))
    q, qd, qdd = objective.states(motion)
    n = model.n
    drive = np.zeros((len(q), n, n, 4))
    terms = np.stack([qdd, qd, np.tanh(qd / 0.05), np.ones_like(qd)], axis=-1)
    drive[:, np.arange(n), np.arange(n)] = terms
    rows = np.concatenate([regressor(model, q, qd, qdd), drive.reshape(len(q), n, 4 * n)], axis=-1)
    rows = (rows / knowledge.noise[:, None]).reshape(-1, 14 * n)
    pseudo, _ = prior_pseudo_inertia(model)
    strength = Prior(pseudo, 1 / (4 * 0.25**2)).strength
    prior = np.zeros((14 * n, 14 * n))
    for i, root in enumerate(PARAMETERS @ congruence(np.linalg.cholesky(pseudo))):
        prior[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = root @ root.T / strength
    count = knowledge.base.count
    prior[10 * n :, 10 * n :] = knowledge.prior[count:, count:]
    gain = np.eye(len(rows)) * (len(q) / (10.0 * 5.0)) + rows @ prior @ rows.T
    after = prior - prior @ rows.T @ np.linalg.solve(gain, rows @ prior)
    to_base = knowledge.base.regrouping
    expected = np.sqrt(np.diagonal(to_base @ after[: 10 * n, : 10 * n] @ to_base.T))
    parameters = knowledge.expected(objective.information(motion))
    assert_allclose([each.deviation for each in parameters[:count]], expected, rtol=1e-4)
    assert_allclose(
        [each.deviation for each in parameters[count:]],
        np.sqrt(np.diagonal(after)[10 * n :]),
        rtol=1e-4,
    )


def test_a_found_motion_determines_more_than_random_ones(hasty):
    model = random_arm(2)
    found = excitation(model, 6.0, limits=strong(model))
    objective, _ = objective_of(model, 2)
    shapes = Shapes(found.limits, 6.0, 5)
    generator = np.random.default_rng(0)
    functions = ArmFunctions.of(model)
    typical = [shapes.states(shapes.inside(shapes.random(generator))) for _ in range(10)]
    knowledge = Knowledge.before(
        model, functions, tuple(np.concatenate(typical, axis=1)), 0.25, None
    )
    plain = Objective(shapes, functions, knowledge, found.limits, ())
    told = [-0.5 * plain.value(shapes.raw(shapes.random(generator)), 0.0) for _ in range(100)]
    assert found.criterion > max(told)


# --- what is said ----------------------------------------------------------------------------


def test_a_single_joint_does_not_distinguish_its_rotor_from_its_link(hasty):
    text = robot(
        link('base'),
        joint('joint', 'base', 'link', axis=(0, 1, 0)),
        link('link', 2, center=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1)),
    )
    found = excitation(RobotModel.from_urdf(text), 6.0, harmonics=3)
    known = {each.name: each for each in found.parameters}
    inertia, rotor = known['ZZ1'], known['Ia']
    # Only their sum reaches the torque: what one may be, the other takes back.
    assert_allclose(inertia.deviation, rotor.deviation, rtol=0.05)
    assert inertia.deviation > 0.2 * inertia.prior_deviation
    assert known['mX1'].remaining < 0.1
    assert len(found.expected_deviation) == len(found.parameters) - 4


def test_what_is_missing_in_the_urdf_is_assumed_and_said(hasty):
    text = two_link_urdf().replace('type="continuous"', 'type="prismatic"', 1)
    model = RobotModel.from_urdf(text)
    found = excitation(model, 5.0, harmonics=3)
    said = {(each.code, each.element): each for each in found.findings}
    for name, reach, speed in (('joint1', 0.25, 0.25), ('joint2', np.pi, 1.0)):
        element = f'joint {name!r}'
        assert said['assumed_range', element].value == pytest.approx(reach)
        assert said['assumed_velocity_limit', element].value == pytest.approx(speed)
        assert ('no_effort_limit', element) in said
    assert any(code == 'no_obstacles' for code, _ in said)
    q, qd, _ = found.states(np.linspace(0, 5, 1000))
    assert (np.abs(q) <= [0.25, np.pi]).all() and (np.abs(qd) <= [0.25, 1.0]).all()


def test_an_effort_limit_of_zero_is_none():
    model = known_arm('panda')
    without = replace(model, effort_limits=np.zeros(model.n))
    limits = motion_limits(without)
    assert np.isinf(limits.effort).all()
    assert [each.code for each in limits.findings] == ['no_effort_limit'] * model.n
    known = motion_limits(model)
    assert_allclose(known.effort, 0.7 * model.effort_limits)
    assert_allclose(known.velocity, 0.8 * model.velocity_limits)
    assert not known.findings


def test_a_limit_on_one_side_cuts_the_assumed_range():
    model = RobotModel.from_urdf(two_link_urdf())
    one_sided = np.array([[-0.5, np.inf], [-np.inf, -1.0]])
    limits = motion_limits(replace(model, position_limits=one_sided))
    assert_allclose(limits.position, [[-0.5, np.pi], [-1.0 - np.pi, -1.0]])


@pytest.mark.parametrize(
    'arguments',
    [
        {'duration': 0.0},
        {'duration': 1e300},
        {'harmonics': 1},
        {'harmonics': 21},
        {'margin': -0.1},
        {'poses': -1},
        {'noise': [1.0]},
        {'noise': [1.0, 0.0]},
        {'limits': motion_limits(random_arm(0))},  # of another arm
    ],
)
def test_arguments_that_are_none_are_refused_by_name(arguments):
    model = RobotModel.from_urdf(two_link_urdf())
    with pytest.raises(InvalidArgument, match=next(iter(arguments))):
        excitation(model, **{'duration': 5.0, **arguments})


@pytest.mark.parametrize(
    'arguments',
    [
        {'velocity': [1.0, np.inf]},
        {'velocity': 0.0},
        {'acceleration': [1.0, -1.0]},
        {'effort': np.nan},
        {'position': [(0, 1), (1, 1)]},
    ],
)
def test_limits_that_are_none_are_refused_by_joint(arguments):
    with pytest.raises(InvalidArgument, match=f'{next(iter(arguments))} limits? of joint'):
        motion_limits(RobotModel.from_urdf(two_link_urdf()), **arguments)


def test_where_no_motion_keeps_the_limits_it_is_said_which_is_in_the_way(hasty):
    model = RobotModel.from_urdf(two_link_urdf())
    everywhere = HalfSpace((0, 0, 1), 10.0)
    with pytest.raises(NoSolution, match='too close to an obstacle') as caught:
        excitation(model, 5.0, obstacles=[everywhere])
    assert len(re.findall(r"link '\w+' comes", str(caught.value))) == 1  # of three starts
    assert 'characters)' not in str(caught.value)


@pytest.mark.longer
def test_the_floor_that_is_named_in_a_refusal_leaves_room(hasty):
    model = known_arm('puma560')
    with pytest.raises(NoSolution) as caught:
        excitation(model, 5.0, obstacles=[HalfSpace((0, 0, 1), 0.0)])
    named = re.search(
        r"a floor at (-[\d.]+) m or lower, or watched links without 'link1'", caught.value.allowed
    )
    floor = float(named[1])
    # Joint 1 turns the link about itself, so that it stays where it is.
    found = excitation(model, 5.0, obstacles=[HalfSpace((0, 0, 1), floor)])
    assert found.clearance >= 0.05


def test_where_a_box_is_in_the_way_it_and_the_margin_are_named(hasty):
    model = RobotModel.from_urdf(two_link_urdf())
    everywhere = Box((-9, -9, -9), (9, 9, 9))
    with pytest.raises(NoSolution, match='or a margin that leave room, or watched links without'):
        excitation(model, 5.0, obstacles=[everywhere])


def test_without_a_compiler_it_is_slower_and_says_so(hasty, monkeypatch):
    model = random_arm(0, n=2)
    compiled = excitation(model, 5.0, harmonics=2)
    monkeypatch.setenv('CC', '/nonexistent/cc')
    monkeypatch.setenv('ROBODYN_CACHE_DIR', '/nonexistent')
    bare = excitation(model, 5.0, harmonics=2)
    assert any(each.code == 'not_compiled' for each in bare.findings)
    assert not any(each.code == 'not_compiled' for each in compiled.findings)
    assert bare.criterion == pytest.approx(compiled.criterion, rel=0.05)
