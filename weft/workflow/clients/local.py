"""`use: local`: a model in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.errors import BuildError
from weft.workflow.decoders import parse_decoder
from weft.workflow.document.declarations import ModelSpec

if TYPE_CHECKING:
    from weft.serving.local import LocalOptions


def check(spec: ModelSpec) -> None:
    """Raises: `BuildError`."""
    if spec.base_url is not None:
        hint = "use: openai, or use: vllm"
        raise BuildError("`base_url` does not go with a model in this process", hint=hint)
    options(spec)


def options(spec: ModelSpec) -> LocalOptions:
    """How the model is loaded. Raises: `BuildError`."""
    from weft.serving.local import LocalOptions

    given = dict(spec.options)
    try:
        if "decode" in given:
            given["decode"] = parse_decoder(str(given["decode"]))
        return LocalOptions(**given)
    except BuildError as error:
        raise BuildError(
            f"the options of {spec.model}: {error.message}", hint=error.hint
        ) from error
    except (TypeError, ValueError) as error:
        raise BuildError(f"the options of {spec.model}: {error}") from error
