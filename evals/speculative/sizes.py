"""Larger models: the same decoders on 1.1B parameters, and a draft model a tenth of its target.

Both need weights that do not come with weft, the pair also a GPU; what is not here is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import torch

from evals.engine.rows import Row
from evals.speculative.local import measured, table
from evals.speculative.rounds import Size
from evals.speculative.systems import System
from weft.core.errors import ModelNotFound
from weft.core.values import Lossless
from weft.serving.weights import locate

__all__ = ["rows", "table"]

LARGER: Final = "tinyllama-1.1b-chat"
TARGET: Final = "smollm2-1.7b-instruct"
DRAFT: Final = "smollm2-135m-instruct"
_CASES: Final = ("agent_quoting", "agent_edits", "mt_bench", "translation")
_FREE: Final = (
    System("lookup", Lossless("lookup")),
    System("suffix", Lossless("suffix", (("shared", False),))),
)


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of both, in cases that carry the model's name."""
    size = Size(1, 32, back=False) if quick else Size(5, 64, back=True)
    cases = _CASES[:1] if quick else _CASES
    found = [*_larger(cases, size), *_pair(cases, size)]
    return [asdict(row) for row in found]


def _larger(cases: Sequence[str], size: Size) -> list[Row]:
    try:
        path = locate(LARGER)
    except ModelNotFound as missing:
        return [_skipped(LARGER, str(missing))]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return _measured(LARGER, path, _FREE, cases, size, device)


def _pair(cases: Sequence[str], size: Size) -> list[Row]:
    if not torch.cuda.is_available():
        return [_skipped(TARGET, "a target of 1.7B with a draft of 135M needs a GPU")]
    try:
        target, draft = locate(TARGET), locate(DRAFT)
    except ModelNotFound as missing:
        return [_skipped(TARGET, str(missing))]
    options = (("model", str(draft)), ("num_speculative_tokens", 4))
    small = System("draft_model", Lossless("draft_model", options))
    return _measured(TARGET, target, (*_FREE, small), cases, size, "cuda")


def _measured(
    name: str,
    path: Path,
    wanted: Sequence[System],
    cases: Sequence[str],
    size: Size,
    device: str,
) -> list[Row]:
    found = asyncio.run(measured(path, wanted, cases, size, device=device))
    return [replace(row, case=f"{row.case}, {name}") for row in found]


def _skipped(name: str, why: str) -> Row:
    return Row(name, "", f"skipped: {why}", None, "")
