# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo that hits something on its way: it stops, and no energy comes from nowhere."""

from __future__ import annotations

import numpy as np
import pytest
from frictionless_arm import TIME_STEP, FrictionlessArm

from robodyn_ros import Payload
from robodyn_ros.control.control_stack import apply_change

pytest.importorskip('mujoco')

BRAKING = 2.0 + 0.3  # the longest brake, and its last errors [s]


class Run(FrictionlessArm):
    """The Panda on its way, that reacts to contacts."""

    def __init__(self, **settings):
        super().__init__(
            mode='computed_torque',
            contact_threshold_moving=(4.0,),
            contact_threshold_stationary=(6.0,),
            **settings,
        )
        self.work, self.force, self.contact, self.acting = 0.0, np.zeros(6), None, None

    def cycle(self, state):
        """Return the command of a joint state, after a reaction to a contact that begins."""
        command = super().cycle(state)
        pipeline, monitor = self.pipeline, self.stack.monitor
        found = monitor.update(pipeline.state, self.acting, pipeline.settings)
        self.acting = command.torque
        self.contact = found if found is not None and not found.is_over else None
        if self.contact is not None:
            pipeline.react_to_contact(self.settings.on_contact, str(found))
        return command

    def step(self):
        self.simulation.push(self.force)
        external, before = self.simulation.external_torque, self.simulation.velocity
        super().step()
        self.work += TIME_STEP * external @ (0.5 * (before + self.simulation.velocity))

    def under(self, force=(0.0, 0.0, 0.0)):
        """Make a control cycle and a step under a force; return a contact that begins."""
        self.force[:3] = force
        self.run(TIME_STEP)
        return self.contact

    def set_off(self):
        self.run(0.02)
        self.follow([1.2, 0.4, 0.0, 0.4, 0.0, 0.0, 0.0], 2.0)
        while self.now < 101.0:
            assert self.under() is None


def until_contact(run, force):
    for _ in range(200):
        contact = run.under(force)
        if contact is not None:
            return contact
    raise AssertionError('no contact')


# 60 N fling a joint past 1.5 times its velocity limit: damped from there, nothing is held.
@pytest.mark.repeats(check=1)
@pytest.mark.parametrize(
    ('force', 'status'),
    [
        ((0.0, -30.0, 0.0), 'holding'),
        ((0.0, 30.0, 0.0), 'holding'),
        ((15.0, -15.0, 10.0), 'holding'),
        ((0.0, 60.0, 0.0), 'none'),
        ((30.0, -30.0, 20.0), 'none'),
    ],
)
def test_kinetic_energy_grows_by_no_more_than_the_work_of_the_push(force, status):
    run = Run(on_contact='stop')
    run.set_off()
    until_contact(run, force)
    energy, work, detected = run.energy, run.work, run.now
    pushed_until = run.now + 0.2
    while run.now < detected + BRAKING:
        run.under(force if run.now < pushed_until else (0.0, 0.0, 0.0))
        gained = run.energy - energy
        assert gained <= max(run.work - work, 0.0) + 0.02 * energy + 0.05
    assert np.abs(run.simulation.velocity).max() < 0.01
    assert run.stack.pipeline.reference_status == status


def test_float_comes_to_rest_and_may_be_moved_by_hand():
    run = Run(on_contact='float', max_following_error=0.0)
    run.set_off()
    until_contact(run, (0.0, -40.0, 0.0))
    assert run.stack.pipeline.reference_status == 'none'
    end = run.now + 3.0
    while run.now < end:
        run.under()
    assert np.abs(run.simulation.velocity).max() < 0.05
    before = run.simulation.position
    for _ in range(100):
        run.under((0.0, -20.0, 0.0))
    assert np.abs(run.simulation.position - before).max() > 0.02


def test_a_free_motion_is_no_contact():
    run = Run(on_contact='stop')
    run.set_off()
    while run.now < 103.0:
        assert run.under() is None
    assert run.stack.pipeline.reference_status == 'holding'


def test_a_payload_that_is_set_begins_anew():
    run = Run(on_contact='report')
    run.set_off()
    until_contact(run, (0.0, -40.0, 0.0))
    apply_change(run.stack, Payload(1.0))
    assert not run.stack.monitor.torque.any()
    assert run.stack.monitor.contact is None
