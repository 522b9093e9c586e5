"""A function to be written out again with one change: the whole of it, as agents edit files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from evals.speculative.cases.prompt import Prompt, conversation

_NOUNS: Final = ("order", "ticket", "visit", "parcel", "reading", "invoice", "seat", "shift")
_FIELDS: Final = ("price", "weight", "minutes", "amount", "length", "score", "volume", "points")
_LIMITS: Final = ("limit", "threshold", "ceiling", "bound")

_FUNCTIONS: Final = (
    """\
def total_{field}({noun}s, {limit}):
    total = 0
    for {noun} in {noun}s:
        if {noun}.{field} > {limit}:
            continue
        total += {noun}.{field}
    return total
""",
    """\
def largest_{field}({noun}s, {limit}):
    found = None
    for {noun} in {noun}s:
        if {noun}.{field} <= {limit} and (found is None or {noun}.{field} > found.{field}):
            found = {noun}
    return found
""",
    """\
def split_by_{field}({noun}s, {limit}):
    below, above = [], []
    for {noun} in {noun}s:
        if {noun}.{field} < {limit}:
            below.append({noun})
        else:
            above.append({noun})
    return below, above
""",
)


def prompts(count: int) -> Sequence[Prompt]:
    """`count` prompts, each with one finished edit before it, the changes in turn."""
    return [_prompt(number) for number in range(count)]


def _prompt(number: int) -> Prompt:
    draw = random.Random(f"edit {number}")
    kinds = draw.sample(range(len(_FUNCTIONS)), 2)
    shown, asked = (_edit(draw, kind, number) for kind in kinds)
    return Prompt(f"agent_edits-{number}", conversation(*shown, asked[0]))


def _edit(draw: random.Random, kind: int, number: int) -> tuple[str, str]:
    """What is asked, and the right answer."""
    noun, field, limit = draw.choice(_NOUNS), draw.choice(_FIELDS), draw.choice(_LIMITS)
    code = _FUNCTIONS[kind].format(noun=noun, field=field, limit=limit)
    if number % 2:
        new = draw.choice([other for other in _LIMITS if other != limit])
        change, edited = f"Rename `{limit}` to `{new}`", code.replace(limit, new)
    else:
        head, newline, body = code.partition("\n")
        said = f'    """Of the given {noun}s, by {field}."""\n'
        change, edited = f"Add the docstring {said.strip()}", head + newline + said + body
    return (
        f"{change} and write the whole function.\n\n```python\n{code}```",
        f"```python\n{edited}```",
    )
