"""The keyword arguments of a workflow in Python and of its runs, for type checkers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from weft.core.budget import Budget
from weft.core.events import Listener
from weft.core.ids import RunId
from weft.core.ports import Clock, ModelClient, ResultStore, ToolRunner
from weft.core.ports.journal import Journal
from weft.engine import Limit
from weft.workflow.document.settings import Durability
from weft.workflow.models import ModelSource


class FlowLimits(TypedDict, total=False):
    """What a whole run may take; see `RunSpec`."""

    deadline: float | str
    concurrency: int
    limits: Mapping[str, int]
    max_nodes: int
    budget: Mapping[str, object] | Budget
    seed: int
    durability: Durability
    journal_wait: float | str


class FlowSettings(TypedDict, total=False):
    """How a run differs from what the workflow says; see `RunSettings`."""

    listeners: Iterable[Listener]
    models: Mapping[str, ModelClient] | ModelSource | None
    tools: ToolRunner | None
    clock: Clock | None
    store: ResultStore | None
    concurrency: int | None
    limits: Mapping[str, int]
    max_nodes: int | None
    deadline_s: float | None
    budget: Budget | Limit | Mapping[str, object] | None
    seed: int | None
    run: RunId | None
    journal: Journal | None
    durability: Durability | None
    journal_wait_s: float | None
