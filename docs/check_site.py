# SPDX-License-Identifier: Apache-2.0
"""
Check the site that `make docs` builds: its links, what its front says, and how wide its pages are.

    python docs/check_site.py build/docs

The widths are those in a Chromium, where one is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from lxml import html
from written_files import ROOT, exit_with

sys.path.insert(0, str(ROOT / 'test' / 'support'))

from browser import chromium, opened

DOCS = ROOT / 'docs'
GENERATED = ('genindex', 'py-modindex', 'search')
WIDE_PAGES = (
    'index',
    'installation',
    'quick_start',
    'parameters',
    'safety',
    'troubleshooting',
    'evidence',
    'python_api',
    'public_urdfs',
)
WIDTHS = (390, 1440)


def links(site: Path) -> Iterator[str]:
    """Yield every link that leads nowhere."""
    pages = {
        path: html.parse(str(path)).getroot()
        for path in site.glob('*.html')
        # Of a page that was deleted, Sphinx leaves what it made of it.
        if (DOCS / f'{path.stem}.md').exists() or path.stem in GENERATED
    }
    ids = {path: {each.get('id') for each in root.iter()} for path, root in pages.items()}
    for path, root in pages.items():
        for element, _, link, _ in root.iterlinks():
            if not leads_somewhere(path, link, ids):
                yield f'{path.name}:{element.sourceline}: {link} leads nowhere'


def leads_somewhere(page: Path, link: str, ids: Mapping[Path, Set[str | None]]) -> bool:
    """Return whether a link of a page leads to another site, a file, or an element of a page."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target in ids and parts.fragment:
        return unquote(parts.fragment) in ids[target]
    return target.exists()


def front(site: Path) -> Iterator[str]:
    """Yield what index and reference do not show: installation, licence, a summary with links."""
    index = html.parse(str(site / 'index.html')).getroot()
    if not index.xpath('//aside//a[@href="installation.html"]'):
        yield 'index.html: its contents have no link to the installation'
    if 'Apache-2.0' not in index.find('.//footer').text_content():
        yield 'index.html: its foot does not name the licence'
    # The summary comes before the reference, and leads into it.
    tables = html.parse(str(site / 'python_api.html')).getroot().xpath('//article//table')
    summary = set(tables[0].xpath('.//a/@href')) if tables else set()
    for link in sorted({'#models', '#dynamics', '#errors'} - summary):
        yield f'python_api.html: its first table has no link to {link}'


def widths(site: Path) -> Iterator[str]:
    """Yield what is wider than a phone or a desktop."""
    with chromium() as browser:
        for width in WIDTHS:
            for name in WIDE_PAGES:
                with opened(browser, site / f'{name}.html', width) as page:
                    found = page.evaluate('document.documentElement.scrollWidth')
                    if found > width:
                        yield f'{name}.html: {found} pixels wide on a screen of {width}'
                    # A picture of a page is one of a page that is as wide.
                    shown = page.eval_on_selector_all(
                        'article img',
                        'all => all.filter(x => x.offsetWidth).map(x => x.naturalWidth)',
                    )
                    if width <= 1000 and max(shown, default=0) > 800:
                        yield f'{name}.html: a picture of {max(shown)} pixels on one of {width}'
                    cut = page.eval_on_selector_all(
                        'article .table-wrapper',
                        'all => all.filter(x => x.scrollWidth > x.clientWidth + 1).length',
                    )
                    if width >= 1000 and cut:
                        yield f'{name}.html: {cut} tables are wider than the page'


if __name__ == '__main__':
    folder = Path(sys.argv[1]).resolve()
    faults = [*links(folder), *front(folder)]
    try:
        faults += widths(folder)
    except pytest.skip.Exception as reason:
        print(f'the widths of the pages are not checked: {reason}')
    exit_with(faults)
