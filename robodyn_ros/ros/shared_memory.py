# SPDX-License-Identifier: Apache-2.0
"""
Memory shared by the dynamics node, its watchdog and its services.

There is one protocol, ``SharedRing``: rows of bytes, each with its number, its length and a
checksum. A ``SharedRecord`` is a ring of two rows, of which the last one counts; ``Cycles`` is a
long one, with a row for each control cycle, from which the watchdog reads the last command, and
the services read the latest state and the motion of the last minute.
"""

from __future__ import annotations

import mmap
import pickle
import struct
import time
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.settings import ArmSettings
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import Payload
from robodyn_ros.spatial import FloatArray

_CHECKSUM = struct.Struct('<I')  # of all that follows in a row
_COUNTED = struct.Struct('<IQ')  # length of its data, its number
_ROW_HEAD = _CHECKSUM.size + _COUNTED.size
_HEAD = 64  # of the memory [bytes]
_ATTEMPTS = 100  # a reader that was held up while rows were written over reads again

_NEWEST, _STRIDE, _FIRST = range(3)  # words of the head


class SharedRing:
    """
    A ring buffer that one process writes and others read; create it before the fork.

    Parameters
    ----------
    size : int
        Of the memory [bytes]. Pages that are not written cost nothing.

    Notes
    -----
    A row is written first and then, in the head, its number, where a reader begins. Checksum and
    number of the row itself say whether it is whole. So nobody waits, and a writer that is killed
    within a row leaves the ones before. No order of the memory's accesses is assumed, so that this
    is right on processors that reorder them, too: a reader that sees the number before the row
    takes the row before. Mixed bytes pass for a row with a probability of 2⁻³².
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory = mmap.mmap(-1, _HEAD + size)
        self._head = memoryview(self._memory)[:_HEAD].cast('Q')  # aligned; one process writes

    def begin(self, capacity: int) -> None:
        """Discard all rows; later ones have at most ``capacity`` bytes of data."""
        self._head[_FIRST] = self._head[_NEWEST] + 1
        self._head[_STRIDE] = -(-(_ROW_HEAD + capacity) // 8) * 8

    def write(self, data: bytes) -> bool:
        """Write a row, and return whether it is short enough for that."""
        number, stride, length = self._head[_NEWEST] + 1, self._head[_STRIDE], len(data)
        if _ROW_HEAD + length > stride or stride > self._size:
            return False
        body = _COUNTED.pack(length, number) + data
        start = _HEAD + number % (self._size // stride) * stride
        self._memory[start : start + _ROW_HEAD + length] = _CHECKSUM.pack(zlib.crc32(body)) + body
        self._head[_NEWEST] = number
        return True

    def read(self, after: int = 0) -> tuple[int, bytes] | None:
        """Return number and data of the last row; None: there is none with a number above."""
        for _ in range(_ATTEMPTS):
            newest, stride, first, *_ = self._head
            for number in range(newest, max(newest - 2, after, first - 1), -1):
                data = self._row(number, stride)
                if data is not None:
                    return number, data
            if newest < max(after + 1, first):
                return None
        return None

    def read_all(self) -> list[bytes]:
        """Return the data of all rows that are whole, the oldest first."""
        newest, stride, first, *_ = self._head
        oldest = max(first, newest - self._size // max(stride, 1) + 1)
        rows = (self._row(number, stride) for number in range(oldest, newest + 1))
        return [row for row in rows if row is not None]

    def _row(self, number: int, stride: int) -> bytes | None:
        """Return the data of a row; None where it is not whole, or no longer there."""
        if not 0 < stride <= self._size:
            return None
        start = _HEAD + number % (self._size // stride) * stride
        length, found = _COUNTED.unpack_from(self._memory, start + _CHECKSUM.size)
        if found != number or _ROW_HEAD + length > stride:
            return None
        row = self._memory[start : start + _ROW_HEAD + length]
        body = row[_CHECKSUM.size :]
        is_whole = row[: _CHECKSUM.size] == _CHECKSUM.pack(zlib.crc32(body))
        is_same = _COUNTED.unpack_from(body) == (length, number)
        return body[_COUNTED.size :] if is_whole and is_same else None


class SharedRecord(SharedRing):
    """
    The last bytes that were written.

    Parameters
    ----------
    capacity : int
        At the most [bytes].
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(2 * (_ROW_HEAD + capacity + 8))
        self.begin(capacity)


class SharedObject:
    """
    The last object that was set, pickled; for objects that change seldom.

    Parameters
    ----------
    capacity : int
        Of its bytes.
    """

    def __init__(self, capacity: int) -> None:
        self._record = SharedRecord(capacity)
        self._known: tuple[int, Any] = 0, None

    def set(self, value: Any) -> None:
        """Set an object; None takes the place of one that is too large."""
        if not self._record.write(pickle.dumps(value)):
            self._record.write(pickle.dumps(None))

    @property
    def value(self) -> Any:
        """The last one, the same as before where there is no other; None: none was set."""
        found = self._record.read(after=self._known[0])
        if found is not None:
            number, data = found
            self._known = number, pickle.loads(data)
        return self._known[1]


# --- control cycles ----------------------------------------------------------------------------

_CYCLES_SIZE = 3 << 23  # of the memory [bytes]: 78 s of seven joints at 1 kHz
_TIMES, _ARRAYS = 3, 5  # of a row


class Cycle(NamedTuple):
    """
    The data of a control cycle; all arrays have shape (n,), NaN where unknown.

    Parameters
    ----------
    time, received : float
        Of the latest complete state: its own time, and when it came by the steady clock [s].
    sent : float
        When the latest command was about to be sent, by the steady clock [s].
    position, velocity, effort : array
        Of that state [rad, rad/s] or [m, m/s], the drives' unit.
    torque : array
        Of that command [N m] or [N].
    commanded_at : array
        The position that it was commanded for.
    """

    time: float
    received: float
    sent: float
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    torque: FloatArray
    commanded_at: FloatArray


class MeasuredStates(NamedTuple):
    """Times and arrays of K states, as those of a ``Cycle``, of shape (K,) and (K, n)."""

    time: FloatArray
    received: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray


class Cycles:
    """The control cycles of the last minute or so, in a ``SharedRing``."""

    def __init__(self) -> None:
        self._ring = SharedRing(_CYCLES_SIZE)
        self.begin(0)

    def begin(self, n: int) -> None:
        """Discard all cycles; later ones are of an arm with n joints."""
        self._row = np.full(_TIMES + _ARRAYS * n, np.nan)
        self._arrays = self._row[_TIMES:].reshape(_ARRAYS, n)
        self._ring.begin(self._row.nbytes)

    def received(self, state: MeasuredState, received: float) -> None:
        """Note a complete state that came at a steady time [s]; ``write`` or ``sent`` follows."""
        self._row[0], self._row[1] = state.time, received
        arrays = self._arrays
        arrays[0], arrays[1] = state.position, state.velocity
        arrays[2] = np.nan if state.effort is None else state.effort

    def sent(self, now: float, torque: FloatArray, position: FloatArray) -> None:
        """Write that a torque for a position is sent at a steady time [s]."""
        self._row[2] = now
        self._arrays[3], self._arrays[4] = torque, position
        self.write()

    def write(self) -> None:
        """Write the present data."""
        self._ring.write(self._row.tobytes())

    def last(self) -> Cycle | None:
        """Return the present data; None before the first state."""
        found = self._ring.read()
        if found is None:
            return None
        row = np.frombuffer(found[1])
        time, received, sent = row[:_TIMES].tolist()
        return Cycle(time, received, sent, *row[_TIMES:].reshape(_ARRAYS, -1))

    def states(self) -> MeasuredStates | None:
        """Return all states that are still there, the oldest first; None: there are none."""
        rows = self._ring.read_all()
        if not rows:
            return None
        table = np.frombuffer(b''.join(rows)).reshape(len(rows), -1)
        # What was commanded without a new state repeats the one before.
        table = table[np.append(True, np.diff(table[:, :2], axis=0).any(axis=1))]
        arrays = table[:, _TIMES:].reshape(len(table), _ARRAYS, -1)
        return MeasuredStates(table[:, 0], table[:, 1], arrays[:, 0], arrays[:, 1], arrays[:, 2])


# --- what else is shared -----------------------------------------------------------------------

_HEARTBEAT = struct.Struct('<d?')
_CHECK = struct.Struct('<dd')
_STAND_IN = struct.Struct('<QQd')
_LARGE, _SMALL = 1 << 24, 1 << 15  # [bytes]

_TAKEN, _WANTED, _CLOSING, _SERVICES = range(4)


@dataclass(frozen=True)
class Names:
    """
    Names of the node and its topics, resolved with its remappings.

    Parameters
    ----------
    node, namespace : str
        Its own.
    commands, joint_states : str
        Topics.
    services : dict of str to str
        By the names that they have without remapping.
    """

    node: str
    namespace: str
    commands: str
    joint_states: str
    services: dict[str, str]


@dataclass(frozen=True, eq=False)
class WatchdogSettings:
    """
    Settings and limits of the watchdog; the arrays have shape (n,).

    Parameters
    ----------
    order : array of int
        The chain's index of each joint, in the order of the commands.
    command_scale : array
        The commands' unit per torque, in chain order.
    watchdog_period : float
        [s]
    arm : ArmSettings
        The node's, in gravity compensation or feedforward; its actions apply while the node lives,
        and once it does not.
    limits : ReferenceLimits
        Of the arm.
    """

    order: np.ndarray
    command_scale: np.ndarray
    watchdog_period: float
    arm: ArmSettings
    limits: ReferenceLimits


class Change(NamedTuple):
    """A payload or a gravity that a client requests; void after a steady time [s]."""

    number: int
    deadline: float
    what: Payload | GravityChange


class ChangeOutcome(NamedTuple):
    """The load after the change of a number, or why it is refused."""

    number: int
    load: Load | None
    refusal: RobodynError | None = None


class Heartbeat(NamedTuple):
    """The node's last heartbeat [s], by the steady clock, and whether it commanded."""

    time: float
    is_active: bool


class WatchdogCheck(NamedTuple):
    """The watchdog's last check [s], and its largest recent lateness [s]."""

    time: float
    lateness: float


class SharedMemory:
    """
    The shared memory of a node; create it before the processes fork.

    Attributes
    ----------
    names : SharedObject of Names
        Set once, by the node, as what follows.
    robot : SharedObject of robodyn_ros.ros.services.callbacks.Robot
        What is configured, with its load.
    settings : SharedObject of WatchdogSettings
    cycles : Cycles
    change : SharedObject of Change
        Set by the services.
    outcome : SharedObject of ChangeOutcome
        Set by the node, of the last change.

    Notes
    -----
    Takeovers are counted. From the moment at which the watchdog counts one until it says that this
    one is over the commands are its own, and the node sends none; it asks for them by setting
    another word to that count. Each word is aligned, and only one of the processes writes it.
    """

    def __init__(self) -> None:
        self.names = SharedObject(_SMALL)
        self.robot = SharedObject(_LARGE)
        self.settings = SharedObject(_LARGE)
        self.cycles = Cycles()
        self.change = SharedObject(_SMALL)
        self.outcome = SharedObject(_LARGE)
        self._heartbeat = SharedRecord(_HEARTBEAT.size)
        self._check = SharedRecord(_CHECK.size)
        self._stand_in = SharedRecord(_SMALL)
        self._known_returned = 0
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast('Q')

    # --- the node writes -----------------------------------------------------------------------

    def beat(self, now: float, is_active: bool) -> None:
        """Write the node's heartbeat."""
        self._heartbeat.write(_HEARTBEAT.pack(now, is_active))

    def want_back(self) -> None:
        """Ask the watchdog to return control of the commands."""
        self._words[_WANTED] = self._words[_TAKEN]

    def close(self) -> None:
        """Tell the node's other processes to end."""
        self._words[_CLOSING] = 1

    @property
    def is_closing(self) -> bool:
        """Whether the node's other processes are to end."""
        return self._words[_CLOSING] != 0

    # --- the services write --------------------------------------------------------------------

    def respond(self) -> None:
        """Write the heartbeat of the services' loop."""
        self._words[_SERVICES] = time.monotonic_ns()

    @property
    def responded(self) -> float:
        """The services' last heartbeat, by the steady clock [s]; 0: none."""
        return 1e-9 * self._words[_SERVICES]

    # --- the watchdog writes -------------------------------------------------------------------

    def take(self) -> None:
        """Take over the commands, as the watchdog."""
        self._words[_TAKEN] += 1

    def stand_in(self, now: float, torque: np.ndarray | None, *, is_over: bool = False) -> None:
        """
        Write the watchdog's command.

        Parameters
        ----------
        now : float
            When it commanded last, by the steady clock [s].
        torque : array, shape (n,), or None
            What it commanded then; None: it never has.
        is_over : bool
            Whether it leaves the commands to the node.
        """
        data = b'' if torque is None else torque.tobytes()
        self._stand_in.write(_STAND_IN.pack(self._words[_TAKEN], is_over, now) + data)

    def record_check(self, check: WatchdogCheck) -> None:
        """Write that the watchdog has checked the node."""
        self._check.write(_CHECK.pack(*check))

    # --- the node reads ------------------------------------------------------------------------

    @property
    def is_taken(self) -> bool:
        """Whether the watchdog has the commands."""
        taken = self._words[_TAKEN]
        if taken == self._known_returned:
            return False
        found = self._stand_in.read()
        if found is None or _STAND_IN.unpack_from(found[1])[:2] != (taken, 1):
            return True
        self._known_returned = taken
        return False

    @property
    def takeovers(self) -> int:
        """How often the watchdog has taken over."""
        return self._words[_TAKEN]

    @property
    def last_of_watchdog(self) -> tuple[float, np.ndarray] | None:
        """Time [s] and torque of the watchdog's last command; None: there was none."""
        found = self._stand_in.read()
        if found is None or len(found[1]) == _STAND_IN.size:
            return None
        _, _, now = _STAND_IN.unpack_from(found[1])
        return now, np.frombuffer(found[1], offset=_STAND_IN.size)

    @property
    def last_check(self) -> WatchdogCheck:
        """The watchdog's last check."""
        found = self._check.read()
        return (
            WatchdogCheck(-np.inf, 0.0)
            if found is None
            else WatchdogCheck(*_CHECK.unpack(found[1]))
        )

    # --- the watchdog reads --------------------------------------------------------------------

    @property
    def is_wanted_back(self) -> bool:
        """Whether the node has asked for control since the watchdog took over."""
        return self._words[_WANTED] == self._words[_TAKEN]

    @property
    def heartbeat(self) -> Heartbeat:
        """The node's last heartbeat."""
        found = self._heartbeat.read()
        if found is None:
            return Heartbeat(-np.inf, False)
        return Heartbeat(*_HEARTBEAT.unpack(found[1]))
