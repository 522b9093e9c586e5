"""Tool calls put together from pieces, however a server cuts them; does not check the arguments.

Servers differ: an index or an id may be missing, come once or with every piece, or be shared by
calls that are different; a call may come whole or byte by byte.
"""

from __future__ import annotations

import json

from weft.core.ports.model import ToolCallDelta
from weft.core.values import ToolCall
from weft.serving.openai.chunk import FunctionPiece, ToolPiece

_NO_ARGUMENTS = "{}"


class _Call:
    def __init__(self, position: int) -> None:
        self.position = position
        self.server_id = ""
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    @property
    def announced(self) -> bool:
        return bool(self.id)

    def whole(self) -> bool:
        """True when the arguments are complete JSON, so that what follows is another call."""
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


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
        if not function.arguments:
            return None
        call.arguments.append(function.arguments)
        return self._announce(call, function.arguments)

    def finish(self) -> list[ToolCallDelta]:
        """Deltas of the calls that never got arguments: they are calls with none."""
        silent = [call for call in self._calls if not call.announced]
        for call in silent:
            call.arguments.append(_NO_ARGUMENTS)
        return [self._announce(call, _NO_ARGUMENTS) for call in silent]

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls, in the order in which they began."""
        return tuple(ToolCall(c.id, c.name, "".join(c.arguments)) for c in self._calls)

    def _announce(self, call: _Call, arguments: str) -> ToolCallDelta:
        if call.announced:
            return ToolCallDelta(call.position, arguments)
        call.id = call.server_id or f"call_{call.position}"
        return ToolCallDelta(call.position, arguments, call.id, call.name)

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
    return piece.index is None and bool(function.name) and call.whole()
