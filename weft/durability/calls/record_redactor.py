"""Records without secrets, also where a secret is split over several pieces."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

from weft.core.calls import (
    CallId,
    ModelAnswered,
    ModelCalled,
    ModelStreamed,
    ModelTold,
    ToolCalled,
    ToolReturned,
)
from weft.core.events import (
    GraphGrew,
    NodeFinished,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunMeasured,
    RunStarted,
)
from weft.core.ids import NodeId
from weft.core.ports import Prefilled, ToolCallDelta
from weft.core.ports.journal import Record
from weft.core.redaction import INERT, Redactor, SecretPlaces
from weft.durability.calls.history import Piece

P = TypeVar("P")


class ChannelText(NamedTuple):
    """The text of a piece, and the channel of its stream that it continues."""

    channel: Hashable
    text: str


class StreamRedactor(Generic[P]):
    """Holds pieces back while their end may begin a secret; keeps their order.

    `text_of` a piece is None for one without text. `with_text` returns a piece with another,
    redacted text. A redacted secret appears in the piece in which it begins.
    """

    def __init__(
        self,
        redactor: Redactor,
        text_of: Callable[[P], ChannelText | None],
        with_text: Callable[[P, str], P],
    ) -> None:
        self._redactor = redactor
        self._text_of = text_of
        self._with_text = with_text
        self._pending: list[P] = []

    def take(self, piece: P) -> list[P]:
        """Add `piece`; return the pieces in which nothing is left to redact."""
        self._pending.append(piece)
        return self._released(final=False)

    def rest(self) -> list[P]:
        """Return all other pieces: the stream is over."""
        return self._released(final=True)

    def _released(self, *, final: bool) -> list[P]:
        channels: dict[Hashable, list[int]] = {}
        for index, piece in enumerate(self._pending):
            if (text := self._text_of(piece)) is not None:
                channels.setdefault(text.channel, []).append(index)
        made = {channel: self._channel(where, final) for channel, where in channels.items()}
        count = len(self._pending)
        while not all(
            sum(index < count for index in where) in made[channel].whole
            for channel, where in channels.items()
        ):
            count -= 1
        texts = {
            index: text
            for channel, where in channels.items()
            for index, text in zip(where, made[channel].texts, strict=True)
        }
        released = [self._clean(self._pending[index], texts.get(index)) for index in range(count)]
        del self._pending[:count]
        return released

    def _clean(self, piece: P, text: str | None) -> P:
        before = self._text_of(piece)
        return (
            piece if before is None or text in (None, before.text) else self._with_text(piece, text)
        )

    def _channel(self, where: list[int], final: bool) -> _ChannelTexts:
        texts = [piece.text for index in where if (piece := self._text_of(self._pending[index]))]
        return _channel(self._redactor, texts, final)


class _ChannelTexts(NamedTuple):
    """Redacted texts, and the counts of texts after which no secret is open."""

    texts: list[str]
    whole: set[int]


def _channel(redactor: Redactor, texts: list[str], final: bool) -> _ChannelTexts:
    joined = "".join(texts)
    secrets = redactor.found(joined)
    begun = len(joined) if final else redactor.open_from(joined)
    made: list[str] = []
    whole, end = {0}, 0
    for number, text in enumerate(texts, 1):
        start, end = end, end + len(text)
        made.append(_cut(redactor, joined, start, end, secrets))
        if end <= begun and not any(a < end < b for a, b, _ in secrets):
            whole.add(number)
    return _ChannelTexts(made, whole)


def _cut(
    redactor: Redactor, joined: str, start: int, end: int, secrets: list[tuple[int, int, str]]
) -> str:
    """`joined` from `start` to `end`, with marks for the secrets that begin in it."""
    made, at = [], start
    for a, b, mark in secrets:
        if b <= start or a >= end:
            continue
        made.append(redactor.text(joined[at : max(at, a)]))
        made.append(mark if a >= start else "")
        at = min(b, end)
    made.append(redactor.text(joined[at:end]))
    return "".join(made)


R = TypeVar("R")
_CallKey = tuple[NodeId, int, CallId]
_WHOLE: Final = frozenset({ToolCalled, ToolReturned})
"""Records that are redacted alone and may contain secrets in any text."""
_SECRET_TOKEN: Final = 0
_SHORTEST_IDS: Final = 2


class RecordRedactor:
    """Redacts the records of one run, in order.

    A piece whose end may begin a secret comes with one of the next records of its node, the last
    with the end of the run. Token ids that spell a secret are removed from answers and prompts, and
    from the answers of a client's tokenizer.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._unclean = SecretPlaces()
        self._nodes: dict[NodeId, StreamRedactor[NodeStreamed]] = {}
        self._calls: dict[NodeId, dict[_CallKey, StreamRedactor[Piece]]] = {}
        self._hiding: set[_CallKey] = set()
        self._ids: list[tuple[int, ...]] = []

    def __call__(self, record: Record) -> list[Record]:
        kind = type(record)
        if kind in _WHOLE or (kind is NodeFinished and not self._nodes and not self._calls):
            return [self._redacted(record)]
        if isinstance(record, NodeStarted):
            return [self._named(record, record.node)]
        return self._of_kind(record)

    def _redacted(self, record: R) -> R:
        return self._redactor.redact(record, self._unclean)

    alone: Final = frozenset({*_WHOLE, NodeStarted})
    """Kinds of records that are redacted independently of others: they may wait for `redact_all`.

    So may the end of a node while no piece is held back.
    """

    @property
    def holds_back(self) -> bool:
        """Whether there are pieces that come with a later record."""
        return bool(self._nodes or self._calls)

    def redact_all(self, records: list[Record]) -> list[Record]:
        """The redacted records, all searched at once."""
        texts: list[str] = []
        values: dict[int, Any] = {}
        for record in records:
            match record:
                case ToolCalled():
                    texts += record.node, record.call, record.tool
                    texts += record.effect, record.key, record.stands_for
                    value = record.arguments
                case ToolReturned(failure=None):
                    texts += record.node, record.call, record.done
                    value = record.value
                case NodeStarted():
                    texts += record.node, record.digest
                    continue
                case NodeFinished(outcome=Outcome(failure=None)):
                    texts += record.node, record.digest, record.outcome.status, record.outcome.via
                    value = record.outcome.value
                case _:
                    value = record
            for part in (*value, *value.values()) if type(value) is dict else (value,):
                if type(part) is str:
                    texts.append(part)
                elif type(part) not in INERT:
                    values[id(part)] = part  # once: a call's result may also be its node's
        if self._are_clean("\n".join(texts), values):
            return records
        return [self._redacted(each) for each in records]

    def _are_clean(self, text: str, values: Mapping[int, Any]) -> bool:
        redactor = self._redactor
        if redactor.in_text(text):
            return False
        return not values or redactor.are_clean(values.values(), self._unclean)

    def _of_kind(self, record: Record) -> list[Record]:
        match record:
            case NodeWaiting() | NodeSpent():
                return [self._named(record, record.node)]
            case GraphGrew() | RunStarted() | RunMeasured():
                return [self._named(record, _names(record))]
            case NodeStreamed():
                return [*self._of_node(record.node).take(record)]
            case NodeRetrying() | NodeRerouted():
                return [*self._end_of(record.node), self._redacted(record)]
            case ModelCalled():
                return [self._asked(record)]
            case ModelStreamed():
                return self._streamed(record)
            case ModelAnswered():
                return [*self._rest(_call(record)), self._answered(record)]
            case ModelTold():
                return self._answer(record)
            case NodeFinished() | RunFinished():
                node = record.node if isinstance(record, NodeFinished) else None
                return [*self._ended(node), self._redacted(record)]
        return [self._redacted(record)]

    def _named(self, record: R, names: str) -> R:
        """`record`, in which only `names` may contain secrets."""
        return self._redacted(record) if self._redactor.in_text(names) else record

    def _of_node(self, node: NodeId) -> StreamRedactor[NodeStreamed]:
        if node not in self._nodes:
            self._nodes[node] = StreamRedactor(
                self._redactor,
                lambda event: ChannelText("", event.text),
                lambda event, text: replace(event, text=text),
            )
        return self._nodes[node]

    def _asked(self, event: ModelCalled) -> ModelCalled:
        made = self._redacted(event)
        if made is not event:
            self._hiding.add(_call(event))
        ids = made.request.prompt_token_ids
        if (blank := self._blank(ids)) != ids:
            made = replace(made, request=replace(made.request, prompt_token_ids=blank))
        return made

    def _streamed(self, event: ModelStreamed) -> list[Record]:
        call = _call(event)
        calls = self._calls.setdefault(event.node, {})
        if call not in calls:
            calls[call] = StreamRedactor(self._redactor, _text_of, _with_text)
        pieces = [
            piece for each in event.deltas for piece in calls[call].take(self._clean(call, each))
        ]
        return [replace(event, deltas=tuple(pieces))] if pieces else []

    def _answered(self, event: ModelAnswered) -> ModelAnswered:
        made = self._redacted(event)
        ids = () if _call(event) in self._hiding else self._blank(event.prompt_token_ids)
        self._hiding.discard(_call(event))
        return made if ids == made.prompt_token_ids else replace(made, prompt_token_ids=ids)

    def _answer(self, event: ModelTold) -> list[Record]:
        if not self._redactor.hides((event.question, event.answer), self._unclean):
            return [self._redacted(event)]
        ids = event.question[-1] if event.question[0] == "decode" else event.answer
        if isinstance(ids, tuple) and len(ids) >= _SHORTEST_IDS:
            self._ids.append(ids)
        return []

    def _clean(self, call: _CallKey, piece: Piece) -> Piece:
        at_s, what = piece
        if not isinstance(what, Prefilled):
            return piece
        ids = () if call in self._hiding else self._blank(what.prompt_token_ids)
        return at_s, Prefilled(ids)

    def _ended(self, node: NodeId | None) -> Iterator[Record]:
        """The pieces held back of a node, or of all."""
        nodes = list(self._calls) if node is None else [node]
        for call in [call for each in nodes for call in self._calls.get(each, ())]:
            yield from self._rest(call)
        for each in list(self._nodes) if node is None else [node]:
            yield from self._end_of(each)

    def _end_of(self, node: NodeId) -> Iterator[Record]:
        """The pieces held back of a node's stream: another attempt begins a new one."""
        stream = self._nodes.pop(node, None)
        if stream is not None:
            yield from stream.rest()

    def _rest(self, call: _CallKey) -> Iterator[Record]:
        calls = self._calls.get(call[0], {})
        stream = calls.pop(call, None)
        if stream is not None and not calls:
            del self._calls[call[0]]
        pieces = stream.rest() if stream is not None else ()
        if pieces:
            yield ModelStreamed(*call, tuple(pieces), pieces[-1][0])

    def _blank(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """`ids` with another token in place of each that is part of a secret."""
        for secret in self._ids:
            size = len(secret)
            for start in range(len(ids) - size + 1):
                if ids[start : start + size] == secret:
                    ids = ids[:start] + (_SECRET_TOKEN,) * size + ids[start + size :]
        return ids


def _names(record: GraphGrew | RunStarted | RunMeasured) -> str:
    if isinstance(record, RunMeasured):
        return "\n".join((*record.loop_s, *record.cpu_s))
    names: list[str] = []
    for info in record.nodes:
        names += info.id, info.kind, info.resource or "", *info.sources
    return "\n".join(names)


def _call(event: ModelCalled | ModelStreamed | ModelAnswered) -> _CallKey:
    return event.node, event.attempt, event.call


def _text_of(piece: Piece) -> ChannelText | None:
    what = piece[1]
    if isinstance(what, Prefilled):
        return None
    if isinstance(what, ToolCallDelta):
        return ChannelText(what.index, what.arguments)
    return ChannelText(type(what).__name__, what.text)


def _with_text(piece: Piece, text: str) -> Piece:
    at_s, what = piece
    if isinstance(what, Prefilled):
        return piece
    if isinstance(what, ToolCallDelta):
        return at_s, replace(what, arguments=text)
    return at_s, replace(what, text=text, token_ids=())
