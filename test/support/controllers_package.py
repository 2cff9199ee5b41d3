# SPDX-License-Identifier: Apache-2.0
"""Where the package of the ros2_control controller is, or that it is not here."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = 'robodyn_controllers'
# In the checkout; beside it where each package has a repository of its own.
PACKAGE = next(
    (place for place in (ROOT / NAME, ROOT.parent / NAME) if (place / 'package.xml').is_file()),
    None,
)


def controllers_package() -> Path:
    """Return its folder, or skip the test or module."""
    if PACKAGE is None:
        pytest.skip(f'{NAME} is neither in this folder nor beside it', allow_module_level=True)
    return PACKAGE
