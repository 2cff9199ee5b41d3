# SPDX-License-Identifier: Apache-2.0
"""The package's errors: each names the element at fault, the value found, and what is allowed."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unicodedata import category

import numpy as np

_LONGEST_VALUE = 120
_LONGEST_PHRASE = 400


class Phrase(str):
    """What is wrong in words, where no value is: a message shows it without quotes."""

    __slots__ = ()


class RobodynError(Exception):
    """
    Root of every error that this package raises on purpose.

    Parameters
    ----------
    element : str
        What is at fault: ``link 'forearm' mass``, ``parameter kp``, ``argument q``.
    value
        The value found there, or a ``Phrase``; the message shows it as ``shown`` does.
    allowed : str
        What would have been accepted.
    choice : pair of str, optional
        The argument and its value with which a caller would have had it accepted as it is.
    unit : str
        Of the value, where it has one: ``'N m'``.
    """

    def __init__(
        self,
        element: str,
        value: Any,
        allowed: str,
        choice: tuple[str, str] | None = None,
        unit: str = '',
    ) -> None:
        self.element = element
        self.value = value
        self.allowed = allowed
        self.choice = choice
        self.unit = unit
        unless = '' if choice is None else f', unless {choice[0]}={choice[1]!r}'
        super().__init__(f'{element}: {shown(value, unit)}; allowed: {allowed}{unless}')

    def __reduce__(self) -> tuple[type[RobodynError], tuple[Any, ...]]:
        given = (self.element, self.value, self.allowed)
        plain = self.choice is None and not self.unit
        return type(self), given if plain else (*given, self.choice, self.unit)


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Name a file in what is wrong with its contents."""
    try:
        yield
    except RobodynError as error:
        if not isinstance(error, UnreadableSource):  # which names it
            RobodynError.__init__(
                error,
                f'file {path.name!r}, {error.element}',
                error.value,
                error.allowed,
                error.choice,
                error.unit,
            )
        raise


def shown(value: Any, unit: str = '') -> str:
    """
    Return a value as messages show it.

    Numbers have at most six digits, texts are in quotes, but a ``Phrase`` is not; what is long is
    cut, and nothing of it moves a terminal's cursor.
    """
    if isinstance(value, Phrase):
        text = spelled_out(' '.join(value.split()))
    else:
        text = repr(_plain(value))
    longest = _LONGEST_PHRASE if isinstance(value, Phrase) else _LONGEST_VALUE
    if len(text) > longest:
        text = f'{text[:longest]}... ({len(text)} characters)'
    return f'{text} {unit}' if unit else text


def printable(text: str) -> str:
    """Return lines of text as a terminal may show them: what commands it is spelled out."""
    return spelled_out(text, {'\n', '\t', *(c for c in set(text) if category(c) == 'Zs')})


def spelled_out(text: str, kept: Collection[str] = ()) -> str:
    r"""Return a text with what cannot be printed as \n or \u202e, but for the characters kept."""
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def later_than(one: str, late: float) -> str:
    """Return what a time should be that lies ``late`` [s] before that of the one before it."""
    has = f'which is {late:.6g} s later' if late > 0.0 else 'which has the same'
    return f'later than the {one} before it, {has}'


def _plain(value: Any) -> Any:
    # NumPy's scalars and arrays as Python's own, so that no message says np.float64(...).
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return _Rounded(value)
    if type(value) in (list, tuple):
        return type(value)(_plain(item) for item in value)
    if type(value) is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value


class _Rounded(float):
    def __repr__(self) -> str:
        text = f'{self:.6g}'
        return repr(float(text)) if abs(self) < 1e6 else text


# --- what is read ------------------------------------------------------------------------------


class UnreadableSource(RobodynError):
    """A source is no readable file, no text, or too large: name another one."""


class MalformedUrdf(RobodynError):
    """A URDF or MJCF is no XML, or lacks, repeats or garbles what it must have: mend the file."""


class MalformedData(RobodynError):
    """A file, a text, an array or a message does not hold what it is read as."""


class UnsupportedJoint(RobodynError):
    """A joint on the chain is of a kind that no serial chain has: name a chain without it."""


class NoChain(RobodynError):
    """No single chain of moving joints leads from base to tip: name a base and a tip."""


class NoSuchName(RobodynError):
    """A link or a joint of that name does not exist; the message lists those that do."""


# --- what is called ----------------------------------------------------------------------------


class InvalidArgument(RobodynError, ValueError):
    """An argument, a parameter or a request has a shape, a number or an option out of bounds."""


class NonFiniteValue(InvalidArgument):
    """An array holds a NaN or an infinity; the next measured one may not."""


class WrongType(RobodynError, TypeError):
    """An argument is of another kind than it has to be, or two are in each other's place."""


class ModelMismatch(RobodynError):
    """Compiled code or an identified model was made for another robot, or without a function."""


# --- what the numbers allow --------------------------------------------------------------------


class NoSolution(RobodynError):
    """
    The numbers have no answer; the message says which are in the way.

    A mass matrix is singular, MuJoCo refuses the arm or loses it, no motion keeps the limits.
    """


class InsufficientRecording(RobodynError):
    """A recording lacks efforts or motion for this estimate, or repeats one: record another."""


class Overload(RobodynError):
    """The drives cannot carry the arm's weight or its load where the arm is."""


# --- what there is, and when -------------------------------------------------------------------


class NoBackend(RobodynError):
    """A C compiler, MuJoCo or Chromium is missing, or failed; the value says why."""


class NotReady(RobodynError):
    """The node, the control cycle or the joint states are missing at present: try again."""


class RejectedTrajectory(RobodynError):
    """A trajectory cannot be taken as the reference; the message says why."""


# --- names before version 0.4 -----------------------------------------------------------------

_FORMER_NAMES: dict[str, type[RobodynError] | tuple[type[RobodynError], ...]] = {
    'AmbiguousChain': NoChain,
    'CannotSimulate': NoSolution,
    'ChangeRefused': NotReady,
    'DisconnectedChain': NoChain,
    'NotFollowing': RejectedTrajectory,
    'ImplausiblePayload': InvalidArgument,
    'InvalidAxis': MalformedUrdf,
    'InvalidNumber': (MalformedUrdf, InvalidArgument),
    'MalformedIdentification': MalformedData,
    'MalformedJointState': MalformedData,
    'MalformedMotion': MalformedData,
    'MalformedRecord': MalformedData,
    'MalformedRecording': MalformedData,
    'MalformedXml': MalformedUrdf,
    'MissingEffortLimit': InvalidArgument,
    'MujocoMissing': NoBackend,
    'NoBrowser': NoBackend,
    'NoEffort': InsufficientRecording,
    'NoExcitation': NoSolution,
    'NoJointState': NotReady,
    'NoMovableJoint': NoChain,
    'NoSuchJoint': NoSuchName,
    'NoSuchLink': NoSuchName,
    'NotCompiledFor': ModelMismatch,
    'NotLockable': InvalidArgument,
    'OtherKinematics': ModelMismatch,
    'RefusedCacheEntry': NoBackend,
    'RepeatedMotion': InsufficientRecording,
    'SimulationDiverged': NoSolution,
    'SingularMassMatrix': NoSolution,
    'StaleJointState': NotReady,
    'TooHeavy': Overload,
    'TooShortRecording': InsufficientRecording,
    'TooWeak': Overload,
    'UnknownOption': InvalidArgument,
    'WrongShape': InvalidArgument,
}


def __getattr__(name: str) -> Any:
    return former_name(__name__, name)


def former_name(module: str, name: str, stacklevel: int = 3) -> Any:
    """
    Return what an ``except`` with a name before version 0.4 catches now, and warn.

    Raises
    ------
    AttributeError
        Never a name of this module.
    """
    if name not in _FORMER_NAMES:
        raise AttributeError(f'module {module!r} has no attribute {name!r}')
    now = _FORMER_NAMES[name]
    names = ' or '.join(each.__name__ for each in (now if isinstance(now, tuple) else (now,)))
    warnings.warn(f'{name} is {names} now', DeprecationWarning, stacklevel=stacklevel)
    return now
