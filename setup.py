# SPDX-License-Identifier: Apache-2.0
"""The ament_python package; ``make setup`` and colcon both install from here."""

from glob import glob

from setuptools import find_packages, setup

PACKAGE = 'robodyn_ros'
# What each part needs beyond the library; imported where it is needed.
EXTRAS = {
    'simulator': ['mujoco'],
    'bags': ['rosbags'],
    'xacro': ['xacro'],
}

setup(
    name=PACKAGE,
    version='0.3.0',
    description='Dynamics of serial manipulators, from URDF to torque, for Python and ROS 2',
    license='Apache-2.0',
    python_requires='>=3.10',
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    package_data={
        PACKAGE: [
            'py.typed',
            'compiled/c/*.[ch]',
            'control/c/*.[ch]',
            'report/*.css',
            'report/*.jinja',
            'report/*.js',
        ]
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (f'share/{PACKAGE}', ['package.xml']),
        # What robodyn_controllers is built with.
        (
            f'include/{PACKAGE}',
            [
                f'{PACKAGE}/compiled/c/robodyn_model.h',
                f'{PACKAGE}/control/c/torque_step.h',
            ],
        ),
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
        'matplotlib',
        'jinja2',
        'markupsafe',
        'urdf-parser-py',
        'threadpoolctl',
    ],
    extras_require={
        **EXTRAS,
        'all': sorted(sum(EXTRAS.values(), [])),
        'test': ['pytest'],  # without it `colcon test` would run unittest
    },
    entry_points={
        'console_scripts': [
            'robodyn = robodyn_ros.cli:main',
            'dynamics_node = robodyn_ros.ros.dynamics.dynamics_node:main',
            'simulator_node = robodyn_ros.ros.simulator_node:main',
            'feedforward = robodyn_ros.ros.feedforward.feedforward_node:main',
            'motion_node = robodyn_ros.ros.identification.motion_node:main',
        ],
    },
    zip_safe=False,
)
