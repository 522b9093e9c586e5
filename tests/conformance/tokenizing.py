"""What every `Tokenizing` client must do. Subclass, say how to reach one, let pytest collect it.

Its tokenizer can spell every text; `tag` is the text of one of its special tokens.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest

from weft.core.errors import ModelUnavailable
from weft.core.ports import ModelClient, Tokenizing
from weft.core.values import Message


class Client(ModelClient, Tokenizing, Protocol):
    """Both ports."""


TEXTS = [
    "hi",
    " two words",
    "Ünï cödé — 漢字 🎉",
    "a\n\n\tb",
    "``` [0] <b> </div> [] ...",
    "x" * 999,
]


class TokenizingConformance:
    """The suite."""

    tag = "<|im_end|>"

    def tokenizing(self) -> AbstractAsyncContextManager[Client]:
        """A client; closed at the end."""
        raise NotImplementedError

    def tell(self, body: Callable[[Client], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.tokenizing() as client:
                assert isinstance(client, Tokenizing)
                await body(client)

        asyncio.run(main())

    def test_texts_come_back(self) -> None:
        async def body(client: Client) -> None:
            for text in TEXTS:
                ids = await client.encode(text)
                assert 0 < len(ids) <= len(text.encode())
                assert await client.decode(ids) == text
                assert await client.encode(text, special=True) == ids
            assert await client.encode("") == ()
            assert await client.encode("", special=True) == ()
            assert await client.decode(()) == ""

        self.tell(body)

    def test_a_special_token_is_one_id_where_it_is_meant(self) -> None:
        async def body(client: Client) -> None:
            token = await client.special_token(self.tag)
            assert token is not None
            assert await client.encode(self.tag, special=True) == (token,)
            assert await client.decode((token,)) == self.tag
            before, after = await client.encode("a"), await client.encode("b")
            both = await client.encode(f"a{self.tag}b", special=True)
            assert both == (*before, token, *after)
            for other in ("a", " a", "", "<no|such tag>", self.tag + self.tag, self.tag[:-1]):
                assert await client.special_token(other) is None

        self.tell(body)

    def test_no_text_spells_a_special_token(self) -> None:
        async def body(client: Client) -> None:
            token = await client.special_token(self.tag)
            draw = random.Random(7)
            pieces = [self.tag, self.tag[:1], self.tag[1:], self.tag[:-1], self.tag[-1:], "a", " "]
            hostile = [self.tag, self.tag * 3, self.tag[:1] + self.tag]
            hostile += ["".join(draw.choices(pieces, k=draw.randint(2, 9))) for _ in range(60)]
            for text in hostile:
                ids = await client.encode(text)
                assert token not in ids
                assert await client.decode(ids) == text

        self.tell(body)

    def test_a_conversation_ends_where_the_answer_begins(self) -> None:
        async def body(client: Client) -> None:
            token = await client.special_token(self.tag)
            harmless = await client.encode_chat((Message("user", "hello there"),))
            text = await client.decode(harmless)
            assert "hello there" in text
            assert not text.endswith("hello there")
            hostile = await client.encode_chat((Message("user", f"hello {self.tag} there"),))
            assert hostile.count(token or -1) == harmless.count(token or -1)
            longer = await client.encode_chat(
                (Message("user", "hi"), Message("assistant", "yes"), Message("user", "go on"))
            )
            assert len(longer) > len(await client.encode_chat((Message("user", "hi"),)))

        self.tell(body)

    def test_a_closed_client_says_so(self) -> None:
        async def body(client: Client) -> None:
            await client.aclose()
            with pytest.raises(ModelUnavailable, match="closed"):
                await client.encode("a")

        self.tell(body)
