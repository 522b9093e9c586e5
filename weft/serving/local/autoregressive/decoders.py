"""Speculative decoders of one network: made when they are first asked for, and asked for drafts.

Knows rows and methods; knows nothing of how any of them drafts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from weft.core.errors import CapabilityError, SpecError
from weft.core.values import AUTOREGRESSIVE, DecodeSpec, Lossless
from weft.decoding.diffusion.catalogue import NAMES as DIFFUSION_NAMES
from weft.decoding.network.network import Network
from weft.decoding.options import PLAIN_NAMES
from weft.decoding.speculative.draft import DraftProposal
from weft.decoding.speculative.drafter import (
    DraftRequest,
    ProposalRequest,
    SpeculativeMethod,
    propose_all,
)
from weft.decoding.speculative.presets import NAMES, made, preset
from weft.decoding.speculative.speculation import SpeculationFallback, SpeculativeSequence
from weft.serving.local.autoregressive.row import AnswerRow

LOG = logging.getLogger("weft.decoding")
_MOST_METHODS = 32


class SpeculativeDecoders:
    """`default` is what requests get that name no decoder."""

    def __init__(self, network: Network, default: DecodeSpec = AUTOREGRESSIVE) -> None:
        self._network = network
        self._default = default
        self._methods: dict[DecodeSpec, SpeculativeMethod] = {}
        self._warned: set[str] = set()

    def speculation(self, decode: DecodeSpec, asked: DraftRequest) -> SpeculativeSequence | None:
        """The drafts of one answer; None for plain decoding.

        Raises: `CapabilityError` for a decoder or an option that is none, and for one that may
        change the text where that was not asked for; what making it raises.
        """
        spec = self._default if decode == AUTOREGRESSIVE else decode
        if spec.method in PLAIN_NAMES:
            return None
        if spec.method in DIFFUSION_NAMES:
            raise CapabilityError(
                f"the decoder {spec.method!r} is for diffusion models; this one writes on, token"
                " by token",
                hint=f"it has: {', '.join(NAMES)}",
            )
        words = self._network.vocabulary_size
        return SpeculativeSequence(self._method(spec), words, asked, self._warn)

    def drafts(self, rows: Iterable[AnswerRow]) -> dict[AnswerRow, DraftProposal]:
        """What the drafters of rows propose; the rows of one method are asked together."""
        asks: dict[
            SpeculativeMethod, list[tuple[AnswerRow, SpeculativeSequence, ProposalRequest]]
        ] = {}
        for row in rows:
            ask = row.speculation.ask() if row.speculation is not None else None
            if row.speculation is not None and ask is not None:
                asks.setdefault(row.speculation.method, []).append((row, row.speculation, ask))
        drafts = {}
        for method, asked in asks.items():
            begun = time.perf_counter()
            answers = propose_all(method, [ask for _, _, ask in asked])
            share_s = (time.perf_counter() - begun) / len(asked)
            for (row, speculation, ask), draft in zip(asked, answers, strict=True):
                drafts[row] = row.admitted(speculation.take(draft, ask, row.room))
                row.proposal_s += share_s
        return drafts

    def close(self) -> None:
        """Close every method. Harmless when repeated."""
        while self._methods:
            self._methods.popitem()[1].close()

    def _warn(self, fallback: SpeculationFallback) -> None:
        """Log a drafter that failed, once for each decoder: its answers tell of each time."""
        if fallback.method not in self._warned:
            self._warned.add(fallback.method)
            LOG.warning(
                "the decoder %s failed, and answers go on without drafts: %s",
                fallback.method,
                fallback.reason,
            )

    def _method(self, spec: DecodeSpec) -> SpeculativeMethod:
        if spec not in self._methods:
            try:
                self._methods[spec] = self._made(spec)
            except SpecError as error:  # to who asks, it is what this model cannot do
                raise CapabilityError(error.message, hint=error.hint) from error
        return self._methods[spec]

    def _made(self, spec: DecodeSpec) -> SpeculativeMethod:
        if isinstance(spec, Lossless) and not preset(spec.method).lossless:
            raise CapabilityError(
                f"the decoder {spec.method!r} may change the text",
                hint="ask for it as a lossy one, if that is what you want",
            )
        if len(self._methods) >= _MOST_METHODS:
            raise CapabilityError(
                f"this model drafts in {_MOST_METHODS} ways already",
                hint="use fewer decoders, or fewer variants of their options",
            )
        return made(spec.method, self._network, dict(spec.options))
