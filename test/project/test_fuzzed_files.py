# SPDX-License-Identifier: Apache-2.0
"""Damaged files of every kind that users give are read, or end as a RobodynError."""

import numpy as np
import pytest
from mutations import mutated
from robots import two_link_urdf
from simulated_recordings import TrueArm

import robodyn_ros as rd
from robodyn_ros.analysis import Ranges, ranges
from robodyn_ros.control.motion_file import path_of_file, samples_of_file
from robodyn_ros.identification import Identification, Recording, identify
from robodyn_ros.motions import read_motion, table_as_csv

ARM = rd.RobotModel.from_urdf(two_link_urdf())
TRAJECTORY = """joint_names: [joint1, joint2]
points:
- {positions: [0.1, 0.2], velocities: [0.0, 1e-3], time_from_start: {sec: 1, nanosec: 500}}
- {positions: [0.3, 0.4], time_from_start: {sec: 2, nanosec: 0}}
"""
# What the damage to URDF text has not: marks of YAML, CSV and JSON.
TOKENS = (
    '&a ', '*a', '<<: ', '!!int ', '---\n', '[[[', '{', '}', ']', ': ', '"', "'", '\n', '\t', ',',
    '.inf', '.nan', '2001-99-99', '1:59:59', 9 * 'e9', 5000 * '9', 140_000 * '1', '\x00', '\x85',
    '\udce9', '#', '- ', '|\n', '1e999', '-0', 'true', 'null', 2000 * '[', '\\u0000', '\\ud800',
)  # fmt: skip


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """Of every kind: the suffix, a whole text, and what reads it."""
    arm = TrueArm.drawn(1, 2)
    recording = arm.recording(1, 12.0, rate=25.0)
    columns = [recording.position, recording.velocity, recording.effort]
    suffixes = ('', '.velocity', '.effort')
    names = [f'{joint}{suffix}' for suffix in suffixes for joint in recording.joint_names]
    saved = tmp_path_factory.mktemp('identified') / 'identified.yaml'
    identify(arm.urdf, [recording]).save(saved)
    return {
        'motion': (
            '.csv',
            table_as_csv(names, recording.time[:40], *(table[:40] for table in columns)),
            lambda path: read_motion(path, recording.joint_names),
        ),
        'recording': (
            '.csv',
            table_as_csv(names, recording.time, *columns),
            lambda path: Recording.from_csv(path, arm.urdf),
        ),
        'trajectory': ('.yaml', TRAJECTORY, lambda path: samples_of_file(path, ARM)),
        'path': ('.yaml', TRAJECTORY, lambda path: path_of_file(path, ARM)),
        'identification': ('.yaml', saved.read_text(), Identification.load),
        'record': (
            '.json',
            ranges(ARM).to_json(),
            lambda path: Ranges.from_json(path.read_text(errors='surrogateescape')),
        ),
    }


@pytest.mark.repeats(check=2)
@pytest.mark.parametrize(
    'kind', ['motion', 'recording', 'trajectory', 'path', 'identification', 'record']
)
@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_damaged_file_is_read_or_refused_by_name(sources, tmp_path, kind):
    suffix, whole, read = sources[kind]
    path = tmp_path / f'damaged{suffix}'
    path.write_text(whole)
    read(path)
    refused = 0
    for seed in range(200):
        path.write_bytes(damaged(whole, seed))
        try:
            read(path)
        except rd.RobodynError as error:
            assert str(error)
            refused += 1
    assert 0 < refused < 200


def damaged(text, seed):
    """Return a text with seeded changes: of words, of marks, of bits, or of its end."""
    generator = np.random.default_rng(seed)
    for _ in range(generator.integers(1, 4)):
        match generator.integers(4):
            case 0:
                text = mutated(text, seed)
            case 1:
                at = generator.integers(len(text) + 1)
                text = text[:at] + TOKENS[generator.integers(len(TOKENS))] + text[at:]
            case 2:
                text = text[: generator.integers(len(text) + 1)]
            case 3:
                content = bytearray(text.encode('utf-8', 'surrogatepass'))
                if content:
                    content[generator.integers(len(content))] ^= 1 << generator.integers(8)
                text = content.decode('utf-8', 'surrogateescape')
    return text.encode('utf-8', 'surrogatepass')
