# SPDX-License-Identifier: Apache-2.0
"""A running node, from a terminal without ``ros2``: ``set``, ``send``, ``status``, ``record``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from robodyn_ros.commands.motion import rows_of
from robodyn_ros.commands.options import (
    NEEDS_ROS,
    Answer,
    OutputFile,
    Positive,
    Refused,
    command,
    written,
)
from robodyn_ros.control.motion_file import is_trajectory_file, trajectory_of_file
from robodyn_ros.motions import table_as_csv
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.payload import Payload
from robodyn_ros.record import Table

_SHOWN = ('mode', 'reference', 'payload', 'gravity', 'last_fault', 'last_rejection')
_TO_POSITIONS, _TO_A_MOTION = 3.0, 0.5  # on the way [s], where nobody says how long


@contextmanager
def _client(node: str, timeout: float) -> Iterator[Any]:
    """Yield a client of a node; what the node refuses ends the command with its sentence."""
    try:
        from robodyn_ros.ros.node_client import NodeClient, Refusal
    except ImportError as error:
        raise Refused(f'{error}. {NEEDS_ROS}') from error
    try:
        with NodeClient(node, timeout) as client:
            yield client
    except Refusal as error:
        raise Refused(f'{node} refused: {error}') from error


@command(
    'robodyn set mode=computed_torque',
    "robodyn set mode=cartesian_impedance 'impedance.tip_stiffness=[300,300,300,30,30,30]'",
    'robodyn set --payload 1.8 --center 0 0 0.05',
    'robodyn set --enable true --node /simulated/dynamics_node',
)
def set_(
    parameters: tuple[str, ...] = (),
    *,
    payload: float | None = None,
    center: tuple[float, float, float] = (0.0, 0.0, 0.0),
    link: str = '',
    gravity: tuple[float, float, float] | None = None,
    enable: Literal['true', 'false'] | None = None,
    node: str = 'dynamics_node',
    timeout: Positive = 20.0,
) -> Answer:
    """
    Change a running node: its parameters, its load, whether it commands.

    PARAMETERS are NAME=VALUE, the value in YAML as for ``ros2 param set``: all are taken, or none.
    Alternatives are --payload, --gravity and --enable. Exit code 2: refused, with the reason.

    Parameters
    ----------
    payload : KG
        Mass of the payload; 0: none. It is a point mass; the service set_payload takes an inertia.
    center : X Y Z
        Centre of mass of the payload [m], in the link's axes.
    link :
        Link that carries the payload; default: the tip link.
    gravity : X Y Z
        Gravity [m/s²] in the base link's axes, after the base has been tilted.
    enable :
        Enable or disable the node's commands, also after a fault.
    """
    if sum((bool(parameters), payload is not None, gravity is not None, bool(enable))) != 1:
        raise click.UsageError('NAME=VALUE, --payload, --gravity or --enable: one of them')
    texts = dict(_pair(each) for each in parameters)
    with _client(node, timeout) as client:
        if payload is not None:
            words = client.carry(Payload(payload, center, link=link or None))
        elif gravity is not None:
            words = client.set_gravity(gravity)
        elif enable:
            words = client.enable(enable == 'true')
        else:
            client.set_parameters(texts)
            words = ', '.join(f'{name} = {text}' for name, text in texts.items())
    return Answer({'node': node, 'message': words}, [f'{node}: {words}'])


@command(
    'robodyn send joint1=0.5 joint2=-0.5',
    'robodyn send trajectory.yaml --within 2',
    'robodyn send --pose 0.4 0 0.3',
    'robodyn send --pose 0 0 0.05 --relative',
    'robodyn send --stop',
)
def send(
    target: tuple[str, ...] = (),
    *,
    within: Positive | None = None,
    pose: tuple[float, float, float] | None = None,
    orientation: tuple[float, float, float, float] | None = None,
    relative: bool = False,
    stop: bool = False,
    node: str = 'dynamics_node',
    timeout: Positive = 20.0,
) -> Answer:
    """
    Send a target to a running node, and print whether it accepts.

    TARGET is JOINT=POSITION [rad or m] for each joint that moves, or a motion in a file: CSV, bag,
    or trajectory in YAML. The node must be in a mode that follows trajectories. Exit code 2:
    refused, with the reason.

    Parameters
    ----------
    within : SECONDS
        Time to the positions (default: 3 s), or to the first point of a motion (0.5 s).
    pose : X Y Z
        Target position of the tip in cartesian_impedance [m], in the base link's axes.
    orientation : X Y Z W
        Target orientation of the tip, a unit quaternion; default: unchanged.
    relative :
        The pose is relative to the tip's pose, in its axes.
    stop :
        End all motion: the arm comes to rest and is held.
    """
    if sum(map(bool, (target, pose is not None, stop))) != 1:
        raise click.UsageError('TARGET, --pose or --stop: one of them')
    with _client(node, timeout) as client:
        if stop:
            words = client.stop()
        elif pose is not None:
            turn = None if orientation is None else np.array(orientation)
            words = client.send_pose(np.array(pose), turn, is_relative=relative)
        else:
            rows, lead = _rows(target, within, client)
            words = client.send_trajectory(rows, lead)
    return Answer({'node': node, 'message': words}, [f'{node}: {words}'])


@command(
    'robodyn record -o session.csv',
    'robodyn record --duration 10 -o session.csv --node simulated/dynamics_node',
)
def record(
    *,
    output: OutputFile,
    duration: Positive | None = None,
    node: str = 'dynamics_node',
    timeout: Positive = 20.0,
) -> Answer:
    """
    Record what a running node measures, follows and commands.

    Columns of the CSV file, which ``robodyn plot`` draws: time [s], each joint's position,
    NAME.velocity, NAME.reference, nan where nothing is followed, and NAME.torque as commanded:
    a row for each message on dynamics_state, 50 a second by the node's default.

    Parameters
    ----------
    output :
        CSV file to write.
    duration : SECONDS
        Duration in the arm's time; default: until Ctrl+C.
    """
    with _client(node, timeout) as client:
        states = client.record(np.inf if duration is None else duration)
    names = states[0].joint_names
    unknown = [np.nan] * len(names)
    tables = [
        np.array([list(getattr(state, field)) or unknown for state in states])
        for field in ('position', 'velocity', 'reference_position', 'total')
    ]
    suffixes = ('', '.velocity', '.reference', '.torque')
    columns = [f'{name}{suffix}' for suffix in suffixes for name in names]
    stamps = [state.header.stamp for state in states]
    time = np.array([stamp.sec + 1e-9 * stamp.nanosec for stamp in stamps])
    text = table_as_csv(columns, time - time[0], *tables)
    about = f'{len(states)} samples, {time[-1] - time[0]:.1f} s in {output}'
    return Answer({'samples': len(states), 'output': str(output)}, written(text, output, about))


def _rows(
    target: tuple[str, ...], within: float | None, client: Any
) -> tuple[TrajectoryRows, float]:
    """Return the trajectory that is asked for, and the time before its time zero [s]."""
    if '=' in target[0] and not Path(target[0]).exists():
        pairs = dict(_pair(each) for each in target)
        position = [_number(name, text) for name, text in pairs.items()]
        rows = TrajectoryRows([*pairs], [within or _TO_POSITIONS], [position], [()], [()], [()])
        return rows, 0.0
    if len(target) > 1:
        raise click.UsageError('TARGET is one file, or JOINT=POSITION for each joint')
    path, lead = Path(target[0]), within or _TO_A_MOTION
    if is_trajectory_file(path):
        return rows_of(trajectory_of_file(path)), lead
    return client.rows_of_motion(path), lead


def _pair(word: str) -> tuple[str, str]:
    name, is_pair, value = word.partition('=')
    if not (name and is_pair):
        raise click.UsageError(f'{word!r} is not NAME=VALUE')
    return name, value


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f'{name}={text}: no number') from None


@command(
    'robodyn status',
    'robodyn status impedance effort_limit_scale',
    'robodyn status --node /simulated/dynamics_node --json',
)
def status(
    parameters: tuple[str, ...] = (), *, node: str = 'dynamics_node', timeout: Positive = 20.0
) -> Answer:
    """
    Show what a running node does: diagnostics, mode, payload, joints.

    Also shows its PARAMETERS of these names or groups, such as impedance. --json has all values of
    the diagnostics. Exit code 1: not all diagnostics are OK.
    """
    with _client(node, timeout) as client:
        reports, state = client.status()
        found = {k: value for each in parameters for k, value in client.parameters(each).items()}
    facts = {name: value for each in reports for name, value in each.facts.items()}
    lines = [f'{each.level:5} {each.name}: {each.message}' for each in reports]
    known = [(name, facts[name]) for name in _SHOWN if facts.get(name)]
    lines += [f'{name}: {value}' for name, value in [*known, *found.items()]]
    record = {'node': node, 'reports': reports, 'parameters': found, 'joints': None}
    if state is not None:
        lines.append(_joints(state).text())
        names = 'joint_names', 'position', 'velocity', 'reference_position', 'total'
        record['joints'] = {name: list(getattr(state, name)) for name in names}
    return Answer(record, lines, exit_code=int(any(each.level != 'OK' for each in reports)))


def _joints(state: Any) -> Table:
    """Return a table of where the joints are, where they shall be, and what they are commanded."""
    goals = state.reference_position or [np.nan] * len(state.joint_names)
    rows = [
        (name, *('' if np.isnan(x) else f'{x:.4g}' for x in numbers))
        for name, *numbers in zip(state.joint_names, state.position, goals, state.total)
    ]
    # Springs of the tip hold its pose, and the joints only as far as these leave them free.
    reference = 'posture' if state.mode == 'cartesian_impedance' else 'reference'
    header = ('joint', 'position [rad or m]', reference, 'torque [N m or N]')
    return Table(header, rows)
