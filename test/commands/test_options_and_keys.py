# SPDX-License-Identifier: Apache-2.0
"""What scripts rely on: options and keys of JSON that commands had in version 0.5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from command_line import json_of
from commanded_arm import PENDULUM, sliding
from simulated_recordings import TrueArm, as_csv

from robodyn_ros import RobotModel
from robodyn_ros.cli import robodyn
from robodyn_ros.identification import DriveTerms, identify

ARM = '--base --gravity --json --lock --mimic --tip'
OPTIONS = {
    'dh': 'ARM --standard',
    'check': 'ARM',
    'params': 'ARM --friction --lengths --rotor-inertia --tolerance',
    'structure': 'ARM --tolerance',
    'ratios': 'ARM --by --map --output --over --resolution --rotor-inertia -o',
    'split': 'ARM --cutoff --fraction --motion --topic',
    'torque': (
        'ARM --cutoff --effort-limit --error-bound --friction --method --output '
        '--rotor-inertia --topic -o'
    ),
    'simulate': (
        'ARM --cutoff --ignore-effort-limits --kd --kp --law --motion --output '
        '--rotor-inertia --time-step --topic -o'
    ),
    'retime': (
        'ARM --acceleration-limit --corners --cutoff --effort-limit --identified '
        '--jerk-limit --margin --output --payload --plot --rms-limit --rotor-inertia '
        '--tolerance --topic --velocity-limit -o'
    ),
    'excite': (
        'ARM --acceleration --box --duration --effort-limit --floor --friction-motion --harmonics '
        '--margin --no-dry-run --output --poses --seed --tip-height --velocity-scale '
        '--watch -o'
    ),
    'identify': (
        'ARM --dask --driver-payload --each --effort-scale --effort-without-gravity '
        '--jobs --mjcf --output --topic --validate -o'
    ),
    'effort': 'ARM --output --topic -o',
    'command-check': 'ARM --rotor-inertia --topic',
    'payload': 'ARM --effort-scale --identified --topic --unloaded',
    'contact-thresholds': 'ARM --effort-scale --gain --identified --output --topic -o',
    'monitor': (
        '--dask --history --jobs --json --live --model --output --started '
        '--temperature-topic --topic -o'
    ),
    'report': (
        'ARM --author --company --cutoff --effort-scale --error --motion --name --output '
        '--pdf --recording --rotor-inertia --serial --topic --validate -o'
    ),
    'export': (
        'ARM --function --identified --lang --name --output --rotor-inertia --shared '
        '--simplified -o'
    ),
    'demo': '--base --hold-time --output --tip --urdf',
    'identify-demo': '--base --output --seed --tip --urdf',
    'float': '--base --duration --effort-limit --push --simulate --tip --urdf',
    'soft': '--base --duration --effort-limit --push --simulate --stiffness --tip --urdf',
    'watch': '--base --host --identified --port --tip --urdf',
    'node': '',
}
KEYS: dict[str, str] = {
    'torque of a trajectory': (
        'accelerations effort inserted joint_names largest_error largest_torque notes '
        'positions time velocities'
    ),
    'dh': (
        'a alpha base_link base_transform beta convention d joint_names prismatic '
        'residual residual.angle residual.position residual.states residual.torque theta '
        'tip_link tip_transform'
    ),
    'check': 'code element level message value',
    'params': (
        'classical_count conditioning count count_range depends_on_tolerance gravity '
        'joint_names lengths lengths.a2 lengths.a3 lengths.d2 no_effect parameters '
        'parameters.expression parameters.link parameters.name parameters.terms '
        'parameters.terms.coefficient parameters.terms.parameter '
        'parameters.terms.polynomial parameters.terms.polynomial.factor '
        'parameters.terms.polynomial.lengths parameters.unit parameters.value residual '
        'tolerance'
    ),
    'structure': (
        'guidelines guidelines.meaning guidelines.met guidelines.number '
        'guidelines.statement guidelines.unit guidelines.values structure '
        'structure.coefficients structure.coefficients.fraction '
        'structure.coefficients.joints structure.coefficients.kind '
        'structure.coefficients.nonzero structure.coefficients.symbol '
        'structure.coefficients.unit structure.counts structure.counts.constant '
        'structure.counts.independent structure.counts.kind structure.counts.nonzero '
        'structure.degree_of_anthropomorphism structure.empirical_sparsity '
        'structure.joint_names structure.largest_zero_fraction '
        'structure.smallest_fraction structure.sparsity structure.tolerance'
    ),
    'ratios': 'coupling coupling_units gravity gravity_units joint_names samples',
    'ratios --map': 'first over position position_units second symbol unit values',
    'split': (
        'coriolis coriolis.dominant coriolis.lesser_fraction coriolis.rotational '
        'coriolis.symbol coriolis.translational coriolis.unit fraction inertia '
        'inertia.dominant inertia.lesser_fraction inertia.rotational inertia.symbol '
        'inertia.translational inertia.unit joint_names'
    ),
    'torque': 'derived joint_names time torque units',
    'simulate': (
        'duration joints joints.largest_error joints.largest_torque joints.name '
        'joints.rms_error joints.time_at_effort_limit joints.unit law'
    ),
    'retime': (
        'binding binding.begin binding.end binding.joint binding.limit duration '
        'duration_before joints joints.effort_share joints.largest_effort joints.name '
        'joints.rms slowed smoothing_cost'
    ),
    'excite': (
        'clearance_m dry_run_problem duration findings findings.code findings.element '
        'findings.level findings.message findings.value information_nat joint_names '
        'joints joints.dry_run_effort joints.dry_run_error joints.effort '
        'joints.effort_limit joints.name joints.position joints.position_limits '
        'joints.velocity joints.velocity_limit parameters parameters.element '
        'parameters.expected_deviation parameters.is_measured parameters.name '
        'parameters.prior_deviation parameters.unit parameters.value seed'
    ),
    'identify': (
        'base_tilt_rad candidates candidates.friction candidates.relative_error converged '
        'coulomb_friction cutoff_hz delay_s effort_offset effort_scale errors '
        'errors.identified errors.identified_moving errors.relative '
        'errors.relative.identified errors.relative.urdf errors.relative.urdf_friction '
        'errors.repeats_training errors.role errors.torque errors.urdf '
        'errors.urdf_friction errors.urdf_friction_moving errors.urdf_moving findings '
        'findings.code findings.element findings.level findings.message findings.value '
        'friction friction_curve joint_names load_friction parameters '
        'parameters.deviation parameters.element parameters.is_measured parameters.name '
        'parameters.prior parameters.prior_deviation parameters.remaining parameters.unit '
        'parameters.value presliding rotor_inertia viscous_friction'
    ),
    'effort': (
        'delay_deviation_s delay_s effort_scale findings findings.code findings.element '
        'findings.level findings.message findings.value joints joints.delay '
        'joints.delay_deviation joints.factor joints.factor_deviation joints.friction '
        'joints.friction_share joints.gravity joints.joint joints.offset '
        'joints.offset_deviation joints.residual joints.rigid_share joints.unit'
    ),
    'payload': (
        'center_deviation center_of_mass findings findings.code findings.element '
        'findings.level findings.message findings.value ixx ixy ixz iyy iyz izz mass '
        'mass_deviation poses residual'
    ),
    'contact-thresholds': (
        'contact_threshold_moving contact_threshold_stationary joint_names observer_gain'
    ),
    'report': (
        'file independent_coefficients infos joint_names microseconds '
        'microseconds.compiled_bias_torque microseconds.newton_euler minimal_parameters '
        'moving_mass nonzero_coefficients notes operation_counts operation_counts.mass_matrix '
        'seconds standard_parameters warnings'
    ),
    'export': 'files',
    'command-check': (
        'command_scale findings findings.code findings.element findings.level '
        'findings.message findings.value joints joints.channel joints.delay '
        'joints.deviation joints.friction joints.joint joints.scale joints.sign order'
    ),
    'monitor': (
        'compared findings friction friction_deviation joint_names least_change least_wear '
        'motions notes payload payload_deviation since_reference '
        'since_reference_deviation verdict warm_up warm_up_deviation'
    ),
}
PUMA = str(Path(__file__).parents[2] / 'urdf' / 'puma560.urdf')
CALLS = {
    'dh': ('dh', 'arm.urdf'),
    'check': ('check', 'arm.urdf'),
    'params': ('params', 'arm.urdf'),
    'structure': ('structure', 'arm.urdf'),
    'ratios': ('ratios', 'arm.urdf'),
    'ratios --map': ('ratios', 'arm.urdf', '--map', 'j2', '--resolution', '3'),
    'split': ('split', 'arm.urdf', '--motion', 'motion.csv'),
    'torque': ('torque', 'arm.urdf', 'motion.csv'),
    'torque of a trajectory': ('torque', PUMA, 'puma.yaml'),
    'simulate': ('simulate', PUMA, '-o', 'simulated.csv'),
    'retime': (
        'retime',
        'arm.urdf',
        'points.yaml',
        '--effort-limit',
        'j1=500',
        '--velocity-limit',
        '3',
    ),
    'excite': ('excite', PUMA, '-o', 'excite.csv', '--duration', '6', '--harmonics', '2'),
    'identify': ('identify', 'arm.urdf', 'motion.csv', '-o', 'identified'),
    'effort': ('effort', 'arm.urdf', 'motion.csv'),
    'payload': ('payload', 'arm.urdf', 'motion.csv', '--identified', 'found.yaml'),
    'contact-thresholds': ('contact-thresholds', 'arm.urdf', 'motion.csv'),
    'report': ('report', 'arm.urdf', '-o', 'report.html'),
    'export': ('export', 'arm.urdf', '-o', 'model'),
    'command-check': ('command-check', 'pendulum.urdf', 'probed.csv'),
    'monitor': ('monitor', 'motion.csv', '--model', 'found.yaml', '--jobs', '1'),
}
SLOW = ('excite', 'report')


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an arm, its recording and model, a trajectory and a probed pendulum."""
    folder = tmp_path_factory.mktemp('keys')
    arm = TrueArm.drawn(3, 3)
    (folder / 'arm.urdf').write_text(arm.text)
    motion = arm.recording(3, 12.0, rate=100.0)
    as_csv(folder / 'motion.csv', motion)
    identify(arm.urdf, motion, friction=DriveTerms()).save(folder / 'found.yaml')
    for file, joints in (
        ('points', motion.joint_names),
        ('puma', [f'joint{k}' for k in range(1, 7)]),
    ):
        points = '\n'.join(
            f'- {{positions: {len(joints) * [x]}, time_from_start: {{sec: {6 * k}, nanosec: 0}}}}'
            for k, x in enumerate((0.0, 0.2, 0.3))
        )
        text = f'joint_names: {list(joints)}\npoints:\n{points}\n'
        (folder / f'{file}.yaml').write_text(text)
    (folder / 'pendulum.urdf').write_text(PENDULUM)
    probed = sliding(RobotModel.from_urdf(PENDULUM), -0.5)
    table = np.column_stack([probed.time, probed.position, probed.effort])
    head = 'time,j1,j1.effort'
    np.savetxt(folder / 'probed.csv', table, delimiter=',', header=head, comments='')
    return folder


def test_every_option_is_still_there():
    context = click.Context(robodyn)
    for name, text in OPTIONS.items():
        command = robodyn.get_command(context, name)
        assert command is not None, name
        there = {each for parameter in command.params for each in parameter.opts}
        wanted = set(text.replace('ARM', ARM).split())
        assert wanted <= there, (name, wanted - there)


@pytest.mark.longer
@pytest.mark.parametrize(
    'name', [pytest.param(x, marks=pytest.mark.slow if x in SLOW else ()) for x in CALLS]
)
def test_every_key_is_still_there(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    missing = set(KEYS.get(name, '').split()) - keys_of(folder, monkeypatch, name)
    assert not missing, missing


def keys_of(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> set[str]:
    monkeypatch.chdir(folder)
    return set(found_in(json_of(*CALLS[name], code=0)))


def found_in(value: Any, at: str = '') -> Iterator[str]:
    """Yield the keys in JSON, with those that they are in before a dot."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (at + key).replace(' ', '_')
            yield from found_in(item, f'{at}{key}.')
    elif isinstance(value, list):
        for item in value[:3]:
            yield from found_in(item, at)
