# SPDX-License-Identifier: Apache-2.0
"""The ``robodyn`` command; what it can do is in ``robodyn_ros.commands``."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import click

from robodyn_ros.commands.options import ending
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
    'argument effort_margin': '--margin',
    'argument effort_limits': '--effort-limit',
    'argument rms_effort_limits': '--rms-limit',
    'argument velocity_limits': '--velocity-limit',
    'argument acceleration_limits': '--acceleration-limit',
    'argument jerk_limits': '--jerk-limit',
    'argument tolerance': '--tolerance',
    'argument mass': '--mass',
    'parameter node': '--node',
}

# Each command, first what a new user needs first: its file in robodyn_ros/commands, its function.
_COMMANDS = {
    'dh': ('description', 'dh'),
    'check': ('description', 'check'),
    'params': ('description', 'params'),
    'structure': ('analysis', 'structure'),
    'ratios': ('analysis', 'ratios'),
    'split': ('analysis', 'split'),
    'torque': ('motion', 'torque'),
    'simulate': ('motion', 'simulate'),
    'retime': ('retiming', 'retime'),
    'excite': ('excitation', 'excite'),
    'identify': ('identification', 'identify'),
    'effort': ('effort', 'effort'),
    'gains': ('effort', 'gains'),
    'command-check': ('command_check', 'command_check'),
    'payload': ('effort', 'payload'),
    'contact-thresholds': ('contact', 'contact_thresholds'),
    'monitor': ('monitoring', 'monitor'),
    'plot': ('session', 'plot'),
    'report': ('report', 'report'),
    'export': ('export', 'export'),
    'demo': ('demonstration', 'demo'),
    'identify-demo': ('demonstration', 'identify_demo'),
    'float': ('softness', 'float_'),
    'soft': ('softness', 'soft'),
    'watch': ('watch', 'watch'),
    'node': ('node', 'node'),
    'status': ('running_node', 'status'),
    'set': ('running_node', 'set_'),
    'send': ('running_node', 'send'),
    'record': ('running_node', 'record'),
}
_LONGEST_SUMMARY = 200  # characters


class _Commands(click.Group):
    """The commands of the table: each imports its file when it is called, and no other's."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        file, function = _COMMANDS[cmd_name]
        return getattr(import_module(f'robodyn_ros.commands.{file}'), function)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of another name, say which one may be meant."""
        meant = get_close_matches(args[0], _COMMANDS, n=1)
        if args[0] not in _COMMANDS and meant:
            ctx.fail(f'No such command {args[0]!r}: is {meant[0]!r} meant?')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summaries, wrapped where click would cut them short."""
        commands = ((name, self.get_command(ctx, name)) for name in _COMMANDS)
        rows = [(name, x.get_short_help_str(_LONGEST_SUMMARY)) for name, x in commands if x]
        with formatter.section('Commands'):
            formatter.write_dl(rows)


@click.group(
    cls=_Commands,
    context_settings={'help_option_names': ['-h', '--help']},
    epilog=ending(
        'robodyn check urdf/puma560.urdf',
        'robodyn report urdf/puma560.urdf -o puma560.html',
        'robodyn COMMAND --help',
    ),
)
@click.version_option(package_name='robodyn-ros')
def robodyn() -> None:
    """
    Dynamics of serial arms, from URDF to torque.

    URDF is a file, or - for standard input. Exit codes: 0 success; 1 ``check`` found warnings, or
    the demonstration failed; 2 invalid input, and the message says what.
    """


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
        if error.strerror is None:
            return str(error)
        return f'file {error.filename!r}: {error.strerror[:1].lower()}{error.strerror[1:]}'
    element, allowed = _OPTIONS.get(error.element, error.element), error.allowed
    if error.choice is not None:
        argument, value = error.choice
        allowed += f', unless {_OPTIONS[argument]} {value}'
    return str(type(error)(element, error.value, allowed, unit=error.unit))


if __name__ == '__main__':
    main()
