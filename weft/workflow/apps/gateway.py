"""Workflows behind an OpenAI-compatible API, for the command line and for Python programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from weft.core.errors import BuildError, DuplicateName, ServeError, UnknownReference
from weft.core.extras import optional_packages
from weft.core.loggers import logger
from weft.core.ports import ModelClient
from weft.core.ports.journal import Journal
from weft.decoding.diffusion.guard.priors import PriorLimits
from weft.serving.local import LocalModel
from weft.serving.moderation import ModeratedModel
from weft.workflow.apps.flow_model import EXTRA_FIELDS, FlowModel
from weft.workflow.apps.served import RecordingOptions
from weft.workflow.apps.submissions import JournalSubmissions
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.spec.settings import Durability
from weft.workflow.document.unit import Unit
from weft.workflow.flow import Flow
from weft.workflow.history.answers import JournalHumanInputs
from weft.workflow.queue.worker import Worker
from weft.workflow.runtime.models.factory import Models
from weft.workflow.runtime.models.think import ThoughtModel
from weft.workflow.runtime.telemetry import run_metrics

with optional_packages("a gateway", ServeError):
    from weft.serving.gateway import (
        Gateway,
        GatewayExchange,
        GatewayKeys,
        GatewayOptions,
        Report,
        ServedModel,
    )

_logger = logger("gateway")

__all__ = ["GatewayExchange", "GatewayKeys", "GatewayOptions", "Report", "WorkflowGateway"]


class WorkflowGateway:
    """Serves `flows`, each as a model of its name; their models are loaded once, and shared.

        gateway = WorkflowGateway([weft.load("assistant.yaml")], GatewayOptions(port=0))
        gateway.bind()
        await gateway.serve(lambda: print(gateway.address))

    `models`: declared models of the workflows that are served directly too, such as thinking
    models. `progress` and `report`: see `FlowModel` and `Gateway`.

    With `journal` the runs of workflows are recorded there, with `durability` or each workflow's
    own, and the header `x-weft-run` of a reply has the run's id. With `answers`, clients can answer
    questions of its runs, and continue them by the next message. The journal's owner closes it
    after `serve`.

    With `submissions` clients submit runs to the journal's queue and look at them (`/v1/runs`).
    `worker`: it also executes so many queued runs at once, and recorded runs of chats whose gateway
    died are continued: by this one, or by another gateway or `Worker` on the journal.

    Raises: `BuildError` when a workflow is invalid, has the name of another, or asks a person
    without `answers`, or when a journal is missing.
    """

    def __init__(
        self,
        flows: Sequence[Flow],
        options: GatewayOptions | None = None,
        *,
        models: Sequence[str] = (),
        progress: bool = False,
        report: Report | None = None,
        journal: Journal | None = None,
        durability: Durability | None = None,
        answers: bool = False,
        submissions: bool = False,
        worker: int = 0,
    ) -> None:
        if journal is None and (submissions or worker):
            raise BuildError("a queue of which journal?", hint="give the `journal`")
        continued = worker and durability != "none"
        recording = RecordingOptions(journal, durability, "default" if continued else None)
        names = [flow.name for flow in flows]
        _check_names(names, "workflows")
        _check_names([*names, *models], "models")
        self._models = Models()
        self._flows = flows
        metrics = run_metrics()
        self.flow_models = [
            FlowModel(
                flow,
                self._models,
                progress=progress,
                make_listener=metrics.listener,
                recording=recording,
                answers=answers,
            )
            for flow in flows
        ]
        served = [
            ServedModel(
                flow.name, model, EXTRA_FIELDS, flow.description, runs=recording.journal is not None
            )
            for flow, model in zip(flows, self.flow_models, strict=True)
        ]
        self.other_models = tuple(models)
        self._others = [self._models.client(_owner(flows, name), name) for name in models]
        served += [
            ServedModel(name, client, priors=PriorLimits() if _diffuses(client) else None)
            for name, client in zip(models, self._others, strict=True)
        ]
        self._gateway = Gateway(
            served,
            options,
            report,
            _human_inputs(journal) if answers else None,
            metrics.registry,
            JournalSubmissions(flows, journal) if submissions and journal is not None else None,
            None if journal is None else partial(_check_journal, journal),
        )
        self._worker: Worker | None = None
        if worker and journal is not None:
            drain_s = (options or GatewayOptions()).drain_s
            self._worker = Worker(
                flows, journal, concurrency=worker, grace_s=drain_s, models=self._models
            )
        self._draining = asyncio.Event()

    @property
    def address(self) -> str:
        """`http://host:port`, without the `/v1`. Valid after `bind`."""
        return self._gateway.address

    def bind(self) -> None:
        """Take the port, without accepting connections before `serve`. Raises: `ServeError`."""
        self._gateway.bind()

    def drain(self) -> None:
        """Refuse new requests and finish those in progress. Call it in the loop's thread."""
        self._draining.set()
        self._gateway.drain()
        if self._worker is not None:
            self._worker.drain()

    async def serve(self, ready: Callable[[], None] | None = None, *, warm: bool = True) -> bool:
        """Load models (unless not `warm`), call `ready`, and serve until drained.

        Returns False when answers had to be cut off. Raises: `ServeError`, and errors of loading.
        """
        try:
            if warm and not await self._warmed():
                return True
            if self._worker is None:
                return await self._gateway.serve(ready)
            return await self._serve_both(self._worker, ready)
        finally:
            self._gateway.close()
            for model in (*self.flow_models, *self._others):
                if isinstance(model, (FlowModel, ThoughtModel)):  # `Models` closes the others
                    await model.aclose()
            await self._models.aclose()

    async def _serve_both(self, worker: Worker, ready: Callable[[], None] | None) -> bool:
        working = asyncio.create_task(worker.serve())
        working.add_done_callback(_log_failure)
        try:
            whole = await self._gateway.serve(ready)
        finally:
            worker.drain()
            await asyncio.wait([working])
        return whole and working.exception() is None and working.result()

    async def _warmed(self) -> bool:
        """Warm the models; False when drained before the end."""
        warming = asyncio.create_task(self._warm())
        draining = asyncio.create_task(self._draining.wait())
        try:
            await asyncio.wait((warming, draining), return_when=asyncio.FIRST_COMPLETED)
            if warming.done():
                warming.result()
            return warming.done()
        finally:
            warming.cancel()
            draining.cancel()
            await asyncio.wait((warming, draining))

    async def _warm(self) -> None:
        for flow in self._flows:
            for unit in flow.unit.everything():
                await self._models.warm(unit)


def _diffuses(client: ModelClient) -> bool:
    """Whether the model fills its answer in around given text."""
    if isinstance(client, ModeratedModel):
        return _diffuses(client.client)
    return isinstance(client, LocalModel) and client.diffuses


def _log_failure(working: asyncio.Task[bool]) -> None:
    if not working.cancelled() and (error := working.exception()) is not None:
        _logger.error("queued runs are not executed any more: %s", error)


def _check_journal(journal: Journal) -> None:
    """Raises: `StoreError` for a journal that cannot be used now."""
    journal.runs(limit=1)


def _human_inputs(journal: Journal | None) -> JournalHumanInputs:
    if journal is None:
        raise BuildError("questions of which runs?", hint="give the `journal` that they are in")
    return JournalHumanInputs(journal)


def _check_names(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            hint = "the `name` of a workflow is what clients call the model"
            raise DuplicateName(f"two {what} are called {name!r}", hint=hint)


def _owner(flows: Sequence[Flow], model: str) -> Unit:
    """The workflow that declares `model`."""
    owners = [flow.unit for flow in flows if model in flow.document.models]
    if len(owners) == 1:
        return owners[0]
    models = sorted({name for flow in flows for name in flow.document.models})
    if owners:
        raise DuplicateName(f"two workflows declare the model {model!r}", hint="rename one")
    raise UnknownReference(
        f"no workflow declares the model {model!r}", hint=choice_hint(model, models)
    )
