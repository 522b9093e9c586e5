"""Models and tools that answer from a cassette, in recorded time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from weft.core.calls import ModelAnswered, ToolCalled, ToolReturned
from weft.core.errors import CassetteMiss, Failure, ModelError, WeftError
from weft.core.ports import (
    Capabilities,
    Clock,
    ModelEvent,
    ModelRequest,
    Startable,
    Tokenizing,
    Warmable,
)
from weft.core.recorded_errors import error_of_failure
from weft.core.values import Completion, Message, ToolSpec
from weft.durability.calls.cassette import Cassette
from weft.durability.calls.digest import chat_question
from weft.durability.calls.history import RecordedCall, with_ports
from weft.durability.calls.turns import Turn, Turns
from weft.engine.scheduler.effects import CallSite, MadeCall, current_call_site


class CassettePlayer:
    """Plays `cassette` for one run: an answer comes at its recorded second.

    `now_s` returns the seconds of the replayed run, by `clock`: a `FakeClock`, so that no time is
    spent. A late answer comes at once.
    """

    def __init__(self, cassette: Cassette, now_s: Callable[[], float], clock: Clock) -> None:
        self.cassette = cassette
        self._now_s = now_s
        self._clock = clock
        self._turns = Turns(clock)

    async def until(self, at_s: float) -> None:
        """Wait until second `at_s` of the run."""
        delay_s = at_s - self._now_s()
        if delay_s > 0:
            await self._clock.sleep(delay_s)

    def turn(self, ended: ModelAnswered | ToolReturned) -> AbstractContextManager[Turn]:
        """The turn of the call that ended so; it is played within the block."""
        return self._turns.begin(self.cassette.due(ended))

    async def until_turn(self, turn: Turn) -> None:
        """Wait until the end of a call is to be given."""
        await self.until(turn.due.at_s)
        await self._turns.wait(turn)

    async def cut_off(self, what: str) -> CassetteMiss:
        """The error for a call without a recorded end, after waiting for its cancellation."""
        await self.until(self.cassette.ended_s + 1.0)
        return CassetteMiss(f"the record of {what} has no end: the run was cut off there")


class ReplayingTools:
    """Implements `ToolRunner` and `BatchRunner`: `player` answers the calls.

    The tools are those of `specs`, or the recorded ones of the server `source`.
    """

    def __init__(
        self,
        player: CassettePlayer,
        specs: Callable[[], tuple[ToolSpec, ...]] = tuple,
        source: str = "",
    ) -> None:
        self._player = player
        self._specs = specs
        self._source = source

    def specs(self) -> tuple[ToolSpec, ...]:
        listed = self._player.cassette.listed(self._source) if self._source else None
        return self._specs() if listed is None else listed

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        place = _here(f"the tool {name}")
        known = self._player.cassette.tool(place, name, arguments)
        made = _made_call(known)
        if (refused := self._player.cassette.refused(place, known)) is not None:
            await self._player.until(refused[0])
            raise refused[1]
        if not isinstance(known.ended, ToolReturned):
            raise await self._player.cut_off(name)
        with self._player.turn(known.ended) as turn:
            await self._player.until_turn(turn)
        if made is not None and known.ended.done == "done":
            (made.close if known.ended.failure is None else made.carried_out)()
        if known.ended.failure is not None:
            raise tool_error_of(known.ended, known.ended.failure)
        return known.ended.value

    async def call_batch(
        self, name: str, calls: Sequence[Mapping[str, Any]]
    ) -> Sequence[Any | WeftError]:
        outcomes: list[Any] = []
        for arguments in calls:
            try:
                outcomes.append(await self.call(name, arguments))
            except CassetteMiss:
                raise
            except WeftError as error:
                outcomes.append(error)
        return outcomes


def tool_error_of(ended: ToolReturned, failure: Failure) -> WeftError:
    """The error with which a recorded call of a tool ended."""
    error = error_of_failure(failure)
    error.cause = ended.cause
    error.retry_after_s = None if ended.cause is None else ended.cause.retry_after_s
    return error


class ReplayingClient:
    """Implements `ModelClient`, and the optional ports of the recorded client.

    `name` is the program's name of the model.
    """

    def __new__(cls, player: CassettePlayer, name: str) -> ReplayingClient:
        _, *ports = _recorded_client(player.cassette, name)
        own = tuple(kind for port, kind in _PORTS.items() if port.__name__ in ports)
        made: ReplayingClient = object.__new__(with_ports(cls, own))
        return made

    def __init__(self, player: CassettePlayer, name: str) -> None:
        self._player = player
        self._name = name

    @property
    def model(self) -> str:
        return _recorded_client(self._player.cassette, self._name)[0]

    async def capabilities(self) -> Capabilities:
        found: Capabilities = self._player.cassette.answer_to(self._name, ("capabilities",))
        return found

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        what = f"the model {self._name}"
        known = self._player.cassette.model(_here(what), self._name, request)
        if not isinstance(known.ended, ModelAnswered):
            async for piece in self._pieces(known):
                yield piece
            raise await self._player.cut_off(what)
        with self._player.turn(known.ended) as turn:
            async for piece in self._pieces(known):
                yield piece
            await self._player.until_turn(turn)
        yield _answer_of(known.ended)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _pieces(self, known: RecordedCall) -> AsyncGenerator[ModelEvent, None]:
        for at_s, piece in known.pieces:
            await self._player.until(at_s)
            yield piece


class _StartableReplay(ReplayingClient):
    async def start(self, show: Callable[[str], None] | None = None) -> None:
        """Do nothing."""


class _WarmableReplay(ReplayingClient):
    async def warm(self, request: ModelRequest) -> None:
        """Do nothing."""


class _TokenizingReplay(ReplayingClient):
    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return self._ids(("encode", text, special))

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return self._ids(chat_question(messages, chat_template_kwargs))

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        text: str = self._answer(("decode", token_ids))
        return text

    async def special_token(self, text: str) -> int | None:
        token: int | None = self._answer(("special_token", text))
        return token

    def _ids(self, question: tuple[Any, ...]) -> tuple[int, ...]:
        ids: tuple[int, ...] = self._answer(question)
        return ids

    def _answer(self, question: tuple[Any, ...]) -> Any:
        answer = self._player.cassette.answer_to(self._name, question)
        if isinstance(answer, Failure):
            raise error_of_failure(answer)
        return answer


_PORTS: Final[Mapping[type, type]] = {
    Startable: _StartableReplay,
    Tokenizing: _TokenizingReplay,
    Warmable: _WarmableReplay,
}


def _answer_of(ended: ModelAnswered) -> Completion:
    """The answer. Raises: the error that was recorded instead of one."""
    if ended.failure is not None:
        error = error_of_failure(ended.failure)
        error.retry_after_s = ended.retry_after_s
        if isinstance(error, ModelError):
            error.usage = ended.usage
        raise error
    assert ended.completion is not None
    return ended.completion


def _made_call(known: RecordedCall) -> MadeCall | None:
    """The `MadeCall` of a recorded call that must not be repeated and may have acted."""
    called, ended = known.called, known.ended
    if not isinstance(called, ToolCalled) or called.effect != "once":
        return None
    nothing = isinstance(ended, ToolReturned) and ended.done == "not done"
    return None if nothing else MadeCall(called.tool)


def _recorded_client(cassette: Cassette, name: str) -> tuple[str, ...]:
    """The model's own name, and the names of the ports of its client."""
    if not cassette.has_answer(name, ("is",)):
        return (name,)
    client: tuple[str, ...] = cassette.answer_to(name, ("is",))
    return client


def _here(what: str) -> CallSite:
    place = current_call_site()
    if place is None:
        raise CassetteMiss(f"{what} is called outside of a run: the record has calls of nodes only")
    return place
