# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site: Markdown pages by MyST, the API reference from docstrings."""

import re
from pathlib import Path
from xml.etree import ElementTree

from sphinx.application import Sphinx

import robodyn_ros

HERE = Path(__file__).resolve().parent

project = 'robodyn_ros'
author = 'robodyn_ros maintainers'
copyright = 'robodyn_ros maintainers, Apache-2.0'
version = release = robodyn_ros.__version__

extensions = [
    'myst_parser',
    'sphinx.ext.autodoc',
    'sphinx.ext.napoleon',
    'sphinx_click',
    'sphinx_copybutton',
]
myst_heading_anchors = 3
highlight_language = 'text'  # of fences that name none

smartquotes = False  # they make dashes of options

autodoc_member_order = 'bysource'
autodoc_typehints = 'none'
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = 'furo'
html_title = 'robodyn_ros'
html_static_path = ['images']
html_theme_options: dict[str, object] = {
    'light_css_variables': {'color-brand-primary': '#0066a6', 'color-brand-content': '#0066a6'},
    'dark_css_variables': {'color-brand-primary': '#5db4f0', 'color-brand-content': '#5db4f0'},
}
html_css_files = ['site.css']
html_static_path.append('site')
# The one place that names the repository, where the maintainers have filled it in.
repository = ElementTree.parse(HERE.parent / 'package.xml').findtext('url[@type="repository"]')
if repository and re.match('https://(github.com|gitlab.com|bitbucket.org)/', repository):
    html_theme_options |= {
        'source_repository': repository.removesuffix('.git'),
        'source_branch': 'main',
        'source_directory': 'docs/',
    }
copybutton_prompt_text = '$ '


def _listed_pages_that_exist(app: Sphinx, page: str, source: list[str]) -> None:
    """Take pages that a checkout does not have out of the contents."""
    if page == 'index':
        lines = source[0].split('\n')
        missing = [
            line
            for line in lines
            if re.fullmatch('[a-z_]+', line) and not (HERE / f'{line}.md').exists()
        ]
        source[0] = '\n'.join(line for line in lines if line not in missing)


def _clone_command(app: Sphinx, page: str, source: list[str]) -> None:
    """Write how the repository is cloned where a page asks for it, if package.xml names it."""
    command = (
        f'```bash\ngit clone {repository} robodyn_ros && cd robodyn_ros\n```' if repository else ''
    )
    source[0] = source[0].replace('<!-- clone command -->', command)


def _without_links_to_the_repository(app: Sphinx, page: str, source: list[str]) -> None:
    """Make links to folders and pages outside docs/ plain text; files are copied."""

    def text_or_link(found: re.Match[str]) -> str:
        target = HERE / found['path']
        return found['text'] if target.is_dir() or target.suffix == '.md' else found[0]

    pattern = r'\[(?P<text>[^]]+)\]\((?P<path>\.\./[^)#]+)(#[^)]*)?\)'
    source[0] = re.sub(pattern, text_or_link, source[0])


def _stars_as_they_are(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Keep the star of a signature from beginning an emphasis."""
    lines[:] = [line.replace(' *,', r' \*,') for line in lines]


def setup(app: Sphinx) -> None:
    """Put them in."""
    app.connect('source-read', _listed_pages_that_exist)
    app.connect('source-read', _clone_command)
    app.connect('source-read', _without_links_to_the_repository)
    app.connect('autodoc-process-docstring', _stars_as_they_are, priority=1)
