# SPDX-License-Identifier: Apache-2.0
"""An arm held, moved and identified over ROS 2: ``demo``, ``identify-demo``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import click
import numpy as np

from robodyn_ros.commands.drive_limits import refuse_unknown
from robodyn_ros.commands.options import NEEDS_ROS, OutputFolder, Refused, command
from robodyn_ros.report.drawing import imported_matplotlib


@command('robodyn demo', 'robodyn demo --urdf urdf/puma560.urdf --output puma_demo')
def demo(
    *,
    urdf: Path | None = None,
    base: str = '',
    tip: tuple[str, ...] = (),
    output: OutputFolder = Path('demo_output'),
    hold_time: Annotated[float, click.FloatRange(min=0.1)] = 10.0,
) -> None:
    """
    Hold and move an arm in MuJoCo over ROS 2.

    MuJoCo simulates the robot; the dynamics node sends the torques. First gravity compensation
    holds the arm. Then the arm makes one motion three times: with PD control alone, with gravity
    compensation, and with the whole model (computed torque). The numbers are written to
    summary.json in the output folder, their plot to tracking.png.

    Parameters
    ----------
    urdf :
        URDF file; default: a Panda.
    output :
        Folder for summary.json, tracking.png and the logs.
    hold_time :
        Time for which gravity compensation holds the arm [s, simulated].
    """
    imported_matplotlib()  # its absence is said before the work
    _keep_to_this_machine()
    with arm_over_ros(urdf, base, tip) as arm:
        from robodyn_ros.ros.demo.tracking import run_demo

        refuse_unknown(arm.model, np.ones(arm.model.n))  # limits are assumed, and said
        run_demo(arm, output, hold_time=hold_time)


@command(
    'robodyn identify-demo',
    'robodyn identify-demo --urdf urdf/puma560.urdf --seed 3 --output puma_identified',
)
def identify_demo(
    *,
    urdf: Path | None = None,
    base: str = '',
    tip: tuple[str, ...] = (),
    output: OutputFolder = Path('identify_output'),
    seed: int = 1,
) -> None:
    """
    Identify an arm in MuJoCo whose URDF is wrong, over ROS 2.

    The arm in MuJoCo has other masses, rotors and friction than its URDF, and sensors with noise.
    An exciting motion is computed, run over ROS 2 and recorded; the node is restarted with the
    identified model. The numbers are written to summary.json in the output folder, with a plot.

    Parameters
    ----------
    urdf :
        URDF file; default: a Panda.
    output :
        Folder for summary.json, identification.png, the bags and the logs.
    seed :
        Seed of the true arm and the motions.
    """
    imported_matplotlib()  # its absence is said before the work
    _keep_to_this_machine()
    with arm_over_ros(urdf, base, tip) as arm:
        from robodyn_ros.ros.demo.identification_loop import run_identification_loop

        refuse_unknown(arm.model, np.ones(arm.model.n))
        run_identification_loop(arm, output, seed=seed)


@contextmanager
def arm_over_ros(urdf: Path | None, base: str, tip: tuple[str, ...]) -> Iterator[Any]:
    """Yield the arm of a URDF, or a Panda, to run over ROS; what cannot go on ends the command."""
    if urdf is None and (base or tip):
        raise click.UsageError('--base and --tip are links of the arm that --urdf names')
    with needing_ros():
        from robodyn_ros.ros.demo.runner import Arm, DemoFailed, panda

        try:
            yield Arm(urdf, base, tip) if urdf else panda()
        except DemoFailed as error:
            raise click.ClickException(str(error)) from error


@contextmanager
def needing_ros() -> Iterator[None]:
    """Say what to do where ROS cannot be imported; let SIGTERM end the processes, too."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except ImportError as error:
        raise Refused(f'{error}. {NEEDS_ROS}') from error


def _keep_to_this_machine() -> None:
    """Let the demonstration's nodes talk on the loopback only, unless told otherwise."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(os.getpid() % 100 + 101))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
