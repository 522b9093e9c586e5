"""The tools of a memory: add, search and forget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Protocol

from pydantic import Field

from weft.agents.memory.memory_file import MemoryHit
from weft.agents.tools import Tool, Toolbox
from weft.core.errors import BuildError
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec

MOST_HITS: Final = 100


class Texts(Protocol):
    """What the tools need of a `Memory`."""

    async def add(self, text: str, tags: Sequence[str] = (), *, key: str | None = None) -> int: ...

    async def search(self, query: str, k: int = 5, tags: Sequence[str] = ()) -> list[MemoryHit]: ...

    async def forget(self, id: int) -> bool: ...  # noqa: A002 - the word of users

    async def aclose(self) -> None: ...


class MemoryTools:
    """Implements `ToolRunner` over `memory`, whose tools get names with `prefix`.

    `only`: just these of `add`, `search`, `forget`. `owns`: closing them closes the memory, and the
    client `embedder` of its search.

    Raises: `BuildError` for an unknown name in `only`.
    """

    def __init__(
        self,
        memory: Texts,
        prefix: str,
        only: Sequence[str] = (),
        *,
        owns: bool = False,
        embedder: Any = None,
    ) -> None:
        made: dict[str, Tool[..., Any]] = {
            "add": Tool(self._add, name=f"{prefix}add", effect="idempotent", version="1"),
            # Not `pure=True`: the same search finds more once something has been added.
            "search": Tool(self._search, name=f"{prefix}search", effect="pure", version="1"),
            "forget": Tool(self._forget, name=f"{prefix}forget", effect="idempotent", version="1"),
        }
        for name in only:
            if name not in made:
                raise BuildError(f"a memory has no tool {name!r}", hint=suggestion(name, made))
        self._memory = memory
        self._owns = owns
        self._embedder = embedder
        self._toolbox = Toolbox(*(tool for name, tool in made.items() if not only or name in only))

    async def start(self) -> None:
        """Does nothing; part of the common interface of tool sources."""

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._toolbox.specs()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._toolbox.call(name, arguments)

    async def aclose(self) -> None:
        """Close the memory, if it belongs to the tools."""
        if self._owns:
            await self._memory.aclose()
        if self._embedder is not None:
            await self._embedder.aclose()

    async def _add(
        self, text: str, tags: list[str] | None = None, idempotency_key: str = ""
    ) -> int:
        """Remember a short text for later conversations.

        Args:
            text: one fact in one or few sentences that can be understood alone
            tags: short labels by which searches can be narrowed

        Returns:
            the id of the text
        """
        return await self._memory.add(text, tags or (), key=idempotency_key or None)

    async def _search(
        self,
        query: str,
        k: Annotated[int, Field(ge=1, le=MOST_HITS)] = 5,
        tags: list[str] | None = None,
    ) -> list[MemoryHit]:
        """Find remembered texts, the best first.

        Args:
            query: a question or words that the texts are about
            k: the most texts to return
            tags: only texts with all of these tags
        """
        return await self._memory.search(query, k, tags or ())

    async def _forget(self, id: int) -> bool:  # noqa: A002 - its name in the schema
        """Delete a remembered text.

        Args:
            id: the id of the text, as a search returns it

        Returns:
            whether there was such a text
        """
        return await self._memory.forget(id)
