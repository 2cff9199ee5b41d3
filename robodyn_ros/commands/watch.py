# SPDX-License-Identifier: Apache-2.0
"""An arm live in a browser: ``watch`` starts the node that serves the page."""

from __future__ import annotations

from pathlib import Path

import click

from robodyn_ros.commands.node import run_node
from robodyn_ros.commands.options import UserPath, examples


@click.command(
    'watch',
    epilog=examples(
        'robodyn watch --urdf arm.urdf --tip tool0',
        'robodyn watch --urdf arm.urdf --identified identified/identified.yaml --port 9000',
        'robodyn watch -- -p watched_node:=inverse_dynamics_controller',
    ),
)
@click.option(
    '--urdf', type=UserPath(dir_okay=False), help='Not given: the topic robot_description.'
)
@click.option('--base', default='', help='Link that the chain begins at; not given: the root.')
@click.option('--tip', default='', help='Link that the chain ends at; not given: the only end.')
@click.option(
    '--identified',
    type=UserPath(dir_okay=False),
    help='YAML that ``robodyn identify`` wrote: the band of the residual follows from it.',
)
@click.option('--port', type=click.IntRange(0, 65535), default=8765, show_default=True)
@click.option(
    '--host',
    default='127.0.0.1',
    show_default=True,
    help='Address to serve on; beyond the loopback whoever reaches it can read the arm.',
)
@click.argument('arguments', nargs=-1, type=click.UNPROCESSED)
def watch(
    urdf: Path | None,
    base: str,
    tip: str,
    identified: Path | None,
    port: int,
    host: str,
    arguments: tuple[str, ...],
) -> None:
    """
    Show an arm live in a browser of this machine, beside its dynamics node.

    The arm as it turns, torque by part, the force on its tip, contacts, the residual against its
    band. It reads only. ARGUMENTS, after --, are the node's: -p NAME:=VALUE, -r FROM:=TO.
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
