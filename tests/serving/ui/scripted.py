"""Runs written into a journal record by record, as a runner would write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.calls import (
    CallId,
    Doneness,
    ModelAnswered,
    ModelCalled,
    ModelStreamed,
    ToolCalled,
    ToolReturned,
)
from weft.core.errors import Failure
from weft.core.events import (
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    NodeDecoded,
    NodeFinished,
    NodeInfo,
    NodeLogged,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunStarted,
    RunStatus,
    Status,
    Via,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Record, RunHeader
from weft.core.ports.model import ModelRequest, Sampling, TextDelta
from weft.core.values import Completion, Effect, Message, Speculated, Usage


class Script:
    """A run under way. `at` is its clock, in seconds; each verb writes at that time."""

    def __init__(
        self,
        journal: Journal,
        run: str,
        flow: str = "brief",
        wall: str = "2026-11-22T05:00:00Z",
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self.journal = journal
        self.run = RunId(run)
        self.flow = flow
        self.wall = wall
        self.at = 0.0
        header = RunHeader(self.run, flow, wall, "0.1.0", values or {"topic": "weaving"})
        self.claim = journal.begin(header)

    def write(self, *records: Record) -> None:
        self.journal.append(self.run, records)

    def begin(self, *infos: NodeInfo, limits: Mapping[str, int] | None = None) -> None:
        self.write(RunStarted(self.run, self.flow, self.wall, infos, limits or {}))

    def wait(self, seconds: float) -> Script:
        self.at = round(self.at + seconds, 6)
        return self

    def grow(self, parent: str, *infos: NodeInfo) -> None:
        self.write(GraphGrew(NodeId(parent), infos, self.at))
        self.write(NodeWaiting(NodeId(parent), self.at))

    def start(self, node: str, attempt: int = 1) -> None:
        self.write(NodeStarted(NodeId(node), attempt, self.at))

    def stream(self, node: str, text: str, tokens: int = 1) -> None:
        self.write(NodeStreamed(NodeId(node), text, tokens, self.at))

    def log(self, node: str, text: str) -> None:
        self.write(NodeLogged(NodeId(node), text, self.at))

    def retry(self, node: str, failure: Failure, delay_s: float = 0.5) -> None:
        self.write(NodeRetrying(NodeId(node), 1, delay_s, failure, self.at))

    def end(
        self,
        node: str,
        value: Any = None,
        status: Status = "succeeded",
        failure: Failure | None = None,
        via: Via = "",
        *,
        recalled: bool = False,
    ) -> None:
        outcome = Outcome(status, value, failure, via=via)
        self.write(NodeFinished(NodeId(node), outcome, self.at, recalled))

    def ask(self, node: str, question: str, schema: Mapping[str, Any]) -> None:
        self.write(HumanAsked(NodeId(node), question, schema, self.at))

    def answered(self, node: str, value: Any) -> None:
        self.write(HumanAnswered(NodeId(node), self.at, value))

    def asks_model(self, node: str, *messages: Message, call: str = "model:0#0") -> None:
        request = ModelRequest(messages, sampling=Sampling(max_tokens=200, temperature=0.0))
        self.write(ModelCalled(NodeId(node), 1, CallId(call), "writer", request, self.at))

    def model_streams(self, node: str, *pieces: str, call: str = "model:0#0") -> None:
        deltas = tuple((self.at, TextDelta(piece)) for piece in pieces)
        self.write(ModelStreamed(NodeId(node), 1, CallId(call), deltas, self.at))
        self.stream(node, "".join(pieces), len(pieces))

    def model_answers(
        self, node: str, text: str, usage: Usage, how: Speculated | None = None
    ) -> None:
        completion = Completion(text, usage=usage, model="writer", speculation=how)
        self.write(
            ModelAnswered(NodeId(node), 1, CallId("model:0#0"), completion, None, self.at),
            NodeSpent(NodeId(node), usage, self.at),
        )
        if how is not None:
            self.write(NodeDecoded(NodeId(node), how, self.at))

    def calls_tool(
        self, node: str, tool: str, arguments: Any, effect: Effect = "pure", attempt: int = 1
    ) -> None:
        call = CallId("tool:0#0")
        self.write(
            ToolCalled(NodeId(node), attempt, call, tool, arguments, effect, "k" * 32, self.at)
        )

    def tool_returns(
        self, node: str, value: Any, failure: Failure | None = None, attempt: int = 1
    ) -> None:
        done: Doneness = "done" if failure is None else "unknown"
        call = CallId("tool:0#0")
        self.write(ToolReturned(NodeId(node), attempt, call, value, failure, done, self.at))

    def finish(self, status: RunStatus = "succeeded", *reasons: str) -> None:
        self.write(RunFinished(status, Usage(), reasons, self.at))
        self.claim.release()


def info(
    node: str, kind: str = "tool", *sources: str, parent: str | None = None, slot: str | None = None
) -> NodeInfo:
    """What a viewer knows of a node."""
    above = None if parent is None else NodeId(parent)
    return NodeInfo(NodeId(node), kind, tuple(map(NodeId, sources)), slot, above)


DRAFTED = Speculated("lookup", 40, 29, 14, (14, 13, 11), (13, 10, 6))
TEXTS = ("Weaving crosses two sets of threads.", "A loom holds the warp.", "Wool felts when wet.")


def brief_run(journal: Journal, run: str = "brief-3f2a91c0de", words: int = 812) -> Script:
    """A whole run: a map of documents and notes, a retry, a failure that a default stood in for."""
    script = Script(journal, run)
    script.begin(
        info("files"),
        info("documents", "map", "files"),
        info("notes", "map", "documents"),
        info("words", "tool", "documents"),
        info("titles", "model", "documents", slot="writer"),
        info("title", "reduce", "words", "titles"),
        info("review", "human", "notes"),
        info("report", "tool", "documents", "notes", "words", "title", "review"),
        limits={"writer": 2},
    )
    script.start("files")
    script.calls_tool("files", "list_files", {"folder": "texts", "pattern": "*.md"})
    script.wait(0.02).tool_returns("files", ["loom.md", "warp.md", "wool.md"])
    script.end("files", ["loom.md", "warp.md", "wool.md"])
    _documents(script)
    _notes(script)
    script.start("words")
    script.wait(0.01).end("words", words)
    script.start("titles")
    refused = Failure("ModelOverloaded", "429: too many requests", "model", True, "wait a moment")
    script.wait(0.05).retry("titles", refused)
    script.wait(0.5).start("titles", 2)
    script.wait(0.4).end("titles", ["Threads", "Looms", "Wool"])
    script.start("title")
    script.wait(0.01).end("title", "Threads")
    return script


def _documents(script: Script) -> None:
    items = [f"documents[{i}]" for i in range(3)]
    script.start("documents")
    script.grow("documents", *(info(item, "item", parent="documents") for item in items))
    for item, text in zip(items, TEXTS, strict=True):
        script.start(item)
        script.calls_tool(item, "read_text", {"path": "loom.md"})
        script.wait(0.03).tool_returns(item, text)
        script.end(item, text)
    script.end("documents", list(TEXTS))


def _notes(script: Script) -> None:
    items = [f"notes[{i}]" for i in range(3)]
    script.start("notes")
    script.grow("notes", *(info(i, "model", parent="notes", slot="writer") for i in items))
    for place, (item, text) in enumerate(zip(items, TEXTS, strict=True)):
        script.start(item)
        script.asks_model(
            item,
            Message("system", "You write one short note about a text."),
            Message("user", f"Write a note about this text:\n\n{text}"),
        )
        for piece in ("In short: ", *text.split(" ")):
            script.wait(0.02).model_streams(item, f"{piece} ")
        answer = f"In short: {text}"
        script.model_answers(item, answer, Usage(58, 12 + place, 32, 1), DRAFTED)
        script.end(item, answer)
    script.end("notes", [f"In short: {text}" for text in TEXTS])


APPROVAL = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "description": "May the notes be sent?"},
        "tone": {"enum": ["plain", "warm", "formal"]},
        "copies": {"type": "integer", "minimum": 1, "default": 1},
        "remark": {"type": "string"},
    },
    "required": ["approve", "tone", "copies"],
}


def asking_run(journal: Journal, run: str = "brief-77aa01b2c3") -> Script:
    """A run that waits for a person's approval."""
    script = brief_run(journal, run)
    script.start("review")
    script.ask("review", "Three notes are ready. Send them to the readers?", APPROVAL)
    return script


def finished_run(journal: Journal, run: str = "brief-3f2a91c0de", words: int = 812) -> Script:
    """`brief_run` to its end."""
    script = brief_run(journal, run, words)
    script.start("review")
    script.ask("review", "Send them?", {"type": "boolean"})
    script.wait(1.5).answered("review", True)
    script.end("review", True)
    script.start("report")
    script.calls_tool("report", "send_mail", {"to": "readers"}, "once")
    broken = Failure("ToolRaised", "ConnectionError: the mail server hung up", "tool")
    script.wait(0.3).tool_returns("report", None, broken)
    script.end("report", None, "failed", broken)
    script.finish("partial", "report: ToolRaised: the mail server hung up")
    return script


def rescued_run(journal: Journal, run: str = "rescued-1d2c3b4a5e") -> Script:
    """A run that succeeded although little of it did: everything that looks like success."""
    script = Script(journal, run, "rescued", values={"topic": "weaving", "long": "thread " * 9_000})
    names = ("plain", "cached", "recalled", "defaulted", "rerouted", "pay")
    script.begin(
        *map(info, names),
        info("cut", "tool", "gone"),
        info("out"),
        info("gone"),
        info("each", "map"),
    )
    broken = Failure("ToolRaised", "ConnectionError: the bank hung up", "tool")
    script.start("plain")
    script.wait(0.4).end("plain", "all of its own")
    script.end("cached", "kept", via="cache")
    script.end("recalled", "made before", recalled=True)
    script.start("defaulted")
    script.wait(1.0).end("defaulted", "a default", failure=broken, via="default")
    script.start("rerouted")
    script.wait(0.5).end("rerouted", "another", failure=broken, via="fallback")
    script.start("pay")
    script.calls_tool("pay", "charge", {"amount": 12}, "once")
    script.wait(0.2).tool_returns("pay", None, broken)
    script.end("pay", 0, failure=broken, via="default")
    script.start("gone")
    script.wait(0.8).end("gone", None, "failed", broken)
    script.end("cut", None, "skipped", Failure("Upstream", "needs gone, which failed", "tool"))
    script.end("out", None, "skipped")
    script.start("each")
    script.grow("each", *(info(f"each[{i}]", "item", parent="each") for i in range(3)))
    for i in range(3):
        script.start(f"each[{i}]")
        script.wait(0.3)
        script.end(f"each[{i}]", i, failure=broken if i else None, via="default" if i else "")
    script.end("each", [0, 1, 2])
    script.finish()
    return script


def thinking_run(journal: Journal, run: str = "riddle-90d1e2f3a4") -> Script:
    """Reasoning in threads: a thought that forks three, one of which forks again; under way."""
    script = Script(journal, run, "riddle")
    script.begin(info("answer", "think"))
    script.start("answer")
    script.grow("answer", info("answer/plan", "model", parent="answer", slot="thinker"))
    script.start("answer/plan")
    script.stream("answer/plan", "Three cases: odd, even, zero.", 9)
    script.wait(0.4).end("answer/plan", "Three cases: odd, even, zero.")
    script.grow("answer", info("answer/cases", "fork", parent="answer"))
    script.start("answer/cases")
    names = ("odd", "even", "zero")
    threads = [f"answer/cases/{name}" for name in names]
    script.grow("answer/cases", *(info(t, "thread", parent="answer/cases") for t in threads))
    for thread in threads:
        _think(script, thread)
    script.wait(0.3).end("answer/cases/odd/solve", "n is 7")
    script.end("answer/cases/odd", "n is 7")
    return script


def _think(script: Script, thread: str) -> None:
    call = f"{thread}/solve"
    script.start(thread)
    script.grow(thread, info(call, "model", parent=thread, slot="thinker"))
    script.start(call)
    for word in f"If n is {thread.rpartition('/')[2]}, its square leaves a remainder".split(" "):
        script.wait(0.03).stream(call, f"{word} ", 1)


def wide_run(journal: Journal, items: int, run: str = "wide-10000") -> Script:
    """A map of so many items, in every state, between two steps; not ended."""
    script = Script(journal, run, "wide")
    script.begin(info("read"), info("each", "map", "read"), info("sum", "reduce", "each"))
    script.start("read")
    script.wait(0.1).end("read", items)
    script.start("each")
    names = [f"each[{i}]" for i in range(items)]
    script.grow("each", *(info(name, "model", "read", parent="each") for name in names))
    records: list[Record] = []
    for place, name in enumerate(names[: items * 9 // 10]):
        node, at = NodeId(name), round(0.1 + place * 0.001, 4)
        records.append(NodeStarted(node, 1, at))
        if place < items * 8 // 10:
            failed = place % 97 == 0
            failure = Failure("ToolRaised", "it broke", "tool") if failed else None
            outcome = Outcome("failed" if failed else "succeeded", f"value {place}", failure)
            records.append(NodeFinished(node, outcome, at + 0.05))
    script.wait(0.1 + items * 0.001)
    script.write(*records)
    return script
