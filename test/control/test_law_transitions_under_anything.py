# SPDX-License-Identifier: Apache-2.0
"""Whatever is changed, whenever: each torque is between what the active laws ask for."""

import numpy as np
import reference_law as oracle
from control_arm import STIFF_MODES, terms
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import random_chain

import robodyn_ros as rd
from robodyn_ros.control.command_pipeline import CommandPipeline, ControlLaw
from robodyn_ros.control.joint_state_buffer import JointStateBuffer
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.reference import Reference
from robodyn_ros.control.settings import ArmSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.motions.possible_positions import PossiblePositions

PERIOD = 0.004
RAMP_TIME = 0.05
DAMPING = 5.0

gain = st.sampled_from([0.0, 10.0, 100.0, 400.0])
changes_of_law = st.tuples(
    st.just('law'),
    st.sampled_from(STIFF_MODES),
    st.tuples(*[st.booleans()] * 4),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    gain,
    gain,
    st.sampled_from([0.001, 0.01, 0.3]),
)
changes_of_model = st.tuples(st.just('model'), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
references = st.tuples(st.sampled_from(['follow', 'cancel', 'stop']))
events = st.lists(
    st.tuples(st.integers(0, 12), st.one_of(changes_of_law, changes_of_model, references)),
    min_size=1,
    max_size=8,
)


class ArmInMotion:
    """A random arm that is moved by somebody else, and its active laws."""

    def __init__(self, seed, n):
        generator = np.random.default_rng(seed)
        self.model = rd.RobotModel.from_urdf(
            random_chain(generator, n), base_link='base', tip_link='tip'
        )
        self.amplitude, self.phase = generator.uniform(0.1, 0.5, n), generator.uniform(0, 6, n)
        self.friction = generator.uniform(0.0, 2.0, (2, n))
        self.n, self.now, self.payload = n, 100.0, 0.0
        self.choice = ('gravity_compensation', (True,) * 4, 1.0, 100.0, 20.0, 0.01)
        law = self.law(self.choice, self.payload)
        self.active, self.since = [(self.choice, self.payload)], -1.0
        names = self.model.joint_names
        buffer = JointStateBuffer(names, 0.5)
        limits = ReferenceLimits(
            names,
            np.array([[-np.inf, np.inf]] * n),
            np.full(n, np.inf),
            np.zeros(n, dtype=bool),
            PossiblePositions.of(self.model),
        )
        self.buffer, self.fading = buffer, None
        self.pipeline = CommandPipeline(law, buffer, limits)
        self.pipeline.enable(self.now)

    def law(self, choice, payload):
        loaded = self.model.with_payload(rd.Payload(payload, (0.1, 0.0, 0.0)))

        def friction(velocity, direction, rigid_torque):
            viscous, coulomb = self.friction
            return viscous * velocity + (coulomb + 0.1 * np.abs(rigid_torque)) * direction

        return ControlLaw(
            lambda q, qd, qdd: rd.inverse_dynamics(loaded, q, qd, qdd),
            friction,
            self.settings(choice),
        )

    def settings(self, choice):
        mode, given, factor, kp, kd, width = choice
        ones = np.ones(self.n)
        return ArmSettings(
            mode=mode,
            kp=kp * ones,
            kd=kd * ones,
            terms_gravity_factor=np.where(np.arange(self.n) % 2, 1.0, factor),
            friction_velocity=width,
            soft_limit_width=0.0,
            impedance_stiffness=ones,
            impedance_nullspace_stiffness=ones,
            ramp_time=RAMP_TIME,
            state_timeout=0.5,
            effort_limits=np.inf * ones,
            torque_rate_limit=np.inf * ones,
            braking_acceleration=np.inf * ones,
            max_reference_step=1e9,
            max_following_error=np.inf,
            damping=DAMPING,
            observer_gain=ones,
            **terms(*given),
        )

    def torque(self, choice, payload, damping, q, qd, reference):
        """Return what a law asks for."""
        law, continuous = self.law(choice, payload), np.zeros(self.n, dtype=bool)
        chosen = oracle.coefficients(law, damping)
        return oracle.torque_parts(law, q, qd, reference, continuous, chosen).total

    def state(self):
        angle = self.phase + 3.0 * (self.now - 100.0)
        return self.amplitude * np.sin(angle), 3.0 * self.amplitude * np.cos(angle)

    def change(self, event):
        if event[0] in ('law', 'model'):
            if event[0] == 'law':
                self.choice = event[1:]
                self.pipeline.settings = self.settings(self.choice)
            else:
                self.payload = event[1]
                self.pipeline.change_load(self.law(self.choice, self.payload).inverse_dynamics)
            self.active.append((self.choice, self.payload))
            # Another model may have to wait for one that is fading in.
            self.since = self.now
        elif event[0] == 'follow':
            goal = self.state()[0] + 0.3
            none = [()]
            try:
                self.pipeline.follow(
                    Trajectory.from_points(self.model.joint_names, [0.2], [goal], none, none, none)
                )
                self.fading = None
            except RejectedTrajectory:
                pass
        else:
            followed = self.pipeline._core.followed
            if followed is not None and self.choice[0] == 'feedforward':
                self.fading = Reference(followed), self.now
            self.pipeline.cancel() if event[0] == 'cancel' else self.pipeline.begin_stop()

    def cycle(self):
        self.now += PERIOD
        q, qd = self.state()
        names = self.model.joint_names
        self.buffer.receive(names, q, qd, received=self.now, stamp=self.now)
        command = self.pipeline.step(self.buffer.take(), self.now)
        if self.now - self.since > 2.0 * RAMP_TIME + 3.0 * PERIOD:
            self.active = self.active[-1:]
        qd = self.pipeline._core.velocity  # what is believed of it
        (choice, payload), reference = self.active[-1], command.reference
        latest = self.torque(choice, payload, 0.0, q, qd, reference)
        if len(self.active) == 1 and np.allclose(command.torque, latest, atol=1e-9):
            return
        choices = {choice for choice, _ in self.active}
        payloads = {payload for _, payload in self.active}
        asked = np.array(
            [
                self.torque(choice, payload, damping, q, qd, reference)
                for choice in choices
                for payload in payloads
                for damping in (0.0, DAMPING)
                for reference in self.references(command)
            ]
        )
        slack = 1e-6 * max(1.0, np.abs(asked).max())
        assert (command.torque >= asked.min(axis=0) - slack).all()
        assert (command.torque <= asked.max(axis=0) + slack).all()

    def references(self, command):
        """Return the references that active laws may follow: in feedforward an old one fades."""
        if self.fading is None or self.now - self.fading[1] > RAMP_TIME + PERIOD:
            return [command.reference]
        return [command.reference, self.fading[0].sample(self.now)]


@settings(deadline=None, max_examples=max(1, settings().max_examples // 5))
@given(st.integers(0, 10_000), st.integers(1, 3), events)
def test_torque_is_in_the_hull_of_the_active_laws_at_the_present_state(seed, n, sequence):
    arm = ArmInMotion(seed, n)
    arm.cycle()
    for pause, event in sequence:
        for _ in range(pause):
            arm.cycle()
        arm.change(event)
        arm.cycle()
    for _ in range(25):
        arm.cycle()
