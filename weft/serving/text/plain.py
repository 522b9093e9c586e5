"""Text as token ids of which none is special, whatever the text spells. Knows no tokenizer.

A special token that is found in a text is the seam where a tokenizer cuts it in two. So the token
ids between such tokens stay as they are, and each of them is replaced by those of its own spelling,
encoded in pieces that are no special token any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field

from weft.core.errors import ModelRequestError


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The ids of a text in which spelt-out special tokens count, and the spelling of those.

    `unknown` is the token that stands for whatever the vocabulary cannot spell, where it has one.
    """

    ids: tuple[int, ...]
    special: Mapping[int, str] = field(default_factory=dict)
    unknown: int | None = None


def only_blanks(spelling: str) -> bool:
    """Whether a token is a run of blanks: some tokenizers list those beside their special tokens.
    They cannot forge anything, and code would be longer without.
    """
    return not spelling.strip().strip("\u2581")


Encoding = Generator[str, Tokenized, tuple[int, ...]]


class PlainText:
    """Remembers the pieces of the special tokens that it has met.

    A character that no token spells is the unknown token, which can pose as nothing. Raises:
    `ModelRequestError` when a text holds a character that only a special token spells; what
    `tokenize` raises.
    """

    def __init__(self) -> None:
        self._broken: dict[int, tuple[int, ...]] = {}

    def encode(self, text: str, tokenize: Callable[[str], Tokenized]) -> tuple[int, ...]:
        """The ids of `text`, none of them special."""
        encoding = self._encoding(text)
        asked = next(encoding)
        while True:
            try:
                asked = encoding.send(tokenize(asked))
            except StopIteration as end:
                return tuple(end.value)

    async def encode_by(
        self, text: str, tokenize: Callable[[str], Awaitable[Tokenized]]
    ) -> tuple[int, ...]:
        """The same, where tokenizing takes time."""
        encoding = self._encoding(text)
        asked = next(encoding)
        while True:
            found = await tokenize(asked)
            try:
                asked = encoding.send(found)
            except StopIteration as end:
                return tuple(end.value)

    def _encoding(self, text: str, within: frozenset[int] = frozenset()) -> Encoding:
        """Yields what is to be tokenized, `within` special tokens that are being replaced."""
        found = yield text
        ids: list[int] = []
        for token in found.ids:
            if token not in found.special:
                ids.append(token)
                continue
            if token not in self._broken:
                try:
                    pieces = yield from self._pieces(token, found.special[token], within)
                except ModelRequestError:
                    if token != found.unknown or token in within:
                        raise
                    pieces = (token,)  # the text has a character that no token spells
                self._broken[token] = pieces
            ids += self._broken[token]
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
