# SPDX-License-Identifier: Apache-2.0
"""
From recordings of an arm to an identified model.

>>> motion = excitation(model, 20.0, obstacles=[HalfSpace((0, 0, 1), 0.0)])
>>> recording = Recording.from_bag('motion.mcap', model)
>>> found = identify(model, [recording], validation=[Recording.from_bag('other.mcap', model)])
>>> found.to_urdf('arm.urdf', 'identified.urdf')

A line imports only lines above it: recording, preparation, rows with their drive terms; prior,
estimator, factors, noise; fit, selection of drive terms and tilt; prediction, comparison,
findings; identify. Beside it stand what efforts are (effort_examination), what commands do
(command_check), what a unit of effort is worth (drive_gains), and the payload (payload_estimate).
Motions to record are made in ``exciting_motion``.
"""

from typing import Any as _Any

from robodyn_ros.errors import InsufficientRecording, MalformedData, ModelMismatch, NoSolution
from robodyn_ros.errors import former_name as _former_name
from robodyn_ros.identification.command_check import (
    CommandCheck,
    CommandProbe,
    JointCommand,
    check_commands,
)
from robodyn_ros.identification.comparison import CandidateError, RecordingErrors
from robodyn_ros.identification.drive_gains import DriveGains, identify_drive_gains
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.effort_examination import (
    EffortFindings,
    JointEffort,
    examine_effort,
    with_driver_gravity,
)
from robodyn_ros.identification.exciting_motion.excitation import Excitation, excitation
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits, motion_limits
from robodyn_ros.identification.exciting_motion.obstacles import Box, HalfSpace, LinkPoint
from robodyn_ros.identification.identification import Identification, JointFriction
from robodyn_ros.identification.identify import identify
from robodyn_ros.identification.parameters import IdentifiedParameter
from robodyn_ros.identification.payload_estimate import PayloadEstimate, identify_payload
from robodyn_ros.identification.prediction import Prediction
from robodyn_ros.identification.recording import Recording

__all__ = [
    'Box',
    'CandidateError',
    'CommandCheck',
    'CommandProbe',
    'DriveGains',
    'DriveTerms',
    'EffortFindings',
    'Excitation',
    'HalfSpace',
    'Identification',
    'IdentifiedParameter',
    'InsufficientRecording',
    'JointCommand',
    'JointEffort',
    'JointFriction',
    'LinkPoint',
    'MalformedData',
    'ModelMismatch',
    'MotionLimits',
    'NoSolution',
    'PayloadEstimate',
    'Prediction',
    'Recording',
    'RecordingErrors',
    'check_commands',
    'examine_effort',
    'excitation',
    'identify',
    'identify_drive_gains',
    'identify_payload',
    'motion_limits',
    'with_driver_gravity',
]


def __getattr__(name: str) -> _Any:
    return _former_name(__name__, name)
