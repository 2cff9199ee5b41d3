# SPDX-License-Identifier: Apache-2.0
"""
What the process prints leaves it through a pipe that never blocks.

A terminal on hold (Ctrl-S), or a pipe that nobody reads, blocks whoever writes to it; rclpy's
logger then holds the interpreter, and no thread runs any more. So a small process that was forked
before reads at once whatever is printed, and it is this one that waits for the terminal.
"""

from __future__ import annotations

import atexit
import io
import mmap
import os
import select
import sys
import threading
import time
from collections import deque
from contextlib import suppress

from robodyn_ros.ros.signals import leave_stop_signals_to_the_node

CAPACITY = 1 << 20
"""What is kept for a reader that does not read [bytes]; lines beyond it are dropped."""

FLUSH_TIME = 0.2
"""How long an ending process waits for what it printed to be written [s]."""

REST_TIME = 5.0
"""How long the writing process goes on after it: nobody waits for that [s]."""

_STDOUT, _STDERR = 1, 2
_CHUNK = 1 << 16  # [bytes]
_LINE_TIME = 0.05  # that the end of a line is awaited [s]
_POLL_PERIOD = 0.002  # between looks at whether all has been written [s]


class LogWriter:
    """
    Puts a pipe before stdout and stderr; make it before ``rclpy.init`` and before any thread.

    ``print``, tracebacks and the log's lines of rcutils go through it, of this process and of
    those that it forks. Nothing is done where stdout or stderr is closed.

    Notes
    -----
    Where both are the same file one pipe serves both, so that the order of the lines stays.
    rcutils asks whether stderr is a terminal before it colours lines: the environment variable
    that says so is set where it is one. Should the writing process be stopped, the pipe fills up,
    and lines are lost without being counted: rcutils ignores that the pipe refuses them.
    """

    def __init__(self) -> None:
        self._dropped = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast('Q')  # [writer's, ours]
        self._pid = 0
        if sys.stdout is None or sys.stderr is None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        _keep_terminal_behaviour()
        is_one_file = os.path.samestat(os.fstat(_STDOUT), os.fstat(_STDERR))
        streams = [[_STDOUT, _STDERR]] if is_one_file else [[_STDOUT], [_STDERR]]
        pipes = [os.pipe() for _ in streams]
        self._files = {fd: os.dup(fd) for fd in (_STDOUT, _STDERR)}  # behind the pipes
        self._pid = os.fork()
        if self._pid == 0:
            try:
                for _, write in pipes:
                    os.close(write)
                _run({read: fds[-1] for (read, _), fds in zip(pipes, streams)}, self._dropped)
            finally:
                os._exit(0)
        for (read, write), fds in zip(pipes, streams):
            os.close(read)
            os.set_blocking(write, False)
            for fd in fds:
                os.dup2(write, fd)
            os.close(write)
        sys.stdout, sys.stderr = (_Stream(fd, self._dropped) for fd in (_STDOUT, _STDERR))
        atexit.register(self._flush, os.getpid())

    @property
    def dropped(self) -> int:
        """How many lines were dropped because nobody read."""
        return self._dropped[0] + self._dropped[1]

    def _flush(self, pid: int) -> None:
        """Let go of the pipe, and wait a little until all of it is written."""
        if os.getpid() != pid:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, _STDOUT)
        os.dup2(nowhere, _STDERR)
        deadline = time.monotonic() + FLUSH_TIME
        with suppress(ChildProcessError):
            while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    return  # nobody reads: what is printed from now on goes nowhere
                time.sleep(_POLL_PERIOD)
        for fd, file in self._files.items():  # for what other exit handlers print
            os.dup2(file, fd)


class _Stream(io.TextIOBase):
    """A text file that passes on whole lines, and drops what the pipe does not take."""

    encoding = 'utf-8'
    errors = 'backslashreplace'

    def __init__(self, fd: int, dropped: memoryview) -> None:
        self._fd = fd
        self._dropped = dropped
        self._text = ''

    def fileno(self) -> int:
        return self._fd

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._text += text
        if '\n' in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        text, self._text = self._text, ''
        data = text.encode(self.encoding, self.errors)
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except BlockingIOError:
            self._dropped[1] += max(data.count(b'\n'), 1)
        except OSError:  # the writer is gone: so is everybody who could be told
            return


def _keep_terminal_behaviour() -> None:
    """Have rcutils write to the pipe as it would write to the terminal behind it."""
    uses_stdout = os.environ.get('RCUTILS_LOGGING_USE_STDOUT') == '1'
    if os.isatty(_STDOUT if uses_stdout else _STDERR):
        os.environ.setdefault('RCUTILS_COLORIZED_OUTPUT', '1')
        os.environ.setdefault('RCUTILS_LOGGING_BUFFERED_STREAM', '1')


# --- in the process that writes ----------------------------------------------------------------


class _Outlet:
    """
    Lines on their way to a file that may block, written by a thread.

    Parameters
    ----------
    fd : int
        Where they go.
    dropped : memoryview of uint64
        Its first entry counts the lines that found no room.
    """

    def __init__(self, fd: int, dropped: memoryview) -> None:
        self._fd = fd
        self._dropped = dropped
        self._missing = 0  # lines dropped since one was taken
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._beginning = b''  # of a line whose end has not come
        self._changed = threading.Condition()
        threading.Thread(target=self._write, daemon=True).start()

    @property
    def has_beginning(self) -> bool:
        """Whether the end of a line is awaited."""
        return bool(self._beginning)

    def take(self, data: bytes) -> None:
        """Take what was printed."""
        lines, newline, rest = (self._beginning + data).rpartition(b'\n')
        self._beginning = rest
        if newline:
            self._put(lines + newline)
        if len(rest) > _CHUNK:
            self.take_beginning()

    def take_beginning(self) -> None:
        """Wait for the end of a line no longer."""
        beginning, self._beginning = self._beginning, b''
        if beginning:
            self._put(beginning)

    def finish(self, deadline: float) -> None:
        """Wait until all is written, or until a steady time [s]."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size, max(deadline - time.monotonic(), 0.0))

    def _put(self, chunk: bytes) -> None:
        with self._changed:
            if self._size + len(chunk) > CAPACITY:
                count = max(chunk.count(b'\n'), 1)
                self._missing += count
                self._dropped[0] += count
                return
            if self._missing:
                chunk = b'... %d lines dropped: nobody read them\n' % self._missing + chunk
                self._missing = 0
            self._chunks.append(chunk)
            self._size += len(chunk)
            self._changed.notify_all()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._chunks)
                chunk = self._chunks.popleft()
            data = memoryview(chunk)
            with suppress(OSError):  # nobody will ever read it
                while data:
                    data = data[os.write(self._fd, data) :]
            with self._changed:
                self._size -= len(chunk)
                self._changed.notify_all()


def _run(targets: dict[int, int], dropped: memoryview) -> None:
    """Copy from each pipe to its file until all that could print have ended."""
    leave_stop_signals_to_the_node(even_stops=True)
    outlets = {read: _Outlet(fd, dropped) for read, fd in targets.items()}
    open_pipes = set(outlets)
    while open_pipes:
        is_waiting = any(outlet.has_beginning for outlet in outlets.values())
        ready, _, _ = select.select(open_pipes, (), (), _LINE_TIME if is_waiting else None)
        for read in ready:
            data = os.read(read, _CHUNK)
            if data:
                outlets[read].take(data)
            else:
                open_pipes.discard(read)
        if not ready or not open_pipes:
            for outlet in outlets.values():
                outlet.take_beginning()
    deadline = time.monotonic() + REST_TIME
    for outlet in outlets.values():
        outlet.finish(deadline)
