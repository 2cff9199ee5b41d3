# SPDX-License-Identifier: Apache-2.0
"""Pages as PDF, by an installed Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from robodyn_ros.errors import NoBackend, Phrase

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
_LONGEST_TIME = 120.0  # [s]
_LAST_LINES = 300  # characters


def browser_path() -> str:
    """
    Return the path of the browser that prints.

    Raises
    ------
    NoBackend
        There is none of ``BROWSERS`` on the path.
    """
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise NoBackend(
        '--pdf', Phrase('no browser found'), f'one of {", ".join(BROWSERS)} on the path'
    )


def print_page(browser: str, page: Path, pdf: Path) -> None:
    """
    Print a page into a PDF file.

    Parameters
    ----------
    browser : str
        See ``browser_path``.
    page : Path
        An HTML file of this package: nothing else should be opened so.
    pdf : Path
        What is written.

    Raises
    ------
    NoBackend
        It fails, or takes more than two minutes.
    """
    with tempfile.TemporaryDirectory() as profile:
        printed = Path(profile, 'page.pdf')
        command = [
            browser,
            '--headless',
            '--disable-gpu',
            '--no-first-run',
            '--disable-background-networking',
            '--disable-component-update',
            '--no-pdf-header-footer',
            f'--user-data-dir={profile}',
            f'--print-to-pdf={printed}',
            page.resolve().as_uri(),
        ]
        if hasattr(os, 'geteuid') and os.geteuid() == 0:
            command.insert(1, '--no-sandbox')  # which root cannot have
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=_LONGEST_TIME, check=False, text=True
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoBackend('--pdf', browser, f'a browser that prints: {error}') from error
        if done.returncode or not printed.is_file():
            reason = done.stderr.strip()[-_LAST_LINES:]
            raise NoBackend('--pdf', browser, f'a browser that prints; it said: {reason}')
        shutil.copyfile(printed, pdf)
