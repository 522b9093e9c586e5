"""A memory: texts with tags in a file that outlives runs, for programs and as tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from weft.agents.memory.memory_file import MemoryFile, MemoryHit
from weft.agents.memory.tools import MOST_HITS, MemoryTools
from weft.agents.memory.vectors import Embedder, packed
from weft.agents.user_folder import memory_path
from weft.core.call_context import idempotency_key
from weft.core.errors import BuildError, ModelOutputError, ToolArgumentError
from weft.core.ids import is_name
from weft.core.keywords import refuses_unknown_keywords
from weft.core.values import ToolSpec

MOST_TEXT_BYTES: Final = 64 * 1024
_MOST_QUERY_BYTES: Final = 8 * 1024
_MOST_TAGS: Final = 32
_MOST_TAG_CHARS: Final = 128
_AT_ONCE: Final = 64  # texts that are embedded together


class Memory:
    """Texts that outlive runs, in the SQLite file `path`; also a source of tools.

        memory = weft.Memory("facts.sqlite")
        await memory.add("The Danube is 2850 km long.", tags=["rivers"])
        hits = await memory.search("how long is the Danube?", k=3)
        answer = await weft.ask("Which river is longer?", tools=[memory])
        flow = weft.Flow("rivers", tools={"facts": memory})  # facts.add, facts.search, facts.forget

    path    the file, made on first use; None: `memory/NAME.sqlite` in `WEFT_HOME` or the user's
            data folder, beside the default journal
    search  "bm25": by words. A client such as `weft.serve.OpenAIEmbeddings`: by cosine similarity;
            the file then holds vectors of that model alone, and texts that have none get theirs in
            the first search. The caller closes the client
    name    models call the tools `NAME_add`, `NAME_search`, `NAME_forget`

    Several processes may use one file. Raises: `BuildError` for another `search`, or for a name
    that is no identifier.
    """

    @refuses_unknown_keywords
    def __init__(
        self,
        path: str | Path | None = None,
        search: Literal["bm25"] | Embedder = "bm25",
        *,
        name: str = "memory",
    ) -> None:
        if not is_name(str(name)):
            raise BuildError(f"{name!r} cannot name a memory", hint='Memory(name="facts")')
        if search != "bm25" and not callable(getattr(search, "embed", None)):
            hint = 'give "bm25", or a client: weft.serve.OpenAIEmbeddings(base_url, model)'
            raise BuildError(f"a memory cannot be searched by {search!r}", hint=hint)
        self.name = name
        self._embedder = None if isinstance(search, str) else search
        self._file = MemoryFile(memory_path(name) if path is None else Path(path))
        self._tools = MemoryTools(self, f"{name}_")

    def __repr__(self) -> str:
        return f"Memory({str(self.path)!r})"

    async def __aenter__(self) -> Memory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    async def add(self, text: str, tags: Sequence[str] = (), *, key: str | None = None) -> int:
        """Add a text of at most 64 KB of UTF-8, with at most 32 tags. Returns its id.

        `key` identifies the addition: of several with one key only the first adds a text, and all
        return its id. Default: the idempotency key of the current call of a tool, else a new one.

        Raises: `ToolArgumentError` for a text or tags outside the bounds, `StoreError`,
        `ModelError`.
        """
        _check_text("text", text, MOST_TEXT_BYTES)
        checked = _checked_tags(tags)
        key = idempotency_key() if key is None else key
        _check_text("key", key, _MOST_QUERY_BYTES)
        known = await asyncio.to_thread(self._file.find, key)
        if known is not None:
            return known
        vector = None
        if self._embedder is not None:
            await asyncio.to_thread(self._file.check_model, self._embedder.model)
            vector = self._embedder.model, (await self._vectors([text]))[0]
        return await asyncio.to_thread(self._file.add, key, text, checked, vector)

    async def search(self, query: str, k: int = 5, tags: Sequence[str] = ()) -> list[MemoryHit]:
        """The at most `k` texts (1 to 100) that fit `query` best, best first, ties by id.

        By BM25, these are texts with at least one of its words: without regard to case and accents,
        the same forms of words only. Only texts with all of `tags` count.

        Raises: `ToolArgumentError` for a query above 8 KB or another `k`, `StoreError` for a file
        with vectors of another model, `ModelError`.
        """
        _check_text("query", query, _MOST_QUERY_BYTES)
        if not _is_whole(k, 1, MOST_HITS):
            raise ToolArgumentError(
                f"k is {k!r}", hint=f"give a whole number from 1 to {MOST_HITS}"
            )
        wanted = _checked_tags(tags)
        if self._embedder is None:
            return await asyncio.to_thread(self._file.by_words, query, k, wanted)
        await asyncio.to_thread(self._file.check_model, self._embedder.model)
        await self._add_vectors(self._embedder.model)
        vector = (await self._vectors([query]))[0]
        return await asyncio.to_thread(
            self._file.by_vector, self._embedder.model, vector, k, wanted
        )

    async def forget(self, id: int) -> bool:  # noqa: A002 - the word of users
        """Delete a text. Returns whether there was one. Raises: `StoreError`."""
        if not _is_whole(id, 0, 2**63 - 1):
            raise ToolArgumentError(f"{id!r} is no id", hint="`search` returns ids")
        return await asyncio.to_thread(self._file.forget, id)

    async def count(self) -> int:
        """The number of texts. Raises: `StoreError`."""
        return await asyncio.to_thread(self._file.count)

    async def aclose(self) -> None:
        """Close the file; a further use opens it again."""
        await asyncio.to_thread(self._file.close)

    def tools(self, prefix: str) -> MemoryTools:
        """The memory's tools under names with another prefix; closing them leaves it open."""
        return MemoryTools(self, prefix)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, as `ToolRunner` has them."""
        return self._tools.specs()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool. Raises: what `ToolRunner.call` raises."""
        return await self._tools.call(name, arguments)

    async def _add_vectors(self, model: str) -> None:
        """Embed texts that were added without a model."""
        while texts := await asyncio.to_thread(self._file.without_vector, _AT_ONCE):
            vectors = await self._vectors([text for _, text in texts])
            rows = [(row, vector) for (row, _), vector in zip(texts, vectors, strict=True)]
            await asyncio.to_thread(self._file.put_vectors, model, rows)

    async def _vectors(self, texts: list[str]) -> list[bytes]:
        assert self._embedder is not None
        vectors = [packed(vector) for vector in await self._embedder.embed(texts)]
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) > 1:
            text = f"{self._embedder.model} gave {len(vectors)} embeddings for {len(texts)} texts"
            raise ModelOutputError(f"{text}, or of several lengths", retryable=False)
        return vectors


def _check_text(what: str, text: object, most: int) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ToolArgumentError(f"the {what} is {text!r:.60}", hint="give a text that is not empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise ToolArgumentError(f"the {what} is not valid Unicode: {error.reason}") from error
    if size > most:
        hint = "shorten it, or add it in parts"
        raise ToolArgumentError(f"the {what} has {size:,} bytes, more than {most:,}", hint=hint)


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _checked_tags(tags: Sequence[str]) -> list[str]:
    if isinstance(tags, str) or len(tags) > _MOST_TAGS:
        raise ToolArgumentError(f"the tags are a list of at most {_MOST_TAGS} texts")
    for tag in tags:
        _check_text("tag", tag, 4 * _MOST_TAG_CHARS)
        if len(tag) > _MOST_TAG_CHARS:
            raise ToolArgumentError(f"a tag has more than {_MOST_TAG_CHARS} characters")
    return list(dict.fromkeys(tags))
