"""What a run did, with assertions: a journal for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from weft.core.calls import ModelCalled, ToolCalled
from weft.core.events import NodeFinished, NodeStarted, RunFinished
from weft.core.ids import matches
from weft.core.values import Usage
from weft.testing.journal import MemoryJournal
from weft.testing.script import text_of

T = TypeVar("T")
_FEW = 20


class RunSpy(MemoryJournal):
    """A journal in memory that asserts what its latest run did.

        spy = RunSpy()
        flow.run_sync(topic="tea", models={"small": FakeModel(["x"])}, journal=spy)
        spy.assert_succeeded()
        spy.assert_ran("notes[*]", times=2)
        spy.assert_called("search", query="tea")
        spy.assert_prompted("about tea", model="small")
        spy.assert_order("search", "notes")
        spy.assert_tokens(at_most=100)

    Nodes are ids or patterns such as `notes[*]/draft`. Assertions raise `AssertionError` with what
    happened instead. Of a resumed run, all parts count.
    """

    @property
    def ran(self) -> Sequence[str]:
        """The nodes whose own work began, in order, once for each attempt."""
        return [event.node for event in self._all(NodeStarted)]

    @property
    def calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The calls of tools, with their arguments, in the order in which they began."""
        return [(call.tool, call.arguments) for call in self._all(ToolCalled)]

    @property
    def prompts(self) -> Sequence[tuple[str, str]]:
        """The model of each request, and its messages as one text (`user: ...`), in order."""
        return [(call.model, text_of(call.request)) for call in self._all(ModelCalled)]

    @property
    def usage(self) -> Usage:
        """What the run used. Raises: `AssertionError` when it has not ended."""
        return self._end().usage

    def assert_succeeded(self) -> None:
        """The run succeeded."""
        end = self._end()
        assert end.status == "succeeded", f"the run {end.status}: {'; '.join(end.reasons)}"

    def assert_failed(self, because: str = "") -> None:
        """The run failed, and a reason contains `because`."""
        end = self._end()
        assert end.status == "failed", f"the run {end.status}"
        reasons = "\n".join(end.reasons)
        assert because in reasons, f"no reason contains {because!r}:\n{reasons}"

    def assert_ran(self, node: str, times: int | None = None) -> None:
        """The node ran, with `times` so often; nodes that a pattern names count together."""
        count = sum(matches(node, each) for each in self.ran)
        _check_count(f"{node} ran", count, times, self.ran)

    def assert_not_ran(self, *nodes: str) -> None:
        """None of the nodes ran."""
        for node in nodes:
            self.assert_ran(node, 0)

    def assert_order(self, *nodes: str) -> None:
        """Every node ended before the next one of them began."""
        places: dict[str, tuple[int, int]] = {}
        for node in nodes:
            begins, ends = self._places(NodeStarted, node), self._places(NodeFinished, node)
            assert begins, f"{node} did not run; {_listed(self.ran)}"
            assert ends, f"{node} has not ended"
            places[node] = begins[0], ends[-1]
        for before, after in pairwise(nodes):
            message = f"{after} began before {before} had ended; {_listed(self.ran)}"
            assert places[before][1] < places[after][0], message

    def assert_called(self, tool: str, times: int | None = None, **arguments: Any) -> None:
        """The tool was called with these arguments among its arguments."""
        fitting = [
            given
            for name, given in self.calls
            if name == tool and all(given.get(key, ...) == arguments[key] for key in arguments)
        ]
        wanted = f"{tool}({_spelled(arguments)}) was called"
        made = [f"{name}({_spelled(given)})" for name, given in self.calls]
        _check_count(wanted, len(fitting), times, made)

    def assert_not_called(self, tool: str, **arguments: Any) -> None:
        """The tool was not called with these arguments."""
        self.assert_called(tool, 0, **arguments)

    def assert_prompted(
        self, text: str, *, model: str | None = None, times: int | None = None
    ) -> None:
        """A request to the model, or to any, contained `text`."""
        asked = [prompt for name, prompt in self.prompts if model in (None, name)]
        count = sum(text in prompt for prompt in asked)
        of = "" if model is None else f" of {model}"
        _check_count(f"a prompt{of} contained {text!r}", count, times, asked)

    def assert_tokens(self, *, at_most: int | None = None, exactly: int | None = None) -> None:
        """The run used so many tokens, of prompts and answers together."""
        usage = self.usage
        shown = (
            f"{usage.tokens} tokens ({usage.prompt_tokens} of prompts) in {usage.requests} requests"
        )
        if at_most is not None:
            assert usage.tokens <= at_most, f"at most {at_most} tokens were expected: {shown}"
        if exactly is not None:
            assert usage.tokens == exactly, f"{exactly} tokens were expected: {shown}"

    def _events(self) -> Iterator[Any]:
        latest = self.runs(limit=1)
        assert latest, "no run was recorded; pass it: flow.run_sync(..., journal=spy)"
        return (numbered.record for numbered in self.records(latest[0].run))

    def _all(self, kind: type[T]) -> list[T]:
        return [event for event in self._events() if isinstance(event, kind)]

    def _places(self, kind: type[NodeStarted | NodeFinished], node: str) -> list[int]:
        return [
            place
            for place, event in enumerate(self._events())
            if isinstance(event, kind) and matches(node, event.node)
        ]

    def _end(self) -> RunFinished:
        ends = self._all(RunFinished)
        assert ends, "the run has not ended"
        return ends[-1]


def _check_count(wanted: str, count: int, times: int | None, happened: Sequence[str]) -> None:
    if times is None:
        assert count, f"expected: {wanted}; {_listed(happened)}"
    else:
        assert count == times, f"expected: {wanted} {times}x, not {count}x; {_listed(happened)}"


def _listed(happened: Sequence[str]) -> str:
    """What happened, one a line, in order."""
    if not happened:
        return "there was none at all"
    more = f"\n  and {len(happened) - _FEW} more" if len(happened) > _FEW else ""
    return "instead, in order:\n  " + "\n  ".join(happened[:_FEW]) + more


def _spelled(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
