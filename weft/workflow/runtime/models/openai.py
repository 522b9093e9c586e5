"""`use: openai`: servers with an OpenAI-compatible API; several addresses are replicas of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from weft.core.errors import BuildError, ModelRequestError
from weft.core.ports import ModelClient
from weft.serving.extra_arguments import RESERVED_FIELDS
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.defects import check_choice, check_keys

if TYPE_CHECKING:
    from weft.serving.fleet import FleetOptions

CLIENT = frozenset(
    (
        *("cache_salt_env", "connect_timeout_s", "connections", "context", "extra_body"),
        "idle_timeout_s",
        *("max_answer_chars", "price", "priority", "reasoning", "thinking", "tool_format"),
    )
)
"""Options of the connection to one server."""


def check(spec: ModelSpec) -> None:
    """Raises: `BuildError`."""
    if not spec.base_url:
        hint = "such as http://127.0.0.1:8000/v1; or `use: vllm`, which starts a server"
        raise BuildError("a model behind an endpoint needs `base_url`", hint=hint)
    check_addresses(spec.base_url)
    check_keys(spec.options, CLIENT | {"adapter", "fleet"})
    client_options(spec.options)
    fleet_options(spec.options)


def check_addresses(urls: Iterable[str]) -> None:
    """Raises: `BuildError` for an invalid address."""
    from weft.serving.openai.endpoint import Endpoint

    for url in urls:
        try:
            Endpoint(url, "")
        except ValueError as error:  # without the address, which may contain a password
            message = str(error).replace("base_url", "`base_url`", 1)
            hint = "such as http://127.0.0.1:8000/v1; `api_key_env` names the variable with a key"
            raise BuildError(message, hint=hint) from error


def make(spec: ModelSpec) -> ModelClient:
    """Raises: `BuildError`, `ModelRequestError`."""
    from weft.serving.fleet import Fleet
    from weft.serving.openai import OpenAIModel

    options, urls = client_options(spec.options), spec.base_url or ()
    try:
        replicas = [
            OpenAIModel(url, spec.model, api_key_env=spec.api_key_env, **options) for url in urls
        ]
    except (TypeError, ValueError) as error:
        raise ModelRequestError(f"the model {spec.model}: {error}") from error
    if len(replicas) == 1 and "fleet" not in spec.options:
        return replicas[0]
    return Fleet(replicas, fleet_options(spec.options))


def client_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options among `given` that belong to one connection. Raises: `BuildError`."""
    from weft.serving.openai.contract import check_forms

    options = {key: value for key, value in given.items() if key in CLIENT}
    _check_text_forms(options)
    _check_thinking(options.get("thinking"))
    _check_body(options.get("extra_body"))
    _check_limits(options)
    options = with_price(options)
    try:
        check_forms(options.get("context", ()))
    except ValueError as error:
        hint = "docs/serving/program-contract.md has the table of forms"
        raise BuildError(f"the option `context`: {error}", hint=hint) from error
    return options


def with_price(options: Mapping[str, Any]) -> dict[str, Any]:
    """`options`, with the `Price` among them made. Raises: `BuildError`."""
    from weft.serving.openai import Price

    if "price" not in options:
        return dict(options)
    try:
        return {**options, "price": Price(**options["price"])}
    except TypeError as error:
        hint = "US dollars per million tokens: {prompt: 0.1, completion: 0.4}"
        raise BuildError(f"the option `price`: {error}", hint=hint) from error


def _check_text_forms(options: Mapping[str, Any]) -> None:
    """Raises: `BuildError` for an unknown parser of thoughts or of tool calls."""
    from weft.serving.text import FORMATS, ReasoningStyle

    check_choice(options, "reasoning", get_args(ReasoningStyle))
    check_choice(options, "tool_format", tuple(FORMATS))


_OWN_FIELDS = RESERVED_FIELDS | {"max_tokens", "max_completion_tokens", "temperature", "seed"}
_THINKING_HINT = "such as `thinking: {off: {reasoning_effort: none}, budget: thinking_budget}`"


def _check_thinking(given: Any) -> None:
    """Check the option `thinking`: fields of a request that switch a thought off, or bound it.

    Raises: `BuildError`.
    """
    if given is None:
        return
    if not isinstance(given, Mapping):
        what = f"the option `thinking` is a mapping of `off` and `budget`, not {given!r:.60}"
        raise BuildError(what, hint=_THINKING_HINT)
    check_keys(given, ("budget", "off"), "key of the option `thinking`:")
    off, budget = given.get("off"), given.get("budget")
    if not isinstance(off, Mapping | None):
        what = f"`off` of the option `thinking` is a mapping of fields, not {off!r:.60}"
        raise BuildError(what, hint=_THINKING_HINT)
    if budget is not None and (not isinstance(budget, str) or not budget.strip()):
        what = f"`budget` of the option `thinking` is the name of a field, not {budget!r:.60}"
        raise BuildError(what, hint=_THINKING_HINT)
    for key, names in (("off", {*(off or {})} & RESERVED_FIELDS), ("budget", {budget})):
        for name in sorted(names & _OWN_FIELDS):
            raise BuildError(
                f"`{key}` of the option `thinking` names {name}, a field that weft sets itself",
                hint="name the server's own field for thoughts, such as thinking_budget",
            )


def _check_body(given: Any) -> None:
    """Raises: `BuildError` for fields of requests that weft sets itself."""
    from weft.serving.openai.body import check_extra

    if not isinstance(given, Mapping | None):
        what = f"the option `extra_body` is a mapping of fields, not {given!r:.60}"
        raise BuildError(what, hint="such as {chat_template_kwargs: {enable_thinking: false}}")
    try:
        check_extra(given or {})
    except ModelRequestError as error:
        raise BuildError(f"the option `extra_body`: {error.message}", hint=error.hint) from error


_LIMITS = ("connect_timeout_s", "connections", "idle_timeout_s", "max_answer_chars")


def _check_limits(options: Mapping[str, Any]) -> None:
    """Raises: `BuildError` for limits that are no numbers above 0."""
    for key in _LIMITS:
        value = options.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise BuildError(f"the option `{key}` is a number above 0, not {value!r:.60}")


def fleet_options(given: Mapping[str, Any]) -> FleetOptions:
    """The options of the fleet: queue order and balancing. Raises: `BuildError`."""
    from dataclasses import fields

    from weft.serving.fleet import FleetOptions

    wanted = given.get("fleet", {})
    if not isinstance(wanted, Mapping):
        raise BuildError("the option `fleet` is no mapping", hint="such as {in_flight: 32}")
    check_keys(wanted, [field.name for field in fields(FleetOptions)], "option `fleet`:")
    try:
        return FleetOptions(**wanted)
    except (TypeError, ValueError) as error:
        raise BuildError(f"the option `fleet`: {error}") from error
