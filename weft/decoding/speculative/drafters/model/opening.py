"""A network that drafts for a target: a model of its own, or the target's own first layers."""

from __future__ import annotations

from pathlib import Path

from weft.core.errors import CapabilityError, ModelNotFound, SpecError
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions
from weft.decoding.vocabularies import check_sizes, check_tokens


def draft_model(target: Network, folder: str) -> Network:
    """Read the model of `folder` for where the target is, and as precise.

    Raises: `ModelNotFound` for a folder without a model; `CapabilityError` for a broken one, or
    one with other tokens than the target's.
    """
    path = Path(folder).expanduser()
    if not (path / "config.json").is_file():
        raise ModelNotFound(
            f"there is no draft model at {folder}", hint="give `model` the folder of its weights"
        )
    where = target.embed([0])
    options = NetworkOptions(
        dtype="bfloat16" if where.element_size() == 2 else "float32", device=str(where.device)
    )
    try:
        draft = Network.load(path, options)
    except CapabilityError:
        raise
    except Exception as error:
        raise CapabilityError(f"the draft model at {folder} cannot be read: {error}") from error
    check_sizes(target.vocabulary_size, draft.vocabulary_size)
    common = min(target.vocabulary_size, draft.vocabulary_size)
    check_tokens(target.path, path, common)
    return draft


def own_layers(target: Network, layers: int) -> Network:
    """The first `layers` of the target, with a cache of their own; 0: a third of them.

    Raises: `SpecError` for as many as the target has, or more.
    """
    wanted = layers or max(1, target.layers // 3)
    if not wanted < target.layers:
        raise SpecError(
            f"a draft of {wanted} layers for a target of {target.layers}",
            hint=f"`layers` is at most {target.layers - 1}",
        )
    return target.share(layers=wanted)


def opened(target: Network, folder: str | None, layers: int) -> Network:
    """The model of `folder`, or without one the target's first `layers`. Raises: as they do."""
    return draft_model(target, folder) if folder else own_layers(target, layers)
