"""One sequence decoded by a method on a network, without a server around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.decoding.speculative.asked import Asked
from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.law import Shaping
from weft.decoding.speculative.loop import Decoding, Limits
from weft.decoding.speculative.method import Method
from weft.decoding.speculative.network_target import NetworkTarget
from weft.decoding.speculative.speculation import Speculation

if TYPE_CHECKING:
    from weft.decoding.network.network import Network


def decode_alone(
    network: Network,
    prompt: Sequence[int],
    method: Method,
    shaping: Shaping,
    chance: Chance,
    limits: Limits,
    slot: int = 0,
) -> Decoding:
    """Iterate over what is returned: the tokens of each step. Reads the prompt at once.

    Raises: `ValueError` for a prompt of no tokens.
    """
    speculation = Speculation(method, network.vocabulary_size, Asked(shaping))
    target = NetworkTarget(network, shaping, slot)
    for seen in target.begin(prompt, speculation.taps):
        speculation.see(seen)
    speculation.extend(prompt)
    return Decoding(target, speculation, chance, limits)
