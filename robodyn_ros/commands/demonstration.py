# SPDX-License-Identifier: Apache-2.0
"""An arm held, moved and identified over ROS 2: ``demo``, ``identify-demo``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from robodyn_ros.commands.options import UserPath, examples
from robodyn_ros.report.drawing import imported_matplotlib

_URDF = click.option('--urdf', type=UserPath(), help='URDF file; not given: a Panda.')
_BASE = click.option(
    '--base', default='', help='Link that the chain begins at; not given: the root.'
)
_TIP = click.option(
    '--tip', default='', help='Link that the chain ends at; not given: the end of the only arm.'
)


@click.command(
    epilog=examples(
        'robodyn demo',
        'robodyn demo --urdf urdf/puma560.urdf --output puma_demo',
    )
)
@_URDF
@_BASE
@_TIP
@click.option(
    '--output',
    type=UserPath(file_okay=False),
    default='demo_output',
    show_default=True,
    help='Folder for summary.json, tracking.png and the logs.',
)
@click.option(
    '--hold-time',
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help='Simulated seconds that gravity compensation holds the arm.',
)
def demo(urdf: Path | None, base: str, tip: str, output: Path, hold_time: float) -> None:
    """
    Hold and move an arm in MuJoCo over ROS 2.

    MuJoCo is the robot; the dynamics node sends the torques. First gravity compensation holds the
    arm. Then it makes one motion three times: under PD control alone, with gravity compensation,
    and with the whole model (computed torque). The output folder gets the numbers, summary.json,
    and their plot, tracking.png.
    """
    check_ends(urdf, base, tip)
    imported_matplotlib()  # its absence is said before the work
    _keep_to_this_machine()
    with needing_ros():
        from robodyn_ros.ros.demo.node_process import NodeEnded
        from robodyn_ros.ros.demo.runner import Arm, DemoFailed, panda
        from robodyn_ros.ros.demo.tracking import run_demo
    try:
        run_demo(Arm(urdf, base, tip) if urdf else panda(), output, hold_time=hold_time)
    except (DemoFailed, NodeEnded) as error:
        raise click.ClickException(str(error)) from error


@click.command(
    'identify-demo',
    epilog=examples(
        'robodyn identify-demo',
        'robodyn identify-demo --urdf urdf/puma560.urdf --seed 3 --output puma_identified',
    ),
)
@_URDF
@_BASE
@_TIP
@click.option(
    '--output',
    type=UserPath(file_okay=False),
    default='identify_output',
    show_default=True,
    help='Folder for summary.json, identification.png, the bags and the logs.',
)
@click.option(
    '--seed', type=int, default=1, show_default=True, help='Of the true arm and the motions.'
)
def identify_demo(urdf: Path | None, base: str, tip: str, output: Path, seed: int) -> None:
    """
    Identify an arm in MuJoCo whose URDF is wrong, over ROS 2.

    The arm in MuJoCo has other masses, rotors and friction than its URDF, and sensors with noise.
    A motion to identify it by is made, run over ROS 2, and recorded; the node is started again
    with what was found. The output folder gets the numbers, summary.json, and their picture.
    """
    check_ends(urdf, base, tip)
    imported_matplotlib()  # its absence is said before the work
    _keep_to_this_machine()
    with needing_ros():
        from robodyn_ros.ros.demo.identification import run_identification
        from robodyn_ros.ros.demo.node_process import NodeEnded
        from robodyn_ros.ros.demo.runner import Arm, DemoFailed, panda
    try:
        run_identification(Arm(urdf, base, tip) if urdf else panda(), output, seed=seed)
    except (DemoFailed, NodeEnded) as error:
        raise click.ClickException(str(error)) from error


def check_ends(urdf: Path | None, base: str, tip: str) -> None:
    """Refuse links of no URDF."""
    if urdf is None and (base or tip):
        raise click.UsageError('--base and --tip are links of the arm that --urdf names')


@contextmanager
def needing_ros() -> Iterator[None]:
    """Say what to do where ROS cannot be imported; let SIGTERM end the processes, too."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except ImportError as error:
        raise click.ClickException(
            f'{error}. The demonstration needs ROS 2: source your ROS 2 workspace, or type '
            '`make setup` in a checkout of robodyn_ros. Without ROS there is `robodyn simulate`.'
        ) from error


def _keep_to_this_machine() -> None:
    """Let the demonstration's nodes talk on the loopback only, unless told otherwise."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(os.getpid() % 100 + 101))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
