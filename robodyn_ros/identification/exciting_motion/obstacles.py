# SPDX-License-Identifier: Apache-2.0
"""Regions that an arm must stay out of: half-spaces and boxes, and which of its points count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_sequence
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dh.table import DHTable
from robodyn_ros.errors import InvalidArgument, NoSuchName, Phrase
from robodyn_ros.model import RobotModel
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray, cross

SPACING = 0.05
"""Between the points that stand for a link, along it [m]."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkPoint(Record):
    """
    A ball fixed to a link, to be kept out of obstacles.

    Parameters
    ----------
    link : str
    point : array-like, shape (3,)
        Its centre in the link's frame [m].
    radius : float
        [m]
    """

    link: str
    point: ArrayLike = (0.0, 0.0, 0.0)
    radius: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, 'point', checked_array('point', self.point, (3,)))
        if not 0 <= self.radius < np.inf:
            raise InvalidArgument('argument radius', self.radius, 'zero or more [m]')
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class HalfSpace(Record):
    """
    What lies behind a plane: ``normal . p < offset``; a table is ``HalfSpace((0, 0, 1), 0.0)``.

    Parameters
    ----------
    normal : array-like, shape (3,)
        Out of the region, in base link axes; of any length but zero.
    offset : float
        Distance of the plane from the base link's origin along the normal [m].
    watched : sequence of str or LinkPoint, optional
        Links, as straight lines between their joints, and balls that stay out; every moving link
        where not given.
    """

    normal: ArrayLike
    offset: float
    watched: Sequence[str | LinkPoint] | None = None

    def __post_init__(self) -> None:
        normal = checked_array('normal', self.normal, (3,))
        length = float(np.linalg.norm(normal))
        if not length > 0:
            raise InvalidArgument('argument normal', tuple(normal), 'a vector that is not zero')
        object.__setattr__(self, 'normal', normal / length)
        if not np.isfinite(self.offset):
            raise InvalidArgument('argument offset', self.offset, 'a finite number')
        object.__setattr__(self, 'offset', float(self.offset))
        object.__setattr__(self, 'watched', _in_a_tuple(self.watched))
        super().__post_init__()

    def distance(self, points: FloatArray) -> FloatArray:
        """Return how far points (..., 3) are outside, negative inside [m]."""
        return points @ np.asarray(self.normal) - self.offset

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return the derivative of ``distance`` by the point (..., 3)."""
        return np.broadcast_to(np.asarray(self.normal), points.shape)


@dataclass(frozen=True, eq=False, repr=False)
class Box(Record):
    """
    A box, which may be turned.

    Parameters
    ----------
    lower, upper : array-like, shape (3,)
        Corners in the box's own frame [m].
    pose : array-like, shape (4, 4), optional
        Of that frame in the base link's, which it is where not given.
    watched : sequence of str or LinkPoint, optional
        What stays out, as of a ``HalfSpace``.
    """

    lower: ArrayLike
    upper: ArrayLike
    pose: ArrayLike = field(default_factory=lambda: np.eye(4))
    watched: Sequence[str | LinkPoint] | None = None

    def __post_init__(self) -> None:
        lower = checked_array('lower', self.lower, (3,))
        upper = checked_array('upper', self.upper, (3,))
        if (lower >= upper).any():
            raise InvalidArgument('box', (tuple(lower), tuple(upper)), 'lower less than upper')
        pose = checked_array('pose', self.pose, (4, 4))
        rotation = pose[:3, :3]
        if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6) or not np.allclose(
            pose[3], (0, 0, 0, 1)
        ):
            raise InvalidArgument(
                'box pose', Phrase('no rotation and translation'), 'a rigid transform'
            )
        for name, value in (('lower', lower), ('upper', upper), ('pose', pose)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, 'watched', _in_a_tuple(self.watched))
        super().__post_init__()

    def distance(self, points: FloatArray) -> FloatArray:
        """Return how far points (..., 3) are outside, negative inside [m]."""
        beyond = self._beyond(points)[0]
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)
        return outside + np.minimum(beyond.max(axis=-1), 0.0)

    def gradient(self, points: FloatArray) -> FloatArray:
        """Return the derivative of ``distance`` by the point (..., 3)."""
        beyond, sign = self._beyond(points)
        outward = np.maximum(beyond, 0.0)
        length = np.linalg.norm(outward, axis=-1, keepdims=True)
        nearest = np.eye(3)[beyond.argmax(axis=-1)]
        direction = np.where(length > 0, outward / np.maximum(length, 1e-300), nearest)
        return (direction * sign) @ np.asarray(self.pose)[:3, :3].T

    def _beyond(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        pose, lower, upper = (np.asarray(each) for each in (self.pose, self.lower, self.upper))
        own = (points - pose[:3, 3]) @ pose[:3, :3]
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        return np.abs(own - middle) - half, np.where(own < middle, -1.0, 1.0)


Obstacle = HalfSpace | Box


@dataclass(frozen=True, eq=False, repr=False)
class WatchedPoints(Record):
    """
    Points of an arm that are kept out of obstacles.

    Attributes
    ----------
    names : tuple of str
        Of their links.
    body : array of int, shape (m,)
        Which joint they move with.
    point : array, shape (m, 3)
        In the DH frame of that joint [m].
    radius : array, shape (m,)
        Distance that they keep beside the margin [m].
    """

    names: tuple[str, ...]
    body: np.ndarray
    point: FloatArray
    radius: FloatArray

    def positions(self, frames: FloatArray) -> FloatArray:
        """Return the points (N, m, 3) in the base link's frame from DH frames (N, n, 4, 4)."""
        placed = frames[:, self.body]
        return (placed[..., :3, :3] @ self.point[:, :, None])[..., 0] + placed[..., :3, 3]

    def pulled_back(
        self, frames: FloatArray, points: FloatArray, forces: FloatArray, dh: DHTable
    ) -> FloatArray:
        """Return the sum of J_pᵀ f (N, n) over the points p with f (N, m, 3)."""
        carried = dh.carries[self.body].T
        z, origin = frames[..., :3, 2], frames[..., :3, 3]
        turning = cross(z[:, :, None], points[:, None] - origin[:, :, None])
        moved = np.where(dh.prismatic[:, None, None], z[:, :, None], turning)
        return ((moved * forces[:, None]).sum(axis=-1) * carried).sum(axis=-1)


def watched_points(model: RobotModel, watched: Sequence[str | LinkPoint] | None) -> WatchedPoints:
    """
    Return the points that stand for links and balls.

    A link is a straight line: from its joint's origin to each next joint's (for a last one, to the
    tip), or, if it is fixed to such a link, from that one's joint to its own frame. Points on it
    are no further apart than ``SPACING``, each with half of their distance as radius.

    Parameters
    ----------
    model : RobotModel
    watched : sequence of str or LinkPoint, or None
        Names of links, or balls; None: every link that moves.

    Raises
    ------
    NoSuchName
        A link is not one of the arm's, or does not move.
    """
    moving = [name for name, (body, _) in model.link_frames.items() if body >= 0]
    rows: list[tuple[str, int, FloatArray, float]] = []
    for each in moving if watched is None else watched:
        link = each if isinstance(each, str) else each.link
        if link not in moving:
            known = ', '.join(map(repr, moving))
            raise NoSuchName('watched link', link, f'one that moves: {known}')
        body, placed = model.link_frames[link]
        if isinstance(each, LinkPoint):
            point = placed[:3, :3] @ np.asarray(each.point) + placed[:3, 3]
            rows.append((link, body, point, float(each.radius)))
            continue
        for begin, end in _lines(model, link):
            length = float(np.linalg.norm(end - begin))
            pieces = max(1, int(np.ceil(length / SPACING)))
            for k in range(pieces + 1):
                at = begin + (end - begin) * (k / pieces)
                rows.append((link, body, at, length / pieces / 2))
    names, bodies, points, radius = zip(*rows, strict=True)
    return WatchedPoints(
        names, np.array(bodies, dtype=int), np.array(points), np.array(radius, dtype=float)
    )


def _lines(model: RobotModel, link: str) -> list[tuple[FloatArray, FloatArray]]:
    """Return both ends of the lines that stand for a link, in its body's DH frame."""
    first: dict[int, str] = {}
    for name, (index, _) in model.link_frames.items():
        first.setdefault(index, name)
    body, placed = model.link_frames[link]
    carrier = model.link_frames[first[body]][1][:3, 3]
    if link != first[body]:
        return [(carrier, placed[:3, 3])]
    dh = model.dh
    behind = np.flatnonzero(dh.parents == body).tolist()
    if not behind:
        return [(carrier, tip[:3, 3]) for tip in dh.tip_transforms[dh.tips == body]]
    frames = frame_transforms(dh, np.zeros(model.n))
    here, origins = frames[body], [(frames[k] @ model.link_frames[first[k]][1]) for k in behind]
    return [(carrier, here[:3, :3].T @ (there[:3, 3] - here[:3, 3])) for there in origins]


@dataclass(frozen=True, eq=False)
class Region:
    """
    An obstacle, the points that stay out of it, and how far.

    Attributes
    ----------
    obstacle : HalfSpace or Box
    points : WatchedPoints
    margin : float
        Beside the points' radii [m].
    """

    obstacle: Obstacle
    points: WatchedPoints
    margin: float

    def spare(self, placed: FloatArray) -> FloatArray:
        """Return how much further out than asked for points (N, m, 3) are, (N, m) [m]."""
        return self.obstacle.distance(placed) - self.points.radius - self.margin


def regions(
    model: RobotModel, obstacles: Sequence[Obstacle], margin: float, tip_height: float | None
) -> list[Region]:
    """
    Return the regions that an arm stays out of.

    Parameters
    ----------
    model : RobotModel
    obstacles : sequence of HalfSpace and Box
    margin : float
        Distance from each [m].
    tip_height : float, optional
        Least height of each tip's origin above the base link's, against gravity, or along z where
        there is none [m].

    Raises
    ------
    NoSuchName, InvalidArgument
    """
    kept_out = checked_sequence('obstacles', obstacles, (HalfSpace, Box), 'a HalfSpace or a Box')
    result = [Region(each, watched_points(model, each.watched), margin) for each in kept_out]
    if tip_height is not None:
        up = -model.gravity if model.gravity.any() else np.array([0.0, 0.0, 1.0])
        floor = HalfSpace(up, tip_height, tuple(map(LinkPoint, model.tip_links)))
        result.append(Region(floor, watched_points(model, floor.watched), 0.0))
    return result


def _in_a_tuple(watched: Sequence[str | LinkPoint] | None) -> tuple[str | LinkPoint, ...] | None:
    if watched is None:
        return None
    return (watched,) if isinstance(watched, str) else tuple(watched)
