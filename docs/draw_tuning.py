# SPDX-License-Identifier: Apache-2.0
"""
Draw the plots of docs/tuning.md.

    python docs/draw_tuning.py

The arm of urdf/arm.urdf.xacro in MuJoCo, under the same code that the dynamics node runs, in
simulated time. Every link of the simulated arm is heavier than the model says: without any error
of the model, gains would have nothing to do.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import xacro
from lxml import etree
from matplotlib.figure import Figure

from robodyn_ros import friction_torque, inverse_dynamics
from robodyn_ros.control.control_stack import apply_settings, build_control_stack
from robodyn_ros.control.settings import checked
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.simulation.arm import ArmSimulation

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / 'docs' / 'images'
ARM = xacro.process_file(str(ROOT / 'urdf' / 'arm.urdf.xacro')).toxml()
EXCESS = 0.05  # fraction by which each link is heavier than the model says

TIME_STEP = 0.001
START = np.array([0.0, -0.8, 1.2, 0.0, 0.5, 0.0])
GOAL = START + [0.8, 0.6, -0.6, 0.5, 0.4, 0.5]
MOTION_TIME = 1.0
COLORS = ('#d55e00', '#0072b2', '#009e73', '#cc79a7')


def simulated(
    *,
    rate: float = 1000.0,
    delay: int = 0,
    motion_time: float | None = MOTION_TIME,
    duration: float = 2.0,
    settle: float = 0.0,
    by_law_alone: bool = False,
    **changes: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return times (N,) after the motion began [s], errors (N, n) [rad] and torques (N, n) [N m].

    Parameters
    ----------
    rate : float
        Joint states, and so torques, in a second.
    delay : int
        Cycles by which a torque reaches the arm late.
    motion_time : float or None
        Of the motion to the goal [s]; None: the arm is only held where it began.
    duration : float
        Of what is returned [s].
    settle : float
        How long the arm is held before [s].
    by_law_alone : bool
        Whether the pipeline is left out: it refuses gains that are too high for the rate.
    changes
        Parameters of the node that are not at their defaults.
    """
    values = {'mode': 'computed_torque', 'ramp_time': 0.0, **changes}
    arm = build_control_stack(checked(values), ARM)
    simulation = ArmSimulation.from_urdf(
        heavier(ARM), tip_link='tool0', time_step=TIME_STEP, initial_position=START
    )
    names = simulation.joint_names
    rest = [[0.0] * simulation.n]
    arm.pipeline.enable(0.0)
    waiting: deque[np.ndarray] = deque()
    times, errors, torques = [], [], []
    torque = np.zeros(simulation.n)
    followed = False
    every = round(1.0 / rate / TIME_STEP)
    for i in range(round((settle + duration) / TIME_STEP)):
        now = (i + 1) * TIME_STEP
        if i % every == 0 and by_law_alone:
            wanted, velocity, acceleration = quintic(now, motion_time)
            kp, kd = changes['kp'][0], changes['kd'][0]
            error, rate_error = wanted - simulation.position, velocity - simulation.velocity
            waiting.append(
                inverse_dynamics(
                    arm.model,
                    simulation.position,
                    simulation.velocity,
                    acceleration + kd * rate_error + kp * error,
                )
                + friction_torque(arm.model, velocity)
            )
            if len(waiting) > delay:
                torque = waiting.popleft()
        elif i % every == 0:
            arm.joint_states.receive(
                names, simulation.position, simulation.velocity, received=now, stamp=now
            )
            command = arm.pipeline.step(arm.joint_states.take(), now)
            if command is not None:
                waiting.append(command.torque)
                if len(waiting) > delay:
                    torque = waiting.popleft()
            if not followed and now >= settle:
                followed = True
                goal = START if motion_time is None else GOAL
                arm.pipeline.follow(
                    Trajectory.from_points(
                        names, [motion_time or TIME_STEP], [goal], rest, rest, [[]], start=now
                    )
                )
        simulation.step(torque)
        if now > settle:
            times.append(now - settle)
            errors.append(simulation.position - quintic(now - settle, motion_time)[0])
            torques.append(torque.copy())
        if np.abs(simulation.velocity).max() > 50.0:  # it is lost
            break
    return np.array(times), np.array(errors), np.array(torques)


def heavier(urdf: str) -> str:
    """Return the arm with more mass, and inertia, in each link."""
    robot = etree.fromstring(urdf)
    for part in robot.iterfind('link/inertial/*'):
        if part.tag in ('mass', 'inertia'):
            for name, value in part.items():
                part.set(name, repr((1.0 + EXCESS) * float(value)))
    return etree.tostring(robot, encoding='unicode')


def quintic(time: float, duration: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return position, velocity, acceleration of the motion, from rest to rest; None: it rests."""
    way, duration = (GOAL - START, duration) if duration else (0.0 * START, 1.0)
    s = min(time / duration, 1.0)
    return (
        START + s**3 * (10 - 15 * s + 6 * s**2) * way,
        s**2 * (30 - 60 * s + 30 * s**2) * way / duration,
        s * (60 - 180 * s + 120 * s**2) * way / duration**2,
    )


def draw_gains() -> None:
    """Draw what kp and kd do."""
    figure, (left, right) = panels('Gains: kp says how far, kd says how')
    for color, kp in zip(COLORS, (25.0, 100.0, 400.0)):
        times, errors, _ = simulated(kp=(kp,), kd=(2 * kp**0.5,))
        left.plot(
            times,
            1e3 * np.abs(errors).max(axis=1),
            color=color,
            label=f'kp {kp:g}, kd {2 * kp**0.5:g}',
        )
    dress(left, 'Largest error in a motion of 1 s, links 5 % too heavy [mrad]')
    left.axvline(MOTION_TIME, color='#bbbbbb', linewidth=1)
    for color, (kd, words) in zip(COLORS, ((4.0, 'rings'), (20.0, 'critical'), (60.0, 'creeps'))):
        times, errors, _ = simulated(kp=(100.0,), kd=(kd,), motion_time=None)
        right.plot(times, 1e3 * errors[:, 1], color=color, label=f'kd {kd:g}: {words}')
    dress(right, 'joint2 sagging under that mass, kp 100 [mrad]')
    save(figure, 'tuning_gains.png')


def draw_rate() -> None:
    """Draw how high the gains can be at a rate, with a cycle of delay."""
    figure, (left, right) = panels('Rate and delay bound the gains')
    for color, kp in zip(COLORS, (100.0, 1600.0, 12800.0)):
        times, errors, _ = simulated(
            rate=250.0,
            delay=1,
            kp=(kp,),
            kd=(2 * kp**0.5,),
            by_law_alone=True,
            duration=1.5,
        )
        left.semilogy(times, 1e3 * np.abs(errors).max(axis=1), color=color, label=f'kp {kp:g}')
    dress(left, 'Largest error at 250 Hz, torques a cycle late [mrad]')
    rates = np.array([100.0, 250.0, 500.0, 1000.0])
    for color, delay in zip(COLORS, (0, 1, 2)):
        right.loglog(
            rates,
            [largest_stable_kp(rate, delay) for rate in rates],
            'o-',
            color=color,
            label=('at once', 'a cycle late', 'two cycles late')[delay],
        )
    right.set_xlabel('joint states a second [Hz]', fontsize=12)
    dress(right, 'Largest kp that does not shake, kd 2 sqrt(kp)', xlabel=None)
    right.set_xticks(rates, [f'{rate:g}' for rate in rates])
    right.minorticks_off()
    save(figure, 'tuning_rate.png')


def largest_stable_kp(rate: float, delay: int) -> float:
    """Return the largest gain, to a tenth, with which the arm comes to rest."""
    low, high = 4.0, 4.0e6
    while high > 1.1 * low:
        middle = (low * high) ** 0.5
        if comes_to_rest(rate, delay, middle):
            low = middle
        else:
            high = middle
    return low


def comes_to_rest(rate: float, delay: int, kp: float) -> bool:
    """Return whether the torques of an arm that holds still become steady."""
    times, _, torques = simulated(
        rate=rate,
        delay=delay,
        kp=(kp,),
        kd=(2 * kp**0.5,),
        by_law_alone=True,
        motion_time=None,
        duration=0.8,
    )
    last = torques[-round(0.2 / TIME_STEP) :]
    return bool(times[-1] > 0.7 and np.abs(np.diff(last, axis=0)).max() < 1.0)


def draw_limits() -> None:
    """Draw what a rate limit and the ramp do."""
    figure, (left, right) = panels('A rate limit too low loses the arm; a ramp softens a change')
    for color, limit in zip(COLORS, (60.0, 80.0)):
        times, errors, _ = simulated(torque_rate_limit=(limit,), duration=2.5)
        left.semilogy(
            times,
            np.maximum(1e3 * np.abs(errors).max(axis=1), 0.1),
            color=color,
            label=f'{limit:g} N m/s',
        )
    dress(left, 'Largest error under torque_rate_limit [mrad]')
    for color, ramp in zip(COLORS, (0.0, 0.1, 0.5)):
        times, torque = raised_gain(ramp)
        right.plot(times, torque, color=color, label=f'ramp_time {ramp:g} s')
    dress(right, 'Torque of joint2 as kp goes from 25 to 100 [N m]')
    save(figure, 'tuning_limits.png')


def raised_gain(ramp_time: float) -> tuple[np.ndarray, np.ndarray]:
    """Return times [s] and the torque of joint 2 [N m] of an arm that is held off its goal."""
    values = {'mode': 'computed_torque', 'kp': (25.0,), 'ramp_time': ramp_time}
    arm = build_control_stack(checked(values), ARM)
    names, rest = arm.model.joint_names, [[0.0] * arm.model.n]
    arm.pipeline.enable(0.0)
    times, torques = [], []
    for i in range(3000):
        now = (i + 1) * TIME_STEP
        arm.joint_states.receive(
            names, START + 0.05, np.zeros(arm.model.n), received=now, stamp=now
        )
        if i == 600:
            arm.pipeline.follow(
                Trajectory.from_points(names, [0.1], [START], rest, rest, [[]], start=now)
            )
        if i == 2000:
            apply_settings(arm, checked({**values, 'kp': (100.0,)}))
        torques.append(arm.pipeline.step(arm.joint_states.take(), now).torque[1])
        times.append(now - 2.0)
    shown = slice(1800, None)
    return np.array(times)[shown], np.array(torques)[shown]


def panels(title: str) -> tuple[Figure, Any]:
    """Return a figure with a title and two panels side by side."""
    figure = Figure(figsize=(12, 4.8), dpi=130, facecolor='white')
    axes = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.06, right=0.98, top=0.8, bottom=0.13, wspace=0.18)
    figure.text(0.06, 0.92, title, fontsize=17, fontweight='bold', color='#222222')
    return figure, axes


def dress(axes: Any, title: str, xlabel: str | None = 'time [s]') -> None:
    """Give a panel its title, its axis and its legend."""
    axes.set_title(title, loc='left', fontsize=12.5, color='#222222')
    if xlabel:
        axes.set_xlabel(xlabel, fontsize=12)
    axes.grid(axis='y', color='#dddddd', linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=11)
    for side in ('top', 'right'):
        axes.spines[side].set_visible(False)


def save(figure: Figure, name: str) -> None:
    """Write a figure into docs/images."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / name)


if __name__ == '__main__':
    draw_gains()
    draw_rate()
    draw_limits()
