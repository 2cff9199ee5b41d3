# SPDX-License-Identifier: Apache-2.0
"""`robodyn` in this process: its result, its output, its JSON, or the error that it prints."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from robodyn_ros.cli import main, robodyn


def invoked(*arguments: Any, stdin: str | None = None) -> Result:
    """Return the result of a command; an error of ours is its exception."""
    return CliRunner().invoke(robodyn, [str(x) for x in arguments], input=stdin)


def output_of(*arguments: Any, stdin: str | None = None, code: int = 0) -> str:
    """Return what a command prints; it ends with the given exit code."""
    result = invoked(*arguments, stdin=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def json_of(*arguments: Any, stdin: str | None = None, code: int = 0) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(output_of(*arguments, '--json', stdin=stdin, code=code))


def error_of(*arguments: Any) -> str:
    """Return the error that a command prints before it ends with 2, as its own process would."""
    said = io.StringIO()
    with (
        patch.object(sys, 'argv', ['robodyn', *map(str, arguments)]),
        redirect_stderr(said),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert ended.value.code == 2
    return said.getvalue()
