# SPDX-License-Identifier: Apache-2.0
"""
What the dynamics node and its watchdog know of each other, in memory that they share.

The node writes its names once, the arm and its settings when they change, a heartbeat with every
period of its watchdog timer and the command of every cycle. The watchdog writes that it has taken
over, what it commanded last, and that it has given the commands back.
"""

from __future__ import annotations

import mmap
import pickle
import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robodyn_ros.control.law import Mode, Terms
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.settings import SafetySettings
from robodyn_ros.model import RobotModel
from robodyn_ros.ros.watchdog.shared_record import SharedRecord

_HEARTBEAT = struct.Struct('<d?')
_TIME = struct.Struct('<d')
_TAKEOVER = struct.Struct('<Q')
_LOOK = struct.Struct('<dd')
_LARGE, _SMALL = 1 << 24, 1 << 15  # [bytes]; 2047 joints in the small ones

_TAKEN, _WANTED, _CLOSING = range(3)


@dataclass(frozen=True)
class Opening:
    """
    The names, resolved where the node's remappings are known.

    Parameters
    ----------
    node_name, namespace : str
        Of the watchdog's own node.
    commands, joint_states : str
        Topics.
    """

    node_name: str
    namespace: str
    commands: str
    joint_states: str


@dataclass(frozen=True, eq=False)
class WatchdogSettings:
    """
    What to do, and within which limits; the arrays have shape (n,).

    Parameters
    ----------
    order : array of int
        The chain's index of each joint, in the order of the commands.
    command_scale : array
        The commands' unit per torque, in chain order.
    watchdog_period : float
        [s]
    safety : SafetySettings
        The node's; its actions apply while the node lives, and once it does not.
    limits : ReferenceLimits
        Of the arm.
    mode : str
        ``feedforward`` where the drives have a loop of their own, which leads the motion, else
        ``gravity_compensation``.
    terms : Terms
        What is commanded of the model's torque; a driver may compensate gravity itself.
    kd : array
        Of the soft joint limits [1/s].
    limit_width : float
        Theirs [rad] or [m]; 0: none.
    """

    order: np.ndarray
    command_scale: np.ndarray
    watchdog_period: float
    safety: SafetySettings
    limits: ReferenceLimits
    mode: Mode
    terms: Terms
    kd: np.ndarray
    limit_width: float


class Heartbeat(NamedTuple):
    """When the node lived [s], by the steady clock, and whether it commanded anything."""

    time: float
    is_active: bool


class Look(NamedTuple):
    """When the watchdog looked last [s], and how much too late it did of late, at worst [s]."""

    time: float
    lateness: float


class LastCommand(NamedTuple):
    """When a torque was sent [s], the torque, and the position there, in chain order."""

    time: float
    torque: np.ndarray
    position: np.ndarray


class SharedCommand:
    """
    The memory; make it before the processes part by a fork.

    Notes
    -----
    Takeovers are counted. From the moment at which the watchdog counts one until it says that this
    one is over the commands are its own, and the node sends none; it asks for them by setting
    another word to that count. Each word is aligned, and only one of the two writes it.
    """

    def __init__(self) -> None:
        self._opening = SharedRecord(_SMALL)
        self._arm = SharedRecord(_LARGE)
        self._settings = SharedRecord(_LARGE)
        self._heartbeat = SharedRecord(_HEARTBEAT.size)
        self._command = SharedRecord(_SMALL)
        self._returned = SharedRecord(_SMALL)
        self._look = SharedRecord(_LOOK.size)
        self._taken_command = SharedRecord(_SMALL)
        self._known_returned = 0
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast('Q')
        self._read: dict[SharedRecord, tuple[int, Any]] = {}

    # --- the node writes -----------------------------------------------------------------------

    def open(self, opening: Opening) -> None:
        """Tell the names."""
        self._opening.write(pickle.dumps(opening))

    def set_arm(self, model: RobotModel) -> bool:
        """Tell what is moved, with its load; return whether that fits into the memory."""
        return self._arm.write(pickle.dumps(model))

    def set_settings(self, settings: WatchdogSettings) -> None:
        """Tell what to do."""
        self._settings.write(pickle.dumps(settings))

    def beat(self, now: float, is_active: bool) -> None:
        """Say that the node lives."""
        self._heartbeat.write(_HEARTBEAT.pack(now, is_active))

    def sent(self, now: float, torque: np.ndarray, position: np.ndarray) -> None:
        """Tell what was commanded, and where."""
        self._command.write(_TIME.pack(now) + torque.tobytes() + position.tobytes())

    def want_back(self) -> None:
        """Ask for the commands."""
        self._words[_WANTED] = self._words[_TAKEN]

    def close(self) -> None:
        """Tell the watchdog to end."""
        self._words[_CLOSING] = 1

    # --- the watchdog writes -------------------------------------------------------------------

    def take(self) -> None:
        """Take over the commands."""
        self._words[_TAKEN] += 1

    def commanded(self, now: float, torque: np.ndarray) -> None:
        """Tell what was commanded, at a steady time [s], while the commands are taken."""
        self._taken_command.write(_TIME.pack(now) + torque.tobytes())

    def give_back(self, now: float, torque: np.ndarray | None) -> None:
        """Leave the commands to the node, after a last one at a steady time [s], if any."""
        data = b'' if torque is None else _TIME.pack(now) + torque.tobytes()
        self._returned.write(_TAKEOVER.pack(self._words[_TAKEN]) + data)

    def looked(self, look: Look) -> None:
        """Say that the watchdog looked after the node."""
        self._look.write(_LOOK.pack(*look))

    # --- the node reads ------------------------------------------------------------------------

    @property
    def is_taken(self) -> bool:
        """Whether the watchdog has the commands."""
        taken = self._words[_TAKEN]
        if taken == self._known_returned:
            return False
        found = self._returned.read()
        if found is None or _TAKEOVER.unpack_from(found[1]) != (taken,):
            return True
        self._known_returned = taken
        return False

    @property
    def takeovers(self) -> int:
        """How often the watchdog has taken over."""
        return self._words[_TAKEN]

    @property
    def last_of_watchdog(self) -> tuple[float, np.ndarray] | None:
        """When the watchdog commanded last [s], and what, in the last takeover; None: nothing."""
        found = self._returned.read()
        data = b'' if found is None else found[1][_TAKEOVER.size :]
        if not data:
            return None
        time, (torque,) = _time_and_arrays(data, 1)
        return time, torque

    @property
    def last_while_taken(self) -> tuple[float, np.ndarray] | None:
        """When the watchdog commanded last [s], and what, whether it is over or not."""
        found = self._taken_command.read()
        if found is None:
            return None
        time, (torque,) = _time_and_arrays(found[1], 1)
        return time, torque

    @property
    def last_look(self) -> Look:
        """The watchdog's last one."""
        found = self._look.read()
        return Look(-np.inf, 0.0) if found is None else Look(*_LOOK.unpack(found[1]))

    # --- the watchdog reads --------------------------------------------------------------------

    @property
    def is_wanted_back(self) -> bool:
        """Whether the node has asked for the commands since they were taken."""
        return self._words[_WANTED] == self._words[_TAKEN]

    @property
    def is_closing(self) -> bool:
        """Whether the watchdog is to end."""
        return self._words[_CLOSING] != 0

    @property
    def opening(self) -> Opening | None:
        """The names, once they are known."""
        return self._unpickled(self._opening)

    @property
    def arm(self) -> RobotModel | None:
        """What is moved, once it is known."""
        return self._unpickled(self._arm)

    @property
    def settings(self) -> WatchdogSettings | None:
        """What to do, once it is known."""
        return self._unpickled(self._settings)

    @property
    def heartbeat(self) -> Heartbeat:
        """The last one."""
        found = self._heartbeat.read()
        if found is None:
            return Heartbeat(-np.inf, False)
        return Heartbeat(*_HEARTBEAT.unpack(found[1]))

    @property
    def command(self) -> LastCommand | None:
        """The node's last one."""
        found = self._command.read()
        if found is None:
            return None
        time, (torque, position) = _time_and_arrays(found[1], 2)
        return LastCommand(time, torque, position)

    def _unpickled(self, record: SharedRecord) -> Any:
        """Return what a record holds, unpickled once."""
        number, value = self._read.get(record, (0, None))
        found = record.read(after=number)
        if found is None:
            return value
        value = pickle.loads(found[1])
        self._read[record] = (found[0], value)
        return value


def _time_and_arrays(data: bytes, count: int) -> tuple[float, list[np.ndarray]]:
    (time,) = _TIME.unpack_from(data)
    return time, list(np.frombuffer(data, offset=_TIME.size).reshape(count, -1))
