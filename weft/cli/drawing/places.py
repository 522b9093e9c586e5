"""Gives the nodes of ordered layers their places: straight edges where possible, no overlaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.cli.drawing.layers import Bend, Key, Layers, neighbours

_ROUNDS = 6
_BEND_WIDTH = 10.0
_BEND_WEIGHT = 4.0


def centres(layers: Layers, widths: Mapping[Key, float], gap: float) -> dict[Key, float]:
    """The x of each key's centre. Each row moves towards its neighbours', and keeps its order."""
    above, below = neighbours(layers.chains)
    x: dict[Key, float] = {}

    def settle(row: Sequence[Key], *sides: Mapping[Key, list[Key]]) -> None:
        wanted = []
        for key in row:
            near = [x[other] for side in sides for other in side.get(key, ())]
            wanted.append(sum(near) / len(near) if near else x.get(key, 0.0))
        x.update(zip(row, _spread(wanted, _offsets(row, widths, gap), row), strict=True))

    for row in layers.rows:
        settle(row)
    for _ in range(_ROUNDS):
        for row in layers.rows:
            settle(row, above)
        for row in reversed(layers.rows):
            settle(row, below)
    for row in layers.rows:
        settle(row, above, below)
    return x


def _offsets(row: Sequence[Key], widths: Mapping[Key, float], gap: float) -> list[float]:
    """Where each centre would be if the row were packed as tight as it may be."""
    offsets, at = [], 0.0
    for key in row:
        half = widths.get(key, _BEND_WIDTH) / 2
        offsets.append(at + half)
        at += 2 * half + gap
    return offsets


def _spread(wanted: Sequence[float], offsets: Sequence[float], row: Sequence[Key]) -> list[float]:
    """The places nearest to `wanted` (least squares) that keep the packed distances.

    Isotonic regression by pooling neighbours that would overlap.
    """
    pools: list[tuple[float, float, int]] = []
    for want, offset, key in zip(wanted, offsets, row, strict=True):
        weight = _BEND_WEIGHT if isinstance(key, Bend) else 1.0
        mean, members = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, other_weight, count = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, members = weight + other_weight, members + count
        pools.append((mean, weight, members))
    means = [mean for mean, _, members in pools for _ in range(members)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
