# SPDX-License-Identifier: Apache-2.0
"""Nodes as child processes that never outlive their parent."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

STOP_TIMEOUT = 5.0
"""How long a node may take to end after SIGINT [s]; then it is killed."""

_SHOWN_LINES = 15
_PR_SET_PDEATHSIG = 1


class DemoFailed(Exception):
    """The demonstration could not be carried through; the message says where and why."""


class NodeProcess:
    """
    A ROS node of this package in a process of its own, for a ``with`` statement.

    Parameters
    ----------
    module : str
        In ``robodyn_ros.ros``: ``dynamics.dynamics_node`` for instance.
    namespace : str
        Where its relative names are.
    parameters : mapping of str to bool, int, float, str or a list of those
    remappings : mapping of str to str
    log : Path
        File that its output goes to.
    """

    def __init__(
        self,
        module: str,
        *,
        namespace: str,
        parameters: Mapping[str, Any],
        remappings: Mapping[str, str],
        log: Path,
    ) -> None:
        self.name = module.rpartition('.')[2]
        self.log = log
        self._command = [sys.executable, '-m', f'robodyn_ros.ros.{module}', '--ros-args']
        self._command += ['-r', f'__ns:={namespace}']
        for topic, target in remappings.items():
            self._command += ['-r', f'{topic}:={target}']
        for parameter, value in parameters.items():
            # JSON is YAML, and names its types without doubt.
            self._command += ['-p', f'{parameter}:={json.dumps(value)}']

    def __enter__(self) -> NodeProcess:
        with self.log.open('wb') as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Of the running process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Of a process that has ended; None while it runs."""
        return self._process.poll()

    def check(self) -> None:
        """Raise DemoFailed if the process is no longer there."""
        code = self._process.poll()
        if code is not None:
            raise DemoFailed(f'{self.name} ended with code {code}.\n{self.last_lines()}')

    def last_lines(self) -> str:
        """Return the end of the log, and where all of it is."""
        lines = self.log.read_text(errors='replace').splitlines()[-_SHOWN_LINES:]
        return '\n'.join([*lines, f'(all of it: {self.log})'])


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent ends, in whatever way."""
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
