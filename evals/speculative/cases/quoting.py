"""Map items that quote their input: the bulk of what a map over records writes.

Five forms in turn, each shown once before it is asked for; the records are drawn by a seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from evals.speculative.cases.prompt import Prompt, conversation
from evals.speculative.cases.words import Visit, visits

Turn = tuple[str, str]
"""What is asked, and the right answer."""


def prompts(count: int) -> Sequence[Prompt]:
    """`count` prompts, the forms in turn."""
    return [_prompt(number) for number in range(count)]


def _prompt(number: int) -> Prompt:
    form = _FORMS[number % len(_FORMS)]
    shown = form(visits(f"shown {number}", 3))
    asked = form(visits(f"asked {number}", 3))
    return Prompt(f"agent_quoting-{number}", conversation(*shown, asked[0]))


def _sentence(records: Sequence[Visit]) -> Turn:
    report = " ".join(record.sentence for record in records)
    wanted = records[1]
    return (
        f"{report}\n\nRepeat the sentence about {wanted.name}, word for word.",
        wanted.sentence,
    )


def _cited(records: Sequence[Visit]) -> Turn:
    report = "\n".join(f"[{number}] {each.sentence}" for number, each in enumerate(records, 1))
    wanted = records[-1]
    return (
        f"{report}\n\nWho went to {wanted.town}? Quote the sentence that says so.",
        f'{wanted.name}. [{len(records)}] "{wanted.sentence}"',
    )


def _listed(records: Sequence[Visit]) -> Turn:
    cells = [f"{each.name}; {each.town}; {each.thing}; {each.day}" for each in records]
    rows = [f"| {cell.replace('; ', ' | ')} |" for cell in cells]
    return (
        "Write these lines as the rows of a table.\n\n" + "\n".join(cells),
        "\n".join(rows),
    )


def _renamed(records: Sequence[Visit]) -> Turn:
    record = records[0]
    plain = {
        "name": record.name,
        "place": record.town,
        "note": f"The {record.thing} {record.fault}",
    }
    german = dict(zip(("Name", "Ort", "Notiz"), plain.values(), strict=True))
    return (
        "Write this record with German field names: Name, Ort, Notiz. Keep the values.\n\n"
        + json.dumps(plain, indent=1),
        json.dumps(german, indent=1),
    )


def _judged(records: Sequence[Visit]) -> Turn:
    record = records[0]
    text = f"The {record.thing} in {record.town} {record.fault}. {record.first} {record.repair}."
    return (
        f"Does this report name a fault? Quote it, then judge.\n\n{text}",
        f'The report says: "{text}" It names a fault.',
    )


_FORMS: Final[Sequence[Callable[[Sequence[Visit]], Turn]]] = (
    _sentence,
    _cited,
    _listed,
    _renamed,
    _judged,
)
