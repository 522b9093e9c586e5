"""The faults of the vLLM that is installed, before and after a worker's start, as JSON."""

from __future__ import annotations

import json
import logging

from weft.serving.vllm.plugin import LOG, Repair, register
from weft.serving.vllm.plugin.repairs import ChunkedSeed, EmptyTopK, PipelineBuffer, TokenExpansion

REPAIRS: tuple[Repair, ...] = (TokenExpansion(), EmptyTopK(), PipelineBuffer(), ChunkedSeed())


class Lines(logging.Handler):
    """Counts what is said."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


def main() -> None:
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        print(json.dumps({"platform": "other"}))
        return
    lines = Lines()
    LOG.addHandler(lines)
    LOG.setLevel(logging.INFO)
    current_platform.register_triton_kernel_overrides()
    before = {repair.name: repair.probe() for repair in REPAIRS}
    register()
    register()
    counts = []
    for _ in range(2):
        lines.count = 0
        current_platform.register_triton_kernel_overrides()
        counts.append(lines.count)
    after = {repair.name: repair.probe() for repair in REPAIRS}
    print(json.dumps({"platform": "cpu", "before": before, "after": after, "lines": counts}))


if __name__ == "__main__":
    main()
