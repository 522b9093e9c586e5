"""`python -m evals.local_engine.profile [--rows N | --prompt N]`: where a pass goes."""

from __future__ import annotations

import argparse
from typing import get_args

from torch.profiler import ProfilerActivity, profile

from evals.local_engine.systems import MODEL
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions, Quantization, usable_cores
from weft.decoding.network.packing import Span
from weft.serving.weights import locate

_CONTEXT = 128
_PASSES = 20


def main() -> None:
    """Read one token in each of some rows, or a prompt, again and again, and print what took the
    time.
    """
    parser = argparse.ArgumentParser(prog="python -m evals.local_engine.profile")
    parser.add_argument("--rows", type=int, default=1, help="how many streams")
    parser.add_argument("--prompt", type=int, help="tokens of a prompt, instead")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--quantization", choices=get_args(Quantization), default="auto")
    asked = parser.parse_args()
    options = NetworkOptions(threads=asked.threads, quantization=asked.quantization)
    network = Network.load(locate(MODEL), options)
    text = [100 + column % 1000 for column in range(asked.prompt or _CONTEXT)]
    for slot in range(asked.rows):
        network.forward([Span(slot, range(len(text)), text, 0, prompt=True)])
    spans = [Span(slot, (len(text),), (5,), 1) for slot in range(asked.rows)]
    if asked.prompt:
        spans = [Span(0, range(len(text)), text, 1, prompt=True)]
    network.forward(spans)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(_PASSES):
            network.forward(spans)
    print(seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=25))


if __name__ == "__main__":
    main()
