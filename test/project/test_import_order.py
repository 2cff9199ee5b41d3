# SPDX-License-Identifier: Apache-2.0
"""A line imports only the rooms before its own: docs/architecture.md, held by setup.cfg."""

import ast
import re
from pathlib import Path

import pytest

grimp = pytest.importorskip('grimp', reason='needs import-linter, of environment/test.txt')

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ROS = re.compile(r'rclpy|rosidl\w*|ament\w*|launch\w*|\w+_(msgs|srvs|interfaces)')
# What is above reaches down into ROS here and nowhere else, and inside functions only: the other
# commands must start where ROS is missing (test_core_without_ros.py).
COMMANDS_THAT_START_ROS = {
    'robodyn_ros.commands.demonstration',
    'robodyn_ros.commands.running_node',
    'robodyn_ros.commands.softness',
}


@pytest.fixture(scope='module')
def graph():
    """Every import of the package, those inside functions and under TYPE_CHECKING too."""
    return grimp.build_graph('robodyn_ros', include_external_packages=True, cache_dir=None)


def test_rooms_import_in_order_without_circles_and_formulations_stay_apart(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename='setup.cfg', no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_no_module_that_the_package_itself_imports_imports_it_back(graph):
    for importer in graph.find_modules_that_directly_import('robodyn_ros'):
        assert graph.find_shortest_chain('robodyn_ros', importer) is None, importer


def test_only_the_folder_ros_imports_ros(graph):
    outside = {
        (importer, imported)
        for imported in graph.modules
        if ROS.fullmatch(imported)
        for importer in graph.find_modules_that_directly_import(imported)
        if not importer.startswith('robodyn_ros.ros.')
    }
    assert outside == set()
    assert graph.find_modules_that_directly_import('rclpy') != set()


def test_only_commands_that_start_nodes_need_ros(graph):
    inside = {'robodyn_ros.ros', *graph.find_descendants('robodyn_ros.ros')}
    above = {one for name in inside for one in graph.find_modules_that_directly_import(name)}
    assert above - inside == COMMANDS_THAT_START_ROS


def test_only_what_draws_is_imported_for_type_checkers_only():
    for path in (ROOT / 'robodyn_ros').rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.If) and 'TYPE_CHECKING' in ast.unparse(node.test):
                imports = [each for each in node.body if isinstance(each, ast.ImportFrom)]
                modules = {str(each.module).partition('.')[0] for each in imports}
                assert modules <= {'matplotlib', 'markupsafe'}, path
