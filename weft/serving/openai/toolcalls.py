"""Tool calls put together from pieces, however a server cuts them; does not check the arguments.

Servers differ: an index, an id or a name may be missing, come late, once or with every piece, or be
shared by calls that are different; a call may come whole or byte by byte; a piece may hold again
what has come already.
"""

from __future__ import annotations

from weft.core.ports.model import ToolCallDelta
from weft.core.values import ToolCall
from weft.serving.openai.chunk import FunctionPiece, ToolPiece
from weft.serving.text.json_scanner import JsonScanner

_NO_ARGUMENTS = "{}"


class _Call:
    def __init__(self, position: int) -> None:
        self.position = position
        self.server_id = ""
        self.id = ""
        self.name = ""
        self._arguments: list[str] = []
        self._size = 0
        self._unsaid: list[str] = []
        self._empty = False
        self._scanner = JsonScanner()

    @property
    def announced(self) -> bool:
        return bool(self.id)

    @property
    def whole(self) -> bool:
        """True when the arguments are complete JSON, so that what follows is another call."""
        return self._scanner.complete or self._empty

    @property
    def arguments(self) -> str:
        return "".join(self._arguments)

    def repeated(self, text: str) -> bool:
        """True when `text` begins with all arguments so far, as no JSON object can go on."""
        if not self._size:
            return self._empty and text.strip() == _NO_ARGUMENTS
        if len(text) < self._size:
            return False
        return text.startswith("{") and text.startswith(self.arguments)

    def add(self, text: str) -> None:
        """Take the news in `text`. Nothing that follows a complete object belongs to it."""
        if not self._size and text.strip() == _NO_ARGUMENTS:
            # Some servers send this first and the real arguments later.
            self._empty = True
            return
        if self.repeated(text):
            text = text[self._size :]
        end = self._scanner.feed(text)
        self._receive(text if self._scanner.broken else text[:end])

    def say(self) -> ToolCallDelta | None:
        """The delta that is due, once the name is known and some of the arguments."""
        return self._say() if self.name and self._unsaid else None

    def close(self) -> ToolCallDelta | None:
        """The delta of what never became due: a call without a name, or without arguments."""
        if not self._size:
            self._receive(_NO_ARGUMENTS)
        return self._say() if self._unsaid else None

    def _receive(self, text: str) -> None:
        if text:
            self._empty = False
            self._arguments.append(text)
            self._unsaid.append(text)
            self._size += len(text)

    def _say(self) -> ToolCallDelta:
        text = "".join(self._unsaid)
        self._unsaid.clear()
        if self.announced:
            return ToolCallDelta(self.position, text)
        self.id = self.server_id or f"call_{self.position}"
        return ToolCallDelta(self.position, text, self.id, self.name)


class ToolCalls:
    """Collects pieces; gives a delta for each once the call's id and name are settled."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._latest: dict[int | None, _Call] = {}

    def take(self, piece: ToolPiece) -> ToolCallDelta | None:
        """The delta that `piece` makes, or None while a call's name may still be incomplete."""
        function = piece.function or FunctionPiece()
        call = self._call_of(piece, function)
        call.server_id = call.server_id or piece.id or ""
        name = function.name or ""
        if not call.announced and name != call.name:
            call.name += name
        call.add(function.arguments or "")
        return call.say()

    def add(self, name: str, arguments: str) -> ToolCallDelta:
        """The delta of a call that was found whole, in the text."""
        call = _Call(len(self._calls))
        self._calls.append(call)
        call.name = name
        call.add(arguments)
        delta = call.say() or call.close()
        assert delta is not None
        return delta

    def finish(self) -> list[ToolCallDelta]:
        """Deltas of the calls that never got a name, or arguments: those have none."""
        deltas = [call.close() for call in self._calls]
        return [delta for delta in deltas if delta is not None]

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls, in the order in which they began."""
        return tuple(ToolCall(c.id, c.name, c.arguments) for c in self._calls)

    def _call_of(self, piece: ToolPiece, function: FunctionPiece) -> _Call:
        call = self._latest.get(piece.index)
        if piece.index is None and piece.id:
            call = next((c for c in self._calls if c.server_id == piece.id), None)
        if call is None or _begins_another(call, piece, function):
            call = _Call(len(self._calls))
            self._calls.append(call)
        self._latest[piece.index] = self._latest[None] = call
        return call


def _begins_another(call: _Call, piece: ToolPiece, function: FunctionPiece) -> bool:
    if piece.id and call.server_id:
        return piece.id != call.server_id
    if not function.name or not call.whole:
        return False
    if piece.index is None or function.name != call.name:
        return True
    # One index for all calls, and no ids: the name comes with other arguments.
    arguments = function.arguments or ""
    return bool(arguments) and not call.repeated(arguments)
