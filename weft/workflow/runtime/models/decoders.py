"""Which decoder the calls of a node ask for, and which there are. Opens no model."""

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

_SERVED = {
    "vllm": "put `decode: ngram:4` into the model's `options`: its server is started with it",
    "openai": "start the server with the decoder, such as `weft serve MODEL --decode ngram:4`",
}
"""What to do instead where a server decides how all of its requests are decoded: all but those of
diffusion models do."""


Kind = Literal["autoregressive", "diffusion"]


@dataclass(frozen=True, slots=True)
class Decoder:
    """One way to write several tokens a step, for people to choose from.

    `needs` is what it takes beside the model; `published` tokens committed per pass, and `where`
    they were measured: by others, with other models. None: nobody measured it in these terms, and
    `where` is all that was claimed. `kind` of model that it is for.
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

    Raises: `BuildError` without what they run on.
    """
    with optional_packages("decoders"):
        from weft.decoding.speculative.presets import NAMES, preset

        presets = [preset(name) for name in NAMES]
        diffusing = [catalogue.preset(name) for name in catalogue.NAMES]
    for each in presets:
        told = each.published
        measured = (None, "") if told is None else (told.tokens_per_pass, told.where)
        yield Decoder(each.name, each.summary, each.lossless, each.needs, each.options, *measured)
    for one in diffusing:
        own = (one.name, one.summary, one.plain, one.needs, one.options)
        yield Decoder(*own, None, one.published, "diffusion")


def parse_decoder(text: str) -> DecodeSpec:
    """The decoder of a model in this process that `text` names. Raises: `BuildError`."""
    try:
        with optional_packages("decoders"):
            from weft.decoding.decoders import parse_decode

            return parse_decode(text)
    except SpecError as error:
        raise BuildError(error.message, hint=error.hint) from error


def decoder_of(unit: Unit, step: ModelNode) -> DecodeSpec:
    """What calls of the node ask for; plain decoding where it names nothing.

    Raises: `BuildError` for a decoder that is none, or a model that cannot be asked for one.
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
    """Raises: `BuildError` for options that cannot be with this model in this process.

    Of models that are not here, and of decoders that need something else, a call tells.
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
    """Check that every model behind `name` takes such a decoder with a request."""
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
    """False where it is known that the server's model writes on, token by token.

    Of servers that run already, and of weights that are not here, nothing is known before a call.
    """
    if spec.use != "vllm" or spec.base_url:
        return True
    from weft.decoding.diffusion.models import is_diffusion
    from weft.serving.weights import locate

    try:
        return is_diffusion(locate(spec.model))
    except ModelNotFound:
        return True


def check_decode(unit: Unit, step: ModelNode, path: KeyPath) -> None:
    """Check the decoder of the node at `path`, if it names one. Raises: `BuildError`."""
    try:
        decoder_of(unit, step)
    except BuildError as error:
        unit.fail(error, (*path, "decode"))
