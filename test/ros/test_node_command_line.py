# SPDX-License-Identifier: Apache-2.0
"""A node's executable says what it is, and what it does not understand."""

import os
from itertools import product

import domains
import pytest

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from robodyn_ros.control.settings import PARAMETERS  # noqa: E402
from robodyn_ros.ros import simulator_node  # noqa: E402
from robodyn_ros.ros.command_line import (  # noqa: E402
    WRONG_USE,
    exit_code,
    ignored_files,
    lost_numbers,
)
from robodyn_ros.ros.dynamics import dynamics_node  # noqa: E402
from robodyn_ros.ros.feedforward import feedforward_node  # noqa: E402

pytestmark = pytest.mark.ros


def code(*words):
    return exit_code(words, 'dynamics_node', dynamics_node.ABOUT, PARAMETERS)


def test_help_says_what_it_is_and_names_every_parameter(capsys):
    for node, parameters, flag, about in (
        (dynamics_node, PARAMETERS, '-h', 'joint states into torques'),
        (dynamics_node, PARAMETERS, '--help', '--ros-args -p urdf_file:='),
        (simulator_node, simulator_node.PARAMETERS, '--help', 'MuJoCo'),
        (feedforward_node, feedforward_node.PARAMETERS, '--help', 'effort'),
    ):
        assert node.main([flag]) == 0
        text = capsys.readouterr().out
        assert about in text
        for parameter in parameters:
            assert f'\n  {parameter.name}: {parameter.kind}' in text, parameter.name
            assert parameter.description.split('. ')[0].split()[0] in text, parameter.name
        assert max(map(len, text.splitlines())) < 100, node


def test_options_of_ros_without_ros_args_are_refused_with_the_line_to_write(capsys):
    for words in (
        ('-p', 'kp:=100.0'),
        ('--params-file', 'a.yaml'),
        ('-r', 'joint_states:=arm/joint_states'),
        ('kp:=100.0',),
    ):
        assert code(*words) == WRONG_USE, words
        error = capsys.readouterr().err
        assert words[0] in error and f'--ros-args {" ".join(words)}' in error, words


def test_what_is_not_understood_is_named(capfd):
    for words, named in (
        (['--urdf', 'a.urdf'], '--urdf'),
        (['panda.urdf'], 'panda.urdf'),
        (['--ros-args', '-p', 'kp=100'], 'kp=100'),
        (['--ros-args', '-p'], '-p'),
        (['--ros-args', '--params-file', '/no/such/file'], '/no/such/file'),
        (['--ros-args', '-p', 'kp:=[1,"a"]'], 'same type'),
        (['--ros-args', '--help'], '--help'),
    ):
        assert code(*words) == WRONG_USE, words
        error = capfd.readouterr().err
        assert named in error.splitlines()[-1] and 'Traceback' not in error, words


def test_parameter_file_that_is_not_regular_is_refused_unopened(tmp_path, capsys):
    for make in (os.mkdir, os.mkfifo):
        path = tmp_path / f'{make.__name__}.yaml'
        make(path)
        assert code('--ros-args', '--params-file', str(path)) == WRONG_USE
        assert f"parameter file '{path}' is not a regular file" in capsys.readouterr().err


def test_what_ros_understands_runs(capsys):
    for words in (
        [],
        ['--ros-args'],
        ['--ros-args', '-p', 'kp:=[1.0]', '-r', '__ns:=/a', '--log-level', 'info'],
        ['--ros-args', '-p', 'ramp_time:=1', '--'],
    ):
        assert code(*words) is None, words
        assert capsys.readouterr() == ('', ''), words


# --- numbers that ROS would ignore -------------------------------------------------------------


def write(path, text, node='/**'):
    path.write_text(f'{node}:\n  ros__parameters:\n    {text}\n')
    return ['--params-file', str(path)]


@pytest.fixture(scope='module')
def kept():
    """Return a function that gives the value that ROS keeps of a parameter."""
    context, domain = rclpy.Context(), domains.claim()
    rclpy.init(context=context, domain_id=domain)

    def value(words, name):
        node = rclpy.create_node('dynamics_node', context=context, cli_args=words)
        found = node._parameter_overrides[name].value
        node.destroy_node()
        return found

    yield value
    rclpy.shutdown(context=context)
    domains.release(domain)


CASES = [
    ('1', '0.5', True),
    ('0.5', '1', False),
    ('1', '2', False),
    ('1.0', '0.5', False),
    ('[100]', '[50.0]', True),
    ('[100.0]', '[50]', False),
    ('100.0', '[50.0]', True),
    ('[100.0]', '50.0', False),
    ('0x10', '1e3', True),
]


def test_number_that_ros_would_ignore_is_refused(tmp_path, kept):
    for first, last, is_lost in CASES:
        words = ['--ros-args', *write(tmp_path / 'a.yaml', f'kp: {first}'), '-p', f'kp:={last}']
        problems = lost_numbers(words, PARAMETERS)
        assert len(problems) == is_lost, words
        if is_lost:
            assert f'as {first}, then as {last}' in problems[0] and 'parameter kp' in problems[0]
            assert code(*words) == WRONG_USE, words
        # What rcl does, not what we believe that it does:
        value = kept(words, 'kp')
        wanted = [float(int(w, 0) if 'x' in w else w) for w in last.strip('[]').split(',')]
        given = [float(v) for v in (value if hasattr(value, '__len__') else [value])]
        is_list = hasattr(value, '__len__')
        assert ((given, is_list) == (wanted, last.startswith('['))) == (not is_lost), words


def test_files_that_lose_a_number_are_distinguished_from_those_that_do_not(tmp_path):
    def lost(*words):
        return lost_numbers(['--ros-args', *words], PARAMETERS)

    (problem,) = lost(
        *write(tmp_path / 'a.yaml', 'effort_limit_scale: 1'),
        *write(tmp_path / 'b.yaml', 'effort_limit_scale: 0.1'),
    )
    assert 'effort_limit_scale is given as 1, then as 0.1' in problem
    # For different nodes, or of other parameters.
    others = write(tmp_path / 'a.yaml', 'kp: 1', node='other_node')
    others += write(tmp_path / 'b.yaml', 'rate: 1')
    others += ['-p', 'rate:=0.5', '-p', 'kp:=0.5', '--', '-p', 'kp:=1']
    assert lost(*others) == []
    keys = ''.join(f'{" " * i}n{i}:\n' for i in range(900))
    deep = f'{keys}{" " * 900}ros__parameters: {{x: 1}}\n'
    for content in ('', '[', 'a: b', '/**: 5', '/**: {ros__parameters: 5}', '\x00', deep):
        (tmp_path / 'a.yaml').write_text(content)
        words = ['--params-file', str(tmp_path / 'a.yaml')]
        assert lost(*words) == [], content[:99]
    assert ignored_files(['--ros-args', *words], '/dynamics_node') == []


KEYS = (
    'dynamics_node',
    '/dynamics_node',
    '/**',
    '/*',
    '/**/dynamics_node',
    '/*/dynamics_node',
    'ns/dynamics_node',
    '/ns/dynamics_node',
    'dynamics',
    'my_node',
    '/ns/*',
)


@pytest.fixture
def context():
    made = []

    def make(*words):
        made.append(rclpy.Context())
        rclpy.init(context=made[-1], args=list(words), domain_id=domains.claim())
        return made[-1]

    yield make
    for each in made:
        domains.release(each.get_domain_id())
        rclpy.shutdown(context=each)


def test_file_is_ignored_where_rcl_takes_nothing_of_it(tmp_path, context):
    every = {f'p{i}' for i in range(len(KEYS))}
    for case in product(['', '/ns', '/a/ns'], [False, True]):
        namespace, is_nested = case
        words = ['--ros-args']
        for i, key in enumerate(KEYS):
            path = tmp_path / f'{i}.yaml'
            text = f'{key}:\n  ros__parameters: {{p{i}: 1}}\n'
            if is_nested:
                text = f'ns:\n  "{key.strip("/")}":\n    ros__parameters: {{p{i}: 1}}\n'
            path.write_text(text)
            words += ['--params-file', str(path)]
        node = rclpy.create_node(
            'dynamics_node', namespace=namespace, context=context(*words), enable_rosout=False
        )
        taken = every & set(node._parameter_overrides)
        named = ignored_files(words, node.get_fully_qualified_name())
        node.destroy_node()
        ignored = {p for p in every if any(f'/{p[1:]}.yaml' in line for line in named)}
        assert taken | ignored == every and not taken & ignored, case


def test_file_with_one_key_for_this_node_among_others_is_none_of_the_ignored(tmp_path):
    path = tmp_path / 'all.yaml'
    path.write_text('a: {ros__parameters: {x: 1}}\ndynamics_node: {ros__parameters: {x: 1}}\n')
    assert ignored_files(['--ros-args', '--params-file', str(path)], '/dynamics_node') == []
    assert ignored_files(['--ros-args', '--params-file', str(path)], '/feedforward') == [
        f"parameter file '{path}' is ignored: it has parameters for a, dynamics_node, and this "
        'node is /feedforward: write feedforward or /** there'
    ]
    assert ignored_files(['--ros-args', '--params-file', '/no/such.yaml'], '/feedforward') == []
