# SPDX-License-Identifier: Apache-2.0
"""
Measure our arms in Gazebo or MuJoCo, and print its table of docs/simulators.md.

    python benchmarks/gazebo.py [--simulator mujoco] [--ways forward chained]
        [--arms arm panda two] [--rest 60] [--real-time-factor 1]
        [--picture docs/images/gazebo.png]

Real, and without a window: the simulator, ros2_control and the launch file gazebo.launch.py or
mujoco.launch.py, which must be installed. For each way and arm: the largest motion of a joint in
the first second after spawning, and until the torques have carried it for three; the largest
kinetic energy until then; how far it drifts at rest; the tracking error of the docs' motion and of
three that take 2 s, over all joints, as the node or the trajectory controller tells it; the same
by the PD gains alone; and the real-time factor that the machine held.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from gazebo_rig import DIRECTLY, DOCS_GOAL, WAYS, Arm, GazeboRig, MujocoRig, share
from matplotlib.figure import Figure
from robots import public_urdf

from robodyn_ros import RobotModel, mass_matrix

SETTLING = 5.0  # after the torques came, or a motion ended, before rest is measured [s]
# Of 2 s, after the docs' motion: half a radian of every joint, there and back.
STEPS = (np.zeros(6), np.array([-0.5, -0.5, 0.5, -0.5, -0.5, 0.5]), np.zeros(6))
SIMULATORS = {'gazebo': GazeboRig, 'mujoco': MujocoRig}
COLORS = ('#d55e00', '#0072b2', '#009e73', '#cc79a7', '#e69f00', '#56b4e9')
PANDA_JOINTS = [f'panda_joint{i}' for i in range(1, 8)]
PANDA_START = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
PANDA_CHAIN = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
PANDA_DAMPING = '0.3'  # [N m s/rad]; the URDF's 0.003 lets the arm topple in gravity compensation
PANDA_KP, PANDA_KD = 400.0, 40.0  # of its joint trajectory controller, times the inertia
PD_ALONE = {f'terms__{name}': False for name in ('inertial', 'coriolis', 'gravity', 'friction')}


def panda(way: str, folder: Path) -> dict[str, str]:
    """Return the arguments that launch a Panda with its gripper, as beside_your_driver.md says."""
    package, name = (
        ('robodyn_controllers', 'controllers.yaml')
        if way == 'chained'
        else ('robodyn_ros', 'ros2_controllers.yaml')
    )
    source = share(package) / 'config' / name
    sections = yaml.safe_load(source.read_text(encoding='utf-8'))
    for section in sections.values():
        values = section['ros__parameters']
        if 'joints' in values:
            values['joints'] = list(PANDA_JOINTS)
        if 'gains' in values:
            # A gain that suits a link with its drive shakes one of this URDF, which has no drives.
            # And one that suits a joint while the others are locked does where they are free: at
            # the docs' goal the axes of joints 1 and 3 are in line.
            model = RobotModel.from_urdf(public_urdf('panda.urdf'), **PANDA_CHAIN)
            poses = (PANDA_START, panda_goal(DOCS_GOAL))
            inverses = [np.linalg.inv(mass_matrix(model, pose)) for pose in poses]
            inertias = np.min([1.0 / np.diag(inverse) for inverse in inverses], axis=0)
            values['gains'] = {
                joint: {
                    'p': float(PANDA_KP * inertia),
                    'd': float(PANDA_KD * inertia),
                    'antiwindup_strategy': 'none',
                }
                for joint, inertia in zip(PANDA_JOINTS, inertias)
            }
        if 'command_joints' in values:
            prefix = 'inverse_dynamics_controller/'
            values['command_joints'] = [prefix + joint for joint in PANDA_JOINTS]
    file = folder / 'panda_controllers.yaml'
    file.write_text(yaml.safe_dump(sections))
    start = ' '.join(map(str, PANDA_START))
    return {
        'description_file': str(share('robodyn_ros') / 'urdf' / 'with_ros2_control.urdf.xacro'),
        'description_arguments': f'urdf_file:={public_urdf("panda.urdf")} '
        f"base_link:=panda_link0 joints:='{' '.join(PANDA_JOINTS)}' "
        f"initial_positions:='{start}'",
        'controllers_file': str(file),
        'joint_damping': PANDA_DAMPING,
        **PANDA_CHAIN,
    }


def panda_goal(offsets: Any) -> np.ndarray:
    """Return a position of the Panda [rad], as far from where it begins as the arm's of urdf/."""
    return PANDA_START + 0.8 * np.array([*offsets, 0.4])


class Scene:
    """One or two arms in one world, and their motions in it."""

    def __init__(
        self,
        name: str,
        way: str,
        folder: Path,
        factor: float,
        simulator: type[GazeboRig] = GazeboRig,
        **more: str,
    ) -> None:
        self.name, self.chain = name, PANDA_CHAIN if name == 'panda' else {}
        first = {'namespace': 'left', 'model_name': 'left', 'tf_prefix': 'left_'}
        arguments = {'arm': {}, 'panda': panda(way, folder), 'two': first}[name]
        self.rig = simulator(folder, factor, way, **arguments, **more)
        self.arms = [self.rig.arm]
        try:
            self.rig.bring_up()
            if name == 'two':
                second = {key: value.replace('left', 'right') for key, value in first.items()}
                place = {'position': '0 1 0', 'start_gazebo': 'false'}
                self.arms.append(self.rig.launch(**second, **place))
                self.rig.bring_up()
        except BaseException:  # what is interrupted, too, is to end Gazebo
            self.rig.close()
            raise

    def goal(self, offsets: Any) -> np.ndarray:
        """Return a position [rad] of the arms in this scene."""
        return panda_goal(offsets) if self.name == 'panda' else np.array(offsets)

    def figures(self, rest: float) -> dict[str, Any]:
        """Measure all, and return the row of the table."""
        rig, row = self.rig, {}
        begins = [float(arm.between(0.0)[0][0]) for arm in self.arms]
        rig.simulate(3.0)
        row['first second'] = largest(
            span(arm, begin, begin + 1.0) for arm, begin in zip(self.arms, begins)
        )
        row['until carried'] = largest(
            span(arm, begin, rig.now) for arm, begin in zip(self.arms, begins)
        )
        row['energy'] = max(
            float(arm.energy(begin, rig.now, **self.links(arm))[1].max())
            for arm, begin in zip(self.arms, begins)
        )
        rig.simulate(SETTLING)
        wall, (begin, end) = time.monotonic(), rig.simulate(rest)
        row['factor'] = (end - begin) / (time.monotonic() - wall)
        row['drift'] = max(
            float(1e3 * np.abs(np.diff(arm.between(begin, end)[1][[0, -1]], axis=0)).max())
            for arm in self.arms
        )
        if rig.way == 'forward':
            for arm in self.arms:
                rig.set_parameters(f'{arm.namespace}/dynamics_node', mode='computed_torque')
            rig.simulate(1.0)
        docs = self.move(self.goal(DOCS_GOAL), 3.0)
        self.drawn = docs[0][0]
        row['docs'] = self.error(docs)
        row['2 s'] = [self.error(self.move(self.goal(step), 2.0)) for step in STEPS]
        row['PD'] = self.by_gains_alone()
        return row

    def links(self, arm: Arm) -> dict[str, str]:
        """Return the chain of an arm, as keyword arguments of RobotModel."""
        return self.chain

    def move(self, goal: np.ndarray, duration: float, **where: Any) -> list[tuple[float, float]]:
        """Move every arm to a goal [rad] in a time [s], and return when each did [s]."""
        begins = [self.rig.move(goal, duration, arm=arm, **where) for arm in self.arms]
        return [self.rig.arrive(begin, goal, arm) for begin, arm in zip(begins, self.arms)]

    def error(self, times: list[tuple[float, float]]) -> tuple[float, float]:
        """Return the tracking error of a motion: its root mean square and its largest [mrad]."""
        pairs = [arm.tracked(*span)[1:] for arm, span in zip(self.arms, times)]
        errors = np.concatenate([np.subtract(*pair).ravel() for pair in pairs])
        return 1e3 * float(np.sqrt((errors**2).mean())), 1e3 * float(np.abs(errors).max())

    def by_gains_alone(self) -> tuple[float, float]:
        """Return the error of the last motion of 2 s, back, where only the PD acts."""
        goal, where = self.goal(STEPS[1]), {}
        if self.rig.way == 'trajectory':
            where = {'topic': DIRECTLY}
            for arm in self.arms:  # where it is, now without effort
                self.rig.move(self.goal(STEPS[2]), 1.0, arm=arm, **where)
        else:
            node = 'dynamics_node' if self.rig.way == 'forward' else WAYS['chained'][0]
            for arm in self.arms:
                name = f'{arm.namespace}/{node}'
                self.rig.set_parameters(name, max_following_error=0.0, **PD_ALONE)
        self.rig.simulate(3.0)
        return self.error(self.move(goal, 2.0, **where))


def span(arm: Arm, begin: float, end: float) -> np.ndarray:
    """Return how far each joint moved in a time [mrad]."""
    return 1e3 * np.ptp(arm.between(begin, end)[1], axis=0)


def largest(spans: Any) -> float:
    """Return the largest of some arrays."""
    return max(float(each.max()) for each in spans)


def draw(arm: Arm, begin: float, file: Path) -> None:
    """Draw the docs' motion: where the joints were to be and were, and the difference."""
    times, desired, actual = arm.tracked(begin - 0.2, begin + 3.4)  # another one follows
    times = times - begin
    figure = Figure(figsize=(12, 4.8), dpi=130, facecolor='white')
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.06, right=0.98, top=0.8, bottom=0.13, wspace=0.18)
    title = 'A motion in Gazebo: the model carries the arm along its path'
    figure.text(0.06, 0.92, title, fontsize=17, fontweight='bold', color='#222222')
    for i, color in enumerate(COLORS):
        left.plot(times, actual[:, i], color=color, linewidth=2.0, label=arm.names[i])
        left.plot(times, desired[:, i], color='#222222', linewidth=0.9, linestyle=(0, (4, 4)))
        right.plot(times, 1e3 * (actual - desired)[:, i], color=color, linewidth=0.7)
    rms = 1e3 * np.sqrt(((actual - desired)[(times >= 0.0) & (times <= 3.2)] ** 2).mean())
    left.set_title('Position, and dashed the reference [rad]', loc='left', fontsize=12.5)
    right.set_title(f'Tracking error [mrad], {rms:.2f} mrad rms', loc='left', fontsize=12.5)
    for axes in (left, right):
        axes.set_xlabel('simulated time [s]', fontsize=12)
        axes.grid(axis='y', color='#dddddd', linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ('top', 'right'):
            axes.spines[side].set_visible(False)
    left.legend(frameon=False, fontsize=10, ncols=2)
    figure.savefig(file, metadata={'Title': title, 'Source': 'benchmarks/gazebo.py'})


def main() -> None:
    """Measure what was asked for, and print a row after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--simulator', choices=SIMULATORS, default='gazebo')
    parser.add_argument('--ways', nargs='+', choices=WAYS, default=list(WAYS))
    parser.add_argument('--arms', nargs='+', default=['arm', 'panda', 'two'])
    parser.add_argument('--rest', type=float, default=60.0, help='[s]')
    parser.add_argument('--real-time-factor', type=float, default=1.0)
    parser.add_argument('--picture', type=Path, help='of the first motion')
    arguments = parser.parse_args()
    simulator = SIMULATORS[arguments.simulator]
    if arguments.simulator == 'mujoco' and 'two' in arguments.arms:
        arguments.arms.remove('two')  # each would be a simulation of its own
    print(
        '| way | arm | first second [mrad] | until carried [mrad] | energy [J] | drift in '
        f'{arguments.rest:g} s [mrad] | docs motion rms (max) [mrad] | 2 s motions | PD alone '
        '| real-time factor |\n|---|---|---|---|---|---|---|---|---|---|'
    )
    for way in arguments.ways:
        for name in arguments.arms:
            with tempfile.TemporaryDirectory() as folder:
                scene = None
                try:
                    scene = Scene(name, way, Path(folder), arguments.real_time_factor, simulator)
                    row = scene.figures(arguments.rest)
                finally:
                    if scene is not None:
                        scene.rig.close()
            if arguments.picture is not None:
                draw(scene.arms[0], scene.drawn, arguments.picture)
                arguments.picture = None
            steps = ', '.join(f'{rms:.2f} ({most:.1f})' for rms, most in row['2 s'])
            print(
                f'| {way} | {name} | {row["first second"]:.2f} | {row["until carried"]:.1f} '
                f'| {row["energy"]:.4f} | {row["drift"]:.3f} '
                f'| {row["docs"][0]:.2f} ({row["docs"][1]:.1f}) | {steps} '
                f'| {row["PD"][0]:.1f} ({row["PD"][1]:.0f}) | {row["factor"]:.2f} |',
                flush=True,
            )


if __name__ == '__main__':
    main()
