# SPDX-License-Identifier: Apache-2.0
"""
The whole loop on a simulated arm whose URDF is wrong: excite, record, identify, run again.

The simulator has other bodies, rotors, friction and sensors with noise; the dynamics node has the
URDF. A motion is made and run over ROS 2, recorded into a bag, and identified from it; a second
motion is run with the node as it was, and again with what was found.

Every run begins with the arm on its brakes and simulated time standing still, until the dynamics
node has taken the motion; from there on nodes and simulator wait for each other. So a seed gives
the same figures, however fast or busy the machine is.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from std_srvs.srv import Trigger

from robodyn_ros.description.yaml import parsed_yaml
from robodyn_ros.identification import Excitation, Recording, excitation, identify
from robodyn_ros.identification.urdf_output import identified_urdf
from robodyn_ros.model import RobotModel
from robodyn_ros.motions import table_as_csv
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.ros.demo.demonstration import Arm, DemoFailed
from robodyn_ros.ros.demo.node_process import NodeProcess
from robodyn_ros.ros.identification.results import Results, save_plot, summary, tables
from robodyn_ros.ros.lockstep import IN_LOCKSTEP
from robodyn_ros.ros.qos import RELIABLE
from robodyn_ros.simulation.sampled_arm import joint_loads, sampled_arm

TIME_STEP = 0.002  # of physics and control [s]
DURATION, NEW_DURATION = 15.0, 8.0  # of the motion to identify by, and of the new one [s]
LOCKSTEP_TIMEOUT = 0.2  # after which a state counts as lost and is sent again [s]
LONGEST_SILENCE = 60.0  # in which simulated time must go on [s]
POLLING = 0.1  # [s]

TRACKING = {'mode': 'computed_torque', 'max_following_error': 0.0}
SOFTEST, STIFFEST = 400.0, 40_000.0  # kp, as one would tune it before anything is known [1/s²]
STRONGEST_DAMPING = 0.5 / TIME_STEP  # kd [1/s]
UNKNOWN_TORQUE, TOLERATED_ERROR = 0.3, 0.05  # of what a joint feels, and what it may cost [rad, m]
ENCODER_STEP = 2 * np.pi / 2**19  # [rad]; as many steps to 10 cm
VELOCITY_NOISE = 1e-3  # [rad/s or m/s]
EFFORT_NOISE = 0.02  # of what the motion needs at most
STRONGER = 1.5  # effort limits, where the URDF has none: so much of what the motion needs


def run_identification(arm: Arm, output: Path, *, seed: int = 1) -> dict[str, Any]:
    """
    Run the loop, print its table, write ``summary.json``, ``identification.png`` and the bags.

    Parameters
    ----------
    arm : Arm
    output : Path
        Folder for the results; made where it is not there.
    seed : int
        Of the true arm, the motions and the noise.

    Returns
    -------
    dict
        What ``summary.json`` holds.

    Raises
    ------
    DemoFailed, NodeEnded
        A node ended, or the motion was not made.
    RobodynError
        The URDF cannot be used, or no motion was found.
    """
    console = Console()
    model = RobotModel.from_urdf(
        arm.urdf, base_link=arm.base_link or None, tip_link=arm.tip_link or None
    )
    output.mkdir(parents=True, exist_ok=True)
    (output / 'log').mkdir(exist_ok=True)
    true = sampled_arm(model, seed)
    true_urdf = output / 'true.urdf'
    true_urdf.write_bytes(identified_urdf(true, arm.urdf))
    columns = (TextColumn('{task.description:<44}'), BarColumn(), TimeElapsedColumn())
    begin = time.monotonic()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task('', total=6.0)

        def step(done: float, what: str) -> None:
            progress.update(bar, completed=done, description=what)

        motion = excitation(
            model,
            DURATION,
            seed=seed,
            progress=lambda part, _: step(part, 'a motion to identify by'),
        )
        new = excitation(
            model,
            NEW_DURATION,
            harmonics=3,
            seed=seed + 1,
            progress=lambda part, _: step(1 + part, 'a new motion to judge by'),
        )
        rig = _Rig(arm, model, true, true_urdf, output, seed, _limits(model, motion, new))
        training = rig.run('excitation', motion, lambda part: step(2 + part, 'excited'))
        before = rig.run('before', new, lambda part: step(3 + part, 'new motion, by the URDF'))
        found = identify(
            model,
            [training],
            validation=[before],
            progress=lambda part, what: step(4 + part, f'identifying: {what}'),
        )
        identified = output / 'identified.yaml'
        found.save(identified)
        found.to_urdf(arm.urdf, output / 'identified.urdf')
        after = rig.run(
            'after', new, lambda part: step(5 + part, 'new motion, as identified'), identified
        )
        step(6.0, 'done')
    results = Results(
        robot=model.name or arm.urdf.stem,
        model=model,
        true=true,
        found=found,
        training=training,
        before=before,
        after=after,
        asked=new,
        starts=(rig.starts['before'], rig.starts['after']),
        seconds=time.monotonic() - begin,
    )
    numbers = summary(results)
    (output / 'summary.json').write_text(json.dumps(numbers, indent=2) + '\n', encoding='utf-8')
    save_plot(results, output / 'identification.png')
    for table in tables(results, numbers):
        console.print(table)
    console.print(f'Plot: {output / "identification.png"}', highlight=False)
    return numbers


def _gains(model: RobotModel) -> dict[str, list[float]]:
    """Return gains stiff enough for friction and drives that the URDF knows nothing of."""
    torque, inertia = joint_loads(model, np.random.default_rng(0))
    stiffness = UNKNOWN_TORQUE / TOLERATED_ERROR * torque
    kp = np.clip(stiffness / inertia.min(axis=0), SOFTEST, STIFFEST)
    kd = np.minimum(2.0 * np.sqrt(kp), STRONGEST_DAMPING)
    return {'kp': kp.tolist(), 'kd': kd.tolist()}


@dataclass
class _Rig:
    """What every part is run with; ``run`` returns what was recorded of one."""

    arm: Arm
    model: RobotModel
    true: RobotModel
    true_urdf: Path
    output: Path
    seed: int
    limits: dict[str, Any]

    def __post_init__(self) -> None:
        self.starts: dict[str, float] = {}

    def run(
        self,
        name: str,
        motion: Excitation,
        advance: Callable[[float], None],
        identified: Path | None = None,
    ) -> Recording:
        """Run a motion with nodes of its own, the simulator in lockstep, and read the bag."""
        bag, csv = self.output / f'{name}_bag', self.output / f'{name}.csv'
        if bag.exists():
            shutil.rmtree(bag)
        samples = motion.trajectory
        names = [
            f'{joint}{suffix}'
            for suffix in ('', '.velocity', '.acceleration')
            for joint in self.model.joint_names
        ]
        csv.write_text(
            table_as_csv(names, samples.time, samples.q, samples.qd, samples.qdd),
            encoding='utf-8',
        )
        namespace = f'/robodyn_identify_{os.getpid()}/{name}'
        remappings = {'/clock': 'clock', '/diagnostics': 'diagnostics'}
        ends = {'base_link': self.arm.base_link, 'tip_link': self.arm.tip_link}
        logs = self.output / 'log'
        simulator = NodeProcess(
            'simulator_node',
            namespace=namespace,
            parameters={
                **ends,
                'urdf_file': str(self.true_urdf.resolve()),
                'initial_position': motion.start.tolist(),
                'time_step': TIME_STEP,
                'lockstep': True,
                'hold': True,
                'lockstep_timeout': LOCKSTEP_TIMEOUT,
                'rotor_inertia': self.true.rotor_inertia.tolist(),
                'position_resolution': ENCODER_STEP,
                'velocity_noise': VELOCITY_NOISE,
                'effort_noise': (EFFORT_NOISE * motion.use[0].effort).tolist(),
                'sensor_seed': self.seed,
            },
            remappings={**remappings, 'torques': 'dynamics_node/torques'},
            log=logs / f'{name}_simulator_node.log',
        )
        dynamics = NodeProcess(
            'dynamics.dynamics_node',
            namespace=namespace,
            parameters={
                **self.arm.parameters,
                **TRACKING,
                **_gains(self.model),
                **self.limits,
                **({'identified_model': str(identified.resolve())} if identified else {}),
                'use_sim_time': True,
                **IN_LOCKSTEP,
            },
            remappings=remappings,
            log=logs / f'{name}_dynamics_node.log',
        )
        runner = NodeProcess(
            'identification.motion_node',
            namespace=namespace,
            parameters={
                **self.arm.parameters,
                'motion_file': str(csv.resolve()),
                'confirm': True,
                'rehearsal_speed': 0.0,
                'position_tolerance': 0.5,
                'bag': str(bag.resolve()),
                'state_timeout': LONGEST_SILENCE,
            },
            remappings=remappings,
            log=logs / f'{name}_motion_node.log',
        )
        with ExitStack() as stack:
            context = rclpy.Context()
            rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
            stack.callback(context.try_shutdown)
            starter = _Starter(namespace, context)
            stack.callback(starter.destroy_node)
            executor = SingleThreadedExecutor(context=context)
            executor.add_node(starter)
            processes = [stack.enter_context(each) for each in (simulator, runner, dynamics)]
            newest, heard = starter.time, time.monotonic()
            while runner.exit_code is None:
                executor.spin_once(timeout_sec=POLLING)
                for process in processes:
                    if process is not runner:
                        process.check()
                if starter.time > newest:
                    newest, heard = starter.time, time.monotonic()
                    advance(min(newest / motion.duration, 0.99))
                elif time.monotonic() - heard > LONGEST_SILENCE:
                    raise DemoFailed(
                        f'{name}: simulated time has stood still at {newest:.1f} s for '
                        f'{LONGEST_SILENCE:.0f} s\n{runner.last_lines()}'
                    )
        if runner.exit_code:
            raise DemoFailed(f'{name}: the motion was not made\n{runner.last_lines()}')
        self.starts[name] = start_of_motion(bag)
        recording = Recording.from_bag(bag, self.model)
        if (longest := float(np.diff(recording.time).max())) > 1.5 * TIME_STEP:
            raise DemoFailed(
                f'{name}: the bag lacks joint states: two are {longest:.3f} s apart; allowed: '
                f'{TIME_STEP} s'
            )
        return recording


class _Starter(Node):
    """Lets the arm go once the dynamics node has taken the motion; ``time`` is simulated [s]."""

    def __init__(self, namespace: str, context: rclpy.Context) -> None:
        super().__init__('starter', namespace=namespace, context=context)
        self.time = 0.0
        self._released: Future | None = None
        self._release = self.create_client(Trigger, 'simulator_node/release')
        self.create_subscription(DiagnosticArray, 'diagnostics', self._on_diagnostics, RELIABLE)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if 'steps' in values:
                self.time = int(values['steps']) * TIME_STEP
            is_taken = values.get('reference') in ('waiting', 'moving')
            if is_taken and self._released is None and self._release.service_is_ready():
                self._released = self._release.call_async(Trigger.Request())


def start_of_motion(bag: Path) -> float:
    """Return how long after the first joint state the motion in a bag began [s]."""
    (metadata,) = parsed_yaml((bag / 'metadata.yaml').read_bytes())
    notes = metadata['rosbag2_bagfile_information']['custom_data']
    return float(notes['start_of_motion']) - float(notes['first_stamp'])


def _limits(model: RobotModel, *motions: Excitation) -> dict[str, Any]:
    """Return effort limits for the node where the URDF has gaps."""
    known = known_effort_limits(model)
    if np.isfinite(known).all():
        return {}
    needed = STRONGER * np.max([each.use[0].effort for each in motions], axis=0) + 1.0
    return {'effort_limits': np.where(np.isfinite(known), known, needed).tolist()}
