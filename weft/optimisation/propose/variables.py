"""The knobs of a program as variables with names and values, as a model sees and sets them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.optimisation.candidates import Candidate, SearchState
from weft.optimisation.edits.draft import RawNode, places
from weft.optimisation.options import AS_IT_IS, STRUCTURE, EditOption
from weft.optimisation.propose.context import ProposalContext
from weft.optimisation.propose.rewrites import PROMPT, prompt_of, references, rewritten
from weft.workflow.document.rewrite import plain_document

_KEYS: Final = ("model", "decode", "temperature", "width", "samples")
"""Kinds of knobs that are keys of their nodes."""
_BREAKS: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ProgramVariable:
    """A knob that a suggestion may set.

    `name`: that of the knob; `node`: the node that it belongs to, empty for one of several nodes;
    `value`: what it is now. `options`: the values that it may take, by name; none for a prompt,
    which may be any text with the placeholders of `value`.
    """

    name: str
    node: str
    value: str
    options: Mapping[str, EditOption] = field(default_factory=dict)

    def chosen(self, given: object, why: str = "") -> EditOption | None:
        """The option that a model means by `given`: a prompt, or an option's name or value.

        None where it does not fit.
        """
        if not self.options:
            label = f"suggested prompt at {self.node}"
            return rewritten(self.node, self.value, given, label, why)
        if isinstance(given, str) and given in self.options:
            return self.options[given]
        kind = isinstance(given, bool)
        values = ((_json(name), option) for name, option in self.options.items())
        fitting = (
            each for value, each in values if (value, isinstance(value, bool)) == (given, kind)
        )
        return None if given is None else next(fitting, None)

    @property
    def constraint(self) -> str:
        """What it may be, on one line."""
        if self.options:
            return f"{self.name}: one of {', '.join(map(option_name, self.options))}"
        needed = ", ".join(dict.fromkeys(references(self.value)))
        return f"{self.name}: a text with these placeholders, as they are: {needed or 'none'}"


def program_variables(
    context: ProposalContext, state: SearchState, parent: Candidate, nodes: Iterable[str]
) -> list[ProgramVariable]:
    """The knobs of these nodes with something to choose, and those that the parent has set already:
    it may have dropped their nodes.
    """
    inside, changed = set(nodes), parent.edits(state.baseline)
    written = places(plain_document(context.flow(state.baseline).document))
    found = []
    for knob, options in state.knobs.items():
        node = "" if knob == STRUCTURE else knob.rpartition(".")[0]
        if node and node not in inside and knob not in changed:
            continue
        if knob.endswith(PROMPT):
            prompt = prompt_of(context, parent, node)
            found += [] if prompt is None else [ProgramVariable(knob, node, prompt)]
        elif len(options) > 1:
            edits = [each for each in options if isinstance(each, EditOption)]
            raw = written[node].raw if node in written else {}
            named = named_options(knob, edits, raw)
            now = dict(parent.settings)[knob]
            value = next((name for name, option in named.items() if option == now), "")
            found.append(ProgramVariable(knob, node, value, named))
    return found


def named_options(
    knob: str, options: Sequence[EditOption], written: RawNode
) -> dict[str, EditOption]:
    """The options of a knob by their labels without the knob's name; equal labels get a number.

    The name of what changes nothing is the value that is `written` in the node, as JSON.
    """
    found: dict[str, EditOption] = {}
    for option in options:
        label = option.label.removeprefix(f"{knob} = ")
        if option == AS_IT_IS:
            label = _written(knob.rpartition(".")[2], written) or label
        number, name = 1, label
        while name in found:
            number += 1
            name = f"{label} ({number})"
        found[name] = option
    return found


def option_name(name: str) -> str:
    """The name of an option on one line: a value as it is, JSON already, or its label in quotes."""
    is_value = name.isprintable() and _json(name) is not None
    return name if is_value else one_line(name)


def one_line(value: Any, limit: int = 600) -> str:
    """A value as JSON on one line; the text of a long one is cut at `limit` characters."""
    written = _json_text(value)
    if len(written) <= limit:
        return written
    text = value if isinstance(value, str) else written
    return _json_text(f"{text[:limit]} ... ({len(text)} characters)")


def _json_text(value: Any) -> str:
    """JSON in which line breaks of all kinds, and halves of characters, are escaped."""
    written = json.dumps(value, ensure_ascii=False, default=repr)
    return _BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _written(kind: str, raw: RawNode) -> str:
    """The value of a kind of knob in a node, as JSON; empty where the node does not say it."""
    value = raw.get(kind) if kind in _KEYS else None
    schema = raw.get("schema")
    if kind == "schema_order" and isinstance(schema, Mapping):
        value = list(schema.get("properties", ()))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _json(text: str) -> Any:
    """The value of a JSON text; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
