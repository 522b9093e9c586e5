"""One fault of vLLM and its repair, and applying those that are needed. Knows no fault itself."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

# A child of vLLM's own logger, so that its handlers show the line wherever it runs.
LOG = logging.getLogger("vllm.weft")


class Repair(Protocol):
    """A fault that is looked for in the vLLM that is installed, before it is mended."""

    name: str
    why: str

    def probe(self) -> bool:
        """Whether the fault is there. Changes nothing. What it raises means: cannot tell."""

    def apply(self) -> None:
        """Mend it in this process; `probe()` is false from then on."""


def mend(repairs: Iterable[Repair]) -> None:
    """Apply the repairs whose fault is there, one log line each. Never raises.

    A vLLM whose parts are not where a probe looks for them is left as it is, with a warning.
    """
    for repair in repairs:
        try:
            if repair.probe():
                repair.apply()
                LOG.info("weft repaired %s: %s", repair.name, repair.why)
        except Exception as unknown:  # noqa: BLE001 - a server never fails because of its repairs
            LOG.warning("weft cannot check %s in this vLLM: %r", repair.name, unknown)
