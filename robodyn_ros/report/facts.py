# SPDX-License-Identifier: Apache-2.0
"""The facts of a report: everything is computed here, nothing in drawing."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from timeit import Timer
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.coupling import coefficients_of_coupling
from robodyn_ros.analysis.guidelines import Guideline, design_guidelines
from robodyn_ros.analysis.inertial_characteristics import (
    InertialCharacteristics,
    inertial_characteristics,
)
from robodyn_ros.analysis.joint_space import JointSpace
from robodyn_ros.analysis.ranges import Ranges, ranges
from robodyn_ros.analysis.ratios import LargestRatios, largest_ratios
from robodyn_ros.analysis.simplification import SimplifiedModel, simplified_model
from robodyn_ros.analysis.trajectory_split import TrajectorySplit, split_along
from robodyn_ros.compiled import RIGID_BODY, CompiledModel, compile_model
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.description.chain import Chain, checked_chain
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dynamics import (
    METHODS,
    Method,
    gravity_torque,
    inverse_dynamics,
    smooth_friction_torque,
)
from robodyn_ros.errors import NoBackend, NoSolution, RobodynError
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.motions.point_to_point import example_motion
from robodyn_ros.parameters.base_parameters import BaseParameters, base_parameters
from robodyn_ros.record import Record
from robodyn_ros.report.residual import Residual, conversion_residual
from robodyn_ros.report.text import NOISE
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

T = TypeVar('T')

STEPS = (
    'conversion',
    'base parameters',
    'coupling',
    'ranges',
    'torques along a motion',
    'simplified model',
    'compiled code',
    'ratios',
    'translation and rotation',
)
"""What ``arm_facts`` does, one after the other."""

_EXAMPLE_SAMPLES = 241

# Coupling over the joint space.
_COUPLING_SAMPLES = 4096
_MAPS, _CANDIDATES = 3, 8
_LEAST_VARIATION = 0.02
_COARSE, _FINE = 13, 49  # positions of a map, along each joint

# Times of a call.
_SEED = 5
_ROUNDS = 5
_LEAST_TIME = 0.01  # [s]
_ARGUMENTS = {
    'inverse_dynamics': ('q', 'qd', 'qdd'),
    'bias_torque': ('q', 'qd'),
    'coriolis_matrix': ('q', 'qd'),
    'forward_dynamics': ('q', 'qd', 'tau'),
}

# Limits of position that are not taken as they are.
_LONGEST_TURN = 4 * np.pi + 0.01  # [rad]
_LONGEST_SLIDE = 100.0  # [m]
_SHORTEST_SLIDE = 0.1  # [m]


@dataclass(frozen=True, eq=False, repr=False)
class MotionTorques(Record):
    """
    The torque along a motion, and what it is made of: arrays (N, n) [N m or N].

    Attributes
    ----------
    motion : MotionSamples
    given : bool
        Whether the motion was given, and not made within the arm's limits.
    gravity, inertial : array, shape (N, n)
        g(q), and M(q) qdd.
    coriolis : array, shape (N, n)
        Coriolis and centrifugal torque, C(q, qd) qd.
    friction : array, shape (N, n)
        Viscous and Coulomb, with the smooth sign of the dynamics node.
    """

    motion: MotionSamples
    given: bool
    gravity: FloatArray
    inertial: FloatArray
    coriolis: FloatArray
    friction: FloatArray

    @property
    def total(self) -> FloatArray:
        """The sum of the parts."""
        return self.gravity + self.inertial + self.coriolis + self.friction


@dataclass(frozen=True, eq=False, repr=False)
class CouplingMap(Record):
    """
    k_ij over the positions of two joints, the others in the middle of their limits.

    Attributes
    ----------
    pair, over : (int, int)
        Joints from 0: those coupled, and those that move.
    first, second : array, shape (k,)
        Positions [rad or m] of the joints that move.
    values : array, shape (k, k)
        At ``first[a]``, ``second[b]`` in ``values[a, b]``.
    """

    pair: tuple[int, int]
    over: tuple[int, int]
    first: FloatArray
    second: FloatArray
    values: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class JointSpaceCoupling(Record):
    """
    Mean and largest k_ij (n, n) of ``samples`` scattered positions, and maps of some pairs.

    ``largest`` is the largest that was met; ``coupling_over_joint_space`` searches for the largest
    there is.
    """

    mean: FloatArray
    largest: FloatArray
    samples: int
    maps: tuple[CouplingMap, ...]


@dataclass(frozen=True)
class CallTimes:
    """
    Operation counts of an arm's functions, and the times of a call on this machine.

    Attributes
    ----------
    operations : dict of function to (multiplications, additions)
        Of compiled code.
    microseconds : dict of function to time [µs]
        Of one call from Python for one state: 'compiled <function>', and the methods of
        ``inverse_dynamics`` in NumPy under their names. The fastest of a few rounds. Without
        forward dynamics where a link that moves has no inertia.
    missing : str
        Why nothing was compiled; empty otherwise.
    machine : str
    """

    operations: dict[str, tuple[int, int]]
    microseconds: dict[str, float]
    missing: str
    machine: str


@dataclass(frozen=True, eq=False)
class ArmFacts:
    """
    The facts of a report about an arm.

    A fact that cannot be found, such as extremes over the joint space where a prismatic joint has
    no limits, is None, and ``notes`` has the reason under the name of the step.
    """

    title: str
    model: RobotModel
    chain: Chain
    residual: Residual
    structure: InertialCharacteristics
    guidelines: tuple[Guideline, ...]
    base: BaseParameters
    coupling: JointSpaceCoupling | None
    ranges: Ranges | None
    torques: MotionTorques | None
    simplified: SimplifiedModel | None
    simplified_torque_error: FloatArray | None
    call_times: CallTimes
    ratios: LargestRatios | None
    split: TrajectorySplit | None
    notes: dict[str, str]
    seconds: float
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def masses(self) -> FloatArray:
        """Mass (n,) [kg] of each link that moves, with what is fixed to it."""
        return self.model.inertial_parameters[:, 9]

    def summary(self) -> dict[str, Any]:
        """Return the main numbers, for JSON."""
        findings = [finding.level for finding in self.model.findings]
        return {
            'joint_names': list(self.model.joint_names),
            'moving_mass': float(self.masses.sum()),
            'warnings': findings.count('warning'),
            'infos': findings.count('info'),
            'minimal_parameters': self.base.count,
            'standard_parameters': self.base.standard_count,
            'nonzero_coefficients': self.structure.total,
            'independent_coefficients': len(self.structure.coefficients),
            'operation_counts': {name: list(c) for name, c in self.call_times.operations.items()},
            'microseconds': self.call_times.microseconds,
            'notes': self.notes,
            'seconds': self.seconds,
        }


def arm_facts(
    chain: Chain,
    model: RobotModel,
    *,
    title: str = '',
    motion: MotionSamples | None = None,
    simplification_error: float = 0.02,
    provenance: Mapping[str, str] | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> ArmFacts:
    """
    Return the facts about an arm.

    Parameters
    ----------
    chain : Chain
    model : RobotModel
        Of that chain.
    title : str
        What the page is called; where not given, base and tip link.
    motion : MotionSamples, optional
        To show torques along; where not given, one within the arm's limits.
    simplification_error : float
        Allowed fraction, as 0.02 for 2 %; see ``simplified_model``.
    provenance : mapping of str to str, optional
        What the page says of its sources, as the file's name and digest.
    on_step : callable
        Called with each of ``STEPS`` as it begins.
    """
    checked_chain(chain)
    checked_model(model)
    began = time.perf_counter()
    notes: dict[str, str] = {}
    seen = _with_single_turns(model)
    has_masses = bool(model.inertial_parameters.any())

    def attempted(step: str, fact: Callable[[], T]) -> T | None:
        on_step(step)
        if not has_masses:
            notes[step] = 'no link that moves has a mass: every torque is 0'
            return None
        try:
            return fact()
        except RobodynError as error:
            notes[step] = str(error)
            return None

    with one_thread():
        on_step(STEPS[0])
        residual = conversion_residual(chain, model)
        structure = inertial_characteristics(model)
        guidelines = design_guidelines(model, structure)
        on_step(STEPS[1])
        base = base_parameters(model)
        coupling = attempted(STEPS[2], lambda: _joint_space_coupling(seen))
        extremes = attempted(STEPS[3], lambda: ranges(seen))
        torques = attempted(STEPS[4], lambda: _torques_along(model, motion))
        simplified = attempted(STEPS[5], lambda: simplified_model(seen, simplification_error))
        off = None
        if simplified is not None and torques is not None:
            off = _torque_error(model, simplified, torques.motion)
        on_step(STEPS[6])
        call_times = _measured_call_times(model)
        ratios = attempted(STEPS[7], lambda: largest_ratios(seen))
        split = attempted(STEPS[8], lambda: _split_along(model, torques))
    if call_times.missing:
        notes[STEPS[6]] = call_times.missing
    return ArmFacts(
        title=title,
        model=model,
        chain=chain,
        residual=residual,
        structure=structure,
        guidelines=guidelines,
        base=base,
        coupling=coupling,
        ranges=extremes,
        torques=torques,
        simplified=simplified,
        simplified_torque_error=off,
        call_times=call_times,
        ratios=ratios,
        split=split,
        notes=notes,
        seconds=time.perf_counter() - began,
        provenance=dict(provenance or {}),
    )


def _torques_along(model: RobotModel, given: MotionSamples | None) -> MotionTorques:
    motion = given or example_motion(model, _EXAMPLE_SAMPLES)
    still = np.zeros_like(motion.q)
    gravity = gravity_torque(model, motion.q)
    rigid = inverse_dynamics(model, motion.q, motion.qd, motion.qdd)
    parts = {
        'gravity': gravity,
        'inertial': inverse_dynamics(model, motion.q, still, motion.qdd) - gravity,
        'coriolis': inverse_dynamics(model, motion.q, motion.qd, still) - gravity,
        'friction': smooth_friction_torque(
            model, ControlSettings().friction_velocity, motion.qd, rigid
        ),
    }
    rounding = NOISE * max(float(np.abs(part).max()) for part in parts.values())
    return MotionTorques(
        motion=motion,
        given=given is not None,
        **{name: np.where(np.abs(part) > rounding, part, 0.0) for name, part in parts.items()},
    )


def _split_along(model: RobotModel, torques: MotionTorques | None) -> TrajectorySplit:
    motion = torques.motion if torques else example_motion(model, _EXAMPLE_SAMPLES)
    every = slice(None, None, max(1, len(motion.time) // _EXAMPLE_SAMPLES))
    return split_along(model, motion.q[every], motion.qd[every])


def _torque_error(
    model: RobotModel, simplified: SimplifiedModel, motion: MotionSamples
) -> FloatArray:
    """Return the largest error (n,) along a motion, as a fraction of each largest torque."""
    every = slice(None, None, max(1, len(motion.time) // _EXAMPLE_SAMPLES))
    state = motion.q[every], motion.qd[every], motion.qdd[every]
    exact = inverse_dynamics(model, *state)
    error = np.abs(simplified.inverse_dynamics(*state) - exact).max(axis=0)
    peak = np.abs(exact).max(axis=0)
    return np.divide(error, peak, out=np.zeros_like(error), where=peak > NOISE * peak.max())


def _joint_space_coupling(model: RobotModel) -> JointSpaceCoupling:
    """Return the coupling of an arm's joints over its joint limits."""
    joint_space = JointSpace.of(model)
    sampled = coefficients_of_coupling(model, joint_space.sample(_COUPLING_SAMPLES))
    variation = np.triu(sampled.std(axis=0), 1)
    order = np.argsort(variation, axis=None, kind='stable')[::-1][:_CANDIDATES]
    pairs = [(int(k) // model.n, int(k) % model.n) for k in order]
    maps = [_coupling_map(model, joint_space, p) for p in pairs if variation[p] > _LEAST_VARIATION]
    # Those that two joints change come first: the others are stripes.
    maps.sort(key=lambda found: _lesser_variation(found) < _LEAST_VARIATION)
    chosen = tuple(maps[:_MAPS])
    return JointSpaceCoupling(sampled.mean(axis=0), sampled.max(axis=0), _COUPLING_SAMPLES, chosen)


def _lesser_variation(found: CouplingMap) -> float:
    """Return how much the lesser of the two joints changes the coupling."""
    return min(float(found.values.std(axis=k).mean()) for k in (0, 1))


def _coupling_map(
    model: RobotModel, joint_space: JointSpace, pair: tuple[int, int]
) -> CouplingMap:
    """Return the map over two joints that both change the coupling, the most of all."""

    def over(a: int, b: int, resolution: int) -> CouplingMap:
        first, second = (
            np.linspace(joint_space.lower[k], joint_space.upper[k], resolution) for k in (a, b)
        )
        q = np.tile(joint_space.center, (resolution, resolution, 1))
        q[..., a], q[..., b] = first[:, None], second
        values = coefficients_of_coupling(model, q.reshape(-1, model.n))[:, pair[0], pair[1]]
        return CouplingMap(pair, (a, b), first, second, values.reshape(resolution, resolution))

    coarse = [over(a, b, _COARSE) for a, b in combinations(range(model.n), 2)]
    a, b = max(coarse, key=lambda x: (_lesser_variation(x), float(x.values.std()))).over
    return over(a, b, _FINE)


def _measured_call_times(model: RobotModel) -> CallTimes:
    """Return operation counts and times of an arm's functions, measured now."""
    generator = np.random.default_rng(_SEED)
    state = dict(zip(('q', 'qd', 'qdd'), generator.uniform(-1, 1, (3, model.n)), strict=True))
    state['tau'] = inverse_dynamics(model, *state.values())
    times: dict[str, float] = {}
    operations: dict[str, tuple[int, int]] = {}
    missing = ''
    compiled: CompiledModel | None = None
    try:
        compiled = compile_model(model, kernels=RIGID_BODY)
        operations = dict(compiled.operation_counts)
    except NoBackend as error:
        missing = str(error)
    for name in operations:
        arguments = [state[key] for key in _ARGUMENTS.get(name, ('q',))]
        function = getattr(compiled, name)
        try:
            out = np.empty_like(function(*arguments))
        except NoSolution:
            continue
        times[f'compiled {name}'] = _microseconds(_bound(function, arguments, out))
    for method in METHODS:
        times[method] = _microseconds(_method(model, method, state))
    return CallTimes(operations, times, missing, _this_machine())


def _bound(function: Callable[..., Any], arguments: list[Any], out: Any) -> Callable[[], Any]:
    return lambda: function(*arguments, out=out)


def _method(model: RobotModel, method: Method, state: dict[str, Any]) -> Callable[[], Any]:
    q, qd, qdd = state['q'], state['qd'], state['qdd']
    return lambda: inverse_dynamics(model, q, qd, qdd, method=method)


def _microseconds(call: Callable[[], Any]) -> float:
    timer, number = Timer(call), 1
    while timer.timeit(number) < _LEAST_TIME:
        number *= 4
    return 1e6 * min(timer.repeat(_ROUNDS, number)) / number


def _this_machine() -> str:
    processor = platform.processor() or platform.machine()
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8', errors='replace').splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith('model name'):
            processor = line.partition(':')[2].strip()
            break
    python = f'{platform.python_implementation()} {platform.python_version()}'
    return f'{processor}, {platform.system()}, {python}, NumPy {np.__version__}'


def turned_once(model: RobotModel) -> NDArray[np.bool_]:
    """Return which joints (n,) have limits of more than two turns: one says as much of them."""
    with np.errstate(invalid='ignore', over='ignore'):
        span = model.position_limits[:, 1] - model.position_limits[:, 0]
    return np.isfinite(span) & (span > _LONGEST_TURN) & ~model.dh.prismatic


def _with_single_turns(model: RobotModel) -> RobotModel:
    """Return a model whose joints of more than two turns make one, from -pi to pi."""
    once = turned_once(model)
    if not once.any():
        return model
    limits = np.where(once[:, None], [-np.pi, np.pi], model.position_limits)
    return replace(model, position_limits=limits)


def slider_ranges(model: RobotModel) -> FloatArray:
    """
    Return where each slider begins and ends (n, 2) [rad or m].

    These are the position limits. A revolute joint without any, or with those of more than two
    turns, makes one; a prismatic one goes as far as the arm is long, in both directions.
    """
    prismatic = model.dh.prismatic
    frames = frame_transforms(model.dh, np.zeros(model.n))
    tips = frames[model.dh.tips] @ model.dh.tip_transforms
    points = np.vstack([np.zeros(3), frames[:, :3, 3], tips[:, :3, 3]])
    length = float(np.clip(np.ptp(points, axis=0).max(), _SHORTEST_SLIDE, _LONGEST_SLIDE / 2))
    limits = _with_single_turns(model).position_limits
    with np.errstate(invalid='ignore', over='ignore'):
        span = limits[:, 1] - limits[:, 0]
    usable = (span >= 0) & np.isfinite(span) & ~(prismatic & (span > _LONGEST_SLIDE))
    otherwise = np.where(prismatic, length, np.pi)[:, None] * [-1.0, 1.0]
    return np.where(usable[:, None], limits, otherwise)
