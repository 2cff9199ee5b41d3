# SPDX-License-Identifier: Apache-2.0
"""An arm live in a browser: ``watch`` starts the node that serves the page."""

from __future__ import annotations

from typing import Annotated

import click

from robodyn_ros.commands.node import run_node
from robodyn_ros.commands.options import InputFile, Rest, command


@command(
    'robodyn watch --urdf arm.urdf --tip tool0',
    'robodyn watch --urdf arm.urdf --identified identified/identified.yaml --port 9000',
    'robodyn watch -- -p watched_node:=inverse_dynamics_controller',
)
def watch(
    arguments: Rest = (),
    *,
    urdf: InputFile | None = None,
    base: str = '',
    tip: str = '',
    identified: InputFile | None = None,
    port: Annotated[int, click.IntRange(0, 65535)] = 8765,
    host: str = '127.0.0.1',
) -> None:
    """
    Show an arm live in a browser of this machine, beside its dynamics node.

    The arm as it turns, torque by part, the force on its tip, contacts, the residual against its
    band. It reads only. ARGUMENTS, after --, are the node's: -p NAME:=VALUE, -r FROM:=TO.

    Parameters
    ----------
    urdf :
        Not given: the topic robot_description.
    identified :
        YAML that ``robodyn identify`` wrote: the band of the residual follows from it.
    host :
        Address to serve on; beyond the loopback whoever reaches it can read the arm.
    """
    given = {
        'urdf_file': str(urdf.absolute()) if urdf else '',
        'identified_model': str(identified.absolute()) if identified else '',
        'base_link': base,
        'tip_link': tip,
        'host': host,
        'port': port,
    }
    run_node('watch_node', given, arguments)
