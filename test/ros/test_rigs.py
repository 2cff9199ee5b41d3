# SPDX-License-Identifier: Apache-2.0
"""Tests end, and talk to, what they have started themselves, and nobody else's."""

import os
import socket
import subprocess
import sys

import domains
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import NodeRig, processes_with

pytestmark = pytest.mark.ros

IDLE = 'import time; time.sleep(600)'
# The second process leaves the first one's session, as the watchdog does.
WITH_A_FORK = """
import os, signal
if os.fork() == 0:
    os.setsid()
print('here', flush=True)
signal.pause()
"""


@pytest.fixture
def rig(tmp_path):
    result = NodeRig(tmp_path / 'node.log')
    yield result
    if result.domain in domains._held:
        result.close()


def foreign_node(domain):
    """Start what looks like a dynamics node of a domain, as somebody else would."""
    return subprocess.Popen(
        [sys.executable, '-c', IDLE, 'dynamics_node'],
        env={**os.environ, 'ROS_DOMAIN_ID': str(domain)},
    )


def test_a_rig_ends_all_that_it_started_and_no_foreign_node_of_the_same_domain(rig):
    foreign = foreign_node(rig.domain)
    try:
        rig.start(program=WITH_A_FORK)
        rig.until(lambda: rig.log.count('here') == 2)
        mark = f'ROBODYN_TEST_RIG={rig.environment["ROBODYN_TEST_RIG"]}'.encode()
        assert len(processes_with(mark)) == 2
        rig.close()
        assert processes_with(mark) == []
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


@pytest.mark.parametrize('family', [socket.AF_INET, socket.AF_INET6])
def test_a_domain_in_which_somebody_talks_is_not_claimed(family):
    number = domains.claim()
    domains.release(number)
    with socket.socket(family, socket.SOCK_DGRAM) as inhabitant:
        try:
            inhabitant.bind(('', domains.FIRST_PORT + domains.PORTS * number + 11))
        except OSError:
            pytest.skip('no such addresses here')
        other = domains.claim()
        domains.release(other)
    assert other != number
    assert min(domains.CANDIDATES) > 100  # none of a robot
    assert int(os.environ['ROS_DOMAIN_ID']) in domains.CANDIDATES
