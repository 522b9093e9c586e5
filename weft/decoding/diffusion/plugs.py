"""All that decides how a text is written, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from weft.decoding.diffusion.cache import CachePolicy
from weft.decoding.diffusion.filters import Guard, Guidance, Verifier
from weft.decoding.diffusion.policy import CommitPolicy
from weft.decoding.diffusion.schedule import BlockSchedule
from weft.decoding.diffusion.stop import StopPolicy


@dataclass(frozen=True, slots=True)
class Plugs:
    """Settings only: safe to share.

    fresh  what is drawn for a slot changes from step to step
    keep   the keys of the whole text are stored when it ends, for who reads on from there
    """

    commit: CommitPolicy
    schedule: BlockSchedule
    cache: CachePolicy
    stop: StopPolicy
    guidance: tuple[Guidance, ...] = ()
    verifiers: tuple[Verifier, ...] = ()
    guards: tuple[Guard, ...] = ()
    fresh: bool = False
    keep: bool = False
