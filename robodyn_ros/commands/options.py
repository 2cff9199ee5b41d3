# SPDX-License-Identifier: Apache-2.0
"""What commands share: options, paths, the arm that was chosen, numbers in JSON."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from robodyn_ros.description.chain import MIMIC_CHOICES, Chain, serial_chain
from robodyn_ros.description.mjcf import description_of_mjcf, is_mjcf
from robodyn_ros.description.source import user_path
from robodyn_ros.description.urdf import description_of_urdf, description_of_urdf_text
from robodyn_ros.errors import NoSuchName
from robodyn_ros.model import RobotModel


class UserPath(click.Path):
    """A path, with ``~`` also where the shell leaves it, as in ``--option=~/arm.urdf``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return it expanded."""
        return super().convert(user_path(value), param, ctx)


OUTPUT_FILE = UserPath(dir_okay=False)


def in_a_folder_that_is_there(
    _: click.Context, option: click.Parameter, path: Path | None
) -> Path | None:
    """Return a file to write; say before the work where it cannot be written."""
    if path is not None and not path.parent.is_dir():
        raise FileNotFoundError(f'{option.opts[-1]} {str(path)!r}: no such folder')
    if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f'{option.opts[-1]} {str(path)!r}: may not be written')
    return path


def number_or_null(value: Any) -> Any:
    """Return a value as JSON has it: None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class ChosenArm:
    """
    What was chosen on the command line; the URDF or MJCF has been read once.

    Attributes
    ----------
    title : str
        Name of the file without its ending, empty for standard input.
    chain : Chain
    gravity : tuple of float
        [m/s²], in the base link's axes.
    source : str or Path
        The file, or the text of standard input.
    rotor_inertia : mapping of joint name to number
        Reflected to the joint [kg m² or kg]; zero where not given.
    """

    title: str
    chain: Chain
    gravity: tuple[float, float, float] | None
    source: str | Path
    rotor_inertia: Mapping[str, float] = field(default_factory=dict)

    @property
    def provenance(self) -> dict[str, str]:
        """The file's name and its digest, for what is made of it."""
        if isinstance(self.source, Path):
            kind = 'MJCF' if is_mjcf(self.source) else 'URDF'
            return {kind: self.source.name, 'SHA-256': digest_of(self.source.read_bytes())}
        return {'URDF': 'standard input', 'SHA-256': digest_of(self.source.encode())}

    @cached_property
    def model(self) -> RobotModel:
        """The model of the arm."""
        model = RobotModel.from_chain(self.chain, gravity=self.gravity)
        for name in self.rotor_inertia:
            if name not in model.joint_names:
                known = ', '.join(map(repr, model.joint_names))
                raise NoSuchName('--rotor-inertia', name, f'one of {known}')
        if not self.rotor_inertia:
            return model
        return model.with_rotor_inertia(
            [
                self.rotor_inertia.get(joint.name, joint.rotor_inertia)
                for joint in self.chain.joints
            ]
        )


def digest_of(content: bytes) -> str:
    """Return the SHA-256 that tells whether a file is the one that was read."""
    return hashlib.sha256(content).hexdigest()


def arm_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the argument URDF and the options that choose an arm: a ``ChosenArm``."""

    @functools.wraps(command)
    def with_chosen_arm(
        urdf: Path,
        base: str | None,
        tip: str | None,
        locked: tuple[str, ...],
        mimic: str,
        gravity: tuple[float, float, float] | None,
        **others: Any,
    ) -> None:
        arguments: dict[str, Any] = {
            'base_link': base,
            'tip_link': tip,
            'locked_positions': _numbers_of_joints(locked, '--lock', 'POSITION'),
            'mimic': mimic,
        }
        title: str = urdf.stem
        source: str | Path = urdf
        if str(urdf) == '-':
            title, text = '', sys.stdin.read()
            source = text
            description = description_of_urdf_text(text)
        else:
            read = description_of_mjcf if is_mjcf(urdf) else description_of_urdf
            description = read(urdf)
        chain = serial_chain(description, **arguments)
        arm = ChosenArm(title, chain, gravity, source)
        if command.__name__ != 'check':
            _say_what_changes_everything(arm)
        command(arm, **others)

    decorated: Callable[..., None] = with_chosen_arm
    for option in (
        click.option('--json', 'as_json', is_flag=True, help='Print JSON.'),
        click.option(
            '--gravity',
            type=float,
            nargs=3,
            metavar='X Y Z',
            default=None,
            help="Gravity [m/s²] in the base link's axes; not given: 9.81 down the root's z axis.",
        ),
        click.option(
            '--mimic',
            type=click.Choice(MIMIC_CHOICES),
            default=MIMIC_CHOICES[0],
            show_default=True,
            help='What to do with a mimic joint on the chain.',
        ),
        click.option(
            '--lock',
            'locked',
            multiple=True,
            metavar='JOINT=POSITION',
            help='Hold a joint off the chain there [rad or m]; others are held at zero.',
        ),
        click.option(
            '--tip', help='Link that the chain ends at; not given: the end of the only arm.'
        ),
        click.option('--base', help='Link that the chain begins at; not given: the root.'),
        click.argument('urdf', type=UserPath()),
    ):
        decorated = option(decorated)
    return decorated


def _say_what_changes_everything(arm: ChosenArm) -> None:
    """Print the important findings on standard error."""
    for finding in arm.model.findings:
        if finding.code in ('no_masses', 'chosen_tip'):
            click.echo(str(finding), err=True)


recordings_argument = click.argument('recordings', type=UserPath(), nargs=-1, required=True)
topic_option = click.option('--topic', help='Of bags; not given: the one that names the joints.')
motion_topic_option = click.option(
    '--topic', help='Topic of a bag; not given: the only one of joint states.'
)
cutoff_option = click.option(
    '--cutoff', type=float, metavar='HZ', help='Low-pass a measured motion before deriving it.'
)


def one_or_each(
    _: click.Context, __: click.Parameter, given: tuple[float, ...]
) -> float | list[float] | None:
    """Return one number for all joints, one for each, or None where none was given."""
    return given[0] if len(given) == 1 else list(given) or None


effort_scale_option = click.option(
    '--effort-scale',
    'effort_scale',
    type=float,
    multiple=True,
    callback=one_or_each,
    metavar='FACTOR',
    help='Torque for a unit of the recorded effort, as N m/A: one, or one for each joint.',
)


jobs_option = click.option(
    '--jobs',
    type=click.IntRange(min=1),
    help='Recordings that are worked on at a time; not given: as many as there are cores.',
)
dask_option = click.option(
    '--dask',
    metavar='ADDRESS',
    help='Scheduler of a Dask cluster whose workers have this package and these files: it does '
    'the work.',
)
validate_option = click.option(
    '--validate',
    'validation',
    type=UserPath(),
    multiple=True,
    help='Recording of another motion, for errors that are held out.',
)


def examples(*lines: str) -> str:
    """Return the end of a command's help: click leaves lines after a backspace as they are."""
    return '\b\nExamples:\n' + '\n'.join(f'  {line}' for line in lines)


def rotor_inertia_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, beneath ``arm_options``, an arm whose joints are driven by rotors."""

    @functools.wraps(command)
    def with_rotors(arm: ChosenArm, rotors: tuple[str, ...], **others: Any) -> None:
        inertia = _numbers_of_joints(rotors, '--rotor-inertia', 'INERTIA')
        command(replace(arm, rotor_inertia=inertia), **others)

    return click.option(
        '--rotor-inertia',
        'rotors',
        multiple=True,
        metavar='JOINT=INERTIA',
        help='Inertia of a drive reflected to its joint, gear ratio squared times rotor [kg m² or '
        'kg]; a URDF has none, and zero is taken.',
    )(with_rotors)


def _numbers_of_joints(texts: tuple[str, ...], option: str, what: str) -> dict[str, float]:
    numbers = {}
    for text in texts:
        name, _, number = text.rpartition('=')
        try:
            numbers[name] = float(number)
        except ValueError as error:
            raise click.BadParameter(f'{text!r} is not JOINT={what}', param_hint=option) from error
    return numbers
