"""The operations of a catalogue as tools of an agent: search, expand, contract, choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.agents.catalogue.search import CatalogueIndex
from weft.agents.catalogue.tree import FieldPath
from weft.agents.catalogue.view import CatalogueView
from weft.agents.tools import Tool, Toolbox
from weft.core.values import ToolSpec

_MOST_HITS: Final = 10


class CatalogueOperations:
    """Implements `ToolRunner`: each call checks an operation on `view()` and says what it does.

    No call changes the view. `applied` does, with the calls that succeeded: in a resumed run these
    have recorded results and are not made again.
    """

    def __init__(self, index: CatalogueIndex, view: Callable[[], CatalogueView]) -> None:
        self._index = index
        self._view = view
        operations = (self._search, self._expand, self._contract, self._choose)
        self._toolbox = Toolbox(
            *(
                Tool(each, name=each.__name__.removeprefix("_"), effect="pure", version="1")
                for each in operations
            )
        )

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._toolbox.specs()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return await self._toolbox.call(name, arguments)

    def applied(
        self, view: CatalogueView, operation: str, arguments: Mapping[str, Any]
    ) -> CatalogueView:
        """`view` after an operation. Raises: `ToolArgumentError` where it is not possible."""
        match operation:
            case "search":
                hits = [name for name, _ in self._index.ranked(str(arguments.get("query", "")))]
                return view.search(hits[:_MOST_HITS])
            case "expand":
                return view.expand(_paths(arguments))
            case "contract":
                return view.contract(_paths(arguments))
            case "choose":
                dropped = _texts(arguments.get("drop"))
                return view.drop(dropped).choose(_texts(arguments.get("tools")))
        return view

    async def _search(self, query: str) -> str:
        """Find tools by words of their names, descriptions and fields; they are shown under Found.

        Args:
            query: what one tool should do
        """
        view = self.applied(self._view(), "search", {"query": query})
        return f"found: {', '.join(view.found) or 'nothing'}"

    async def _expand(self, paths: list[str]) -> str:
        """Open fields to see what is inside. Name all that may be needed in one call.

        Args:
            paths: closed fields as the catalogue shows them, such as ["Finance", "Law/Taxes"]
        """
        before = self._view()
        view = self.applied(before, "expand", {"paths": paths})
        return f"open: {_listed(view.expanded - before.expanded)}"

    async def _contract(self, paths: list[str]) -> str:
        """Close fields to make room; they can be opened again.

        Args:
            paths: open fields as the catalogue shows them
        """
        before = self._view()
        view = self.applied(before, "contract", {"paths": paths})
        return f"closed: {_listed(before.expanded - view.expanded)}"

    async def _choose(self, tools: list[str], drop: list[str] | None = None) -> str:
        """Choose tools that the request needs.

        Args:
            tools: names of tools
            drop: names of chosen tools that are not needed after all
        """
        view = self.applied(self._view(), "choose", {"tools": tools, "drop": drop or []})
        return f"chosen: {', '.join(view.chosen) or 'none'}"


def _paths(arguments: Mapping[str, Any]) -> list[FieldPath]:
    return [
        tuple(part.strip() for part in text.split("/")) for text in _texts(arguments.get("paths"))
    ]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, Sequence) else []


def _listed(paths: frozenset[FieldPath]) -> str:
    return ", ".join("/".join(path) for path in sorted(paths))
