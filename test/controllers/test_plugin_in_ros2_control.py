# SPDX-License-Identifier: Apache-2.0
"""The plugin, built against ros2_control and run by its controller manager, where they are."""

import subprocess

import domains
import numpy as np
import pytest
import xacro
import yaml
from lxml import etree

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('controller_manager_msgs', reason='needs ros2_control')

from controller_core import ROOT, installed_core
from controllers_package import controllers_package
from manager_rig import ManagerRig, beside, needs, prefix_of, prefixes
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import robodyn_ros as rd
from robodyn_interfaces.msg import DynamicsState
from robodyn_ros.compiled import export_shared

pytestmark = pytest.mark.ros

PACKAGE = controllers_package()
OURS, THEIRS = 'inverse_dynamics_controller', 'joint_trajectory_controller'
BUILT_WITH = (
    'controller_interface',
    'controller_manager',
    'generate_parameter_library',
    'realtime_tools',
    'robodyn_interfaces',
    'ros2_control_test_assets',
)
DESCRIPTION = xacro.process_file(
    str(ROOT / 'urdf' / 'arm.urdf.xacro'), mappings={'use_mock_hardware': 'true'}
).toxml()
MODEL = rd.RobotModel.from_urdf(DESCRIPTION, base_link='base_link', tip_link='tool0')


@pytest.fixture(scope='module')
def build(tmp_path_factory):
    """Return the folder that the package was built in, by its own CMakeLists.txt."""
    needs(*BUILT_WITH)
    folder = tmp_path_factory.mktemp('build')
    installed = installed_core(tmp_path_factory.mktemp('headers'))
    has_googletest = prefix_of('gtest_vendor') is not None
    configure = [
        *('cmake', '-S', PACKAGE, '-B', folder, '-DCMAKE_BUILD_TYPE=Release'),
        f'-DCMAKE_PREFIX_PATH={";".join(map(str, prefixes()))}',
        f'-DCMAKE_INSTALL_PREFIX={folder / "installed"}',
        '-DBUILD_TESTING=ON',
        f'-DWITHOUT_GOOGLETEST={"OFF" if has_googletest else "ON"}',
        # Ours first: an older core may be installed where ROS is.
        f'-DCMAKE_CXX_FLAGS=-Werror -I{installed.parents[2] / "include"}',
        f'-Drobodyn_ros_DIR={installed}',
    ]
    for command in (configure, ['cmake', '--build', folder], ['cmake', '--install', folder]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    return export_shared(MODEL, tmp_path_factory.mktemp('model'))[0]


@pytest.fixture
def manager(build, library, tmp_path):
    """Return what starts a controller manager, with our parameters changed."""
    rigs = []

    def start(**changes):
        text = (PACKAGE / 'config' / 'controllers.yaml').read_text()
        text = text.replace('$(var model_library)', str(library)).replace('$(var tf_prefix)', '')
        sections = yaml.safe_load(text)
        sections[f'/**/{OURS}']['ros__parameters'].update(changes)
        parameters = tmp_path / 'controllers.yaml'
        parameters.write_text(yaml.safe_dump(sections))
        rigs.append(ManagerRig(build / 'installed', parameters, DESCRIPTION, tmp_path))
        return rigs[-1]

    yield start
    for rig in rigs:
        rig.close()


def commanded(rig):
    """Return the next of what the controller says that it does."""
    messages = []
    subscription = rig.node.create_subscription(
        DynamicsState, f'{OURS}/dynamics_state', messages.append, 10
    )
    rig.until(lambda: messages)
    rig.node.destroy_subscription(subscription)
    return messages[-1]


def assert_it_carries_the_arm(message):
    assert tuple(message.joint_names) == MODEL.joint_names
    gravity = rd.gravity_torque(MODEL, np.array(message.position))
    np.testing.assert_allclose(message.total, gravity, atol=1e-9)


def test_its_gtests_pass(build):
    domain = domains.claim()
    done = subprocess.run(
        ['ctest', '--output-on-failure'],
        cwd=build,
        env={**beside(build / 'installed'), 'ROS_DOMAIN_ID': str(domain)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    domains.release(domain)
    assert done.returncode == 0, done.stdout
    assert 'out of 4' in done.stdout  # none was left out


def test_it_is_loaded_and_carries_the_arm_alone(manager):
    rig = manager()
    assert rig.configured(OURS) == [True]
    assert rig.switch([OURS])
    assert rig.controllers() == {OURS: ('active', False)}
    assert_it_carries_the_arm(commanded(rig))


def test_joint_trajectory_controller_is_chained_to_it_and_leaves_it_carrying_the_arm(manager):
    needs('joint_trajectory_controller')
    rig = manager()
    assert rig.configured(OURS, THEIRS) == [True, True]
    assert rig.switch([OURS, THEIRS])
    assert rig.controllers() == {OURS: ('active', True), THEIRS: ('active', False)}
    message = commanded(rig)
    assert len(message.reference_position) == MODEL.n
    assert_it_carries_the_arm(message)
    assert rig.switch(deactivate=[THEIRS])
    assert rig.controllers() == {OURS: ('active', False), THEIRS: ('inactive', False)}
    assert_it_carries_the_arm(commanded(rig))


def test_a_setpoint_goes_on_at_its_velocity_until_state_timeout(manager):
    rig = manager(state_publish_rate=500.0)
    assert rig.configured(OURS) == [True]
    assert rig.switch([OURS])
    messages = []
    rig.node.create_subscription(DynamicsState, f'{OURS}/dynamics_state', messages.append, 1000)
    rig.until(lambda: messages)
    publisher = rig.node.create_publisher(JointTrajectory, f'{OURS}/reference', 1)
    rig.until(lambda: publisher.get_subscription_count() > 0)
    point = JointTrajectoryPoint(positions=messages[-1].position, velocities=[0.2] + 5 * [0.0])
    publisher.publish(JointTrajectory(joint_names=MODEL.joint_names, points=[point]))

    def followed():
        return [
            message.reference_position[0] - point.positions[0]
            for message in messages
            if len(message.reference_velocity) and message.reference_velocity[0] == 0.2
        ]

    rig.until(lambda: ended(messages))
    assert len(set(followed())) > 5
    assert 0.01 < max(followed()) < 0.2 * 0.1 + 1e-6


def ended(messages):
    """Return whether the arm is held after it followed something."""
    references = [list(message.reference_velocity) for message in messages]
    return any(any(each) for each in references) and not any(references[-1])


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'model_library': '/nowhere/arm.so'}, '/nowhere/arm.so'),
        ({'model_library': 'libm.so.6'}, 'an absolute path'),
        ({'joints': [*MODEL.joint_names[1::-1], *MODEL.joint_names[2:]]}, 'joint'),
        ({'kp': [1.0, 2.0]}, 'kp: 2 values'),
    ],
)
def test_configure_refuses_with_the_reason_in_the_log(manager, changes, reason):
    rig = manager(**changes)
    assert rig.configured(OURS) == [False]
    rig.until(lambda: 'cannot configure: ' in rig.log)
    assert reason in rig.log.partition('cannot configure: ')[2].partition('\n')[0]


def test_configure_refuses_the_library_of_another_arm(manager, tmp_path):
    longer = etree.fromstring(DESCRIPTION)
    longer.find("joint[@name='joint2']/origin").set('xyz', '0 0 0.5')
    other = rd.RobotModel.from_urdf(
        etree.tostring(longer, encoding='unicode'), base_link='base_link', tip_link='tool0'
    )
    rig = manager(model_library=str(export_shared(other, tmp_path / 'other')[0]))
    assert rig.configured(OURS) == [False]
    rig.until(lambda: 'the tip of robot_description is elsewhere' in rig.log)
