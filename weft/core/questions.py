"""A question of a run that waits for a person's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.core.ids import NodeId, RunId
from weft.core.values import Completion


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question of a node to a person. `schema` is the JSON Schema of the answer.

    `tool`: the tool whose call needs an approval, with its `arguments`; empty for other questions.
    """

    run: RunId
    node: NodeId
    question: str
    schema: Mapping[str, Any]
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_approval(self) -> bool:
        """Whether it asks for the approval of a tool's call."""
        return bool(self.tool)

    def data(self) -> dict[str, Any]:
        """The question as plain data, without its run."""
        about = {"tool": self.tool, "arguments": dict(self.arguments)} if self.tool else {}
        shown = {"node": self.node, "question": self.question, "schema": dict(self.schema)}
        return {**shown, **about}


def approval_parameters(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of the call's arguments in that of an approval; None for another question."""
    for option in schema.get("anyOf") or ():
        properties = option.get("properties") if isinstance(option, Mapping) else None
        if isinstance(properties, Mapping) and {"approve", "arguments"} <= properties.keys():
            found = properties["arguments"]
            return found if isinstance(found, Mapping) else {}
    return None


@dataclass(frozen=True, slots=True)
class AskingCompletion(Completion):
    """The answer of a workflow as a model that waits for a person: `run` asks `questions`, as data.

    `run` is empty where it is not recorded, and so cannot be continued.
    """

    run: str = ""
    questions: tuple[Mapping[str, Any], ...] = ()
