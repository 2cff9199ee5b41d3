# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for the tests of pages: the system's own, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--no-first-run',
)

# Elements whose text is wider than they are, and do not scroll; texts of figures that leave the
# figure; and pairs of texts in one figure that cover each other.
FAULTS = Path(__file__).with_name('page_faults.js').read_text(encoding='utf-8')


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser; skip where there is none."""
    path = shutil.which('chromium') or shutil.which('chromium-browser')
    if path is None:
        pytest.skip('chromium is not installed: apt install chromium')
    playwright = pytest.importorskip('playwright.sync_api')
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, page: Path, width: int, scheme: str = 'light') -> Iterator[Any]:
    """Yield an opened page, and fail if anything went to its console."""
    context = browser.new_context(viewport={'width': width, 'height': 900}, color_scheme=scheme)
    tab = context.new_page()
    messages: list[str] = []
    tab.on('console', lambda message: messages.append(f'{message.type}: {message.text}'))
    tab.on('pageerror', lambda error: messages.append(f'error: {error}'))
    tab.on('request', lambda request: _note_request(request.url, messages))
    try:
        tab.goto(page.as_uri())
        yield tab
        assert messages == [], messages
    finally:
        context.close()


def _note_request(url: str, messages: list[str]) -> None:
    if not url.startswith(('file:', 'data:')):
        messages.append(f'request: {url}')
