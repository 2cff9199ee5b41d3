# SPDX-License-Identifier: Apache-2.0
"""
Independent jobs on all cores; one that fails is named, and the others finish.

The same function and items give the same results in this process, in processes beside it, and on
a Dask cluster: jobs share nothing, and linear algebra runs on one thread.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from robodyn_ros.errors import InvalidArgument, NoBackend, Phrase, RobodynError

Item = TypeVar('Item')
Result = TypeVar('Result')


@dataclass(frozen=True)
class Outcome(Generic[Item, Result]):
    """
    What became of a job.

    Attributes
    ----------
    item : object
        What it was given.
    result : object or None
        What it returned; None where it failed.
    problem : str
        Why it failed; empty: it did not.
    """

    item: Item
    result: Result | None
    problem: str = ''


def run_jobs(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int | None = None,
    *,
    dask: str | None = None,
    progress: Callable[[float], object] = lambda done: None,
) -> list[Outcome[Item, Result]]:
    """
    Return what a function makes of each item, in their order.

    Parameters
    ----------
    function : callable
        Of a module, so that another process finds it, as its items and results are pickled.
    items : sequence
    jobs : int, optional
        Processes; the cores that this process may use where not given, 1: this process alone.
    dask : str, optional
        Address of a Dask scheduler, whose workers have this package: they do the jobs.
    progress : callable, optional
        Called with the fraction that is done.

    Raises
    ------
    InvalidArgument
        ``jobs`` is less than one.
    NoBackend
        Dask is not installed, or no scheduler answers.

    Notes
    -----
    An exception of a job, and a process that dies of one, as from a lack of memory, are that job's
    ``problem``.
    """
    if jobs is not None and jobs < 1:
        raise InvalidArgument('argument jobs', jobs, 'one at least')
    if dask is not None:
        return _on_dask(function, items, dask, progress)
    count = min(jobs or len(os.sched_getaffinity(0)), len(items))
    if count <= 1:
        outcomes = []
        for k, item in enumerate(items, 1):
            outcomes.append(_outcome(item, partial(function, item)))
            progress(k / len(items))
        return outcomes
    return _in_processes(function, items, count, progress)


def _outcome(item: Item, result: Callable[[], Result]) -> Outcome[Item, Result]:
    """Return what a call returns, or why it failed; a broken pool is the caller's affair."""
    try:
        return Outcome(item, result())
    except BrokenProcessPool:
        raise
    except Exception as error:  # whatever it is, the other jobs go on
        return Outcome(item, None, words_of(error))


def words_of(error: BaseException) -> str:
    """Return why a job failed: our errors by their message, others with their class."""
    if isinstance(error, (RobodynError, OSError)):
        return str(error)
    return f'{type(error).__name__}: {error}'


def _in_processes(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    count: int,
    progress: Callable[[float], object],
) -> list[Outcome[Item, Result]]:
    outcomes: dict[int, Outcome[Item, Result]] = {}
    broken = False
    # Not forked: threads of this process, as those of a progress bar, would hold locks there.
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        waiting: dict[Future[Result], int] = {
            pool.submit(function, item): k for k, item in enumerate(items)
        }
        for future in as_completed(waiting):
            k = waiting[future]
            try:
                outcomes[k] = _outcome(items[k], future.result)
            except BrokenProcessPool:
                broken = True
            progress(len(outcomes) / len(items))
    if broken:
        # Which job ended its process is not known: each of those left gets one of its own.
        for k in sorted(set(range(len(items))) - set(outcomes)):
            with ProcessPoolExecutor(1, mp_context=context) as alone:
                try:
                    outcomes[k] = _outcome(items[k], alone.submit(function, items[k]).result)
                except BrokenProcessPool:
                    outcomes[k] = Outcome(items[k], None, 'its process died')
            progress(len(outcomes) / len(items))
    return [outcomes[k] for k in range(len(items))]


def _on_dask(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    address: str,
    progress: Callable[[float], object],
) -> list[Outcome[Item, Result]]:
    try:
        from distributed import Client
    except ImportError as error:
        raise NoBackend(
            '--dask', Phrase(str(error)), "pip install 'robodyn-ros[fleet]'"
        ) from error
    try:
        client: Any = Client(address, timeout='10s', set_as_default=False)
    except (OSError, ValueError) as error:
        raise NoBackend('--dask', address, f'the address of a scheduler ({error})') from error
    with client:
        futures = [client.submit(function, item, pure=False, retries=0) for item in items]
        outcomes = []
        for item, future in zip(items, futures):
            outcomes.append(_outcome(item, future.result))
            progress(len(outcomes) / len(items))
        return outcomes
