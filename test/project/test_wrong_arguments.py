# SPDX-License-Identifier: Apache-2.0
"""Mistakes that are easily made in a notebook are answered in words, never by a raw error."""

import importlib
import inspect
import re
from dataclasses import replace

import numpy as np
import pytest
from refusals import refusal
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.errors import InvalidArgument, ModelMismatch, WrongType

ROOMS = ('', '.analysis', '.compiled', '.identification', '.motions', '.parameters', '.simulation')


def functions_of_a_model():
    """Yield every public function that takes a model first."""
    for name in ROOMS:
        room = importlib.import_module(f'robodyn_ros{name}')
        for key in getattr(room, '__all__', vars(room)):
            function = getattr(room, key)
            if inspect.isfunction(function):
                names = list(inspect.signature(function).parameters)
                if names[:1] == ['model']:
                    yield f'{room.__name__}.{key}', function


@pytest.fixture(scope='module')
def arm():
    return rd.RobotModel.from_urdf(two_link_urdf())


def test_what_is_no_model_is_refused_by_name():
    assert issubclass(WrongType, TypeError)
    functions = list(functions_of_a_model())
    assert len(functions) > 40
    for name, function in functions:
        parameters = list(inspect.signature(function).parameters.values())
        others = [None for each in parameters[1:] if each.default is each.empty]
        for wrong in ('arm.urdf', 1.8, None, [0.0, 0.0], np.zeros(2)):
            said = refusal(WrongType, function, wrong, *others)
            assert re.search('argument model: .*; allowed: a RobotModel', said), (name, wrong)


MISTAKES = {
    # What is called with the arm, and how it is answered.
    'q is missing': (
        lambda arm: rd.gravity_torque(arm, None),
        InvalidArgument,
        'argument q: None',
    ),
    'q is a text': (
        lambda arm: rd.gravity_torque(arm, '0 0'),
        InvalidArgument,
        "argument q: '0 0'",
    ),
    'q in words': (lambda arm: rd.gravity_torque(arm, ['90deg', '0']), InvalidArgument, "'90deg'"),
    'q by name': (lambda arm: rd.gravity_torque(arm, {'j1': 0}), InvalidArgument, 'argument q'),
    'q is a column': (
        lambda arm: rd.gravity_torque(arm, np.zeros((2, 1))),
        InvalidArgument,
        r'shape \(2, 1\); allowed: shape \(2,\) or \(N, 2\)',
    ),
    'q is too long': (lambda arm: rd.mass_matrix(arm, [0] * 7), InvalidArgument, r'shape \(7,\);'),
    'q is ragged': (
        lambda arm: rd.gravity_torque(arm, [[0, 0], [0]]),
        InvalidArgument,
        'argument q',
    ),
    'arguments swapped': (
        lambda arm: rd.gravity_torque([0.0, 0.0], arm),
        WrongType,
        "argument model: 'list'; allowed: a RobotModel, as RobotModel.from_urdf",
    ),
    'compiled as a model': (
        lambda arm: rd.gravity_torque(rd.compile_model(arm), [0, 0]),
        WrongType,
        "argument model: 'CompiledModel'",
    ),
    'a mass as a payload': (
        lambda arm: arm.with_payload(1.8),
        WrongType,
        r'argument payload: 1.8; allowed: a Payload, as Payload\(1.8, ',
    ),
    'a mass as a payload, compiled': (
        lambda arm: rd.compile_model(arm, runtime=['payload']).with_payload(1.8),
        WrongType,
        'argument payload: 1.8',
    ),
    'a mass as a payload of ranges': (
        lambda arm: rd.analysis.ranges(arm, payload=1.8),
        WrongType,
        'argument payload: 1.8',
    ),
    'a mass in words': (lambda arm: rd.Payload('1.8 kg'), InvalidArgument, 'payload.mass'),
    'a mass left out': (lambda arm: rd.Payload(None), InvalidArgument, 'payload.mass: None'),
    'inertia as three moments': (
        lambda arm: rd.Payload(1.0, inertia=[1, 1, 1]),
        InvalidArgument,
        r'payload.inertia: shape \(3,\); allowed: shape \(3, 3\)',
    ),
    'a link by number': (lambda arm: rd.Payload(1.0, link=2), WrongType, 'payload.link: 2'),
    'tip links': (
        lambda arm: rd.RobotModel.from_urdf(two_link_urdf(), tip_link=['link2', 'link9']),
        rd.NoSuchName,
        "tip_link: 'link9'",
    ),
    'a tip link by number': (
        lambda arm: rd.RobotModel.from_urdf(two_link_urdf(), tip_link=2),
        WrongType,
        'tip_link: 2',
    ),
    'gravity as a number': (lambda arm: arm.with_gravity(-9.81), InvalidArgument, 'gravity'),
    'locked positions as a list': (
        lambda arm: rd.RobotModel.from_urdf(two_link_urdf(), locked_positions=[0.0]),
        WrongType,
        "argument locked_positions: 'list'; allowed: a mapping, as ",
    ),
    'a path as a chain': (
        lambda arm: rd.RobotModel.from_chain('arm.urdf'),
        WrongType,
        "argument chain: 'arm.urdf'; allowed: a Chain, as ",
    ),
    'a model as a chain': (lambda arm: rd.report.arm_facts(arm, arm), WrongType, 'argument chain'),
    'a function that is a text': (
        lambda arm: rd.compile_model(arm, kernels='gravity_torque'),
        WrongType,
        "argument kernels: 'gravity_torque'; allowed: several: names, as ",
    ),
    'one run-time input': (
        lambda arm: rd.compile_model(arm, runtime='payload'),
        WrongType,
        "argument runtime: 'payload'",
    ),
    'a tolerance in words': (
        lambda arm: rd.base_parameters(arm, tolerance='1e-9'),
        WrongType,
        "argument tolerance: '1e-9'; allowed: a number",
    ),
    'an error in words': (
        lambda arm: rd.analysis.simplified_model(arm, '2 %'),
        WrongType,
        "argument error: '2 %'; allowed: a number",
    ),
    'limits as a list': (
        lambda arm: rd.analysis.ranges(arm, limits=[(-1, 1), (-1, 1)]),
        WrongType,
        "argument limits: 'list'; allowed: a mapping, as ",
    ),
    'one limit': (
        lambda arm: rd.analysis.ranges(arm, limits={arm.joint_names[0]: 3}),
        InvalidArgument,
        'allowed: a lower and an upper one',
    ),
    'a coefficient that is not there': (
        lambda arm: rd.analysis.inertial_characteristics(arm)['d_99'],
        rd.InvalidArgument,
        "coefficient: 'd_99'; allowed: d_11, ",
    ),
    'a path as a recording': (
        lambda arm: rd.identification.identify(arm, 'motion.mcap'),
        WrongType,
        "argument recordings: 'motion.mcap'; allowed: a Recording, as ",
    ),
    'no recording': (
        lambda arm: rd.identification.identify(arm, []),
        InvalidArgument,
        'allowed: one recording at least',
    ),
    'a duration in words': (
        lambda arm: rd.identification.excitation(arm, '20 s'),
        WrongType,
        "argument duration: '20 s'; allowed: a number",
    ),
    'an obstacle as a tuple': (
        lambda arm: rd.identification.excitation(
            arm.with_gravity((0, 0, -9.81)),
            5.0,
            obstacles=[(0, 0, 1)],
            limits=rd.identification.motion_limits(arm, effort=[9, 9], velocity=[1, 1]),
        ),
        WrongType,
        r"argument obstacles\[0\]: 'tuple'; allowed: a HalfSpace or a Box",
    ),
    'progress as a switch': (
        lambda arm: rd.identification.excitation(arm, 5.0, progress=True),
        WrongType,
        'argument progress: True; allowed: a function of two arguments',
    ),
}


def test_a_mistake_is_answered_by_what_is_wrong_and_what_is_allowed(arm):
    for mistake, (call, kind, words) in MISTAKES.items():
        assert re.search(words, refusal(kind, call, arm)), mistake


def test_integers_and_truth_values_are_numbers(arm):
    expected = rd.gravity_torque(arm, [1.0, 0.0])
    for q in ([1, 0], [True, False], np.array([1, 0], dtype=np.int8)):
        assert (rd.gravity_torque(arm, q) == expected).all()


def test_what_compiled_code_was_not_made_for_is_named_with_both_values(arm):
    compiled = rd.compile_model(arm)
    for other, words in (
        (
            arm.with_gravity((0, 0, -1.62)),
            r'model.gravity\[2\]: -1.62; allowed: -9.81, as compiled',
        ),
        (
            arm.with_payload(rd.Payload(1.5)),
            r"model.inertial_parameters\[1, 9\], of joint 'joint2'",
        ),
        (arm.with_rotor_inertia([0.0, 0.5]), r'model.rotor_inertia\[1\].*: 0.5; allowed: 0.0, as'),
    ):
        with pytest.raises(ModelMismatch, match=words) as caught:
            compiled.with_model(other)
        assert len(str(caught.value)) < 200
    with pytest.raises(ModelMismatch, match='model.n: 1; allowed: 2'):
        compiled.with_model(rd.RobotModel.from_urdf(two_link_urdf(), tip_link='link1'))


def test_a_transform_that_was_compiled_in_is_none_of_a_joint():
    # As many rows as this arm has joints.
    link = '<link name="l{0}"/><joint name="j{0}" type="continuous"><parent link="l{1}"/>'
    link += '<child link="l{0}"/><origin xyz="0.3 0 0"/><axis xyz="0 {2} {3}"/></joint>'
    text = '<robot name="four"><link name="l0"/>'
    text += ''.join(link.format(i, i - 1, i % 2, (i + 1) % 2) for i in range(1, 5)) + '</robot>'
    arm = rd.RobotModel.from_urdf_text(text)
    other = replace(arm, dh=replace(arm.dh, tip_transform=arm.dh.tip_transform * 2.0))
    with pytest.raises(ModelMismatch, match=r'model.dh.tip_transform\[0, 0\]: '):
        rd.compile_model(arm, kernels=['gravity_torque']).with_model(other)
