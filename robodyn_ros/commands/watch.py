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
    Show an arm live in a browser, beside its dynamics node.

    Shows the moving arm, torque by part, the force on the tip, contacts, and the residual beside
    its band. It only reads. ARGUMENTS, after --, are the node's: -p NAME:=VALUE, -r FROM:=TO.

    Parameters
    ----------
    urdf :
        URDF file; default: the topic robot_description.
    identified :
        YAML that ``robodyn identify`` wrote, for the band of the residual.
    host :
        Address to serve on; beyond the loopback everyone who reaches it can see the arm.
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
