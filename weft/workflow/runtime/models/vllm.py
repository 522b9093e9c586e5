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
    from weft.cluster.settings import Ray
    from weft.serving.fleet import ScalingOptions
    from weft.serving.vllm.launch.spec import ServeSpec

_OWN = frozenset(("adapter", "fleet", "keep_alive", "kv_cache", "max_replicas", "on"))
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
        cluster_of(spec)
    openai.client_options(spec.options)
    openai.fleet_options(spec.options)


def make(spec: ModelSpec) -> ModelClient:
    """Raises: `BuildError`, `ModelRequestError`. Opens nothing yet."""
    from weft.serving.vllm.client.model import VllmConnection, VllmModel

    if spec.base_url:
        options = {"fleet": {}, "priority": True, **spec.options}
        return openai.make(spec.model_copy(update={"options": options}))
    ray = cluster_of(spec)
    if ray is not None:
        return _on_cluster(spec, ray)
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


def cluster_of(spec: ModelSpec) -> Ray | None:
    """The Ray cluster that serves the declaration, if any. Raises: `BuildError`."""
    from weft.cluster.replicas import check_placeable
    from weft.cluster.settings import Ray

    place, most = spec.options.get("on"), spec.options.get("max_replicas")
    if place is None:
        if most is not None:
            raise BuildError("the option `max_replicas` goes with `on: ray`")
        return None
    kind, _, address = str(place).partition(":")
    if kind != "ray":
        hint = "ray, or ray:HOST:PORT"
        raise BuildError(f"the option `on` is {place!r:.60}", hint=hint)
    if "keep_alive" in spec.options:
        hint = "`weft serve NAME --on ray` keeps them beyond the run"
        raise BuildError("replicas on a cluster end with their run", hint=hint)
    _scaling(spec)
    try:
        check_placeable(serve_spec(spec))
    except SpecError as error:
        raise BuildError(
            f"the options of {spec.model}: {error.message}", hint=error.hint
        ) from error
    return Ray(address)


def _scaling(spec: ModelSpec) -> ScalingOptions:
    """From `replicas` to `max_replicas`, by the queue. Raises: `BuildError`."""
    from weft.serving.fleet import ScalingOptions

    least = spec.options.get("replicas", 1)
    most = spec.options.get("max_replicas", least)
    for key, value in (("replicas", least), ("max_replicas", most)):
        if type(value) is not int:
            raise BuildError(f"the option `{key}` is a whole number, not {value!r:.60}")
    try:
        return ScalingOptions(least, most)
    except ValueError as error:
        raise BuildError(f"the options `replicas` and `max_replicas`: {error}") from error


def _on_cluster(spec: ModelSpec, ray: Ray) -> ModelClient:
    from weft.cluster.ray_fleet import RayFleet
    from weft.cluster.replicas import RayReplicas
    from weft.serving.openai import OpenAIModel

    wanted = serve_spec(spec)
    options: dict[str, Any] = {"priority": True, "decoder": wanted.decode.method}
    options |= openai.client_options(spec.options)

    def client(url: str) -> ModelClient:
        return OpenAIModel(url, wanted.name, api_key_env=wanted.api_key_env, **options)

    replicas = RayReplicas(wanted, ray)
    return RayFleet(replicas, _scaling(spec), openai.fleet_options(spec.options), client)


def _keep_alive_s(spec: ModelSpec) -> float:
    try:
        return parse_duration(spec.options.get("keep_alive", 0))
    except ValueError as error:
        raise BuildError(f"the option `keep_alive`: {error}") from error


def _serving_fields() -> frozenset[str]:
    from weft.serving.vllm.launch.spec import ServeSpec

    return frozenset(field.name for field in fields(ServeSpec)) - _ELSEWHERE
