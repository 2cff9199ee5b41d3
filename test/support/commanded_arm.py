# SPDX-License-Identifier: Apache-2.0
"""Arms whose drives take commands in units, signs and an order of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from known_arms import PUBLIC_ARMS, urdf_of
from urdf_parts import joint, link, robot

from robodyn_ros import RobotModel
from robodyn_ros.description.chain import Chain
from robodyn_ros.identification import CommandProbe, Recording
from robodyn_ros.simulation.arm import ArmSimulation, Sensors

TIME_STEP = 0.002  # of joint states and commands, too [s]
PENDULUM = robot(
    link('base'),
    joint('j1', 'base', 'arm', axis=(0, 1, 0)),
    link('arm', 3, center=(0.4, 0, 0), inertia=(0.01, 0.1, 0.1)),
)
# Where each arm stands: the Panda's controller compensates gravity; the UR5 hangs.
POSES = {
    'panda': ((0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8), (0.0, 0.0, 0.0)),
    'ur5': ((0.0, np.pi / 2, 0.0, 0.3, 0.4, 0.0), (0.0, 0.0, -9.81)),
}


@dataclass
class CommandedArm:
    """Torques are ``scale * command[order]``; ``model`` knows no friction, nor any of this."""

    model: RobotModel
    simulation: ArmSimulation
    sensors: Sensors
    scale: np.ndarray
    order: np.ndarray

    @classmethod
    def drawn(cls, name: str, seed: int, *, permuted: bool = False) -> CommandedArm:
        """Return an arm with drives from a seed; friction is 1 to 5 % of the effort limits."""
        generator = np.random.default_rng(seed)
        _, base, tip = PUBLIC_ARMS[name]
        position, gravity = POSES[name]
        chain = Chain.from_urdf(urdf_of(name), base_link=base, tip_link=tip)
        model = RobotModel.from_chain(chain, gravity=gravity)
        limits, n = model.effort_limits, model.n
        rotors = 0.003 * limits  # about those of the Panda's wrist, 0.04 kg m², to its shoulder
        viscous, coulomb = generator.uniform(0.01, 0.05, (2, n)) * limits
        joints = tuple(
            replace(each, damping=float(Fv), friction=float(Fc))
            for each, Fv, Fc in zip(chain.joints, viscous, coulomb)
        )
        simulation = ArmSimulation(
            replace(chain, joints=joints),
            gravity=gravity,
            time_step=TIME_STEP,
            initial_position=position,
            rotor_inertia=rotors,
        )
        for _ in range(int(3.0 / TIME_STEP)):  # comes to rest where friction holds it
            simulation.step(np.zeros(n))
        size = np.exp(generator.uniform(np.log(0.2), np.log(5.0), n))
        scale = size * generator.choice([-1, 1], n)
        order = generator.permutation(n) if permuted else np.arange(n)
        sensors = Sensors(1e-4, 1e-3, seed=seed)
        return cls(model.with_rotor_inertia(rotors), simulation, sensors, scale, order)

    def probed(
        self, probe: CommandProbe, *, lag: float = 0.0, breakaway: float = 0.0
    ) -> Recording:
        """
        Return the recording of the whole experiment, commands as efforts.

        A drive's torque may lag [s], and friction be larger where a joint hardly moves (Stribeck),
        by a part of 3 % of the effort limit.
        """
        simulation, rows = self.simulation, []
        command, torque = np.zeros((2, self.model.n))
        kept = np.exp(-TIME_STEP / lag) if lag else 0.0
        more = breakaway * 0.03 * self.model.effort_limits
        while not probe.is_over:
            position, velocity, _ = self.sensors.measured(
                simulation.position, simulation.velocity, command
            )
            command = probe.command(simulation.time, position)
            rows.append((simulation.time, position, velocity, command))
            torque = kept * torque + (1.0 - kept) * self.scale * command[self.order]
            slow = np.exp(-((simulation.velocity / 0.08) ** 2))
            simulation.step(torque - more * slow * np.tanh(simulation.velocity / 0.005))
        return Recording(self.model.joint_names, *map(np.array, zip(*rows)))


def sliding(model: RobotModel, scale: float, late: float = 0.0, rate: float = 500.0) -> Recording:
    """Return a pendulum's recording in closed form: it always slides, under given commands."""
    time = np.arange(0.0, 12.0, 1.0 / rate)
    w = 2 * np.pi * np.array([1.0, 2.3])
    q = 0.6 + 0.02 * np.sin(np.outer(time, w)).sum(axis=1)
    qd = 0.02 * (w * np.cos(np.outer(time, w))).sum(axis=1)
    qdd = -0.02 * (w**2 * np.sin(np.outer(time, w))).sum(axis=1)
    # (I + m l²) qdd - m g l cos q about y, and friction.
    torque = (0.1 + 3 * 0.4**2) * qdd - 3 * 9.81 * 0.4 * np.cos(q) + 0.8 * qd + 1.5 * np.sign(qd)
    command = np.interp(time + late, time, torque) / scale
    return Recording(model.joint_names, time, q[:, None], None, command[:, None])
