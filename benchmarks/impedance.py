# SPDX-License-Identifier: Apache-2.0
"""
Push twenty arms of public packages in MuJoCo, and print which springs and dampers are felt.

    python benchmarks/impedance.py [ARM ...] [--rate 1000 --rate 250] [--seed 0] [--node]

Each arm has friction (Coulomb 1 % of its effort limits, 1 N m at most, half as much viscous per
rad/s), rotors (1/300 kg m² per N m of effort limit), noise of its sensors and drives; its model is
10 % wrong in each link's inertia, each joint's friction and rotor. It stands in a bent posture,
away from singular ones. Stiffness is drawn: 200 to 800 N/m and 10 to 50 N m/rad, the same along
and about all axes.

For each arm and rate, with 80 % of the friction compensated, and with none: the slope of a slow
push of up to 20 N (5 N m) along and about each axis of the base, fewer where drives cannot hold
more, against the stiffness; the width of the loop along one axis; the damping ratio of a released
push in the mode that is fastest, and in the one that is softest. For arms of seven joints and
more: how far the tip moves while the arm moves in its null space, and how far where the model's
inertias are right: a wrong gravity that changes with the posture bends the springs.

Beside it, on the same arms, the law of crisp_controllers 8093548 with its published defaults: JT
(K e - 2 sqrt(K) v), 500 N/m and 30 N m/rad, 1 N m/rad in the kinematic null space, 0.5 N m a
cycle, no friction; with the gravity of the same wrong model. Its own code is not run.

With --node the arm is a simulator_node's, and a dynamics_node holds it, in lockstep over DDS: a
push along one axis and one about another, drawn, at 250 Hz where not asked otherwise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from soft_arm import Named, SoftArm, displacement, modes, released_push, slow_push

from robodyn_ros import forward_kinematics, gravity_torque
from robodyn_ros.kinematics import tip_jacobian

ARMS = {
    'Panda': Named('panda.urdf', 'panda_link0', 'panda_link8'),
    # Its URDF has the UR10's effort limits.
    'UR3': Named('ur3_robot.urdf', 'base_link', 'tool0', (56, 56, 28, 12, 12, 12)),
    'UR5': Named('ur5_robot.urdf', 'base_link', 'tool0'),
    'UR10': Named('ur10_robot.urdf', 'base_link', 'tool0'),
    'xArm7': Named('xarm7.urdf', 'world', 'link_eef'),
    'Z1': Named('z1.urdf', 'world', 'link06'),
    'Jaco 2': Named('kinova.urdf', 'base', 'j2s6s200_end_effector'),
    'Baxter right': Named('baxter.urdf', 'torso', 'right_hand_camera_link'),
    'Baxter left': Named('baxter.urdf', 'torso', 'left_hand_camera_link'),
    'KR 16': Named('kr16_2.urdf', 'base_link', 'tool0', (1000, 1000, 600, 100, 90, 60)),
    'Talos left': Named('talos_left_arm.urdf', 'arm_left_1_link', 'arm_left_7_link'),
    'Talos right': Named('talos_reduced.urdf', 'torso_2_link', 'arm_right_7_link'),
    'Tiago': Named('tiago.urdf', 'torso_lift_link', 'arm_tool_link'),
    'Tiago Pro': Named('tiago_pro.urdf', 'torso_lift_link', 'arm_left_tool_link'),
    'PR2': Named('pr2.urdf', 'torso_lift_link', 'r_gripper_palm_link'),
    'G1': Named('g1_29dof_rev_1_0.urdf', 'torso_link', 'left_rubber_hand'),
    'Centauro': Named('centauro.urdf', 'torso_2', 'ball1_tip'),
    'Alex': Named('alex_nub_hands.urdf', 'Pelvis', 'LeftWristYawIMULink'),
    'KR 120': Named('kr120r2500pro.urdf', 'base_link', 'tool0', (9e3, 9e3, 6e3, 1e3, 1e3, 500)),
    'KR 210': Named('kr210l150.urdf', 'base_link', 'tool0', (15e3, 15e3, 9e3, 1e3, 1e3, 500)),
}


class CrispLaw(SoftArm):
    """The same arm under the law of crisp_controllers."""

    STIFFNESS = np.array([500.0] * 3 + [30.0] * 3)
    LARGEST_STEP, NULLSPACE, CLIP = 0.5, 1.0, np.array([0.1] * 3 + [0.5] * 3)

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.goal, self.last = forward_kinematics(self.model, self.start), None

    def torque(self, position, velocity):
        model = self.assumed
        error = displacement(self.goal, forward_kinematics(model, position))
        error = np.clip(error, -self.CLIP, self.CLIP)
        jacobian = tip_jacobian(model, position)
        damping = 2.0 * np.sqrt(self.STIFFNESS)
        task = jacobian.T @ (self.STIFFNESS * error - damping * (jacobian @ velocity))
        posture = self.NULLSPACE * (self.start - position) - 2.0 * velocity
        null = posture - np.linalg.pinv(jacobian) @ (jacobian @ posture)
        torque = task + np.clip(null, -5.0, 5.0)
        if self.last is not None:
            torque = self.last + np.clip(torque - self.last, -self.LARGEST_STEP, self.LARGEST_STEP)
        self.last = torque
        return np.clip(torque + gravity_torque(model, position), -self.limits, self.limits)


def holds(arm, wrench, moved):
    """Whether drives hold a wrench where it has moved the tip by (6,) [m, rad]."""
    position, start = arm.start, forward_kinematics(arm.model, arm.start)
    for _ in range(10):
        off = moved - displacement(forward_kinematics(arm.model, position), start)
        position = position + np.linalg.pinv(tip_jacobian(arm.model, position)) @ off
    held = gravity_torque(arm.assumed, position) - tip_jacobian(arm.model, position).T @ wrench
    return bool((np.abs(held) < 0.9 * arm.limits).all())


def largest_push(arm, stiffness, axis, wanted):
    """Return the push to both sides along an axis that drives hold, that bends no spring far."""
    push = min(wanted, (0.1 if axis < 3 else 0.3) * stiffness[axis])
    sides = (np.eye(6)[axis], -np.eye(6)[axis])
    while not all(holds(arm, push * side, push * side / stiffness) for side in sides):
        push *= 0.95
    return push


def pushed(arm, stiffness, axes=range(6)):
    """Return each axis's error of the rendered stiffness [%], and the first loop's width."""
    # A push is slow beside the softest mode: else it is the arm's inertia that is felt.
    softest = np.sqrt(modes(arm, stiffness)[0][0])
    duration = max(16.0, 57.0 / softest)
    arm.run(duration / 16.0)
    errors, width = [], None
    for axis in axes:
        push = largest_push(arm, stiffness, axis, 20.0 if axis < 3 else 5.0)
        found = slow_push(arm, axis, push, duration)
        errors.append(100.0 * (found.stiffness / stiffness[axis] - 1.0))
        width = found.hysteresis if width is None else width
    return np.array(errors), 1e3 * width


def null_motion(arm, speed=0.3, duration=2.0):
    """Move the posture through the null space; return how far the tip went at most [mm]."""
    path, steps, way = [arm.start], 200, None
    pose = forward_kinematics(arm.model, arm.start)
    for _ in range(steps):
        jacobian = tip_jacobian(arm.assumed, path[-1])
        null = np.linalg.svd(jacobian)[2][-1]
        way = null if way is None else null * np.sign(null @ way)
        position = path[-1] + way * speed * duration / steps
        off = displacement(pose, forward_kinematics(arm.model, position))
        path.append(position + np.linalg.pinv(jacobian) @ off)
    times = 0.5 + np.arange(0, steps + 1, 10) * duration / steps
    start = arm.pose()
    arm.follow(path[::10], times)
    moved = arm.run(
        duration + 1.5, each=lambda: np.linalg.norm(displacement(arm.pose(), start)[:3])
    )
    return 1e3 * moved.max()


def drawn(name, seed):
    """Return an arm's stiffness along and about the axes (6,), and the generator."""
    random = np.random.default_rng([seed, *name.encode()])
    linear, angular = random.uniform(200.0, 800.0), random.uniform(10.0, 50.0)
    return np.array([linear] * 3 + [angular] * 3), random


def row_of_node(case):
    """Return the line of what one arm renders at a rate under the node."""
    from soft_node import SoftNode

    name, rate, seed = case
    stiffness, random = drawn(name, seed)
    given = {'mode': 'cartesian_impedance', 'impedance_tip_stiffness': stiffness}
    arm = SoftArm(ARMS[name], rate, seed=seed, **given)
    springs = {'impedance__tip_stiffness': stiffness.tolist(), 'friction_compensation': 0.8}
    with tempfile.TemporaryDirectory() as folder:
        node = SoftNode(arm, Path(folder), **springs)
        try:
            axes = random.integers(3), 3 + random.integers(3)
            errors, width = pushed(node, stiffness, axes)
        finally:
            node.close()
    return (
        f'{name:13} {rate:5.0f} {stiffness[0]:4.0f} {stiffness[3]:3.0f}  '
        f'{"xyz"[axes[0]]}{"xyz"[axes[1] - 3]}  {errors[0]:5.1f} {errors[1]:5.1f} {width:5.1f}'
    )


def row(case):
    """Return the line of what one arm renders at a rate."""
    name, rate, seed = case
    stiffness, _ = drawn(name, seed)
    linear, angular = stiffness[[0, 3]]
    given = {'mode': 'cartesian_impedance', 'impedance_tip_stiffness': stiffness}
    helped = {'friction_compensation': 0.8, **given}
    arm = SoftArm(ARMS[name], rate, seed=seed, **helped)
    errors, width = pushed(arm, stiffness)
    ratios = [released_push(arm, stiffness, mode) for mode in (0, 5)]
    null = [np.nan, np.nan]
    if arm.model.n > 6:
        for k, error in enumerate((0.1, 0.0)):
            again = SoftArm(ARMS[name], rate, error, seed, arm.start, **helped)
            again.run(1.0)
            null[k] = null_motion(again)
    plain = SoftArm(ARMS[name], rate, seed=seed, position=arm.start, **given)
    plain_errors, plain_width = pushed(plain, stiffness)
    crisp = CrispLaw(ARMS[name], rate, seed=seed, position=arm.start, **given)
    crisp_errors, crisp_width = pushed(crisp, CrispLaw.STIFFNESS)

    def worst(values):
        return f'{np.abs(values[:3]).max():5.1f} {np.abs(values[3:]).max():5.1f}'

    return (
        f'{name:13} {rate:5.0f} {linear:4.0f} {angular:3.0f}  {worst(errors)} {width:5.1f}'
        f'  {ratios[0]:4.2f} {ratios[1]:4.2f} {null[0]:5.2f} {null[1]:5.2f}'
        f'  {worst(plain_errors)} {plain_width:5.1f}  {worst(crisp_errors)} {crisp_width:5.1f}'
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('arms', nargs='*', choices=[*ARMS, []], metavar='ARM')
    parser.add_argument('--rate', type=float, action='append')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--node', action='store_true')
    given = parser.parse_args()
    rates = given.rate or ((250.0,) if given.node else (1000.0, 250.0))
    cases = [(name, rate, given.seed) for name in given.arms or ARMS for rate in rates]
    if given.node:
        print('Error along and about an axis [%], loop along [mm], by a node over DDS')
        print('arm            rate  N/m Nm  axes along about  loop')
        for case in cases:
            print(row_of_node(case), flush=True)
        return
    print('Worst error along and about three axes [%], loop [mm], damping ratio, null motion [mm]')
    print(
        'arm            rate  N/m Nm  along about  loop  soft fast  null right'
        '  plain about  loop  crisp about  loop'
    )
    with ProcessPoolExecutor() as processes:
        for line in processes.map(row, cases):
            print(line, flush=True)


if __name__ == '__main__':
    main()
