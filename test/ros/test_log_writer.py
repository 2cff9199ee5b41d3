# SPDX-License-Identifier: Apache-2.0
"""What a process prints leaves it without ever blocking it."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from robodyn_ros.ros import log_writer

PROGRAM = """
import os, sys, time, traceback
from robodyn_ros.ros.log_writer import LogWriter
log = LogWriter()
"""


def start(program, **options):
    return subprocess.Popen([sys.executable, '-c', PROGRAM + program], **options)


def outcome(program):
    """Return exit code, stdout and stderr of a program that somebody reads."""
    process = start(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=30.0)
    return process.returncode, out, err


def test_stdout_and_stderr_stay_apart_and_the_exit_code_is_kept():
    code, out, err = outcome(
        "print('for stdout')\nprint('for stderr', file=sys.stderr)\nsys.exit(3)"
    )
    assert (code, out, err) == (3, 'for stdout\n', 'for stderr\n')


def test_what_c_writes_goes_the_same_way():
    _, out, err = outcome("os.write(1, b'one\\n')\nos.write(2, b'two\\n')")
    assert (out, err) == ('one\n', 'two\n')


def test_traceback_of_an_exception_nobody_caught_is_written():
    code, _, err = outcome("raise RuntimeError('a bug')")
    assert code == 1
    assert err.endswith('RuntimeError: a bug\n') and 'Traceback' in err


def test_what_exit_handlers_print_is_written():
    program = PROGRAM.replace(
        'import os', "import atexit\natexit.register(lambda: print('last'))\nimport os"
    )
    process = subprocess.Popen(
        [sys.executable, '-c', program + "print('first')"], stdout=subprocess.PIPE, text=True
    )
    assert process.communicate(timeout=30.0)[0] == 'first\nlast\n'


def test_line_without_an_end_and_text_that_is_not_ascii_are_written():
    assert outcome("print('5 µs, no newline', end='')")[1] == '5 µs, no newline'


def test_order_is_kept_where_both_are_the_same_file(tmp_path):
    with open(tmp_path / 'log', 'w') as log:
        program = 'for i in range(100):\n    print(2 * i)\n    print(2 * i + 1, file=sys.stderr)'
        assert start(program, stdout=log, stderr=subprocess.STDOUT).wait(30.0) == 0
    lines = (tmp_path / 'log').read_text().splitlines()
    assert lines == [str(i) for i in range(200)]


def test_pipe_that_nobody_reads_blocks_nothing_and_lines_are_counted(tmp_path):
    lines, width = 40_000, 100
    report = tmp_path / 'report'
    process = start(
        f'longest = 0.0\n'
        f'for i in range({lines}):\n'
        f'    begin = time.monotonic()\n'
        f"    print(f'{{i:{width}}}', file=sys.stderr)\n"
        f'    longest = max(longest, time.monotonic() - begin)\n'
        f'time.sleep(0.5)\n'
        f'open({str(report)!r}, "w").write(f"{{longest}} {{log.dropped}}")\n',
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 30.0
    while not (report.exists() and report.read_text()):
        assert time.monotonic() < deadline, 'it blocks'
        time.sleep(0.05)
    longest, dropped = (float(word) for word in report.read_text().split())
    assert longest < 1.0
    # What was not dropped is in the pipe to us, in the writer, or was lost in between.
    kept = process.stderr.read().splitlines()
    numbers = [int(line) for line in kept if not line.startswith(b'...')]
    assert 0 < dropped < lines
    assert numbers[0] == 0 and len(numbers) + dropped >= lines * 0.99
    assert len(numbers) * width >= log_writer.CAPACITY * 0.9
    process.wait(60.0)


def test_dropped_lines_leave_a_mark_once_somebody_reads_again(tmp_path):
    done = tmp_path / 'done'
    process = start(
        f"for i in range(40_000):\n    print(f'{{i:100}}', file=sys.stderr)\n"
        f"open({str(done)!r}, 'w').close()\n"
        f"time.sleep(1.0)\nprint('at last', file=sys.stderr)\n",
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 30.0
    while not done.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    text = process.communicate(timeout=30.0)[1].decode()
    assert ' lines dropped: nobody read them\nat last\n' in text


def test_process_ends_although_nobody_reads():
    process = start(
        "for i in range(40_000):\n    print(f'{i:100}', file=sys.stderr)\n",
        stderr=subprocess.PIPE,
    )
    assert process.wait(60.0) == 0
    process.stderr.close()


def test_reader_that_goes_away_ends_nothing():
    process = start(
        'for i in range(200):\n    print(i, flush=True)\n    time.sleep(0.005)\nsys.exit(5)',
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(30.0) == 5


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_group_leaves_the_last_lines_to_be_written(number):
    process = start(
        f'import signal\n'
        f'told = []\n'
        f'signal.signal({int(number)}, lambda *_: told.append(True))\n'
        f"print('ready', flush=True)\n"
        f'while not told:\n    time.sleep(0.01)\n'
        f"time.sleep(0.2)\nprint('told to stop')",
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == 'ready\n'
    os.killpg(process.pid, number)
    assert process.communicate(timeout=30.0)[0] == 'told to stop\n'


def test_colours_are_those_of_a_terminal_where_one_is_behind():
    ours, theirs = pty.openpty()
    program = "print(os.environ.get('RCUTILS_COLORIZED_OUTPUT'))"
    environment = {k: v for k, v in os.environ.items() if not k.startswith('RCUTILS')}
    process = start(program, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment)
    assert process.communicate(timeout=30.0)[0] == '1\n'
    process = start(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.communicate(timeout=30.0)[0] == 'None\n'
    os.close(ours)
    os.close(theirs)
