"""The deployments that are compared, and the traffic they all get. Starts nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weft.serving.plan.layout import RankLayout
from weft.serving.plan.traffic import LengthDistribution, Summary, Traffic
from weft.serving.vllm.launch.spec import ServeSpec

KV_BYTES = 1 << 30
BLOCK_TOKENS = 128  # what vLLM uses on a CPU
Number = Literal["bf16", "fp32"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to serve the model. Threads are one for each rank, two where there is one rank."""

    name: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    number: Number = "bf16"
    max_seqs: int = 32
    max_batched_tokens: int = 2_048

    @property
    def layout(self) -> RankLayout:
        """The same as the planner sees it."""
        return RankLayout(self.tp, self.pp, self.dp)

    def spec(self, model: str) -> ServeSpec:
        """What to start. Prefixes are not cached: no prompt may profit from an earlier round."""
        return ServeSpec(
            model=model,
            served_name="model",
            tp=self.tp,
            pp=self.pp,
            dp=self.dp,
            device="cpu",
            dtype="bfloat16" if self.number == "bf16" else "float32",
            max_seqs=self.max_seqs,
            max_batched_tokens=self.max_batched_tokens,
            kv_cache_bytes=KV_BYTES,
            prefix_caching=False,
        )


QUICK = (
    Configuration("base"),
    Configuration("fp32", number="fp32"),
    Configuration("seqs_2", max_seqs=2),
    Configuration("seqs_8", max_seqs=8),
    Configuration("tp_2", tp=2),
    Configuration("pp_2", pp=2),
)
FULL = (
    *QUICK,
    Configuration("dp_2", dp=2),
    Configuration("batched_64", max_batched_tokens=64),
    Configuration("fp32_seqs_2", number="fp32", max_seqs=2),
    Configuration("fp32_tp_2", number="fp32", tp=2),
)


def traffic(requests: int) -> Traffic:
    """Requests that come faster than most configurations answer, the same ones for all."""
    return Summary(
        rate=10.0,
        prompt=LengthDistribution(150, 350),
        output=LengthDistribution(40, 90),
        requests=requests,
        seed=7,
    ).traffic("evaluation")
