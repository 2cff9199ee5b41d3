# SPDX-License-Identifier: Apache-2.0
"""`robodyn params`, `torque`, `simulate`, `export`; help, JSON, exit codes and errors of all."""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import error_of, invoked, json_of, output_of
from robots import two_link_urdf
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.cli import robodyn
from robodyn_ros.commands.motion import FRICTION_VELOCITY
from robodyn_ros.control.feedforward_efforts import ERROR_FRACTION
from robodyn_ros.motions import table_as_csv

PUMA = 'urdf/puma560.urdf'
needs_compiler = pytest.mark.skipif(not shutil.which('cc'), reason='no C compiler')


@pytest.fixture(scope='module')
def motion(tmp_path_factory):
    arm = rd.RobotModel.from_urdf(PUMA)
    t = np.linspace(0, 1, 101)
    q, qd, qdd = (np.tile(f(t)[:, None], arm.n) for f in (np.sin, np.cos, lambda t: -np.sin(t)))
    path = tmp_path_factory.mktemp('motion') / 'motion.csv'
    names = [
        f'{name}{suffix}'
        for suffix in ('', '.velocity', '.acceleration')
        for name in arm.joint_names
    ]
    path.write_text(table_as_csv(names, t, q, qd, qdd))
    return path, rd.inverse_dynamics(arm, q, qd, qdd)


@pytest.mark.parametrize('name', robodyn.list_commands(None))
def test_help_has_examples(name):
    text = output_of(name, '--help')
    assert 'Examples:\n  robodyn ' + name in text.replace('\n    ', '\n  ')


def test_help_shows_every_summary_whole():
    assert '...' not in output_of('--help').partition('Commands:')[2]


def test_torque_turns_a_motion_into_torques(motion, tmp_path):
    path, expected = motion
    rows = list(csv.reader(output_of('torque', PUMA, path).splitlines()))
    assert rows[0] == ['time', *(f'joint{k}' for k in range(1, 7))]
    np.testing.assert_array_equal(np.array(rows[1:], dtype=float)[:, 1:], expected)

    output = tmp_path / 'torques.csv'
    said = output_of('torque', PUMA, path, '--method', 'kane', '-o', output)
    assert f'101 samples in {output}' in said
    table = np.loadtxt(output, delimiter=',', skiprows=1)
    np.testing.assert_allclose(table[:, 1:], expected, atol=1e-9 * np.abs(expected).max())

    record = json_of('torque', PUMA, path)
    np.testing.assert_array_equal(record['torque'], expected)
    assert record['units'] == ['N m'] * 6


def test_torque_says_the_largest_beside_its_limit_and_writes_json_or_csv_on_request(
    motion, tmp_path
):
    path, expected = motion
    output = tmp_path / 'torques'
    said = output_of('torque', PUMA, path, '-o', output, '--json').splitlines()
    assert said[0].split()[:3] == ['joint', 'largest', 'torque'] and len(said) == 1 + 6 + 1
    assert said[2].split() == [
        *('joint2', f'{np.abs(expected[:, 1]).max():.4g}', 'N', 'm'),
        *('180', 'N', 'm'),  # of the URDF
    ]
    record = output.read_text()
    np.testing.assert_array_equal(json.loads(record)['torque'], expected)
    assert record.count('\n') == 1
    assert output_of('torque', PUMA, path, '-o', '-') == output_of('torque', PUMA, path)


def test_help_says_the_numbers_that_are_taken():
    text = ' '.join(output_of('torque', '--help').split())
    assert f'tanh(velocity / {FRICTION_VELOCITY:g})' in text
    assert f'{ERROR_FRACTION:f}'.rstrip('0') + ' of the effort limits' in text


def test_gravity_and_friction_reach_the_torque(motion):
    path, expected = motion
    weightless = json_of('torque', PUMA, path, '--gravity', 0, 0, 0)['torque']
    arm = rd.RobotModel.from_urdf(PUMA)
    q = np.tile(np.sin(np.linspace(0, 1, 101))[:, None], arm.n)
    np.testing.assert_allclose(expected - weightless, rd.gravity_torque(arm, q), atol=1e-12)
    rubbing = two_link_urdf().replace('</joint>', '<dynamics damping="2"/></joint>')
    still_then_fast = 'time,joint1,joint2\n0,0,0\n1,1,1\n'
    path.with_name('two.csv').write_text(still_then_fast)
    both = [
        json_of('torque', '-', path.with_name('two.csv'), *more, stdin=rubbing)
        for more in ([], ['--friction'])
    ]
    np.testing.assert_allclose(
        np.subtract(both[1]['torque'], both[0]['torque']), np.full((2, 2), 2.0)
    )


def test_coulomb_friction_is_smooth_as_the_node_s_and_said_where_it_is_left_out(tmp_path):
    rubbing = two_link_urdf().replace('</joint>', '<dynamics friction="2"/></joint>')
    path = tmp_path / 'noise.csv'
    path.write_text(
        'time,joint1,joint2,joint1.velocity,joint2.velocity,'
        'joint1.acceleration,joint2.acceleration\n'
        f'0,0,0,1e-17,{FRICTION_VELOCITY},0,0\n1,0,0,1e-17,1,0,0\n'
    )
    without, given = (
        invoked('torque', '-', path, '--json', *more, stdin=rubbing)
        for more in ([], ['--friction'])
    )
    assert '--friction adds it' in without.stderr
    assert given.stderr == ''
    torques = [json.loads(result.stdout)['torque'] for result in (without, given)]
    expected = [[0.0, 2 * np.tanh(1)], [0.0, 2.0]]
    np.testing.assert_allclose(np.subtract(torques[1], torques[0]), expected, atol=1e-12)
    config = Path('config/dynamics_node.yaml').read_text()
    assert float(re.search(r'friction_velocity: ([\d.]+)', config)[1]) == FRICTION_VELOCITY


def test_params_prints_formulas_and_json():
    assert 'XX2 − YY2 − a3² (m3 + m4 + m5 + m6)' in output_of('params', PUMA)
    record = json_of('params', PUMA)
    assert record['count'] == rd.base_parameters(rd.RobotModel.from_urdf(PUMA)).count


@needs_compiler
def test_export_writes_c_that_passes_its_own_test(tmp_path):
    options = ('--name', 'puma', '--function', 'gravity_torque')
    _, source, test = json_of('export', PUMA, '-o', tmp_path, *options)['files']
    program = tmp_path / 'test'
    subprocess.run(['cc', source, test, '-lm', '-o', program], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert 'all results agree' in said


@needs_compiler
def test_export_makes_a_shared_library_that_passes_its_own_test(tmp_path):
    options = ('--shared', '--name', 'puma', '-o', tmp_path)
    library, source, header = json_of('export', PUMA, *options)['files']
    assert Path(library).stat().st_size > 1000
    assert (Path(source).name, Path(header).name) == ('puma_model.c', 'robodyn_model.h')
    assert f'model_library: {library}' in output_of('export', PUMA, *options)


def test_export_writes_the_terms_that_matter(tmp_path):
    options = ('--simplified', '0.02', '--function', 'gravity_torque')
    files = json_of('export', PUMA, '-o', tmp_path, *options)['files']
    header, source, _ = (Path(file).read_text() for file in files)
    assert 'within 2.00% of its peak' in header
    assert 'arm_gravity_torque' in source
    assert 'arm_mass_matrix' not in source


@pytest.mark.longer
def test_simulated_arm_follows_and_writes_what_it_did(tmp_path):
    pytest.importorskip('mujoco')
    path = tmp_path / 'motion.csv'
    tracked = json_of('simulate', PUMA, '-o', path)
    assert max(each['largest_error'] for each in tracked['joints']) < 1e-3
    # What it writes is a motion; and gravity compensation alone does not follow it.
    held = json_of('simulate', PUMA, '--motion', path, '--law', 'gravity_compensation')
    assert max(each['largest_error'] for each in held['joints']) > 0.5
    assert held['duration'] == pytest.approx(tracked['duration'])
    assert json_of('torque', PUMA, path)['derived'] == 'accelerations'
    # Its text on standard output leaves what it says for standard error.
    answer = invoked('simulate', PUMA, '-o', '-')
    assert answer.stdout == path.read_text()
    assert 'largest error' in answer.stderr and 'joint6' in answer.stderr


@pytest.mark.longer
def test_simulation_holds_what_is_locked_and_moves_a_mimic_joint(tmp_path):
    pytest.importorskip('mujoco')
    body = {'mass': 1, 'center': (0.2, 0, 0), 'inertia': (0.01, 0.01, 0.01)}
    turn = {'xyz': (0.3, 0, 0), 'axis': (0, 1, 0)}
    path = tmp_path / 'arm.urdf'
    path.write_text(
        robot(
            link('base'),
            *(link(name, **body) for name in ('arm', 'hand', 'tip')),
            joint('a', 'base', 'arm', **turn),
            joint('b', 'arm', 'hand', **turn, more='<mimic joint="a"/>'),
            joint('finger', 'hand', 'tip', **turn),
        )
    )
    given = (path, '--tip', 'hand', '--mimic', 'independent', '--lock')
    out, bent = (json_of('simulate', *given, f'finger={angle}')['joints'] for angle in (0.0, 1.5))
    assert [each['name'] for each in out] == ['a', 'b']
    assert max(each['largest_error'] for each in out + bent) < 1e-3
    # A finger that is bent reaches less far: less torque.
    assert bent[1]['largest_torque'] < 0.9 * out[1]['largest_torque']


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (('dh', 'nowhere.urdf'), "no such file: 'nowhere.urdf'"),
        (('check', 'a.urdf'), 'no such file'),
        (('torque', PUMA, 'a.csv'), 'no such file'),
        (('torque', PUMA, 'a.mcap'), 'no such file'),
        (('torque', PUMA, PUMA), "column 'time'"),
        (('params', PUMA, '--tolerance', '2'), 'between 0 and 1'),
        (('export', PUMA, '--name', 'No Name', '-o', 'unwritten'), 'C identifier'),
        (('export', PUMA, '--function', 'magic', '-o', 'unwritten'), 'gravity_torque'),
        (('export', PUMA, '--shared', '--simplified', '0.1', '-o', 'unwritten'), '--shared'),
        # What cannot be written is said before the work: the URDF is none.
        (('report', 'nowhere.urdf', '-o', 'no/such/folder/report.html'), 'no such folder'),
        (('simulate', 'nowhere.urdf', '-o', 'no/such/folder/x'), 'no such folder'),
        (('torque', 'nowhere.urdf', 'motion.csv', '-o', 'no/such/folder/x'), 'no such folder'),
        (('dh', PUMA, '--tip', 'tol'), "--tip: 'tol'; allowed: one of 'base'"),
        (('dh', PUMA, '--base', 'tol'), "--base: 'tol'"),
        (('dh', PUMA, '--lock', 'tol=1'), "--lock: 'tol'"),
        (('simulate', PUMA, '--time-step', '-1'), '--time-step'),
    ],
)
def test_errors_are_one_line_that_names_the_fault(arguments, named):
    said = error_of(*arguments)
    assert said.startswith('Error: ')
    assert said.count('\n') == 1
    assert named in said


PAGES = (
    ('report', PUMA, '-o', 'page.html'),
    ('identify', PUMA, PUMA, '-o', 'found'),
    ('effort', PUMA, PUMA, '-o', 'page.html'),
)
PLOTS = ('excite', PUMA, '-o', 'motion.csv'), ('retime', PUMA, PUMA, '--plot', 'x.png'), ('demo',)


@pytest.mark.parametrize(
    ('missing', 'commands'), [('matplotlib', (*PAGES, *PLOTS)), ('jinja2', PAGES)]
)
def test_a_command_that_draws_says_before_the_work_what_is_missing(
    missing, commands, monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, missing, None)
    puma = Path(PUMA).resolve()
    monkeypatch.chdir(tmp_path)
    for words in commands:
        words = [puma if each == PUMA else each for each in words]
        assert "pip install 'robodyn-ros[report]'" in error_of(*words)
    assert not list(tmp_path.iterdir())


@pytest.mark.longer
def test_help_of_every_command_imports_nothing_that_draws():
    code = (
        'import sys\n'
        'from click.testing import CliRunner\n'
        'from robodyn_ros.cli import robodyn\n'
        "assert CliRunner().invoke(robodyn, ['--help']).exit_code == 0\n"
        "assert 'robodyn_ros.commands.report' in sys.modules\n"
        "found = {'matplotlib', 'jinja2', 'markupsafe'} & set(sys.modules)\n"
        'sys.exit(str(found) if found else 0)'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_folder_is_no_file_to_write():
    for command in (('report', PUMA), ('torque', PUMA, 'motion.csv'), ('simulate', PUMA)):
        assert 'is a directory' in error_of(*command, '-o', '.')


@pytest.mark.slow
def test_every_command_but_the_demonstration_works_without_ros(motion, tmp_path):
    path, _ = motion
    code = f"""
import sys
class NoRos:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('rclpy', 'robodyn_interfaces') or name.endswith('_msgs'):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoRos())
from click.testing import CliRunner
from robodyn_ros.cli import robodyn
def code(*words):
    result = CliRunner().invoke(robodyn, words)
    return result.exit_code, result.output
for words in (['dh'], ['check'], ['params'], ['torque', {str(path)!r}],
              ['export', '-o', {str(tmp_path)!r}]):
    assert code(words[0], {PUMA!r}, *words[1:])[0] == 0, words
status, output = code('demo')
assert status == 2 and 'ROS 2 is needed' in output, output
assert not any(name.split('.')[0] == 'rclpy' for name in sys.modules)
"""
    subprocess.run([sys.executable, '-c', code], check=True)


def test_mimic_joint_on_the_chain_names_the_option(tmp_path):
    path = tmp_path / 'arm.urdf'
    text = two_link_urdf().replace('<axis', '<mimic joint="joint2"/><axis', 1)
    path.write_text(text)
    error = error_of('check', path)
    assert 'unless --mimic independent' in error
    assert "mimic='" not in error


@pytest.mark.parametrize('name', ['check', 'dh', 'params', 'structure', 'ratios', 'torque'])
def test_names_in_a_urdf_command_no_terminal(name, tmp_path):
    hostile = 'a\u009b31m\u202eb\u2028\x7f'
    path, motion = tmp_path / 'arm.urdf', tmp_path / 'motion.csv'
    names = re.compile('"(robot|two_link|base|link1|link2|joint1|joint2)"')
    path.write_text(names.sub(f'"{hostile}\\1"', two_link_urdf()))
    motion.write_text('0,0,0\n1,0,0\n')
    result = invoked(name, path, *[motion][: name == 'torque'])
    shown = result.stdout + result.stderr
    assert shown and result.exit_code < 2
    assert not [x for x in shown if not x.isprintable() and x != '\n']


def test_an_arm_without_mass_is_said_whatever_the_command(tmp_path, motion):
    path = tmp_path / 'arm.urdf'
    path.write_text(re.sub(r'<inertial>.*?</inertial>', '', Path(PUMA).read_text(), flags=re.S))
    result = invoked('torque', path, motion[0])
    assert result.exit_code == 0
    assert 'every torque is 0' in result.stderr


@pytest.mark.slow
def test_simulation_says_how_long_an_effort_limit_was_reached(tmp_path):
    pytest.importorskip('mujoco')
    path, fast = tmp_path / 'arm.urdf', tmp_path / 'fast.csv'
    path.write_text(Path(PUMA).read_text().replace('effort="100"', 'effort="9"'))
    arm = rd.RobotModel.from_urdf(path)
    t = np.linspace(0, 1, 101)
    fast.write_text(
        table_as_csv(arm.joint_names, t, np.outer(0.5 - 0.5 * np.cos(6 * t), [1] + [0] * 5))
    )
    limited = json_of('simulate', path, '--motion', fast)['joints'][0]
    assert limited['largest_torque'] == 9.0
    assert 0 < limited['time_at_effort_limit'] < 1
    said = output_of('simulate', path, '--motion', fast).splitlines()
    assert said[1].endswith('at its effort limit')
    assert said[2].endswith(f'{limited["time_at_effort_limit"]:.0%} of the time')
    free = json_of('simulate', path, '--motion', fast, '--ignore-effort-limits')
    assert free['joints'][0]['largest_torque'] > 9.0


def test_node_goes_on_as_the_node_with_its_own_arguments(monkeypatch):
    started = []
    monkeypatch.setattr('importlib.util.find_spec', lambda name: name)
    monkeypatch.setattr('os.execv', lambda path, arguments: started.append((path, arguments)))
    for words, module, rest in (
        ((), 'dynamics.dynamics_node', []),
        (('--ros-args', '-p', 'kp:=[1.0]'), 'dynamics.dynamics_node', None),
        (('dynamics_node', '--help'), 'dynamics.dynamics_node', ['--help']),
        (('simulator_node', '-r', 'a:=b'), 'simulator_node', ['-r', 'a:=b']),
    ):
        output_of('node', *words)
        expected = list(words) if rest is None else rest
        path, arguments = started.pop()
        assert path == sys.executable
        assert arguments == [sys.executable, '-m', f'robodyn_ros.ros.{module}', *expected]


def test_node_without_ros_says_what_is_missing(monkeypatch):
    monkeypatch.setattr('importlib.util.find_spec', lambda name: None)
    result = invoked('node')
    assert result.exit_code == 2
    assert 'rclpy is not there' in result.output and 'make setup' in result.output


def test_home_folder_is_found_where_the_shell_leaves_it(motion, tmp_path, monkeypatch):
    shutil.copy(PUMA, tmp_path / 'arm.urdf')
    shutil.copy(motion[0], tmp_path / 'motion.csv')
    monkeypatch.setenv('HOME', str(tmp_path))
    output_of('torque', '~/arm.urdf', '~/motion.csv', '--output=~/torque.csv')
    assert (tmp_path / 'torque.csv').is_file()
