# SPDX-License-Identifier: Apache-2.0
"""
The machine's C compiler, run so that it cannot block its caller.

It runs in a session of its own. Where it takes too long, where the caller is interrupted, and
where this process is killed, it is ended with all that it has started. What it prints is read as
it comes, and only the end of it is kept.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Literal

from robodyn_ros.errors import NoBackend, Phrase

VERSION_TIMEOUT = 10.0  # that it is given to say which it is: a few milliseconds everywhere [s]
WANTED = 'a compiler that works; NumPy computes the same without'

_END_TIMEOUT = 1.0  # that the kernel is given to end a killed process [s]
_LOOK_PERIOD = 0.01  # between looks at whether it has ended [s]
_CHUNK = 1 << 16  # [bytes]
_KEPT = 2000  # bytes of what it printed

# A shell that waits for the end of this process, whose pipe it reads, and kills a group then.
_GUARD = ('/bin/sh', '-c', 'read line; kill -9 -"$0"')


def c_compiler() -> list[str]:
    """
    Return the command of the C compiler: ``CC`` from the environment, else cc, gcc or clang.

    Raises
    ------
    NoBackend
        There is none.
    """
    named = os.environ.get('CC', '').strip()
    try:
        commands = [shlex.split(named)] if named else [['cc'], ['gcc'], ['clang']]
    except ValueError as error:
        raise NoBackend('environment variable CC', named, f'a command; {error}') from error
    for command in commands:
        path = shutil.which(command[0])
        if path:
            return [path, *command[1:]]
    raise NoBackend('C compiler', named or Phrase('none of cc, gcc, clang'), WANTED)


def compiler_version(command: Sequence[str]) -> str:
    """
    Return what a compiler says about itself.

    Raises
    ------
    NoBackend
        It cannot be run, or does not answer.
    """
    return output_of([*command, '--version'], VERSION_TIMEOUT, 'stdout')[1]


def output_of(
    command: Sequence[str], timeout: float, stream: Literal['stdout', 'stderr']
) -> tuple[int, str]:
    """
    Run a compiler, and return its exit code and the end of what it printed on one stream.

    Raises
    ------
    NoBackend
        It cannot be run, or takes longer than the timeout [s].
    """
    # A signal handler may raise anywhere in this thread, even where a process has begun and nobody
    # has its number yet. It never runs in another thread.
    stop = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        try:
            run = thread.submit(_end_of_run, command, stream, timeout, stop)
            # Again and again: a signal that comes just before a wait would not end it.
            while not wait([run], _LOOK_PERIOD).done:
                pass
            return run.result()
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the command
            raise NoBackend('C compiler', Phrase(str(error)), WANTED) from error
        finally:
            stop.set()


def _end_of_run(
    command: Sequence[str], stream: str, timeout: float, stop: threading.Event
) -> tuple[int, str]:
    """Run a compiler until it ends, takes too long or is to stop; see ``output_of``."""
    with _run_apart(command, stream) as process:
        return _end_of_output(process, getattr(process, stream).fileno(), timeout, stop)


@contextmanager
def _run_apart(command: Sequence[str], stream: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a session of its own that does not outlive the context, or this process."""
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(
        command,
        stdin=nowhere,
        stdout=pipe if stream == 'stdout' else nowhere,
        stderr=pipe if stream == 'stderr' else nowhere,
        env={**os.environ, 'LC_ALL': 'C'},
        start_new_session=True,
    )
    guard = None
    try:
        guard = subprocess.Popen(
            [*_GUARD, str(process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        yield process
    finally:
        if process.poll() is None:
            with suppress(OSError):  # it has ended meanwhile, or runs as another user
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_TIMEOUT)
        if guard is not None:
            guard.kill()
            guard.wait()
        for end in (process.stdout, process.stderr, guard and guard.stdin):
            if end:
                end.close()


def _end_of_output(
    process: subprocess.Popen[bytes], pipe: int, timeout: float, stop: threading.Event
) -> tuple[int, str]:
    """Return a process's exit code and the end of what it wrote to a pipe."""
    deadline = time.monotonic() + timeout
    os.set_blocking(pipe, False)
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    end, is_open = b'', True
    while True:
        code = process.poll()
        if is_open and poll.poll(0 if code is not None else 1000 * _LOOK_PERIOD):
            data = os.read(pipe, _CHUNK)
            end, is_open = (end + data)[-_KEPT:], bool(data)
        elif code is None:
            time.sleep(_LOOK_PERIOD)
        # Its child processes may keep the pipe open: do not wait for them.
        if code is not None:
            return code, end.decode('utf-8', 'replace')
        if stop.is_set() or time.monotonic() > deadline:
            said = f'no end after {timeout:g} s: {shlex.join(process.args)}'  # type: ignore[arg-type]
            raise NoBackend('C compiler', Phrase(said), WANTED)
