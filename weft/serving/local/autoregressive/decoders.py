"""The speculative decoders of one network, made at their first use; collects their drafts.

Works on rows and methods, whatever their way of drafting.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from weft.core.errors import CapabilityError, SpecError
from weft.core.loggers import logger
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

LOG = logger("decoding")
_MAX_METHODS = 32


class SpeculativeDecoders:
    """Makes speculative decoders. `default` is for requests that name none."""

    def __init__(self, network: Network, default: DecodeSpec = AUTOREGRESSIVE) -> None:
        self._network = network
        self._default = default
        self._methods: dict[DecodeSpec, SpeculativeMethod] = {}
        self._warned: set[str] = set()

    def speculation(self, decode: DecodeSpec, request: DraftRequest) -> SpeculativeSequence | None:
        """The drafts of one answer; None for plain decoding.

        Raises: `CapabilityError` for an unknown decoder or option, and for one that may change the
        text although the request asks for a lossless one; the errors of making it.
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
        size = self._network.vocabulary_size
        return SpeculativeSequence(self._method(spec), size, request, self._warn)

    def drafts(self, rows: Iterable[AnswerRow]) -> dict[AnswerRow, DraftProposal]:
        """The drafts of rows; the rows of one method are drafted together."""
        requests: dict[
            SpeculativeMethod, list[tuple[AnswerRow, SpeculativeSequence, ProposalRequest]]
        ] = {}
        for row in rows:
            request = row.speculation.ask() if row.speculation is not None else None
            if row.speculation is not None and request is not None:
                entry = row, row.speculation, request
                requests.setdefault(row.speculation.method, []).append(entry)
        drafts = {}
        for method, entries in requests.items():
            began_s = time.perf_counter()
            proposals = propose_all(method, [request for _, _, request in entries])
            share_s = (time.perf_counter() - began_s) / len(entries)
            for (row, speculation, request), draft in zip(entries, proposals, strict=True):
                drafts[row] = row.admitted(speculation.take(draft, request, row.room))
                row.proposal_s += share_s
        return drafts

    def close(self) -> None:
        """Close every method. Harmless when repeated."""
        while self._methods:
            self._methods.popitem()[1].close()

    def _warn(self, fallback: SpeculationFallback) -> None:
        """Log a failed drafter, once per decoder; its answers report every failure."""
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
            except SpecError as error:  # to the caller, this model lacks the decoder
                raise CapabilityError(error.message, hint=error.hint) from error
        return self._methods[spec]

    def _made(self, spec: DecodeSpec) -> SpeculativeMethod:
        if isinstance(spec, Lossless) and not preset(spec.method).lossless:
            raise CapabilityError(
                f"the decoder {spec.method!r} may change the text",
                hint="ask for it as a lossy one, if that is what you want",
            )
        if len(self._methods) >= _MAX_METHODS:
            raise CapabilityError(
                f"this model drafts in {_MAX_METHODS} ways already",
                hint="use fewer decoders, or fewer variants of their options",
            )
        return made(spec.method, self._network, dict(spec.options))
