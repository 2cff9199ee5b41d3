# SPDX-License-Identifier: Apache-2.0
"""What diagnostics say, one cause after the other."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from control_arm import NAMES, enabled
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.logging import get_logger
from robots import public_urdf

from robodyn_ros.control.control_stack import apply_settings, build_control_stack
from robodyn_ros.control.settings import ControlSettings, arm_settings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.ros.child_process import priority_of
from robodyn_ros.ros.dynamics.control_cycle import ControlCycle, CycleCounts
from robodyn_ros.ros.dynamics.diagnostics import model_status, process_status, torque_status
from robodyn_ros.ros.trajectory_message import Rejections

OK, WARN, ERROR, STALE = (bytes([level]) for level in range(4))
Q = np.array([0.1, 0.2])


class Cycle:
    """As much of a control cycle as diagnostics look at, run by the test's own clock."""

    contradiction = ''
    long_wait = ControlCycle.long_wait

    def __init__(self, mode='gravity_compensation', **settings):
        self.arm = enabled(mode, **settings)
        model = SimpleNamespace(
            joint_names=NAMES,
            position_limits=np.array([[-2.0, 2.0], [-np.inf, np.inf]]),
            dh=SimpleNamespace(prismatic=np.zeros(2, bool)),
        )
        self.stack = SimpleNamespace(
            pipeline=self.arm.pipeline,
            joint_states=self.arm.buffer,
            arm=model,
            model=model,
            monitor=SimpleNamespace(contact=None),
        )
        self.contacts = SimpleNamespace(facts={'contacts': 0})
        self.tip = SimpleNamespace(facts={'targets_refused': 0})
        self.counts = CycleCounts()
        self.others = SimpleNamespace(names=[], text='', recent=0, count=0)
        self.subscribers = 1
        self.no_subscriber = 'nobody subscribes to the commands on /x'
        self.no_joint_state = 'no joint state has come yet on /y'

    def run(self, duration, *position, **options):
        for command in self.arm.run(duration, *position, **options):
            if command is not None:
                self.counts.count(command, 1e-4)

    def verdict(self, lifecycle='active', refusal=''):
        status = torque_status('node', lifecycle, refusal, self, self.arm.now)
        self.facts = {value.key: value.value for value in status.values}
        return status.level, status.message


@pytest.fixture
def cycle():
    result = Cycle()
    result.run(0.1, Q)
    assert result.verdict() == (OK, 'compensating gravity')
    return result


@pytest.mark.parametrize(('wait', 'level'), [(5.0, OK), (3600.0, WARN)])
def test_a_trajectory_that_waits_says_when_it_begins(wait, level):
    cycle = Cycle(mode='computed_torque')
    cycle.run(0.1, Q)
    pipeline = cycle.arm.pipeline
    start = pipeline.state.time + wait
    pipeline.follow(Trajectory.from_points(NAMES, [1.0], [Q], [()], [()], [()], start=start))
    assert pipeline.begins_in == pytest.approx(wait)
    words = {OK: f'computed_torque, waiting for {wait:g} s', WARN: f'begins in {wait:g} s: is its'}
    found, said = cycle.verdict()
    assert found == level and words[level] in said
    cycle.run(0.1, Q)
    assert pipeline.begins_in == pytest.approx(wait - 0.1, abs=2e-3)


def test_a_fault_from_before_a_change_of_the_mode_is_a_warning(cycle, monkeypatch):
    pipeline = cycle.arm.pipeline
    monkeypatch.setattr(type(pipeline), 'last_fault', 'it was too fast')
    assert cycle.verdict() == (ERROR, 'it was too fast')
    cycle.arm.change()
    assert cycle.verdict() == (ERROR, 'it was too fast')
    cycle.arm.change(mode='computed_torque')
    assert cycle.verdict() == (WARN, 'before the change of the mode: it was too fast')
    monkeypatch.setattr(type(pipeline), 'fault_changes', pipeline.fault_changes + 1)
    assert cycle.verdict() == (ERROR, 'it was too fast')


def test_a_rejection_without_a_stamp_has_none():
    rejections = Rejections()
    assert rejections.facts == {'last_rejection': '', 'last_rejection_stamp': ''}
    rejections.note(ValueError('no'), 0.0)
    assert rejections.facts == {'last_rejection': 'no', 'last_rejection_stamp': ''}
    rejections.note(ValueError('no'), 12.0)
    assert rejections.facts['last_rejection_stamp'] == '12.000000000'


@pytest.mark.parametrize(
    'lifecycle, refusal, awaited, level, words',
    [
        ('inactive', 'no tip', '', ERROR, 'no tip'),
        ('inactive', '', '', OK, ''),
        ('unconfigured', '', 'a robot', WARN, 'waiting for a robot'),
        ('unconfigured', 'no tip', 'a robot', ERROR, 'no tip'),
    ],
)
def test_node_that_waits_is_a_warning_and_one_that_was_refused_an_error_with_its_reason(
    cycle, lifecycle, refusal, awaited, level, words
):
    said = f'{lifecycle}, commanding nothing' + (f': {words}' if words else '')
    for configured in (None,) if lifecycle == 'unconfigured' else (None, cycle):
        status = torque_status('node', lifecycle, refusal, configured, 0.0, awaited=awaited)
        assert (status.level, status.message) == (level, said)


def test_commands_of_others_are_an_error_their_publishers_a_warning_and_notes_hide_neither(cycle):
    def noted(lifecycle='active'):
        status = torque_status('node', lifecycle, '', cycle, cycle.arm.now, notes=['a', 'b'])
        return status.level, status.message

    assert noted() == (WARN, 'compensating gravity; a; b')
    assert noted('inactive') == (WARN, 'inactive, commanding nothing; a; b')
    cycle.subscribers = 0
    assert noted() == (WARN, f'{cycle.no_subscriber}; a; b')
    cycle.others = SimpleNamespace(names=['/other'], text='/other is there', recent=0, count=0)
    assert cycle.verdict() == (WARN, '/other is there')
    cycle.others.recent = cycle.others.count = 3
    assert noted() == (ERROR, '/other is there: the arm gets the torques of both')
    assert cycle.verdict()[0] == ERROR
    assert cycle.facts['other_commanders'] == '/other' and cycle.facts['commands_of_others'] == '3'


@pytest.mark.parametrize(
    'facts, words',
    [
        ({'contact': 'contact: 7 of 5 N m'}, 'contact: 7 of 5 N m'),
        (
            {'is_stiffness_limited': True, 'least_stiffness': 0.53},
            'stiffness limited by the rates of joint states and torques: 53% of one mode is left',
        ),
        (
            {'stiffening': '2 J: for 0.4 s'},
            'springs become stiffer with the energy that they get: 2 J: for 0.4 s',
        ),
    ],
)
def test_what_acts_on_the_arm_or_limits_its_springs_is_a_warning(cycle, monkeypatch, facts, words):
    owners = {'contact': cycle.stack.monitor}
    for name, value in facts.items():
        owner = owners.get(name, type(cycle.stack.pipeline))
        monkeypatch.setattr(owner, name, value)
    assert cycle.verdict() == (WARN, words)


def test_many_refused_states_are_a_warning_until_they_are_few(cycle):
    cycle.arm.break_model(True)
    cycle.run(0.02, Q)
    cycle.arm.break_model(False)
    cycle.run(0.02, Q)
    level, message = cycle.verdict()
    assert level == WARN and message.startswith('20 of 40 joint states refused')
    cycle.run(0.1, Q)
    assert cycle.verdict()[0] == OK


def test_process_that_stood_still_is_a_warning_once_and_less_is_only_a_number(cycle):
    cycle.counts.late(0.05)
    assert cycle.verdict()[0] == OK
    assert cycle.facts['watchdog_lateness_ms'] == '50.0'
    cycle.counts.late(0.31)
    cycle.counts.late(0.02)
    assert cycle.verdict() == (WARN, 'this process stood still for 0.31 s')
    assert cycle.facts['late_watchdogs'] == '3'
    assert cycle.facts['watchdog_lateness_ms'] == '310.0'
    assert cycle.verdict()[0] == OK


def test_soft_joint_limit_that_acts_is_a_warning_and_a_continuous_joint_may_turn_often():
    cycle = Cycle()
    cycle.run(0.1, [0.1, 57.3])
    assert cycle.verdict()[0] == OK
    for position in np.linspace(0.1, 2.1, 2000):
        cycle.run(0.001, [position, 57.3], [1.0, 0.0])
    assert cycle.verdict() == (WARN, 'beyond a position limit: shoulder')


def test_states_that_are_too_slow_name_the_rate_that_the_law_needs():
    cycle = Cycle()
    cycle.run(1.0, Q, period=0.01)
    assert cycle.verdict()[0] == OK
    cycle.run(3.0, Q, period=0.05)
    words = 'joint states come at 20 Hz: gravity compensation needs 100 Hz'
    level, message = cycle.verdict()
    assert level == WARN and message.startswith(words)
    cycle.run(1.0, Q)
    assert cycle.verdict()[0] == OK
    cycle = Cycle('computed_torque')
    cycle.run(0.1, Q)
    for gap in (0.2, 0.21):
        cycle.counts.recovered(gap, cycle.arm.now)
    level, message = cycle.verdict()
    assert level == WARN
    assert message.endswith('needs 100 Hz, kp = 100 and kd = 20 need 40 Hz')


def test_driver_that_is_too_slow_for_the_timeout_is_reported(cycle):
    cycle.counts.recovered(0.2, cycle.arm.now)
    assert cycle.verdict()[0] == OK
    cycle.counts.recovered(0.21, cycle.arm.now)
    words = (
        'joint states came 0.21 s apart; allowed: state_timeout = 0.1; gravity compensation '
        'needs 100 Hz'
    )
    assert cycle.verdict() == (WARN, words)
    cycle.arm.now += 0.2
    cycle.arm.pipeline.watchdog(cycle.arm.now)
    assert cycle.verdict() == (ERROR, f'no fresh state of shoulder, elbow ({words}): hold_gravity')
    cycle.run(6.0, Q)
    assert cycle.verdict()[0] == OK


def test_gravity_that_is_multiplied_is_a_warning_until_it_is_not():
    description = public_urdf('panda.urdf').read_text()
    settings = ControlSettings(algorithm='newton_euler', tip_link='panda_link8')
    stack = build_control_stack(settings, description)
    assert 'gravity_factor' not in model_status('node', stack, 'answering').message
    given = replace(settings, terms_gravity_factor=(0.9, 1, 1, 1, 1, 1, 0.0))
    apply_settings(stack, arm_settings(stack.arm, given))
    status = model_status('node', stack, 'answering')
    assert status.level == WARN
    assert '(panda_joint1 0.9, panda_joint7 0): where they are right' in status.message
    assert 'robodyn identify' in status.message
    apply_settings(stack, arm_settings(stack.arm, settings))
    assert 'gravity_factor' not in model_status('node', stack, 'answering').message


@pytest.mark.parametrize(
    'services, words', [('answering', 'no robot'), ('hung', 'do not answer'), ('ended', 'restart')]
)
def test_services_that_do_not_answer_are_a_warning(services, words):
    status = model_status('node', None, services)
    assert status.level == (OK if services == 'answering' else WARN)
    assert words in status.message
    assert {value.key: value.value for value in status.values} == {'services': services}


@pytest.mark.parametrize(
    'has_ended, lateness, level, message',
    [
        (False, 0.9, OK, 'watched'),
        (False, 1.5, WARN, 'the watchdog is 1.5 s late'),
        (True, 9.0, WARN, 'the watchdog has ended: restart the node'),
    ],
)
def test_watchdog_that_is_late_or_has_ended_is_a_warning(has_ended, lateness, level, message):
    watchdog = SimpleNamespace(
        has_ended=has_ended,
        takeovers=0,
        lateness=lambda now: lateness,
        priority=priority_of(os.getpid()),
    )
    status = process_status('node', watchdog, 0.0)
    facts = {value.key: value.value for value in status.values}
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    policy = os.sched_getscheduler(0)
    if policy == os.SCHED_OTHER:
        assert facts['watchdog_priority'] == f'niceness {niceness}, not real time'
    assert facts['priority'] == facts['watchdog_priority']
    assert (status.level, status.message) == (level, message)
    facts = {value.key: value.value for value in status.values}
    assert float(facts['watchdog_process_lateness_ms']) == 1e3 * lateness


def test_what_is_missing_is_logged_at_whatever_level_it_has_next():
    cycle, logger = Cycle(), get_logger('levels')
    cycle._started, cycle._last_logged_missing = -np.inf, ''
    cycle._node = SimpleNamespace(get_logger=lambda: logger)
    for level, words in ((WARN, 'waiting'), (ERROR, 'broken'), (WARN, 'waiting again')):
        ControlCycle.log_missing_inputs(cycle, DiagnosticStatus(level=level, message=words))
        assert cycle._last_logged_missing == words


def test_a_second_fault_like_the_first_is_logged_and_one_that_goes_on_is_not():
    cycle, logged = Cycle(), []
    node = SimpleNamespace(
        get_logger=lambda: SimpleNamespace(error=logged.append, warning=lambda words: None)
    )
    looking = SimpleNamespace(
        stack=cycle.stack,
        _node=node,
        _reported_changes=0,
        _reported_drops=0,
        _report=lambda: None,
        _kinds_of_wrong_velocities=dict,
    )
    for count in (1, 2):
        cycle.arm.run(0.1, Q)
        cycle.arm.pipeline.react_to_contact('stop', 'contact at a test')
        for _ in range(3):
            ControlCycle._look_for_faults(looking)
            cycle.arm.run(0.1, Q)
        assert logged == count * ['contact at a test']
