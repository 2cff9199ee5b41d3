# SPDX-License-Identifier: Apache-2.0
"""
Check and simulate, by the way in that docs/arms.md states, every arm that a package describes.

    python benchmarks/arms.py [ARM ...]

Arms are named as in docs/arms.yaml; without names all are run. docs/arms_runs.yaml is written,
which docs/write_arms_table.py puts into the page. Descriptions come from installed packages; those
that are missing, and arms that are not named, keep their earlier run. What the tests do not need:

    pip install --no-deps airo-models differentiable-robot-model \
        openarm-mujoco piper-control

The simulated arm has the bodies and the friction of its URDF or MJCF; rotors are in an MJCF alone.
Its drive does what the page says of the driver: it adds gravity and friction, it adds a torque to
its position loop, or it takes positions alone, 100 a second. So the figures show that way, terms
and signs fit each other; how well the description fits an arm, only a recording shows. Each motion
is run without the model and with it, by the same gains. Those that docs/arms.yaml has for a servo
damp the arm's whole velocity, as nobody commands one: the model knows them as friction of the
joint. Else a joint gets what gives its own inertia 10 rad/s and critical damping.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import date
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robodyn_ros import RobotModel, mass_matrix
from robodyn_ros.control.servo_offset import ServoOffset
from robodyn_ros.description.chain import Chain
from robodyn_ros.description.mjcf import is_mjcf
from robodyn_ros.motions import MotionSamples, example_motion
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.simulation import ArmSimulation
from robodyn_ros.simulation.closed_loop import SimulatedMotion, simulated_motion
from robodyn_ros.simulation.drive import Drive

DOCS = Path(__file__).resolve().parents[1] / 'docs'
FACTS, RUNS = DOCS / 'arms.yaml', DOCS / 'arms_runs.yaml'
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by benchmarks/arms.py, read by docs/write_arms_table.py. Errors in mrad.
"""
TIME_STEP = 1e-3  # s
BANDWIDTH = 10.0  # rad/s, of a drive whose gains nobody states
SERVO_STEPS = 10  # between two positions that a servo is sent
# The law that computes the torque of each way in; ways without one are not simulated.
LAWS = {
    'node': 'computed_torque',
    'topic': 'computed_torque',
    'feedforward': 'feedforward',
    'library': 'feedforward',
    'servo': 'feedforward',
}


class DrivenArm(ArmSimulation):
    """
    An arm in MuJoCo behind a drive that is sent a motion; ``step`` takes the model's torque.

    A drive that ``brakes`` is told no velocity; one with a ``servo``'s offsets no torque either.
    """

    def __init__(
        self,
        chain: Chain,
        drive: Drive,
        motion: MotionSamples,
        *,
        brakes: bool = False,
        servo: ServoOffset | None = None,
    ) -> None:
        super().__init__(chain, time_step=TIME_STEP)
        self._drive, self._servo = drive, servo
        time = np.arange(motion.time[0], motion.time[-1] + 2 * TIME_STEP, TIME_STEP)
        self._asked, self._asked_velocity = (
            np.stack([np.interp(time, motion.time, column) for column in table.T], axis=1)
            for table in (motion.q, motion.qd)
        )
        if brakes:  # as a joint's damping, implicitly: a light wrist needs it
            self._model.dof_damping[:] += drive.velocity_gain
            self._drive = replace(drive, velocity_gain=0.0)

    def reset(self, position: np.ndarray) -> None:
        super().reset(position)
        self._steps, self._target = 0, np.asarray(position, dtype=float)

    def step(self, torque: np.ndarray) -> None:
        state, k = (self.position, self.velocity), self._steps
        self._steps += 1
        if self._servo is None:
            command = {'effort': torque, 'desired_velocity': self._asked_velocity[k]}
            super().step(self._drive.torque(*state, desired_position=self._asked[k], **command))
            return
        if k % SERVO_STEPS == 0:
            self._target = self._servo.command(self._asked[k], torque)
        super().step(self._drive.torque(*state, desired_position=self._target))


def file_of(package: str, name: str) -> Path:
    """Return the path of an installed package's file; PackageNotFoundError where it has none."""
    for each in files(package) or []:
        if each.name == name:
            return Path(str(each.locate())).resolve()
    raise PackageNotFoundError(f'{package} with {name}')


def tracking(chain: Chain, model: RobotModel, arm: dict[str, Any]) -> dict[str, Any] | None:
    """Return the errors of an arm's stated way with and without the model [mrad]."""
    kind = arm['way_in']['kind']
    if kind not in LAWS:
        return None
    motion = example_motion(model)
    own_inertia = np.diag(mass_matrix(model, motion.q.mean(axis=0)))
    gains = arm.get('servo', {})
    # Those of one arm are each arm's of a tree.
    stiffness = np.resize(gains.get('stiffness', BANDWIDTH**2 * own_inertia), model.n)
    critical = 2 * np.sqrt(stiffness * own_inertia)
    damping = np.resize(gains.get('damping', critical), model.n)
    limits = np.minimum(known_effort_limits(model), gains.get('limit', np.inf))
    gravity, friction = (arm[term]['who'] == 'robot' for term in ('gravity', 'friction'))
    law_model, servo, brakes = model, None, bool(gains)
    if brakes:  # the damping acts as friction of the joint, which the model is to know
        law_model = replace(model, viscous_friction=model.viscous_friction + damping)
    if kind == 'servo':
        (largest,) = arm['way_in'].get('parameters', {}).get('largest_offset', [0.1])
        servo = ServoOffset.of(model, stiffness, largest)
    if gravity:
        law_model = law_model.with_gravity(np.zeros(3))
    if friction:
        law_model = without_friction(law_model)
    inside = replace(model, effort_limits=limits)
    drive = Drive(inside, stiffness, damping, gravity, float(friction))
    # Where the model's law has the feedback, the drive has none.
    feeds_back = LAWS[kind] == 'computed_torque'
    with_model = replace(drive, position_gain=0.0, velocity_gain=0.0) if feeds_back else drive
    sent: dict[str, Any] = {'motion': motion, 'brakes': brakes, 'servo': servo}
    alone = simulated_motion(DrivenArm(chain, drive, **sent), law_model, motion, 'free')
    driven = DrivenArm(chain, with_model, **sent)
    tracked = simulated_motion(driven, law_model, motion, LAWS[kind])
    return {
        'seconds': round(float(motion.time[-1] - motion.time[0]), 2),
        'without': errors(alone),
        'with': errors(tracked),
    }


def without_friction(model: RobotModel) -> RobotModel:
    """Return a model whose joints have no friction."""
    zero = np.zeros(model.n)
    return replace(model, viscous_friction=zero, coulomb_friction=zero)


def errors(motion: SimulatedMotion) -> dict[str, float]:
    """Return the root of the mean square error of all joints, and the largest [mrad]."""
    error = 1e3 * np.abs(motion.error)
    rms = np.sqrt((error**2).mean())
    return {'rms': float(f'{rms:.3g}'), 'largest': float(f'{error.max():.3g}')}


def run(arm: dict[str, Any], description: dict[str, str]) -> dict[str, Any]:
    """Return what `robodyn check` says of one description, and how its simulation tracks."""
    path = file_of(description['package'], description['file'])
    read = Chain.from_mjcf if is_mjcf(path) else Chain.from_urdf
    chain = read(path, base_link=description['base'], tip_link=description['tip'])
    model = RobotModel.from_chain(chain)
    warnings = [each for each in model.findings if each.level == 'warning']
    found: dict[str, Any] = {
        'robot': description['robot'],
        'version': version(description['package']),
        'joints': model.n,
        'mass': float(f'{model.inertial_parameters[:, 9].sum():.4g}'),
        'warnings': len(warnings),
        'worst': f'{model.findings[0].level}: {model.findings[0]}' if model.findings else 'none',
    }
    tracked = tracking(chain, model, arm)
    if tracked is not None:
        found['tracking'] = tracked
    return found


def line(name: str, found: dict[str, Any]) -> str:
    """Return a run in a line."""
    text = f'{name:10}{found["robot"]:18}{found["warnings"]:3} warnings'
    if 'tracking' not in found:
        return f'{text}   no way in: not simulated'
    parts = [
        f'{key} {found["tracking"][key]["rms"]:8g} rms {found["tracking"][key]["largest"]:8g} most'
        for key in ('without', 'with')
    ]
    return f'{text}   [mrad] {parts[0]}, {parts[1]}'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('arms', nargs='*', metavar='ARM')
    chosen = parser.parse_args().arms
    arms = yaml.safe_load(FACTS.read_text(encoding='utf-8'))['arms']
    names = [arm['id'] for arm in arms]
    unknown = [name for name in chosen if name not in names]
    if unknown:
        parser.error(f'{", ".join(unknown)}; allowed: {", ".join(names)}')
    earlier = yaml.safe_load(RUNS.read_text(encoding='utf-8'))['runs'] if RUNS.exists() else {}
    runs: dict[str, list[dict[str, Any]]] = {}
    for arm in arms:
        if chosen and arm['id'] not in chosen:
            if arm['id'] in earlier:
                runs[arm['id']] = earlier[arm['id']]
            continue
        for description in arm.get('descriptions', []):
            kept = runs.setdefault(arm['id'], [])
            try:
                found = {**run(arm, description), 'date': date.today()}
            except PackageNotFoundError as missing:
                print(f'{arm["id"]:10}{description["robot"]:18} not run: no package {missing}')
                before = [
                    each
                    for each in earlier.get(arm['id'], [])
                    if each['robot'] == description['robot']
                ]
                kept.extend(before)
                continue
            print(line(arm['id'], found), flush=True)
            kept.append(found)
    record = {'mujoco': version('mujoco'), 'runs': runs}
    RUNS.write_text(
        HEAD + yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=98),
        encoding='utf-8',
    )


if __name__ == '__main__':
    sys.exit(main())
