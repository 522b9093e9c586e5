"""Where results are kept between runs, when a workflow asks for it and nobody gives a store."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

from weft.core.ports import ResultStore
from weft.engine.store_sqlite import SqliteStore
from weft.workflow.document import Document
from weft.workflow.document.walk import walk
from weft.workflow.unit import Unit


def default_store(unit: Unit) -> ResultStore | None:
    """A store in the user's cache folder (`WEFT_HOME`, if set); None when no node has a cache."""
    if not any(_caches(included.document) for included in unit.everything()):
        return None
    home = Path(os.environ.get("WEFT_HOME") or user_cache_path("weft"))
    home.mkdir(parents=True, exist_ok=True)
    return SqliteStore(home / "results.sqlite")


def _caches(document: Document) -> bool:
    return any(step.cache is not None for _, step in walk(document.nodes))
