# SPDX-License-Identifier: Apache-2.0
"""Which of many alike a quick tier takes: ``make check`` leaves out longer, ``make test`` slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(count: int, values: Iterable[Any], left_out: pytest.MarkDecorator) -> list[Any]:
    """Return parameters of a test, all but each count-th with a mark that leaves it to later."""
    return [
        pytest.param(value, marks=left_out if k % count else ()) for k, value in enumerate(values)
    ]
