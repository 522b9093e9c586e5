"""The decoder that a node requests, and the list of decoders. Opens no model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from weft.core.errors import BuildError, CapabilityError, ModelNotFound, SpecError
from weft.core.extras import optional_packages
from weft.core.values import AUTOREGRESSIVE, DecodeSpec
from weft.decoding.diffusion import catalogue
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.declarations import ModelSpec
from weft.workflow.document.spec.nodes import ModelNode
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.models import PROVIDERS

_SERVED = {
    "vllm": "put `decode: ngram:4` into the model's `options`: its server is started with it",
    "openai": "start the server with the decoder, such as `weft serve MODEL --decode ngram:4`",
    **dict.fromkeys(PROVIDERS, "leave it out: hosted APIs have no choice of decoders"),
}
"""Advice where the server decides how all requests are decoded, as all servers do
except those of diffusion models."""


Kind = Literal["autoregressive", "diffusion"]


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder that writes several tokens a step, described for people.

    `needs` is what it takes besides the model. `published`: tokens per pass as measured by others,
    with other models; `where` is the source. None: no such measurement exists, and `where` states
    the published claim. `kind`: the kind of model.
    """

    name: str
    summary: str
    lossless: bool
    needs: str
    options: tuple[str, ...]
    published: float | None
    where: str
    kind: Kind = "autoregressive"


def decoders() -> Iterator[Decoder]:
    """All decoders of models in this process, those of diffusion models last.

    Raises: `BuildError` when their packages are missing.
    """
    with optional_packages("decoders"):
        from weft.decoding.speculative.presets import NAMES, preset

        presets = [preset(name) for name in NAMES]
        diffusing = [catalogue.preset(name) for name in catalogue.NAMES]
    for each in presets:
        published = each.published
        measured = (None, "") if published is None else (published.tokens_per_pass, published.where)
        yield Decoder(each.name, each.summary, each.lossless, each.needs, each.options, *measured)
    for one in diffusing:
        own = (one.name, one.summary, one.plain, one.needs, one.options)
        yield Decoder(*own, None, one.published, "diffusion")


def parse_decoder(text: str) -> DecodeSpec:
    """The decoder that `text` names, for a model in this process. Raises: `BuildError`."""
    try:
        with optional_packages("decoders"):
            from weft.decoding.decoders import parse_decode

            return parse_decode(text)
    except SpecError as error:
        raise BuildError(error.message, hint=error.hint) from error


def decoder_of(unit: Unit, step: ModelNode) -> DecodeSpec:
    """The decoder of the node's calls; plain decoding by default.

    Raises: `BuildError` for an unknown decoder, or a model that does not take one per request.
    """
    if step.decode is None:
        return AUTOREGRESSIVE
    decode = parse_decoder(step.decode)
    if step.model not in unit.clients:
        _check_model(unit, step.model, decode)
        spec = unit.document.models[step.model]
        if spec.use == "local":
            check_options(decode, spec.model)
    return decode


def check_options(decode: DecodeSpec, model: str) -> None:
    """Raises: `BuildError` for decoder options that do not fit this model in this process.

    Models that are not downloaded, and decoders with further needs, are checked by the first call.
    """
    if decode.method not in catalogue.NAMES or catalogue.preset(decode.method).needs:
        return
    from weft.decoding.diffusion.models.folder import describe
    from weft.serving.weights import locate

    try:
        traits = describe(locate(model), find=locate).traits
        catalogue.decoder_config(decode.method, traits, dict(decode.options))
    except (ModelNotFound, CapabilityError):
        return
    except SpecError as error:
        raise BuildError(error.message, hint=error.hint) from error


def _check_model(unit: Unit, name: str, decode: DecodeSpec) -> None:
    """Check that every model behind `name` takes such a decoder per request."""
    spec = unit.document.models[name]
    if spec.use in _SERVED:
        if decode.method in catalogue.NAMES and _may_diffuse(spec):
            return
        raise BuildError(
            f"the server of `{name}` decodes all of its requests alike", hint=_SERVED[spec.use]
        )
    if spec.use == "think":
        raise BuildError(
            f"the model `{name}` thinks, in calls of its own",
            hint=f"put `decode` into the `options` of `{spec.model}`",
        )
    for each in spec.behind:
        _check_model(unit, each, decode)


def _may_diffuse(spec: ModelSpec) -> bool:
    """False where the server's model is known to be autoregressive.

    Nothing is known about running servers, nor about weights that are not downloaded.
    """
    if spec.use in PROVIDERS:
        return False
    if spec.use != "vllm" or spec.base_url:
        return True
    from weft.decoding.diffusion.models import is_diffusion
    from weft.serving.weights import locate

    try:
        return is_diffusion(locate(spec.model))
    except ModelNotFound:
        return True


def check_decode(unit: Unit, step: ModelNode, path: KeyPath) -> None:
    """Check the decoder of the node at `path`, if any. Raises: `BuildError`."""
    try:
        decoder_of(unit, step)
    except BuildError as error:
        unit.fail(error, (*path, "decode"))
