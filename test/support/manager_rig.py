# SPDX-License-Identifier: Apache-2.0
"""ros2_control: where it is installed, and a controller manager of its own with mock hardware."""

import os
import signal
import subprocess
import time
from pathlib import Path

import domains
import pytest
import rclpy
from controller_manager_msgs.srv import (
    ConfigureController,
    ListControllers,
    LoadController,
    SwitchController,
)
from fair_spinning import STEP
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

PATIENCE = 60.0  # for anything that must happen; a loaded machine may take long [s]


def prefixes():
    """Return the folders that packages are installed in."""
    return [Path(each) for each in os.environ.get('AMENT_PREFIX_PATH', '').split(':') if each]


def prefix_of(package):
    """Return the folder that a package is installed in, or None."""
    manifest = Path('share', package, 'package.xml')
    return next((prefix for prefix in prefixes() if (prefix / manifest).is_file()), None)


def needs(*packages):
    """Skip the test where a package is not installed."""
    for package in packages:
        if prefix_of(package) is None:
            pytest.skip(f'{package} is not installed')


def beside(prefix):
    """Return the environment in which what is installed in one more folder is found, too."""
    environment = dict(os.environ)
    for name, folder in (('AMENT_PREFIX_PATH', prefix), ('LD_LIBRARY_PATH', prefix / 'lib')):
        environment[name] = f'{folder}:{environment.get(name, "")}'
    return environment


class ManagerRig:
    """
    Holds ros2_control_node, and a client of its services.

    Parameters
    ----------
    prefix : Path
        Where the plugin is installed.
    parameters : Path
        YAML of the controllers.
    description : str
        URDF with ``<ros2_control>``.
    folder : Path
        For the log.
    """

    def __init__(self, prefix, parameters, description, folder):
        self.domain = domains.claim()
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=self.domain)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.node = rclpy.create_node('tester', context=self.context)
        self.executor.add_node(self.node)
        kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        publisher = self.node.create_publisher(String, 'robot_description', kept)
        publisher.publish(String(data=description))
        self._log = folder / 'manager.log'
        program = prefix_of('controller_manager') / 'lib/controller_manager/ros2_control_node'
        environment = {**beside(prefix), 'ROS_DOMAIN_ID': str(self.domain)}
        with self._log.open('w') as log:
            self._process = subprocess.Popen(
                [program, '--ros-args', '--params-file', parameters],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def close(self):
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)
        domains.release(self.domain)

    @property
    def log(self):
        return self._log.read_text()

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self._process.poll() is None, self.log
            assert time.monotonic() < deadline, f'waited in vain\n{self.log}'
            self.executor.spin_once(timeout_sec=STEP)

    def call(self, kind, service, **fields):
        client = self.node.create_client(kind, f'controller_manager/{service}')
        self.until(client.service_is_ready)
        answer = client.call_async(kind.Request(**fields))
        self.until(answer.done)
        self.node.destroy_client(client)
        return answer.result()

    def configured(self, *names):
        """Load and configure controllers, and return whether each could be."""
        for name in names:
            assert self.call(LoadController, 'load_controller', name=name).ok, self.log
        return [
            self.call(ConfigureController, 'configure_controller', name=name).ok for name in names
        ]

    def switch(self, activate=(), deactivate=()):
        return self.call(
            SwitchController,
            'switch_controller',
            activate_controllers=list(activate),
            deactivate_controllers=list(deactivate),
            strictness=SwitchController.Request.STRICT,
            activate_asap=True,
        ).ok

    def controllers(self):
        """Return the state and whether it is chained, of each controller."""
        answer = self.call(ListControllers, 'list_controllers')
        return {each.name: (each.state, each.is_chained) for each in answer.controller}
