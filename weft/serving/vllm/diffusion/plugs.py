"""A preset's plugs as far as vLLM's diffusion path can carry them out. Knows no vLLM.

One query a row and step, the canvas where it is, and no second model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from weft.core.errors import SpecError, WeftError
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.catalogue import plugs_for
from weft.decoding.diffusion.models.description import Description
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.policies.smooth import Smooth
from weft.decoding.diffusion.policies.uniform_state import UniformState
from weft.decoding.diffusion.policy import Looking, Shadowing
from weft.decoding.diffusion.schedule import Moving
from weft.decoding.diffusion.schedules.fixed import Fixed
from weft.serving.vllm.diffusion.asked import Asked, asked_of

_PLAIN: Final = "threshold"


@dataclass(frozen=True, slots=True)
class Served:
    """A model as it is served: `width` slots of vLLM's canvas.

    `preset` is the decoder of requests that name none, as people write it.

    Raises: `SpecError` for a canvas that is no whole number of the model's blocks.
    """

    traits: Traits
    preset: str
    width: int

    def __post_init__(self) -> None:
        block = self.traits.block
        if self.width < 1 or (block and self.width != block):
            raise SpecError(
                f"a canvas of {self.width} slots for a model with blocks of {block}",
                hint=f"take `--diffusion-config '{{\"canvas_length\": {block or 64}}}'`",
            )
        if self.traits.mask_id is None:
            raise SpecError("a model without a mask is not filled here")


def served_as(found: Description, width: int, usual: object = None) -> Served:
    """With `usual` as the decoder of requests that name none.

    None: the model's own decoder, or `threshold` where vLLM's path cannot carry that out.

    Raises: `SpecError` for a decoder that it cannot carry out; see `Served`.
    """
    served = Served(found.traits, found.preset, width)
    if usual is not None:
        served = replace(served, preset=str(usual))
    try:
        plugs_inside(asked_of(None, served.preset), served)
    except WeftError:
        if usual is not None:
            raise
        return replace(served, preset=_PLAIN)
    return served


def plugs_inside(asked: Asked, served: Served) -> Plugs:
    """Plugs of the decoder that was asked for; its cache is left to who begins a row.

    Raises: `SpecError` for a decoder or an option that there is not, or that vLLM's path cannot
    carry out; what `DiffusionPreset.make` raises.
    """
    traits = served.traits
    plugs = plugs_for(asked.decode, traits, dict(asked.options))
    plugs = replace(plugs, schedule=_schedule(asked.decode, plugs, served), keep=True)
    _check(asked.decode, plugs, traits)
    return plugs


def _schedule(name: str, plugs: Plugs, served: Served) -> Fixed:
    schedule = plugs.schedule
    if not isinstance(schedule, Fixed):
        raise _refused(name, "chooses its blocks while it writes; inside vLLM they are fixed")
    size = schedule.size or served.width
    return replace(schedule, size=size if served.width % size == 0 else served.width)


def _check(name: str, plugs: Plugs, traits: Traits) -> None:
    if plugs.guidance or plugs.verifiers:
        raise _refused(name, "asks another time or another model about each step")
    if isinstance(plugs.commit, Smooth | UniformState):
        raise _refused(name, "reads slots as mixtures of tokens")
    mask = 0 if traits.mask_id is None else traits.mask_id
    commits = plugs.commit.begin(Canvas([mask], 1, mask), traits)
    if isinstance(commits, Looking):
        raise _refused(name, "looks again before it decides")
    if isinstance(commits, Shadowing):
        raise _refused(name, "looks at decided slots as if they were masked")
    if isinstance(plugs.schedule.begin(Canvas([mask], 1, mask), traits), Moving):
        raise _refused(name, "moves its blocks while it writes")


def _refused(name: str, why: str) -> SpecError:
    return SpecError(
        f"the decoder {name!r} {why}: vLLM's diffusion path cannot do that",
        hint="run the model in this process (use: local), or take another decoder",
    )
