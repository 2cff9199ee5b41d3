# SPDX-License-Identifier: Apache-2.0
"""The compiled module ``wrapper.c``."""

from os import PathLike
from typing import Any

from robodyn_ros.spatial import FloatArray

def load(path: str | PathLike[str]) -> Any: ...
def bind(library: Any, parameters: FloatArray) -> dict[str, Any]: ...
def model(library: Any) -> Any: ...
