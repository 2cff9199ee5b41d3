# SPDX-License-Identifier: Apache-2.0
"""The C of a control cycle, compiled once for each machine, and believed after a comparison."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from robodyn_ros.compiled.c import backend, cache
from robodyn_ros.errors import NoBackend, RefusedCacheEntry

_INCLUDE = re.compile(r'^#include "(\w+\.h)"\n', re.MULTILINE)


def module_source(name: str) -> str:
    """Return a file of the folder ``c`` with its headers in it."""
    text = files('robodyn_ros.control.c').joinpath(name).read_text(encoding='utf-8')
    return _INCLUDE.sub(lambda found: module_source(found[1]), text)


def believed_module(source: str, name: str, check: Callable[[Any], None]) -> Any:
    """
    Return an extension module, from the cache or compiled, after a comparison with NumPy.

    Parameters
    ----------
    source : str
        All of it.
    name : str
        The module's.
    check : callable
        Compares the module's functions, and raises ``NoBackend`` where they are wrong.

    Raises
    ------
    NoBackend
        No compiler, or its code computes something else.
    """
    identity = backend.build_identity() + source
    key = hashlib.sha256(identity.encode()).hexdigest()
    code = None
    with contextlib.suppress(RefusedCacheEntry, OSError):
        code = cache.stored(key)
    module = backend.load_module(code or (new := backend.compiled_source(source)), name)
    try:
        check(module)
    except NoBackend:
        with contextlib.suppress(RefusedCacheEntry, OSError):
            cache.remove(key)
        raise
    if code is None:
        with contextlib.suppress(RefusedCacheEntry, OSError):
            cache.store(key, new)
    return module
