# SPDX-License-Identifier: Apache-2.0
"""Every record compares by value, prints in one line, pickles, and cannot be written."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from multiprocessing import get_context

import numpy as np
import pytest
from robots import public_urdf, two_link_urdf

import robodyn_ros as rd
from robodyn_ros.analysis.joint_space import JointSpace
from robodyn_ros.control.contact import ContactThresholds, KnownResidual, TipWrench
from robodyn_ros.control.contact_thresholds import ObservedRecording
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.control.servo_offset import ServoGains, ServoOffset
from robodyn_ros.control.timed_motion import TimedMotion
from robodyn_ros.description.chain import Chain
from robodyn_ros.identification.command_check import CommandCheck, JointCommand
from robodyn_ros.identification.comparison import RecordingErrors
from robodyn_ros.identification.drive_gains import DriveGains
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.effort_examination import EffortFindings, JointEffort
from robodyn_ros.identification.exciting_motion.excitation import Excitation, Rest
from robodyn_ros.identification.exciting_motion.fourier import FourierMotion
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits
from robodyn_ros.identification.exciting_motion.obstacles import (
    Box,
    HalfSpace,
    LinkPoint,
    WatchedPoints,
)
from robodyn_ros.identification.exciting_motion.verification import LimitUse
from robodyn_ros.identification.identification import Identification, JointFriction
from robodyn_ros.identification.payload_estimate import PayloadEstimate
from robodyn_ros.identification.prediction import DriveModel, Prediction
from robodyn_ros.identification.recording import Recording
from robodyn_ros.monitoring.ageing import Condition, MotionEntry
from robodyn_ros.monitoring.motion_terms import MotionTerms
from robodyn_ros.motions import MotionSamples
from robodyn_ros.motions.point_to_point import suitable_motion
from robodyn_ros.record import ReadOnlyMapping, Record, read_only
from robodyn_ros.report.facts import CouplingMap, JointSpaceCoupling, MotionTorques
from robodyn_ros.simulation.closed_loop import SimulatedMotion
from robodyn_ros.simulation.drive import Drive

TIME = np.linspace(0.0, 1.0, 5)
TABLE = np.outer(TIME, [1.0, 2.0])


def loaded():
    """Return one of every kind of record of an arm that is read anew."""
    chain = Chain.from_urdf_text(two_link_urdf())
    model = rd.RobotModel.from_chain(chain)
    base = rd.base_parameters(model)
    motion_terms = MotionTerms(*[TIME] * 10, 0.0, 5.0, '')
    drive_model = DriveModel(model, DriveTerms(), TIME, base, TABLE, TIME, TIME)
    return {
        'chain': chain,
        'body': chain.bodies[1],
        'description': chain.description,
        'link': chain.description.links['link1'],
        'inertial': chain.description.links['link1'].inertial,
        'joint': chain.joints[0],
        'limit': chain.joints[0].limit,
        'finding': model.findings[0],
        'model': model,
        'dh': model.dh,
        'standard dh': model.dh.standard(),
        'payload': rd.Payload(1.0),
        'base parameters': base,
        'standard parameters': base.standard,
        'expression': base.expressions[0],
        'motion samples': MotionSamples.from_samples(TIME, TABLE),
        'point to point': suitable_motion(model),
        'simulated motion': SimulatedMotion(TIME, *[TABLE] * 4),
        'joint space': JointSpace(TIME, TIME + 1.0),
        'coupling map': CouplingMap((0, 1), (0, 1), TIME, TIME, TABLE),
        'coupling': JointSpaceCoupling(TABLE, TABLE, 7, ()),
        'load': Load(np.array([0.0, 0.0, -9.81]), (rd.Payload(1.0),)),
        'gravity change': GravityChange(np.array([0.0, 0.0, 9.81])),
        'fourier motion': FourierMotion(TIME, TABLE, TABLE, 3.0),
        'rest': Rest(TIME, 1.0),
        'motion limits': MotionLimits(TABLE, TIME, TIME, TIME),
        'limit use': LimitUse(TABLE, TIME, TIME, TIME, 0.1, 'link'),
        'half-space': HalfSpace((0, 0, 1), 0.5, ('link1',)),
        'box': Box((0, 0, 0), (1, 1, 1)),
        'link point': LinkPoint('link1', (0, 0, 1), 0.1),
        'watched points': WatchedPoints(('link1',), TIME, TABLE, TIME),
        'excitation': Excitation(
            ('j1', 'j2'), (Rest(TIME, 1.0),), MotionLimits(*[TIME] * 4), 0.1, (), 3.0, (), (), 0
        ),
        'recording': Recording(('j1', 'j2'), TIME, TABLE, TABLE, TABLE),
        'prediction': Prediction(TIME, TABLE, TABLE, TABLE, TABLE > 0.0, 5.0),
        'joint friction': JointFriction(TIME, TIME, TABLE, TIME, 0.1),
        'recording errors': RecordingErrors('training', False, ('j1', 'j2'), *[TIME] * 8),
        'drive model': drive_model,
        'identification': Identification(
            model, drive_model, (), TABLE, TIME, TIME, 0.1, 0.1, (), (), (), 5.0, True, ''
        ),
        'joint command': JointCommand('j1', 'j2', -1, -2.0, 0.1, 0.5, 0.001),
        'command check': CommandCheck((JointCommand('j1', 'j1', 1, 2.0, 0.1, 0.5, 0.0),), ()),
        'joint effort': JointEffort('j1', 'torque', 1.0, 0.1, 'included', 'none', *[0.0] * 5),
        'effort findings': EffortFindings(
            (JointEffort('j1', 'torque', 1.0, 0.1, 'included', 'removed', *[0.0] * 5),),
            0.01,
            0.001,
            (),
        ),
        'drive gains': DriveGains(
            ('j1', 'j2'), TIME[:2], TIME[:2], TIME[:2] > 0, TIME[:3], (), True
        ),
        'payload estimate': PayloadEstimate(
            rd.Payload(1.0), 0.1, TIME[:3], np.eye(3), 0.01, TABLE, ()
        ),
        'contact thresholds': ContactThresholds(TIME + 1.0, TIME + 2.0),
        'tip wrench': TipWrench(np.ones(6), np.ones(6), np.eye(6)[:2]),
        'observed recording': ObservedRecording(TIME, TABLE, TABLE, TABLE > 0.0),
        'motion terms': motion_terms,
        'motion': MotionEntry(motion_terms, 'a.csv', 0.0),
        'condition': Condition(('j1', 'j2'), (), *[TIME] * 8, 0.1, 0.1, 5, TABLE, TABLE),
        'timed motion': TimedMotion(('j1', 'j2'), TIME, *[TABLE] * 4, TIME, rms_effort=TIME),
        'known residual': KnownResidual(TIME, 1e-4),
        'servo gains': ServoGains(('j1', 'j2'), TIME[:2], TIME[:2]),
        'servo offset': ServoOffset(TIME, TABLE, TIME),
        'drive': Drive(model, 40.0, 8.0),
        'torques': MotionTorques(MotionSamples.from_samples(TIME, TABLE), True, *[TABLE] * 4),
    }


def test_every_record_of_arrays_is_tried_here():
    tried = {type(record) for record in loaded().values()}
    elsewhere = {
        each
        for each in Record.__subclasses__()
        if 'analysis' in each.__module__ or each.__module__.startswith('robodyn_ros.commands.')
    }
    assert set(Record.__subclasses__()) <= tried | elsewhere


@pytest.mark.longer
def test_records_equal_those_of_one_source_their_copies_and_what_json_brings_back():
    records, others = loaded(), loaded()
    for kind, record in records.items():
        assert record is not others[kind] and record == others[kind], kind
        assert hash(record) == hash(others[kind]), kind
        for twin in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record), copy.copy(record)):
            assert type(twin) is type(record), kind
            assert twin == record, kind
        if isinstance(record, Record):
            assert type(record).from_json(record.to_json()) == record, kind
        assert repr(record) and '\n' not in repr(record), kind
    # Nor is a cached property a part of it.
    assert records['dh'].constant_rotations.shape == (2, 3, 3)
    assert records['dh'] == others['dh']
    assert 'constant_rotations' not in vars(pickle.loads(pickle.dumps(records['dh'])))


def test_any_field_that_differs_makes_records_differ():
    model = replace(loaded()['model'], coupling=np.ones((1, 2)), unmodelled_joints=('neck',))
    for field in fields(model):
        value = getattr(model, field.name)
        if isinstance(value, np.ndarray):
            other = np.where(np.isinf(value), 1.0, value + 1.0)
        elif isinstance(value, str):
            other = value + '?'
        elif isinstance(value, tuple):
            other = value[:-1]
        elif isinstance(value, rd.DHTable):
            other = replace(value, a=value.a + 1e-12)
        else:
            body, placed = value['link2']
            other = {**value, 'link2': (body, placed + 1e-12)}
        assert replace(model, **{field.name: other}) != model, field.name
    assert model != 'model'


def test_arrays_stay_read_only_through_a_pickle_and_a_deep_copy():
    model = rd.RobotModel.from_urdf(two_link_urdf())
    for twin in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        with pytest.raises(ValueError, match='read-only'):
            twin.gravity[0] = 1.0
        with pytest.raises(ValueError, match='read-only'):
            twin.dh.alpha[0] = 1.0
        with pytest.raises(ValueError, match='read-only'):
            twin.link_frames['link2'][1][0, 0] = 2.0
        with pytest.raises(TypeError):
            twin.link_frames['link2'] = None


def test_a_record_leaves_the_callers_arrays_alone():
    arrays = [np.zeros(2) for _ in range(5)]
    table = rd.DHTable(*arrays, np.zeros(2, bool), np.eye(4), np.eye(4))
    arrays[1][0] = 1.0
    assert table.a.tolist() == [0.0, 0.0]
    whole = np.zeros((2, 3))
    view = read_only(whole[0])
    whole[0, 0] = 1.0
    assert view[0] == 0.0


def test_zero_has_no_sign_and_nan_equals_nan():
    samples = MotionSamples(TIME, *[np.zeros((5, 1))] * 3)
    negative = replace(samples, q=-samples.q)
    assert samples == negative
    assert hash(samples) == hash(negative)
    model = loaded()['model']
    assert model.with_gravity((0.0, 0.0, -9.81)) == model.with_gravity((-0.0, 0.0, -9.81))
    payloads = rd.Payload(0.0), rd.Payload(-0.0, center_of_mass=(-0.0, 0.0, 0.0))
    assert payloads[0] == payloads[1] and hash(payloads[0]) == hash(payloads[1])
    unknown = [replace(samples, q=np.full((5, 1), np.nan)) for _ in range(2)]
    assert unknown[0] == unknown[1]
    assert hash(unknown[0]) == hash(unknown[1])


def test_read_only_mapping_equals_the_dict_it_was_made_of():
    given = {'a': (1, np.eye(2)), 'b': (2, np.zeros(2))}
    mapping = ReadOnlyMapping(given)
    assert mapping == given
    assert mapping != {**given, 'b': (2, np.ones(2))}
    assert list(mapping) == ['a', 'b']
    assert len(mapping) == 2


@pytest.mark.longer
def test_models_go_through_a_pool_of_processes():
    model = rd.RobotModel.from_urdf(public_urdf('panda.urdf'), tip_link='panda_link8')
    with ProcessPoolExecutor(1, mp_context=get_context('spawn')) as pool:
        there = pool.submit(rd.RobotModel.with_gravity, model, (0, 0, -1.62)).result()
    assert there == model.with_gravity((0, 0, -1.62))


def test_models_say_in_one_line_what_they_are():
    text = two_link_urdf().replace('"two_link"', '"ur5e"')
    model = rd.RobotModel.from_urdf(text)
    assert repr(model) == str(model) == "RobotModel 'ur5e': 2R, 2.0 kg, base → link2, 2 warnings"
    limit = '<limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'
    sound = text.replace('"continuous"', '"prismatic"', 1).replace('</joint>', limit)
    assert repr(rd.RobotModel.from_urdf(sound)) == "RobotModel 'ur5e': PR, 2.0 kg, base → link2"
    assert repr(rd.base_parameters(model)) == "BaseParameters of 'ur5e': 4 of 20"
    odd = text.replace('"link2"', '"link&#10;2"')
    assert 'base → link\\n2' in repr(rd.RobotModel.from_urdf(odd))


def test_printed_base_parameters_are_formulas():
    lines = str(rd.base_parameters(rd.RobotModel.from_urdf(two_link_urdf()))).splitlines()
    assert 'link1' in lines
    (row,) = [line for line in lines if line.strip().startswith('ZZR1')]
    assert row.endswith('ZZ1 + m2')
