# SPDX-License-Identifier: Apache-2.0
"""
Shake arms in an impedance a thousand times each, and print by how much their energy rises.

    python benchmarks/impedance_energy.py [ARM ...] [--rate 1000 --rate 250] [--contacts 1000]

The arms of impedance.py: friction, rotors and noise; here the model is right, so that no wrong
gravity works. They are driven as by the controller, by setpoints that jump. A contact is a push
of a hand or a wall at the tip, where the arm is; with it stiffness, damping ratio, ramp time
(zeros and ends, too), frame and mode change at random (joint and Cartesian impedance, now and
then gravity compensation), and the reference jumps: setpoints by up to 0.1 rad in a joint,
targets of the tip by up to 0.15 m. Now and then a stiffness is 0 or the largest one that is
allowed, of which the rate of the states leaves a small part.

The balance is the kinetic energy, and what the springs hold whose stiffness is in effect, as far
as the rates of states and torques leave it (a mode that is slowed by s has s^2 of its energy),
less the work of hand and wall and of the reference: what it changes of the springs' energy where
the arm is. Dampers and friction lower it. Printed are the largest rise within a contact, from any
moment of it to a later one: the tank may lend 0.4 J; and by how much the balance was ever above
where it began. Spring energy counts in full, also where a limit of effort leaves less of the
spring.

Limits: how far a command was beyond the effort limit, and beyond what the rate limit allows [N m].
Targets of the tip are refused where the mode or the stiffness has no spring for them.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import mujoco
import numpy as np
from impedance import ARMS
from scipy.linalg import block_diag, eigh
from scipy.spatial.transform import Rotation
from soft_arm import EFFORT_NOISE, POSITION_RESOLUTION, VELOCITY_NOISE, SoftArm

from robodyn_ros import gravity_torque, mass_matrix
from robodyn_ros.control.core_binding import core
from robodyn_ros.kinematics import tip_jacobian

SHAKEN = ('KR 210', 'KR 16', 'Panda', 'UR5')
WALL = 2e4  # N/m
PUSH = 0.5  # of what the drives can hold at the start, and at most [N]:
STRONGEST = 300.0
STEP = 0.1  # of a setpoint [rad], the default of max_reference_step
SPACE = 0.2  # of setpoints about the start [rad]
HEAVIEST = 1e4  # kg: more effective mass counts as a direction in which the tip cannot move
STIFFEST = 1e5  # N/m, N m/rad: the most that may be asked for
MODES = ('joint_impedance', 'cartesian_impedance')


class ShakenArm(SoftArm):
    """An arm that follows setpoints, its world, and the balance of its energy."""

    def __init__(self, name, rate, seed, stiffest=None):
        super().__init__(ARMS[name], rate, 0.0, seed, friction_compensation=0.8)
        self.stiffest = stiffest  # that is drawn at times; None: the usual largest one
        self.setpoint, self.wall = self.start.copy(), None
        self.given = 0.0  # by hand, wall and reference [J]
        self.balance, self.least, self.rise = np.inf, np.inf, 0.0  # [J]
        self.begin, self.highest = np.nan, 0.0  # its first value, and its largest less that [J]
        self.beyond = np.full(2, -np.inf)  # effort limit, rate limit
        self.saturated = 0  # cycles
        self.asked = self.refused = 0  # targets
        self.last = None  # command
        self.before = None  # reference of the last cycle
        self.rates = self.pipeline.settings.torque_rate_limit
        self.possible = np.tile([-1e3, 1e3], self.model.n)
        self.law = self.pipeline.law
        self.tip_in_body = self.simulation._chain.tip_transforms[0][:3, 3]

    # --- a cycle -----------------------------------------------------------------------------

    def cycle(self):
        n, shake = self.model.n, self.random.normal
        simulation = self.simulation
        q = np.round(simulation.position / POSITION_RESOLUTION) * POSITION_RESOLUTION
        qd = simulation.velocity + VELOCITY_NOISE * shake(size=n)
        zero = np.zeros(n)
        setpoint = np.stack([self.setpoint, zero, zero, zero])
        found = self.core.update(self.time, q, qd, setpoint, self.possible)
        self.judge(None if found is None else found[0])
        self.book(None if found is None else found[6])
        for _ in range(self.steps):
            simulation.push(self.wrench + self.resistance())
            drive = self.last + EFFORT_NOISE * self.limits * shake(size=n)
            at = simulation.position
            simulation.step(drive)
            hand = simulation._data.qfrc_applied - drive
            self.given += hand @ (simulation.position - at)
        self.time = round(self.time + self.period, 9)

    def resistance(self):
        """Return what the wall exerts (6,); its place of a physics step before."""
        if self.wall is None:
            return np.zeros(6)
        point, normal = self.wall
        depth = normal @ (point - self.tip())
        return np.append(WALL * max(depth, 0.0) * normal, np.zeros(3))

    def tip(self):
        data = self.simulation._data
        return data.xpos[-1] + data.xmat[-1].reshape(3, 3) @ self.tip_in_body

    def judge(self, torque):
        """Note how far a command is beyond limits."""
        if torque is None:
            torque = np.zeros(self.model.n) if self.last is None else self.last
        elif self.last is not None:
            allowed = self.rates * min(self.period, 0.01)
            self.beyond[1] = max(self.beyond[1], (np.abs(torque - self.last) - allowed).max())
        self.beyond[0] = max(self.beyond[0], (np.abs(torque) - self.limits).max())
        self.saturated += bool((np.abs(torque) > 0.999 * self.limits).any())
        self.last = torque

    # --- energy --------------------------------------------------------------------------------

    def book(self, reference_rows):
        """Update the balance with where arm and reference are, after the law was computed."""
        data, n = self.simulation._data, self.model.n
        momentum = np.zeros(n)
        mujoco.mj_mulM(self.simulation._model, data, momentum, data.qvel)
        kinetic = 0.5 * data.qvel @ momentum
        stiffness = self.core.stiffness
        now = None if reference_rows is None else self.reference(*reference_rows[:2])
        held = self.spring_energy(stiffness, now)
        self.given += held - self.spring_energy(stiffness, self.before)  # by the reference
        self.before = now
        self.balance = kinetic + held - self.given
        self.rise = max(self.rise, self.balance - self.least)
        self.least = min(self.least, self.balance)
        self.begin = self.balance if np.isnan(self.begin) else self.begin
        self.highest = max(self.highest, self.balance - self.begin)

    def pose(self, position=None):
        q = self.simulation.position if position is None else position
        return np.asarray(self.law.forward_kinematics(q[None])).reshape(4, 4)

    def reference(self, position, velocity):
        """Return the joints' reference, and the position and orientation of the tip's."""
        place, xyzw = self.core.tip_reference
        return position.copy(), velocity.copy(), np.array(place), Rotation.from_quat(xyzw)

    def spring_energy(self, stiffness, reference):
        """Return what joints' and tip's springs hold [J]; none without a reference."""
        joints, posture, along_base, along_reference = map(np.array, stiffness)
        if reference is None or not (joints.any() or along_base.any() or along_reference.any()):
            return 0.0
        position, velocity, place, turn = reference
        q = self.simulation.position
        pose, jacobian = self.pose(q), tip_jacobian(self.model, q)
        distance, axes = place - pose[:3, 3], turn.as_matrix()
        *eps, eta = (turn * Rotation.from_matrix(pose[:3, :3]).inv()).as_quat()
        # The rate of 2 eps by the tip's angular velocity.
        jacobian[3:] = (eta * np.eye(3) + np.cross(eps, np.eye(3), axisb=0).T) @ jacobian[3:]
        bent = np.concatenate([position - q, distance, 2.0 * np.array(eps)])
        along, about = (
            np.diag(along_base[k]) + axes * along_reference[k] @ axes.T
            for k in (slice(3), slice(3, 6))
        )
        springs = block_diag(np.diag(joints), along, about)
        rows = np.vstack([np.eye(len(q)), jacobian])
        mass = mass_matrix(self.model, q)
        inverse = np.linalg.inv(mass)
        effective = np.linalg.inv(jacobian @ inverse @ jacobian.T + np.eye(6) / HEAVIEST)
        free = np.eye(len(q)) - inverse @ jacobian.T @ effective @ jacobian
        whole = rows.T @ springs @ rows + free.T * posture @ free
        squares, modes = eigh(whole, mass)
        squares = np.maximum(squares, 1e-9)
        fastest = core.largest_frequency(self.core.damping_ratio) / self.period
        pull = modes.T @ rows.T @ springs @ bent
        forces = mass @ modes  # of the joints, by those of the modes
        speed = forces.T @ (velocity - self.simulation.velocity)
        follow = (np.abs(forces) / (core.RATE_RESERVE * self.rates[:, None])).max(axis=0)
        low, high = np.zeros(len(q)), np.minimum(1.0, fastest**2 / squares)
        for _ in range(30):  # the fraction that is left of each mode
            left = 0.5 * (low + high)
            most = left**2 * ((squares * speed) ** 2 + left * squares * pull**2)
            low, high = np.where(most * follow**2 <= 1.0, [left, high], [low, left])
        return 0.5 * bent @ springs @ bent - 0.5 * (1.0 - high) @ (pull**2 / squares)

    # --- events ----------------------------------------------------------------------------------

    def strength(self):
        """Return which force at the tip the drives hold here in any direction [N]."""
        q = self.simulation.position
        left = np.maximum(0.9 * self.limits - np.abs(gravity_torque(self.model, q)), 0.0)
        lever = np.linalg.norm(tip_jacobian(self.model, q)[:3], axis=0) + 1e-9
        return min(PUSH * (left / lever).min(), STRONGEST)

    def shake(self, contacts):
        """Hold the arm softly, then touch it so many times."""
        self.change(mode=MODES[-1])
        self.run_on(1.0)
        for _ in range(contacts):
            self.contact()

    def contact(self):
        """Change something, touch the arm, and let go."""
        random = self.random
        self.least = self.balance
        if random.random() < 0.6:
            self.change_law()
        if random.random() < 0.5:
            self.jump()
        direction = random.normal(size=3)
        direction /= np.linalg.norm(direction)
        force = random.uniform(0.2, 1.0) * self.strength()
        moment = random.uniform(-1.0, 1.0, 3) * 0.05 * force
        self.wrench = np.append(force * direction, moment)
        if random.random() < 0.4:
            self.wall = self.tip() + random.uniform(0.0, 0.03) * direction, -direction
        self.run_on(random.uniform(0.05, 0.4))
        self.wrench = np.zeros(6)
        self.run_on(random.uniform(0.0, 0.2))
        self.wall = None
        self.run_on(random.uniform(0.0, 0.2))

    def run_on(self, duration):
        for _ in range(round(duration / self.period)):
            self.cycle()

    def change_law(self):
        random, n = self.random, self.model.n
        mode = 'gravity_compensation' if random.random() < 0.1 else str(random.choice(MODES))
        was = self.parameters.get('mode', 'gravity_compensation')
        self.change(
            ramp_time=float(random.choice([0.0, 0.05, 0.5])),
            mode=mode,
            impedance_tip_stiffness=np.append(self.drawn(2000.0, 3), self.drawn(80.0, 3)),
            impedance_stiffness=self.drawn(400.0, n),
            impedance_nullspace_stiffness=self.drawn(60.0, n),
            impedance_frame=str(random.choice(['base', 'reference'])),
            impedance_damping_ratio=float(random.choice([0.1, random.uniform(0.3, 1.2), 2.0])),
        )
        if was == 'gravity_compensation':  # setpoints begin where the arm is
            self.setpoint = self.simulation.position

    def change(self, **changes):
        super().change(**changes)
        self.rates = self.pipeline.settings.torque_rate_limit

    def drawn(self, usual, count):
        """Return stiffness up to a largest one, and now and then none or that one."""
        random = self.random
        ends = random.choice([0.0, self.stiffest or usual], count)
        return np.where(random.random(count) < 0.15, ends, random.uniform(0.0, usual, count))

    def jump(self):
        random, n = self.random, self.model.n
        if random.random() < 0.5:
            around = np.clip(self.setpoint - self.start, -SPACE, SPACE) + self.start
            jumped = around + random.uniform(-STEP, STEP, n)
            near = np.clip(jumped, self.start - SPACE, self.start + SPACE)
            self.setpoint = np.clip(near, self.setpoint - 0.99 * STEP, self.setpoint + 0.99 * STEP)
        else:
            pose = self.pose(self.setpoint)
            place = pose[:3, 3] + random.uniform(-0.15, 0.15, 3)
            turn = Rotation.from_rotvec(random.uniform(-0.4, 0.4, 3))
            xyzw = (turn * Rotation.from_matrix(pose[:3, :3])).as_quat()
            self.asked += 1
            self.refused += self.core.aim_tip(place, xyzw).cause != core.Cause.none


def row(case):
    """Return the line of what one arm does at a rate."""
    name, rate, seed, contacts, stiffest = case
    arm = ShakenArm(name, rate, seed, stiffest)
    arm.shake(contacts)
    moved = np.abs(arm.simulation.position - arm.start).max()
    share = 100.0 * arm.saturated * arm.period / arm.time
    return (
        f'{name:13} {rate:5.0f} {contacts:5d} {arm.time:6.0f} {arm.rise:7.3f} {arm.highest:7.3f} '
        f'{arm.beyond[0]:9.1e} {arm.beyond[1]:9.1e} {share:5.1f} {moved:5.2f} '
        f'{arm.refused:4d} of {arm.asked:4d}'
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('arms', nargs='*', choices=[*ARMS, []], metavar='ARM')
    parser.add_argument('--rate', type=float, action='append')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--contacts', type=int, default=1000)
    parser.add_argument('--stiffest', type=float, default=STIFFEST)
    parser.add_argument('--processes', type=int, default=os.cpu_count())
    given = parser.parse_args()
    print('Rise, highest [J]; beyond effort, rate limit [N m]; cycles at a limit [%]; moved [rad]')
    print(
        'arm            rate contacts  s    rise highest    effort      rate  at it moved '
        'refused targets'
    )
    cases = [
        (name, rate, given.seed, given.contacts, given.stiffest)
        for name in given.arms or SHAKEN
        for rate in given.rate or (1000.0, 250.0)
    ]
    with ProcessPoolExecutor(given.processes) as processes:
        for line in processes.map(row, cases):
            print(line, flush=True)


if __name__ == '__main__':
    main()
