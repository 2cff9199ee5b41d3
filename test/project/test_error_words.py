# SPDX-License-Identifier: Apache-2.0
"""The words of the package's errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from robodyn_ros.errors import InvalidArgument


@pytest.mark.parametrize(
    ('value', 'shown'),
    [
        (np.float64('nan'), 'nan'),
        ([np.float64('nan'), np.float64(1.5)], '[nan, 1.5]'),
        ((np.int64(3), [np.bool_(True)]), '(3, [True])'),
        ({'gain': np.float32(0.5)}, "{'gain': 0.5}"),
        (np.array([1.0, np.inf]), '[1.0, inf]'),
        ('np.float64(1.0)', "'np.float64(1.0)'"),
    ],
)
def test_an_error_shows_numbers_of_numpy_as_plain_numbers(value: Any, shown: str) -> None:
    assert str(InvalidArgument('element', value, 'others')) == f'element: {shown}; allowed: others'
