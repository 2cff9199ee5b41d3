# SPDX-License-Identifier: Apache-2.0
"""Independent jobs: alone, in processes, and on a local Dask cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from ageing_arms import AgeingArm
from simulated_recordings import as_csv

from robodyn_ros.errors import InsufficientRecording, InvalidArgument, NoBackend
from robodyn_ros.monitoring.jobs import run_jobs
from robodyn_ros.monitoring.motions import FileJob, examined_file


def squared(x: int) -> int:
    """Fail for some numbers, in different ways."""
    if x == 3:
        raise InsufficientRecording('three', x, 'another')
    if x == 4:
        raise ZeroDivisionError('four')
    if x == 5 and os.environ.get('ROBODYN_MAY_DIE') == str(os.getppid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def check(outcomes, dies=False):
    assert [each.item for each in outcomes] == [1, 2, 3, 4, 5, 6]
    assert [each.result for each in outcomes] == [1, 4, None, None, None if dies else 25, 36]
    assert outcomes[2].problem == 'three: 3; allowed: another'
    assert outcomes[3].problem == 'ZeroDivisionError: four'
    assert ('died' in outcomes[4].problem) == dies


def test_a_job_that_fails_is_named_and_the_others_finish():
    done = []
    check(run_jobs(squared, [1, 2, 3, 4, 5, 6], 1, progress=done.append))
    assert done == sorted(done) and done[-1] == 1.0
    assert run_jobs(squared, []) == []
    with pytest.raises(InvalidArgument):
        run_jobs(squared, [1], 0)


@pytest.mark.longer
def test_in_processes_it_is_the_same():
    check(run_jobs(squared, [1, 2, 3, 4, 5, 6], 2))


@pytest.mark.slow
def test_a_process_that_dies_of_a_job_costs_that_job_alone(monkeypatch):
    monkeypatch.setenv('ROBODYN_MAY_DIE', str(os.getpid()))
    check(run_jobs(squared, [1, 2, 3, 4, 5, 6], 2), dies=True)


@pytest.fixture(scope='module')
def work(tmp_path_factory) -> list[FileJob]:
    folder = tmp_path_factory.mktemp('fleet')
    arm = AgeingArm('ur5')
    model = folder / 'ur5.yaml'
    arm.identified.save(model)
    paths = [as_csv(folder / f'{k}.csv', arm.motion(k, duration=5.0)) for k in range(3)]
    return [FileJob(Path(path), model) for path in [*paths, folder / 'missing.csv']]


@pytest.mark.slow
def test_recordings_give_the_same_numbers_to_the_last_digit_in_processes(work):
    alone, beside = (run_jobs(examined_file, work, jobs) for jobs in (1, 2))
    assert alone == beside
    assert [bool(each.problem) for each in alone] == [False] * 3 + [True]


@pytest.mark.slow
def test_a_local_dask_cluster_gives_the_same_numbers_to_the_last_digit(work):
    distributed = pytest.importorskip(
        'distributed', reason='dask.distributed is not installed: pip install distributed'
    )
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        told = run_jobs(examined_file, work, dask=cluster.scheduler_address)
    assert told == run_jobs(examined_file, work, 1)
    assert 'missing.csv' in told[3].problem


def test_a_scheduler_that_is_none_is_said(monkeypatch):
    pytest.importorskip('distributed', reason='dask.distributed is not installed')
    with pytest.raises(NoBackend, match='--dask'):
        run_jobs(squared, [1], dask='nonsense://')


def test_without_dask_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, 'distributed', None)
    with pytest.raises(NoBackend, match='fleet'):
        run_jobs(squared, [1], dask='tcp://127.0.0.1:1')
