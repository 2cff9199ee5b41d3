# SPDX-License-Identifier: Apache-2.0
"""~/dynamics_state in a plotter and in a bag."""

import os
import re
import subprocess
import sys
from pathlib import Path

import domains
import numpy as np
import pytest
from lxml import etree

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_interfaces.msg import DynamicsState

pytestmark = pytest.mark.ros

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'docs'))

from write_plot_layout import layout  # noqa: E402

PARTS = ('inertial', 'coriolis', 'gravity', 'friction', 'feedback', 'effort')


def test_plot_layout_shows_fields_that_the_message_has():
    fields = DynamicsState.get_fields_and_field_types()
    curves = etree.fromstring(layout(3, '/left/dynamics_node').encode()).iter('curve')
    shown = set()
    for curve in curves:
        topic, _, field = curve.get('name').rpartition('/')
        assert topic == '/left/dynamics_node/dynamics_state'
        match = re.fullmatch(r'(\w+)(\[\d])?', field)
        name, index = match.groups()
        assert fields[name].startswith('sequence') == (index is not None)
        shown.add(name)
    assert shown >= {*PARTS, 'total', 'position', 'reference_position', 'cycle_time'}


@pytest.mark.slow
def test_example_records_a_motion_whose_parts_sum_to_the_torque(tmp_path):
    pytest.importorskip('mujoco')
    highlevel = pytest.importorskip('rosbags.highlevel')
    bag, picture = tmp_path / 'motion', tmp_path / 'motion.png'
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(domains.claim())}
    subprocess.run(
        [sys.executable, ROOT / 'examples' / 'record_motion.py', '--bag', bag, '--plot', picture],
        check=True,
        env=environment,
        timeout=300,
    )
    assert picture.stat().st_size > 10_000
    differences = []
    with highlevel.AnyReader([bag]) as reader:
        topics = {connection.topic: connection for connection in reader.connections}
        states = [topics['/dynamics_node/dynamics_state']]
        assert topics['/joint_states'].msgcount > 1000
        for connection, _, data in reader.messages(connections=states):
            state = reader.deserialize(data, connection.msgtype)
            if not (state.effort_limited.any() or state.rate_limited.any()):
                total = np.sum([getattr(state, part) for part in PARTS], axis=0)
                differences.append(np.abs(state.total - total).max())
    assert len(differences) > 1000
    # Only the cycles of the first ramp differ.
    assert np.mean(np.array(differences) < 1e-9) > 0.9
