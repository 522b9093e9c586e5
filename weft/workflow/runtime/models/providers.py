"""`use: anthropic` and `use: gemini`: models of hosted APIs with protocols of their own."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final, get_args

from weft.core.errors import BuildError
from weft.core.ports import ModelClient
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.defects import check_choice, check_keys, choice_hint
from weft.workflow.runtime.models import openai

if TYPE_CHECKING:
    from weft.serving.providers.model import ProviderModel
    from weft.serving.providers.options import ProviderOptions


_MEANT: Final = {
    **dict.fromkeys(("off", "none", "no", "false"), "disabled"),
    **dict.fromkeys(("on", "auto", "yes", "true"), "adaptive"),
}
"""What other words for the option `thinking` mean."""


def check(spec: ModelSpec) -> None:
    """Check without the vendor's library. Raises: `BuildError`."""
    addresses = spec.base_url or []
    if len(addresses) > 1:
        hint = "for several, declare several models and a route"
        raise BuildError(f"`base_url` of {spec.use} is one address", hint=hint)
    openai.check_addresses(addresses)
    options(spec)


def options(spec: ModelSpec) -> ProviderOptions:
    """The options of the client. Raises: `BuildError`."""
    from weft.serving.providers.options import SETTINGS, ProviderOptions, ThinkingMode

    check_keys(spec.options, {field.name for field in fields(ProviderOptions)})
    given = openai.with_price(spec.options)
    ignore, thinking = given.get("ignore", ()), given.get("thinking")
    modes = get_args(ThinkingMode)
    if isinstance(thinking, bool | str) and thinking not in modes:
        what = f"`thinking` is {', '.join(modes)} or a number of tokens, not {thinking!r:.60}"
        meant = _MEANT.get(str(thinking).lower())
        raise BuildError(what, hint=choice_hint(meant or str(thinking), modes))
    try:
        if isinstance(ignore, str) or not all(isinstance(name, str) for name in ignore):
            raise TypeError("`ignore` is a list of names, such as [temperature]")
        for name in ignore:
            check_choice({"ignore": name}, "ignore", tuple(SETTINGS))
        return ProviderOptions(**{**given, "ignore": tuple(ignore)})
    except (TypeError, ValueError) as error:
        raise BuildError(f"the options of {spec.model}: {error}") from error


def make(spec: ModelSpec) -> ModelClient:
    """Raises: `BuildError`, also where the vendor's library is missing."""
    kind = _anthropic() if spec.use == "anthropic" else _gemini()
    base_url = spec.base_url[0] if spec.base_url else None
    return kind(spec.model, base_url=base_url, api_key_env=spec.api_key_env, options=options(spec))


def key_variable(spec: ModelSpec) -> str | None:
    """The environment variable of the key that `spec` needs; None: none that is known."""
    if spec.api_key_env is not None or spec.base_url:
        return spec.api_key_env
    return (_anthropic() if spec.use == "anthropic" else _gemini()).key_variable


def _anthropic() -> type[ProviderModel]:
    from weft.serving.providers.anthropic.model import AnthropicModel

    return AnthropicModel


def _gemini() -> type[ProviderModel]:
    from weft.serving.providers.gemini.model import GeminiModel

    return GeminiModel
