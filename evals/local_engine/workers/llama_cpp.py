"""llama.cpp by its Python binding. One stream at a time is all that it serves."""

from __future__ import annotations

from evals.local_engine.load import begin, long_text, questions, tell, timed

LOAD, BEGUN = begin()

import time  # noqa: E402 - the time of the imports counts
from itertools import islice  # noqa: E402
from typing import Any  # noqa: E402

from llama_cpp import Llama  # noqa: E402


def write(model: Any, text: str, tokens: int) -> int:
    """Write so many tokens, whatever they are; how many were written."""
    prompt = model.tokenize(text.encode())
    return len(list(islice(model.generate(prompt, temp=0.0), tokens)))


def main() -> None:
    """Measure the cases that there are."""
    model = Llama(
        LOAD.model,
        n_ctx=4096,
        n_batch=512,
        n_threads=LOAD.threads,
        n_threads_batch=LOAD.threads,
        verbose=False,
    )
    write(model, "Hello.", 1)
    first_token_s = time.perf_counter() - BEGUN
    write(model, "Hello again.", 8)
    model.reset()
    one = timed(lambda: write(model, questions(LOAD, 1)[0], LOAD.tokens))
    model.reset()
    text = long_text(LOAD)
    size = len(model.tokenize(text.encode()))
    prompt = timed(lambda: write(model, text, 1) and size)
    tell(first_token_s, {"stream_1": one, "prompt": prompt})


main()
