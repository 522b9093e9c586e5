"""Options of a document's knobs as typed edits, and the patch that a candidate of them is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.optimisation.candidates import Candidate, KnobOptions
from weft.optimisation.edits import Edit, Patch, read_edits
from weft.optimisation.space import Knob, Space

STRUCTURE: Final = "*.structure"
"""The knob of edits that concern several nodes."""
_LATE: Final = ("samples", "structure", "optional")
"""Kinds of knobs whose edits put nodes around one, and so come after its settings."""


@dataclass(frozen=True, slots=True)
class EditOption:
    """One option of a knob: edits as JSON text, so that equal edits are one option.

    `label`: a few words for a table. `why`: the hypothesis behind it, for the report.
    """

    edits: str = "[]"
    label: str = field(default="as it is", compare=False)
    why: str = field(default="", compare=False)

    @classmethod
    def of(cls, edits: Iterable[Edit], label: str, why: str = "") -> EditOption:
        """The option of these edits."""
        data = [edit.plain() for edit in edits]
        return cls(json.dumps(data, sort_keys=True, ensure_ascii=False), label, why)

    def read(self) -> tuple[Edit, ...]:
        """The edits. Raises: `EditError`."""
        return read_edits(self.edits)


AS_IT_IS: Final = EditOption()
"""The option of every knob that changes nothing; the baseline has no other."""


def option_of(knob: Knob, at: int) -> EditOption:
    """The option at `at` of a declared or discovered knob."""
    option = knob.options[at]
    if option.edit is None:
        return AS_IT_IS
    return EditOption.of([option.edit], f"{knob.name} = {json.dumps(option.value)}")


def knob_options(space: Space) -> dict[str, list[EditOption]]:
    """The options of every knob of `space`; where proposers may write, a knob with one option.

    Open knobs are `NODE.prompt`, `NODE.demonstrations`, and `NODE.structure` for each node with an
    open one; and `STRUCTURE` for edits of several nodes.
    """
    found = {
        knob.name: [option_of(knob, at) for at in range(len(knob.options))] for knob in space.knobs
    }
    for node, what in space.open:
        found.setdefault(f"{node}.{what}", [AS_IT_IS])
        found.setdefault(f"{node}.structure", [AS_IT_IS])
    found.setdefault(STRUCTURE, [AS_IT_IS])
    return found


def baseline_of(knobs: KnobOptions) -> Candidate:
    """The candidate that changes nothing."""
    return Candidate.of(dict.fromkeys(knobs, AS_IT_IS))


def patch_of(candidate: Candidate) -> Patch:
    """The edits of a candidate: settings of nodes first, then what puts other nodes around them."""
    settings: Mapping[str, EditOption] = dict(candidate.settings)  # type: ignore[arg-type]
    return Patch(tuple(edit for name in _ordered(settings) for edit in settings[name].read()))


def _ordered(names: Iterable[str]) -> Sequence[str]:
    def late(name: str) -> tuple[int, bool, str]:
        kind = name.rpartition(".")[2]
        return (_LATE.index(kind) + 1 if kind in _LATE else 0, name == STRUCTURE, name)

    return sorted(names, key=late)
