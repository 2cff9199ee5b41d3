# SPDX-License-Identifier: Apache-2.0
"""What several tests share: two public robots, and how many examples Hypothesis draws."""

import hashlib
import os
import signal
import subprocess
import time
from collections import defaultdict
from importlib.metadata import PackageNotFoundError

import domains
import pytest
from hypothesis import settings
from robots import public_urdf

# `make check` and `make test` draw the same few examples in every run, `make test-late` four
# times as many, `make test-all` others each time, `make test-long` a hundred times as many. What
# they find becomes an @example.
settings.register_profile('few', max_examples=25, deadline=None, derandomize=True)
settings.register_profile('fixed', max_examples=100, deadline=None, derandomize=True)
settings.register_profile('fresh', max_examples=100, deadline=None, print_blob=True)
settings.register_profile('long', max_examples=10_000, deadline=None, print_blob=True)
settings.load_profile('few')

domains.stay_on_loopback()
# What is started without a domain of its own shares one with nobody.
os.environ['ROS_DOMAIN_ID'] = str(domains.claim())


def pytest_addoption(parser):
    parser.addoption(
        '--until',
        type=float,
        help='start no test after this time [s since 1970]; the order of files rotates by commit',
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave repeated cases to a later tier; rotate files where not all may have their turn."""
    alike = defaultdict(list)
    for item in items:
        if item.get_closest_marker('repeats'):
            alike[item.path, item.originalname].append(item)
    for cases in alike.values():
        for tier, left_out in (('check', 'longer'), ('test', 'slow')):
            count = cases[0].get_closest_marker('repeats').kwargs.get(tier, len(cases))
            taken = {k * len(cases) // count for k in range(count)}
            for k in set(range(len(cases))) - taken:
                cases[k].add_marker(left_out)
    if config.getoption('until') is None:
        return
    commit = subprocess.run(
        ['git', 'rev-parse', 'HEAD'], cwd=config.rootpath, capture_output=True, text=True
    ).stdout
    keys = {
        item.path: hashlib.sha256(f'{commit}{item.path.name}'.encode()).digest() for item in items
    }
    items.sort(key=lambda item: keys[item.path])


def pytest_runtest_setup(item):
    until = item.config.getoption('until')
    if until is not None and time.time() > until:
        name = item.path.relative_to(item.config.rootpath)
        pytest.skip(f'{name}: its turn is with another commit, the time is over')


# Under nohup it is ignored, and the processes under test would rightly ignore it, too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def path_of(name: str) -> str:
    """Return the path of a public URDF, or skip."""
    try:
        return str(public_urdf(name))
    except PackageNotFoundError as error:
        pytest.skip(f'{error}: no {name}')


@pytest.fixture(scope='session')
def panda_urdf() -> str:
    """Path of the Panda: base panda_link0, tip panda_link8, seven revolute joints, fingers."""
    return path_of('panda.urdf')


@pytest.fixture(scope='session')
def ur5_urdf() -> str:
    """Path of the UR5: six revolute joints."""
    return path_of('ur5_robot.urdf')
