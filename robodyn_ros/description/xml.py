# SPDX-License-Identifier: Apache-2.0
"""
The bytes of a URDF -> XML elements, without entities, other documents or network.

What is not well-formed, but ROS's own reader of URDFs accepts, is accepted here with a finding.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from robodyn_ros.description.records import Finding, note
from robodyn_ros.errors import MalformedUrdf, Phrase

_UTF_16_MARKS = (b'\xff\xfe', b'\xfe\xff')
_DECLARATION = re.compile(rb'<\?xml\s[^>]*\?>')
_ENCODING = re.compile(rb'encoding\s*=\s*["\']([A-Za-z0-9._-]+)')
_COMMENT = re.compile(rb'<!--(.*?)-->', re.DOTALL)
_BARE_AMPERSAND = re.compile(rb'&(?!#?\w+;)')
_ROOT_TAG = re.compile(rb'<robot(?=[\s/>])')
_MOST_PREFIXES = 20
_UNDECLARED = re.compile(r'Namespace prefix ([\w.-]+)')


def parsed_xml(content: bytes) -> tuple[Any, tuple[Finding, ...]]:
    """
    Return the root element, and findings about what is not as XML demands.

    Passed over are an undeclared namespace prefix, white space or a comment before the
    declaration, two hyphens in a comment, an ampersand by itself, text that is no UTF-8, and a
    document type that declares nothing.

    Raises
    ------
    MalformedUrdf
        Not well-formed otherwise, with entities, or with a reference to another document.
    """
    findings: list[Finding] = []
    try:
        root = _strictly_parsed(content)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        root = _tolerantly_parsed(content, error, findings)
    document_type = root.getroottree().docinfo.internalDTD
    if document_type is not None:
        _check_document_type(document_type)
        findings.append(_finding('xml_document_type', '<!DOCTYPE>', '<!DOCTYPE> is ignored'))
    return root, tuple(findings)


def _finding(code: str, value: str, message: str) -> Finding:
    return note(code, 'XML', value, f'XML: {message}')


def _strictly_parsed(content: bytes, encoding: str | None = None) -> Any:
    parser = etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    return etree.fromstring(content, parser)


def _tolerantly_parsed(content: bytes, first: Exception, findings: list[Finding]) -> Any:
    """Return the root of XML that a strict reader refuses, once what may be is put right."""
    encoding = None
    if not content.startswith(_UTF_16_MARKS):
        content = _without_late_declaration(content, findings)
        encoding = _encoding_of_no_utf_8(content, findings)
        content = _without_odd_comments(content, findings)
        content = _with_whole_ampersands(content, findings)
    prefixes: list[str] = []
    while True:
        try:
            root = _strictly_parsed(content, encoding)
        except (etree.XMLSyntaxError, ValueError, LookupError) as error:
            undeclared = _UNDECLARED.match(str(error))
            prefix = undeclared[1] if undeclared else ''
            if not prefix or prefix in prefixes or len(prefixes) == _MOST_PREFIXES:
                raise MalformedUrdf('XML', Phrase(_said(error)), 'well-formed XML') from first
            prefixes.append(prefix)
            declaration = b'<robot xmlns:%s="undeclared"' % prefix.encode()
            content = _ROOT_TAG.sub(declaration, content, count=1)
            continue
        for prefix in prefixes:
            findings.append(
                _finding(
                    'xml_namespace',
                    prefix,
                    f'the namespace prefix {prefix} is not declared: its elements are ignored',
                )
            )
        return root


def _without_late_declaration(content: bytes, findings: list[Finding]) -> bytes:
    declaration = _DECLARATION.search(content)
    if declaration is None or declaration.start() == 0:
        return content
    findings.append(
        _finding('xml_declaration', '<?xml', '<?xml is not at the very start: it is ignored')
    )
    return content[: declaration.start()] + content[declaration.end() :]


def _encoding_of_no_utf_8(content: bytes, findings: list[Finding]) -> str | None:
    declaration = _DECLARATION.match(content)
    named = None if declaration is None else _ENCODING.search(declaration[0])
    if named is not None and named[1].lower() not in (b'utf-8', b'utf8'):
        return None
    try:
        content.decode('utf-8')
    except UnicodeDecodeError as error:
        findings.append(
            _finding(
                'xml_encoding',
                f'byte {error.start}',
                f'byte {error.start} is no UTF-8: read as Latin-1',
            )
        )
        return 'iso-8859-1'
    return None


def _without_odd_comments(content: bytes, findings: list[Finding]) -> bytes:
    odd = False

    def kept(comment: re.Match[bytes]) -> bytes:
        nonlocal odd
        if b'--' in comment[1] or comment[1].endswith(b'-'):
            odd = True
            return b''
        return comment[0]

    content = _COMMENT.sub(kept, content)
    if odd:
        findings.append(_finding('xml_comment', '--', 'two hyphens stand within a comment'))
    return content


def _with_whole_ampersands(content: bytes, findings: list[Finding]) -> bytes:
    whole, count = _BARE_AMPERSAND.subn(b'&amp;', content)
    if count:
        findings.append(_finding('xml_ampersand', '&', '& stands for itself, not as &amp;'))
    return whole


def _check_document_type(document_type: Any) -> None:
    if document_type.external_id is not None or document_type.system_url is not None:
        named = document_type.system_url or document_type.external_id
        raise MalformedUrdf(
            'XML',
            Phrase(f'a <!DOCTYPE> that refers to {named!r}'),
            'XML that refers to no other document',
        )
    for entity in document_type.iterentities():
        raise MalformedUrdf(
            'XML', Phrase(f'a <!DOCTYPE> with the entity {entity.name!r}'), 'XML without entities'
        )


def _said(error: Exception) -> str:
    return str(getattr(error, 'msg', '') or error)  # lxml adds the name of the text to its msg
