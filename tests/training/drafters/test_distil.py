from __future__ import annotations

from pathlib import Path

import pytest

from tests.serving.local.playback import EXACT
from weft.core.errors import InputError
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative.drafter import PerSequenceMethod
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.loop import DecodeLimits, decode_alone
from weft.training.distillation import DistillationOptions, distil

PROMPTS = [[5, 6, 7], [9], [5, 6, 8, 11, 40], [100, 2, 3], [60, 61]]


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_texts_are_what_the_target_writes_alone(
    network: Network, tmp_path: Path, temperature: float
) -> None:
    writing = DistillationOptions(max_tokens=12, temperature=temperature, seed=4, rows=2)
    corpus = distil(network, PROMPTS, tmp_path / "c", writing)
    assert corpus is not None
    plain = PerSequenceMethod("plain", LookupDrafter, 0)
    for number, (prompt, text) in enumerate(zip(PROMPTS, corpus.texts, strict=True)):
        chance = CounterRng(4 * len(PROMPTS) + number)
        limits = DecodeLimits(12, network.generation.end_ids)
        alone = decode_alone(network, prompt, plain, SamplingParams(temperature), chance, limits)
        written = [token for tokens in alone for token in tokens]
        assert text.tokens == (*prompt, *written)
        assert text.answer == len(prompt)


def test_what_is_there_is_not_written_again(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writing = tmp_path / "c", DistillationOptions(max_tokens=6, rows=1)
    told: list[tuple[int, int]] = []
    stopped = distil(
        network, PROMPTS, path, writing, lambda *n: told.append(n), lambda: len(told) == 3
    )
    assert stopped is None
    assert told == [(0, 5), (1, 5), (2, 5)]
    again: list[tuple[int, int]] = []
    whole = distil(network, PROMPTS, path, writing, lambda *n: again.append(n))
    assert again == [(2, 5), (3, 5), (4, 5), (5, 5)]
    assert whole is not None
    fresh = distil(network, PROMPTS, tmp_path / "d", writing)
    assert fresh is not None
    assert whole.texts == fresh.texts
    monkeypatch.setattr(network, "forward", None)  # all is there: nothing is read
    third = distil(network, PROMPTS, path, writing)
    assert third is not None
    assert third.texts == whole.texts


def test_an_exception_leaves_what_is_done(network: Network, tmp_path: Path) -> None:
    path, writing = tmp_path / "c", DistillationOptions(max_tokens=6, rows=1)

    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distil(network, PROMPTS, path, writing, interrupt)
    told: list[tuple[int, int]] = []
    distil(network, PROMPTS, path, writing, lambda *n: told.append(n))
    assert told[0] == (3, 5)


def test_other_prompts_need_another_file(network: Network, tmp_path: Path) -> None:
    path, writing = tmp_path / "c", DistillationOptions(max_tokens=3)
    distil(network, PROMPTS, path, writing)
    for prompts, other in [(PROMPTS[1:], writing), (PROMPTS, DistillationOptions(max_tokens=4))]:
        with pytest.raises(InputError, match="other prompts, by another model or in another way"):
            distil(network, prompts, path, other)
    assert distil(network, PROMPTS, path, DistillationOptions(max_tokens=3, rows=1)) is not None


def test_prompts_that_are_too_long_or_empty_are_left_out(network: Network, tmp_path: Path) -> None:
    writing = DistillationOptions(max_tokens=3, longest_prompt=4)
    corpus = distil(network, [*PROMPTS, []], tmp_path / "c", writing)
    assert corpus is not None
    assert len(corpus.texts) == 4
    with pytest.raises(InputError, match="no texts"):
        distil(network, [[1] * 9], tmp_path / "d", writing)


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"max_tokens": 0}, {"temperature": -1.0}])
def test_writing_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"nothing can be written|no sampling"):
        DistillationOptions(**wrong)  # type: ignore[arg-type]
