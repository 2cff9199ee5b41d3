# SPDX-License-Identifier: Apache-2.0
"""The arm of ``soft_arm`` under a dynamics node of a wrong model, in lockstep over DDS."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
from contact_rig import ContactRig, set_friction
from soft_arm import EFFORT_NOISE, POSITION_RESOLUTION, SAMPLING, VELOCITY_NOISE

from robodyn_ros import base_parameters, forward_kinematics
from robodyn_ros.identification import DriveTerms, Identification
from robodyn_ros.identification.parameters import IdentifiedParameter
from robodyn_ros.identification.prediction import DriveModel
from robodyn_ros.kinematics import kinematics_digest


def urdf_with_drives(text, model, path):
    """Write a URDF with a model's effort limits and friction."""
    root = ElementTree.fromstring(text)
    for k, name in enumerate(model.joint_names):
        joint = root.find(f"joint[@name='{name}']")
        joint.find('limit').set('effort', repr(float(model.effort_limits[k])))
        set_friction(joint, model.coulomb_friction[k], model.viscous_friction[k])
    path.write_text(ElementTree.tostring(root, encoding='unicode'), encoding='utf-8')
    return str(path)


def identification(model):
    """Return what a model with rotors is to a node: one that was identified."""
    n, zero, terms = model.n, np.zeros(model.n), DriveTerms()
    plain = replace(model, rotor_inertia=zero, viscous_friction=zero, coulomb_friction=zero)
    base, coefficients = base_parameters(plain), np.zeros((n, terms.count))
    none = IdentifiedParameter('none', 'none', '', 0.0, 0.0, 0.0, 0.0)
    parameters = (none,) * (base.count + coefficients.size)
    covariance = np.zeros((len(parameters),) * 2)
    drives = DriveModel(model, terms, coefficients, base, covariance, np.ones(n), np.ones(n))
    return Identification(
        model=model,
        drive_model=drives,
        parameters=parameters,
        covariance=covariance,
        base_tilt=np.zeros(2),
        base_tilt_deviation=np.zeros(2),
        delay=0.0,
        delay_deviation=0.0,
        errors=(),
        candidates=(),
        findings=(),
        cutoff=5.0,
        converged=True,
        kinematics=kinematics_digest(model),
    )


class SoftNode:
    """
    As far as a slow push goes this is a ``SoftArm``.

    Parameters
    ----------
    arm : SoftArm
        Whose arm, wrong model, start and rate it has.
    folder : Path
        For its files.
    parameters
        Of the dynamics node.
    """

    def __init__(self, arm, folder, **parameters):
        self.model, self.assumed, self.limits = arm.model, arm.assumed, arm.limits
        self.start, self.period = arm.start, arm.period
        self.rig = rig = ContactRig(folder / 'node.log')
        ends = {'base_link': arm.arm.base, 'tip_link': arm.arm.tip}
        urdf = urdf_with_drives(arm.urdf, arm.model, folder / 'arm.urdf')
        identified = folder / 'identified.yaml'
        identification(arm.assumed).save(identified)
        given = {'mode': 'cartesian_impedance', 'identified_model': identified, **parameters}
        rig.start(urdf_file=urdf, **ends, **given)
        rig.start_simulator(
            urdf_file=urdf,
            **ends,
            initial_position=arm.start,
            time_step=arm.period,
            rotor_inertia=arm.model.rotor_inertia,
            position_resolution=POSITION_RESOLUTION,
            velocity_noise=VELOCITY_NOISE,
            effort_noise=EFFORT_NOISE * arm.limits,
        )
        rig.until(lambda: rig.push.get_subscription_count() > 0)
        assert rig.transition('activate')
        rig.run_until(0.5)

    def close(self):
        """End node and simulator."""
        self.rig.close()

    @property
    def simulation(self):
        """Where the arm is, as a simulation tells it."""
        return SimpleNamespace(position=np.array(self.rig.states[-1].position))

    def pose(self):
        """Return the pose of the tip (4, 4)."""
        return forward_kinematics(self.model, self.simulation.position)

    def run(self, duration, wrench=None, each=None, every=None):
        """Run for a time [s] under a wrench by the time since; return what some cycles give."""
        every = round(SAMPLING / self.period) if every is None else every
        rig, step, found = self.rig, every * self.period, []
        begin = rig.time
        for k in range(round(duration / step)):
            given = np.zeros(6) if wrench is None else wrench(k * step)
            rig.pushed(given[:3], moment=given[3:])
            if each is not None:
                found.append(each())
            rig.run_until(begin + (k + 1) * step - 1e-6)
            for told in (rig.states, rig.torques, rig.commands):
                del told[:-1]
        return np.array(found)
