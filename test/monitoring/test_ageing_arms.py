# SPDX-License-Identifier: Apache-2.0
"""Public arms that wear, warm up and carry: in MuJoCo, by Pinocchio, and recorded ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('pinocchio', reason='pin is not installed')

from ageing_arms import ARMS, AgeingArm, MujocoArm, aged
from identify_recordings import UR10E_SCALE, models

from robodyn_ros.identification import DriveTerms, Identification, Recording, identify
from robodyn_ros.monitoring.ageing import condition
from robodyn_ros.monitoring.motions import cut_into_motions, examined

RECORDINGS = Path(__file__).resolve().parents[3] / 'shared' / 'recordings'
WORN, SINCE = 2, 20


@pytest.mark.slow
@pytest.mark.parametrize('name', ARMS)
def test_wear_of_30_per_cent_is_found_within_20_motions_and_no_other_is_claimed(name):
    arm = MujocoArm(name)
    motions = aged(arm, SINCE + 20, joint=WORN, since=SINCE)
    assert condition(arm.identified, motions[:SINCE]).findings == ()
    (finding,) = condition(arm.identified, motions).findings
    assert finding.code == 'wear'
    assert finding.element == f'joint {arm.urdf.joint_names[WORN]!r}'
    assert finding.value == pytest.approx(30.0, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize('name', ARMS)
def test_another_gripper_is_named_payload_and_nothing_wear(name):
    arm = MujocoArm(name)
    motions = aged(arm, SINCE + 3, loads=(0.95, 1.05), gripper=1.6)
    (finding,) = condition(arm.identified, motions).findings
    assert finding.code == 'payload'
    assert finding.value == pytest.approx(0.6, abs=0.06)


@pytest.mark.longer
def test_in_mujoco_one_motion_shows_friction_and_payload_of_one_arm():
    from robodyn_ros.monitoring.motion_terms import motion_terms

    arm = MujocoArm('ur5')
    training = [arm.motion(10_000 + k, duration=15.0) for k in range(2)]
    found = identify(arm.urdf, training, friction=DriveTerms(), base_tilt=False)
    factors = np.ones(6)
    factors[WORN] = 1.3
    terms = motion_terms(found, arm.motion(1, friction=factors, load=1.3))
    np.testing.assert_allclose(terms.friction, factors - 1.0, atol=0.02)
    assert terms.payload[0] == pytest.approx(0.3, abs=0.02)


@pytest.mark.slow
def test_a_hundred_healthy_motions_under_changing_payloads_give_no_finding():
    arm = AgeingArm('ur5', seed=1)
    motions = aged(arm, 100, duration=6.0)
    for k in range(1, 101):
        assert condition(arm.identified, motions[:k]).findings == (), k


def test_a_recording_is_cut_where_the_arm_stands():
    arm = AgeingArm('ur5')
    one = arm.motion(1, duration=6.0)
    stand = np.arange(0.0, 2.0, 0.01)
    still = np.repeat(one.position[-1:], len(stand), axis=0)
    day = Recording(
        one.joint_names,
        np.concatenate([one.time, 6.0 + stand, 8.0 + one.time]),
        np.concatenate([one.position, still, one.position]),
        np.concatenate([one.velocity, 0.0 * still, one.velocity]),
        np.concatenate([one.effort, 0.0 * still + 1.0, one.effort]),
    )
    first, second = cut_into_motions(day)
    assert first.time[-1] < 6.0 and second.time[0] >= 8.0 - 1e-9
    long = arm.motion(2, duration=100.0)
    assert [round(each.duration) for each in cut_into_motions(long)] == [33, 33, 33]
    assert cut_into_motions(one.between(0.0, 3.0)) == ()
    standing = replace(one, velocity=0.0 * one.velocity)
    assert cut_into_motions(standing) == ()


@pytest.fixture(scope='module')
def ur10e() -> tuple[Identification, dict]:
    if not RECORDINGS.is_dir():
        pytest.skip(f'no recordings in {RECORDINGS}')
    model = models(RECORDINGS)['ur10e']
    paths = sorted((RECORDINGS / 'ur10e').glob('*harm*.csv'))
    recordings = {path.name: Recording.from_csv(path, model) for path in paths}
    baseline = recordings['20_02_10-30sec_12harm.csv']
    return identify(model, baseline, effort_scale=UR10E_SCALE), recordings


@pytest.mark.slow
def test_of_recordings_of_a_month_nothing_is_claimed_but_the_load(ur10e):
    found, recordings = ur10e
    motions = []
    for name, recording in recordings.items():
        told = examined(found, recording, name).motions
        for motion in told:
            assert np.abs(motion.terms.friction).max() < 0.08, name
            expected = 2.805 if 'Load' in name else 0.0
            assert motion.terms.payload[0] == pytest.approx(expected, abs=0.06), name
        motions += told if 'Load' not in name else []
        loaded = told
    assert len(motions) >= 10
    assert condition(found, motions).findings == ()
    # Two motions of the load more, and the same again: a payload, and no wear.
    again = [replace(each, stamp=each.stamp + 100.0) for each in loaded]
    (finding,) = condition(found, [*motions, *loaded, *again]).findings
    assert finding.code == 'payload'
    assert finding.value == pytest.approx(2.8, abs=0.1)
