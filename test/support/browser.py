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
FAULTS = """() => {
    const faults = [];
    const root = document.documentElement;
    if (root.scrollWidth > window.innerWidth)
        faults.push(`page ${root.scrollWidth} wide of ${window.innerWidth}`);
    for (const element of document.querySelectorAll('body *:not(svg *)')) {
        const scrolls = getComputedStyle(element).overflowX === 'auto';
        if (!scrolls && element.clientWidth && element.scrollWidth > element.clientWidth + 1)
            faults.push(`<${element.tagName}> ${element.textContent.slice(0, 40)}`);
    }
    for (const svg of document.querySelectorAll('figure svg')) {
        const paper = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll('text')];
        const boxes = texts.map(text => text.getBoundingClientRect());
        boxes.forEach((box, i) => {
            const where = `${svg.getAttribute('aria-label')}: ${texts[i].textContent}`;
            if (box.left < paper.left - 2 || box.right > paper.right + 2
                || box.top < paper.top - 2 || box.bottom > paper.bottom + 2)
                faults.push(`outside: ${where}`);
            for (let j = 0; j < i; j++) {
                const other = boxes[j];
                const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
                const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
                if (wide > 3 && high > box.height / 3)
                    faults.push(`${texts[j].textContent} covers ${where}`);
            }
        });
    }
    return faults;
}"""


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
