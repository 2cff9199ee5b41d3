# SPDX-License-Identifier: Apache-2.0
"""What ``excite`` tries out and says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.commands.arm_options import ChosenArm
from robodyn_ros.errors import CannotSimulate, MujocoMissing, SimulationDiverged
from robodyn_ros.identification import Excitation
from robodyn_ros.model import RobotModel
from robodyn_ros.motions import MotionSamples
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.simulation.arm import ArmSimulation
from robodyn_ros.simulation.closed_loop import simulated_motion
from robodyn_ros.spatial import FloatArray


@dataclass(frozen=True, eq=False)
class DryRun:
    """
    What MuJoCo made of a motion under computed torque.

    Attributes
    ----------
    problem : str
        Why there was none; empty where there was, and then the arrays (n,) are filled.
    effort : array, shape (n,)
        Largest torque [N m or N].
    limit : array, shape (n,)
        The URDF's [N m or N].
    error : array, shape (n,)
        Largest tracking error [rad or m].
    """

    problem: str
    effort: FloatArray
    limit: FloatArray
    error: FloatArray


def dry_run(arm: ChosenArm, motion: MotionSamples) -> DryRun:
    """Return what MuJoCo makes of a motion under computed torque."""
    model, nothing = arm.model, np.zeros(0)
    try:
        simulation = ArmSimulation(arm.chain, gravity=model.gravity)
        did = simulated_motion(simulation, model, motion)
    except (MujocoMissing, CannotSimulate, SimulationDiverged) as error:
        return DryRun(str(error), nothing, nothing, nothing)
    return DryRun(
        '',
        np.abs(did.torque).max(axis=0),
        known_effort_limits(model),
        np.abs(did.error).max(axis=0),
    )


def record(model: RobotModel, found: Excitation, run: DryRun | None) -> dict[str, Any]:
    """Return what was found as JSON can hold it."""
    ran = run is not None and not run.problem
    return {
        'joint_names': found.joint_names,
        'duration': found.duration,
        'seed': found.seed,
        'information_nat': found.criterion,
        'clearance_m': _finite(found.clearance),
        'joints': [
            {
                'name': name,
                'position_limits': found.limits.position[j].tolist(),
                'position': _of_all(found, 'position', j),
                'velocity_limit': float(found.limits.velocity[j]),
                'velocity': _of_all(found, 'velocity', j),
                'effort_limit': _finite(float(found.limits.effort[j])),
                'effort': _of_all(found, 'effort', j),
                'dry_run_effort': float(run.effort[j]) if run and ran else None,
                'dry_run_error': float(run.error[j]) if run and ran else None,
            }
            for j, name in enumerate(found.joint_names)
        ],
        'dry_run_problem': run.problem if run else None,
        'parameters': [
            {
                'name': each.name,
                'element': each.element,
                'unit': each.unit,
                'value': each.value,
                'expected_deviation': each.deviation,
                'prior_deviation': each.prior_deviation,
                'is_measured': each.is_measured,
            }
            for each in found.parameters
        ],
        'findings': [each.as_dict() for each in found.findings],
    }


def warnings(found: Excitation, run: DryRun | None) -> Iterator[str]:
    """Yield what to know before the arm makes it, a line each."""
    for each in found.findings:
        if each.code == 'not_excited':
            continue
        yield f'{"Warning" if each.level == "warning" else "Note"}: {each}'
    if run is not None and run.problem:
        yield f'Warning: no dry run in MuJoCo: {run.problem}'


def summary(model: RobotModel, found: Excitation, run: DryRun | None) -> Iterator[str]:
    """Yield what the motion asks of the arm and what it will tell, a line each."""
    ran = run is not None and not run.problem
    yield f'{found.duration:.4g} s, seed {found.seed}; at most, of the limits it was made for:'
    head = f'{"":24}{"position":>9}{"velocity":>9}{"effort":>8}'
    yield head + (f'{"in MuJoCo, of the URDF":>26}{"error":>11}' if ran else '')
    for j, name in enumerate(found.joint_names):
        lower, upper = found.limits.position[j]
        low, high = _of_all(found, 'position', j)
        reach = max(abs(low - (lower + upper) / 2), abs(high - (lower + upper) / 2))
        speed = _of_all(found, 'velocity', j) / found.limits.velocity[j]
        effort = _of_all(found, 'effort', j) / found.limits.effort[j]
        line = f'{name!r:24}{reach / ((upper - lower) / 2):9.0%}{speed:9.0%}'
        line += f'{effort:8.0%}' if np.isfinite(found.limits.effort[j]) else f'{"-":>8}'
        if run is not None and ran:
            unit, length = ('N', 'm') if model.dh.prismatic[j] else ('N m', 'rad')
            part = run.effort[j] / run.limit[j]
            shown = f'{part:.0%}' if np.isfinite(run.limit[j]) else 'no limit'
            line += f'{run.effort[j]:12.4g} {unit:3} {shown:>9}{run.error[j]:8.1e} {length}'
        yield line
    if np.isfinite(found.clearance):
        yield f'comes no closer than {found.clearance:.3g} m to what it was kept out of'
    measured = [each for each in found.parameters if each.is_measured]
    known = sum(each.is_well_known for each in measured)
    yield (
        f'{len(measured)} of {len(found.parameters)} parameters will be measured, {known} of them '
        "within a tenth; of the others the URDF's word remains"
    )


def _of_all(found: Excitation, name: str, joint: int) -> Any:
    """Return what all segments together use of a joint's limit; of positions, their range."""
    used = np.stack([getattr(each, name)[joint] for each in found.use])
    if name == 'position':
        return [float(used[:, 0].min()), float(used[:, 1].max())]
    return float(used.max())


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
