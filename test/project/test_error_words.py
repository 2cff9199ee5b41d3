# SPDX-License-Identifier: Apache-2.0
"""The words of the package's errors."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.analysis import JointSpace
from robodyn_ros.control.contact import Contact
from robodyn_ros.control.retiming import retime
from robodyn_ros.control.settings import ControlSettings, arm_settings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import InvalidArgument, Phrase, in_file
from robodyn_ros.motions import MotionSamples

ROOT = Path(rd.__file__).parent
ERRORS = {
    name
    for name, each in vars(errors).items()
    if inspect.isclass(each) and issubclass(each, rd.RobodynError)
} | {'NotFollowing', 'RejectedTarget', 'RefusedCacheEntry'}
URDF = Path(__file__).resolve().parents[2] / 'urdf'
# Its third joint slides.
ARM = rd.RobotModel.from_urdf(URDF / 'stanford.urdf')


@pytest.mark.parametrize(
    ('value', 'shown'),
    [
        (np.float64('nan'), 'nan'),
        ([np.float64('nan'), np.float64(1.5)], '[nan, 1.5]'),
        ((np.int64(3), [np.bool_(True)]), '(3, [True])'),
        ({'gain': np.float32(0.5)}, "{'gain': 0.5}"),
        (np.array([1.0, np.inf]), '[1.0, inf]'),
        ('np.float64(1.0)', "'np.float64(1.0)'"),
    ],
)
def test_an_error_shows_numbers_of_numpy_as_plain_numbers(value: Any, shown: str) -> None:
    assert str(InvalidArgument('element', value, 'others')) == f'element: {shown}; allowed: others'


@pytest.mark.parametrize(
    ('value', 'unit', 'shown'),
    [
        (151.3573491914624, 'N m', '151.357 N m'),
        ([-np.pi, np.pi], 'rad', '[-3.14159, 3.14159] rad'),
        (np.array([[1e-7 / 3.0]]), '', '[[3.33333e-08]]'),
        (12345678.9, 'N', '1.23457e+07 N'),
        ({'a': (2.0 / 3.0, 'b c')}, '', "{'a': (0.666667, 'b c')}"),
        (12345678, '', '12345678'),  # a count
        (0.1, 'm', '0.1 m'),
        (Phrase('no link has a mass'), '', 'no link has a mass'),
        (Phrase("no\n  'a'\x1b[2J"), '', r"no 'a'\x1b[2J"),
        ('no link has a mass', '', "'no link has a mass'"),
        (300 * 'a', '', f"'{119 * 'a'}... (302 characters)"),
        (Phrase(300 * 'a'), '', 300 * 'a'),
    ],
)
def test_an_error_shows_six_digits_and_the_unit_and_words_without_quotes(
    value: Any, unit: str, shown: str
) -> None:
    error = InvalidArgument('element', value, 'others', unit=unit)
    assert str(error) == f'element: {shown}; allowed: others'
    assert error.value is value  # a program has every digit


@pytest.mark.parametrize('more', [{}, {'unit': 'rad'}, {'choice': ('mimic', 'independent')}])
def test_an_error_is_the_same_in_another_process_and_with_its_file(more: Any) -> None:
    error = InvalidArgument('element', 0.5, 'others', **more)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(InvalidArgument) as caught, in_file(Path('/folder/a.csv')):
        raise error
    assert (
        str(caught.value) == f"file 'a.csv', {InvalidArgument('element', 0.5, 'others', **more)}"
    )


def raised() -> Iterator[tuple[str, ast.Call]]:
    """Yield each error that the package makes, and where."""
    for path in sorted(ROOT.rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            name = getattr(getattr(node, 'func', None), 'id', '')
            if isinstance(node, ast.Call) and (name in ERRORS) and len(node.args) > 1:
                yield f'{path.relative_to(ROOT)}:{node.lineno}', node


def test_no_error_of_the_package_shows_its_own_words_as_a_quoted_value() -> None:
    found = dict(raised())
    assert len(found) > 300
    quoted = {
        where
        for where, node in found.items()
        if isinstance(node.args[1], ast.JoinedStr | ast.Constant)
        and isinstance(getattr(node.args[1], 'value', ''), str)
        and "f'{host}:{port}'" not in ast.unparse(node)
    }
    assert quoted == set()


MIDDLE = np.mean(np.clip(ARM.position_limits, -1.0, 1.0), axis=1)


def moved(joint: int, by: float) -> np.ndarray:
    """Return waypoints on which one joint moves."""
    goal = MIDDLE.copy()
    goal[joint] += by
    return np.array([MIDDLE, goal])


def weak(joint: int) -> np.ndarray:
    """Return effort limits with a joint's at a third of a millionth."""
    limits = np.full(ARM.n, 1e6)
    limits[joint] = 1e-6 / 3.0
    return limits


def trajectory(times: list[float]) -> Trajectory:
    """Return a motion of one joint that passes zero at these times."""
    nothing: list[list[float]] = [[] for _ in times]
    return Trajectory.from_points(['a'], times, [[0.0]] * len(times), nothing, nothing, nothing)


def samples(times: list[float]) -> MotionSamples:
    """Return a motion that stands at these times."""
    return MotionSamples.from_samples(np.array(times), np.zeros((len(times), 1)))


BEYOND = ARM.position_limits[:, 1].max() + 100.0 / 3.0
PROVOKED: dict[str, tuple[Callable[[], Any], str]] = {
    'turned too far': (
        lambda: retime(ARM, moved(1, BEYOND), velocity_limits=1.0),
        r'.*: 36.3333 rad; allowed: within the position limits \[.*\] rad; in degrees\?',
    ),
    'slid too far': (
        lambda: retime(ARM, moved(2, BEYOND), velocity_limits=1.0),
        r'.* m; allowed: within the position limits \[.*\] m; in millimetres\?',
    ),
    'too weak to turn': (
        lambda: retime(ARM, moved(1, 1.0), effort_limits=weak(1)),
        r'.* N m; allowed: at most 3.33333e-07 N m, .*',
    ),
    'too weak to slide': (
        lambda: retime(ARM, moved(0, 0.1), effort_limits=weak(2)),
        r'.* N; allowed: at most 3.33333e-07 N, .*',
    ),
    'no limit of force': (
        lambda: arm_settings(
            rd.RobotModel.from_urdf_text(without_effort('joint3')), ControlSettings()
        ),
        r".*'joint3' effort limit: 0.0 N; allowed: a positive <limit effort> .*",
    ),
    'no such range': (
        lambda: JointSpace.of(ARM, limits={ARM.joint_names[2]: (np.pi, -np.pi)}),
        r'.*: \(3.14159, -3.14159\) m; allowed: .*',
    ),
    'stamps that go back': (
        lambda: samples([1.7e9 + 0.5, 1.7e9 + 0.25]),
        r'.*: 1.7e\+09 s; allowed: later than the sample before it, which is 0.25 s later',
    ),
    'points at one time': (
        lambda: trajectory([0.0, 1.0 / 3.0, 1.0 / 3.0]),
        r'.*: 0.333333 s; allowed: later than the point before it, which has the same',
    ),
    'another shape': (
        lambda: rd.inverse_dynamics(ARM, np.zeros(2), np.zeros(2), np.zeros(2)),
        r'argument q: shape \(2,\); allowed: .*',
    ),
    'no path': (
        lambda: rd.RobotModel.from_urdf(
            URDF / 'stanford.urdf', base_link=ARM.tip_link, tip_link=ARM.base_link
        ),
        r'chain: no path of joints from .*; allowed: .*',
    ),
    'a folder': (
        lambda: rd.RobotModel.from_urdf(URDF),
        r"source '.*urdf': a folder; allowed: a file with a URDF or an MJCF",
    ),
}


def without_effort(joint: str) -> str:
    """Return the arm's URDF, the effort limit of a joint zero."""
    text = (URDF / 'stanford.urdf').read_text(encoding='utf-8')
    found, count = re.subn(
        rf'(<joint name="{joint}".*?effort=")[^"]*', r'\g<1>0', text, count=1, flags=re.S
    )
    assert count
    return found


@pytest.mark.parametrize('what', PROVOKED)
def test_a_refusal_is_a_sentence_with_short_numbers_and_the_joint_s_unit(what: str) -> None:
    provoke, words = PROVOKED[what]
    with pytest.raises(rd.RobodynError) as caught:
        provoke()
    message = str(caught.value)
    assert re.fullmatch(words, message), message
    for number in re.findall(r'\d+\.\d+', message):
        assert len(number.replace('.', '').strip('0')) <= 6, message
    assert not re.search(r": '[^']* [^']*'; allowed", message), message


@pytest.mark.parametrize(('slides', 'unit'), [(False, 'N m'), (True, 'N')])
def test_a_contact_has_the_unit_of_its_joint(slides: bool, unit: str) -> None:
    contact = Contact(False, 'j', 'l', -7.0 / 3.0, 2.0, 0.0, 0.1, slides)
    assert str(contact) == f"contact: 2.33 of 2 {unit} at joint 'j', likely on link 'l'"
