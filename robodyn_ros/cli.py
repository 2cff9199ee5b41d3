# SPDX-License-Identifier: Apache-2.0
"""The ``robodyn`` command; what it can do is in ``robodyn_ros.commands``."""

from __future__ import annotations

import click

from robodyn_ros.commands.analysis import ratios, split, structure
from robodyn_ros.commands.arm_options import examples
from robodyn_ros.commands.contact import contact_thresholds_command
from robodyn_ros.commands.demonstration import demo, identify_demo
from robodyn_ros.commands.description import check, dh, params
from robodyn_ros.commands.effort import effort_command, payload_command
from robodyn_ros.commands.excitation import excite_command
from robodyn_ros.commands.identification import identify_command
from robodyn_ros.commands.motion import simulate, torque
from robodyn_ros.commands.node import node
from robodyn_ros.commands.products import export
from robodyn_ros.commands.report import report
from robodyn_ros.errors import RobodynError

# What the library calls an argument, and which option it is here.
_OPTIONS = {
    'base_link': '--base',
    'tip_link': '--tip',
    'locked_positions': '--lock',
    'argument time_step': '--time-step',
    'kp': '--kp',
    'kd': '--kd',
    'argument duration': '--duration',
    'argument harmonics': '--harmonics',
    'argument margin': '--margin',
    'argument poses': '--poses',
    'watched link': '--watch',
    'box': '--box',
    'mimic': '--mimic',
}


_LONGEST_SUMMARY = 200  # characters


class _InOrder(click.Group):
    """Lists the commands as they were added, first what a new user needs first, in whole words."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summaries, wrapped where click would cut them short."""
        commands = self.commands.items()
        rows = [(name, each.get_short_help_str(_LONGEST_SUMMARY)) for name, each in commands]
        with formatter.section('Commands'):
            formatter.write_dl(rows)


@click.group(
    cls=_InOrder,
    context_settings={'help_option_names': ['-h', '--help']},
    epilog=examples(
        'robodyn check urdf/puma560.urdf',
        'robodyn report urdf/puma560.urdf -o puma560.html',
        'robodyn COMMAND --help',
    ),
)
@click.version_option(package_name='robodyn-ros')
def robodyn() -> None:
    """
    Dynamics of serial arms, from URDF to torque.

    URDF is a file, or - for standard input. Exit codes: 0 well; 1 ``check`` found warnings, or the
    demonstration failed; 2 something that was given is wrong, and the message says what.
    """


for command in (
    dh,
    check,
    params,
    structure,
    ratios,
    split,
    torque,
    simulate,
    excite_command,
    identify_command,
    effort_command,
    payload_command,
    contact_thresholds_command,
    report,
    export,
    demo,
    identify_demo,
    node,
):
    robodyn.add_command(command)


def main() -> None:
    """Run the command; an error that the package raises on purpose is shown as one line."""
    try:
        robodyn()
    except (RobodynError, OSError) as error:
        click.echo(f'Error: {_in_options(error)}', err=True)
        raise SystemExit(2) from error


def _in_options(error: RobodynError | OSError) -> str:
    """Return an error's text; arguments are named as the options that give them."""
    if not isinstance(error, RobodynError):
        return str(error)
    element, allowed = _OPTIONS.get(error.element, error.element), error.allowed
    if error.choice is not None:
        argument, value = error.choice
        allowed += f', unless {_OPTIONS[argument]} {value}'
    return str(type(error)(element, error.value, allowed))


if __name__ == '__main__':
    main()
