# SPDX-License-Identifier: Apache-2.0
"""`robodyn set`, `robodyn send` and `robodyn status` beside a node, each a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from command_line import error_of
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from node_in_process import NodeInProcess
from node_rig import ARM, UNHURRIED

from robodyn_interfaces.srv import GetPayload
from robodyn_ros.motions import table_as_csv
from robodyn_ros.ros import node_client

pytestmark = [pytest.mark.ros, pytest.mark.longer]

POSITION = [0.0, -0.4, 0.0, -1.9, 0.0, 1.6, 0.7]


class Terminal(NodeInProcess):
    """A node whose arm stands still, and a terminal beside it."""

    patience = 150.0  # a command starts Python, and waits for discovery and diagnostics [s]

    def arm(self, panda_urdf, **parameters):
        """Start the node, with an arm that stands where it is."""
        self.start(
            urdf_file=panda_urdf,
            base_link='panda_link0',
            tip_link='panda_link8',
            state_timeout=UNHURRIED,
            **parameters,
        )
        self.bring_up(POSITION)

    def type(self, *words, code=0):
        """Return what a command prints, while the arm goes on; and on standard error."""
        process = subprocess.Popen(
            [sys.executable, '-m', 'robodyn_ros.cli', *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stream(POSITION, lambda: process.poll() is not None)
        said, wrong = process.communicate()
        assert process.returncode == code, (said, wrong)
        return said + wrong

    def status(self, *words):
        """Return what status prints; its code is 1, as no watchdog runs in this process."""
        return self.type('status', *words, code=1)

    @property
    def mode(self):
        """The mode of the node's last cycle."""
        return self.states[-1].mode


@pytest.fixture
def parameters():
    return {}


@pytest.fixture
def terminal(tmp_path, panda_urdf, parameters):
    made = Terminal(tmp_path / 'node.log')
    made.arm(panda_urdf, **parameters)
    yield made
    made.close()


def test_parameters_are_set_together_or_none_of_them(terminal):
    said = terminal.type('set', 'mode=computed_torque', 'kp=[100, 100.5, 90, 80, 70, 60, 50]')
    assert said == 'dynamics_node: mode = computed_torque, kp = [100, 100.5, 90, 80, 70, 60, 50]\n'
    terminal.stream(POSITION, lambda: terminal.mode == 'computed_torque')
    wrong = terminal.type('set', 'mode=gravity_compensation', 'effort_limit_scale=2.5', code=2)
    assert 'dynamics_node refused: ' in wrong and 'effort_limit_scale' in wrong
    assert 'Did not' not in wrong and 'mode' not in wrong.partition('refused')[2]
    assert 'effort_limit_scal;' in terminal.type('set', 'effort_limit_scal=0.5', code=2) + ';'
    terminal.stream(POSITION, terminal.commanded_since(len(terminal.commands)))
    assert terminal.mode == 'computed_torque'


def test_payload_and_gravity_are_set_and_impossible_ones_refused_in_the_nodes_words(terminal):
    terminal.type('set', '--payload', '1.5', '--center', '0', '0', '0.05')
    (payload,) = terminal.call(GetPayload, 'get_payload', GetPayload.Request()).payloads
    assert (payload.mass, payload.center_of_mass.z) == (1.5, 0.05)
    assert payload.link == 'panda_link8'
    assert '9.81' in terminal.type('set', '--gravity', '9.81', '0', '0')
    said = terminal.status()
    assert 'payload: 1.5' in said and 'gravity: (9.81, 0, 0)' in said
    for words in (('--payload', '1500'), ('--gravity', '99', '0', '0')):
        wrong = terminal.type('set', *words, code=2)
        assert 'dynamics_node refused: ' in wrong and words[1] in wrong


def test_a_trajectory_is_sent_from_words_and_from_files(terminal, tmp_path):
    refused = terminal.type('send', 'panda_joint1=0.1', code=2)
    assert 'dynamics_node refused: ' in refused and 'gravity_compensation' in refused
    terminal.type('set', 'mode=feedforward')
    assert 'feedforward, ' in terminal.type('send', 'panda_joint1=0.1', '--within', '30')
    reference = terminal.states[-1].reference_position
    assert 0.0 < reference[0] < 0.1 and reference[1:] == pytest.approx(POSITION[1:], abs=1e-9)
    assert terminal.type('send', '--stop')
    terminal.stream(POSITION, lambda: not any(terminal.states[-1].reference_velocity))
    motion = tmp_path / 'motion.csv'
    time = np.linspace(0.0, 30.0, 4000)
    rows = np.array(POSITION) + np.outer(0.1 * np.sin(0.05 * time) ** 2, np.ones(7))
    motion.write_text(table_as_csv(ARM, time, rows), encoding='utf-8')
    path = tmp_path / 'motion.yaml'
    point = {
        'positions': [0.1, *POSITION[1:]], 'time_from_start': {'sec': 20, 'nanosec': 0}
    }  # fmt: skip
    path.write_text(json.dumps({'joint_names': ARM, 'points': [point]}), encoding='utf-8')
    for file in (motion, path):
        assert 'feedforward, ' in terminal.type('send', str(file))
    for words in (('panda_joint1=2.5', '--within', '0.1'), ('no_joint=0.1',)):
        refused = terminal.type('send', *words, code=2)
        assert 'dynamics_node refused: ' in refused and words[0].partition('=')[0] in refused


@pytest.mark.parametrize('parameters', [{'mode': 'cartesian_impedance'}])
def test_a_pose_is_sent_with_the_present_orientation_and_refused_beyond_reach(terminal):
    said = terminal.type('send', '--pose', '0', '0', '0.02', '--relative')
    assert said.startswith('dynamics_node: ')
    there = json.loads(terminal.status('--json'))
    assert there['reports'][0]['facts']['targets_refused'] == '0'
    refused = terminal.type('send', '--pose', '100', '0', '0', code=2)
    assert 'dynamics_node refused: target_pose: ' in refused and '100' in refused


def test_status_shows_diagnostics_joints_and_parameters_of_a_name_or_a_group(terminal):
    said = terminal.status('effort_limit_scale', 'impedance', 'effort_limits')
    assert said.startswith('OK    torque: compensating gravity\n')
    assert 'mode: gravity_compensation' in said and 'effort_limit_scale: 1.0' in said
    assert 'impedance.tip_speed: 0.25' in said and 'effort_limits: None' in said
    rows = {line.split()[0]: line.split()[1:] for line in said.splitlines()[-7:]}
    assert list(rows) == ARM
    state = terminal.states[-1]
    assert [float(row[0]) for row in rows.values()] == pytest.approx(POSITION)
    assert [float(row[1]) for row in rows.values()] == pytest.approx(
        state.total, rel=1e-3, abs=1e-3
    )
    assert 'parameter' in terminal.type('status', 'no_such_thing', code=2)


def test_a_node_is_disabled_and_enabled(terminal):
    assert terminal.type('set', '--enable', 'false') == 'dynamics_node: disabled\n'
    assert terminal.status().startswith('WARN  torque: disabled')
    assert terminal.type('set', '--enable', 'true') == 'dynamics_node: enabled\n'
    assert terminal.status().startswith('OK    torque: ')


def test_what_the_node_follows_is_recorded_until_the_time_is_over(terminal, tmp_path):
    terminal.type('set', 'mode=feedforward')
    terminal.type('send', 'panda_joint1=0.1', '--within', '30')
    path = tmp_path / 'session.csv'
    said = terminal.type('record', '-o', str(path), '--duration', '1')
    table = np.genfromtxt(path, delimiter=',', names=True, deletechars='')
    assert f'{len(table)} samples' in said and len(table) > 20
    assert table['time'][0] == 0.0 and 1.0 <= table['time'][-1] < 2.0
    state = terminal.states[-1]
    for j, name in enumerate(ARM):
        np.testing.assert_allclose(table[name], POSITION[j])
        np.testing.assert_allclose(table[f'{name}.torque'], state.total[j], atol=0.5)
    assert (np.diff(table['panda_joint1.reference']) > 0.0).all()
    assert table['panda_joint1.reference'][-1] < 0.1


def test_a_node_that_is_not_there_is_named_with_those_that_are(terminal):
    for words in (['status'], ['set', 'mode=feedforward']):
        wrong = terminal.type(*words, '--node', 'arm/dynamics_node', '--timeout', '10', code=2)
        assert 'node /arm/dynamics_node: not there' in wrong and 'one of /dynamics_node' in wrong


def test_words_that_make_no_request_are_refused_before_any_node_is_looked_for():
    assert 'one of them' in error_of('set')
    assert 'one of them' in error_of('set', 'mode=x', '--payload', '1')
    assert "'mode' is not NAME=VALUE" in error_of('set', 'mode')
    assert 'one of them' in error_of('send', 'a=1', '--stop')
    assert '--node' in error_of('status', '--node', 'a b')


def test_what_is_no_dynamics_nodes_answer_is_refused_in_words():
    client = node_client.NodeClient('other', 1.0)
    client._on_diagnostics(
        DiagnosticArray(status=[DiagnosticStatus(level=b'\x09', name='other: torque')])
    )
    assert [each.level for each in client._reports] == ['STALE']
    with pytest.raises(node_client.Refusal, match="no 'model', as those of a dynamics_node"):
        node_client._named('model', client._reports)


@pytest.mark.parametrize('text', ['9' * 500, f'[1, -{2**64}]', '[]', '[1, a]'])
def test_a_value_that_no_parameter_has_is_text(text):
    assert node_client._parameter('name', text).value.string_value == text
