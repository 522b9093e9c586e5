"""Prompt lookup (n-gram speculation): copies what followed the same few tokens before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from weft.core.errors import SpecError
from weft.decoding.speculative.drafters.lookup import Lookup
from weft.decoding.speculative.lengths import Always
from weft.decoding.speculative.method import Method, Single
from weft.decoding.speculative.options import whole
from weft.decoding.speculative.preset import Options, Preset, Published
from weft.decoding.speculative.speculation import MOST_NODES

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


def _make(network: Network, options: Options) -> Method:  # noqa: ARG001 - tokens are all it needs
    most = whole(options, "num_speculative_tokens", 8, 1, MOST_NODES)
    longest = whole(options, "longest", 3, 1, 16)
    shortest = whole(options, "shortest", 1, 1, longest)
    which = _which(options)
    return Single("lookup", lambda: Lookup(longest, shortest, which), lambda: Always(most))


def _which(options: Options) -> Literal["first", "last"]:
    match options.get("which", "last"):
        case "first" | "last" as which:
            return which
        case other:
            raise SpecError(f"which is {other!r}", hint="first or last")


PRESET = Preset(
    "lookup",
    "copies what followed the same few tokens earlier in the text",
    _make,
    options=("num_speculative_tokens", "longest", "shortest", "which"),
    published=Published(1.75, "Spec-Bench, Vicuna-7B greedy on an A100"),
)
