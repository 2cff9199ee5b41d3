# SPDX-License-Identifier: Apache-2.0
"""
Measure what feedforward is worth beside drives that are no torque sources, in MuJoCo.

    python benchmarks/drives.py

Each arm rests for 2 s, moves for 2 s and rests for 2 s, and has friction (``test/support/
driven_arms.py``). Errors are those from the motion's beginning on, of all joints, at 1 kHz: rms,
largest, and largest 2 s after the motion, in mrad. The trajectories are those of ``feedforward``,
as the joint trajectory controller samples them.

- Driver that compensates: gravity and 80 % of friction inside, a PD controller of 200 N m/rad and
  20 N m s/rad in front of it; the payload is 2 kg, 5 cm from the tip.
- Servo with torque beside: kp four times the joint's rms gravity torque a radian, kd = 0.14 kp.
- Servo that takes positions alone: kp about 20 times that torque, of each joint another one, and
  kd = 0.05 kp. Nobody knows the gains: ``servo_gains`` measures them in eight random poses, each
  approached from a random side, by encoders of 4096 counts. Joints that gravity does not turn are
  not measured, not offset, and not in the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from driven_arms import VISCOUS, DrivenArm, driven_arm, measured_gains

from robodyn_ros import Payload
from robodyn_ros.control.law import Terms
from robodyn_ros.control.servo_offset import ServoOffset
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.simulation.drive import Drive

PAYLOAD = Payload(2.0, (0.0, 0.0, 0.05))
REST_OF_TORQUE = Terms(inertial=True, coriolis=True, gravity=False, friction=False)
WITH_GRAVITY = Terms(inertial=True, coriolis=True, gravity=True, friction=False)


def compensating(arm: DrivenArm) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what was done and the errors, with a driver that compensates by itself."""
    loaded = arm.model.with_payload(PAYLOAD)
    drive = Drive(arm.model, 200.0, 20.0, compensates_gravity=True, compensates_friction=0.8)
    told = replace(drive, model=loaded)
    bare, rest = arm.trajectory(), arm.filled(arm.model, REST_OF_TORQUE)
    carried = arm.filled(loaded, REST_OF_TORQUE)
    yield 'PD alone', arm.error(drive, bare)
    yield 'feedforward of what is left', arm.error(drive, rest)
    both = arm.filled(arm.model, WITH_GRAVITY)
    yield 'both compensate gravity', arm.error(drive, both)
    yield '2 kg, driver told: PD alone', arm.error(told, bare, payload=PAYLOAD)
    yield '2 kg, both told: feedforward', arm.error(told, carried, payload=PAYLOAD)
    yield '2 kg, driver not told: feedforward', arm.error(drive, carried, payload=PAYLOAD)


def beside(arm: DrivenArm) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what was done and the errors, with a servo that takes position and torque."""
    kp = 4.0 * arm.model.viscous_friction / VISCOUS
    kd = 0.14 * kp
    drive, damped = Drive(arm.model, kp, kd), with_damping(arm, kd)
    filled = arm.filled(arm.model)
    yield 'position alone', arm.error(drive, arm.trajectory(), with_velocity=False)
    yield 'position, effort', arm.error(drive, filled, with_velocity=False)
    yield 'position, effort; kd told', arm.error(drive, damped, with_velocity=False)
    # What the joint trajectory controller does not allow.
    yield 'position, velocity, effort', arm.error(drive, filled)


def position_only(arm: DrivenArm) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what was done and the errors of measured joints, with a servo that takes positions."""
    random = np.random.default_rng(1)
    kp = 20.0 * arm.model.viscous_friction / VISCOUS * random.uniform(0.7, 1.3, arm.model.n)
    kd = 0.05 * kp
    drive = Drive(arm.model, kp, kd)
    found = measured_gains(arm, drive, random)
    known = found.gain > 0.0
    for name, true, gain, deviation in zip(found.joint_names, kp, found.gain, found.deviation):
        print(f'  {name}: {true:.3g}, measured {gain:.3g} ± {deviation:.2g} N m/rad')
    columns = np.arange(arm.model.n)
    servo = ServoOffset.of(arm.model, found.gain)

    def offset(filled: Trajectory) -> np.ndarray:
        moved = servo.in_trajectory(filled, columns, filled.efforts)
        return arm.error(drive, moved, with_velocity=False)[:, known]

    bare = arm.error(drive, arm.trajectory(), with_velocity=False)
    yield 'position alone', bare[:, known]
    yield 'offset', offset(arm.filled(arm.model))
    yield 'offset; kd told', offset(with_damping(arm, kd))


def with_damping(arm: DrivenArm, damping: np.ndarray) -> Trajectory:
    """Return the trajectory filled by a model that has a servo's damping as viscous friction."""
    model = replace(arm.model, viscous_friction=arm.model.viscous_friction + damping)
    return arm.filled(model)


def main() -> None:
    """Print the table, and above it the gains."""
    rows = []
    for title, cases, arms in (
        ('driver that compensates', compensating, ('panda.urdf', 'ur5_robot.urdf')),
        ('servo, torque beside', beside, ('panda.urdf', 'ur5_robot.urdf')),
        ('position-only servo', position_only, ('so101.urdf', 'xarm7.urdf')),
    ):
        for name in arms:
            arm = driven_arm(name, 0.03 if name.startswith('so') else 0.1)
            for what, error in cases(arm):
                rms = np.sqrt(np.mean(error**2))
                sizes = [rms, np.abs(error).max(), np.abs(error[-1]).max()]
                numbers = ' | '.join(f'{1e3 * size:.3g}' for size in sizes)
                arm_name = name.removesuffix('.urdf').removesuffix('_robot')
                rows.append(f'| {title} | {arm_name} | {what} | {numbers} |')
    print('| drive | arm | | rms | largest | 2 s later |\n|---|---|---|--:|--:|--:|')
    print('\n'.join(rows))


if __name__ == '__main__':
    if sys.argv[1:]:
        sys.exit(__doc__)
    main()
