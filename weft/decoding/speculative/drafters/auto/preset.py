"""`decode: auto`: chooses, step by step, whether to draft, with which drafter, and how much.

`among=lookup+suffix+eagle` names the drafters to choose from. Trained heads must be named, because
they cost loading and observation of the target's states even if they turn out not to pay.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.core.errors import SpecError
from weft.core.ports.clock import FakeClock
from weft.decoding.speculative import presets, user_cache
from weft.decoding.speculative.acceptance import ExactMatch
from weft.decoding.speculative.drafter import SpeculativeMethod
from weft.decoding.speculative.drafters.auto.history import AcceptanceHistory
from weft.decoding.speculative.drafters.auto.method import Arm, AutoMethod
from weft.decoding.speculative.pass_costs import PassCosts, costs_of
from weft.decoding.speculative.presets import Options, Preset, switch, text
from weft.decoding.speculative.trained_drafter import Fingerprint

if TYPE_CHECKING:
    from weft.decoding.network.network import Network

FREE: Final = ("lookup", "suffix", "hybrid")
"""They use tokens only: a draft takes thousandths of a pass."""
PAID: Final = ("eagle", "medusa", "draft_model", "self_draft", "sequoia")
"""Their drafts need a model's passes; none of them reads auxiliary rows."""
USUAL: Final = ("lookup", "suffix")
ASSUMED: Final = PassCosts({1: {1: 0.03, 2: 0.036, 4: 0.045, 8: 0.066, 16: 0.105, 64: 0.4}})
"""The costs without measurement, for reproducible choices: a small model on one core."""


def _make(network: Network, options: Options) -> SpeculativeMethod:
    arms = [_arm(name, network, options) for name in _named(options)] or _usual(network, options)
    name = Fingerprint.of(network).digest[:32]
    remembers = switch(options, "remember", default=True)
    path = user_cache.folder() / f"choices-{name}.json" if remembers else None
    if not switch(options, "measured", default=True):
        return AutoMethod(arms, ASSUMED, _history(path), clock=FakeClock(), path=path)
    return AutoMethod(arms, costs_of(network), _history(path), path=path)


def _named(options: Options) -> Sequence[str]:
    """The arms named by the option, joined by `+`; empty: the default ones."""
    names = (text(options, "among") or "").split("+")
    available = (*FREE, *PAID)
    for name in filter(None, names):
        if name not in available:
            raise SpecError(f"auto cannot choose {name!r}", hint=f"among: {', '.join(available)}")
    return list(dict.fromkeys(filter(None, names)))


def _arm(name: str, network: Network, options: Options) -> Arm:
    preset = presets.preset(name)
    own = {key: options[key] for key in ("model",) if key in options and key in preset.options}
    method = preset.make(network, own)
    if not isinstance(method.acceptor, ExactMatch):
        raise SpecError(f"auto cannot choose {name!r} with its rule", hint="leave out `sample`")
    return Arm(method, free=name in FREE)


def _usual(network: Network, options: Options) -> list[Arm]:
    arms = [_arm(name, network, {}) for name in USUAL]
    if "model" in options:
        arms.append(_arm("draft_model", network, options))
    return arms


def _history(path: Path | None) -> AcceptanceHistory:
    """The history of this machine, else the one shipped with weft."""
    history = AcceptanceHistory()
    if path is not None and history.restore(user_cache.read(path)):
        return history
    return shipped()


def shipped() -> AcceptanceHistory:
    """The history shipped with weft: measurements by kind of request."""
    history = AcceptanceHistory()
    measured = files("weft.decoding.speculative.drafters.auto").joinpath("measured.json")
    history.restore(json.loads(measured.read_text("utf-8")))
    return history


PRESETS = (
    Preset(
        "auto",
        "chooses by measured history whether to draft, with which drafter, and how much",
        _make,
        options=("among", "model", "measured", "remember"),
    ),
)
