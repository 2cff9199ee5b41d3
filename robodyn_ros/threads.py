# SPDX-License-Identifier: Apache-2.0
"""
Number of threads for linear algebra: one, where matrices are small and many.

OpenBLAS starts as many as the machine has cores, and they wait for one another in busy loops: an
identification of a second takes a minute beside other programs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

# As NumPy's and SciPy's wheels name it, and Debian's library.
_OPENBLAS = [f'{vendor}openblas_{{}}{width}' for vendor in ('scipy_', '') for width in ('64_', '')]


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra to one thread: around a block, or as a function's decorator."""
    # rosdep, which installs Debian's packages alone, has no key for it.
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        with ExitStack() as restored:
            for number, set_number in _openblas_of_process():
                restored.callback(set_number, number)
                set_number(1)
            yield
        return
    with threadpool_limits(1):
        yield


def _openblas_of_process() -> list[tuple[int, Callable[[int], None]]]:
    """Return number of threads, and what sets it, of each OpenBLAS that Linux has loaded."""
    maps = Path('/proc/self/maps')
    lines = maps.read_text(encoding='utf-8').splitlines() if maps.exists() else []
    paths = {line.split(maxsplit=5)[5] for line in lines if 'openblas' in line}
    found = []
    for path in sorted(path for path in paths if Path(path).is_file()):
        library = ctypes.CDLL(path)
        for name in _OPENBLAS:
            if hasattr(library, name.format('set_num_threads')):
                number = getattr(library, name.format('get_num_threads'))()
                found.append((number, getattr(library, name.format('set_num_threads'))))
                break
    return found
