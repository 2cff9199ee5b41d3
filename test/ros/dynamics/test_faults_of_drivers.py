# SPDX-License-Identifier: Apache-2.0
"""Drivers die, pause, come back, disagree and change pace; one node process sees it all."""

import re
import signal

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from fault_rig import POSITION, STATE_TIMEOUT, WATCHDOG_PERIOD, case, fault, rig_in, stop
from node_rig import ARM

pytestmark = [pytest.mark.slow, pytest.mark.ros]


@pytest.fixture(scope='module')
def running(tmp_path_factory, panda_urdf):
    rig = rig_in(tmp_path_factory.mktemp('drivers'), panda_urdf)
    rig.launch(mode='computed_torque')
    rig.bring_up(POSITION)
    yield rig
    rig.close()


@pytest.fixture
def rig(running):
    with running.surviving():
        yield running


def holds(rig, gravity):
    """Return the condition that the command is gravity's torque, of the arm at rest."""
    return lambda: rig.commands and np.allclose(rig.commands[-1].data, gravity, atol=1e-6)


def forget_reference(rig):
    """Have gravity compensated where a test before has left a reference to hold."""
    mode = 'gravity_compensation'
    assert rig.set_parameter('mode', mode, rig.send_home).successful
    rig.stream(POSITION, lambda: rig.report.get('mode') == mode)


@fault(
    'driver killed',
    'States are extrapolated briefly; then gravity for stale_hold_time, then silence; ERROR.',
)
def test_killed_driver_gets_gravity_held_then_silence(rig, gravity):
    driver = rig.driver()
    rig.until_commanded()
    stop(driver)
    rig.until_held()
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-6)


@fault(
    'driver killed in motion',
    'The arm is braked by the model without feedback, then as at rest.',
)
def test_driver_that_dies_in_motion_leaves_gravity_held(rig, gravity):
    rig.in_motion()
    rig.until(lambda: rig.report.get('level') == 2)
    assert rig.report['reference'] == 'none'
    rig.until(lambda: rig.is_quiet())
    # Of where the brake leads to, a little ahead.
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=0.1)


@fault('driver paused and continued', 'Stale, then recovered without a step.')
def test_paused_driver_is_stale_and_comes_back(rig):
    driver = rig.driver()
    rig.until_commanded()
    driver.send_signal(signal.SIGSTOP)
    rig.until_held()
    driver.send_signal(signal.SIGCONT)
    rig.until_commanded()
    rig.until(lambda: rig.report.get('level') == 0)


@fault(
    'driver restarted',
    'The node recovers, brakes, holds, and waits for a new trajectory.',
)
def test_restarted_driver_is_followed_again(rig):
    rig.in_motion()
    rig.until_held()
    rig.driver()
    rig.until_commanded()
    rig.until(lambda: rig.report.get('level') == 0)
    count = len(rig.states)
    rig.spin(0.5)
    assert rig.report['reference'] in ('none', 'holding')
    assert not any(np.any(state.reference_velocity) for state in rig.states[count:])


@pytest.mark.parametrize(
    ('factor', 'words'),
    [
        case(
            'velocity of the wrong sign',
            'Taken from the positions until enabling; diagnostics name the joint.',
            -1.0,
            'has the wrong sign',
        ),
        case('velocity of zero while a joint moves', 'The same.', 0.0, 'is zero while it moves'),
        case('velocity in degrees', 'The same.', 57.3, 'is in degrees'),
    ],
)
def test_wrong_velocity_is_named_and_replaced(rig, factor, words):
    driver = rig.driver(velocity=str(factor))
    told = f"velocity of joint 'panda_joint4' {words}"
    rig.until(lambda: told in rig.report.get('wrong_velocities', ''))
    assert rig.report['level'] > 0 and told in rig.log
    rig.until_commanded()
    stop(driver)
    # Whoever mended the driver enables the node anew.
    rig.stream(POSITION, lambda: rig.commands)
    assert rig.enable(False, rig.send_home).success
    assert rig.enable(True, rig.send_home).success
    rig.stream(POSITION, lambda: rig.report['wrong_velocities'] == '')


@fault(
    'driver restarted with its clock at zero',
    'Stale; the log suggests use_sim_time.',
)
def test_driver_with_a_clock_of_its_own_is_stale(rig):
    rig.driver(stamp='1.0')
    rig.until(lambda: 'use_sim_time' in rig.log)
    rig.until(lambda: rig.is_quiet())


@fault('driver restarted elsewhere', 'The torque changes within the rate limit.')
def test_driver_that_comes_back_elsewhere_causes_no_step(rig, gravity):
    driver = rig.driver()
    rig.until_commanded()
    stop(driver)
    rig.until_held()
    rig.driver(offset=0.3)
    rig.until_commanded(more=150)
    assert not np.allclose(rig.commands[-1].data, gravity, atol=0.5)


@fault(
    'driver without stamps and velocities restarted',
    'Velocities are unknown for the first 8 ms: gravity only.',
)
def test_bare_driver_comes_back(rig, gravity):
    driver = rig.driver(stamp='zero', velocity='no')
    rig.until_commanded()
    stop(driver)
    rig.until_held()
    rig.driver(stamp='zero', velocity='no')
    rig.until_commanded()
    rig.until(holds(rig, gravity))


@fault('two drivers that agree', 'Each message causes a cycle; nothing else changes.')
def test_two_drivers_that_agree_are_one(rig, gravity):
    for _ in range(2):
        rig.driver()
    rig.until_commanded(more=200)
    rig.until(holds(rig, gravity))


def contradict(rig):
    """Have two drivers disagree until nothing is commanded, and return the second one."""
    rig.driver()
    other = rig.driver(offset=0.4)
    rig.until(lambda: 'contradict each other: /driver' in rig.report.get('message', ''))
    rig.until(lambda: rig.is_quiet())
    return other


@fault(
    'two drivers that disagree',
    'Gravity of the last state on which they agreed, for the hold time; both are named. One'
    ' that is left is followed again.',
)
def test_two_drivers_that_disagree_cause_no_step(rig):
    stop(contradict(rig))
    rig.until_commanded()


@fault(
    'two drivers disagree in motion',
    'Braked from the last state on which they agreed; the motion is dropped.',
)
def test_two_drivers_that_disagree_in_motion_cause_no_step(rig):
    rig.in_motion()
    dropped = int(rig.report['dropped_references'])
    contradict(rig)
    assert int(rig.report['dropped_references']) > dropped
    assert rig.report['reference'] == 'none'


@fault(
    'one of two partial drivers killed',
    'The arm is stale; diagnostics name the joints.',
)
def test_half_an_arm_is_stale(rig):
    rig.driver(names=ARM[:4])
    other = rig.driver(names=ARM[4:])
    rig.until_commanded()
    stop(other)
    rig.until(lambda: rig.report['stale_joints'].split() == ARM[4:])
    rig.until(lambda: rig.is_quiet())
    rig.driver(names=ARM[4:])
    rig.until_commanded()


@fault(
    'driver at 10 Hz',
    'Gravity is commanded for half a period ahead, with little damping; a WARN names the rate.',
)
def test_slow_driver_gets_gravity_and_a_warning_with_the_rate(rig, gravity):
    forget_reference(rig)
    rig.driver(rate=10.0)
    rig.until_commanded(more=15)
    rig.until(holds(rig, gravity))
    rig.until(lambda: 'gravity compensation needs 100 Hz' in rig.report.get('message', ''))


@fault(
    'driver slower than the state timeout',
    'Stale and recovered with every state: always gravity. Diagnostics name `state_timeout` and '
    'the needed rate.',
)
def test_driver_slower_than_the_timeout_gets_gravity(rig, gravity):
    def told():
        return re.findall(r'\[ERROR\] \[([\d.]+)\] \[dynamics_node\]: no fresh state', rig.log)

    count = len(told())
    rig.driver(rate=0.8 / STATE_TIMEOUT)
    rig.until(lambda: rig.report.get('level') == 2)
    rig.until(holds(rig, gravity))
    rig.until(lambda: f'allowed: state_timeout = {STATE_TIMEOUT}' in rig.report['message'])
    rig.until(lambda: len(told()) > count + 1)
    times = [float(time) for time in told()[count:]]
    assert np.diff(times).min() > 0.95  # [s]; states come every 0.6 s


@fault(
    'driver at 2 kHz',
    'States that are too many are overwritten by newer ones.',
)
def test_fast_driver_is_survived(rig, gravity):
    forget_reference(rig)
    rig.driver(rate=2000.0)
    rig.until_commanded(more=1000)
    rig.until(holds(rig, gravity))
    rig.until(lambda: rig.report.get('level') == 0)


@fault('bursts of joint states', 'The newest ten are kept; no step.')
def test_bursts_cause_no_step(rig):
    rig.in_motion()
    for burst in range(6):
        for i in range(100):
            rig.send(np.array(POSITION) + 0.001 * (i + burst))
        rig.spin(0.15)


@fault('states that come joint by joint', 'A cycle runs when all joints are new.')
def test_single_joints_make_whole_states(rig, gravity):
    forget_reference(rig)

    def trickle():
        for i in range(7):
            rig.send(POSITION[i : i + 1], names=ARM[i : i + 1])

    rig.until(rig.commanded_since(len(rig.commands), 20), doing=trickle)
    rig.until(holds(rig, gravity), doing=trickle)


@fault(
    'arm moved beyond its position limits',
    'Gravity in full; outward torque fades, outward motion is damped.',
)
def test_arm_beyond_its_limits_is_not_pushed_further(rig):
    rig.in_motion(seconds=60.0)
    outside = [*POSITION[:6], 3.1]  # panda_joint7 ends at 2.8973
    for _ in range(60):
        rig.send(outside, velocity=[0.0] * 6 + [0.5])
        rig.spin(0.005)
    effort = rig.states[-1].total[6] - rig.states[-1].gravity[6]
    assert effort <= 1e-9
    rig.stream(outside, lambda: rig.states[-1].reference_position, velocity=[0.0] * 7)


@fault(
    'subscriber of the commands that hangs',
    'The node does not wait for it.',
)
def test_hanging_subscriber_holds_nobody_up(rig, gravity):
    child = rig.listener('/dynamics_node/commands')
    child.send_signal(signal.SIGSTOP)
    rig.stream(POSITION, rig.commanded_since(len(rig.commands), 300))
    rig.until(holds(rig, gravity), doing=rig.send_home)


@fault(
    'action on staleness, timed',
    'Within one watchdog period after the timeout; never before.',
)
def test_held_gravity_begins_within_one_watchdog_period(rig):
    lateness = [np.inf]
    while min(lateness) >= 2.0 * WATCHDOG_PERIOD:  # a loaded machine delays some, but not all
        assert len(lateness) <= 10, lateness
        rig.recover()
        rig.spin(0.3)  # the gap is bridged no longer
        stamp = rig.torques[-1].header.stamp
        state = stamp.sec + 1e-9 * stamp.nanosec
        rig.until(lambda state=state: rig.record[-1][0] > state + 0.3)
        held = min(sent for sent, *_ in rig.record if sent > state + 0.3)
        lateness.append(held - state - STATE_TIMEOUT)
    assert min(lateness) >= 0.0
