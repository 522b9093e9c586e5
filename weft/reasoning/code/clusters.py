"""Programs that print the same, found by running them. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.engine import NodeContext
from weft.reasoning.code.bench import Bench
from weft.reasoning.code.outputs import Output
from weft.reasoning.code.program import digest
from weft.reasoning.thought import Sample


async def keyed(
    context: NodeContext, name: str, bench: Bench, samples: Sequence[Sample], inputs: Sequence[str]
) -> list[Sample]:
    """`samples` with keys that are equal where all outputs on `inputs` are.

    The texts of samples are programs; one without any output has the key None. Runs are nodes
    `name[...]` of `context`. Raises: `SandboxError`.
    """
    programs = list(dict.fromkeys(sample.text for sample in samples))
    rows = await bench.table(context, name, programs, inputs)
    keys = {program: _key(row) for program, row in zip(programs, rows, strict=True)}
    return [replace(sample, key=keys[sample.text]) for sample in samples]


def _key(row: Sequence[Output]) -> str | None:
    if not any(output.ok for output in row):
        return None
    return digest("\0".join(output.text if output.ok else "\1" for output in row))
