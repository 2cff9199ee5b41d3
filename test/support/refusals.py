# SPDX-License-Identifier: Apache-2.0
"""What a call is refused with, for loops over many cases whose assertions name the case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def refusal(kind: type[Exception], call: Callable[..., Any], *arguments: Any) -> str:
    """Return the message of the error that a call is refused with; nothing where it is not."""
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    return ''
