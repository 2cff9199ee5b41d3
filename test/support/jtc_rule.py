# SPDX-License-Identifier: Apache-2.0
"""
The ROS 2 joint trajectory controller on effort interfaces, by its own rule, on a simulated arm.

From its documentation and sources (trajectory.cpp, joint_trajectory_controller.cpp of
ros2_controllers): between two points positions are a straight line; a cubic where both have
velocities; a quintic where both have accelerations, too. Effort is a straight line where both have
some, else zero. After the last point, that is held with its effort. The command of a cycle is the
effort for the next one plus the PID of this one's errors.
"""

import numpy as np
from scipy.interpolate import BPoly


class JointTrajectoryController:
    """A trajectory of all joints being executed, begun at time zero; PD with gains (n,)."""

    def __init__(self, trajectory, kp, kd):
        self.trajectory, self.kp, self.kd = trajectory, kp, kd
        given = trajectory.times, trajectory.positions
        self.segments = [
            (begin, end, self._segment(i, end - begin))
            for i, (begin, end) in enumerate(zip(given[0][:-1], given[0][1:], strict=True))
        ]

    def _segment(self, i, duration):
        rows = [self.trajectory.positions, self.trajectory.velocities]
        rows.append(self.trajectory.accelerations)
        known = [row for row in rows if np.isfinite(row[i : i + 2]).all()]
        ends = np.array([[row[i] for row in known], [row[i + 1] for row in known]])
        return BPoly.from_derivatives([0.0, duration], ends)

    def sample(self, time):
        """Return position, velocity and effort, each of shape (n,)."""
        trajectory = self.trajectory
        if time < trajectory.times[0]:
            raise ValueError('before the first point it begins with a state of its own')
        for i, (begin, end, path) in enumerate(self.segments):
            if begin <= time < end:
                s = (time - begin) / (end - begin)
                effort = (1.0 - s) * trajectory.efforts[i] + s * trajectory.efforts[i + 1]
                return path(time - begin), path(time - begin, 1), effort
        return (
            trajectory.positions[-1],
            np.nan_to_num(trajectory.velocities[-1]),
            trajectory.efforts[-1],
        )


def executed(simulation, controller, duration):
    """
    Return the errors, shape (N, n), of an arm that starts at rest on the first point.

    The simulation's time step is the period of the controller: the command of a cycle is the
    effort of the next one and the feedback of this one's errors.
    """
    simulation.reset(controller.trajectory.positions[0])
    steps = round(duration / simulation.time_step)
    wanted = [controller.sample(k * simulation.time_step) for k in range(steps + 1)]
    errors = []
    for (position, velocity, _), (_, _, effort) in zip(wanted[:-1], wanted[1:], strict=True):
        errors.append(position - simulation.position)
        feedback = controller.kp * errors[-1] + controller.kd * (velocity - simulation.velocity)
        simulation.step(effort + feedback)
    return np.array(errors)


def rms(errors):
    return float(np.sqrt(np.mean(errors**2)))
