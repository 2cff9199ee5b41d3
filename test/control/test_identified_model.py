# SPDX-License-Identifier: Apache-2.0
"""The parameter identified_model: the node commands what was identified, of its robot only."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from control_arm import torque_parts
from simulated_recordings import TrueArm

from robodyn_ros import base_parameters, inverse_dynamics
from robodyn_ros.control.control_stack import build_control_stack
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.errors import MalformedData, ModelMismatch, UnreadableSource
from robodyn_ros.identification import Identification, identify


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(1, 3)


@pytest.fixture(scope='module')
def found(arm) -> Identification:
    return identify(arm.urdf, [arm.recording(1, 12.0, rate=100.0)])


@pytest.fixture(scope='module')
def path(found, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp('identified') / 'identified.yaml'
    found.save(path)
    return str(path)


def settings(path: str, **others: object) -> ControlSettings:
    return ControlSettings(
        identified_model=path,
        base_link='base',
        tip_link='tip',
        effort_limits=(1000.0,),
        algorithm='newton_euler',
        **others,
    )


def test_the_identified_torques_are_commanded(arm, found, path):
    stack = build_control_stack(settings(path, mode='feedforward'), arm.text)
    q, qd, qdd = np.array([0.3, -0.2, 0.1]), np.array([0.5, 0.4, -0.6]), np.array([1.0, 2.0, -1.0])
    wanted = ReferenceState(q, qd, qdd, np.zeros(3))
    rigid = inverse_dynamics(found.model, q, qd, qdd)
    expected = rigid + smooth_friction_torque(found.model, 0.01, qd, rigid)
    found = torque_parts(stack.pipeline.law, np.zeros(3))(q, qd, wanted)
    np.testing.assert_allclose(found.total, expected)


def crossings(stack):
    """Return how often the core calls Python while a trajectory is followed, friction and all."""
    pipeline, names, zero = stack.pipeline, stack.model.joint_names, np.zeros(3)
    count, is_inside = 0, False

    def look(frame, event, called):
        nonlocal count, is_inside
        if event in ('c_call', 'c_return') and getattr(called, '__name__', '') == 'step':
            is_inside = event == 'c_call'
        count += is_inside and event == 'call'

    pipeline.enable(0.0)
    for cycle in range(1, 60):
        now = 0.01 * cycle
        stack.joint_states.receive(names, zero.tolist(), zero.tolist(), received=now)
        state = stack.joint_states.take()
        sys.setprofile(look)
        command = pipeline.step(state, now)
        sys.setprofile(None)
        if cycle == 3:
            goal = np.full((1, 3), 0.05)
            unknown = np.full_like(goal, np.nan)
            given = Trajectory(names, np.ones(1), goal, unknown, unknown, np.zeros_like(goal))
            pipeline.follow(given)
    assert command.parts.friction.all()
    return count


def test_from_law_to_command_a_compiled_model_calls_no_python(arm, path):
    given = settings(path, mode='computed_torque')
    stack = build_control_stack(replace(given, algorithm='compiled'), arm.text)
    if stack.torque.algorithm != 'compiled':
        pytest.skip('no C compiler')
    assert crossings(stack) == 0
    assert crossings(build_control_stack(given, arm.text)) > 100


def test_gravity_stays_the_parameters_own(arm, path):
    stack = build_control_stack(settings(path, gravity=(0.0, 9.81, 0.0)), arm.text)
    np.testing.assert_array_equal(stack.model.gravity, [0.0, 9.81, 0.0])


def test_deviations_are_known_for_each_base_parameter(arm, found, path):
    stack = build_control_stack(settings(path), arm.text)
    base = base_parameters(stack.arm)
    assert stack.parameter_deviation.shape == (base.count,)
    assert (stack.parameter_deviation > 0).all()
    # Those that no rotor is regrouped into are among the identified ones.
    known = {each.name: each.deviation for each in found.parameters}
    alone = [k for k, name in enumerate(base.names) if name in known and name[0] != 'Z']
    assert alone
    for k in alone:
        assert stack.parameter_deviation[k] == pytest.approx(known[base.names[k]], rel=1e-6)


def test_without_the_parameter_nothing_is_identified(arm):
    stack = build_control_stack(settings(''), arm.text)
    assert stack.parameter_deviation is None
    np.testing.assert_array_equal(stack.arm.inertial_parameters, arm.urdf.inertial_parameters)


def test_another_robot_is_refused_by_name(path):
    other = TrueArm.drawn(9, 3)
    with pytest.raises(ModelMismatch, match='DH table'):
        build_control_stack(settings(path), other.text)
    with pytest.raises(ModelMismatch, match='j4'):
        build_control_stack(settings(path), TrueArm.drawn(2, 4).text)


def test_no_such_file_and_another_file_are_refused(arm, tmp_path):
    with pytest.raises(UnreadableSource):
        build_control_stack(settings(str(tmp_path / 'none.yaml')), arm.text)
    (tmp_path / 'other.yaml').write_text('a: 1\n')
    with pytest.raises(MalformedData):
        build_control_stack(settings(str(tmp_path / 'other.yaml')), arm.text)
