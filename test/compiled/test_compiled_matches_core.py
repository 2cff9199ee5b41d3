# SPDX-License-Identifier: Apache-2.0
"""Generated code gives what the core gives, on every arm, in every shape of arguments."""

import inspect
import pickle
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from compiled_arms import (
    PUBLIC_ARMS,
    as_tuple,
    core,
    coupled_arm,
    identified_arm,
    interpreted,
    largest_difference,
    public_arm,
    random_arm,
    states,
    tree_arm,
)
from compilers import is_there_a_compiler, needs_compiler
from convert_robots import leaves
from oracles import relative_difference
from robots import public_urdfs, random_chain, two_link_urdf

import robodyn_ros as rd
from robodyn_ros.compiled import KERNELS, RIGID_BODY, compile_model
from robodyn_ros.compiled.c import library
from robodyn_ros.compiled.symbolic import articulated_bodies
from robodyn_ros.compiled.symbolic.arm import symbolic_arm
from robodyn_ros.compiled.symbolic.equivalent_inertias import EquivalentInertias
from robodyn_ros.compiled.symbolic.expression import Graph, evaluated
from robodyn_ros.compiled.symbolic.kernels import KINDS, build_kernel
from robodyn_ros.compiled.symbolic.rigid_body import mass_matrix_from_base
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime
from robodyn_ros.description.urdf import description_of_urdf
from robodyn_ros.errors import InvalidArgument, ModelMismatch, NoSolution, RobodynError

EQUAL = 1e-10
DERIVATIVES = (
    'coriolis_matrix',
    'christoffel_symbols',
    'inverse_dynamics_derivatives',
    'forward_dynamics_derivatives',
)
QUICK = ('inverse_dynamics', 'coriolis_matrix', 'forward_dynamics', 'jacobian', 'base_regressor')
"""Compiled in the quick tests: enough for all that calls do."""
OF_TORQUE = ('forward_dynamics', 'forward_dynamics_derivatives', 'linearization')
FRICTION_KERNELS = [name for name in KERNELS if 'friction' in name]


@pytest.fixture(scope='module', autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROBODYN_CACHE_DIR', str(tmp_path_factory.mktemp('cache') / 'own'))
        yield


def assert_expressions_equal_core(arm, kernels=KERNELS):
    given = states(arm)
    for name in kernels:
        kernel = build_kernel(name, RunTime.of(arm, ()))
        arguments = [given[key] for key, _ in kernel.inputs]
        try:
            expected = core(name, arm, *arguments)
        except NoSolution:
            assert name in OF_TORQUE
            continue
        value = interpreted(kernel, given)
        assert largest_difference(value, expected) < tolerance(arm, name, given), name


def tolerance(arm, name, given):
    """Forward dynamics solves with M: both sides lose as many digits as its condition has."""
    if name not in OF_TORQUE:
        return EQUAL
    return max(EQUAL, 1e-14 * float(np.linalg.cond(rd.mass_matrix(arm, given['q'])).max()))


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('name', PUBLIC_ARMS)
def test_expressions_of_public_arm(name):
    assert_expressions_equal_core(public_arm(name))


@pytest.mark.slow
@pytest.mark.parametrize('path', public_urdfs(), ids=lambda path: path.name)
def test_expressions_of_every_public_chain(path):
    try:
        tips = leaves(description_of_urdf(path))
    except RobodynError:
        pytest.skip('no URDF')
    for tip in tips:
        try:
            arm = rd.RobotModel.from_urdf(path, tip_link=tip, mimic='independent')
        except RobodynError:
            continue
        assert_expressions_equal_core(arm, ('inverse_dynamics', 'mass_matrix'))


@pytest.mark.repeats(check=2, test=8)
@pytest.mark.parametrize('block', range(20))
@pytest.mark.parametrize('drawn', [random_arm, tree_arm])
def test_expressions_of_random_chains_and_trees(drawn, block):
    for seed in range(10 * block, 10 * block + 10):
        kernels = KERNELS if drawn is tree_arm and seed % 10 == 0 else RIGID_BODY
        further = DERIVATIVES if drawn is random_arm else ()
        assert_expressions_equal_core(drawn(seed, rotors=seed % 2 == 1), (*kernels, *further))


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(0, 200, 4))
def test_further_expressions_of_random_chains(seed):
    names = ('regressor', 'base_regressor', 'linearization', 'tip_wrench_torque')
    assert_expressions_equal_core(random_arm(seed), names)


def compared(compiled, arm, count=11, kernels=KERNELS):
    """Compare functions with the core: one sample, many, and many into ``out``."""
    given = states(arm, count)
    for name in kernels:
        kernel = build_kernel(name, RunTime.of(arm, ()))
        arguments = [given[key] for key, _ in kernel.inputs]
        expected = core(name, arm, *arguments)
        limit = tolerance(arm, name, given)
        function = getattr(compiled, name)
        many = function(*arguments)
        assert [x.shape for x in as_tuple(many)] == [x.shape for x in expected]
        assert largest_difference(as_tuple(many), expected) < limit, name
        assert_same_in_out(function, arguments, many)
        alone = [array[3] for array in arguments]
        one = function(*alone)
        assert largest_difference(as_tuple(one), tuple(x[3] for x in expected)) < limit, name
        assert_same_in_out(function, alone, one)


def assert_same_in_out(function, arguments, results):
    """The same numbers are written into ``out``, which is what is returned."""
    if isinstance(results, tuple):
        out = tuple(np.full(x.shape, np.nan) for x in results)
    else:
        out = np.full(results.shape, np.nan)
    assert function(*arguments, out=out) is out
    for given, wanted in zip(as_tuple(out), as_tuple(results), strict=True):
        np.testing.assert_array_equal(given, wanted)


@pytest.mark.repeats(test=1)
@pytest.mark.longer
@needs_compiler
@pytest.mark.parametrize('name', PUBLIC_ARMS)
def test_c_functions_of_public_arm(name):
    arm = public_arm(name)
    compared(compile_model(arm, kernels=QUICK), arm, kernels=QUICK)


FURTHER_ARMS = {
    **{name: partial(public_arm, name) for name in PUBLIC_ARMS},
    'chain with a slide': partial(random_arm, 21, rotors=True),
    'tree': partial(tree_arm, 2, rotors=True),
    **{f'chain {k}': partial(random_arm, k, rotors=k % 2 == 1) for k in range(100, 120)},
}


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize('name', FURTHER_ARMS)
def test_every_c_function_of_further_arms(name):
    arm = FURTHER_ARMS[name]()
    compared(compile_model(arm), arm)


@pytest.mark.repeats(test=1)
@pytest.mark.longer
@needs_compiler
def test_c_functions_of_a_tree_with_a_payload_on_any_tip():
    arm = tree_arm(2, rotors=True)
    compiled = compile_model(arm, kernels=QUICK, runtime=('gravity', 'payload'))
    compared(compiled, arm, kernels=QUICK)
    for tip in arm.tip_links:
        loaded = arm.with_payload(rd.Payload(1.5, (0.1, 0.02, -0.1), link=tip))
        compared(compiled.with_model(loaded), loaded, kernels=QUICK)


@pytest.mark.parametrize('seed', range(40))
def test_expressions_of_identified_friction_and_of_coupled_drives(seed):
    assert_expressions_equal_core(identified_arm(seed), FRICTION_KERNELS)
    if seed < 4:
        rigid_body = ('inverse_dynamics', 'mass_matrix', 'forward_dynamics', 'linearization')
        assert_expressions_equal_core(coupled_arm(seed), (*rigid_body, *FRICTION_KERNELS))


@needs_compiler
def test_other_gears_are_no_payload_of_compiled_code():
    arm = coupled_arm(4)
    compiled = compile_model(arm, kernels=('inverse_dynamics', 'directed_friction_torque'))
    compared(compiled, arm, kernels=('inverse_dynamics', 'directed_friction_torque'))
    for other in (replace(arm, coupling=2 * arm.coupling), identified_arm(4)):
        with pytest.raises(ModelMismatch, match='coupling|rotor_inertia'):
            compiled.with_model(other)


@pytest.mark.repeats(check=1)
@needs_compiler
@pytest.mark.parametrize('seed', [0, 4, 8])
def test_c_functions_of_identified_friction(seed):
    arm = identified_arm(seed)
    compiled = compile_model(arm, kernels=FRICTION_KERNELS)
    compared(compiled, arm, kernels=FRICTION_KERNELS)
    qd = states(arm)['qd']
    qd[:, 0] = 0.0
    rigid = np.full_like(qd, 100.0)
    expected = rd.friction_torque(arm, qd, rigid_torque=rigid)
    np.testing.assert_allclose(compiled.friction_torque(qd, rigid_torque=rigid), expected)
    assert (compiled.friction_torque(qd, rigid)[:, 0] == 0.0).all()
    assert (compiled.smooth_friction_torque(qd, np.full((5, 1), 0.01), rigid)[:, 0] == 0.0).all()


@needs_compiler
def test_friction_that_grows_with_load_is_left_out_without_the_torque():
    arm = identified_arm(4)
    assert arm.load_friction.any()
    compiled = compile_model(arm, kernels=FRICTION_KERNELS)
    qd = states(arm)['qd']
    for state in (qd, qd[0]):
        out = np.empty_like(state)
        for value in (
            compiled.friction_torque(state),
            compiled.friction_torque(state, None),
            compiled.friction_torque(state, rigid_torque=None, out=out),
        ):
            np.testing.assert_allclose(value, rd.friction_torque(arm, state), atol=1e-12)
        np.testing.assert_allclose(out, rd.friction_torque(arm, state), atol=1e-12)
    with pytest.raises(InvalidArgument, match='argument rigid_torque:'):
        compiled.friction_torque(qd, qd[0])
    with pytest.raises(TypeError, match='qd'):
        compiled.friction_torque(rigid_torque=qd)
    assert list(inspect.signature(compiled.friction_torque).parameters) == [
        'qd',
        'rigid_torque',
        'out',
    ]


@needs_compiler
def test_velocities_that_are_no_numbers_give_friction_that_is_none():
    compiled = compile_model(identified_arm(4), kernels=FRICTION_KERNELS)
    qd = np.full(compiled.n, np.nan)
    assert np.isnan(compiled.friction_torque(qd)).all()
    assert np.isnan(compiled.smooth_friction_torque(qd, [0.01])).all()


@pytest.fixture(scope='module')
def small():
    """Return a two-joint arm and its functions."""
    if not is_there_a_compiler():
        pytest.skip('there is no C compiler')
    arm = rd.RobotModel.from_urdf(two_link_urdf(), gravity=(0, -9.81, 0))
    return arm, compile_model(arm, runtime=('gravity', 'payload'))


def test_anything_array_like_is_taken(small):
    arm, compiled = small
    expected = rd.inverse_dynamics(arm, [0.1, 0.2], [1, 2], [3, 4])
    integers = np.array([1, 2])
    singles = np.array([3, 4], dtype=np.float32)
    strided = np.array([0.1, 9.0, 0.2])[::2]
    swapped = np.array([0.1, 0.2], dtype='>f8')
    for q in ([0.1, 0.2], (0.1, 0.2), strided, swapped):
        value = compiled.inverse_dynamics(q, integers, singles)
        np.testing.assert_allclose(value, expected, atol=1e-12)
    np.testing.assert_allclose(
        compiled.inverse_dynamics(qdd=[3, 4], q=[0.1, 0.2], qd=[1, 2]), expected, atol=1e-12
    )
    whole = [np.array(row) for row in ([1, 2], [3, 4], [5, 6])]
    for kind in (np.int64, np.float32):
        value = compiled.inverse_dynamics(*(row.astype(kind) for row in whole))
        np.testing.assert_allclose(value, rd.inverse_dynamics(arm, *whole), atol=1e-12)
    columns = np.asfortranarray(np.tile([0.1, 0.2], (5, 1)))
    value = compiled.gravity_torque(columns)
    np.testing.assert_allclose(value, rd.gravity_torque(arm, columns), atol=1e-12)


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (([1, 2, 3], [1, 2], [1, 2]), 'argument q:'),
        (([1, 2], [1], [1, 2]), 'argument qd:'),
        (([1, 2], [1, 2], [[1, 2]]), 'argument qdd:'),
        ((np.ones((3, 2)), np.ones((2, 2)), np.ones((3, 2))), 'argument qd:'),
        ((np.ones((1, 3, 2)), np.ones((3, 2)), np.ones((3, 2))), 'argument q:'),
        ((['a', 'b'], [1, 2], [1, 2]), 'argument q:'),
        ((1.0, [1, 2], [1, 2]), 'argument q:'),
    ],
)
def test_wrong_shapes_name_the_argument(small, arguments, named):
    with pytest.raises(InvalidArgument, match=named):
        small[1].inverse_dynamics(*arguments)


@pytest.mark.parametrize(
    'out',
    [np.empty(3), np.empty((2, 2)), np.empty(2, dtype=np.float32), np.empty(4)[::2], [0.0, 0.0]],
)
def test_wrong_out_is_refused(small, out):
    with pytest.raises(InvalidArgument, match='argument out'):
        small[1].gravity_torque([0.1, 0.2], out=out)
    frozen = np.empty(2)
    frozen.setflags(write=False)
    with pytest.raises(InvalidArgument, match='argument out'):
        small[1].gravity_torque([0.1, 0.2], out=frozen)


def test_refused_out_is_left_to_its_owner(small):
    for function, out in (
        (small[1].gravity_torque, [0.5, 0.25]),
        (small[1].inverse_dynamics_derivatives, [0.5, 0.25]),
        (small[1].inverse_dynamics_derivatives, ([0.5], [0.25])),
    ):
        arguments = [[0.1, 0.2]] * (1 if function is small[1].gravity_torque else 3)
        references = sys.getrefcount(out)
        for _ in range(100):
            with pytest.raises(InvalidArgument, match='argument out'):
                function(*arguments, out=out)
        assert sys.getrefcount(out) == references


def test_wrong_calls_are_type_errors(small):
    _, compiled = small
    for call in (
        lambda: compiled.gravity_torque(),
        lambda: compiled.gravity_torque([0, 0], np.empty(2), 3),
        lambda: compiled.gravity_torque([0, 0], nonsense=1),
        lambda: compiled.gravity_torque([0, 0], q=[0, 0]),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_out_of_range_crash_nothing(small, bad):
    arm, compiled = small
    q, qd, qdd = np.array([0.3, bad]), np.array([1.0, 2.0]), np.array([3.0, 4.0])
    with np.errstate(all='ignore'):
        for name in ('q', 'qd', 'qdd'):
            state = {'q': np.array([0.3, 0.4]), 'qd': qd, 'qdd': qdd} | {name: q}
            value = compiled.inverse_dynamics(**state)
            assert np.isnan(bad) <= np.isnan(value).any()
            many = {key: np.tile(row, (9, 1)) for key, row in state.items()}
            np.testing.assert_allclose(compiled.inverse_dynamics(**many)[8], value, rtol=1e-9)
        compiled.forward_dynamics(q, qd, qdd)


@pytest.mark.parametrize('angle', [1e3, 4.9e5, 5.1e5, 1e9, -1e22])
def test_angles_of_many_turns_keep_their_digits(small, angle):
    arm, compiled = small
    for q in ([0.3, angle], [angle, 0.3], np.tile([angle, angle], (9, 1))):
        # The sum of both angles is rounded where they share an axis direction.
        limit = 1e-12 + 1e-14 * abs(angle)
        np.testing.assert_allclose(
            compiled.gravity_torque(q), rd.gravity_torque(arm, q), atol=min(limit, 1e-6)
        )


def test_results_may_overwrite_arguments(small):
    arm, compiled = small
    given = states(arm, 9)
    q, qd, qdd = given['q'], given['qd'], given['qdd']
    expected = rd.inverse_dynamics(arm, q, qd, qdd)
    in_place = q.copy()
    compiled.inverse_dynamics(in_place, qd, qdd, out=in_place)
    np.testing.assert_allclose(in_place, expected, atol=1e-12)
    shifted = np.zeros((10, 2))
    shifted[:9] = q
    compiled.inverse_dynamics(shifted[:9], qd, qdd, out=shifted[1:])
    np.testing.assert_allclose(shifted[1:], expected, atol=1e-12)


def test_empty_trajectories_give_empty_results(small):
    assert small[1].gravity_torque(np.empty((0, 2))).shape == (0, 2)
    assert small[1].mass_matrix(np.empty((0, 2))).shape == (0, 2, 2)


def test_tip_wrench_adds_its_torque(small):
    arm, compiled = small
    given = states(arm, 6)
    state = [given[key] for key in ('q', 'qd', 'qdd')]
    wrench = given['tip_wrench']
    for force in (wrench, wrench[0]):
        np.testing.assert_allclose(
            compiled.inverse_dynamics(*state, tip_wrench=force),
            rd.inverse_dynamics(arm, *state, tip_wrench=force),
            atol=1e-10,
        )
    one = [array[2] for array in state]
    np.testing.assert_allclose(
        compiled.inverse_dynamics(*one, tip_wrench=wrench[2]),
        rd.inverse_dynamics(arm, *one, tip_wrench=wrench[2]),
        atol=1e-10,
    )
    with pytest.raises(InvalidArgument, match='tip_wrench'):
        compiled.inverse_dynamics(*one, tip_wrench=[1, 2, 3])


def test_gravity_and_payload_change_without_compiling(small, monkeypatch):
    arm, compiled = small
    for name in ('inverse_dynamics', 'forward_dynamics'):
        assert callable(getattr(compiled, name))
    monkeypatch.setenv('CC', '/nowhere/cc')
    monkeypatch.setenv('ROBODYN_CACHE_DIR', '/proc/nowhere')
    given = states(arm, 3)
    state = [given[key] for key in ('q', 'qd', 'qdd')]
    payload = rd.Payload(2.0, (0.1, 0.2, -0.1), np.diag([0.1, 0.2, 0.25]))
    changed = compiled.with_gravity((1.0, 2.0, -3.0)).with_payload(payload)
    loaded = arm.with_gravity((1.0, 2.0, -3.0)).with_payload(payload)
    for function in ('inverse_dynamics', 'forward_dynamics'):
        np.testing.assert_allclose(
            getattr(changed, function)(*state), getattr(rd, function)(loaded, *state), atol=1e-9
        )
    np.testing.assert_allclose(
        compiled.inverse_dynamics(*state), rd.inverse_dynamics(arm, *state), atol=1e-10
    )
    assert changed.model.gravity.tolist() == [1.0, 2.0, -3.0]


def test_what_is_folded_in_cannot_be_changed(small):
    arm, compiled = small
    parameters = arm.inertial_parameters.copy()
    parameters[0, 1] = 0.3  # a product of inertia that no payload of the tip reaches
    for other in (
        arm.with_rotor_inertia([1.0, 1.0]),
        rd.RobotModel.from_urdf(two_link_urdf(length=2.0)),
        arm.with_inertial_parameters(parameters),
        replace(arm, coulomb_friction=np.ones(2)),
    ):
        with pytest.raises(ModelMismatch):
            compiled.with_model(other)


@pytest.mark.parametrize('seed', range(8))
def test_payload_on_any_link_of_random_chains_is_a_run_time_input(seed):
    arm = random_arm(300 + seed)
    link = list(arm.link_frames)[-1 - seed % 4]
    run_time = RunTime.of(arm, ('gravity', 'payload'), [link])
    payload = rd.Payload(3.0, (0.1, -0.2, 0.3), 0.1 * np.eye(3), link=link)
    loaded = arm.with_gravity((4.0, 5.0, 6.0)).with_payload(payload)
    given = states(arm)
    for name in (
        'inverse_dynamics',
        'mass_matrix',
        'coriolis_matrix',
        'christoffel_symbols',
        'inverse_dynamics_derivatives',
        'regressor',
        'base_regressor',
    ):
        kernel = build_kernel(name, run_time)
        arguments = [given[key] for key, _ in kernel.inputs]
        value = interpreted(kernel, given, run_time.values(loaded))
        assert largest_difference(value, core(name, loaded, *arguments)) < EQUAL


@pytest.mark.longer
def test_arm_without_inertia_is_singular(small):
    arm, compiled = small
    massless = arm.with_inertial_parameters(np.zeros((2, 10)))
    singular = compile_model(massless)
    for q in (np.zeros(2), np.zeros((9, 2))):
        for name in OF_TORQUE:
            with pytest.raises(NoSolution):
                getattr(singular, name)(q, q, q)
        np.testing.assert_array_equal(singular.inverse_dynamics(q, q, q), q)


def test_functions_run_side_by_side_in_threads(small):
    arm, compiled = small
    given = states(arm, 5000)
    state = [given[key] for key in ('q', 'qd', 'qdd')]
    expected = compiled.inverse_dynamics(*state)
    results = [None] * 4

    def run(k):
        results[k] = compiled.inverse_dynamics(*state)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_functions_that_were_not_compiled_say_so(small):
    arm, compiled = small
    few = compile_model(arm, kernels=['gravity_torque'])
    assert few.gravity_torque([0.0, 0.0]).shape == (2,)
    with pytest.raises(ModelMismatch, match='function mass_matrix: not compiled'):
        few.mass_matrix([0.0, 0.0])
    for wrong in ({'kernels': ['x']}, {'runtime': ['time']}):
        with pytest.raises(InvalidArgument):
            compile_model(arm, **wrong)


def test_functions_that_nobody_named_are_compiled_when_they_are_read(small, monkeypatch):
    arm, _ = small
    made = []
    original = library.compiled_library
    monkeypatch.setattr(
        library,
        'compiled_library',
        lambda *given: (made.append([k.name for k in given[0]]), original(*given))[1],
    )
    arm = arm.with_gravity((0.0, -9.0, 1.0))
    compiled = compile_model(arm)
    assert made == [['inverse_dynamics', 'tip_wrench_torque']]
    np.testing.assert_allclose(compiled.mass_matrix([0.1, 0.2]), rd.mass_matrix(arm, [0.1, 0.2]))
    assert made[1:] == [['mass_matrix']]
    assert compiled.mass_matrix is compiled.mass_matrix
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy == compiled
    copy.mass_matrix([0.1, 0.2])
    assert len(made) == 2
    assert set(compiled.operation_counts) == {
        'inverse_dynamics', 'tip_wrench_torque', 'mass_matrix',
    }  # fmt: skip
    assert repr(compiled) == f'CompiledModel({arm.tip_link}, 2 joints: all functions)'


def test_several_results_go_into_a_tuple_of_arrays_and_nothing_else(small):
    arm, compiled = small
    derivatives = compiled.inverse_dynamics_derivatives
    state = [[0.1, 0.2], [1.0, 2.0], [3.0, 4.0]]
    wanted = rd.inverse_dynamics_derivatives(arm, *state)
    out = (np.empty((2, 2)), np.empty((2, 2)))
    for arguments in (state, [np.array(x) for x in state]):
        assert derivatives(*arguments, out=out) is out
        for given, expected in zip(out, wanted, strict=True):
            np.testing.assert_allclose(given, expected, atol=1e-12)
    for wrong in (out[0], list(out), out[:1], (out[0], np.empty(2)), (*out, out[0])):
        with pytest.raises(InvalidArgument, match='argument out'):
            derivatives(*state, out=wrong)
    overlapping = np.zeros((3, 2, 2))
    overlapping[0, 0] = state[0]
    derivatives(overlapping[0, 0], *state[1:], out=(overlapping[0], overlapping[1]))
    np.testing.assert_allclose(overlapping[:2], wanted, atol=1e-12)


@pytest.mark.longer
def test_functions_carry_signature_and_docstring(small):
    compiled = compile_model(small[0], kernels=KERNELS)
    torque = compiled.inverse_dynamics
    assert list(inspect.signature(torque).parameters) == ['q', 'qd', 'qdd', 'out', 'tip_wrench']
    assert list(inspect.signature(compiled.mass_matrix).parameters) == ['q', 'out']
    for name in KERNELS:
        assert getattr(compiled, name).__doc__ == KINDS[name].description


def test_compiled_model_pickles_compares_by_value_and_prints_in_one_line(small):
    arm, compiled = small
    few = compile_model(arm, kernels=['gravity_torque'], runtime=['gravity'])
    changed = few.with_gravity((1.0, 2.0, 3.0))
    copy = pickle.loads(pickle.dumps(changed))
    assert copy == changed != few
    assert hash(copy) == hash(changed)
    np.testing.assert_allclose(
        copy.gravity_torque([0.1, 0.2]),
        rd.gravity_torque(arm.with_gravity((1.0, 2.0, 3.0)), [0.1, 0.2]),
        atol=1e-12,
    )
    with pytest.raises(ModelMismatch, match='function mass_matrix'):
        copy.mass_matrix([0.1, 0.2])
    assert repr(copy) == f'CompiledModel({arm.tip_link}, 2 joints: gravity_torque)'


@needs_compiler
def test_names_from_the_description_never_enter_the_code():
    from robodyn_ros.compiled.c.library import library_source

    text = two_link_urdf().replace('joint1', 'INJECTED */ x').replace('link2', 'INJECTED "')
    text = text.replace('INJECTED "', 'INJECTED &quot;')
    arm = rd.RobotModel.from_urdf(text)
    assert 'INJECTED' in ' '.join(arm.joint_names)
    kernels = [build_kernel(name, RunTime.of(arm, ('payload',))) for name in KERNELS]
    assert 'INJECTED' not in library_source(kernels)
    np.testing.assert_allclose(
        compile_model(arm, kernels=['gravity_torque']).gravity_torque([0.1, 0.2]),
        rd.gravity_torque(arm, [0.1, 0.2]),
        atol=1e-12,
    )


@pytest.mark.longer
@needs_compiler
def test_thirty_joints():
    text = random_chain(np.random.default_rng(5), 30, prismatic_fraction=0.0)
    arm = rd.RobotModel.from_urdf(text, tip_link='tip')
    compiled = compile_model(arm, kernels=['inverse_dynamics'])
    given = states(arm, 3)
    state = [given[key] for key in ('q', 'qd', 'qdd')]
    expected = rd.inverse_dynamics(arm, *state)
    assert relative_difference(compiled.inverse_dynamics(*state), expected) < EQUAL


def long_chain(n, prismatic_fraction=0.2):
    text = random_chain(np.random.default_rng(n), n, prismatic_fraction, fixed_links=False)
    arm = rd.RobotModel.from_urdf(text, tip_link='tip')
    return arm.with_rotor_inertia(np.where(np.arange(n) % 3 == 0, 0.1, 0.0))


@pytest.mark.parametrize('n', [15, 24])
def test_expressions_of_long_arms_with_run_time_inputs(n):
    arm = long_chain(n)
    run_time = RunTime.of(arm, ('gravity', 'payload'))
    forward = build_kernel('forward_dynamics', run_time)
    mass = build_kernel('mass_matrix', run_time)
    given = states(arm)
    for kernel in (forward, mass):
        arguments = [given[key] for key, _ in kernel.inputs]
        value = interpreted(kernel, given, run_time.values(arm))
        limit = tolerance(arm, kernel.name, given)
        assert largest_difference(value, core(kernel.name, arm, *arguments)) < limit


def test_operations_of_the_forward_dynamics_grow_linearly():
    counts = [
        sum(build_kernel('forward_dynamics', RunTime.of(long_chain(n, 0.0), ())).operation_count)
        for n in (15, 30)
    ]
    assert counts[1] < 2.2 * counts[0]


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('drawn', [random_arm, tree_arm])
def test_both_ways_to_mass_matrix_and_accelerations_agree(drawn, seed):
    arm = drawn(seed, rotors=seed % 2 == 1)
    graph = Graph()
    q, qd, tau = (list(graph.input(name, arm.n)) for name in ('q', 'qd', 'tau'))
    inertias = EquivalentInertias.fewest_operations(arm.dh, arm.inertial_parameters)
    symbolic = symbolic_arm(arm, q, inertias)
    given = states(arm)
    mass = [x for row in mass_matrix_from_base(symbolic) for x in row]
    expected = rd.mass_matrix(arm, given['q']).reshape(5, -1)
    assert relative_difference(evaluated(mass, given), expected) < EQUAL
    qdd, pivots = articulated_bodies.accelerations(symbolic, qd, tau)
    expected = rd.forward_dynamics(arm, given['q'], given['qd'], given['tau'])
    limit = tolerance(arm, 'forward_dynamics', given)
    assert relative_difference(evaluated(qdd, given), expected) < limit
    assert (evaluated(pivots, given) > 0.0).all()
