# SPDX-License-Identifier: Apache-2.0
"""Check that manifests, build files and headers of files say what the packages hold."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

ROOT = Path(__file__).resolve().parent.parent
INTERFACES = ROOT / 'robodyn_interfaces'
CONTROLLERS = ROOT / 'robodyn_controllers'
# How rosdep and PyPI call what Python imports under another name.
ROSDEP_KEYS = {
    'click': 'python3-click',
    'jinja2': 'python3-jinja2',
    'lxml': 'python3-lxml',
    'markupsafe': 'python3-jinja2',  # which is built on it
    'matplotlib': 'python3-matplotlib',
    'numpy': 'python3-numpy',
    'rich': 'python3-rich',
    'scipy': 'python3-scipy',
    'yaml': 'python3-yaml',
}
# Imported where they are needed, with a plain error where they are missing: extras of setup.py.
# Those that rosdep knows are conditional in package.xml.
OPTIONAL = {
    'distributed',
    'jinja2',
    'markupsafe',
    'matplotlib',
    'mujoco',
    'rosbags',
    'ruckig',
    'websockets',
    'xacro',
}
# Of PyPI alone; threads.py does without it on a ROS machine.
WITHOUT_ROSDEP_KEY = {'threadpoolctl'}
# What the launch files start or are started with; Gazebo, RViz and ros2_control are not for all.
STARTED = {'robot_state_publisher', 'ros2launch'}
LICENCE = 'SPDX-License-Identifier: Apache-2.0'
# Standard headers whose name is like a package's, and what the controller's package has itself.
NO_PACKAGES = {
    *('dlfcn.h', 'sys', 'unistd.h'),
    *('robodyn_controllers', 'pendulum.hpp', 'rubbing_pendulum.hpp', 'gtest'),
    'semantic_components',  # of controller_interface
}
# What the controller's package takes where it is installed, and no manifest can say so.
OPTIONAL_PACKAGES = {'inverse_dynamics_solver'}
# Its plugins: the package of their interface, the description, the source.
PLUGINS = {
    'controller_interface': ('robodyn_controllers.xml', 'inverse_dynamics_controller.cpp'),
    'inverse_dynamics_solver': ('exported_model_solver.xml', 'exported_model_solver.cpp'),
}


def read(path: Path | str) -> str:
    """Return the text of a file, by its path below the root."""
    return (ROOT / path).read_text(encoding='utf-8')


def manifest(package: Path) -> etree._Element:
    """Return the manifest of a package."""
    return etree.parse(str(package / 'package.xml')).getroot()


def depended_on(package: Path, *tags: str) -> set[str]:
    """Return the packages that a manifest names by one of the tags; by default, by any of them."""
    return {
        str(element.text)
        for element in manifest(package).iterchildren('*')
        if (element.tag in tags if tags else 'depend' in element.tag)
    }


def differing(where: str, written: set[str], right: set[str]) -> Iterator[str]:
    """Yield what is missing in a file, and what it has too much."""
    yield from (f'{where}:1: {name} is missing' for name in sorted(right - written))
    yield from (
        f'{where}:{line_of(where, name)}: {name} is not used' for name in sorted(written - right)
    )


def line_of(where: str, name: str) -> int:
    """Return the first line of a file that holds a name."""
    lines = read(where).splitlines()
    return next((k for k, line in enumerate(lines, 1) if name in line), 1)


def imported_packages(folder: str = 'robodyn_ros') -> set[str]:
    """Return what is imported in a folder and is neither of Python nor of this package."""
    names = set()
    for path in (ROOT / folder).rglob('*.py'):
        for node in ast.walk(ast.parse(read(path))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names.add(node.module.split('.')[0])
    return names - set(sys.stdlib_module_names) - {'robodyn_ros'}


def dependencies() -> Iterator[str]:
    """Yield dependencies of Python that are declared and not imported, or the other way about."""
    imported = imported_packages()
    needed = imported - OPTIONAL - WITHOUT_ROSDEP_KEY | imported_packages('launch')
    optional = {ROSDEP_KEYS[name] for name in OPTIONAL & ROSDEP_KEYS.keys()}
    yield from differing(
        'package.xml',
        depended_on(ROOT, 'depend', 'exec_depend'),
        {ROSDEP_KEYS.get(name, name) for name in needed} | STARTED | optional,
    )
    conditional = manifest(ROOT).iterfind('exec_depend[@condition]')
    yield from differing('package.xml', {str(each.text) for each in conditional}, optional)
    # PyPI knows one of them by another name.
    yield from differing(
        'environment/runtime.txt',
        _of_pypi(read('environment/runtime.txt').splitlines()),
        {
            {'yaml': 'pyyaml'}.get(name, name)
            for name in imported & {*ROSDEP_KEYS, *WITHOUT_ROSDEP_KEY}
        },
    )
    (extras,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(read('setup.py')).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == 'EXTRAS'
    )
    named = {name for names in extras.values() for name in _of_pypi(names)}
    yield from differing('setup.py', named, OPTIONAL)


def _of_pypi(requirements: list[str]) -> set[str]:
    return {re.split('[<>=~]', line)[0] for line in requirements if line[:1] != '#'}


def versions() -> Iterator[str]:
    """Yield every file whose version is not that of setup.py."""
    right = re.findall(r"version='([^']+)'", read('setup.py'))
    written = {
        'robodyn_ros/__init__.py': re.findall(
            r"^__version__ = '(.+)'", read('robodyn_ros/__init__.py'), re.M
        ),
        **{
            f'{package.relative_to(ROOT) / "package.xml"}': [manifest(package).findtext('version')]
            for package in (ROOT, INTERFACES, CONTROLLERS)
        },
    }
    for where, version in written.items():
        if version != right:
            line = max(line_of(where, '<version'), line_of(where, '__version__'))
            yield f'{where}:{line}: version {version}, in setup.py {right}'


def interfaces() -> Iterator[str]:
    """Yield interfaces that are not generated, and numbers of them without a unit."""
    where = 'robodyn_interfaces/CMakeLists.txt'
    paths = [path for path in INTERFACES.glob('*/*') if path.suffix in ('.msg', '.srv')]
    yield from differing(
        where,
        set(re.findall(r'(?:msg|srv)/\w+\.(?:msg|srv)', read(where))),
        {f'{path.parent.name}/{path.name}' for path in paths},
    )
    for path in paths:
        for number, line in enumerate(read(path).splitlines(), 1):
            comment = line.partition('#')[2]
            if re.match('float64|float32', line) and '[' not in comment and 'unit' not in comment:
                yield f'{path.relative_to(ROOT)}:{number}: a number whose comment has no unit'


def controllers() -> Iterator[str]:
    """Yield what manifest, build file and plugin description of the controller do not agree on."""
    where = 'robodyn_controllers/CMakeLists.txt'
    cmake = read(where)
    listed = re.search(r'set\(DEPENDENCIES(.*?)\)', cmake, re.DOTALL)
    built_with = set(listed[1].split() if listed else ())
    built_with |= set(re.findall(r'find_package\((\w+) REQUIRED\)', cmake))
    tags = ('depend', 'build_depend', 'test_depend', 'buildtool_depend')
    declared = depended_on(CONTROLLERS, *tags)
    yield from differing('robodyn_controllers/package.xml', declared, built_with)
    for path in sorted(CONTROLLERS.rglob('*.[ch]pp')):
        name = path.relative_to(ROOT)
        for number, line in enumerate(read(path).splitlines(), 1):
            included = re.search(r'#include [<"](\w+)([/.][^>"]+)[>"]', line)
            if included:
                package = included[1] + (included[2] if included[2][0] == '.' else '')
                if package not in depended_on(CONTROLLERS) | NO_PACKAGES | OPTIONAL_PACKAGES:
                    yield f'{name}:{number}: includes {package}, of which package.xml says nothing'
        folder = path.relative_to(CONTROLLERS).parts[0]
        is_test = path.name.startswith('test_')
        built = f'add_tests({path.stem}' if is_test else f'{folder}/{path.name}'
        if path.suffix == '.cpp' and built not in cmake:
            yield f'{name}:1: is not built: {where} has no {built}'
    for interface, (name, source) in PLUGINS.items():
        exporting = read(f'robodyn_controllers/src/{source}')
        yield from _plugin(f'robodyn_controllers/{name}', exporting)
        if f'pluginlib_export_plugin_description_file({interface} {name})' not in cmake:
            yield f'{where}:1: does not export the description of the plugin, {name}'


def _plugin(description: str, source: str) -> Iterator[str]:
    plugins = etree.parse(str(ROOT / description)).getroot()
    plugin = plugins.find('class')
    assert plugin is not None
    exported = re.findall(r'PLUGINLIB_EXPORT_CLASS\(\s*([\w:]+),\s*([\w:]+)\)', source)
    described = [(plugin.get('type'), plugin.get('base_class_type'))]
    if described != exported:
        yield f'{description}:{plugin.sourceline}: describes {described}, exported is {exported}'
    if plugin.get('name') != str(plugin.get('type')).replace('::', '/'):
        yield f'{description}:{plugin.sourceline}: its name is not that of its type'
    if plugins.get('path') != manifest(CONTROLLERS).findtext('name'):
        yield f'{description}:{plugins.sourceline}: its path is not the name of the package'


def licences() -> Iterator[str]:
    """Yield every source file that does not name its licence."""
    folders = ('robodyn_ros', 'test', 'launch', 'benchmarks', 'examples', 'docs')
    sources = [
        *ROOT.glob('*.py'),
        *(ROOT / 'environment').glob('*.py'),
        *(ROOT / 'environment').glob('*.sh'),
        *(ROOT / 'release').glob('*.sh'),
        *(path for folder in folders for path in (ROOT / folder).rglob('*.py')),
        *(
            path
            for path in CONTROLLERS.rglob('*')
            if path.is_file()
            and path.suffix not in ('.md', '.rst')
            and path.name != 'LICENSE'
            and '__pycache__' not in path.parts
        ),
    ]
    for path in sources:
        if path.stat().st_size and LICENCE not in read(path)[:300]:
            yield f'{path.relative_to(ROOT)}:1: does not name its licence: {LICENCE}'


if __name__ == '__main__':
    checks = (dependencies, versions, interfaces, controllers, licences)
    lines = [line for check in checks for line in check()]
    print('\n'.join(lines) or 'packages: manifests, build files and licences agree with the files')
    sys.exit(bool(lines))
