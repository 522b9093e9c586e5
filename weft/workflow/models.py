"""Where the models of a run come from: made from their declarations, on first use, once.

The composition root: the only place that knows which clients there are. Opens nothing early.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

from weft.core.errors import BuildError, ModelRequestError, WeftError
from weft.core.ports import ModelClient, ModelRequest, Sampling, complete
from weft.core.values import Message
from weft.workflow.document.declarations import ModelSpec
from weft.workflow.imports import build_error, function_of
from weft.workflow.unit import Unit

_OPENAI_OPTIONS = (
    "connect_timeout_s",
    "connections",
    "extra_body",
    "idle_timeout_s",
    "max_answer_chars",
    "price",
    "priority",
)


class ModelSource(Protocol):
    """Gives works their model clients."""

    def client(self, unit: Unit, name: str) -> ModelClient:
        """The client of the model that `unit` calls `name`. Raises: `BuildError`, `ModelError`."""


class Models:
    """Makes clients from declarations; equal declarations share one client.

    Use one for several runs, and weights are loaded once:

        async with Models() as models:
            await flow.run(topic="rivers", models=models)
    """

    def __init__(self) -> None:
        self._clients: dict[str, ModelClient] = {}
        self._local: Any = None

    async def __aenter__(self) -> Models:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def client(self, unit: Unit, name: str) -> ModelClient:
        if name in unit.clients:
            return unit.clients[name]
        spec = unit.document.models[name]
        key = repr((spec, unit.folder if ":" in spec.use else None))
        if key not in self._clients:
            self._clients[key] = self._make(unit, spec)
        return self._clients[key]

    async def warm(self, unit: Unit) -> None:
        """Load the weights of all local models that `unit` declares, so that no run waits for it.

        Raises: `BuildError`, `ModelError`.
        """
        word = ModelRequest((Message("user", "Hello"),), sampling=Sampling(max_tokens=1))
        for name, spec in unit.document.models.items():
            if spec.use == "local":
                await complete(self.client(unit, name), word)

    async def aclose(self) -> None:
        """Close every client made here. Harmless when repeated."""
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.aclose()
        if self._local is not None:
            await self._local.aclose()

    def _make(self, unit: Unit, spec: ModelSpec) -> ModelClient:
        check_model(spec)
        if spec.use == "local":
            return self._make_local(spec)
        if spec.use == "openai":
            return _make_openai(spec)
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
        client: ModelClient = self._local.get(spec.model, _local_options(spec))
        return client


class GivenModels:
    """Models given for one run, by name; what is not given comes from `rest`."""

    def __init__(self, given: Mapping[str, ModelClient], rest: ModelSource) -> None:
        self._given = given
        self._rest = rest

    def client(self, unit: Unit, name: str) -> ModelClient:
        return self._given[name] if name in self._given else self._rest.client(unit, name)


def check_model(spec: ModelSpec) -> None:
    """Check what a declaration says, without opening anything.

    Raises: `BuildError`, whose message names the key.
    """
    if spec.use == "local":
        if spec.base_url is not None:
            hint = "use: openai"
            raise BuildError("`base_url` does not go with a model in this process", hint=hint)
        _local_options(spec)
    elif spec.use == "openai":
        if spec.base_url is None:
            hint = "such as http://127.0.0.1:8000/v1"
            raise BuildError("a model behind an endpoint needs `base_url`", hint=hint)
        _openai_options(spec)
    elif ":" not in spec.use:
        hint = "use local, openai, or a function: ./file.py:name"
        raise BuildError(f"there is no kind of model {spec.use!r}", hint=hint)


def check_models(unit: Unit, given: Container[str] = ()) -> None:
    """Check the models that `unit` declares, but those `given`. Raises: `BuildError`."""
    for name, spec in unit.document.models.items():
        if name in unit.clients or name in given:
            continue
        try:
            check_model(spec)
            if ":" in spec.use:
                _factory(unit, spec)
        except WeftError as error:
            key = "options" if "option" in error.message else "use"
            unit.fail(build_error(error), ("models", name, key))


def _factory(unit: Unit, spec: ModelSpec) -> Callable[..., Any]:
    return function_of(unit, spec.use)


def _local_options(spec: ModelSpec) -> Any:
    from weft.serving.local import LocalOptions

    try:
        return LocalOptions(**spec.options)
    except (TypeError, ValueError) as error:
        raise BuildError(f"the options of {spec.model}: {error}") from error


def _openai_options(spec: ModelSpec) -> dict[str, Any]:
    from weft.serving.openai import Price

    for key in spec.options:
        if key not in _OPENAI_OPTIONS:
            there = ", ".join(_OPENAI_OPTIONS)
            raise BuildError(f"there is no option {key!r}", hint=f"there are: {there}")
    options = dict(spec.options)
    try:
        if "price" in options:
            options["price"] = Price(**options["price"])
    except TypeError as error:
        hint = "US dollars per million tokens: {prompt: 0.1, completion: 0.4}"
        raise BuildError(f"the option `price`: {error}", hint=hint) from error
    return options


def _make_openai(spec: ModelSpec) -> ModelClient:
    from weft.serving.openai import OpenAIModel

    assert spec.base_url is not None
    try:
        return OpenAIModel(
            spec.base_url, spec.model, api_key_env=spec.api_key_env, **_openai_options(spec)
        )
    except (TypeError, ValueError) as error:
        raise ModelRequestError(f"the model {spec.model}: {error}") from error
