"""`use: vllm`: servers that weft starts or finds running; or, with `base_url`, existing ones."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from weft.core.errors import BuildError, SpecError
from weft.core.ports import ModelClient
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.defects import check_keys
from weft.workflow.document.spec.fields import parse_duration, parse_size
from weft.workflow.runtime.models import openai

if TYPE_CHECKING:
    from weft.serving.vllm.launch.spec import ServeSpec

_OWN = frozenset(("adapter", "fleet", "keep_alive", "kv_cache"))
_ELSEWHERE = frozenset(("model", "api_key_env", "kv_cache_bytes", "host", "port"))
"""Fields of a spec that a declaration sets in another way, or not at all."""


def check(spec: ModelSpec) -> None:
    """Raises: `BuildError`."""
    if spec.base_url:
        openai.check_addresses(spec.base_url)
        check_keys(
            spec.options,
            openai.CLIENT | {"adapter", "discover", "fleet"},
            "option for servers that run already:",
        )
        openai.source_of(spec)
    else:
        check_keys(spec.options, openai.CLIENT | _OWN | _serving_fields())
        serve_spec(spec)
        _keep_alive_s(spec)
    openai.client_options(spec.options)
    openai.fleet_options(spec.options)


def make(spec: ModelSpec) -> ModelClient:
    """Raises: `BuildError`, `ModelRequestError`. Opens nothing yet."""
    from weft.serving.vllm.client.model import VllmConnection, VllmModel

    if spec.base_url:
        options = {"fleet": {}, "priority": True, **spec.options}
        return openai.make(spec.model_copy(update={"options": options}))
    connection = VllmConnection(
        openai.fleet_options(spec.options), openai.client_options(spec.options), _keep_alive_s(spec)
    )
    return VllmModel(serve_spec(spec), connection)


def serve_spec(spec: ModelSpec) -> ServeSpec:
    """The serving options of the declaration. Raises: `BuildError`."""
    from weft.serving.vllm.launch.decoders import parse_decode
    from weft.serving.vllm.launch.spec import ServeSpec

    given: dict[str, Any] = {
        key: value for key, value in spec.options.items() if key in _serving_fields()
    }
    try:
        if "decode" in given:
            given["decode"] = parse_decode(given["decode"])
        if "extra" in given:
            given["extra"] = tuple(given["extra"])
        if "kv_cache" in spec.options:
            given["kv_cache_bytes"] = parse_size(spec.options["kv_cache"])
        return ServeSpec(spec.model, api_key_env=spec.api_key_env, **given)
    except (SpecError, TypeError, ValueError) as error:
        hint = error.hint if isinstance(error, SpecError) else None
        message = error.message if isinstance(error, SpecError) else str(error)
        raise BuildError(f"the options of {spec.model}: {message}", hint=hint) from error


def _keep_alive_s(spec: ModelSpec) -> float:
    try:
        return parse_duration(spec.options.get("keep_alive", 0))
    except ValueError as error:
        raise BuildError(f"the option `keep_alive`: {error}") from error


def _serving_fields() -> frozenset[str]:
    from weft.serving.vllm.launch.spec import ServeSpec

    return frozenset(field.name for field in fields(ServeSpec)) - _ELSEWHERE
