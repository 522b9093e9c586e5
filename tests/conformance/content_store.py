"""What every `ContentStore` must do. Subclass, say how to make one, and let pytest collect it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.ports import ContentStore
from weft.errors import ContentMismatch, ContentNotFound, ContentTooLarge, StoreError

ABSENT = "sha256:" + "0" * 64
NO_DIGESTS = (
    *("", "sha256:", "sha256:abc", ABSENT.upper(), ABSENT + "0", ABSENT + "\n", f" {ABSENT}"),
    *("md5:" + "0" * 64, "../../../etc/passwd", "sha256:" + "../" * 21 + "a", "\0" * 71),
    "sha256:" + "\u0660" * 64,  # digits, but not of ASCII
)


class ContentStoreConformance:
    """The suite."""

    def make(self, max_bytes: int = 1 << 20) -> ContentStore:
        """A store for the content of this test; all that one test makes share it."""
        raise NotImplementedError

    def damage(self, digest: str, content: bytes) -> None:
        """Replace what is stored under `digest`."""
        raise NotImplementedError

    def run(self, body: Callable[[ContentStore], Awaitable[None]]) -> None:
        async def main() -> None:
            async with aclosing(self.make()) as store:
                await body(store)

        asyncio.run(main())

    def test_content_comes_back_under_its_sha256(self) -> None:
        @settings(max_examples=12, deadline=None)
        @given(contents=st.lists(st.binary(max_size=300), max_size=5))
        def check(contents: list[bytes]) -> None:
            async def body(store: ContentStore) -> None:
                digests = [await store.put(content) for content in contents]
                assert digests == [f"sha256:{sha256(each).hexdigest()}" for each in contents]
                assert [await store.get(digest) for digest in digests] == contents

            self.run(body)

        check()

    def test_what_is_not_there_is_told_apart_from_empty_content(self) -> None:
        async def body(store: ContentStore) -> None:
            digest = await store.put(b"")
            assert await store.has(digest)
            assert await store.get(digest) == b""
            assert not await store.has(ABSENT)
            with pytest.raises(ContentNotFound, match=ABSENT):
                await store.get(ABSENT)

        self.run(body)

    @pytest.mark.parametrize("text", NO_DIGESTS)
    def test_no_digest_is_refused_before_it_becomes_a_path(self, text: str) -> None:
        async def body(store: ContentStore) -> None:
            for ask in (store.get, store.has):
                with pytest.raises(StoreError, match="is no digest of content"):
                    await ask(text)

        self.run(body)

    def test_another_store_in_the_same_place_has_it(self) -> None:
        content = bytes(range(256)) * 2_000

        async def body(store: ContentStore) -> None:
            digest = await store.put(content)
            await store.aclose()
            async with aclosing(self.make()) as other:
                assert await other.has(digest)
                assert await other.get(digest) == content

        self.run(body)

    @pytest.mark.parametrize("stored", [b"", b"what was put ", b"what was Put", b"longer" * 9])
    def test_damaged_content_is_never_returned_and_put_repairs_it(self, stored: bytes) -> None:
        async def body(store: ContentStore) -> None:
            digest = await store.put(b"what was put")
            self.damage(digest, stored)
            with pytest.raises(ContentMismatch, match=digest):
                await store.get(digest)
            assert await store.put(b"what was put") == digest
            assert await store.get(digest) == b"what was put"

        self.run(body)

    def test_too_large_content_is_refused_both_ways(self) -> None:
        async def body(store: ContentStore) -> None:
            digest = await store.put(b"x" * 1_000)
            async with aclosing(self.make(max_bytes=999)) as small:
                with pytest.raises(ContentTooLarge, match=r"1000 bytes .* 999 at most"):
                    await small.put(b"y" * 1_000)
                with pytest.raises(ContentTooLarge, match=r"1000 bytes .* 999 at most"):
                    await small.get(digest)
                assert await small.has(digest)
                assert not await small.has(f"sha256:{sha256(b'y' * 1_000).hexdigest()}")
                assert await small.get(await small.put(b"z" * 999)) == b"z" * 999

        self.run(body)

    def test_many_stores_put_the_same_at_once(self) -> None:
        async def body(store: ContentStore) -> None:
            others = [self.make() for _ in range(3)]

            async def one(number: int) -> None:
                target = [store, *others][number % 4]
                content = f"content {number % 5}".encode()
                assert await target.get(await target.put(content)) == content

            async with asyncio.TaskGroup() as group:
                for number in range(40):
                    group.create_task(one(number))
            for other in others:
                await other.aclose()

        self.run(body)

    def test_a_changed_buffer_changes_no_content(self) -> None:
        async def body(store: ContentStore) -> None:
            buffer = bytearray(b"before")
            digest = await store.put(bytes(buffer))
            buffer[:] = b"after!"
            assert await store.get(digest) == b"before"

        self.run(body)

    def test_closing_twice_is_harmless(self) -> None:
        async def body(store: ContentStore) -> None:
            await store.put(b"k")
            await store.aclose()
            await store.aclose()

        self.run(body)
