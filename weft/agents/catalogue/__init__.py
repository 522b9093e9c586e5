"""Thousands of tools in a tree of fields, of which an agent is offered the few that it needs.

read_catalogue(path) -> Catalogue       declarations with their fields, from a file
Catalogue.grouped(specs) -> Catalogue   any tools, by the prefixes of their names
CatalogueIndex(catalogue)               ranks tools and fields by the words of a request
CatalogueView                           what a model sees: search, expand, contract, choose
LexicalChooser, ModelChooser            choose tools within a limit of tokens
CatalogueOptions                        for `AgentOptions(catalogue=...)`

Names are loaded when they are first used: the options of agents need none of the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.lazy import lazy_names

if TYPE_CHECKING:
    from weft.agents.catalogue.choice import ToolChoice, ToolChooser
    from weft.agents.catalogue.lexical import LexicalChooser
    from weft.agents.catalogue.model import ModelChooser
    from weft.agents.catalogue.options import CatalogueOptions
    from weft.agents.catalogue.reader import read_catalogue
    from weft.agents.catalogue.search import CatalogueIndex
    from weft.agents.catalogue.tree import Catalogue
    from weft.agents.catalogue.view import CatalogueView

_NAMES = {
    "weft.agents.catalogue.choice": "ToolChoice ToolChooser",
    "weft.agents.catalogue.lexical": "LexicalChooser",
    "weft.agents.catalogue.model": "ModelChooser",
    "weft.agents.catalogue.options": "CatalogueOptions",
    "weft.agents.catalogue.reader": "read_catalogue",
    "weft.agents.catalogue.search": "CatalogueIndex",
    "weft.agents.catalogue.tree": "Catalogue",
    "weft.agents.catalogue.view": "CatalogueView",
}
__all__ = [
    "Catalogue",
    "CatalogueIndex",
    "CatalogueOptions",
    "CatalogueView",
    "LexicalChooser",
    "ModelChooser",
    "ToolChoice",
    "ToolChooser",
    "read_catalogue",
]

__getattr__, __dir__ = lazy_names(__name__, _NAMES)
