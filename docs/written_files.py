# SPDX-License-Identifier: Apache-2.0
"""What scripts that write files share: they write, or with ``--check`` say what differs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write_or_check(texts: Mapping[Path, str], is_check: bool | None = None) -> None:
    """
    Write each text into its file; with ``--check`` exit with 1 where a file says anything else.

    Parameters
    ----------
    texts : mapping
        The text that is to stand in each file.
    is_check : bool, optional
        Whether to compare only; by default, whether ``--check`` is on the command line.
    """
    if not ('--check' in sys.argv[1:] if is_check is None else is_check):
        for path, text in texts.items():
            path.write_text(text, encoding='utf-8')
        return
    differences = [difference(path, text) for path, text in texts.items()]
    exit_with([line for line in differences if line])


def difference(path: Path, text: str) -> str:
    """Return where a file differs from its text, in a line; nothing where it does not."""
    written = path.read_text(encoding='utf-8')
    if written == text:
        return ''
    lines = zip_longest(written.splitlines(), text.splitlines())
    number = next((k for k, (one, other) in enumerate(lines, 1) if one != other), 1)
    where, script = f'{path.relative_to(ROOT)}:{number}', Path(sys.argv[0]).resolve()
    return f'{where}: is not what its script writes; run: python {script.relative_to(ROOT)}'


def exit_with(faults: list[str]) -> None:
    """Print the faults, a line each, and exit with 1 where there is any."""
    if faults:
        print('\n'.join(faults))
        sys.exit(1)
