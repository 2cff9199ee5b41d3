# SPDX-License-Identifier: Apache-2.0
"""Seeded damage to URDF text, for fuzzing the reader."""

from __future__ import annotations

import random
import re

_TOKENS = (
    '<', '>', '/', '"', '&amp;', '&x;', '<!--', ']]>', '<?x ?>', '\x00', '\ufeff', '\ud800', 'é',
    'nan', '-inf', '1e308', '-1e308', '1e-320', '0', '-1', '1e999', '1_0', '0x1', ' ', '',
    '<link name="x"/>', '<joint name="y" type="revolute"/>', '<inertial/>', '<mimic joint="j1"/>',
    'fixed', 'prismatic', 'floating', 'continuous', 'xmlns:a="b"', '<robot>', '</robot>',
    '<!DOCTYPE r [<!ENTITY x "y">]>',
)  # fmt: skip


def mutated(text: str, seed: int) -> str:
    """Return the text with one to five seeded changes."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 2, 5))):
        text = chance.choice(_CHANGES)(text, chance)
    return text


def _delete(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.choice((1, 3, 20, 200)) :]


def _insert(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(_TOKENS) + text[at:]


def _repeat(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text) + 1)
    piece = text[start : start + chance.choice((5, 50, 500))]
    return text[:start] + piece * chance.choice((2, 3, 10)) + text[start:]


def _replace_value(text: str, chance: random.Random) -> str:
    values = list(re.finditer(r'"([^"]*)"', text))
    if not values:
        return text
    start, end = chance.choice(values).span(1)
    new = (
        chance.choice(_TOKENS)
        if chance.random() < 0.7
        else text[slice(*chance.choice(values).span(1))]
    )
    return text[:start] + new + text[end:]


def _replace_number(text: str, chance: random.Random) -> str:
    numbers = list(re.finditer(r'-?\d+(\.\d+)?(e-?\d+)?', text))
    if not numbers:
        return text
    start, end = chance.choice(numbers).span()
    return text[:start] + chance.choice(_TOKENS[13:24]) + text[end:]


def _swap_elements(text: str, chance: random.Random) -> str:
    elements = list(re.finditer(r'<[^<>]*>', text))
    if len(elements) < 2:
        return text
    (a, b), (c, d) = sorted((chance.choice(elements).span(), chance.choice(elements).span()))
    return text if b > c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


_CHANGES = (
    _delete,
    _insert,
    _repeat,
    *(_replace_value,) * 3,
    *(_replace_number,) * 6,
    _swap_elements,
)
