"""vLLM in process on this CPU, in bfloat16."""

from __future__ import annotations

from evals.local_engine.load import STREAMS, begin, long_text, questions, tell, timed

LOAD, BEGUN = begin()

import os  # noqa: E402 - the time of the imports counts
import time  # noqa: E402
from typing import Any  # noqa: E402

os.environ.update(
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_CPU_OMP_THREADS_BIND=f"0-{LOAD.threads - 1}" if LOAD.threads > 1 else "0",
    VLLM_NO_USAGE_STATS="1",
    VLLM_LOGGING_LEVEL="ERROR",
    DO_NOT_TRACK="1",
    HF_HUB_OFFLINE="1",
)


def write(model: Any, texts: list[str], tokens: int) -> tuple[int, int]:
    """How many tokens were read and written."""
    from vllm import SamplingParams

    sampling = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True)
    done = model.generate(texts, sampling, use_tqdm=False)
    read = sum(len(answer.prompt_token_ids) for answer in done)
    return read, sum(len(answer.outputs[0].token_ids) for answer in done)


def main() -> None:
    """Measure all cases."""
    from vllm import LLM

    model = LLM(
        LOAD.model,
        dtype="bfloat16",
        max_model_len=4096,
        max_num_seqs=STREAMS,
        enforce_eager=True,
        enable_prefix_caching=False,
    )
    write(model, ["Hello."], 1)
    first_token_s = time.perf_counter() - BEGUN
    write(model, ["Hello again."], 8)
    speeds = {
        "stream_1": timed(lambda: write(model, questions(LOAD, 1), LOAD.tokens)[1]),
        "streams_32": timed(lambda: write(model, questions(LOAD, STREAMS), LOAD.tokens)[1]),
        "prompt": timed(lambda: write(model, [long_text(LOAD)], 1)[0]),
    }
    tell(first_token_s, speeds)


if __name__ == "__main__":  # vLLM starts processes that import this module
    main()
