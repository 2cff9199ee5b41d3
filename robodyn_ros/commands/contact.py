# SPDX-License-Identifier: Apache-2.0
"""From recordings without contact to the thresholds of contacts: ``contact-thresholds``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml
from numpy.typing import ArrayLike

from robodyn_ros.commands.options import (
    OUTPUT_FILE,
    ChosenArm,
    UserPath,
    arm_options,
    effort_scale_option,
    examples,
    in_a_folder_that_is_there,
    recordings_argument,
    topic_option,
)
from robodyn_ros.control.contact import ContactThresholds
from robodyn_ros.control.contact_thresholds import contact_thresholds, observed_recording
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.identification import Identification
from robodyn_ros.identification.recording import recording_of_file
from robodyn_ros.model import RobotModel


@click.command(
    'contact-thresholds',
    epilog=examples(
        'robodyn contact-thresholds arm.urdf free.mcap --identified found.yaml -o contact.yaml',
        'robodyn contact-thresholds arm.urdf one.csv two.csv --effort-scale 11.5',
    ),
)
@arm_options
@recordings_argument
@topic_option
@click.option(
    '--identified',
    type=UserPath(),
    help='YAML that ``robodyn identify`` wrote for the arm: its model, and its effort scale.',
)
@effort_scale_option
@click.option(
    '--gain',
    type=float,
    default=ControlSettings().observer_gain[0],
    show_default=True,
    help='Of the observer [1/s].',
)
@click.option(
    '-o',
    '--output',
    type=OUTPUT_FILE,
    callback=in_a_folder_that_is_there,
    help='File of the gain and the thresholds, as parameters.',
)
def contact_thresholds_command(
    arm: ChosenArm,
    recordings: tuple[Path, ...],
    topic: str | None,
    identified: Path | None,
    effort_scale: float | list[float] | None,
    gain: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """
    Find the external torques that motions without contact show.

    RECORDINGS are ROS bags with joint states, or CSV files with the columns time, NAME,
    NAME.velocity and NAME.effort, of motions like those to come, with stops, and nothing touched.
    Prints the thresholds from which on an external torque is a contact.
    """
    scale: ArrayLike = 1.0
    model, presliding = arm.model, 0.0
    if identified is not None:
        found = Identification.load(identified)
        model, scale = found.applied_to(model), found.effort_scale
        presliding = found.terms.presliding
    if effort_scale is not None:
        scale = effort_scale
    observed = [
        observed_recording(
            model,
            recording_of_file(path, model, topic),
            gain,
            effort_scale=scale,
            presliding=presliding,
        )
        for path in recordings
    ]
    thresholds = contact_thresholds(model, observed)
    if output is not None:
        output.write_text(_parameter_file(model, thresholds, gain), encoding='utf-8')
    if as_json:
        record = {'joint_names': model.joint_names, **_parameters(thresholds, gain)}
        click.echo(json.dumps(record, indent=2, allow_nan=False))
        return
    for line in _words(model, thresholds):
        click.echo(line)
    if output is not None:
        click.echo(output)


def _words(model: RobotModel, thresholds: ContactThresholds) -> Iterator[str]:
    yield f'{"":24}{"moving":>9}{"stationary":>12}'
    for k, name in enumerate(model.joint_names):
        unit = 'N' if model.dh.prismatic[k] else 'N m'
        yield f'{name!r:24}{thresholds.moving[k]:9.3g}{thresholds.stationary[k]:12.3g} {unit}'


def _parameters(thresholds: ContactThresholds, gain: float) -> dict[str, Any]:
    """Return gain and thresholds as parameters, in the order of the chain."""
    return {
        'observer_gain': [gain],
        'contact_threshold_moving': [float(f'{x:.4g}') for x in thresholds.moving],
        'contact_threshold_standing': [float(f'{x:.4g}') for x in thresholds.stationary],
    }


def _parameter_file(model: RobotModel, thresholds: ContactThresholds, gain: float) -> str:
    names = ', '.join(map(repr, model.joint_names))
    document = {'/**': {'ros__parameters': _parameters(thresholds, gain)}}
    text = yaml.safe_dump(document, default_flow_style=None, sort_keys=False)
    head = f'# Written by robodyn contact-thresholds, in the order of the chain: {names}.'
    return f'{head}\n{text}'
