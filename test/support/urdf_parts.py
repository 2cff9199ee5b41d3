# SPDX-License-Identifier: Apache-2.0
"""Elements of a URDF as text, for arms that a test makes up."""

from __future__ import annotations

from collections.abc import Sequence

ELEMENTS = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')


def link(
    name: str,
    mass: float | None = None,
    center: Sequence[float] = (0, 0, 0),
    inertia: Sequence[float] = (),
) -> str:
    """Return a link: ixx iyy izz ixy ixz iyz as many as are given, the others zero."""
    if mass is None:
        return f'<link name="{name}"/>'
    moments = [*inertia, *(len(ELEMENTS) - len(inertia)) * [0]]
    tensor = ' '.join(f'{key}="{float(x)!r}"' for key, x in zip(ELEMENTS, moments))
    return (
        f'<link name="{name}"><inertial><origin xyz="{numbers(center)}"/>'
        f'<mass value="{float(mass)!r}"/><inertia {tensor}/></inertial></link>'
    )


def joint(
    name: str,
    parent: str,
    child: str,
    kind: str = 'continuous',
    *,
    xyz: Sequence[float] = (0, 0, 0),
    rpy: Sequence[float] = (0, 0, 0),
    axis: Sequence[float] = (0, 0, 1),
    more: str = '',
) -> str:
    """Return a joint; one that slides or turns within limits has them at 1, but for ``more``."""
    if kind in ('revolute', 'prismatic') and '<limit' not in more:
        more += '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{numbers(xyz)}" rpy="{numbers(rpy)}"/><axis xyz="{numbers(axis)}"/>'
        f'{more}</joint>'
    )


def robot(*parts: str) -> str:
    """Return the whole description."""
    return f'<robot name="r">{"".join(parts)}</robot>'


def numbers(values: Sequence[float]) -> str:
    """Return numbers as an attribute has them, to the last digit."""
    return ' '.join(repr(float(value)) for value in values)
