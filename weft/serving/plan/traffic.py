"""The requests a deployment has to answer, and what they may take. Knows no file and no device."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import exp, log, sqrt

from weft.core.errors import SpecError


@dataclass(frozen=True, slots=True)
class Request:
    """One request. The first `prefix_tokens` of its prompt are those of all with that `prefix`."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix: str | None = None
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Slo:
    """What 95 of 100 requests must keep: time to first token, and mean time per further token."""

    ttft_s: float | None = None
    tpot_s: float | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests in order of arrival. `title` says in a line where they come from."""

    title: str
    requests: tuple[Request, ...]
    slo: Slo = Slo()

    @property
    def rate(self) -> float:
        """Requests per second; 0 where all arrive at once."""
        span = self.requests[-1].arrival_s - self.requests[0].arrival_s
        return (len(self.requests) - 1) / span if span else 0.0

    @property
    def tokens_s(self) -> float:
        """Output tokens per second that keep up with the arrivals."""
        outputs = sum(request.output_tokens for request in self.requests)
        return self.rate * outputs / len(self.requests)

    @property
    def longest_tokens(self) -> int:
        """The most tokens that one request ever holds in the KV cache."""
        return max(r.prompt_tokens + r.output_tokens for r in self.requests)

    def first(self, most: int) -> Traffic:
        """The same traffic, only its first requests."""
        return Traffic(self.title, self.requests[:most], self.slo)


@dataclass(frozen=True, slots=True)
class Lengths:
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
    prefix_share    the part of the mean prompt that all requests begin with
    """

    rate: float
    prompt: Lengths
    output: Lengths
    prefix_share: float = 0.0
    burstiness: float = 1.0
    requests: int = 400
    seed: int = 0
    slo: Slo = Slo()

    def traffic(self, title: str) -> Traffic:
        """Requests drawn from the statistics; the same ones for the same seed."""
        source = random.Random(self.seed)  # noqa: S311 - repeatable, no secret
        shared = round(self.prompt.mean * self.prefix_share)
        now, drawn = 0.0, []
        for _ in range(self.requests):
            now += source.gammavariate(self.burstiness, 1 / (self.rate * self.burstiness))
            prompt = max(self.prompt.draw(source), shared + 1)
            prefix = "shared" if shared else None
            drawn.append(Request(now, prompt, self.output.draw(source), prefix, shared))
        return Traffic(title, tuple(drawn), self.slo)


DEFAULT = Summary(
    rate=8.0,
    prompt=Lengths(1_000, 2_800),
    output=Lengths(250, 700),
    slo=Slo(ttft_s=1.0, tpot_s=0.05),
)


def default_traffic() -> Traffic:
    """What is planned for when nothing is said about the traffic."""
    title = (
        "default traffic: 8 requests/s, prompts of 1,000 tokens (p95 2,800),"
        " answers of 250 (p95 700), p95 within 1 s to the first token and 50 ms per token"
    )
    return DEFAULT.traffic(title)
