"""One vLLM engine without a server, in a process of its own.

`python -m tests.integration.offline JOB MODEL OUT` appends what came out to OUT, as it comes: lines
of JSON, so that what an engine did before it died is known as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

PROMPT = "Tell me more about"
TOP_K = 4
Outcomes = Iterator[Mapping[str, Any]]


def speculate(folder: str) -> Outcomes:
    """Draft with the target itself: nearly cold for the acceptance, at 1 for the distribution."""
    from vllm import SamplingParams

    draft = {"method": "draft_model", "model": folder, "num_speculative_tokens": 3}
    engine = _engine(folder, speculative_config=draft, disable_log_stats=False)
    cold = SamplingParams(temperature=0.01, max_tokens=48)
    engine.generate([f"{PROMPT} {number}" for number in range(8)], cold, use_tqdm=False)
    counted = {metric.name: metric for metric in engine.get_metrics()}
    yield {
        "drafted": counted["vllm:spec_decode_num_draft_tokens"].value,
        "accepted": counted["vllm:spec_decode_num_accepted_tokens"].value,
    }
    warm = SamplingParams(temperature=1.0, top_k=TOP_K, max_tokens=3)
    answers = engine.generate([PROMPT] * 3000, warm, use_tqdm=False)
    yield {"samples": [list(answer.outputs[0].token_ids) for answer in answers]}


def pipe(folder: str) -> Outcomes:
    """Answer greedily on two pipeline stages."""
    from vllm import SamplingParams

    engine = _engine(folder, pipeline_parallel_size=2)
    greedy = SamplingParams(temperature=0.0, max_tokens=32)
    yield {"ready": True}
    [answer] = engine.generate([PROMPT], greedy, use_tqdm=False)
    yield {"answer": list(answer.outputs[0].token_ids)}


def chunk(folder: str) -> Outcomes:
    """Draw with a seed after a prompt in one piece, all but its end being cached; then in many."""
    from vllm import SamplingParams

    engine = _engine(folder, block_size=32, max_num_batched_tokens=32, max_num_seqs=8)
    prompt = {"prompt_token_ids": [7 + number % 40 for number in range(150)]}
    drawn = SamplingParams(temperature=1.0, seed=5, max_tokens=24)
    engine.generate([prompt], SamplingParams(max_tokens=1), use_tqdm=False)
    for cached in (True, False):
        if not cached:
            engine.reset_prefix_cache()
        [answer] = engine.generate([prompt], drawn, use_tqdm=False)
        yield {"cached": answer.num_cached_tokens, "answer": list(answer.outputs[0].token_ids)}


def _engine(folder: str, **options: Any) -> Any:
    from vllm import LLM

    usual: dict[str, Any] = {
        "dtype": "float32",
        "enforce_eager": True,
        "kv_cache_memory_bytes": 2**28,
        "max_model_len": 256,
        "max_num_seqs": 128,
    }
    return LLM(model=folder, **(usual | options))


JOBS: Mapping[str, Callable[[str], Outcomes]] = {
    "speculate": speculate,
    "pipe": pipe,
    "chunk": chunk,
}

if __name__ == "__main__":
    job, model, out = sys.argv[1:]
    with Path(out).open("a", encoding="utf-8") as lines:
        for outcome in JOBS[job](model):
            print(json.dumps(outcome), file=lines, flush=True)
