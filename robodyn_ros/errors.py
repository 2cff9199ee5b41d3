# SPDX-License-Identifier: Apache-2.0
"""The package's errors: each names the element at fault, the value found, and what is allowed."""

from __future__ import annotations

from typing import Any

_LONGEST_VALUE = 120


class RobodynError(Exception):
    """
    Root of every error that this package raises on purpose.

    Parameters
    ----------
    element : str
        What is at fault: ``link 'forearm' mass``, ``parameter kp``, ``argument q``.
    value
        The value found there; shown shortened where it is long.
    allowed : str
        What would have been accepted.
    choice : pair of str, optional
        The argument and its value with which a caller would have had it accepted as it is.
    """

    def __init__(
        self, element: str, value: Any, allowed: str, choice: tuple[str, str] | None = None
    ) -> None:
        self.element = element
        self.value = value
        self.allowed = allowed
        self.choice = choice
        unless = '' if choice is None else f', unless {choice[0]}={choice[1]!r}'
        super().__init__(f'{element}: {_shortened(value)}; allowed: {allowed}{unless}')

    def __reduce__(self) -> tuple[type[RobodynError], tuple[Any, ...]]:
        given = (self.element, self.value, self.allowed)
        return type(self), given if self.choice is None else (*given, self.choice)


def _shortened(value: Any) -> str:
    text = repr(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    return f'{text[:_LONGEST_VALUE]}... ({len(text)} characters)'


# --- reading a robot ---------------------------------------------------------------------------


class UnreadableSource(RobodynError):
    """The source is no readable file, no XML text, or too large."""


class MalformedXml(RobodynError):
    """The text is not well-formed XML, or declares a document type or entities."""


class MalformedUrdf(RobodynError):
    """An element or attribute that a URDF must have is missing, repeated or of the wrong kind."""


class InvalidNumber(RobodynError):
    """A number is not finite, not a number, or outside what physics allows."""


class InvalidAxis(RobodynError):
    """A joint axis is zero or not finite."""


class UnsupportedJoint(RobodynError):
    """A joint on the chain is of a kind that a serial-chain model cannot hold."""


class NoSuchLink(RobodynError):
    """A link of that name does not exist; the message lists those that do."""


class NoSuchJoint(RobodynError):
    """A joint of that name does not exist; the message lists those that do."""


class NotLockable(RobodynError):
    """A position is given for a joint that moves with the chain, or that has no single one."""


class DisconnectedChain(RobodynError):
    """No path of joints leads from the base link to the tip link."""


class AmbiguousChain(RobodynError):
    """More than one link could be the base or the tip; the message lists the candidates."""


class NoMovableJoint(RobodynError):
    """The chain from base to tip holds no joint that moves."""


# --- calling the library -----------------------------------------------------------------------


class WrongType(RobodynError, TypeError):
    """An argument is of another kind than it has to be, or two are in each other's place."""


class WrongShape(RobodynError, ValueError):
    """An array argument has the wrong shape."""


class NonFiniteValue(RobodynError, ValueError):
    """An array argument holds a NaN or an infinity."""


class UnknownOption(RobodynError, ValueError):
    """An option, a method or a mode is not one of those that exist."""


class ImplausiblePayload(RobodynError):
    """A payload's mass or inertia is one that no rigid body can have."""


class MalformedRecord(RobodynError):
    """A text is not the JSON of the record that it is read as."""


class SingularMassMatrix(RobodynError):
    """The mass matrix is not positive definite, so that no acceleration follows from torques."""


class NotCompiledFor(RobodynError):
    """Compiled code was asked for a function or a model that it was not made for."""


class NoBackend(RobodynError):
    """No C compiler is there, or it failed; the value says why. NumPy serves without one."""


class RefusedCacheEntry(RobodynError):
    """A file of the cache is not the user's own, or is damaged; it is not loaded."""


# --- motions and simulation --------------------------------------------------------------------


class MalformedMotion(RobodynError):
    """A file does not hold the motion of the joints that were asked for."""


class TooWeak(RobodynError):
    """The arm's effort limits do not even carry its own weight."""


class NoExcitation(RobodynError):
    """No motion that keeps the limits was found; the value says which are in the way."""


class MujocoMissing(RobodynError):
    """MuJoCo is not installed."""


class CannotSimulate(RobodynError):
    """MuJoCo refuses the arm, for a reason it gives: a moving body without mass, for instance."""


class SimulationDiverged(RobodynError):
    """A simulated arm left the motion that was asked of it; the message says what helps."""


# --- reports -----------------------------------------------------------------------------------


class NoBrowser(RobodynError):
    """A page cannot be printed: there is no Chromium, or it says why it cannot."""


# --- identification ----------------------------------------------------------------------------


class MalformedRecording(RobodynError):
    """A file or an array does not hold a recording of the arm's joints."""


class NoEffort(RobodynError):
    """A recording has no effort, or nothing but zeros, for a joint or for all."""


class TooShortRecording(RobodynError):
    """A recording holds less motion than an estimate can be made of."""


class RepeatedMotion(RobodynError):
    """A validation recording repeats the motion that the model was identified from."""


class OtherKinematics(RobodynError):
    """An identified model belongs to a robot with other kinematics."""


class MalformedIdentification(RobodynError):
    """A file does not hold an identified model."""


# --- control -----------------------------------------------------------------------------------


class RejectedTrajectory(RobodynError):
    """A trajectory cannot be taken as the reference; the message says why."""


class FollowsNone(RejectedTrajectory):
    """No trajectory is followed at present, whatever it holds; the message says what to do."""

    def __init__(self, element: str, value: Any, allowed: str) -> None:
        super().__init__(element, value, allowed)
        self.args = (f'{value}: {allowed}',)


class MalformedJointState(RobodynError):
    """A message of joint states cannot be read, or is too large to be."""


class NoJointState(RobodynError):
    """A measured state is asked for before every joint's state has come."""


class StaleJointState(RobodynError):
    """The last measured state is too old to be called the present one."""


class ChangeRefused(RobodynError):
    """The control cycle did not apply a change of payload or gravity; the value says why."""


class TooHeavy(RobodynError):
    """A load is more than the drives can carry where the arm is."""


class MissingEffortLimit(RobodynError):
    """A joint has no positive effort limit, neither in the URDF nor in the parameters."""
