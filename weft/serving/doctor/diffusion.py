"""Looks at what of diffusion models can run here: in this process, and in vLLM. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable

from weft.decoding.diffusion.models import is_diffusion
from weft.serving.doctor.check import Check
from weft.serving.doctor.extras import check_local
from weft.serving.vllm.diffusion.probe import Runnable, probe
from weft.serving.weights.shipped import shipped


def check_diffusion(
    local: Callable[[], Check] = check_local, look: Callable[[], Runnable] = probe
) -> Check:
    """Whether `use: local` fills texts in, and whether vLLM's own diffusion path can be tried."""
    inside = local()
    names = ", ".join(name for name, path in shipped().items() if is_diffusion(path)) or "none"
    here = "in this process: yes" if inside.status == "ok" else "in this process: no"
    found = f"{here} (models that come with weft: {names}); in vLLM: {look().summary}"
    return Check("diffusion", inside.status, found, inside.advice)
