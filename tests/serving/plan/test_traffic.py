"""Traffic from statistics and from files; wrong files name the line, the field and the remedy."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.errors import SourceError, SpecError
from weft.serving.plan import default_traffic, read_traffic
from weft.serving.plan.plans import percentile
from weft.serving.plan.traffic import LengthDistribution, Slo, Summary, TrafficRequest

EXAMPLES = Path(__file__).parents[3] / "examples" / "traffic"
GOOD = '{"arrival_s": 0, "prompt_tokens": 10, "output_tokens": 5}'


def written(folder: Path, text: str) -> Path:
    file = folder / "traffic.json"
    file.write_text(text)
    return file


@pytest.mark.parametrize(("mean", "p95"), [(1_000, 2_800), (250, 700), (100, 100), (50, 190)])
def test_lengths_have_the_mean_and_the_percentile(mean: float, p95: float) -> None:
    from random import Random

    source = Random(1)
    lengths = LengthDistribution(mean, p95)
    drawn = [lengths.draw(source) for _ in range(40_000)]
    assert fmean(drawn) == pytest.approx(mean, rel=0.05)
    assert percentile(drawn, 0.95) == pytest.approx(p95, rel=0.05)


@pytest.mark.parametrize(("mean", "p95"), [(0.5, 2), (10, 9), (10, 40)])
def test_lengths_that_no_distribution_has(mean: float, p95: float) -> None:
    with pytest.raises(SpecError):
        LengthDistribution(mean, p95)


@pytest.mark.parametrize("burstiness", [0.3, 1.0, 3.0])
def test_a_summary_is_drawn_at_its_rate_and_alike_every_time(burstiness: float) -> None:
    summary = Summary(
        5.0,
        LengthDistribution(100, 200),
        LengthDistribution(10, 20),
        burstiness=burstiness,
        requests=20_000,
    )
    traffic = summary.traffic("x")
    assert traffic == summary.traffic("x")
    assert traffic.rate == pytest.approx(5.0, rel=0.05)
    gaps = [b.arrival_s - a.arrival_s for a, b in pairwise(traffic.requests)]
    variation = (fmean(g * g for g in gaps) / fmean(gaps) ** 2 - 1) ** 0.5
    assert variation == pytest.approx(burstiness**-0.5, rel=0.1)


def test_prompts_begin_with_the_shared_prefix() -> None:
    summary = Summary(
        1.0, LengthDistribution(100, 300), LengthDistribution(10, 20), prefix_share=0.5
    )
    for request in summary.traffic("x").requests:
        assert (request.prefix, request.prefix_tokens) == ("shared", 50)
        assert request.prompt_tokens > 50


def test_the_default_says_what_it_is() -> None:
    traffic = default_traffic()
    assert "8 requests/s" in traffic.title
    assert traffic.slo == Slo(1.0, 0.05)


def test_lines_are_sorted_and_may_promise(tmp_path: Path) -> None:
    late = '{"arrival_s": 3, "prompt_tokens": 8, "output_tokens": 1,'
    late += ' "prefix": {"name": "system", "tokens": 4}}'
    traffic = read_traffic(written(tmp_path, f'{late}\n\n{{"slo": {{"ttft_s": 2}}}}\n{GOOD}\n'))
    assert traffic.requests == (TrafficRequest(0.0, 10, 5), TrafficRequest(3.0, 8, 1, "system", 4))
    assert traffic.slo == Slo(2.0, None)
    assert traffic.longest_tokens == 15


def test_one_request_is_a_file_too(tmp_path: Path) -> None:
    traffic = read_traffic(written(tmp_path, GOOD))
    assert (len(traffic.requests), traffic.rate) == (1, 0.0)


def test_statistics(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "rate": 2,
            "prompt": {"mean": 100},
            "output": {"mean": 10, "p95": 20},
            "requests": 30,
            "slo": {"tpot_s": 0.1},
        },
        indent=2,
    )
    traffic = read_traffic(written(tmp_path, text))
    assert len(traffic.requests) == 30
    assert {r.prompt_tokens for r in traffic.requests} == {100}
    assert traffic.slo == Slo(None, 0.1)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "no request"),
        (f"{GOOD}\nnot json", 2, "not JSON"),
        (f"{GOOD}\n[1, 2]", 2, "not an object"),
        (f'{GOOD}\n\n{{"arrival_s": 1}}', 3, "`prompt_tokens` is missing"),
        (f"{GOOD}\n" + GOOD.replace("10", "0"), 2, "`prompt_tokens`"),
        (f"{GOOD}\n" + GOOD.replace("10", "1.5"), 2, "whole number"),
        (f"{GOOD}\n" + GOOD.replace("10", "true"), 2, "not a number"),
        (f"{GOOD}\n" + GOOD.replace("0,", "NaN,", 1), 2, "`arrival_s`"),
        (f"{GOOD}\n" + GOOD.replace("0,", "-1,", 1), 2, "`arrival_s`"),
        (f"{GOOD}\n" + GOOD.replace("5}", '5, "color": 1}'), 2, "unknown field `color`"),
        (GOOD.replace("5}", '5, "prefix": {"name": "a", "tokens": 11}}'), 1, "`tokens`"),
        (GOOD.replace("5}", '5, "prefix": "a"}'), 1, "`prefix`"),
        ('{"rate": 0, "prompt": {}, "output": {}}', 1, "`rate`"),
        ('{"rate": 1, "prompt": {"mean": 9, "p95": 90}, "output": {"mean": 1}}', 1, "too far"),
        ('{"rate": 1, "prompt": {"mean": 9}}', 1, "`output`"),
        ('{"rate": 1, "promt": {}}', 1, "unknown field `promt`"),
        ('{"rate": 1, "prompt": {"mean": 9}, "output": {"mean": 9}, "slo": 1}', 1, "`slo`"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_traffic(written(tmp_path, text))
    assert said in caught.value.message
    assert caught.value.line == line


@examples(200)
@given(st.binary(max_size=200))
def test_no_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    file = tmp_path_factory.mktemp("junk") / "traffic.json"
    file.write_bytes(junk)
    with pytest.raises(SourceError):
        read_traffic(file)


@pytest.mark.parametrize("file", sorted(EXAMPLES.iterdir()), ids=lambda file: file.name)
def test_the_examples_are_read(file: Path) -> None:
    traffic = read_traffic(file)
    assert traffic.slo.ttft_s is not None
    assert any(request.prefix for request in traffic.requests)
