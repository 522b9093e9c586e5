"""Model clients of a run, made from their declarations on first use, once each.

The composition root: the only module that knows all kinds of clients. Opens nothing early.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from weft.core.errors import BuildError, ModelRequestError, WeftError
from weft.core.keywords import refuses_unknown_keywords
from weft.core.ports import ModelClient, ModelRequest, Sampling, complete
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, Message
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.declarations import Model, ModelSpec
from weft.workflow.document.spec.defects import first_defect
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models import COMPOSED, KINDS, client_kind
from weft.workflow.runtime.models.composed import ComposedModels, check_composed, is_composed
from weft.workflow.runtime.models.moderation import (
    check_moderator,
    refuse_surroundings,
    with_moderator,
)
from weft.workflow.runtime.tools.functions import build_error, function_of

DEFAULT_MODEL = "local:smollm2-135m-instruct"
DEFAULT_PLANNER = "local:weft-planner"
"""The default model."""


class ModelSource(Protocol):
    """Provides the model clients of nodes."""

    def client(self, unit: Unit, name: str) -> ModelClient:
        """The client of the model that `unit` calls `name`. Raises: `BuildError`, `ModelError`."""


class Models:
    """Makes clients from declarations; equal declarations share one client.

    Use one for several runs, and weights are loaded once:

        async with Models() as models:
            await flow.run(topic="rivers", models=models)

    `decode` is the default decoder of models in this process.

    Raises: `BuildError` for an unknown decoder.
    """

    @refuses_unknown_keywords
    def __init__(self, *, decode: str | None = None) -> None:
        self._decode: DecodeSpec = AUTOREGRESSIVE
        if decode is not None:
            from weft.workflow.runtime.models.decoders import parse_decoder

            self._decode = parse_decoder(decode)
        self._clients: dict[str, ModelClient] = {}
        self._composed = ComposedModels(self.client)
        self._local: Any = None

    async def __aenter__(self) -> Models:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def client(self, unit: Unit, name: str) -> ModelClient:
        if name in unit.clients:
            return unit.clients[name]
        if is_composed(unit, name):
            return self._composed.client(unit, name)
        client = self._shared(unit.document.models[name], unit)
        return with_moderator(unit, name, client, lambda other: self.client(unit, other))

    def of(self, declared: str | Mapping[str, Any]) -> ModelClient:
        """The client of a model declared as under `models` of a workflow: `local:NAME`, say.

        Functions that make clients are for workflow files. Raises: `BuildError`, `ModelError`.
        """
        spec = _spec(declared)
        refuse_surroundings(spec)
        return self._shared(spec, None)

    async def warm(self, unit: Unit) -> None:
        """Load the weights and start the servers that `unit` declares, before any run needs them.

        Raises: `BuildError`, `ModelError`, `ServeError`.
        """
        greeting = ModelRequest((Message("user", "Hello"),), sampling=Sampling(max_tokens=1))
        for name, spec in unit.document.models.items():
            if spec.use in ("local", "vllm"):
                client = unit.clients.get(name) or self._shared(spec, unit)
                with suppress(ModelRequestError):  # a refusal too shows that the model is loaded
                    await complete(client, greeting)  # without the moderator

    async def aclose(self) -> None:
        """Close every client made here. Harmless when repeated."""
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.aclose()
        if self._local is not None:
            await self._local.aclose()

    def _shared(self, spec: ModelSpec, unit: Unit | None) -> ModelClient:
        spec = spec.model_copy(update={"moderator": None, "breaker": None})  # they share weights
        key = repr((spec, unit.folder if unit is not None and ":" in spec.use else None))
        if key not in self._clients:
            self._clients[key] = self._make(unit, spec)
        return self._clients[key]

    def _make(self, unit: Unit | None, spec: ModelSpec) -> ModelClient:
        check_model(spec)
        match spec.use:
            case "local":
                return self._make_local(spec)
            case "openai" | "vllm" | "anthropic" | "gemini":
                made: ModelClient = client_kind(spec.use).make(spec)
                return made
        if unit is None:
            hint = "use local, vllm, openai, anthropic or gemini"
            raise BuildError(f"{spec.use} needs a workflow file that it stands in", hint=hint)
        make = _factory(unit, spec)
        try:
            client: ModelClient = make(spec.model, **spec.options)
        except TypeError as error:
            raise BuildError(f"{spec.use} cannot make a model: {error}") from error
        return client

    def _make_local(self, spec: ModelSpec) -> ModelClient:
        from weft.serving.local import LocalModels

        if self._local is None:
            self._local = LocalModels()
        options = client_kind("local").options(spec)
        if options.decode == AUTOREGRESSIVE:
            options = replace(options, decode=self._decode)
        client: ModelClient = self._local.get(spec.model, options)
        return client


class GivenModels:
    """Models given for one run, by name; other models come from `rest`."""

    def __init__(self, given: Mapping[str, ModelClient], rest: ModelSource) -> None:
        self._given = given
        self._rest = rest
        self._composed = ComposedModels(self.client)

    def client(self, unit: Unit, name: str) -> ModelClient:
        if name in self._given:
            return with_moderator(
                unit, name, self._given[name], lambda other: self.client(unit, other)
            )
        if is_composed(unit, name):  # its parts may be among the given models
            return self._composed.client(unit, name)
        return self._rest.client(unit, name)


def check_model(spec: ModelSpec) -> None:
    """Check a declaration without opening anything.

    Raises: `BuildError`, whose message names the key.
    """
    if spec.use in KINDS - COMPOSED:  # composed models are checked when the document is read
        client_kind(spec.use).check(spec)
    elif spec.use not in KINDS and ":" not in spec.use:
        hint = f"use {', '.join(sorted(KINDS))}, or a function: ./file.py:name"
        raise BuildError(f"there is no kind of model {spec.use!r}", hint=hint)


def check_models(unit: Unit, given: Container[str] = (), log: DefectLog | None = None) -> None:
    """Check the models that `unit` declares, except those `given`.

    Raises: `BuildError` with all defects; with a `log` nothing.
    """
    own = DefectLog() if log is None else log
    for name, spec in unit.document.models.items():
        if name not in unit.clients and name not in given:
            with own:
                _check_declared(unit, name, spec)
    if log is None:
        own.finish()


def unset_keys(unit: Unit, given: Container[str] = ()) -> list[str]:
    """A note for each declared model, except those `given`, whose key's variable is not set.

    Not a defect: a file may be checked where it does not run, and many servers need no key.
    """
    notes = []
    for included in unit.everything():
        for name, spec in included.document.models.items():
            variable = _key_variable(spec)
            replaced = name in given or name in included.clients
            if not replaced and variable is not None and not os.environ.get(variable):
                notes.append(
                    f"the model {name}: the environment variable {variable} is not set; its "
                    f"requests have no key ({_key_hint(included, name, spec)})"
                )
    return notes


def _key_variable(spec: ModelSpec) -> str | None:
    if spec.use in ("anthropic", "gemini"):
        variable: str | None = client_kind(spec.use).key_variable(spec)
        return variable
    return spec.api_key_env


def _key_hint(unit: Unit, name: str, spec: ModelSpec) -> str:
    """Where the model is declared, if in a file, and what to do about its key."""
    line = unit.line_of(("models", name, "api_key_env" if spec.api_key_env else "use"))
    place = "" if line is None else f"{line}; "
    return f"{place}set it, or name another in `api_key_env`"


def _check_declared(unit: Unit, name: str, spec: ModelSpec) -> None:
    try:
        check_model(spec)
        if is_composed(unit, name):
            check_composed(unit, name)
        elif ":" in spec.use:
            _factory(unit, spec)
    except WeftError as error:
        at_key = error.message.startswith("there is no ")
        unit.fail(build_error(error), ("models", name, *_place(spec, error)), at_key=at_key)
    try:
        check_moderator(unit, name)
    except WeftError as error:
        unit.fail(build_error(error), ("models", name, "moderator"))
    if spec.think is not None:
        from weft.workflow.runtime.models.strategies import check_strategy

        check_strategy(unit, spec.think, ("models", name, "think"))


def _place(spec: ModelSpec, error: WeftError) -> KeyPath:
    """The keys, in a declaration, that an error of it is about."""
    if spec.use == "think":
        return ("model",)
    if spec.use == "route":
        learnt = spec.predictor and spec.predictor in error.message
        return ("predictor" if learnt else "among",)
    if error.message.startswith("`base_url`"):
        return ("base_url",)
    named = _named(spec.options, error.message)
    return ("options", *named) if named or "option" in error.message else ("use",)


def _named(options: Mapping[str, Any], message: str) -> KeyPath:
    """The option that `message` names, and the key in it; empty: none."""
    for key, value in options.items():
        if f"`{key}`" in message or repr(key) in message:
            return (key, *(_named(value, message) if isinstance(value, Mapping) else ()))
    return ()


def _spec(declared: str | Mapping[str, Any]) -> ModelSpec:
    given = dict(declared) if isinstance(declared, Mapping) else declared
    try:
        spec: ModelSpec = TypeAdapter(Model).validate_python(given)
    except ValidationError as error:
        defect = first_defect(error, given)
        hint = "local:NAME, anthropic:NAME, or use, model, base_url, api_key_env, options"
        raise BuildError(f"the model: {defect.message}", hint=hint) from error
    return spec


def _factory(unit: Unit, spec: ModelSpec) -> Callable[..., Any]:
    return function_of(unit, spec.use)
