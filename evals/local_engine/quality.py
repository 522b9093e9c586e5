"""What fewer bits of the weights cost: perplexity on the demo's documents, and greedy agreement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from transformers import AutoTokenizer

from evals.engine.rows import Row
from weft.core.errors import CapabilityError
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions, Quantization
from weft.decoding.network.packing import Span

CASE = "quality"
DOCUMENTS = Path(__file__).resolve().parents[2] / "examples" / "brief" / "documents"
_PIECE = 128


def quality_rows(model: Path, most_documents: int | None = None) -> list[Row]:
    """For each quantization perplexity, and how often its likeliest token is that of bfloat16."""
    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True)
    files = sorted(DOCUMENTS.iterdir())[:most_documents]
    texts = [tokenizer(file.read_text(encoding="utf-8"))["input_ids"] for file in files]
    rows: list[Row] = []
    plain: list[NDArray[np.int64]] = []
    for name in ("none", *(q for q in get_args(Quantization) if q not in {"none", "auto"})):
        try:
            options = NetworkOptions(dtype="bfloat16", quantization=name)
            network = Network.load(model, options)
        except CapabilityError as error:
            rows.append(Row(CASE, name, f"skipped: {error.message}", None, ""))
            continue
        found = [_read(network, text) for text in texts]
        likeliest = [best for best, _ in found]
        plain = plain or likeliest
        rows += _rows(name, likeliest, plain, np.concatenate([losses for _, losses in found]))
    return rows


def _rows(
    name: str,
    likeliest: list[NDArray[np.int64]],
    plain: list[NDArray[np.int64]],
    losses: NDArray[np.float64],
) -> list[Row]:
    same = np.concatenate([a == b for a, b in zip(likeliest, plain, strict=True)])
    metrics: Mapping[str, tuple[float, str]] = {
        "perplexity": (float(np.exp(losses.mean())), "per token"),
        "greedy_agreement": (float(same.mean()), "share of tokens"),
        "tokens": (len(losses), "tokens"),
    }
    return [Row(CASE, name, metric, value, unit) for metric, (value, unit) in metrics.items()]


def _read(network: Network, text: list[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The likeliest token after each but the last, and the loss of the one that comes."""
    network.reset()
    best, losses = [], []
    for first in range(0, len(text) - 1, _PIECE):
        piece = text[first : min(first + _PIECE, len(text) - 1)]
        columns = range(first, first + len(piece))
        logits = network.forward([Span(0, columns, piece, len(piece))])[0].logits
        best.append(logits.argmax(axis=1))
        top = logits.max(axis=1, keepdims=True)
        whole = top[:, 0] + np.log(np.exp(logits - top).sum(axis=1, dtype=np.float64))
        here = np.arange(len(piece))
        losses.append(whole - logits[here, text[first + 1 : first + 1 + len(piece)]])
    return np.concatenate(best), np.concatenate(losses)
