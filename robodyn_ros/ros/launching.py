# SPDX-License-Identifier: Apache-2.0
"""What the launch files share: they are loaded by path, and cannot import one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource


def included(folder: Path, name: str, **arguments: Any) -> IncludeLaunchDescription:
    """
    Return the action that includes a launch file of this package.

    Parameters
    ----------
    folder : Path
        The including file's, where the other stands, too.
    name : str
        Without ``.launch.py``.
    arguments : substitutions
        Of its launch arguments; the others are those of the including file.
    """
    source = PythonLaunchDescriptionSource(str(folder / f'{name}.launch.py'))
    return IncludeLaunchDescription(source, launch_arguments=arguments.items())
