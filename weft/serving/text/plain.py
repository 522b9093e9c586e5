"""Text as token ids without special tokens, whatever the text spells. Imports no tokenizer.

A special token in a text is a seam at which a tokenizer cuts it. So the token ids between special
tokens stay as they are, and each special token is replaced by the ids of its own spelling, encoded
in pieces that are no special token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field

from weft.core.errors import ModelRequestError


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The ids of a text including its special tokens, and the spelling of those.

    `unknown`: the token for text that the vocabulary cannot spell, if it has one.
    """

    ids: tuple[int, ...]
    special: Mapping[int, str] = field(default_factory=dict)
    unknown: int | None = None


def only_blanks(spelling: str) -> bool:
    """Whether a token is a run of blanks. Some tokenizers list these as special tokens; they cannot
    forge anything, and code would be longer without.
    """
    return not spelling.strip().strip("\u2581")


Encoding = Generator[str, Tokenized, tuple[int, ...]]


class PlainText:
    """Encodes text without special tokens; caches the pieces of each special token.

    A character without a token becomes the unknown token, which cannot forge anything. Raises:
    `ModelRequestError` for a character that only a special token spells; what `tokenize` raises.
    """

    def __init__(self) -> None:
        self._pieces_of: dict[int, tuple[int, ...]] = {}

    def encode(self, text: str, tokenize: Callable[[str], Tokenized]) -> tuple[int, ...]:
        """The ids of `text`, none of them special."""
        encoding = self._encoding(text)
        part = next(encoding)
        while True:
            try:
                part = encoding.send(tokenize(part))
            except StopIteration as end:
                return tuple(end.value)

    async def encode_by(
        self, text: str, tokenize: Callable[[str], Awaitable[Tokenized]]
    ) -> tuple[int, ...]:
        """`encode` with an asynchronous tokenizer."""
        encoding = self._encoding(text)
        part = next(encoding)
        while True:
            tokenized = await tokenize(part)
            try:
                part = encoding.send(tokenized)
            except StopIteration as end:
                return tuple(end.value)

    def _encoding(self, text: str, within: frozenset[int] = frozenset()) -> Encoding:
        """Yields texts to tokenize; `within` are the special tokens being replaced."""
        tokenized = yield text
        ids: list[int] = []
        for token in tokenized.ids:
            if token not in tokenized.special:
                ids.append(token)
                continue
            if token not in self._pieces_of:
                try:
                    pieces = yield from self._pieces(token, tokenized.special[token], within)
                except ModelRequestError:
                    if token != tokenized.unknown or token in within:
                        raise
                    pieces = (token,)  # the text has a character without a token
                self._pieces_of[token] = pieces
            ids += self._pieces_of[token]
        return tuple(ids)

    def _pieces(self, token: int, spelling: str, within: frozenset[int]) -> Encoding:
        if len(spelling) < 2 or token in within:
            raise ModelRequestError(
                f"the model has no words for {spelling!r}, which is one of its special tokens",
                hint="leave it out of the text",
            )
        within |= {token}
        first = yield from self._encoding(spelling[:1], within)
        rest = yield from self._encoding(spelling[1:], within)
        return first + rest
