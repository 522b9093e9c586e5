"""A method as people name it: what makes it for a target, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.decoding.speculative.method import Method

if TYPE_CHECKING:
    from weft.decoding.network.network import Network

Options = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Published:
    """Tokens committed per pass of the target, the target's own included, and who measured what."""

    tokens_per_pass: float
    where: str


@dataclass(frozen=True, slots=True)
class Preset:
    """`make` builds the method for a network, once for all of its sequences.

    It raises `SpecError` for options that cannot be, `CapabilityError` or `ModelNotFound` where
    weights are missing or of another model.

    lossless    the text is that of plain decoding; else it has to be asked for as lossy
    needs       what it takes beside the target: a draft model, trained weights; empty: nothing
    options     the names it takes; `num_speculative_tokens` is the most nodes of a draft
    published   None: nobody measured it in these terms
    """

    name: str
    summary: str
    make: Callable[[Network, Options], Method]
    lossless: bool = True
    needs: str = ""
    options: tuple[str, ...] = ()
    published: Published | None = None
