"""What of vLLM's diffusion path can run here, and why not. Loads neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from weft.core.errors import EngineMissing
from weft.serving.vllm.installed import distribution_here, platform_of

_WRITTEN_FOR: Final = "0.32."


@dataclass(frozen=True, slots=True)
class Runnable:
    """`why` says what is missing, if something is; `vllm` is the version that is installed."""

    can: bool
    why: tuple[str, ...] = ()
    vllm: str | None = None

    @property
    def summary(self) -> str:
        """One line for people."""
        if self.can:
            return f"vLLM {self.vllm}: can be tried, but weft never ran it there"
        return "not here: " + "; ".join(self.why)


def probe(
    here: Callable[[], tuple[str, str]] = distribution_here,
    platform: Callable[[str, str], str | None] = platform_of,
    has: Callable[[str], bool] = lambda name: find_spec(name) is not None,
) -> Runnable:
    """Looks at what is installed, and at the drivers."""
    try:
        distribution, version = here()
    except EngineMissing as missing:
        return Runnable(False, (missing.message,))
    why = []
    kind = platform(distribution, version)
    if kind == "cpu":
        why.append("this vLLM computes on the CPU, and its second model runner needs Triton")
    elif kind is None:
        why.append("this vLLM needs a GPU, and none is here")
    elif not has("triton"):
        why.append("Triton is not installed, which vLLM's second model runner needs")
    if not version.startswith(_WRITTEN_FOR):
        why.append(f"written for vLLM {_WRITTEN_FOR}x, and {version} is installed")
    return Runnable(not why, tuple(why), version)
