# SPDX-License-Identifier: Apache-2.0
"""No command uses a spoilt recording in silence, and none warns of a clean one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from command_line import invoked
from scipy.signal import lfilter
from simulated_recordings import TrueArm
from urdf_parts import joint, link, robot

from robodyn_ros import Payload
from robodyn_ros.errors import RobodynError
from robodyn_ros.identification import DriveTerms, identify
from robodyn_ros.identification.recording import recording_of_file

DURATION, RATE = 10.0, 100.0
LOAD = Payload(1.8, (0.02, 0.03, 0.09))
LIMITS = '<limit lower="-3.1" upper="3.1" effort="300" velocity="4"/>'
BODIES = (
    ('turret', 5.2, (0.02, 0.01, 0.11), (0.05, 0.05, 0.03)),
    ('upper', 4.1, (0.19, 0.02, 0.03), (0.02, 0.09, 0.09)),
    ('fore', 2.7, (0.14, -0.02, 0.05), (0.01, 0.04, 0.04)),
    ('roll', 1.4, (0.03, 0.01, 0.09), (0.008, 0.008, 0.003)),
    ('pitch', 0.9, (0.05, 0.01, 0.02), (0.002, 0.003, 0.003)),
    ('flange', 0.5, (0.03, 0.03, 0.05), (0.001, 0.001, 0.001)),
)
JOINTS = (
    ('waist', (0, 0, 0.21), (0, 0, 1)),
    ('shoulder', (0.06, 0.09, 0.17), (0, 1, 0)),
    ('elbow', (0.41, -0.02, 0.03), (0, 1, 0)),
    ('forearm', (0.29, 0.01, 0.07), (1, 0, 0)),
    ('bend', (0.14, 0, 0.02), (0, 1, 0)),
    ('spin', (0.09, 0.02, 0), (1, 0, 0)),
)


def six_joints() -> str:
    """Return an arm with six revolute joints as a URDF."""
    parts, parent = [link('base')], 'base'
    for body, (name, place, axis) in zip(BODIES, JOINTS, strict=True):
        child = body[0]
        parts.append(link(*body))
        parts.append(joint(name, parent, child, 'revolute', xyz=place, axis=axis, more=LIMITS))
        parent = child
    return robot(*parts)


@dataclass
class Samples:
    """A recording's columns before they are written, and the generator of their disturbances."""

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    slides: np.ndarray
    random: np.random.Generator

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change each array along time."""
        for name in ('time', 'position', 'velocity', 'effort'):
            setattr(self, name, change(getattr(self, name)))

    def at(self, time: np.ndarray) -> None:
        """Take the samples at other times."""
        for name in ('position', 'velocity', 'effort'):
            columns = getattr(self, name).T
            taken = [np.interp(time, self.time, column) for column in columns]
            setattr(self, name, np.stack(taken, axis=1))
        self.time = time


@dataclass(frozen=True)
class Spoilt:
    """
    A way to spoil a recording.

    ``spoil`` takes samples, and the joints that it spoils; ``words`` is what has to be said, NAME
    in it the first of them; ``one`` is whether one joint is spoilt, or all.
    """

    spoil: Callable[[Samples, slice | list[int]], None]
    words: str
    one: bool = False


def scaled(which: str, factor: float) -> Callable[[Samples, slice | list[int]], None]:
    def spoil(x: Samples, joints: slice | list[int]) -> None:
        getattr(x, which)[:, joints] *= factor

    return spoil


def in_degrees(which: str) -> Callable[[Samples, slice | list[int]], None]:
    def spoil(x: Samples, joints: slice | list[int]) -> None:
        array = getattr(x, which)
        factor = np.where(x.slides, 1.0, 180.0 / np.pi)
        array[:, joints] = (array * factor)[:, joints]

    return spoil


def late(delay: float) -> Callable[[Samples, slice | list[int]], None]:
    def spoil(x: Samples, joints: slice | list[int]) -> None:
        shifted = [np.interp(x.time - delay, x.time, column) for column in x.velocity.T]
        x.velocity[:, joints] = np.stack(shifted, axis=1)[:, joints]

    return spoil


def clock(unit: float, begin: float = 0.0) -> Callable[[Samples, slice | list[int]], None]:
    def spoil(x: Samples, joints: slice | list[int]) -> None:
        x.time = np.round(unit * (x.time + begin), 6)

    return spoil


def exchanged(which: str) -> Callable[[Samples, slice | list[int]], None]:
    def spoil(x: Samples, joints: slice | list[int]) -> None:
        array = getattr(x, which)
        if joints == slice(None):
            array[:] = np.roll(array, 1, axis=1)
        else:
            array[:, [1, 2]] = array[:, [2, 1]]

    return spoil


def backwards(x: Samples, joints: slice | list[int]) -> None:
    half = len(x.time) // 2
    x.time = np.concatenate([x.time[half:], x.time[:half]])


def coarse(x: Samples, joints: slice | list[int]) -> None:
    x.time = np.floor(10.0 * x.time) / 10.0


VELOCITY = "velocity of joint .*'NAME'.* "
ALL = 'velocities of all joints: '
DEGREES = r'in degrees\?'
POSITION = "position of joint 'NAME'.*" + DEGREES
SIGN, ZERO = VELOCITY + 'has the wrong sign', VELOCITY + 'is zero while it moves'
LATE, OF_ANOTHER = VELOCITY + 'is 120 ms behind its position', "velocity of .*: that of joint '"
SPOILT = {
    'velocity reversed, one': Spoilt(scaled('velocity', -1), SIGN, True),
    'velocity reversed, all': Spoilt(scaled('velocity', -1), SIGN),
    'velocity zero, one': Spoilt(scaled('velocity', 0), ZERO, True),
    'velocity zero, all': Spoilt(scaled('velocity', 0), ZERO),
    'velocity in degrees, one': Spoilt(in_degrees('velocity'), VELOCITY + DEGREES, True),
    'velocity in degrees, all': Spoilt(in_degrees('velocity'), 'velocity of .*' + DEGREES),
    'velocity doubled, one': Spoilt(scaled('velocity', 2), VELOCITY + 'is 2 times', True),
    'velocity doubled, all': Spoilt(scaled('velocity', 2), ALL + '2 times'),
    'velocity late, one': Spoilt(late(0.12), LATE, True),
    'velocity late, all': Spoilt(late(0.12), LATE),
    'velocities of two exchanged': Spoilt(exchanged('velocity'), OF_ANOTHER, True),
    'velocities of all exchanged': Spoilt(exchanged('velocity'), OF_ANOTHER),
    'position in degrees, one': Spoilt(in_degrees('position'), POSITION, True),
    'position in degrees, all': Spoilt(in_degrees('position'), 'position of .*' + DEGREES),
    'stamps in ms': Spoilt(clock(1e3), r'time: .* in ms\?'),
    'stamps in us': Spoilt(clock(1e6), r'time: .* in us\?'),
    'stamps in ns since 1970': Spoilt(clock(1e9, 1.7e9), r'time: .* in ns\?'),
    'stamps of a clock at half the pace': Spoilt(clock(0.5), ALL + '0.5 times.* another clock'),
    'stamps in another order': Spoilt(backwards, 'time: .*stamps that increase'),
    'stamps of a coarse clock': Spoilt(coarse, 'samples have the stamp of another'),
}
EFFORT_KINDS = {
    'effort reversed, one': Spoilt(scaled('effort', -1), "effort of joint 'NAME'.* sign", True),
    'effort reversed, all': Spoilt(scaled('effort', -1), "effort of joint 'NAME'.* sign"),
    'effort in amperes, one': Spoilt(scaled('effort', 0.09), "'NAME' is not in N", True),
    'effort in amperes, all': Spoilt(scaled('effort', 0.09), 'is not in N'),
    'efforts of two exchanged': Spoilt(exchanged('effort'), 'order|that of joint', True),
    'efforts of all exchanged': Spoilt(exchanged('effort'), 'order|that of joint'),
}


def rounded(which: str, step: float) -> Callable[[Samples], None]:
    def change(x: Samples) -> None:
        setattr(x, which, step * np.round(getattr(x, which) / step))

    return change


def filtered(time_constant: float) -> Callable[[Samples], None]:
    def change(x: Samples) -> None:
        kept = np.exp(-np.median(np.diff(x.time)) / time_constant)
        begin = kept * x.velocity[:1]
        x.velocity = lfilter([1.0 - kept], [1.0, -kept], x.velocity, axis=0, zi=begin)[0]

    return change


def differenced(x: Samples) -> None:
    rounded('position', 0.0005)(x)
    slope = np.diff(x.position, axis=0) / np.diff(x.time)[:, None]
    x.velocity = np.concatenate([slope[:1], slope])
    filtered(0.01)(x)


def delayed(x: Samples) -> None:
    late(0.02)(x, slice(None))


def noisy(x: Samples) -> None:
    x.velocity = x.velocity + 0.02 * x.random.normal(size=x.velocity.shape)
    x.position = x.position + 2e-4 * x.random.normal(size=x.position.shape)


def jittering(x: Samples) -> None:
    x.at(x.time + x.random.uniform(-0.4, 0.4, len(x.time)) / RATE)


def twice(x: Samples) -> None:
    x.each(lambda array: np.repeat(array, 2, axis=0))


def pausing(x: Samples) -> None:
    kept = (x.time < 4.0) | (x.time > 5.5)
    x.each(lambda array: array[kept])


def overnight(x: Samples) -> None:
    x.time = np.where(x.time > 5.0, x.time + 86400.0, x.time)


def seldom(x: Samples) -> None:
    x.each(lambda array: array[::5])


def unmeasured(x: Samples) -> None:
    x.velocity = np.full_like(x.velocity, np.nan)


def few_wrong(x: Samples) -> None:
    x.velocity[100, 2], x.effort[200, 1] = 1e293, np.nan


CLEAN: dict[str, Callable[[Samples], None]] = {
    'as simulated': lambda x: None,
    'encoders of 0.5 mrad': rounded('position', 0.0005),
    'encoders of 2 mrad': rounded('position', 0.002),
    'encoders of 5 mrad': rounded('position', 0.005),
    'velocities in steps of 10 mrad/s': rounded('velocity', 0.01),
    'velocities filtered with 5 ms': filtered(0.005),
    'velocities filtered with 15 ms': filtered(0.015),
    'velocities filtered with 30 ms': filtered(0.03),
    'velocities differenced from encoders': differenced,
    'velocities 20 ms late': delayed,
    'velocities with noise': noisy,
    'no velocities': unmeasured,
    'samples at 20 Hz': seldom,
    'samples that jitter': jittering,
    'samples with a pause': pausing,
    'samples of two days': overnight,
    'samples sent twice': twice,
    'stamps since 1970': lambda x: clock(1.0, 1.7e9)(x, slice(None)),
    'stamps in whole milliseconds': rounded('time', 0.001),
    'two samples that are corrupt': few_wrong,
}


@dataclass(frozen=True)
class Rig:
    """An arm, its URDF and the model identified without a load, and its joint to spoil."""

    arm: TrueArm
    folder: Path
    joint: int

    @property
    def options(self) -> list[str]:
        return ['--base', self.arm.urdf.base_link, '--tip', self.arm.urdf.tip_link]


@pytest.fixture(scope='module')
def rigs(tmp_path_factory) -> list[Rig]:
    arms = [
        TrueArm.of(six_joints(), seed, 0.15, base_link='base', tip_link='flange')
        for seed in (1, 4)
    ]
    result = []
    for arm, chosen in zip([*arms, TrueArm.drawn(23, 6)], (1, 2, 2)):
        folder = tmp_path_factory.mktemp('arm')
        (folder / 'arm.urdf').write_text(arm.text)
        found = identify(arm.urdf, [arm.recording(3, 15.0, rate=RATE)], friction=DriveTerms())
        found.save(folder / 'identified.yaml')
        result.append(Rig(arm, folder, chosen))
    return result


def written(rig: Rig, kind: str, number: int, change: Callable[[Samples], None]) -> list[Path]:
    """Return two files of changed samples, without a load and with one."""
    arm, paths = rig.arm, []
    loaded = replace(arm, bodies=arm.bodies.with_payload(LOAD))
    for name, each, seed in (('bare', arm, number), ('loaded', loaded, number + 100)):
        path = rig.folder / f'{name}, {kind.replace("/", " per ")}.csv'
        paths.append(path)
        if path.exists():
            continue
        recording = each.recording(seed, DURATION, rate=RATE)
        samples = Samples(
            recording.time.copy(),
            recording.position.copy(),
            recording.velocity.copy(),
            recording.effort.copy(),
            arm.urdf.dh.prismatic,
            np.random.default_rng(number),
        )
        change(samples)
        joints = arm.urdf.joint_names
        names = [f'{x}{suffix}' for suffix in ('', '.velocity', '.effort') for x in joints]
        table = [samples.time, samples.position, samples.velocity, samples.effort]
        np.savetxt(
            path,
            np.column_stack(table),
            fmt='%.17g',
            delimiter=',',
            header=','.join(['time', *names]),
            comments='',
        )
    return paths


def words_of(rig: Rig, command: str, bare: Path, loaded: Path) -> str:
    """Return what a command says of a recording that is wrong with it, and its error."""
    urdf, yaml = rig.folder / 'arm.urdf', rig.folder / 'identified.yaml'
    if command == 'identify':  # with one kind of friction: a sixth of the time
        try:
            recording = recording_of_file(bare, rig.arm.urdf)
            found = identify(rig.arm.urdf, [recording], friction=DriveTerms(), base_tilt=False)
        except RobodynError as error:
            return str(error)
        return '\n'.join(each.line for each in found.findings if each.level == 'warning')
    given: dict[str, list[object]] = {
        'effort': ['effort', urdf, bare, *rig.options],
        'payload': ['payload', urdf, loaded, '--identified', yaml, *rig.options],
        'monitor': ['monitor', bare, '--model', yaml],
    }
    said = 'Note: ' if command == 'monitor' else 'Warning: '
    result = invoked(*given[command])
    error = '' if result.exception is None else str(result.exception)
    lines = [x for x in result.output.splitlines() if x.startswith(said)]
    if result.exit_code:
        lines += result.output.splitlines()
    return '\n'.join([*lines, error])


COMMANDS = ('effort', 'payload', 'monitor', pytest.param('identify', marks=pytest.mark.longer))


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('kind', SPOILT)
def test_no_command_uses_a_spoilt_recording_in_silence(rigs, kind, command):
    check_words(rigs, kind, SPOILT, command)


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('kind', EFFORT_KINDS)
def test_no_command_uses_spoilt_efforts_in_silence(rigs, kind, command):
    check_words(rigs, kind, EFFORT_KINDS, command)


def check_words(rigs: list[Rig], kind: str, kinds: dict[str, Spoilt], command: str) -> None:
    number, spoilt = list(kinds).index(kind), kinds[kind]
    rig = rigs[number % len(rigs)]
    joints = [rig.joint] if spoilt.one else slice(None)
    files = written(rig, kind, number, lambda x: spoilt.spoil(x, joints))
    expected = spoilt.words.replace('NAME', rig.arm.urdf.joint_names[rig.joint])
    said = words_of(rig, command, *files)
    assert re.search(expected, said), said


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('kind', CLEAN)
def test_no_command_warns_of_a_clean_recording(rigs, kind, command):
    number = list(CLEAN).index(kind)
    rig = rigs[number % len(rigs)]
    files = written(rig, kind, number, CLEAN[kind])
    assert words_of(rig, command, *files) == ''
