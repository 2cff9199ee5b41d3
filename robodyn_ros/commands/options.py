# SPDX-License-Identifier: Apache-2.0
"""
A command from a function: arguments and options from its signature, help from its docstring.

A positional parameter is an argument, a keyword-only one an option of its name, its default that
of the function. The annotation says what is taken: a number, a flag, one of a ``Literal``, a
tuple of fixed length, any number of times where it is ``tuple[X, ...]``, and what is
``Annotated`` by a type of click. The section Parameters of the docstring has the help, and after
the colon the word that stands for the value. What it returns is shown: see ``Answer``.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import click
import numpy as np

from robodyn_ros.description.chain import Chain, serial_chain
from robodyn_ros.description.mjcf import description_of_mjcf, is_mjcf
from robodyn_ros.description.records import Finding
from robodyn_ros.description.source import user_path
from robodyn_ros.description.urdf import description_of_urdf, description_of_urdf_text
from robodyn_ros.errors import NoSuchName, printable
from robodyn_ros.model import RobotModel
from robodyn_ros.record import plain
from robodyn_ros.spatial import FloatArray

# --- what is given -----------------------------------------------------------------------------


class UserPath(click.Path):
    """A path, with ``~`` also where the shell leaves it, as in ``--option=~/arm.urdf``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return it expanded."""
        return super().convert(user_path(value), param, ctx)


class _FileToWrite(UserPath):
    """A file to write; it is said before the work where that cannot be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if self.allow_dash and str(path) == '-':
            return path
        name = param.opts[-1] if param is not None else 'file'
        if not path.parent.is_dir():
            raise FileNotFoundError(f'{name} {str(path)!r}: no such folder')
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(f'{name} {str(path)!r}: may not be written')
        return path


class _JointNumber(click.ParamType):
    """``JOINT=VALUE``, or a number alone: a pair of a name, empty for a number alone, and it."""

    name = 'joint=value'

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        name, _, number = str(value).rpartition('=')
        try:
            return name, float(number)
        except ValueError:
            self.fail(f'{value!r} is not JOINT=VALUE, nor a number', param, ctx)


OutputFile = Annotated[Path, _FileToWrite(dir_okay=False)]
OutputText = Annotated[Path, _FileToWrite(dir_okay=False, allow_dash=True)]
"""A file of text to write, or ``-``: standard output."""
OutputFolder = Annotated[Path, UserPath(file_okay=False)]
InputFile = Annotated[Path, UserPath(dir_okay=False)]
Positive = Annotated[float, click.FloatRange(min=0.0, min_open=True)]
Fraction = Annotated[float, click.FloatRange(0.0, 1.0)]
Jobs = Annotated[int, click.IntRange(min=1)]
Rest = Annotated[tuple[str, ...], click.UNPROCESSED]
"""What follows ``--``: the arguments of a node."""
PerJoint = Annotated[tuple[tuple[str, float], ...], _JointNumber()]
"""Numbers of joints: one for all, one for each in the order of the chain, or JOINT=VALUE."""

_HELP = {
    'json': ('', 'Print JSON.'),
    'topic': ('', "Topic of a bag; default: the one with the arm's joint states."),
    'motion': (
        '',
        "CSV file, bag, or trajectory in YAML; default: a motion within the arm's limits.",
    ),
    'cutoff': ('HZ', 'Low-pass a measured motion before differentiating it.'),
    'effort_scale': (
        'FACTOR',
        'Torque per unit of recorded effort, such as N m/A: one value for all joints, one for '
        'each, or JOINT=FACTOR.',
    ),
    'urdf': ('', 'URDF file; default: a simulated Panda.'),
    'push': (
        'X Y Z',
        'With --simulate: push the tip with this force [N], in the base axes, for two seconds out '
        'of four, and print how far it moves.',
    ),
    'simulate': (
        '',
        'Also start an arm in MuJoCo, in the namespace /simulated and on this machine alone.',
    ),
    'duration': ('', 'With --simulate: end after this time [s]; default: run until Ctrl+C.'),
    'jobs': (
        '',
        'Number of recordings processed at a time; default: the number of cores.',
    ),
    'dask': (
        'ADDRESS',
        'Scheduler of a Dask cluster that does the work; its workers need this package and these '
        'files.',
    ),
    'validate': (
        '',
        'Recording of another motion, to compute errors on data not used for the fit.',
    ),
    'base': ('', 'First link of the chain; default: the root link.'),
    'tip': (
        '',
        'Last link; given several times: those of a tree; default: the end of the only arm.',
    ),
    'lock': (
        'JOINT=POSITION',
        'Fix a joint off the chain at this position [rad or m]; the others are fixed at zero.',
    ),
    'mimic': ('', 'How to treat a mimic joint on the chain.'),
    'gravity': (
        'X Y Z',
        "Gravity [m/s²] in the base link's axes; default: 9.81 down the root's z axis.",
    ),
    'effort_limit': (
        'LIMIT',
        "Effort limits to use instead of the URDF's [N m or N]: JOINT=LIMIT, or one for each "
        "joint in chain order. One value for all joints only lowers the URDF's.",
    ),
    'rotor_inertia': (
        'JOINT=INERTIA',
        'Rotor inertia reflected to its joint, gear ratio squared times rotor [kg m² or kg]; a '
        'URDF has none. Default: zero.',
    ),
}  # Of options that several commands have.


def of_joints(
    given: PerJoint, model: RobotModel, option: str, others: FloatArray | None = None
) -> float | FloatArray | None:
    """
    Return what an option says of joints: a number for all, an array (n,), or None.

    Parameters
    ----------
    given : tuple of (name, number)
        As the option ``PerJoint`` has them.
    model : RobotModel
    option : str
        For errors: ``--effort-limit``.
    others : array, shape (n,), optional
        Of the joints that are not named; without it all must be.
    """
    if not given:
        return None
    named = {name: number for name, number in given if name}
    if not named:
        numbers = [number for _, number in given]
        if len(numbers) not in (1, model.n):
            raise click.UsageError(
                f'{option}: {len(numbers)} numbers for {model.n} joints; one for all, one for '
                'each in the order of the chain, or JOINT=VALUE'
            )
        return numbers[0] if len(numbers) == 1 else np.array(numbers)
    if len(named) < len(given):
        raise click.UsageError(f'{option}: JOINT=VALUE for each, once, or numbers alone')
    check_joints(named, model, option)
    if others is not None:
        named = dict(zip(model.joint_names, others)) | named
    missing = [name for name in model.joint_names if name not in named]
    if missing:
        raise click.UsageError(f'{option}: no value for {", ".join(map(repr, missing))}')
    return np.array([named[name] for name in model.joint_names])


def check_joints(named: Iterable[str], model: RobotModel, option: str) -> None:
    """
    Refuse names that are no joints of a model.

    Raises
    ------
    NoSuchName
        Naming the option.
    """
    for name in named:
        if name not in model.joint_names:
            known = ', '.join(map(repr, model.joint_names))
            raise NoSuchName(option, name, f'one of {known}')


# --- the arm -----------------------------------------------------------------------------------


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
        check_joints(self.rotor_inertia, model, '--rotor-inertia')
        if not self.rotor_inertia:
            return model
        return model.with_rotor_inertia(
            [
                self.rotor_inertia.get(joint.name, joint.rotor_inertia)
                for joint in self.chain.joints
            ]
        )


ArmWithRotors = Annotated[ChosenArm, 'rotors']
"""An arm to whose joints ``--rotor-inertia`` gives the inertia of their drives."""


def digest_of(content: bytes) -> str:
    """Return the SHA-256 that tells whether a file is the one that was read."""
    return hashlib.sha256(content).hexdigest()


def chosen_arm(
    urdf: Annotated[Path, UserPath()],
    *,
    base: str | None = None,
    tip: tuple[str, ...] = (),
    lock: PerJoint = (),
    mimic: Literal['error', 'independent'] = 'error',
    gravity: tuple[float, float, float] | None = None,
    rotor_inertia: PerJoint = (),
) -> ChosenArm:
    """Return the arm that the argument URDF and these options choose."""
    for option, given in (('--lock', lock), ('--rotor-inertia', rotor_inertia)):
        for name, number in given:
            if not name:
                raise click.BadParameter(f'{number:g} is not JOINT=VALUE', param_hint=option)
    source: str | Path = urdf
    if str(urdf) == '-':
        source = sys.stdin.read()
        description = description_of_urdf_text(source)
    else:
        description = (description_of_mjcf if is_mjcf(urdf) else description_of_urdf)(urdf)
    chain = serial_chain(
        description,
        base_link=base,
        tip_link=tip or None,
        locked_positions=dict(lock),
        mimic=mimic,
    )
    title = '' if isinstance(source, str) else urdf.stem
    return ChosenArm(title, chain, gravity, source, dict(rotor_inertia))


class Refused(click.ClickException):
    """What was asked for cannot be done here, and nothing was begun."""

    exit_code = 2


NEEDS_ROS = (
    'ROS 2 is needed, and rclpy is not there: source your ROS 2 workspace, or type `make setup` '
    'in a checkout of robodyn_ros. Without ROS there is `robodyn simulate`.'
)


# --- what is shown -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """
    What a command found.

    Attributes
    ----------
    record
        What ``--json`` prints: a record, or what ``record.plain`` makes of it.
    lines : iterable of str
        Else these are printed.
    notes : iterable of str
        And these on standard error, before.
    exit_code : int
        Of the command.
    is_long : bool
        JSON in one line: it has arrays as long as a motion.
    output : Path, optional
        Lines, or the JSON, go into this file; ``-``: standard output.
    about_output : iterable of str
        And these are printed, where that is a file.
    """

    record: Any
    lines: Iterable[str] = ()
    notes: Iterable[str] = ()
    exit_code: int = 0
    is_long: bool = False
    output: Path | None = None
    about_output: Iterable[str] = ()

    def show(self, as_json: bool) -> None:
        """Print it."""
        lines = [as_json_text(self.record, is_long=self.is_long)] if as_json else self.lines
        for line in () if as_json else self.notes:
            click.echo(printable(line), err=True)
        if self.output is not None:
            lines = written('\n'.join(lines) + '\n', self.output, *self.about_output)
        for line in lines:
            click.echo(printable(line))
        if self.exit_code:
            raise SystemExit(self.exit_code)


def as_json_text(record: Any, *, is_long: bool = False) -> str:
    """Return what JSON says of a result."""
    return json.dumps(plain(record), indent=None if is_long else 2, allow_nan=False)


def lines_of(findings: Iterable[Finding]) -> list[str]:
    """Return a line for each finding, which begins with how much it matters."""
    return [each.line for each in findings]


def written(text: str, output: Path | None, *lines: str) -> Iterable[str]:
    """Write a text into a file and return what to say; without one, return the text itself."""
    if output is None or str(output) == '-':
        return [text.removesuffix('\n')]
    output.write_text(text, encoding='utf-8')
    return lines


# --- the command -------------------------------------------------------------------------------


def command(*examples: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """
    Return what makes a command of a function.

    Parameters
    ----------
    *examples : str
        Lines that the end of its help shows.
    **settings
        Of click.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        hints = typing.get_type_hints(function, include_extras=True)
        about, help_of = _documented(function)
        parameters = _parameters(function, hints, help_of)
        has_arm = 'arm' in hints
        if hints.get('return') is Answer:
            parameters.append(_option('json', bool, False, _HELP['json']))

        def run(json: bool = False, **given: Any) -> None:
            if has_arm:
                names = [
                    name for name in inspect.signature(chosen_arm).parameters if name in given
                ]
                given['arm'] = chosen_arm(**{name: given.pop(name) for name in names})
                if function.__name__ != 'check':
                    _say_what_changes_everything(given['arm'])
            answer = function(**given)
            if isinstance(answer, Answer):
                answer.show(json)

        return click.Command(
            function.__name__.rstrip('_').replace('_', '-'),
            params=parameters,
            callback=run,
            help=about,
            epilog=ending(*examples),
            **settings,
        )

    return made


def ending(*examples: str) -> str:
    """Return the end of a command's help: click leaves lines after a backspace as they are."""
    return '\b\nExamples:\n' + '\n'.join(f'  {line}' for line in examples)


def _say_what_changes_everything(arm: ChosenArm) -> None:
    """Print the important findings on standard error."""
    for finding in arm.model.findings:
        if finding.code in ('no_masses', 'chosen_tip'):
            click.echo(str(finding), err=True)


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a docstring's text, and the metavar and the help of each parameter."""
    about, _, rest = (inspect.getdoc(function) or '').partition('Parameters\n----------\n')
    section = re.split(r'^\w+\n-+$', rest, maxsplit=1, flags=re.MULTILINE)[0]
    entries = re.findall(r'^(\w+) : ?(.*)\n((?:    .*\n?)+)', section + '\n', re.MULTILINE)
    return about.strip(), {name: (word, ' '.join(text.split())) for name, word, text in entries}


def _parameters(
    function: Callable[..., Any],
    hints: Mapping[str, Any],
    help_of: Mapping[str, tuple[str, str]],
) -> list[click.Parameter]:
    """Return a function's arguments and options in the order of its signature."""
    found: list[click.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if name == 'arm':
            arm = typing.get_type_hints(chosen_arm, include_extras=True)
            if kind is ChosenArm:
                del arm['rotor_inertia']
            signature = inspect.signature(chosen_arm).parameters
            found += [
                _parameter(each, signature[each], arm[each], {})
                for each in arm
                if each != 'return'
            ]
        else:
            found.append(_parameter(name, parameter, kind, help_of))
    return found


def _parameter(
    name: str, parameter: inspect.Parameter, kind: Any, help_of: Mapping[str, tuple[str, str]]
) -> click.Parameter:
    default = parameter.default
    if parameter.kind is parameter.KEYWORD_ONLY:
        return _option(name, kind, default, help_of.get(name, _HELP.get(name, ('', ''))))
    taken, _, is_many = _taken(kind)
    return click.Argument(
        [name], type=taken, nargs=-1 if is_many else 1, required=default is parameter.empty
    )


def _option(name: str, kind: Any, default: Any, about: tuple[str, str]) -> click.Option:
    metavar, text = about
    taken, count, is_many = _taken(kind)
    is_flag, is_required = taken is bool, default is inspect.Parameter.empty
    return click.Option(
        ['--' + name.rstrip('_').replace('_', '-'), name, *(['-o'] if name == 'output' else [])],
        type=None if is_flag else taken,
        is_flag=is_flag,
        nargs=count,
        multiple=is_many,
        required=is_required,
        show_default=default not in (None, False, (), '') and default == default,
        metavar=metavar or None,
        help=text,
        **({} if is_required else {'default': default}),
    )


def _taken(kind: Any) -> tuple[Any, int, bool]:
    """Return the type of click of an annotation, of how many words, and whether repeatedly."""
    if get_origin(kind) in (typing.Union, types.UnionType):
        (*rest,) = (each for each in get_args(kind) if each is not type(None))
        if all(get_origin(each) is Literal for each in rest):
            return click.Choice([name for each in rest for name in get_args(each)]), 1, False
        return _taken(rest[0])
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind)), 1, False
    if get_origin(kind) is Annotated:
        inside, taken = get_args(kind)[:2]
        return taken, 1, get_origin(inside) is tuple
    if get_origin(kind) is tuple:
        first, *others = get_args(kind)
        if others == [...]:
            taken, count, _ = _taken(first)
            return taken, count, True
        return first, 1 + len(others), False
    return UserPath() if kind is Path else kind, 1, False
