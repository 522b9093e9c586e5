"""`use: local`: a model in this process."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, get_args

from weft.core.errors import BuildError
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.defects import check_choice, check_keys
from weft.workflow.runtime.models.decoders import check_options, parse_decoder

if TYPE_CHECKING:
    from weft.decoding.diffusion.guard.priors import PriorLimits
    from weft.serving.local import LocalOptions


_PYTHONS = frozenset({"moderator", "guards"})
"""Options that only Python programs can set."""


def check(spec: ModelSpec) -> None:
    """Raises: `BuildError`."""
    if spec.base_url is not None:
        hint = "use: openai, or use: vllm"
        raise BuildError("`base_url` does not go with a model in this process", hint=hint)
    options(spec)


def options(spec: ModelSpec) -> LocalOptions:
    """The options of the model. Raises: `BuildError`."""
    from weft.serving.local import LocalOptions
    from weft.serving.text import ReasoningStyle

    check_choice(spec.options, "reasoning", ("auto", "none", *get_args(ReasoningStyle)))
    check_keys(spec.options, {each.name for each in fields(LocalOptions)})
    given = dict(spec.options)
    for key in _PYTHONS & given.keys():
        hint = "write `moderator:` beside `options`"
        raise BuildError(f"the options of {spec.model}: {key} is for Python programs", hint=hint)
    try:
        if "decode" in given:
            given["decode"] = parse_decoder(str(given["decode"]))
            check_options(given["decode"], spec.model)
        if "refusals" in given:
            given["refusals"] = _texts(given["refusals"])
        if "priors" in given:
            given["priors"] = _priors(given["priors"])
        return LocalOptions(**given)
    except BuildError as error:
        raise BuildError(
            f"the options of {spec.model}: {error.message}", hint=error.hint
        ) from error
    except (TypeError, ValueError) as error:
        raise BuildError(f"the options of {spec.model}: {error}") from error


def _priors(value: object) -> PriorLimits:
    """Raises: `BuildError`, `TypeError`, `ValueError`."""
    from weft.decoding.diffusion.guard.priors import PriorLimits

    if not isinstance(value, dict):
        raise TypeError("`priors` is a table of limits, such as {words: 8, total_words: 200}")
    check_keys(value, {each.name for each in fields(PriorLimits)}, "limit")
    for name, limit in value.items():
        kind = bool if name == "free" else int
        if type(limit) is not kind:
            right = "true or false" if kind is bool else "a whole number"
            raise TypeError(f"{name} of `priors` is {right}, not {limit!r}")
    return PriorLimits(**value)


def _texts(value: object) -> tuple[str, ...]:
    """Raises: `TypeError`."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("`refusals` is no list of texts")
    return tuple(value)
