# SPDX-License-Identifier: Apache-2.0
"""What a history says: wear, warm-up and payloads told apart, and nothing that is not borne."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_motions import motions

from robodyn_ros.monitoring.ageing import condition, quantile

NAN = float('nan')


def codes(found, made):
    return {(each.code, each.element) for each in condition(found, made).findings}


def name(found, joint):
    return f'joint {found.model.joint_names[joint]!r}'


def test_wear_is_named_with_joint_and_size_although_the_arm_warms_up(found):
    (finding,) = condition(found, motions(40, wear=1.3, warm_up=0.3)).findings
    assert (finding.code, finding.level, finding.element) == ('wear', 'warning', name(found, 1))
    assert finding.value == pytest.approx(30.0, abs=3.0)
    assert 'above that of the first motions' in finding.message
    assert 'in the last 10 motions' in finding.message


def test_wear_is_found_within_ten_motions(found):
    made = motions(40, wear=1.3, warm_up=0.3)
    first = next(k for k in range(20, 41) if ('wear', name(found, 1)) in codes(found, made[:k]))
    assert first <= 30


@pytest.mark.parametrize(('term', 'words'), [('coulomb', 'Coulomb'), ('viscous', 'viscous')])
def test_the_term_that_alone_changed_is_named(found, term, words):
    (finding,) = condition(found, motions(40, wear=1.5, term=term)).findings
    assert finding.message.startswith(f'{words} friction of joint')
    assert finding.value == pytest.approx(50.0, abs=4.0)


def test_less_friction_is_reported_as_well(found):
    (finding,) = condition(found, motions(40, wear=0.7)).findings
    assert finding.value == pytest.approx(-30.0, abs=3.0)
    assert 'below that of the first motions' in finding.message


def test_warm_up_alone_is_no_wear_and_is_measured(found):
    now = condition(found, motions(60, warm_up=0.3))
    assert now.findings == ()
    np.testing.assert_allclose(now.warm_up, 0.3, atol=0.05)


@pytest.mark.parametrize('clock', [True, False])
def test_a_thermometer_shows_warm_up_as_a_clock_does(found, clock):
    made = motions(60, wear=1.3, warm_up=0.3, thermometer=True, clock=clock)
    assert codes(found, made) == {('wear', name(found, 1))}


def test_without_clock_and_thermometer_friction_differs_and_nothing_is_called_wear(found):
    now = condition(found, motions(40, wear=1.4, clock=False))
    (finding,) = now.findings
    assert (finding.code, finding.level) == ('friction_changed', 'info')
    assert 'neither time since the start nor temperature is known' in finding.message
    # The deviation that the table beside it has.
    assert '± ' + finding.message.rpartition('deviation is ')[2] in now.as_text()


@pytest.mark.parametrize('clock', [False, True])
def test_what_could_not_have_been_found_is_said_with_its_size_for_each_joint(found, clock):
    made = motions(40, scatter=0.08, clock=clock)
    now = condition(found, made)
    assert now.verdict.startswith('No change beyond normal scatter. ')
    assert ('Neither the time since the start (--started) nor' in now.verdict) is not clock
    assert ('warm-up may hide any wear' in now.verdict) is not clock
    for k, least in enumerate(now.least_change):
        assert f'{100 * least:.0f} % (joint {found.model.joint_names[k]!r})' in now.verdict
        for beyond in (0.98, 1.02):
            ratio = np.ones(3)
            ratio[k] = (1.0 + beyond * least) / (1.0 + now.since_reference[k])
            worn = [friction_times(each, ratio) for each in made[20:]]
            told = codes(found, [friction_times(each, np.ones(3)) for each in made[:20]] + worn)
            assert ({x for _, x in told} == {name(found, k)}) is (beyond > 1.0), (k, beyond)


def friction_times(motion, ratio):
    unknown = np.full((3, 3), NAN)
    friction = ratio * (1.0 + motion.terms.friction) - 1.0
    terms = replace(motion.terms, friction=friction, terms=unknown, term_deviation=unknown)
    return replace(motion, terms=terms)


def test_nothing_is_said_not_to_have_changed_before_there_is_anything_to_compare_with(found):
    for count in (0, 5, 14):
        assert condition(found, motions(count)).verdict.startswith('No change is found before')


@pytest.mark.filterwarnings('error')
def test_a_joint_whose_friction_is_hardly_known_shows_no_change_at_all(found):
    made = motions(40)
    for each in made:
        each.terms.friction_deviation.setflags(write=True)
        each.terms.friction_deviation[0] = 1e3
    now = condition(found, made)
    assert np.isnan(now.least_change[0]) and np.isfinite(now.least_change[1:]).all()
    assert f'at all (joint {found.model.joint_names[0]!r})' in now.verdict


def test_cold_motions_against_warm_ones_are_no_wear(found):
    # The same hour every day: no session ever showed how friction falls.
    warm, cold = motions(10, seed=1), motions(10, seed=2, warm_up=0.4)
    made = [replace(each, stamp=86_400.0 * k, since_start=9000.0) for k, each in enumerate(warm)]
    made += [
        replace(
            each,
            stamp=86_400.0 * (20 + k),
            since_start=60.0,
            terms=replace(each.terms, friction=each.terms.friction * 0 + 0.4),
        )
        for k, each in enumerate(cold)
    ]
    found_codes = {each.code for each in condition(found, made).findings}
    assert 'wear' not in found_codes and 'friction_changed' in found_codes


def test_another_gripper_is_a_payload_and_no_wear(found):
    made = motions(23, mass=0.6)
    (finding,) = condition(found, made).findings
    assert finding.code == 'payload'
    assert finding.value == pytest.approx(0.6, abs=0.02)
    assert 'a payload or a gripper, not friction' in finding.message


def test_a_load_that_is_gone_leaves_no_centre_to_report(found):
    load = np.array([0.6, 0.0, 0.0, 0.03])
    made = [
        replace(each, terms=replace(each.terms, payload=each.terms.payload + load))
        for each in motions(23, mass=-0.6)
    ]
    (finding,) = condition(found, made).findings
    assert finding.value == pytest.approx(-0.6, abs=0.02)
    assert finding.message.endswith('nothing distinguishable from zero beyond the model')


def test_friction_that_returned_to_the_models_is_not_said_to_differ_from_it(found):
    made = [
        replace(each, terms=replace(each.terms, friction=1.25 * (1.0 + each.terms.friction) - 1.0))
        for each in motions(40, wear=0.8)
    ]
    (finding,) = condition(found, made).findings
    assert 'below that of the first motions' in finding.message
    assert 'the identified model' not in finding.message


def test_an_offset_that_drifts_is_named_in_newton_metres(found):
    (finding,) = condition(found, motions(40, offset=1.0)).findings
    assert (finding.code, finding.element) == ('offset_changed', name(found, 1))
    assert finding.value == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize('warm_up', [0.0, 0.3])
def test_healthy_motions_give_no_finding(found, warm_up):
    made = motions(200, seed=7, scatter=0.04, warm_up=warm_up)
    for k in range(1, 201, 5):
        assert codes(found, made[max(0, k - 60) : k]) == set(), k


def test_a_single_motion_is_not_enough_to_call_friction_worn(found):
    assert codes(found, motions(1, since=0, wear=1.5)) == set()
    assert {code for code, _ in codes(found, motions(8, since=0, wear=1.5))} == {
        'friction_differs'
    }


def test_no_motion_says_nothing(found):
    now = condition(found, [])
    assert now.findings == () and np.isnan(now.friction).all()


def test_a_joint_that_says_nothing_for_a_while_is_judged_by_its_own_last_motions(found):
    made = motions(40, wear=1.3)
    silent = [
        replace(
            each,
            terms=replace(
                each.terms,
                friction=np.array([0.0, NAN, 0.0]),
                terms=np.full((3, 3), NAN),
                term_deviation=np.full((3, 3), NAN),
            ),
        )
        for each in motions(10, seed=5)
    ]
    assert ('wear', name(found, 1)) in codes(found, [*made, *silent])


def test_the_bound_is_one_in_a_hundred_over_ten_thousand_motions(found):
    # Of the normal distribution: 10,000 motions, 3 joints, 5 quantities and two of a payload.
    from scipy.stats import norm

    assert quantile(3, 1e9) == pytest.approx(norm.isf(0.01 / (10_000 * 17)), rel=1e-6)
    assert quantile(3, 20) > quantile(3, 200)
