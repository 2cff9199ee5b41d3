# SPDX-License-Identifier: Apache-2.0
"""Long calls keep linear algebra to one thread, with threadpoolctl and without it."""

import sys

import pytest
from simulated_recordings import TrueArm, motion
from threadpoolctl import threadpool_info, threadpool_limits

import robodyn_ros as rd
from robodyn_ros.identification import Recording, excitation, identify_payload
from robodyn_ros.threads import one_thread


def threads():
    """Return the number of threads of each library that is loaded and may have several."""
    libraries = [each for each in threadpool_info() if each['user_api'] == 'blas']
    # Another test may have loaded one, a solver's, that was built for one thread.
    return [each['num_threads'] for each in libraries if each['threading_layer'] != 'disabled']


@pytest.fixture(params=['with threadpoolctl', 'without it'])
def two_threads(request, monkeypatch):
    """Allow two, on a machine with one core, too."""
    with threadpool_limits(2):
        if threads() != [2] * len(threads()) or not threads():
            pytest.skip('linear algebra that takes one thread as it is')
        if request.param == 'without it':
            if not sys.platform.startswith('linux'):
                pytest.skip('/proc is of Linux')
            monkeypatch.setitem(sys.modules, 'threadpoolctl', None)
        yield


def test_a_block_has_one_thread_and_gives_the_others_back(two_threads):
    with one_thread():
        assert set(threads()) == {1}
        with one_thread():
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert set(threads()) == {2}


def test_the_others_come_back_after_an_error(two_threads):
    with pytest.raises(rd.NoSolution), one_thread():
        raise rd.NoSolution('', '', '')
    assert set(threads()) == {2}


def test_long_calls_have_one_thread(two_threads):
    arm = TrueArm.drawn(2, 2)
    time, q, qd, qdd = motion(arm.urdf, 3, 5.0, 100.0)
    effort = rd.inverse_dynamics(arm.bodies, q, qd, qdd)
    seen = []
    identify_payload(
        arm.bodies,
        Recording(arm.urdf.joint_names, time, q, qd, effort),
        progress=lambda done, what: seen.append(threads()),
    )
    assert {number for each in seen for number in each} == {1}
    assert set(threads()) == {2}


def test_a_search_for_a_motion_has_one_thread(two_threads, monkeypatch):
    class Enough(Exception):
        pass

    def first(done, what):
        assert set(threads()) == {1}
        raise Enough

    with pytest.raises(Enough):
        excitation(TrueArm.drawn(2, 2).urdf, 5.0, progress=first)
    assert set(threads()) == {2}
