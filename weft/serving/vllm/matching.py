"""Whether a running serving will do for somebody who asks for one. Pure."""

from __future__ import annotations

from dataclasses import fields

from weft.core.values import Lossy
from weft.serving.vllm.entry import Entry
from weft.serving.vllm.spec import ServeSpec

_DEFAULTS = {
    field.name: getattr(ServeSpec(model="any"), field.name)
    for field in fields(ServeSpec)
    if field.name != "model"
}
_ALWAYS = ("model", "quantization", "api_key_env")


def satisfies(entry: Entry, wanted: ServeSpec) -> bool:
    """Whether `entry` is not on its way out, and serves what `wanted` says.

    What `wanted` leaves at its default may differ, except what changes the answers without being
    asked for (a lossy decoder, quantisation) and the key that clients need.
    """
    if entry.status == "stopping" or entry.spec.headless:
        return False
    running = entry.spec
    if isinstance(running.decode, Lossy) and running.decode != wanted.decode:
        return False
    names = {name for name, default in _DEFAULTS.items() if getattr(wanted, name) != default}
    return all(getattr(running, name) == getattr(wanted, name) for name in names.union(_ALWAYS))
