# SPDX-License-Identifier: Apache-2.0
"""Check that the repository's XML is well-formed and that its package manifests are valid."""

import sys
from pathlib import Path

from catkin_pkg.package import InvalidPackage, parse_package
from lxml import etree

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = (
    'package.xml',
    'robodyn_interfaces/package.xml',
    'robodyn_controllers/package.xml',
)
PATTERNS = (
    'launch/**/*.xml',
    'urdf/**/*.urdf',
    'urdf/**/*.xacro',
    'config/**/*.xml',
    'robodyn_controllers/*.xml',
)


def faults() -> list[str]:
    """Return one line for each fault of each file; empty when all is well."""
    found = []
    for name in MANIFESTS:
        warnings: list[str] = []
        try:
            parse_package(str(ROOT / name), warnings=warnings)
        except InvalidPackage as error:
            found.append(f'{name}: {error}')
        found += [f'{name}: {warning}' for warning in warnings]
    for pattern in PATTERNS:
        for path in sorted(ROOT.glob(pattern)):
            try:
                etree.parse(str(path), etree.XMLParser(resolve_entities=False, no_network=True))
            except etree.XMLSyntaxError as error:
                found.append(f'{path.relative_to(ROOT)}: {error}')
    return found


if __name__ == '__main__':
    lines = faults()
    print('\n'.join(lines) or 'XML: all well-formed, manifests valid')
    sys.exit(bool(lines))
