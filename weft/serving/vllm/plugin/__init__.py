"""What vLLM loads in each of its processes (`vllm.general_plugins`): repairs, and our models.

Which faults there are is in `repairs`. Only platforms with known faults pay for it:
elsewhere nothing is repaired. `WEFT_VLLM_REPAIRS=0` switches repairs off, `WEFT_VLLM_DIFFUSION=0`
the diffusion models.
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
# There where models can be configured or run; other processes need to know of none.
_CONFIGURED = "vllm.config"
# vLLM calls it in each worker, after its plugins and before any code of workers or models. That is
# the first moment at which probes see what will run, and only workers pay for them.
_MOMENT = "register_triton_kernel_overrides"


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


def register() -> None:
    """Make weft's diffusion models known; have the workers of this process mended as they start.

    Never raises; may be called again.
    """
    _register_diffusion()
    if os.environ.get("WEFT_VLLM_REPAIRS") == "0":
        return
    try:
        from vllm.platforms import current_platform

        if current_platform.is_cpu():
            _at_start_of_worker(type(current_platform))
    except Exception as unknown:  # noqa: BLE001 - vLLM must start without us
        LOG.warning("weft repairs nothing in this vLLM, which it does not know: %r", unknown)


def _register_diffusion() -> None:
    if os.environ.get("WEFT_VLLM_DIFFUSION") == "0" or _CONFIGURED not in sys.modules:
        return
    try:
        from weft.serving.vllm.diffusion.registration import register_models

        register_models()
    except Exception as unknown:  # noqa: BLE001 - vLLM must start without us
        LOG.warning("weft's diffusion models are not known to this vLLM: %r", unknown)


def _at_start_of_worker(platform: Any) -> None:
    original = getattr(platform, _MOMENT)
    if hasattr(original, "mends"):
        return

    @functools.wraps(original)
    def then_mend(*given: Any, **named: Any) -> Any:
        result = original(*given, **named)
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
