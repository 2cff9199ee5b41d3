# SPDX-License-Identifier: Apache-2.0
"""Reports, made once, and a browser to read them with."""

import pytest
from browser import chromium
from command_line import json_of

import robodyn_ros as rd
from robodyn_ros.description.chain import Chain
from robodyn_ros.report import arm_facts


# Of a module: while Playwright runs, its event loop keeps all others from the thread.
@pytest.fixture(scope='module')
def browser():
    with chromium() as started:
        yield started


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave what is looked at in a browser to ``make test-all``: each takes seconds."""
    for item in items:
        if 'browser' in item.fixturenames:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope='session')
def report_of(tmp_path_factory, panda_urdf, ur5_urdf):
    arms = {
        'panda': (panda_urdf, '--base', 'panda_link0', '--tip', 'panda_link8'),
        'ur5': (ur5_urdf, '--tip', 'tool0'),
        'jpl_rrp': ('urdf/jpl_rrp.urdf',),
    }
    folder, made = tmp_path_factory.mktemp('reports'), {}

    def report(name):
        if name not in made:
            path = folder / f'{name}.html'
            made[name] = path, json_of('report', *arms[name], '-o', path)
        return made[name]

    return report


@pytest.fixture(scope='session')
def facts_of():
    def gathered(urdf, **options):
        chain = Chain.from_urdf(urdf)
        return arm_facts(chain, rd.RobotModel.from_chain(chain), **options)

    return gathered
