# SPDX-License-Identifier: Apache-2.0
"""
The whole loop on a simulated arm whose URDF is wrong: excite, record, identify, run again.

The simulator has other bodies, rotors, friction and sensors with noise; the dynamics node has the
URDF. A motion is made and run over ROS 2, recorded into a bag, and identified from it; a second
motion is run with the node as it was, and again with what was found. The same seed gives the same
figures.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from robodyn_ros.description.yaml import parsed_yaml
from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.identification import (
    DriveTerms,
    Excitation,
    Identification,
    Recording,
    excitation,
    identify,
)
from robodyn_ros.identification.parameters import bare_base_parameters
from robodyn_ros.identification.prediction import prediction_states
from robodyn_ros.identification.regression import Regression
from robodyn_ros.identification.rows import Rows, TrainingData, rows_of
from robodyn_ros.identification.urdf_output import identified_urdf
from robodyn_ros.model import RobotModel
from robodyn_ros.motions import table_as_csv
from robodyn_ros.report.drawing import Paper, drawable, save_picture
from robodyn_ros.ros.demo.runner import (
    SILENCE_TIMEOUT,
    Arm,
    DemoFailed,
    Observer,
    Run,
    effort_limits,
    kinds,
    present,
    progress,
    rms,
)
from robodyn_ros.simulation.sampled_arm import joint_loads, random_poses, sampled_arm
from robodyn_ros.spatial import FloatArray, pseudo_inertia

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DURATION, NEW_DURATION = 15.0, 8.0  # of the motion to identify by, and of the new one [s]
_TIME_STEP = 0.002  # of physics and control [s]

_TRACKING = {'mode': 'computed_torque', 'max_following_error': 0.0}
_SOFTEST, _STIFFEST = 400.0, 40_000.0  # kp, as one would tune it before anything is known [1/s²]
_STRONGEST_DAMPING = 0.5 / _TIME_STEP  # kd [1/s]
# Of what loads a joint, and what it may cost [rad, m].
_UNKNOWN_TORQUE, _TOLERATED_ERROR = 0.3, 0.05
_ENCODER_STEP = 2 * np.pi / 2**19  # [rad]; as many steps to 10 cm
_VELOCITY_NOISE = 1e-3  # [rad/s or m/s]
_EFFORT_NOISE = 0.02  # of what the motion needs at most
_STRONGER = 1.5  # effort limits, where the URDF has none: so much of what the motion needs
_POSES = 500
_POSE_SEED = 11
_ROUNDING = 1e-9  # of the largest eigenvalue, where one is zero, as a disc's is
_URDF, _FOUND = '#d55e00', '#0072b2'


@dataclass(frozen=True, eq=False)
class RecordedMotion:
    """
    A motion, what the arm did, and when after the first joint state the motion began [s].

    Attributes
    ----------
    asked : Excitation
    recording : Recording
    start : float
    """

    asked: Excitation
    recording: Recording
    start: float

    @property
    def error(self) -> FloatArray:
        """Asked minus measured positions (N, n) while it runs [rad or m]."""
        time = self.recording.time - self.start
        inside = (time >= 0.0) & (time <= self.asked.duration)
        return self.asked.states(time[inside])[0] - self.recording.position[inside]


@dataclass(frozen=True, eq=False)
class LoopResults:
    """
    What was run and found.

    Attributes
    ----------
    robot : str
    model, true : RobotModel
        As the URDF has it, and as the simulator did.
    found : Identification
    training, before, after : RecordedMotion
        The motion to identify by, and the new one by the URDF and as identified.
    seconds : float
        That everything took.
    """

    robot: str
    model: RobotModel
    true: RobotModel
    found: Identification
    training: RecordedMotion
    before: RecordedMotion
    after: RecordedMotion
    seconds: float


def run_identification_loop(arm: Arm, output: Path, *, seed: int = 1) -> dict[str, Any]:
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
    DemoFailed
        A node ended, or the motion was not made.
    RobodynError
        The URDF cannot be used, or no motion was found.
    """
    console = Console()
    model = arm.model
    (output / 'log').mkdir(parents=True, exist_ok=True)
    true = sampled_arm(model, seed)
    true_urdf = output / 'true.urdf'
    true_urdf.write_bytes(identified_urdf(true, arm.urdf))
    begin = time.monotonic()
    with progress(console, 6.0) as step:
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
        needed = np.max([each.use[0].effort for each in (motion, new)], axis=0)
        limits = effort_limits(model, _STRONGER * needed + 1.0)
        rig = _Rig(
            arm,
            Arm(true_urdf, arm.base_link, arm.tip_links),
            true.rotor_inertia.tolist(),
            {**_TRACKING, **_gains(model), **limits},
            output,
            seed,
        )
        training = rig.recorded('excitation', motion, lambda part: step(2 + part, 'excited'))
        before = rig.recorded(
            'before', new, lambda part: step(3 + part, 'new motion, by the URDF')
        )
        found = identify(
            model,
            [training.recording],
            validation=[before.recording],
            progress=lambda part, what: step(4 + part, f'identifying: {what}'),
        )
        identified = output / 'identified.yaml'
        found.save(identified)
        found.to_urdf(arm.urdf, output / 'identified.urdf')
        after = rig.recorded(
            'after', new, lambda part: step(5 + part, 'new motion, as identified'), identified
        )
    robot, seconds = model.name or arm.urdf.stem, time.monotonic() - begin
    results = LoopResults(robot, model, true, found, training, before, after, seconds)
    numbers = summary(results)
    plot = output / 'identification.png'
    save_plot(results, plot)
    present(console, output, numbers, tables(results, numbers), f'Plot: {plot}')
    return numbers


def _gains(model: RobotModel) -> dict[str, list[float]]:
    """Return gains stiff enough for friction and drives that the URDF knows nothing of."""
    torque, inertia = joint_loads(model, np.random.default_rng(0))
    stiffness = _UNKNOWN_TORQUE / _TOLERATED_ERROR * torque
    kp = np.clip(stiffness / inertia.min(axis=0), _SOFTEST, _STIFFEST)
    kd = np.minimum(2.0 * np.sqrt(kp), _STRONGEST_DAMPING)
    return {'kp': kp.tolist(), 'kd': kd.tolist()}


@dataclass
class _Rig:
    """
    What every run is made with; ``recorded`` makes one.

    Attributes
    ----------
    arm, simulated : Arm
        By its URDF, and as it is.
    rotor_inertia : list of float
        As it is [kg m² or kg].
    commanding : dict of str to parameter
        Of the dynamics node.
    output : Path
    seed : int
        Of the sensors' noise.
    """

    arm: Arm
    simulated: Arm
    rotor_inertia: list[float]
    commanding: dict[str, Any]
    output: Path
    seed: int

    def recorded(
        self,
        name: str,
        motion: Excitation,
        advance: Callable[[float], None],
        identified: Path | None = None,
    ) -> RecordedMotion:
        """Return a motion that was run with nodes of its own."""
        bag, csv = self.output / f'{name}_bag', self.output / f'{name}.csv'
        if bag.exists():
            shutil.rmtree(bag)
        samples, joints = motion.trajectory, motion.joint_names
        names = [f'{x}{suffix}' for suffix in ('', '.velocity', '.acceleration') for x in joints]
        text = table_as_csv(names, samples.time, samples.q, samples.qd, samples.qdd)
        csv.write_text(text, encoding='utf-8')
        simulated = {
            **self.simulated.parameters,
            'rotor_inertia': self.rotor_inertia,
            'position_resolution': _ENCODER_STEP,
            'velocity_noise': _VELOCITY_NOISE,
            'effort_noise': (_EFFORT_NOISE * motion.use[0].effort).tolist(),
            'sensor_seed': self.seed,
        }
        commanding = {
            **self.arm.parameters,
            **self.commanding,
            **({'identified_model': str(identified.resolve())} if identified else {}),
        }
        running = {
            **self.arm.parameters,
            'motion_file': str(csv.resolve()),
            'confirm': True,
            'rehearsal_speed': 0.0,
            'position_tolerance': 0.5,
            'bag': str(bag.resolve()),
            'state_timeout': SILENCE_TIMEOUT,
        }

        def show(time: float) -> None:
            advance(min(time / motion.duration, 0.99))

        with Run(name, self.output / 'log', show) as run:
            observer = run.observe(Observer, _TIME_STEP)
            run.start_arm(simulated, commanding, motion.start)
            runner = run.start('motion_node', running)
            run.wait(lambda: observer.is_followed or runner.exit_code is not None)
            if runner.exit_code is None:
                run.let_go()
            run.wait(lambda: runner.exit_code is not None, SILENCE_TIMEOUT)
        if runner.exit_code:
            raise DemoFailed(f'{name}: the motion was not made\n{runner.last_lines()}')
        recording = Recording.from_bag(bag, self.arm.model)
        if (longest := float(np.diff(recording.time).max())) > 1.5 * _TIME_STEP:
            raise DemoFailed(
                f'{name}: the bag lacks joint states: two are {longest:.3f} s apart; allowed: '
                f'{_TIME_STEP} s'
            )
        return RecordedMotion(motion, recording, _start_of_motion(bag))


def _start_of_motion(bag: Path) -> float:
    """Return how long after the first joint state the motion in a bag began [s]."""
    (metadata,) = parsed_yaml((bag / 'metadata.yaml').read_bytes())
    notes = metadata['rosbag2_bagfile_information']['custom_data']
    return float(notes['start_of_motion']) - float(notes['first_stamp'])


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """
    Base parameters and drive terms by ordinary least squares: no prior, no bodies.

    Attributes
    ----------
    columns : tuple of int
        Of the links' parameters that are base parameters.
    values : array, shape (count + 4 n,)
    """

    columns: tuple[int, ...]
    values: FloatArray

    @classmethod
    def fitted(cls, model: RobotModel, recording: Recording) -> LeastSquares:
        """Return the fit to all rows of a recording in which joints move."""
        columns = bare_base_parameters(model).columns
        rows = TrainingData.of(model, [recording]).rows(model, np.ones(model.n))
        factor, target = _regression(rows, columns).reduced(np.ones(model.n))
        return cls(columns, np.asarray(np.linalg.lstsq(factor, target, rcond=None)[0], float))

    def relative_error(self, model: RobotModel, recording: Recording, cutoff: float) -> float:
        """Return |predicted - measured| / |measured| on a recording, both low-passed."""
        states = prediction_states(recording, cutoff)[0]
        rows = [rows_of(model, each, np.ones(model.n)) for each in states]
        regression = _regression(rows, self.columns, every=True)
        base, drive = np.split(self.values, [len(self.columns)])
        residual = regression.residual(base, drive.reshape(model.n, -1))
        return float(np.linalg.norm(residual) / np.linalg.norm(regression.effort))

    def bodies(self, model: RobotModel) -> RobotModel:
        """Return the model with these base parameters; its links are none that can exist."""
        base = bare_base_parameters(model)
        parameters = base.to_inertial_parameters(self.values[: base.count])
        return model.with_inertial_parameters(parameters)


def _regression(rows: list[Rows], columns: Sequence[int], *, every: bool = False) -> Regression:
    """Return all rows, of weight one where they are used, or every one."""
    parts = (
        (each.inertial[..., columns], each.drive(DriveTerms()), each.effort, each.used | every)
        for each in rows
    )
    return Regression(*(np.concatenate(part).astype(float) for part in zip(*parts)))


def gravity_error(model: RobotModel, true: RobotModel) -> float:
    """Return the error of gravity torques over their size, in random poses."""
    q = random_poses(true, np.random.default_rng(_POSE_SEED), _POSES)
    expected = gravity_torque(true, q)
    return float(
        np.linalg.norm(gravity_torque(model, q) - expected)
        / max(float(np.linalg.norm(expected)), 1e-12)
    )


def impossible_bodies(model: RobotModel) -> int:
    """Return how many links have a mass and an inertia that no body can have."""
    least, *_, largest = np.linalg.eigvalsh(pseudo_inertia(model.inertial_parameters)).T
    return int((least < -_ROUNDING * np.abs(largest)).sum())


def summary(results: LoopResults) -> dict[str, Any]:
    """
    Return the numbers for ``summary.json``.

    Torque errors are relative, on the new motion as it was run by the URDF. Keys in ``_rad`` are
    over revolute joints, and None where there is none; the same in ``_m`` over prismatic ones.
    ``impossible_bodies`` are of the links as a URDF would have them: what least squares find of
    the base parameters, the others zero. ``seconds`` depends on the machine, nothing else does.
    """
    errors = results.found.errors[-1]
    squares = LeastSquares.fitted(results.model, results.training.recording)
    fitted = squares.bodies(results.model)
    numbers: dict[str, Any] = {
        'robot': results.robot,
        'torque_error_before': errors.relative('urdf'),
        'torque_error_after': errors.relative('identified'),
        'torque_error_least_squares': squares.relative_error(
            results.model, results.before.recording, results.found.cutoff
        ),
        'gravity_error_before': gravity_error(results.model, results.true),
        'gravity_error_after': gravity_error(results.found.model, results.true),
        'gravity_error_least_squares': gravity_error(fitted, results.true),
        'impossible_bodies_before': impossible_bodies(results.model),
        'impossible_bodies_after': impossible_bodies(results.found.model),
        'impossible_bodies_least_squares': impossible_bodies(fitted),
    }
    for unit, joints in kinds(results.model.dh.prismatic).items():
        for name, made in (('before', results.before), ('after', results.after)):
            numbers[f'tracking_rms_{name}_{unit}'] = rms(made.error[:, joints])
    numbers['friction'] = str(results.found.terms)
    numbers['seconds'] = results.seconds
    return numbers


def tables(results: LoopResults, numbers: Mapping[str, Any]) -> list[Table]:
    """Return the numbers as tables for a terminal."""
    table = Table(title=f'{results.robot}: a new motion, before and after')
    for head in ('', 'URDF', 'least squares', 'identified'):
        table.add_column(head, justify='right' if head else 'left')
    for label, key in (('torque error', 'torque'), ('gravity error', 'gravity')):
        row = (numbers[f'{key}_error_{name}'] for name in ('before', 'least_squares', 'after'))
        table.add_row(label, *(f'{value:.2%}' for value in row))
    counts = (
        numbers[f'impossible_bodies_{name}'] for name in ('before', 'least_squares', 'after')
    )
    table.add_row('links no body can be', *(f'{count} of {results.model.n}' for count in counts))
    for unit in kinds(results.model.dh.prismatic):
        before, after = (numbers[f'tracking_rms_{name}_{unit}'] for name in ('before', 'after'))
        if before is not None:
            table.add_row('tracking, RMS', f'{before:.2e} {unit}', '', f'{after:.2e} {unit}')
    table.caption = f'{numbers["friction"]}; {numbers["seconds"]:.0f} s'
    return [table]


def save_plot(results: LoopResults, path: Path) -> None:
    """Draw the torque of the joint that the URDF errs most about, and the tracking errors."""
    recording = results.before.recording
    prediction = results.found.predict(recording)
    of_urdf = results.found.effort_before(results.model, recording)
    errors = results.found.errors[-1]
    joint = int(np.argmax(errors.urdf / np.maximum(errors.torque, 1e-12)))
    time = prediction.time - results.before.start
    unit = 'N' if results.model.dh.prismatic[joint] else 'N m'

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        measured = prediction.measured[:, joint]
        left.plot(time, measured, color=Paper.TEXT, linewidth=1.6, label='measured')
        left.plot(time, of_urdf[:, joint], color=_URDF, linewidth=1.2, label='URDF')
        effort = prediction.effort[:, joint]
        left.plot(time, effort, color=_FOUND, linewidth=1.2, label='identified')
        left.set_ylabel(f'torque of q{joint + 1} [{unit}]')
        for made, color, label in (
            (results.before, _URDF, 'URDF'),
            (results.after, _FOUND, 'identified'),
        ):
            away = np.abs(made.error).max(axis=1)
            seconds = np.linspace(0.0, made.asked.duration, len(away))
            right.semilogy(
                seconds, np.maximum(away, 1e-7), color=color, linewidth=1.2, label=label
            )
        right.set_ylabel('largest tracking error [rad or m]')
        for axes in (left, right):
            axes.legend()
            axes.set_xlabel('time [s]')
            axes.grid(axis='y')
        figure.suptitle(
            f'{drawable(results.robot)}: torque on a new motion off by '
            f'{errors.relative("urdf"):.0%} with the URDF, by {errors.relative("identified"):.1%} '
            'once identified',
            fontsize=13,
        )

    save_picture(draw, path, 12, 5.5, dpi=140)
