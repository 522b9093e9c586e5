"""EasySpec (arXiv 2502.02493): neighbouring attentions of a draft model in parallel, on ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch

from weft.core.errors import CapabilityError, ModelNotFound, SpecError
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    UNKNOWN_REQUEST,
    BaseMethod,
    Drafter,
    DraftRequest,
    MethodDrafter,
    ProposalRequest,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.model.layer_parallel.layered import (
    DraftJob,
    DraftTeam,
    InProcessTeam,
)
from weft.decoding.speculative.drafters.model.layer_parallel.processes import ProcessTeam
from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout
from weft.decoding.speculative.presets import Options, Preset, switch, text, whole
from weft.decoding.speculative.speculation import MOST_NODES
from weft.decoding.vocabularies import check_tokens

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


class EasySpecDrafter(MethodDrafter):
    """Implements `Drafter`: one sequence in a slot of the draft model's cache."""

    def __init__(self, method: EasySpecMethod, slot: int, context_tokens: int) -> None:
        super().__init__(method)
        self.slot = slot
        self._context_tokens = context_tokens
        self._tokens: list[int] = []
        self._read = 0

    def extend(self, tokens: Sequence[int]) -> None:
        self._tokens += tokens

    def job(self, most: int) -> DraftJob | None:
        """The tokens to read and draft; None without text or room."""
        room = self._context_tokens - len(self._tokens)
        first = min(self._read, len(self._tokens) - 1)  # at least the last token
        if first < 0 or min(most, room) < 1:
            return None
        return DraftJob(self.slot, first, tuple(self._tokens[first:]), min(most, room))

    def drafted(self) -> None:
        """Note that committed tokens were read, in exact order."""
        self._read = len(self._tokens)


class EasySpecMethod(BaseMethod):
    """Implements `SpeculativeMethod`: chains of up to `most` likeliest tokens, by a team."""

    def __init__(self, team: DraftTeam, most: int) -> None:
        super().__init__("easyspec", most)
        self._team = team
        self._free: list[int] = []
        self._slots = 0

    @property
    def forwards(self) -> int:
        """Passes of the draft model so far, each over all rows that drafted."""
        return self._team.forwards

    def begin(self, request: DraftRequest = UNKNOWN_REQUEST) -> Drafter:  # noqa: ARG002
        if not self._free:
            self._free.append(self._slots)
            self._slots += 1
        return EasySpecDrafter(self, self._free.pop(), self._team.context_tokens)

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        own = [(drafter, most) for drafter, most in asks if isinstance(drafter, EasySpecDrafter)]
        jobs = [drafter.job(most) for drafter, most in own]
        live = [job for job in jobs if job is not None]
        drafted = iter(self._team.draft(live) if live else [])
        proposals = []
        for (drafter, _), job in zip(own, jobs, strict=True):
            if job is not None:
                drafter.drafted()
            tree = DraftTree() if job is None else DraftTree.chain(next(drafted))
            proposals.append(DraftProposal(tree, source=self.name))
        return proposals

    def end(self, drafter: Drafter) -> None:
        if isinstance(drafter, EasySpecDrafter):
            self._free.append(drafter.slot)

    def close(self) -> None:
        self._team.close()


_DTYPES: Final = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
_MOST_LAYERS: Final = 1024
_MOST_RANKS: Final = 64


def _make(network: Network, options: Options) -> SpeculativeMethod:
    most = whole(options, "num_speculative_tokens", 4, 1, MOST_NODES)
    layout = _layout(network, options)
    processes = switch(options, "processes", default=layout.ranks > 1)
    team: DraftTeam = ProcessTeam(layout) if processes else InProcessTeam(layout)
    return EasySpecMethod(team, most)


def _layout(network: Network, options: Options) -> ShardLayout:
    folder = text(options, "model")
    path = network.path if folder is None else Path(folder).expanduser()
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
        raise CapabilityError(f"layer-parallel drafting does not support {like.dtype}")
    return ShardLayout(
        path=path,
        ranks=whole(options, "ranks", 2, 1, _MOST_RANKS),
        group=whole(options, "group", 3, 1, _MOST_LAYERS),
        layers=whole(options, "layers", 1, 1, _MOST_LAYERS) if "layers" in options else None,
        threads=whole(options, "threads", 1, 1, 1024),
        device=like.device.type,
        dtype=_DTYPES[like.dtype],
        vocabulary=network.vocabulary_size,
    )


PRESETS = (
    Preset(
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
    ),
)
