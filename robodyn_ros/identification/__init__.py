# SPDX-License-Identifier: Apache-2.0
"""
From recordings of an arm to a model that is true.

>>> recording = Recording.from_bag('motion.mcap', model)
>>> found = identify(model, [recording], validation=[Recording.from_bag('other.mcap', model)])
>>> found.to_urdf('arm.urdf', 'identified.urdf')

A line imports only lines above it: recording (its files, its cleaning), even_samples, preparation,
rows, drive terms; prior, estimator; fit, cross_validation, base_tilt; prediction, comparison,
findings; training_data, identify. Beside it stand what efforts are (effort_examination), what a
unit of them is worth (drive_gains), and what the hand holds (payload_estimate).
"""

from robodyn_ros.errors import (
    MalformedIdentification,
    MalformedRecording,
    NoEffort,
    OtherKinematics,
    RepeatedMotion,
    TooShortRecording,
)
from robodyn_ros.identification.comparison import CandidateError, RecordingErrors
from robodyn_ros.identification.drive_gains import DriveGains, identify_drive_gains
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.effort_examination import examine_effort
from robodyn_ros.identification.effort_findings import EffortFindings, JointEffort
from robodyn_ros.identification.identification import Identification, JointFriction
from robodyn_ros.identification.identify import identify
from robodyn_ros.identification.parameters import IdentifiedParameter
from robodyn_ros.identification.payload_estimate import PayloadEstimate, identify_payload
from robodyn_ros.identification.prediction import Prediction
from robodyn_ros.identification.recording import Recording

__all__ = [
    'CandidateError',
    'DriveGains',
    'DriveTerms',
    'EffortFindings',
    'Identification',
    'IdentifiedParameter',
    'JointEffort',
    'JointFriction',
    'MalformedIdentification',
    'MalformedRecording',
    'NoEffort',
    'OtherKinematics',
    'PayloadEstimate',
    'Prediction',
    'Recording',
    'RecordingErrors',
    'RepeatedMotion',
    'TooShortRecording',
    'examine_effort',
    'identify',
    'identify_drive_gains',
    'identify_payload',
]
