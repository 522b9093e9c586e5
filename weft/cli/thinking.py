"""The option `--thinking`: switches a model's thought on or off, in the way of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from weft.cli.options import json_object
from weft.core.suggestion import closest

OPTION: Final = "--thinking"
EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh", "max")
_SWITCHES: Final = ("off", "on")
_TEMPLATE: Final = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
"""What switches a thought on in the chat templates of open models."""

Switch = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="HOW",
        help="off: no thought. on: think. low, medium, high, ...: how much. Or a server's own "
        'fields as JSON: {"off": {"reasoning_effort": "none"}} switches thoughts off, and '
        '{"budget": "FIELD"} takes --thinking-tokens.',
    ),
]


@dataclass(frozen=True, slots=True)
class ModelThinking:
    """The `model` as a workflow declares it, and the settings of its thoughts.

    `tokens`: of a thought, 0 for none; `effort`: `reasoning_effort`. None: the model's own.
    """

    model: str | Mapping[str, Any]
    tokens: int | None = None
    effort: str | None = None

    def switched(self, how: str | None) -> ModelThinking:
        """These settings with `--thinking HOW`. Raises: `typer.BadParameter`, `SourceError`."""
        if how is None:
            return self
        if how.lstrip().startswith("{"):
            return self._with_fields(json_object(how, OPTION))
        word = how.strip().lower()
        match word:
            case "off":
                return self._off()
            case "on":
                return self._on()
        if word not in EFFORTS:
            near = closest(word, (*_SWITCHES, *EFFORTS))
            meant = f"; did you mean {near}?" if near else ""
            wanted = ", ".join((*_SWITCHES, *EFFORTS))
            raise _bad(f"expected {wanted} or a JSON object, got {how!r}{meant}")
        if self.effort not in (None, word):
            raise _bad(f"{word} contradicts --reasoning-effort {self.effort}")
        return ModelThinking(self.model, self.tokens, word)

    def _off(self) -> ModelThinking:
        if self.tokens or self.effort not in (None, "none"):
            raise _bad("off does not go with --thinking-tokens or --reasoning-effort")
        if self._use in ("anthropic", "gemini"):
            return ModelThinking(self._declared(thinking="disabled"), self.tokens, self.effort)
        return ModelThinking(self.model, 0, self.effort)

    def _on(self) -> ModelThinking:
        if self.tokens == 0 or self.effort == "none":
            raise _bad("on does not go with --thinking-tokens 0 or --reasoning-effort none")
        match self._use:
            case "anthropic" | "gemini":
                model = self._declared(thinking="adaptive")
            case "local":
                model = self._declared(**_TEMPLATE)
            case _:
                model = self._declared(extra_body=_TEMPLATE)
        return ModelThinking(model, self.tokens, self.effort)

    def _with_fields(self, fields: Mapping[str, Any]) -> ModelThinking:
        """The thought by `fields` of the server; switched off where no bound is given."""
        if self._use not in ("openai", "vllm"):
            raise _bad("fields of requests are for vllm:NAME and models behind --base-url")
        off = "off" in fields and self.tokens is None
        return ModelThinking(
            self._declared(thinking=dict(fields)), 0 if off else self.tokens, self.effort
        )

    @property
    def _use(self) -> str:
        model = self.model
        return model.partition(":")[0] if isinstance(model, str) else str(model["use"])

    def _declared(self, **options: Any) -> dict[str, Any]:
        """The declaration with further `options` of its client."""
        given = self.model
        if isinstance(given, str):
            use, _, model = given.partition(":")
            given = {"use": use, "model": model}
        return {**given, "options": {**given.get("options", {}), **options}}


def _bad(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=OPTION)
