"""Where results, and what is known of tools, are kept between runs when nobody gives a store."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

from weft.core.ports import ResultStore
from weft.engine.store_sqlite import SqliteStore
from weft.workflow.document import Document
from weft.workflow.document.leaves import ToolNode
from weft.workflow.document.walk import walk
from weft.workflow.unit import Unit


def needs_store(unit: Unit) -> bool:
    """Whether a node of the workflow keeps anything between runs."""
    return any(_keeps(included.document) for included in unit.everything())


def default_store() -> ResultStore:
    """A store in the user's cache folder (`WEFT_HOME`, if set)."""
    home = Path(os.environ.get("WEFT_HOME") or user_cache_path("weft"))
    home.mkdir(parents=True, exist_ok=True)
    return SqliteStore(home / "results.sqlite")


def _keeps(document: Document) -> bool:
    """True when a node has a cache, or tools to choose among."""
    steps = [step for _, step in walk(document.nodes)]
    chooses = any(isinstance(step, ToolNode) and step.alternatives for step in steps)
    return chooses or any(step.cache is not None for step in steps)
