"""Text, reasoning, token ids and tool calls of one answer while they arrive.

Servers differ in tool calls. An index, an id or a name may be missing, late, in one piece or in all
of them, or shared by different calls. A call may come whole or byte by byte. A piece may repeat
earlier ones.
"""

from __future__ import annotations

from dataclasses import replace

from weft.core.generated_text import ThoughtCounter
from weft.core.ports.model import ReasoningDelta, TextDelta, ToolCallDelta
from weft.core.values import ToolCall
from weft.serving.openai.chunk import FunctionPiece, ToolPiece, WireChoice, WireDelta
from weft.serving.text import FoundCall, Piece, Splitter
from weft.serving.text.json_scanner import JsonScanner

_NOTHING = WireDelta()


class StreamedOutput:
    """Collects the parts in order. Ids come with the text that they spell, at once or later."""

    def __init__(self, splitter: Splitter, most: int = 0) -> None:
        """`most`: how many of the largest log probabilities each token is to have."""
        self._splitter = splitter
        self._most = most
        self._delivered = (0, 0, 0)  # counts of ids, logprobs, largest that came with a piece
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._token_ids: list[int] = []
        self._logprobs: list[float] = []
        self._largest: list[tuple[float, ...]] = []
        self._thought_ids = 0
        self._tagged = ThoughtCounter()  # a thought that is left in the text

    @property
    def text(self) -> str:
        """The answer so far, without reasoning and calls."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._reasoning)

    @property
    def reasoning_tokens(self) -> int | None:
        """The tokens of the reasoning; None where the server gives no ids."""
        if not (self._reasoning or self._tagged.found):
            return 0
        return self._thought_ids + self._tagged.tokens if self._token_ids else None

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All ids so far, those of reasoning and calls included."""
        return tuple(self._token_ids)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """One per id, if requested."""
        return tuple(self._logprobs)

    @property
    def top_logprobs(self) -> tuple[tuple[float, ...], ...]:
        """The largest ones per id, if requested."""
        return tuple(self._largest)

    def take(self, choice: WireChoice) -> list[Piece]:
        """The pieces that one part of the answer adds."""
        part = choice.delta or choice.message or _NOTHING
        self._token_ids += choice.token_ids or ()
        if choice.logprobs:
            self._logprobs += choice.logprobs.values()
            self._largest += choice.logprobs.largest(self._most)
        pieces: list[Piece] = [ReasoningDelta(part.thought)] if part.thought else []
        pieces += self._splitter.feed(part.content or choice.text or "")
        if self._splitter.holding:
            return self._record(pieces)
        return self._record(self._with_ids(pieces))

    def end(self) -> list[Piece]:
        """The pieces that were held back, at the end of the stream."""
        return self._record(self._with_ids(self._splitter.end()))

    def _with_ids(self, pieces: list[Piece]) -> list[Piece]:
        """`pieces` with the ids that waited, in the first piece that can carry them."""
        id_count, logprob_count, largest_count = self._delivered
        ids = tuple(self._token_ids[id_count:])
        logprobs = tuple(self._logprobs[logprob_count:])
        if not ids and not logprobs:
            return pieces
        largest = tuple(self._largest[largest_count:])
        self._delivered = (len(self._token_ids), len(self._logprobs), len(self._largest))
        for index, piece in enumerate(pieces):
            match piece:
                case TextDelta():
                    carrier: Piece = TextDelta(piece.text, ids, logprobs, largest)
                case ReasoningDelta():
                    carrier = replace(piece, token_ids=ids)
                case _:
                    continue
            return [*pieces[:index], carrier, *pieces[index + 1 :]]
        if self._splitter.thinking:
            return [ReasoningDelta("", ids), *pieces]
        return [TextDelta("", ids, logprobs, largest), *pieces]

    def _record(self, pieces: list[Piece]) -> list[Piece]:
        for piece in pieces:
            match piece:
                case TextDelta(text, ids):
                    self._text.append(text)
                    self._tagged.add(text, len(ids))
                case ReasoningDelta(text, ids):
                    self._reasoning.append(text)
                    self._thought_ids += len(ids)
                case FoundCall():
                    continue
        return pieces


_NO_ARGUMENTS = "{}"


class _PendingCall:
    def __init__(self, position: int) -> None:
        self.position = position
        self.server_id = ""
        self.id = ""
        self.name = ""
        self._arguments: list[str] = []
        self._size = 0
        self._unsent: list[str] = []
        self._empty = False
        self._scanner = JsonScanner()

    @property
    def announced(self) -> bool:
        return bool(self.id)

    @property
    def whole(self) -> bool:
        """True when the arguments are complete JSON, so that the next piece is another call."""
        return self._scanner.complete or self._empty

    @property
    def arguments(self) -> str:
        return "".join(self._arguments)

    def repeated(self, text: str) -> bool:
        """True when `text` begins with all arguments so far, which no JSON object can repeat."""
        if not self._size:
            return self._empty and text.strip() == _NO_ARGUMENTS
        if len(text) < self._size:
            return False
        return text.startswith("{") and text.startswith(self.arguments)

    def add(self, text: str) -> None:
        """Add the new part of `text`. What follows a complete object is dropped."""
        if not self._size and text.strip() == _NO_ARGUMENTS:
            # Some servers send this first and the real arguments later.
            self._empty = True
            return
        if self.repeated(text):
            text = text[self._size :]
        end = self._scanner.feed(text)
        self._receive(text if self._scanner.broken else text[:end])

    def delta(self) -> ToolCallDelta | None:
        """The next delta, once the name and some of the arguments are known."""
        return self._send() if self.name and self._unsent else None

    def close(self) -> ToolCallDelta | None:
        """The last delta of a call that never got a name, or arguments."""
        if not self._size:
            self._receive(_NO_ARGUMENTS)
        return self._send() if self._unsent else None

    def _receive(self, text: str) -> None:
        if text:
            self._empty = False
            self._arguments.append(text)
            self._unsent.append(text)
            self._size += len(text)

    def _send(self) -> ToolCallDelta:
        text = "".join(self._unsent)
        self._unsent.clear()
        if self.announced:
            return ToolCallDelta(self.position, text)
        self.id = self.server_id or f"call_{self.position}"
        return ToolCallDelta(self.position, text, self.id, self.name)


class ToolCalls:
    """Tool calls from their pieces; emits deltas once a call's id and name are settled."""

    def __init__(self) -> None:
        self._calls: list[_PendingCall] = []
        self._latest: dict[int | None, _PendingCall] = {}

    def take(self, piece: ToolPiece) -> ToolCallDelta | None:
        """The delta from `piece`, or None while the call's name may still be incomplete."""
        function = piece.function or FunctionPiece()
        call = self._call_of(piece, function)
        call.server_id = call.server_id or piece.id or ""
        name = function.name or ""
        if not call.announced and name != call.name:
            call.name += name
        call.add(function.arguments or "")
        return call.delta()

    def add(self, name: str, arguments: str) -> ToolCallDelta:
        """The delta of a call that came whole, in the text."""
        call = _PendingCall(len(self._calls))
        self._calls.append(call)
        call.name = name
        call.add(arguments)
        delta = call.delta() or call.close()
        assert delta is not None
        return delta

    def finish(self) -> list[ToolCallDelta]:
        """Deltas of the calls that never got a name, or arguments."""
        deltas = [call.close() for call in self._calls]
        return [delta for delta in deltas if delta is not None]

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls, in the order in which they began."""
        return tuple(ToolCall(c.id, c.name, c.arguments) for c in self._calls)

    def _call_of(self, piece: ToolPiece, function: FunctionPiece) -> _PendingCall:
        call = self._latest.get(piece.index)
        if piece.index is None and piece.id:
            call = next((c for c in self._calls if c.server_id == piece.id), None)
        if call is None or _begins_another(call, piece, function):
            call = _PendingCall(len(self._calls))
            self._calls.append(call)
        self._latest[piece.index] = self._latest[None] = call
        return call


def _begins_another(call: _PendingCall, piece: ToolPiece, function: FunctionPiece) -> bool:
    if piece.id and call.server_id:
        return piece.id != call.server_id
    if not function.name or not call.whole:
        return False
    if piece.index is None or function.name != call.name:
        return True
    # One index for all calls, and no ids: the name comes with other arguments.
    arguments = function.arguments or ""
    return bool(arguments) and not call.repeated(arguments)
