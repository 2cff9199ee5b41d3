# SPDX-License-Identifier: Apache-2.0
"""The ament_python package; ``make setup`` and colcon both install from here."""

import hashlib
import os
import shutil
from glob import glob
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

PACKAGE = 'robodyn_ros'
CORE = f'{PACKAGE}/control/core'
CORE_SOURCES = sorted(glob(f'{CORE}/*.[ch]pp'))


class BuildCore(build_ext):
    """Builds what is compiled, and says so where there is no C++ compiler."""

    def run(self):
        compilers = [os.environ['CXX'].split()[0]] if os.environ.get('CXX') else []
        if not any(map(shutil.which, [*compilers, 'c++', 'g++', 'clang++'])):
            self.warn(
                'no C++ compiler: the library is installed without the core of the control '
                'pipeline, and the nodes will not start'
            )
            self.extensions = []
        super().run()


def core_module():
    """Return the core for Python; it knows the digest of the sources that it is made of."""
    try:
        import pybind11

        headers = [pybind11.get_include()]
    except ImportError:  # Debian's headers alone, which every compiler finds
        headers = []
    digest = hashlib.sha256(b''.join(Path(path).read_bytes() for path in CORE_SOURCES))
    return Extension(
        f'{PACKAGE}.control.core_module',
        [f'{CORE}/core_module.cpp'],
        depends=[*CORE_SOURCES, f'{PACKAGE}/compiled/c/robodyn_model.h'],
        include_dirs=headers,
        define_macros=[('ROBODYN_SOURCES', f'"{digest.hexdigest()}"')],
        # No contraction: the torques are the same wherever they are computed.
        extra_compile_args=[
            '-std=c++17',
            '-O2',
            '-g0',
            '-fvisibility=hidden',
            '-ffp-contract=off',
        ],
        language='c++',
    )


def wrapper_of_kernels():
    """Return the wrapper that Python calls compiled arms by."""
    import numpy

    folder = f'{PACKAGE}/compiled/c'
    return Extension(
        f'{PACKAGE}.compiled.c.wrapper',
        [f'{folder}/wrapper.c'],
        depends=[f'{folder}/vectors.h', f'{folder}/robodyn_model.h'],
        include_dirs=[numpy.get_include()],
        extra_compile_args=['-std=gnu11', '-O2', '-g0', '-fvisibility=hidden'],
    )


# What each part needs beyond the library; imported where it is needed.
EXTRAS = {
    'report': ['matplotlib', 'jinja2', 'markupsafe'],
    'simulator': ['mujoco'],
    'goal': ['ruckig>=0.12'],
    'bags': ['rosbags>=0.11.9'],
    'xacro': ['xacro'],
    'watch': ['websockets>=13.0', 'jinja2', 'markupsafe'],
    'fleet': ['distributed'],
}

setup(
    name=PACKAGE,
    version='0.5.0',
    description='Dynamics of serial manipulators, from URDF to torque, for Python and ROS 2',
    license='Apache-2.0',
    python_requires='>=3.10',
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    ext_modules=[core_module(), wrapper_of_kernels()],
    cmdclass={'build_ext': BuildCore},
    package_data={
        PACKAGE: [
            'py.typed',
            'compiled/c/*.[ch]',
            'compiled/c/*.pyi',
            'control/*.pyi',
            'control/core/*.[ch]pp',
            'report/*.css',
            'report/*.jinja',
            'report/*.js',
            'ros_parameters/*.yaml',
        ]
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (f'share/{PACKAGE}', ['package.xml']),
        # What robodyn_controllers is built with: find_package(robodyn_ros), robodyn_ros::core.
        (f'include/{PACKAGE}', [f'{PACKAGE}/compiled/c/robodyn_model.h']),
        (f'include/{PACKAGE}/core', sorted(glob(f'{CORE}/*.hpp'))),
        (f'share/{PACKAGE}/parameters', [f'{PACKAGE}/ros_parameters/command_pipeline.yaml']),
        (f'share/{PACKAGE}/cmake', sorted(glob('cmake/*.cmake'))),
        (f'share/{PACKAGE}/launch', sorted(glob('launch/*.launch.*'))),
        (f'share/{PACKAGE}/config', sorted(glob('config/*.yaml') + glob('config/*.xml'))),
        (f'share/{PACKAGE}/urdf', sorted(glob('urdf/*.urdf') + glob('urdf/*.xacro'))),
        (f'share/{PACKAGE}/rviz', sorted(glob('rviz/*.rviz'))),
        (f'share/{PACKAGE}/worlds', sorted(glob('worlds/*.sdf'))),
        (f'share/{PACKAGE}/sros2', sorted(glob('sros2/*.xml'))),
        ('bin', ['scripts/robodyn']),
    ],
    install_requires=[
        'setuptools',
        'numpy',
        'scipy',
        'lxml',
        'pyyaml',
        'click',
        'rich',
        'threadpoolctl',
    ],
    extras_require={
        **EXTRAS,
        'all': sorted(set().union(*EXTRAS.values())),
        'test': ['pytest'],  # without it `colcon test` would run unittest
    },
    entry_points={
        'console_scripts': [
            'robodyn = robodyn_ros.cli:main',
            'dynamics_node = robodyn_ros.ros.dynamics.dynamics_node:main',
            'simulator_node = robodyn_ros.ros.simulator_node:main',
            'feedforward = robodyn_ros.ros.feedforward.feedforward_node:main',
            'motion_node = robodyn_ros.ros.motion_node:main',
            'watch_node = robodyn_ros.ros.watch_node:main',
            'monitor_node = robodyn_ros.ros.monitor_node:main',
        ],
    },
    zip_safe=False,
)
