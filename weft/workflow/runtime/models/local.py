"""`use: local`: a model in this process."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from weft.core.errors import BuildError, UnknownReference
from weft.core.suggestion import suggestion
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.defects import check_keys
from weft.workflow.document.unit import Unit
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


def check_local_names(unit: Unit, log: DefectLog) -> None:
    """Check that `weft model` knows the local models of `unit`, or that they are folders."""
    for name, spec in unit.document.models.items():
        if spec.use == "local" and name not in unit.clients:
            with log:
                _check_name(unit, name, spec.model)


def _check_name(unit: Unit, name: str, model: str) -> None:
    """Raises: `UnknownReference`."""
    from weft.serving.weights import known_models

    known = known_models()
    if model not in known and not (Path(model).expanduser() / "config.json").is_file():
        hint = suggestion(model, known, quote="`") + "; or the path of a folder with a config.json"
        error = UnknownReference(f"there is no local model called `{model}`", hint=hint)
        unit.fail(error, ("models", name, "model"))


def options(spec: ModelSpec) -> LocalOptions:
    """The options of the model. Raises: `BuildError`."""
    from weft.serving.local import LocalOptions

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
