"""The requests that a deployment has to answer, and its latency targets; drawn or read from a file.

A file contains JSON lines of requests, or one JSON object of statistics.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt
from pathlib import Path

from weft.core.errors import SourceError, SpecError


@dataclass(frozen=True, slots=True)
class TrafficRequest:
    """One request. The first `prefix_tokens` of its prompt are shared by all with its `prefix`."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix: str | None = None
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Slo:
    """Targets for 95 % of requests: time to first token, and mean time per further token."""

    ttft_s: float | None = None
    tpot_s: float | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests in order of arrival. `title` describes them in one line."""

    title: str
    requests: tuple[TrafficRequest, ...]
    slo: Slo = Slo()

    @property
    def rate(self) -> float:
        """Requests per second; 0 where all arrive at once."""
        span = self.requests[-1].arrival_s - self.requests[0].arrival_s
        return (len(self.requests) - 1) / span if span else 0.0

    @property
    def tokens_s(self) -> float:
        """Output tokens per second needed to keep up with the arrivals."""
        outputs = sum(request.output_tokens for request in self.requests)
        return self.rate * outputs / len(self.requests)

    @property
    def longest_tokens(self) -> int:
        """The most tokens of one request in the KV cache."""
        return max(r.prompt_tokens + r.output_tokens for r in self.requests)

    def first(self, most: int) -> Traffic:
        """The first requests of the traffic."""
        return Traffic(self.title, self.requests[:most], self.slo)


@dataclass(frozen=True, slots=True)
class LengthDistribution:
    """A log-normal distribution of token counts by its mean and 95th percentile.

    Raises: `SpecError` where no log-normal distribution has these two.
    """

    mean: float
    p95: float

    def __post_init__(self) -> None:
        if not 1 <= self.mean <= self.p95:
            raise SpecError(
                f"a mean of {self.mean:g} tokens with a 95th percentile of {self.p95:g}",
                hint="the mean is at least 1, and the percentile at least the mean",
            )
        if log(self.p95 / self.mean) > _Z95**2 / 2:
            raise SpecError(
                f"a 95th percentile of {self.p95:g} is too far from a mean of {self.mean:g}",
                hint=f"a log-normal distribution has at most {exp(_Z95**2 / 2):.2f} times the mean",
            )

    @property
    def sigma(self) -> float:
        """The standard deviation of the logarithm: p95 / mean = exp(1.645 sigma - sigma^2 / 2)."""
        return _Z95 - sqrt(max(0.0, _Z95**2 - 2 * log(self.p95 / self.mean)))

    def draw(self, source: random.Random) -> int:
        """One length, at least 1."""
        mu = log(self.mean) - self.sigma**2 / 2
        return max(1, round(source.lognormvariate(mu, self.sigma)))


_Z95 = 1.6448536269514722  # the 95th percentile of the standard normal distribution


@dataclass(frozen=True, slots=True)
class Summary:
    """Traffic by its statistics.

    rate            requests per second
    burstiness      shape of the gamma-distributed gaps: 1 is a Poisson process, less is burstier
    prefix_share    the part of the mean prompt that all requests share
    """

    rate: float
    prompt: LengthDistribution
    output: LengthDistribution
    prefix_share: float = 0.0
    burstiness: float = 1.0
    requests: int = 400
    seed: int = 0
    slo: Slo = Slo()

    def traffic(self, title: str) -> Traffic:
        """Requests drawn from the statistics, the same for the same seed."""
        source = random.Random(self.seed)  # noqa: S311 - repeatable, no secret
        shared = round(self.prompt.mean * self.prefix_share)
        now, drawn = 0.0, []
        for _ in range(self.requests):
            now += source.gammavariate(self.burstiness, 1 / (self.rate * self.burstiness))
            prompt = max(self.prompt.draw(source), shared + 1)
            prefix = "shared" if shared else None
            drawn.append(TrafficRequest(now, prompt, self.output.draw(source), prefix, shared))
        return Traffic(title, tuple(drawn), self.slo)


DEFAULT = Summary(
    rate=8.0,
    prompt=LengthDistribution(1_000, 2_800),
    output=LengthDistribution(250, 700),
    slo=Slo(ttft_s=1.0, tpot_s=0.05),
)


def default_traffic() -> Traffic:
    """The traffic that is planned for by default."""
    title = (
        "default traffic: 8 requests/s, prompts of 1,000 tokens (p95 2,800),"
        " answers of 250 (p95 700), p95 within 1 s to the first token and 50 ms per token"
    )
    return DEFAULT.traffic(title)


_MAX_FILE_BYTES = 64 << 20
_MAX_REQUESTS = 200_000
_MAX_TOKENS = 10_000_000
_Fields = Mapping[str, object]


class _FileLine:
    """A line of a file, for messages."""

    def __init__(self, file: str, line: int) -> None:
        self.file, self.line = file, line

    def wrong(self, message: str, hint: str | None = None) -> SourceError:
        return SourceError(message, file=self.file, line=self.line, hint=hint)

    def check_names(self, fields: _Fields, *names: str) -> None:
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
        targets = self.table(fields, "slo")
        self.check_names(targets, "ttft_s", "tpot_s")
        ttft, tpot = (
            self.number(targets, name, 0.0, 1e6) if name in targets else None
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
    Raises: `SourceError` naming the file, the line, the field and its valid values.
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
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise SourceError("the file is larger than 64 MiB", file=str(path))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise SourceError("is not UTF-8 text", file=str(path)) from error


def _summary(fields: _Fields, path: Path) -> Traffic:
    place = _FileLine(str(path), 1)
    optional = ("prefix_share", "burstiness", "requests", "seed", "slo")
    place.check_names(fields, "rate", "prompt", "output", *optional)
    summary = Summary(
        rate=place.number(fields, "rate", 1e-6, 1e6),
        prompt=_lengths(place, fields, "prompt"),
        output=_lengths(place, fields, "output"),
        prefix_share=place.number(fields, "prefix_share", 0.0, 0.95, 0.0),
        burstiness=place.number(fields, "burstiness", 0.01, 100.0, 1.0),
        requests=place.count(fields, "requests", _MAX_REQUESTS, DEFAULT.requests),
        seed=int(place.number(fields, "seed", 0, 2**53, 0)),
        slo=place.slo(fields),
    )
    return summary.traffic(f"statistics of {path.name}: {summary.rate:g} requests/s")


def _lengths(place: _FileLine, fields: _Fields, name: str) -> LengthDistribution:
    lengths = place.table(fields, name)
    place.check_names(lengths, "mean", "p95")
    mean = place.number(lengths, "mean", 1, _MAX_TOKENS)
    p95 = place.number(lengths, "p95", 1, _MAX_TOKENS, mean)
    try:
        return LengthDistribution(mean, p95)
    except SpecError as error:
        raise place.wrong(f"`{name}`: {error.message}", hint=error.hint) from error


def _lines(text: str, path: Path) -> Traffic:
    requests: list[TrafficRequest] = []
    slo = Slo()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = _FileLine(str(path), number)
        fields = _object(line, place)
        if "slo" in fields:
            place.check_names(fields, "slo")
            slo = place.slo(fields)
            continue
        requests.append(_request(fields, place))
        if len(requests) > _MAX_REQUESTS:
            raise place.wrong(f"more than {_MAX_REQUESTS:,} requests")
    if not requests:
        raise SourceError("holds no request", file=str(path), hint="one JSON object per line")
    requests.sort(key=lambda request: request.arrival_s)
    return Traffic(f"{len(requests):,} requests of {path.name}", tuple(requests), slo)


def _object(line: str, place: _FileLine) -> _Fields:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise place.wrong("is not JSON", hint="one JSON object per line") from error
    if not isinstance(value, dict):
        raise place.wrong(f"is {value!r:.60}, not an object in braces")
    return value


def _request(fields: _Fields, place: _FileLine) -> TrafficRequest:
    place.check_names(fields, "arrival_s", "prompt_tokens", "output_tokens", "prefix")
    prompt = place.count(fields, "prompt_tokens", _MAX_TOKENS)
    prefix, shared = None, 0
    if fields.get("prefix") is not None:
        value = place.table(fields, "prefix")
        place.check_names(value, "name", "tokens")
        prefix, shared = str(value.get("name", "")), place.count(value, "tokens", prompt)
    return TrafficRequest(
        arrival_s=place.number(fields, "arrival_s", 0.0, 1e9),
        prompt_tokens=prompt,
        output_tokens=place.count(fields, "output_tokens", _MAX_TOKENS),
        prefix=prefix,
        prefix_tokens=shared,
    )
