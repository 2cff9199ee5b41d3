# SPDX-License-Identifier: Apache-2.0
"""The shared library of an arm: the core's numbers, under loads, and no name as source code."""

import ctypes
import re
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest
from compiled_arms import coupled_arm, identified_arm, public_arm, random_arm, tree_arm
from oracles import random_states
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.compiled import export_shared
from robodyn_ros.compiled.c import shared
from robodyn_ros.compiled.c.shared import SharedModel, SharedPayload, shared_source
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.dynamics.friction import drive_velocity
from robodyn_ros.errors import InvalidArgument, NoBackend
from robodyn_ros.kinematics import kinematics_digest

pytestmark = pytest.mark.skipif(not shutil.which('cc'), reason='there is no C compiler')
ARMS = {
    'panda': lambda: public_arm('panda'),
    'tiago': lambda: public_arm('tiago'),
    'random': lambda: random_arm(3, rotors=True),
    'identified': lambda: identified_arm(4),
    'coupled': lambda: coupled_arm(4),
    'tree': lambda: tree_arm(2, rotors=True),
    'two links': lambda: rd.RobotModel.from_urdf(two_link_urdf()),
}
GRAVITY = (1.0, -2.0, 9.0)


class Library:
    """A model's functions on arrays, as a program in C would call them."""

    def __init__(self, arm, folder, **options):
        self.path, self.source, self.header = export_shared(arm, folder, **options)
        function = ctypes.CDLL(str(self.path)).robodyn_model_v5
        function.restype = ctypes.POINTER(SharedModel)
        self.model = function().contents
        self.load = np.empty(self.model.load_size)
        self.tips = self.model.tip_links[: self.model.tips]
        assert self.carry() is None

    def carry(self, payload=None, gravity=None):
        given = None
        if payload is not None:
            inertia = np.asarray(payload.inertia)[np.triu_indices(3)]
            tip = self.tips.index(payload.link.encode())
            given = SharedPayload(payload.mass, (*payload.center_of_mass,), (*inertia,), tip)
        wanted = None if gravity is None else _pointer(np.array(gravity, dtype=float))
        return self.model.make_load(given, wanted, _pointer(self.load)).element

    def __call__(self, name, size, *inputs, is_loaded=True):
        result = np.empty(size)
        given = [each if isinstance(each, int) else _pointer(np.array(each)) for each in inputs]
        first = [_pointer(self.load)] if is_loaded else []
        getattr(self.model, name)(*first, *given, _pointer(result))
        return result


def _pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def assert_same(found, expected):
    scale = max(np.abs(expected).max(), 1.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * scale)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('arm', ARMS.values(), ids=ARMS)
def test_every_function_gives_what_the_core_does_under_every_load(arm, tmp_path):
    arm = arm()
    library, n = Library(arm, tmp_path), arm.n
    tensor = [[0.3, 0.01, 0], [0.01, 0.3, 0.02], [0, 0.02, 0.2]]
    loads = [(None, None), (None, GRAVITY)]
    for tip in arm.tip_links:
        payload = rd.Payload(3.0, (0.1, -0.2, 0.05), tensor, link=tip)
        point = rd.Payload(1.0, (0.0, 0.0, 0.1), link=tip)
        loads += [(payload, None), (payload, GRAVITY), (point, None)]
    for carried, gravity in loads:
        loaded = arm if carried is None else arm.with_payload(carried)
        loaded = loaded if gravity is None else loaded.with_gravity(gravity)
        assert library.carry(carried, gravity) is None
        for q, qd, qdd in zip(*random_states(arm, 5, seed=1)):
            torque = rd.inverse_dynamics(loaded, q, qd, qdd)
            assert_same(library('inverse_dynamics', n, 1, q, qd, qdd), torque)
            assert_same(library('gravity_torque', n, q), rd.gravity_torque(loaded, q))
            assert_same(library('mass_matrix', (n, n), q), rd.mass_matrix(loaded, q))
    for q, qd, qdd in zip(*random_states(arm, 5, seed=2)):
        result = np.empty(n)
        direction = np.tanh(drive_velocity(arm, qd) / 0.03)
        library.model.friction_torque(*map(_pointer, (qd, direction, qdd, result)))
        assert_same(result, smooth_friction_torque(arm, 0.03, qd, qdd))
        for k, tip in enumerate(arm.tip_links):
            rows = library('jacobian', (6, n), k, q, is_loaded=False)
            assert_same(rows, rd.jacobian(arm, q, tip))
            pose = library('forward_kinematics', (4, 4), k, q, is_loaded=False)
            assert_same(pose, rd.forward_kinematics(arm, q, tip))


def test_rows_are_those_of_one_state_each(tmp_path):
    arm = public_arm('panda')
    library, states = Library(arm, tmp_path), random_states(arm, 5, seed=4)
    assert_same(library('inverse_dynamics', (5, 7), 5, *states), rd.inverse_dynamics(arm, *states))


def test_torques_are_those_of_pinocchio(tmp_path):
    pinocchio = pytest.importorskip('pinocchio')
    from robots import public_urdf

    path = public_urdf('ur5_robot.urdf')
    theirs = pinocchio.buildModelFromUrdf(str(path))
    data, arm = theirs.createData(), public_arm('ur5')
    library = Library(arm, tmp_path)
    for q, qd, qdd in zip(*random_states(arm, 5, seed=3)):
        expected = pinocchio.rnea(theirs, data, q, qd, qdd)
        assert_same(library('inverse_dynamics', arm.n, 1, q, qd, qdd), expected)


def test_it_says_whose_model_it_is(tmp_path):
    arm = public_arm('panda')
    model = Library(arm, tmp_path, generator='the test').model
    assert (model.abi, model.joints, model.generator) == (5, 7, b'the test')
    assert tuple(model.joint_names[k].decode() for k in range(7)) == arm.joint_names
    assert (model.base_link.decode(), model.tips) == (arm.base_link, 1)
    assert model.tip_links[0].decode() == arm.tip_link
    assert model.kinematics.decode() == kinematics_digest(arm)
    assert [model.effort_limits[k] for k in range(7)] == arm.effort_limits.tolist()
    assert [model.velocity_limits[k] for k in range(7)] == arm.velocity_limits.tolist()
    assert [model.position_limits[k] for k in range(14)] == arm.position_limits.ravel().tolist()
    assert [model.gravity[k] for k in range(3)] == [0.0, 0.0, -9.81]


def test_it_says_which_of_a_load_s_numbers_are_in_another_unit(tmp_path):
    arm = public_arm('panda')
    library = Library(arm, tmp_path)
    before = library.load.copy()
    heaviest = max(100.0, 10.0 * arm.inertial_parameters[:, 9].sum())
    largest = max(1.0, np.abs([arm.dh.a, arm.dh.d]).sum())
    wide = (4.0 * largest**2, 0, 0, 4.0 * largest**2, 0, 4.0 * largest**2)
    for payload, gravity, element, value, limit in (
        ((1.0, (0, 0, 0), 6 * (0,)), (30, 0, 40.5), b'gravity strength', 50.401, 50.0),
        ((1e4, (0, 0, 0), 6 * (0,)), (0, 0, 0), b'payload mass', 1e4, heaviest),
        ((1.0, (0, 0, 0), wide), (0, 0, 0), b'payload radius of gyration', 2 * largest, largest),
        ((1.0, (0, 9, 12), 6 * (0,)), (0, 0, 0),
         b'payload centre of mass, distance from the link', 15.0, largest),
    ):  # fmt: skip
        refused = library.model.make_load(
            ctypes.byref(SharedPayload(*payload)),
            _pointer(np.array(gravity, dtype=float)),
            _pointer(library.load),
        )
        assert refused.element == element
        assert (refused.value, refused.limit) == pytest.approx((value, limit), rel=1e-4)
    np.testing.assert_array_equal(library.load, before)


def test_its_reach_is_farther_than_any_position_and_that_of_a_straight_arm_at_most(tmp_path):
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    found = Library(arm, tmp_path).model.reach
    angles = np.stack(np.meshgrid(*2 * [np.linspace(-np.pi, np.pi, 91)]), -1).reshape(-1, 2)
    distance = np.linalg.norm(rd.forward_kinematics(arm, angles)[:, :3, 3], axis=1)
    assert distance.max() <= found <= distance.max() * 1.001


def test_what_has_no_limit_has_an_infinite_one(tmp_path):
    text = two_link_urdf().replace('type="revolute"', 'type="continuous"')
    arm = rd.RobotModel.from_urdf(re.sub('<limit[^>]*>', '', text))
    model = Library(arm, tmp_path).model
    assert [model.position_limits[k] for k in range(4)] == [-np.inf, np.inf, -np.inf, np.inf]
    assert model.effort_limits[0] == np.inf


@pytest.mark.repeats(check=2)
@pytest.mark.parametrize(
    ('payload', 'gravity'),
    [
        ((-1.0, (0, 0, 0), (0, 0, 0, 0, 0, 0)), None),
        ((np.nan, (0, 0, 0), (0, 0, 0, 0, 0, 0)), None),
        ((1.0, (0, np.inf, 0), (0, 0, 0, 0, 0, 0)), None),
        ((1.0, (0, 0, 0), (1, 0, 0, 1, 0, 3)), None),
        ((1.0, (0, 0, 0), (-1, 0, 0, 1, 0, 1)), None),
        ((1.0, (0, 0, 0), (1, 5, 0, 1, 0, 1)), None),
        ((0.0, (0, 0, 0), (1, 0, 0, 1, 0, 1)), None),
        ((1.0, (0, 0, 0), (0, 0, 0, 0, 0, 0)), (0.0, np.nan, 0.0)),
        ((1.0, (0, 0, 0), (0, 0, 0, 0, 0, 0), 1), None),  # there is one tip
        ((1.0, (0, 0, 0), (0, 0, 0, 0, 0, 0), -1), None),
    ],
)
def test_a_load_that_no_body_is_is_refused_and_the_old_one_stays(payload, gravity, tmp_path):
    library = Library(rd.RobotModel.from_urdf(two_link_urdf()), tmp_path)
    before = library.load.copy()
    wanted = None if gravity is None else _pointer(np.array(gravity))
    given = SharedPayload(*payload)
    refused = library.model.make_load(ctypes.byref(given), wanted, _pointer(library.load))
    assert refused.element is not None
    np.testing.assert_array_equal(library.load, before)


def test_no_mass_is_no_load_wherever_it_is(tmp_path):
    library = Library(rd.RobotModel.from_urdf(two_link_urdf()), tmp_path)
    before = library.load.copy()
    nothing = SharedPayload(0.0, (1e200, 0.0, 1e200), 6 * (0.0,))
    refused = library.model.make_load(ctypes.byref(nothing), None, _pointer(library.load))
    assert refused.element is None
    np.testing.assert_array_equal(library.load, before)


def test_names_of_the_urdf_stay_out_of_the_source(tmp_path):
    hostile = 'x"}; */ system(1); /* é'
    text = two_link_urdf().replace('joint1', hostile.replace('"', '&quot;'))
    text = text.replace('link2', 'HOSTILE')
    arm = rd.RobotModel.from_urdf(text)
    library = Library(arm, tmp_path)
    for word in ('system', 'HOSTILE'):
        assert word not in library.source.read_text()
    assert library.model.joint_names[0].decode() == hostile
    assert library.model.tip_links[0].decode() == arm.tip_link


def test_its_one_symbol_has_the_version_in_its_name(tmp_path):
    if not shutil.which('nm'):
        pytest.skip('there is no nm')
    library = Library(public_arm('ur5'), tmp_path)
    said = subprocess.run(
        ['nm', '-D', '--defined-only', library.path], capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r' T (\w+)', said) == ['robodyn_model_v5']
    header = files('robodyn_ros.compiled.c').joinpath('robodyn_model.h').read_text()
    assert int(re.search(r'define ROBODYN_MODEL_ABI (\d+)', header)[1]) == library.model.abi
    assert shared.SYMBOL == re.search(r'SYMBOL "(\w+)"', header)[1]


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('arm', ARMS.values(), ids=ARMS)
def test_the_source_is_strict_c99_and_allocates_nothing(arm, tmp_path):
    (tmp_path / 'arm.c').write_text(shared_source(arm()))
    header = files('robodyn_ros.compiled.c').joinpath('robodyn_model.h').read_text()
    (tmp_path / 'robodyn_model.h').write_text(header)
    flags = ['-std=c99', '-Wall', '-Wextra', '-Werror', '-pedantic', '-O1', '-shared', '-fPIC']
    subprocess.run(
        ['cc', *flags, 'arm.c', '-o', 'arm.so', '-lm'], check=True, cwd=tmp_path, timeout=60
    )
    assert not re.search(r'\b(malloc|calloc|goto|printf)\b', (tmp_path / 'arm.c').read_text())


@pytest.mark.parametrize(
    ('right', 'wrong'),
    [
        ('load[3 + k] += given', 'load[3 + k] -= given'),
        ('x * gravity_map[k]', 'y * gravity_map[k]'),
        ('no such line', 'a wrong constant in a kernel'),
    ],
)
def test_a_library_that_computes_something_else_is_refused(right, wrong, tmp_path, monkeypatch):
    original = shared.shared_source

    def broken(*arguments):
        text = original(*arguments)
        if right not in text:
            text, changed = re.subn(r'( out\[0\]\[0\] = )', r'\1 1e-3 + ', text, count=1)
            assert changed
            return text
        return text.replace(right, wrong, 1)

    monkeypatch.setattr(shared, 'shared_source', broken)
    with pytest.raises(NoBackend, match='wrong results'):
        export_shared(rd.RobotModel.from_urdf(two_link_urdf()), tmp_path)


@pytest.mark.parametrize('name', ['', 'Arm', '../arm', 'a;b', 'x' * 40, 'arm\n'])
def test_file_name_must_be_an_identifier(tmp_path, name):
    with pytest.raises(InvalidArgument, match='identifier'):
        export_shared(public_arm('ur5'), tmp_path, name=name)
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv('CC', 'no-such-compiler')
    with pytest.raises(NoBackend):
        export_shared(rd.RobotModel.from_urdf(two_link_urdf()), tmp_path)
