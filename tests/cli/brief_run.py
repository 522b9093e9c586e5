"""The events of one realistic run, the same each time: a brief made of twelve documents.

Tools side by side, a map with retries and one failed item, a question, a fallback, a node cut off.
"""

from __future__ import annotations

from weft.core.errors import Failure
from weft.core.events import (
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    NodeInfo,
    NodeLogged,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage

BROKEN = Failure(
    "ModelUnavailable", "the stream broke off after 12 tokens", "model", True, "is the server up?"
)
REFUSED = Failure("ToolRaised", "ValueError: document 7 is empty", "tool")
WORDS = "The report finds that parallel branches finish sooner when nothing waits for a barrier ."


def info(
    name: str, kind: str, *sources: str, parent: str | None = None, resource: str | None = None
) -> NodeInfo:
    owner = None if parent is None else NodeId(parent)
    return NodeInfo(NodeId(name), kind, tuple(map(NodeId, sources)), resource, owner)


class Script:
    """Collects events in any order and plays them in order of time."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def model(self, name: str, start_s: float, end_s: float, tokens: int, attempt: int = 1) -> None:
        """A model call that streams `tokens` tokens at an even pace."""
        words = WORDS.split()
        node = NodeId(name)
        self.events.append(NodeStarted(node, attempt, start_s))
        for index in range(tokens):
            at_s = start_s + (end_s - start_s) * (index + 1) / (tokens + 1)
            word = words[index % len(words)]
            self.events.append(NodeStreamed(node, word + " ", 1, at_s))
        self.events.append(NodeSpent(node, Usage(180, tokens, requests=1, money=0.0002), end_s))

    def work(self, name: str, start_s: float, end_s: float, value: object = None) -> None:
        """A plain call."""
        self.events.append(NodeStarted(NodeId(name), 1, start_s))
        self.ok(name, end_s, value)

    def ok(self, name: str, at_s: float, value: object = None, **how: object) -> None:
        """A good end."""
        outcome = Outcome("succeeded", value, **how)  # type: ignore[arg-type]
        self.events.append(NodeFinished(NodeId(name), outcome, at_s))

    def played(self) -> list[Event]:
        """All events in order; those of one moment as they were written."""
        return sorted(self.events, key=lambda event: event.at_s)


def brief_run() -> list[Event]:
    """The events, from the first to the last."""
    script = Script()
    add = script.events.append
    nodes = (
        info("list_documents", "tool"),
        info("glossary", "tool"),
        info("notes", "map", "list_documents"),
        info("themes", "model", "notes", "glossary", resource="model"),
        info("approve", "ask", "themes"),
        info("summary", "model", "approve", "themes", resource="model"),
        info("translate", "model", "broken_tool", resource="model"),
        info("broken_tool", "tool"),
    )
    add(RunStarted(RunId("brief-1"), "brief", "2026-01-01T09:00:00Z", nodes, {"model": 4}))
    script.work("list_documents", 0.0, 0.42, [f"doc{i}.md" for i in range(12)])
    script.work("glossary", 0.0, 1.9, {"terms": 31})
    add(NodeStarted(NodeId("broken_tool"), 1, 0.0))
    add(NodeLogged(NodeId("broken_tool"), "reading document 7", 0.1))
    add(NodeFinished(NodeId("broken_tool"), Outcome("failed", failure=REFUSED), 0.7))
    cut = Failure("Upstream", "needs broken_tool, which failed")
    add(NodeFinished(NodeId("translate"), Outcome("skipped", failure=cut, attempts=0), 0.7))
    _map(script)
    script.model("themes", 7.1, 9.4, 60)
    script.ok("themes", 9.4, "speed, visibility, cost")
    add(NodeStarted(NodeId("approve"), 1, 9.4))
    question = "Publish a summary of these themes?"
    add(HumanAsked(NodeId("approve"), question, {"type": "boolean"}, 9.4))
    add(HumanAnswered(NodeId("approve"), 12.0))
    script.ok("approve", 12.0, True)
    _fallback(script)
    reasons = ("broken_tool failed: ToolRaised: ValueError: document 7 is empty",)
    usage = Usage(180 * 15, 700, requests=15, money=0.0031)
    add(RunFinished("failed", usage, reasons, 16.02))
    return script.played()


def _map(script: Script) -> None:
    add = script.events.append
    add(NodeStarted(NodeId("notes"), 1, 0.42))
    add(NodeWaiting(NodeId("notes"), 0.43))
    items = [f"notes[{i}]" for i in range(12)]
    infos = tuple(info(name, "model", parent="notes", resource="model") for name in items)
    add(GraphGrew(NodeId("notes"), infos, 0.43))
    free = [0.43] * 4
    for index, name in enumerate(items):
        slot = min(range(4), key=free.__getitem__)
        start_s = free[slot]
        end_s = start_s + 1.3 + 0.35 * (index * 7 % 5)
        if index == 5:
            _broken_item(script, name, start_s)
            free[slot] = start_s + 0.4
            continue
        script.model(name, start_s, end_s, 30 + index)
        script.ok(name, end_s, f"note {index}")
        free[slot] = end_s
    script.ok("notes", 7.1, "12 notes")


def _broken_item(script: Script, name: str, start_s: float) -> None:
    add = script.events.append
    for attempt, at_s in ((1, start_s), (2, start_s + 1.0), (3, start_s + 2.4)):
        script.model(name, at_s, at_s + 0.4, 12, attempt)
        if attempt < 3:
            delay_s = 0.6 if attempt == 1 else 1.0
            add(NodeRetrying(NodeId(name), attempt, delay_s, BROKEN, at_s + 0.4))
    outcome = Outcome("failed", failure=BROKEN, attempts=3)
    add(NodeFinished(NodeId(name), outcome, start_s + 2.8))


def _fallback(script: Script) -> None:
    add = script.events.append
    script.model("summary", 12.0, 13.5, 14)
    add(NodeRerouted(NodeId("summary"), NodeId("summary/small"), BROKEN, 13.5))
    add(NodeWaiting(NodeId("summary"), 13.5))
    stand_in = info("summary/small", "model", parent="summary", resource="model")
    add(GraphGrew(NodeId("summary"), (stand_in,), 13.5))
    script.model("summary/small", 13.5, 16.0, 90)
    script.ok("summary/small", 16.0, "All is well.")
    script.ok("summary", 16.01, "All is well.", failure=BROKEN, via="fallback")
