# SPDX-License-Identifier: Apache-2.0
"""Arms in MuJoCo with friction and noise: forces at the tip, pushes found, no false alarms."""

from __future__ import annotations

import numpy as np
import pytest
from pushed_arm import ARMS, TIME_STEP, PushedArm, random_force

from robodyn_ros.control.contact import ContactDetector, ContactThresholds, moved_links, tip_wrench
from robodyn_ros.control.contact_thresholds import ObservedRecording, contact_thresholds
from robodyn_ros.control.core_binding import core

pytest.importorskip('mujoco')

SETTLED = 0.1  # after which a force is to be known [s]
ACCURACY, FLOOR = 0.1, 2.0  # of the force, or so many newtons


def force_error(arm, found, wrench):
    """Return how far the estimated force is from the one applied [N]."""
    deviation = 0.01 * arm.model.effort_limits
    q = arm.simulation.position
    estimated = tip_wrench(arm.model, q, found, deviation, np.zeros(3)).wrench[:3]
    return float(np.linalg.norm(estimated - arm.tip_axes(wrench[:3])))


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('name', sorted(ARMS))
@pytest.mark.parametrize('speed', [0.0, 1.0])
def test_a_stepped_force_at_the_tip_is_known_after_a_tenth_of_a_second(name, speed):
    # Without friction and noise: what the method itself leaves.
    arm = PushedArm(name, seed=1, speed=speed, friction=0.0, noisy=False)
    for _ in range(300):
        arm.step()
    for size in (5.0, 20.0, 50.0, 10.0):
        wrench = random_force(arm.random, size)
        for k in range(200):
            found = arm.step(wrench)
            if k * TIME_STEP > SETTLED:
                assert force_error(arm, found, wrench) <= max(ACCURACY * size, FLOOR)
        for _ in range(200):
            arm.step()


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted(ARMS))
def test_forces_of_5_to_50_newtons_in_motion_with_noise_and_friction(name):
    arm = PushedArm(name, seed=3)
    for _ in range(500):
        arm.step()
    good = total = 0
    for _ in range(40):
        size = float(arm.random.uniform(5.0, 50.0))
        wrench = random_force(arm.random, size)
        for _ in range(round(SETTLED / TIME_STEP)):
            arm.step(wrench)
        for _ in range(100):
            error = force_error(arm, arm.step(wrench), wrench)
            good, total = good + (error <= max(ACCURACY * size, FLOOR)), total + 1
        for _ in range(100):
            arm.step()
    assert good >= 0.9 * total, good / total


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted(ARMS))
def test_forces_at_rest_are_known_up_to_what_stiction_hides(name):
    arm = PushedArm(name, seed=4, speed=0.0)
    for _ in range(500):
        arm.step()
    hidden = 1.1 * arm.model.coulomb_friction + 0.03 * arm.model.effort_limits
    for _ in range(20):
        wrench = random_force(arm.random, float(arm.random.uniform(5.0, 50.0)))
        for j in range(150):
            found = arm.step(wrench)
            if j * TIME_STEP > SETTLED:
                given = arm.simulation.external_torque
                assert (np.abs(found - given) <= hidden + 0.1 * np.abs(given)).all()
        for _ in range(150):
            arm.step()


def calibrated(name, seeds, duration):
    """Return the thresholds of free motions."""
    observed = []
    for seed in seeds:
        arm = PushedArm(name, seed=seed)
        stationary = core.StationaryJoints(arm.model.n)
        rows = []
        for _ in range(round(duration / TIME_STEP)):
            found = arm.step()
            stands = stationary.at(arm.velocity, arm.time)
            rows.append((arm.time, arm.velocity, found, stands))
        rows = rows[200:]
        observed.append(ObservedRecording(*(np.array(part) for part in zip(*rows))))
    return contact_thresholds(arm.model, observed)


def detector_of(arm, thresholds):
    model = arm.model
    return ContactDetector(
        thresholds, model.joint_names, moved_links(model), model.dh.prismatic.tolist()
    )


def watched(arm, detector, wrench=None):
    """Make a step and return what the detector says of it."""
    found = arm.step(wrench)
    return None if found is None else detector.update(arm.velocity, found, arm.time)


@pytest.fixture(scope='module', params=sorted(ARMS))
def calibrated_arm(request):
    return request.param, calibrated(request.param, (100, 101, 102, 103), 20.0)


@pytest.mark.slow
def test_of_a_hundred_pushes_of_15_newtons_95_are_found_within_80_milliseconds(calibrated_arm):
    name, thresholds = calibrated_arm
    delays, pushes = [], 0
    for seed in range(10):
        arm = PushedArm(name, seed=seed)
        detector = detector_of(arm, thresholds)
        for _ in range(500):
            watched(arm, detector)
        for _ in range(10):
            wrench, began, pushes = random_force(arm.random, 15.0), arm.time, pushes + 1
            said = None
            for k in range(round(1.0 / TIME_STEP)):
                event = watched(arm, detector, wrench if k * TIME_STEP < 0.3 else None)
                if event and not event.is_over and k * TIME_STEP < 0.35 and said is None:
                    said = arm.time - began
            delays += [said] if said is not None else []
    assert pushes == 100
    assert len(delays) >= 95, len(delays)
    assert np.median(delays) < 0.08


@pytest.mark.slow
def test_ten_minutes_of_free_motion_raise_no_alarm(calibrated_arm):
    name, thresholds = calibrated_arm
    for seed in range(200, 210):
        arm = PushedArm(name, seed=seed)
        detector = detector_of(arm, thresholds)
        for _ in range(round(60.0 / TIME_STEP)):
            watched(arm, detector)
        assert detector.count == 0, (seed, detector.contact)


def test_pushes_are_said_to_be_on_the_link_that_is_pushed():
    # At the tip the outermost joint that shows it is one of the wrist.
    arm = PushedArm('ur5', seed=5)
    thresholds = ContactThresholds(*np.full((2, 6), [4.0, 4.0, 3.0, 1.0, 1.0, 1.0]))
    detector = detector_of(arm, thresholds)
    for _ in range(300):
        watched(arm, detector)
    for _ in range(100):
        event = watched(arm, detector, np.array([0.0, 0.0, -40.0, 0.0, 0.0, 0.0]))
        if event:
            break
    assert event is not None
    assert event.link in ('wrist_1_link', 'wrist_2_link', 'wrist_3_link')
