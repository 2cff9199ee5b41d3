# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo that hits something on its way: it stops, and no energy comes from nowhere."""

from __future__ import annotations

import numpy as np
import pytest
from control_arm import to
from robots import public_urdf

from robodyn_ros import Payload, mass_matrix
from robodyn_ros.control.control_stack import apply_change, build_control_stack
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.simulation.arm import ArmSimulation

pytest.importorskip('mujoco')

TIME_STEP = 2e-3
BRAKING = 2.0 + 0.3  # the longest brake, and its last errors [s]
PANDA = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
START = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])


class Run:
    """The Panda on its way, stepped by its command pipeline."""

    def __init__(self, **settings):
        urdf = public_urdf('panda.urdf')
        self.stack = build_control_stack(
            ControlSettings(
                urdf_file=str(urdf),
                **PANDA,
                mode='computed_torque',
                contact_threshold_moving=(4.0,),
                contact_threshold_stationary=(6.0,),
                **settings,
            ),
            None,
        )
        self.model = self.stack.model
        self.simulation = ArmSimulation.from_urdf(urdf, **PANDA, time_step=TIME_STEP)
        self.simulation.reset(START)
        self.action = settings.get('on_contact', 'report')
        self.torque, self.time, self.work = None, 0.0, 0.0
        self.stack.pipeline.enable(0.0)

    def step(self, force=(0.0, 0.0, 0.0)):
        """Make a control cycle and a step under a force; return a contact that begins."""
        simulation, stack = self.simulation, self.stack
        self.time += TIME_STEP
        before = simulation.velocity
        stack.joint_states.receive(
            self.model.joint_names, simulation.position, before, received=self.time
        )
        state = stack.joint_states.take()
        acting = self.torque
        self.torque = stack.pipeline.step(state, self.time).torque
        contact = stack.monitor.update(state, acting, stack.pipeline.settings)
        if contact is not None and not contact.is_over:
            stack.pipeline.react_to_contact(self.action, str(contact))
        simulation.push([*force, 0.0, 0.0, 0.0])
        external = simulation.external_torque
        simulation.step(self.torque)
        self.work += TIME_STEP * external @ (0.5 * (before + simulation.velocity))
        return contact if contact is not None and not contact.is_over else None

    def kinetic_energy(self):
        q, qd = self.simulation.position, self.simulation.velocity
        return 0.5 * qd @ mass_matrix(self.model, q) @ qd

    def set_off(self):
        for _ in range(10):
            self.step()
        goal = START + [1.2, 0.4, 0.0, 0.4, 0.0, 0.0, 0.0]
        self.stack.pipeline.follow(to(goal, 2.0, self.model.joint_names))
        while self.time < 1.0:
            assert self.step() is None


def until_contact(run, force):
    for _ in range(200):
        contact = run.step(force)
        if contact is not None:
            return contact
    raise AssertionError('no contact')


# 60 N fling a joint past 1.5 times its velocity limit: damped from there, nothing is held.
@pytest.mark.repeats(check=1)
@pytest.mark.parametrize(
    ('force', 'status'),
    [
        ((0.0, -40.0, 0.0), 'holding'),
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
    energy, work, detected = run.kinetic_energy(), run.work, run.time
    pushed_until = run.time + 0.2
    while run.time < detected + BRAKING:
        run.step(force if run.time < pushed_until else (0.0, 0.0, 0.0))
        gained = run.kinetic_energy() - energy
        assert gained <= max(run.work - work, 0.0) + 0.02 * energy + 0.05
    assert np.abs(run.simulation.velocity).max() < 0.01
    assert run.stack.pipeline.reference_status == status


def test_report_goes_on():
    run = Run(on_contact='report')
    run.set_off()
    until_contact(run, (0.0, -40.0, 0.0))
    assert run.stack.pipeline.reference_status == 'moving'
    assert run.stack.pipeline.last_fault == ''


def test_float_comes_to_rest_and_may_be_moved_by_hand():
    run = Run(on_contact='float', max_following_error=0.0)
    run.set_off()
    until_contact(run, (0.0, -40.0, 0.0))
    assert run.stack.pipeline.reference_status == 'none'
    end = run.time + 3.0
    while run.time < end:
        run.step()
    assert np.abs(run.simulation.velocity).max() < 0.05
    before = run.simulation.position
    for _ in range(100):
        run.step((0.0, -20.0, 0.0))
    assert np.abs(run.simulation.position - before).max() > 0.02


def test_a_free_motion_is_no_contact():
    run = Run(on_contact='stop')
    run.set_off()
    while run.time < 3.0:
        assert run.step() is None
    assert run.stack.pipeline.reference_status == 'holding'


def test_a_payload_that_the_node_is_told_of_begins_anew():
    run = Run(on_contact='report')
    run.set_off()
    until_contact(run, (0.0, -40.0, 0.0))
    apply_change(run.stack, Payload(1.0))
    assert not run.stack.monitor.torque.any()
    assert run.stack.monitor.contact is None
