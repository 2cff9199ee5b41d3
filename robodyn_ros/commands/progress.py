# SPDX-License-Identifier: Apache-2.0
"""The progress bar of commands that take a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(
    *, is_hidden: bool = False, width: int = 24
) -> Iterator[Callable[[float, str], None]]:
    """
    Show a bar on standard error, not beside ``--json``, and yield what moves it.

    Parameters
    ----------
    is_hidden : bool
        Whether to show nothing in any case.
    width : int
        Of what is said beside the bar, in characters.

    Yields
    ------
    callable
        Takes the fraction that is done, 0 to 1, and what is done now.
    """
    columns = (TextColumn(f'{{task.description:{width}}}'), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    context = click.get_current_context(silent=True)
    is_hidden |= context is not None and bool(context.params.get('json'))
    with Progress(*columns, console=console, transient=True, disable=is_hidden) as progress:
        task = progress.add_task('', total=1.0)

        def show(done: float, what: str) -> None:
            progress.update(task, completed=done, description=what)

        yield show
