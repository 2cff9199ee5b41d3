# SPDX-License-Identifier: Apache-2.0
"""Robots by their names in the package robot_descriptions; here a package that stands for it."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.description.chain import Chain

MODULES = {
    '__init__': 'open("imported", "w").close()',
    'two_link_description': 'URDF_PATH = {urdf!r}',
    'macro_description': 'XACRO_PATH = "arm.urdf.xacro"',
    'mujoco_description': 'MJCF_PATH = "arm.xml"',
    'offline_description': 'raise OSError("git: could not resolve host")',
    '_xacro': 'def get_urdf_path(module):\n    return {urdf!r}',
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package of that name before any other; return the folder that is worked in."""
    urdf = tmp_path / 'cache' / 'two_link.urdf'
    urdf.parent.mkdir()
    urdf.write_text(two_link_urdf())
    folder = tmp_path / 'site' / 'robot_descriptions'
    folder.mkdir(parents=True)
    for name, text in MODULES.items():
        (folder / f'{name}.py').write_text(text.format(urdf=str(urdf)))
    for name in [each for each in sys.modules if each.split('.')[0] == 'robot_descriptions']:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder.parent)
    work = tmp_path / 'work'
    work.mkdir()
    monkeypatch.chdir(work)
    yield work
    for name in [each for each in sys.modules if each.split('.')[0] == 'robot_descriptions']:
        monkeypatch.delitem(sys.modules, name)


def test_a_name_is_a_robot_of_the_package(package):
    arm = rd.RobotModel.from_urdf('two_link_description', tip_link='link1')
    assert arm == rd.RobotModel.from_urdf(two_link_urdf(), tip_link='link1')
    assert (package / 'imported').exists()


def test_macros_are_expanded_by_the_package(package):
    assert rd.RobotModel.from_urdf('macro_description').n == 2


def test_a_file_of_that_name_comes_first(package):
    (package / 'two_link_description').write_text(two_link_urdf().replace('"link2"', '"other"'))
    assert rd.RobotModel.from_urdf('two_link_description').tip_link == 'other'


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('nobody_description', "robot of the package robot_descriptions: 'nobody_description'"),
        ('mujoco_description', 'this has no URDF'),
        ('offline_description', 'one that it can fetch .*could not resolve host'),
    ],
)
def test_what_the_package_cannot_give_is_refused_in_words(package, name, words):
    with pytest.raises(rd.UnreadableSource, match=words):
        rd.RobotModel.from_urdf(name)


def test_where_the_package_is_missing_a_name_of_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(rd.UnreadableSource, match='pip install robot_descriptions'):
        rd.RobotModel.from_urdf('panda_description')
    with pytest.raises(rd.UnreadableSource) as caught:
        rd.RobotModel.from_urdf('panda.urdf')
    assert 'robot_descriptions' not in str(caught.value)


@pytest.mark.parametrize(
    'source',
    [
        'two_link',
        'Two_link_description',
        'two_link_description.urdf',
        '../robot_descriptions/two_link_description',
        'os.two_link_description',
        '_description',
        'two-link_description',
        'two_link_description\n',
    ],
)
def test_nothing_else_imports_anything(package, source):
    with pytest.raises(rd.UnreadableSource, match='no such file'):
        rd.RobotModel.from_urdf(source)
    assert not (package / 'imported').exists()


def test_a_path_is_a_path_as_commands_and_nodes_give_it(package):
    for read in (rd.RobotModel.from_urdf, Chain.from_urdf):
        with pytest.raises(rd.UnreadableSource, match='no such file'):
            read(Path('two_link_description'))
    result = subprocess.run(
        [sys.executable, '-m', 'robodyn_ros.cli', 'dh', 'two_link_description'],
        capture_output=True,
        text=True,
        cwd=package,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, sys.path))},
    )
    assert result.returncode == 2
    assert 'two_link_description' in result.stderr
    assert not (package / 'imported').exists()


def test_text_of_a_topic_never_reaches_the_package(package):
    with pytest.raises(rd.MalformedUrdf, match='no path is opened here'):
        rd.RobotModel.from_urdf_text('two_link_description')
    assert not (package / 'imported').exists()


def test_without_the_package_the_name_is_a_file_that_is_not_there(monkeypatch):
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(rd.UnreadableSource, match="no such file: 'panda_description'"):
        rd.RobotModel.from_urdf('panda_description')


def test_the_real_package_has_panda():
    pytest.importorskip('robot_descriptions')
    try:
        arm = rd.RobotModel.from_urdf('panda_description', tip_link='panda_link8')
    except rd.UnreadableSource as error:
        pytest.skip(f'offline: {error}')
    assert arm.joint_names == tuple(f'panda_joint{k}' for k in range(1, 8))
