# SPDX-License-Identifier: Apache-2.0
"""What one joint's motion makes of twists and energy forms, against matrix exponentials."""

import numpy as np
import pytest
from scipy.linalg import expm

from robodyn_ros.parameters.elimination import _joint_motion
from robodyn_ros.parameters.energy import recursion_matrix

POSITIONS = (0.3, -1.7, 2.9)


def functions(prismatic, q):
    """Return what the parts of an orbit are multiplied by: powers of q, or harmonics 0, 1, 2."""
    if prismatic:
        return [1.0, q, q**2 / 2]
    return [1.0, np.cos(q), np.sin(q), np.cos(2 * q), np.sin(2 * q)]


def moved(prismatic, q):
    """Return the transform of a joint at q."""
    t = np.eye(4)
    if prismatic:
        t[2, 3] = q
    else:
        t[:2, :2] = [[np.cos(q), -np.sin(q)], [np.sin(q), np.cos(q)]]
    return t


@pytest.mark.parametrize('prismatic', [False, True], ids=['revolute', 'prismatic'])
def test_energy_forms_are_the_sum_of_their_orbits_parts(prismatic):
    motion = _joint_motion(prismatic)
    for q in POSITIONS:
        total = sum(f * part for f, part in zip(functions(prismatic, q), motion.form_orbit))
        np.testing.assert_allclose(total, expm(q * motion.form_slope).T, atol=1e-12)
        np.testing.assert_allclose(
            total, recursion_matrix(moved(prismatic, q)).T, atol=1e-12
        )  # lambda_j of the appendix of Gautier and Khalil 1988


@pytest.mark.parametrize('prismatic', [False, True], ids=['revolute', 'prismatic'])
def test_twists_are_the_sum_of_their_orbits_parts(prismatic):
    # A twist (v, w), or (w, v), seen from a frame that has moved by q about or along z.
    motion = _joint_motion(prismatic)
    t = {q: moved(prismatic, q) for q in POSITIONS}
    for q in POSITIONS:
        total = sum(f * part for f, part in zip(functions(prismatic, q), motion.twist_orbit))
        rotation = t[q][:3, :3].T
        linear, angular = np.array([0.2, -0.5, 0.9]), np.array([0.7, 0.1, -0.3])
        seen = rotation @ (linear + np.cross(angular, t[q][:3, 3])), rotation @ angular
        axis = motion.axis
        # Whichever half the unit twist of a revolute joint is in holds the angular part.
        first_is_angular = bool(axis[:3].any()) != prismatic
        order = (1, 0) if first_is_angular else (0, 1)
        halves, expected = (linear, angular), np.concatenate([seen[k] for k in order])
        found = np.concatenate([halves[k] for k in order]) @ total
        np.testing.assert_allclose(found, expected, atol=1e-12)
