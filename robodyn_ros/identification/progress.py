# SPDX-License-Identifier: Apache-2.0
"""Progress of a long call: a bar of a command, ``print`` in a notebook."""

from __future__ import annotations

from collections.abc import Callable

from robodyn_ros.errors import WrongType

Progress = Callable[[float, str], None]
"""Takes the fraction that is done, 0 to 1, and what is done next."""


def reporting(progress: Progress | None) -> Progress:
    """
    Return the function to report progress to: the argument ``progress``, or one that does nothing.

    Raises
    ------
    WrongType
        It cannot be called.
    """
    if progress is None:
        return lambda fraction, what: None
    if not callable(progress):
        raise WrongType('argument progress', progress, 'a function of two arguments, as print')
    return progress
