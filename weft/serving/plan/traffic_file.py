"""Reads traffic from a file: JSON lines of requests, or one JSON object of statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from weft.core.errors import SourceError, SpecError
from weft.serving.plan.traffic import DEFAULT, Lengths, Request, Slo, Summary, Traffic

_LARGEST_FILE_BYTES = 64 << 20
_MOST_REQUESTS = 200_000
_MOST_TOKENS = 10_000_000
_Fields = Mapping[str, object]


class _Place:
    """A line of a file, for messages."""

    def __init__(self, file: str, line: int) -> None:
        self.file, self.line = file, line

    def wrong(self, message: str, hint: str | None = None) -> SourceError:
        return SourceError(message, file=self.file, line=self.line, hint=hint)

    def known(self, fields: _Fields, *names: str) -> None:
        for name in fields:
            if name not in names:
                raise self.wrong(
                    f"unknown field `{name[:60]}`", hint=f"known are {', '.join(names)}"
                )

    def number(
        self, fields: _Fields, name: str, low: float, high: float, default: float | None = None
    ) -> float:
        value = fields.get(name, default)
        if value is None:
            raise self.wrong(f"`{name}` is missing")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(f"`{name}` is {value!r:.60}, not a number")
        if not (isfinite(value) and low <= value <= high):
            raise self.wrong(f"`{name}` is {value!r:.60}, not from {low:g} to {high:g}")
        return float(value)

    def count(self, fields: _Fields, name: str, high: int, default: int | None = None) -> int:
        value = self.number(fields, name, 1, high, default)
        if not value.is_integer():
            raise self.wrong(f"`{name}` is {value!r}, not a whole number")
        return int(value)

    def table(self, fields: _Fields, name: str) -> _Fields:
        value = fields.get(name)
        if not isinstance(value, dict):
            raise self.wrong(f"`{name}` is {value!r:.60}, not an object in braces")
        return value

    def slo(self, fields: _Fields) -> Slo:
        if "slo" not in fields:
            return Slo()
        said = self.table(fields, "slo")
        self.known(said, "ttft_s", "tpot_s")
        ttft, tpot = (
            self.number(said, name, 0.0, 1e6) if name in said else None
            for name in ("ttft_s", "tpot_s")
        )
        return Slo(ttft, tpot)


def read_traffic(path: Path) -> Traffic:
    """The traffic in a file.

    JSON lines: `{"arrival_s": 0.5, "prompt_tokens": 900, "output_tokens": 200}`, optionally with
    `"prefix": {"name": "system", "tokens": 600}`; one line may be `{"slo": {...}}`.
    One JSON object: `{"rate": 8, "prompt": {"mean": 1000, "p95": 2800}, "output": {...}}`,
    optionally with `prefix_share`, `burstiness`, `requests`, `seed` and
    `"slo": {"ttft_s": 1, "tpot_s": 0.05}`.
    Raises: `SourceError` naming the file, the line, the field and what it should be.
    """
    text = _read(path)
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict) and "arrival_s" not in whole:
        return _summary(whole, path)
    return _lines(text, path)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise SourceError("the file is larger than 64 MiB", file=str(path))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise SourceError("is not UTF-8 text", file=str(path)) from error


def _summary(fields: _Fields, path: Path) -> Traffic:
    place = _Place(str(path), 1)
    optional = ("prefix_share", "burstiness", "requests", "seed", "slo")
    place.known(fields, "rate", "prompt", "output", *optional)
    summary = Summary(
        rate=place.number(fields, "rate", 1e-6, 1e6),
        prompt=_lengths(place, fields, "prompt"),
        output=_lengths(place, fields, "output"),
        prefix_share=place.number(fields, "prefix_share", 0.0, 0.95, 0.0),
        burstiness=place.number(fields, "burstiness", 0.01, 100.0, 1.0),
        requests=place.count(fields, "requests", _MOST_REQUESTS, DEFAULT.requests),
        seed=int(place.number(fields, "seed", 0, 2**53, 0)),
        slo=place.slo(fields),
    )
    return summary.traffic(f"statistics of {path.name}: {summary.rate:g} requests/s")


def _lengths(place: _Place, fields: _Fields, name: str) -> Lengths:
    said = place.table(fields, name)
    place.known(said, "mean", "p95")
    mean = place.number(said, "mean", 1, _MOST_TOKENS)
    p95 = place.number(said, "p95", 1, _MOST_TOKENS, mean)
    try:
        return Lengths(mean, p95)
    except SpecError as error:
        raise place.wrong(f"`{name}`: {error.message}", hint=error.hint) from error


def _lines(text: str, path: Path) -> Traffic:
    requests: list[Request] = []
    slo = Slo()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = _Place(str(path), number)
        fields = _object(line, place)
        if "slo" in fields:
            place.known(fields, "slo")
            slo = place.slo(fields)
            continue
        requests.append(_request(fields, place))
        if len(requests) > _MOST_REQUESTS:
            raise place.wrong(f"more than {_MOST_REQUESTS:,} requests")
    if not requests:
        raise SourceError("holds no request", file=str(path), hint="one JSON object per line")
    requests.sort(key=lambda request: request.arrival_s)
    return Traffic(f"{len(requests):,} requests of {path.name}", tuple(requests), slo)


def _object(line: str, place: _Place) -> _Fields:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise place.wrong("is not JSON", hint="one JSON object per line") from error
    if not isinstance(value, dict):
        raise place.wrong(f"is {value!r:.60}, not an object in braces")
    return value


def _request(fields: _Fields, place: _Place) -> Request:
    place.known(fields, "arrival_s", "prompt_tokens", "output_tokens", "prefix")
    prompt = place.count(fields, "prompt_tokens", _MOST_TOKENS)
    prefix, shared = None, 0
    if fields.get("prefix") is not None:
        said = place.table(fields, "prefix")
        place.known(said, "name", "tokens")
        prefix, shared = str(said.get("name", "")), place.count(said, "tokens", prompt)
    return Request(
        arrival_s=place.number(fields, "arrival_s", 0.0, 1e9),
        prompt_tokens=prompt,
        output_tokens=place.count(fields, "output_tokens", _MOST_TOKENS),
        prefix=prefix,
        prefix_tokens=shared,
    )
