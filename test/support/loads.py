# SPDX-License-Identifier: Apache-2.0
"""A load as part of a URDF, which Pinocchio and MuJoCo read by themselves."""

import numpy as np


def carrying(urdf, link, mass, center_of_mass=(0.0, 0.0, 0.0), inertia=None):
    """Return the URDF text with a body fixed to a link; inertia about its centre of mass."""
    inertia = np.zeros((3, 3)) if inertia is None else np.asarray(inertia)
    tensor = ' '.join(
        f'i{"xyz"[i]}{"xyz"[j]}="{float(inertia[i, j])!r}"' for i in range(3) for j in range(i, 3)
    )
    center = ' '.join(repr(float(value)) for value in center_of_mass)
    name = f'load_on_{link}'
    body = (
        f'<link name="{name}"><inertial><origin xyz="{center}"/><mass value="{mass!r}"/>'
        f'<inertia {tensor}/></inertial></link>'
        f'<joint name="{name}_joint" type="fixed"><parent link="{link}"/>'
        f'<child link="{name}"/></joint>'
    )
    return urdf.replace('</robot>', body + '</robot>')
