"""How many tokens an answer has at least, and whether its server passed over `max_tokens`. Pure."""

from __future__ import annotations

from typing import Final

from weft.serving.openai.chunk import Choice, Delta

_LONGEST_TOKEN_CHARS: Final = 512
"""No vocabulary known has a longer token: runs of blanks are the longest."""
_ALLOWANCE: Final = 16
_ALLOWED_SHARE: Final = 8
_NOTHING: Final = Delta()


class TokenLimit:
    """Counts the tokens of one answer against `max_tokens`; None: there is no limit.

    Token ids are exact. Where the server tells none, each piece of the stream counts as one token,
    and as more where its text is too long for one; as servers may split a token into several
    pieces, the answer may then have 16 and an eighth more of them.
    """

    def __init__(self, max_tokens: int | None) -> None:
        self._max = max_tokens
        self._ids = 0
        self._pieces = 0
        self._chars = 0

    def add(self, choice: Choice) -> None:
        """Count one part of the answer."""
        part = choice.delta or choice.message or _NOTHING
        calls = [piece.function for piece in part.pieces if piece.function]
        chars = len(part.content or choice.text or "") + len(part.thought)
        chars += len(part.refusal or "") + sum(len(call.arguments or "") for call in calls)
        self._ids += len(choice.token_ids or ())
        self._chars += chars
        self._pieces += chars > 0

    @property
    def tokens(self) -> int:
        """The tokens so far, exact where the server tells their ids, else about so many."""
        return max(self._ids or self._pieces, -(-self._chars // _LONGEST_TOKEN_CHARS))

    @property
    def exceeded(self) -> bool:
        """Whether the server goes on although it was to stop."""
        if self._max is None:
            return False
        allowance = 0 if self._ids else _ALLOWANCE + self._max // _ALLOWED_SHARE
        return self.tokens > self._max + allowance
