"""EasySpec: a draft model whose neighbouring attentions run at once, on ranks of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch

from weft.core.errors import CapabilityError, ModelNotFound, SpecError
from weft.decoding.speculative.drafters.layer_parallel.layout import Layout
from weft.decoding.speculative.drafters.layer_parallel.method import EasySpec
from weft.decoding.speculative.drafters.layer_parallel.ranks import Ranks
from weft.decoding.speculative.drafters.layer_parallel.team import OneProcess, Team
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.options import switch, text, whole
from weft.decoding.speculative.preset import Options, Preset
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.vocabularies import check_tokens

if TYPE_CHECKING:
    from weft.decoding.network.network import Network

_DTYPES: Final = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
_MOST_LAYERS: Final = 1024
_MOST_RANKS: Final = 64


def _make(network: Network, options: Options) -> Method:
    most = whole(options, "num_speculative_tokens", 4, 1, MOST_NODES)
    layout = _layout(network, options)
    processes = switch(options, "processes", default=layout.ranks > 1)
    team: Team = Ranks(layout) if processes else OneProcess(layout)
    return EasySpec(team, most)


def _layout(network: Network, options: Options) -> Layout:
    given = text(options, "model")
    path = network.path if given is None else Path(given).expanduser()
    if path is None:
        raise SpecError(
            "the target was read from no folder, so it cannot draft for itself",
            hint="give the folder of a draft model as the option model",
        )
    if not (path / "config.json").is_file():
        raise ModelNotFound(f"there is no draft model in {path}", hint="name a model's folder")
    check_tokens(network.path, path, network.vocabulary_size)
    like = network.embed([0])
    if like.dtype not in _DTYPES:
        raise CapabilityError(f"layer-parallel drafting knows no {like.dtype}")
    return Layout(
        path=path,
        ranks=whole(options, "ranks", 2, 1, _MOST_RANKS),
        group=whole(options, "group", 3, 1, _MOST_LAYERS),
        layers=whole(options, "layers", 1, 1, _MOST_LAYERS) if "layers" in options else None,
        threads=whole(options, "threads", 1, 1, 1024),
        device=like.device.type,
        dtype=_DTYPES[like.dtype],
        vocabulary=network.vocabulary_size,
    )


PRESET = Preset(
    "easyspec",
    "a draft model whose neighbouring attentions read the same and run at once, over processes",
    _make,
    needs="a folder with a draft model; without one the target drafts for itself",
    options=(
        "num_speculative_tokens",
        "model",
        "layers",
        "group",
        "ranks",
        "threads",
        "processes",
    ),
)
