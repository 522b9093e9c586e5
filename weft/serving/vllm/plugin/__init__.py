"""vLLM's plugin (`vllm.general_plugins`), loaded in each of its processes: repairs, and our models.

`repairs` lists the faults. Only platforms with known faults pay for probing them.
`WEFT_VLLM_REPAIRS=0` switches repairs off, `WEFT_VLLM_DIFFUSION=0` the diffusion models.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Iterable
from typing import Any, Protocol

# A child of vLLM's own logger, so that its handlers show the line wherever it runs.
LOG = logging.getLogger("vllm.weft")
# Imported where models are configured or run; other processes need no models.
_CONFIGURED = "vllm.config"
# vLLM calls this in each worker, after its plugins and before any code of workers or models: the
# first moment at which probes see the code that will run. Only workers pay for probes.
_MOMENT = "register_triton_kernel_overrides"


class Repair(Protocol):
    """A repair of a fault, which is first looked for in the installed vLLM."""

    name: str
    why: str

    def probe(self) -> bool:
        """Whether the fault is present. Changes nothing. Raises where this cannot be determined."""

    def apply(self) -> None:
        """Repair it in this process; `probe()` is false from then on."""


def mend(repairs: Iterable[Repair]) -> None:
    """Apply the repairs of present faults, with one log line each. Never raises.

    Where a probe does not find the code that it expects, nothing is changed, and a warning logged.
    """
    for repair in repairs:
        try:
            if repair.probe():
                repair.apply()
                LOG.info("weft repaired %s: %s", repair.name, repair.why)
        except Exception as unknown:  # noqa: BLE001 - a server never fails because of its repairs
            LOG.warning("weft cannot check %s in this vLLM: %r", repair.name, unknown)


def register() -> None:
    """Register weft's diffusion models, and have this process's workers repaired as they start.

    Never raises; may be called again.
    """
    _register_diffusion()
    if os.environ.get("WEFT_VLLM_REPAIRS") == "0":
        return
    try:
        from vllm.platforms import current_platform

        if current_platform.is_cpu():
            _at_start_of_worker(type(current_platform))
    except Exception as unknown:  # noqa: BLE001 - vLLM must start without weft
        LOG.warning("weft repairs nothing in this vLLM, which it does not know: %r", unknown)


def _register_diffusion() -> None:
    if os.environ.get("WEFT_VLLM_DIFFUSION") == "0" or _CONFIGURED not in sys.modules:
        return
    try:
        from weft.serving.vllm.diffusion.registration import register_models

        register_models()
    except Exception as unknown:  # noqa: BLE001 - vLLM must start without weft
        LOG.warning("weft's diffusion models are not known to this vLLM: %r", unknown)


def _at_start_of_worker(platform: Any) -> None:
    original = getattr(platform, _MOMENT)
    if hasattr(original, "mends"):
        return

    @functools.wraps(original)
    def then_mend(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        _mend_worker()
        return result

    then_mend.mends = True  # type: ignore[attr-defined]
    setattr(platform, _MOMENT, staticmethod(then_mend))


def _mend_worker() -> None:
    from weft.serving.vllm.plugin.repairs import (
        ChunkedSeed,
        EmptyTopK,
        PipelineBuffer,
        TokenExpansion,
    )

    mend((TokenExpansion(), EmptyTopK(), PipelineBuffer(), ChunkedSeed()))
