# SPDX-License-Identifier: Apache-2.0
"""What the hand holds, found moving and standing."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from simulated_recordings import TrueArm, motion
from urdf_parts import joint, link, robot

from robodyn_ros import Payload, RobotModel, gravity_torque, inverse_dynamics
from robodyn_ros.commands.effort import _words_of_payload
from robodyn_ros.errors import InvalidArgument, NoSuchName
from robodyn_ros.identification import Recording, identify_payload
from robodyn_ros.identification.payload_estimate import _poses_to_add

LOAD = Payload(1.8, (0.02, -0.03, 0.09), np.diag([0.012, 0.011, 0.006]))


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(13, 6)


def known(arm: TrueArm) -> RobotModel:
    """Return the arm as it is, friction included."""
    return replace(
        arm.bodies,
        rotor_inertia=arm.rotor_inertia,
        viscous_friction=arm.viscous,
        coulomb_friction=arm.coulomb,
        effort_offset=arm.offset,
    )


def carrying(arm: TrueArm, load: Payload) -> TrueArm:
    return replace(arm, bodies=arm.bodies.with_payload(load))


def standing(arm: TrueArm, poses: np.ndarray, friction: np.ndarray | None = None) -> Recording:
    """Return a recording that stands in poses for a second each, moving in between."""
    time = np.arange(0.0, 3.0 * len(poses), 0.01)
    stamps = [s for k in range(len(poses)) for s in (3.0 * k, 3.0 * k + 1.5)]
    q = np.stack(
        [np.interp(time, stamps, np.repeat(column, 2)) for column in np.asarray(poses).T], axis=1
    )
    effort = gravity_torque(arm.bodies, q) + arm.offset
    if friction is not None:
        effort = effort + friction[np.minimum((time // 3.0).astype(int), len(poses) - 1)]
    keep = (time % 3.0) < 1.5
    return Recording(
        arm.urdf.joint_names, time[keep], q[keep], np.zeros_like(q[keep]), effort[keep]
    )


def test_a_moving_arm_that_is_known_finds_the_whole_body(arm):
    bare = replace(arm.bodies, viscous_friction=np.zeros(6), coulomb_friction=np.zeros(6))
    time, q, qd, qdd = motion(arm.urdf, 3, 20.0, 200.0)
    effort = inverse_dynamics(bare.with_payload(LOAD), q, qd, qdd)
    seen = []
    found = identify_payload(
        bare,
        Recording(arm.urdf.joint_names, time, q, qd, effort),
        progress=lambda fraction, what: seen.append((fraction, what)),
    )
    assert found.payload.mass == pytest.approx(1.8, rel=2e-3)
    np.testing.assert_allclose(found.payload.center_of_mass, LOAD.center_of_mass, atol=1e-3)
    np.testing.assert_allclose(found.payload.inertia, LOAD.inertia, atol=2e-3)
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert seen[0][1] == 'preparing'


def test_with_friction_and_noise_it_lies_within_its_deviations(arm):
    loaded = carrying(arm, LOAD).recording(5, 15.0, rate=100.0)
    found = identify_payload(known(arm), loaded)
    assert abs(found.payload.mass - 1.8) < min(0.03 * 1.8, 4 * found.mass_deviation)
    error = np.abs(found.payload.center_of_mass - np.asarray(LOAD.center_of_mass))
    assert (error < 4 * found.center_deviation + 1e-3).all()
    # It can be given to a model.
    empty, expected, given = (
        gravity_torque(bodies, np.zeros(6))
        for bodies in (
            arm.bodies,
            arm.bodies.with_payload(LOAD),
            arm.bodies.with_payload(found.payload),
        )
    )
    assert np.linalg.norm(given - expected) < 0.05 * np.linalg.norm(expected - empty)


def test_four_standing_poses_give_mass_and_centre(arm):
    poses = np.random.default_rng(3).uniform(-1.5, 1.5, (4, 6))
    found = identify_payload(known(arm), standing(carrying(arm, LOAD), poses))
    assert found.payload.mass == pytest.approx(1.8, rel=0.01)
    np.testing.assert_allclose(found.payload.center_of_mass, LOAD.center_of_mass, atol=3e-3)
    # Gravity alone shows no inertia: the prior keeps it a body's, and it is said.
    assert (np.linalg.eigvalsh(found.payload.inertia) > 0).all()
    assert np.linalg.eigvalsh(found.payload.inertia).max() < 0.1
    (guess,) = (each for each in found.findings if each.code == 'inertia_from_prior')
    # The largest moment of the call that the command prints, to the last digit.
    call = '\n'.join(_words_of_payload(list('123456'), found, 'tip'))
    moments = [float(x) for x in re.findall(r'i(?:xx|yy|zz): ([\d.e-]+)', call)]
    assert f'at most {max(moments):g} kg m²' in str(guess) and guess.value == max(moments)


def test_stiction_in_the_poses_is_in_the_deviations(arm):
    generator = np.random.default_rng(7)
    poses = generator.uniform(-1.5, 1.5, (6, 6))
    friction = generator.uniform(-1, 1, (6, 6)) * arm.coulomb
    found = identify_payload(known(arm), standing(carrying(arm, LOAD), poses, friction))
    assert found.mass_deviation > 0.02
    assert abs(found.payload.mass - 1.8) < 3.5 * found.mass_deviation


def test_the_poses_that_it_names_narrow_it_down_more_than_others(arm):
    loaded = carrying(arm, LOAD)
    one = np.array([[0.2, 0.1, -0.3, 0.4, 0.2, 0.1]])
    first = identify_payload(known(arm), standing(loaded, one))
    assert first.poses.shape == (3, 6)
    low, high = arm.urdf.position_limits.T
    assert ((first.poses >= low) & (first.poses <= high)).all()
    added = identify_payload(known(arm), standing(loaded, np.vstack([one, first.poses])))
    near = one + 0.1 * np.random.default_rng(1).normal(size=(3, 6))
    others = identify_payload(known(arm), standing(loaded, np.vstack([one, near])))
    assert np.prod(added.deviation) < 0.5 * np.prod(others.deviation)
    assert added.deviation[0] < first.deviation[0]


def test_an_empty_hand_is_called_one(arm):
    found = identify_payload(known(arm), arm.recording(5, 15.0, rate=100.0))
    assert found.payload.mass < 0.1
    assert 'no_payload' in {each.code for each in found.findings}


def test_bad_input_is_refused_by_name(arm):
    recording = arm.recording(5, 5.0, rate=100.0)
    with pytest.raises(InvalidArgument, match='loaded'):
        identify_payload(arm.urdf, [])
    with pytest.raises(NoSuchName, match='j7'):
        identify_payload(TrueArm.drawn(5, 7).urdf, recording)
    for scale in (0.0, [1.0, 2.0]):
        with pytest.raises(InvalidArgument, match='effort_scale'):
            identify_payload(arm.urdf, recording, effort_scale=scale)


def test_poses_to_add_turn_a_joint_without_limits_both_ways():
    turning = joint('turn', 'base', 'arm', 'continuous', axis=(0, 1, 0))
    urdf = robot(link('base'), link('arm', 1.0, (0.3, 0.0, 0.0), (0.1, 0.1, 0.1)), turning)
    model = RobotModel.from_urdf_text(urdf)
    poses = _poses_to_add(model, np.eye(4), np.ones(1))
    assert poses.min() < -0.2 and poses.max() > 0.2


def test_a_mass_that_no_torque_shows_is_not_said_to_be_known():
    # A pendulum's torque is g m c alone: any mass at its centre gives it.
    turning = joint('turn', 'base', 'arm', 'continuous', axis=(0, 1, 0))
    urdf = robot(link('base'), link('arm', 1.0, (0.3, 0.0, 0.0), (0.1, 0.1, 0.1)), turning)
    model = RobotModel.from_urdf_text(urdf)
    time = np.arange(0.0, 10.0, 0.01)[:, None]
    q, qd, qdd = np.sin(time), np.cos(time), -np.sin(time)
    effort = inverse_dynamics(model.with_payload(Payload(0.8, (0.05, 0.0, 0.04))), q, qd, qdd)
    found = identify_payload(model, Recording(('turn',), time[:, 0], q, qd, effort))
    assert abs(found.payload.mass - 0.8) < found.mass_deviation
    error = np.abs(found.payload.center_of_mass - np.array([0.05, 0.0, 0.04]))
    assert (error <= found.center_deviation).all()
    assert 'no_payload' in [each.code for each in found.findings]
