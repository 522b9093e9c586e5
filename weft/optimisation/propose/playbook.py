"""A playbook: lessons as bullets with counters, changed by operations that code merges.

Source: ACE (agentic context engineering). A model names operations; it never rewrites the whole,
so that a playbook does not collapse into a summary. Asks no model itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, Literal

from weft.core.errors import InputError

LONGEST_BULLET: Final = 400
"""Characters of one bullet."""
_TEMPLATE_MARKS: Final = ("{{", "}}", "{%", "%}", "{#", "#}")


@dataclass(frozen=True, slots=True)
class PlaybookBullet:
    """One lesson, and how often it was found to help and to harm."""

    id: str
    text: str
    helpful: int = 0
    harmful: int = 0


@dataclass(frozen=True, slots=True)
class PlaybookOperation:
    """ADD a text; UPDATE the text (where it is not empty) and raise the counters of a bullet, or
    REMOVE it.
    """

    kind: Literal["ADD", "UPDATE", "REMOVE"]
    id: str = ""
    text: str = ""
    helpful: int = 0
    harmful: int = 0


@dataclass(frozen=True, slots=True)
class Playbook:
    """Bullets with unique ids, in the order of the ids; at most `limit`."""

    bullets: tuple[PlaybookBullet, ...] = ()
    limit: int = 20

    def __post_init__(self) -> None:
        ids = [bullet.id for bullet in self.bullets]
        if self.limit < 1 or len(ids) > self.limit or ids != sorted(set(ids)):
            raise InputError(
                "a playbook's bullets have unique, sorted ids and are at most `limit`",
                hint="make one by merging operations into an empty playbook",
            )

    def merge(self, operations: Iterable[PlaybookOperation]) -> Playbook:
        """This playbook after `operations`; then those of least use go until `limit` is kept.

        Operations on different bullets give the same whatever their order. An operation on a
        bullet that is not there, and an ADD of a text that is there, change nothing.
        """
        found = {bullet.id: bullet for bullet in self.bullets}
        for operation in operations:
            _apply(found, operation)
        kept = sorted(found.values(), key=lambda each: (each.harmful - each.helpful, each.id))
        return replace(self, bullets=tuple(sorted(kept[: self.limit], key=lambda each: each.id)))

    def render(self, prompt: str) -> str:
        """The user's prompt, a template, with the bullets after it."""
        if not self.bullets:
            return prompt
        return "\n".join([prompt, "", "Lessons:", *(f"- {each.text}" for each in self.bullets)])


def bullet_id(text: str) -> str:
    """The id of a new bullet: by its content, so that it does not depend on the order of ADDs."""
    return sha256(text.encode()).hexdigest()[:12]


def read_operations(answer: Any) -> tuple[Sequence[PlaybookOperation], int]:
    """The operations of a model's answer, a list of objects, and how many were dropped."""
    if not isinstance(answer, list):
        return (), 1
    read = [_read(item) for item in answer]
    kept = [operation for operation in read if operation is not None]
    return kept, len(read) - len(kept)


def _apply(found: dict[str, PlaybookBullet], operation: PlaybookOperation) -> None:
    if operation.kind == "ADD":
        id_ = bullet_id(operation.text)
        found.setdefault(id_, PlaybookBullet(id_, operation.text))
        return
    old = found.get(operation.id)
    if old is None:
        return
    if operation.kind == "REMOVE":
        del found[operation.id]
        return
    found[operation.id] = PlaybookBullet(
        old.id,
        operation.text or old.text,
        old.helpful + operation.helpful,
        old.harmful + operation.harmful,
    )


def _read(item: Any) -> PlaybookOperation | None:
    """None where it is no operation, or its text is too long, has lines, or is a template."""
    if not isinstance(item, dict) or item.get("kind") not in ("ADD", "UPDATE", "REMOVE"):
        return None
    id_, text = item.get("id", ""), item.get("text", "")
    counts = [item.get("helpful", 0), item.get("harmful", 0)]
    if not isinstance(id_, str) or not isinstance(text, str) or not all(map(_is_count, counts)):
        return None
    text = text.strip()
    unfit = len(text) > LONGEST_BULLET or len(text.splitlines()) > 1
    if unfit or not text.isprintable() or any(mark in text for mark in _TEMPLATE_MARKS):
        return None
    if item["kind"] == "ADD" and not text:
        return None
    return PlaybookOperation(item["kind"], id_, text, counts[0], counts[1])


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 1000
