# SPDX-License-Identifier: Apache-2.0
"""The public names, their signatures and docstrings, and what models guarantee."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros import errors, identification
from robodyn_ros.record import Record

# What users may rely on, as they read it: names, order, kinds and defaults. Whoever changes a line
# writes it into CHANGELOG.rst under "Breaking".
FUNCTIONS = """
base_parameters(model, *, tolerance=1e-09, rotor_inertia=None, friction=False)
bias_torque(model, q, qd)
christoffel_symbols(model, q)
compile_model(model, *, kernels=None, runtime=(), payload_links=None)
coriolis_matrix(model, q, qd)
forward_dynamics(model, q, qd, tau)
forward_dynamics_derivatives(model, q, qd, tau)
forward_kinematics(model, q, link=None)
friction_torque(model, qd, *, rigid_torque=None)
gravity_torque(model, q)
inverse_dynamics(model, q, qd, qdd, *, method='newton_euler', tip_wrench=None)
inverse_dynamics_derivatives(model, q, qd, qdd)
jacobian(model, q, link=None)
linearization(model, q, qd, tau)
mass_matrix(model, q)
regressor(model, q, qd, qdd, *, rotor_inertia=False, friction=False)
retime(model, waypoints, *, acceleration_limits=None, jerk_limits=None, effort_margin=0.0, \
effort_limits=None, rms_effort_limits=None, velocity_limits=None, start_velocity=None, \
end_velocity=None, corners='spline', tolerance=0.0, parameters=None, grid_points=200)
"""
CONSTRUCTORS = """
DHTable(alpha, a, beta, theta, d, prismatic, base_transform, tip_transform, \
convention='modified', parents=<factory>, gamma=<factory>, b=<factory>, tips=<factory>)
Finding(code, level, element, value, message)
Payload(mass, center_of_mass=(0.0, 0.0, 0.0), inertia=<factory>, link=None)
RobodynError(element, value, allowed, choice=None, unit='')
"""
METHODS = """
BaseParameters.regressor(self, q, qd, qdd)
BaseParameters.text(self, lengths='numbers')
BaseParameters.to_inertial_parameters(self, values=None)
BaseParameters.to_rotor_inertia(self, values=None)
CompiledModel.library(self)
CompiledModel.with_gravity(self, gravity)
CompiledModel.with_model(self, model)
CompiledModel.with_payload(self, payload)
DHTable.standard(self)
RobotModel.from_chain(chain, *, gravity=None)
RobotModel.from_mjcf(path, *, base_link=None, tip_link=None, gravity=None, \
locked_positions=None, mimic='error', inferred_inertia='finding')
RobotModel.from_urdf(source, *, base_link=None, tip_link=None, gravity=None, \
locked_positions=None, mimic='error')
RobotModel.from_urdf_text(text, *, base_link=None, tip_link=None, gravity=None, \
locked_positions=None, mimic='error')
RobotModel.from_urdfpy(robot, *, base_link=None, tip_link=None, gravity=None, \
locked_positions=None, mimic='error')
RobotModel.with_gravity(self, gravity)
RobotModel.with_inertial_parameters(self, parameters)
RobotModel.with_payload(self, payload)
RobotModel.with_rotor_inertia(self, rotor_inertia)
RobotModel.with_tip(self, link)
TimedMotion.at(self, time)
"""
ATTRIBUTES = {
    'BaseParameters': 'columns conditioning count count_range'
    ' depends_on_tolerance expressions general_links names no_effect polynomials regrouping'
    ' residual standard standard_count tolerance values',
    'CompiledModel': 'base_regressor bias_torque christoffel_symbols coriolis_matrix'
    ' directed_friction_torque'
    ' forward_dynamics forward_dynamics_derivatives forward_kinematics friction_torque'
    ' gravity_torque inverse_dynamics inverse_dynamics_derivatives jacobian linearization'
    ' mass_matrix model n notes operation_counts regressor smooth_friction_torque'
    ' tip_wrench_torque',
    'DHTable': 'a alpha b base_transform beta branches carries constant_rotations constant_steps'
    ' convention d ends gamma is_chain n parents plane_rotations prismatic structure theta'
    ' tip_transform tip_transforms tips',
    'Finding': 'code element level line message value',
    'Payload': 'center_of_mass inertia link mass',
    'RobodynError': '',
    'RobotModel': 'base_link coulomb_friction coupled_friction coupled_rotor_inertia coupling'
    ' dh dry_friction effort_limits effort_offset ends findings'
    ' friction_curve gravity has_identified_friction inertial_parameters joint_names'
    ' link_frames load_friction n name parents'
    ' position_limits possible_payload possible_positions rotor_inertia'
    ' rotor_matrix tip_link tip_links unmodelled_joints velocity_limits viscous_friction',
    'TimedMotion': 'acceleration active_limits duration effort joint_names position progress'
    ' rms_effort slowed smoothing_cost time velocity waypoints',
}


def members(name: str) -> dict[str, object]:
    """Return what a public class defines, with its fields, but nothing private or inherited."""
    cls = getattr(rd, name)
    fields = dict.fromkeys(cls.__dict__.get('__annotations__', {}))
    return {
        key: inspect.getattr_static(cls, key, None)
        for key in {**fields, **vars(cls)}
        if not key.startswith('_')
    }


def is_method(name: str, key: str, member: object) -> bool:
    is_field = key in getattr(rd, name).__dict__.get('__annotations__', {})
    return not is_field and (inspect.isfunction(member) or isinstance(member, classmethod))


def public_methods() -> Iterator[str]:
    for name in ATTRIBUTES:
        for key, member in members(name).items():
            if is_method(name, key, member):
                yield f'{name}.{key}'


def found(dotted: str) -> object:
    result = rd
    for part in dotted.split('.'):
        result = getattr(result, part)
    return result


def signature(dotted: str) -> str:
    """Return the signature as it is written, without types."""
    bare = inspect.signature(found(dotted))
    parameters = [p.replace(annotation=p.empty) for p in bare.parameters.values()]
    return dotted + str(bare.replace(parameters=parameters, return_annotation=bare.empty))


def written(text: str) -> set[str]:
    return set(filter(None, text.splitlines()))


def names_in(text: str) -> set[str]:
    return {line.partition('(')[0] for line in written(text)}


def test_the_public_names_are_these():
    leaves = {
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.RobodynError)
    }
    assert set(rd.__all__) == names_in(FUNCTIONS) | set(ATTRIBUTES) | leaves
    assert len(rd.__all__) == len(set(rd.__all__))


def test_signature_is_as_written_here():
    for line in sorted(written(FUNCTIONS + CONSTRUCTORS + METHODS)):
        assert signature(line.partition('(')[0]) == line, line


def test_the_public_classes_have_these_attributes_and_methods_and_no_others():
    assert set(public_methods()) == names_in(METHODS)
    for name in ATTRIBUTES:
        attributes = {
            key: member
            for key, member in members(name).items()
            if not is_method(name, key, member)
        }
        assert set(attributes) == set(ATTRIBUTES[name].split()), name
        for key, member in attributes.items():
            if hasattr(member, '__get__') and not callable(member):
                assert inspect.getdoc(member), (name, key)
        docstring = inspect.getdoc(getattr(rd, name)) or ''
        explained = documented(docstring, 'Parameters') + documented(docstring, 'Attributes')
        fields = getattr(rd, name).__dict__.get('__annotations__', {})
        assert docstring and set(explained) >= {key for key in fields if key[0] != '_'}, name


def test_every_record_goes_to_json_and_back_and_shows_as_tables():
    methods = {name for name in vars(Record) if not name.startswith('_')}
    assert methods == {'as_dict', 'to_json', 'from_json', 'tables', 'as_text'}
    for name in ('BaseParameters', 'DHTable', 'Finding', 'Payload', 'RobotModel', 'TimedMotion'):
        assert issubclass(getattr(rd, name), Record), name


def documented(docstring: str, section: str) -> list[str]:
    """Return the names that a section of a NumPy docstring explains."""
    match = re.search(rf'^{section}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)', docstring, re.S | re.M)
    lines = re.findall(r'^(\S.*?)(?: : .*| \[.*)?$', match.group(1), re.M) if match else []
    return [name for line in lines for name in line.split(', ')]


def test_parameters_section_names_exactly_the_parameters():
    for name in sorted(names_in(FUNCTIONS + METHODS)):
        docstring = inspect.getdoc(found(name)) or ''
        parameters = [key for key in inspect.signature(found(name)).parameters if key != 'self']
        assert docstring, name
        assert documented(docstring, 'Parameters') == parameters, name


def test_an_arm_is_read_from_text_and_from_files_in_any_encoding(tmp_path):
    text = two_link_urdf()
    path = tmp_path / 'arm.urdf'
    path.write_bytes(text.encode('utf-16'))
    for source in (
        f'\n  {text}',
        f'\ufeff{text}',
        f'<?xml version="1.0" encoding="utf-8"?>{text}',
        f'<?xml version="1.0" encoding="ascii"?>{text.replace("link2", "línk2")}',
        path,
        str(path),
    ):
        arm = rd.RobotModel.from_urdf(source)
        assert arm.n == 2
        assert np.isinf(arm.effort_limits).all() and np.isinf(arm.velocity_limits).all()
        assert arm.position_limits.tolist() == [[-np.inf, np.inf]] * 2


ROOMS = 'analysis compiled errors identification motions report simulation'.split()


def test_rooms_are_reached_from_the_root_and_imported_where_they_are_needed():
    code = f"""
import sys
import robodyn_ros
print(*(name for name in dir(robodyn_ros) if name[:2] != '__'))
print(*sys.modules)
print(*(getattr(robodyn_ros, room).__name__ for room in {ROOMS!r}))
"""
    printed = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    offered, loaded, reached = (line.split() for line in printed.stdout.splitlines())
    assert offered == sorted([*rd.__all__, *ROOMS]), printed.stderr
    assert {'__doc__', '__file__', '__version__'} <= set(dir(rd))
    names = [f'robodyn_ros.{room}' for room in ROOMS]
    assert reached == names
    later = set(names) - {'robodyn_ros.compiled', 'robodyn_ros.errors'}
    assert 'robodyn_ros.model' in loaded
    assert set(loaded).isdisjoint({'scipy', 'matplotlib', 'rclpy', *later})


def test_a_room_that_does_not_exist_is_no_attribute():
    with pytest.raises(AttributeError, match="'kitchen'"):
        getattr(rd, 'kitchen')  # noqa: B009


def test_every_error_that_a_caller_meets_stands_in_errors():
    root = Path(rd.__file__).parent
    outside = {
        path.relative_to(root).as_posix()
        for path in root.rglob('*.py')
        if path != root / 'errors.py'
        and re.search(r'^class \w+\(RobodynError', path.read_text(encoding='utf-8'), re.M)
    }
    assert outside == {'compiled/c/cache.py'}  # caught where it is raised
    for leaf in vars(rd.errors).values():
        if inspect.isclass(leaf) and issubclass(leaf, rd.RobodynError):
            assert leaf.__doc__


def test_former_names_of_errors_still_catch_and_warn():
    for name in sorted(errors._FORMER_NAMES):
        with pytest.warns(DeprecationWarning, match=f'{name} is \\w+') as warned:
            now = getattr(rd, name)
        assert warned[0].filename == __file__, name
        for each in now if isinstance(now, tuple) else (now,):
            assert getattr(rd, each.__name__) is each, name


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_former_names_catch_what_they_caught():
    text = two_link_urdf()
    arm = rd.RobotModel.from_urdf(text)
    calls = {
        'WrongShape': lambda: rd.gravity_torque(arm, [0.0]),
        'UnknownOption': lambda: rd.inverse_dynamics(arm, *np.zeros((3, 2)), method='guess'),
        'ImplausiblePayload': lambda: rd.Payload(-1.0),
        'NoSuchLink': lambda: rd.RobotModel.from_urdf(text, tip_link='nowhere'),
        'NoSuchJoint': lambda: rd.RobotModel.from_urdf(text, locked_positions={'none': 0.0}),
        'MalformedXml': lambda: rd.RobotModel.from_urdf('<robot>'),
        'InvalidNumber': lambda: arm.with_rotor_inertia([-1.0, 0.0]),
        'MalformedIdentification': lambda: identification.Identification.load(Path(__file__)),
    }
    for name, call in calls.items():
        with pytest.raises(getattr(rd, name)):
            call()


def test_errors_of_arguments_are_value_errors_and_complex_numbers_are_refused():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    for wrong in ([0.0], [0.0, np.nan], [0.0, 1j], np.zeros(2, complex)):
        with pytest.raises(ValueError, match='argument q'):
            rd.gravity_torque(arm, wrong)
    with pytest.raises(ValueError, match='method'):
        rd.inverse_dynamics(arm, [0, 0], [0, 0], [0, 0], method='guess')


MIMIC = ('error', 'independent')
OPTIONS = {
    'RobotModel.from_urdf': {'mimic': MIMIC},
    'RobotModel.from_urdf_text': {'mimic': MIMIC},
    'RobotModel.from_urdfpy': {'mimic': MIMIC},
    'inverse_dynamics': {
        'method': (
            'newton_euler',
            'kane',
            'lagrange_euler',
            'generalized_dalembert',
            'lagrangian_coefficients',
        )
    },
    'compile_model': {'runtime': ('gravity', 'payload')},
    'BaseParameters.text': {'lengths': ('numbers', 'symbols', 'paper')},
    'DHTable': {'convention': ('modified', 'standard')},
    'Finding': {'level': ('warning', 'info')},
    'identification.identify': {
        'friction': ('auto',),
        'base_tilt': ('auto',),
        'coupling': ('auto',),
    },
    'identification.RecordingErrors.relative': {'model': ('urdf', 'urdf_friction', 'identified')},
    'analysis.simplified_model': {'parts': ('inertia', 'gravity'), 'measure': ('largest', 'mean')},
    'analysis.SimplifiedModel.export_c': {
        'functions': ('gravity_torque', 'mass_matrix', 'inverse_dynamics')
    },
    'simulation.simulated_motion': {
        'law': (
            *('gravity_compensation', 'feedforward', 'computed_torque'),
            *('joint_impedance', 'cartesian_impedance', 'free'),
        )
    },
}


def words_of(hint: object) -> tuple[str, ...]:
    """Return the words of the Literal types in a type."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(word for part in get_args(hint) for word in words_of(part))


def test_words_that_an_argument_takes_are_its_type():
    for name in OPTIONS:
        function = found(name)
        hints = get_type_hints(function)  # of a class, its fields
        assert {key: words_of(hints[key]) for key in OPTIONS[name]} == OPTIONS[name], name


IDENTIFICATION = {
    'identify': "model, recordings, *, validation=(), friction='auto', base_tilt='auto',"
    " coupling='auto', effort_scale=None, balance=None, prior_deviation=0.25, progress=None",
    'excitation': 'model, duration, *, harmonics=5, limits=None, obstacles=(), margin=0.05,'
    ' tip_height=None, friction_motion=False, poses=0, seed=0, prior_deviation=0.25, noise=None,'
    ' progress=None',
    'motion_limits': 'model, *, position=None, velocity=None, acceleration=None, effort=None',
    'check_commands': 'model, recordings',
    'examine_effort': 'model, recordings',
    'identify_drive_gains': 'model, unloaded, loaded=None, mass=None',
    'identify_payload': 'model, loaded, *, unloaded=None, effort_scale=None, progress=None',
    'with_driver_gravity': 'recording, model, effort_scale=1.0',
}
IDENTIFICATION_CLASSES = (
    'Box CandidateError CommandCheck CommandProbe DriveGains DriveTerms EffortFindings Excitation'
    ' HalfSpace Identification IdentifiedParameter InsufficientRecording JointCommand JointEffort'
    ' JointFriction LinkPoint MalformedData'
    ' ModelMismatch MotionLimits NoSolution PayloadEstimate Prediction Recording RecordingErrors'
)


def test_the_public_names_of_identification_are_these():
    assert set(identification.__all__) == {*IDENTIFICATION, *IDENTIFICATION_CLASSES.split()}


def test_functions_of_identification_take_these_arguments():
    for name in IDENTIFICATION:
        bare = inspect.signature(getattr(identification, name))
        parameters = [each.replace(annotation=each.empty) for each in bare.parameters.values()]
        written_out = str(bare.replace(parameters=parameters, return_annotation=bare.empty))
        assert written_out == f'({IDENTIFICATION[name]})', name
