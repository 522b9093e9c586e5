"""`preset` as people ask for it, on the tiny model."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from tests.decoding.speculative.decoder_fixtures import untrained
from tests.serving.local.playback import EXACT
from weft.core.errors import SpecError
from weft.decoding.network.network import Network
from weft.decoding.sampling import CounterRng, SamplingParams
from weft.decoding.speculative import pass_costs
from weft.decoding.speculative.drafter import PerSequenceMethod, SpeculativeMethod
from weft.decoding.speculative.drafters.auto import preset
from weft.decoding.speculative.drafters.auto.history import AcceptanceHistory
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter
from weft.decoding.speculative.loop import DecodeLimits, decode_alone
from weft.decoding.speculative.presets import made

PROMPT = (5, 60, 61, 62, 7, 60, 61, 62, 7, 60, 61)
STILL: dict[str, str | int | float | bool] = {"measured": False, "remember": False}


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


def written(network: Network, method: SpeculativeMethod, shaping: SamplingParams) -> list[int]:
    decoding = decode_alone(network, PROMPT, method, shaping, CounterRng(3), DecodeLimits(60))
    text = [token for step in decoding for token in step]
    assert decoding.speculation.fallback is None
    return text


@pytest.mark.parametrize("shaping", [SamplingParams(0.0), SamplingParams(0.8, top_p=0.9)])
@pytest.mark.parametrize("among", ["lookup+suffix", "suffix+self_draft", "sequoia+hybrid"])
def test_the_text_is_the_plain_one(
    network: Network,
    shaping: SamplingParams,
    among: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    monkeypatch.setattr(pass_costs, "_WITHIN_S", 0.05)
    plain = PerSequenceMethod("plain", LookupDrafter, 0)
    method = made("auto", network, {**STILL, "among": among})
    assert written(network, method, shaping) == written(network, plain, shaping)
    method.close()


@pytest.mark.parametrize("kind", ["eagle", "medusa"])
def test_trained_heads_are_arms_too(
    network: Network, kind: str, tiny_path: Path, tmp_path: Path
) -> None:
    folder = untrained(kind, network, tiny_path, tmp_path / kind)
    options = {**STILL, "among": f"lookup+{kind}", "model": str(folder)}
    plain = PerSequenceMethod("plain", LookupDrafter, 0)
    for shaping in (SamplingParams(0.0), SamplingParams(0.8, top_p=0.9)):
        method = made("auto", network, options)
        assert written(network, method, shaping) == written(network, plain, shaping)


def test_what_was_learnt_is_there_the_next_time(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    monkeypatch.setattr(pass_costs, "_measured_costs", {})
    monkeypatch.setattr(pass_costs, "_WITHIN_S", 0.05)
    method = made("auto", network, {})
    written(network, method, SamplingParams(0.0))
    method.close()
    (kept,) = (tmp_path / "speculative").glob("choices-*.json")
    history = AcceptanceHistory()
    assert history.restore(json.loads(kept.read_text("utf-8")))
    kept.write_text('{"format": 1', "utf-8")
    again = made("auto", network, {})
    assert len(written(network, again, SamplingParams(0.0))) == 60


@pytest.mark.parametrize("among", ["lookup+pearl", "nonsense", "ppd"])
def test_what_it_cannot_choose_is_refused(network: Network, among: str) -> None:
    with pytest.raises(SpecError, match="auto cannot choose") as refused:
        made("auto", network, {**STILL, "among": among})
    assert "lookup" in str(refused.value.hint)


def test_what_it_comes_with_is_a_history() -> None:
    file = files("weft.decoding.speculative.drafters.auto").joinpath("measured.json")
    assert AcceptanceHistory().restore(json.loads(file.read_text("utf-8")))
    assert len(preset.shipped()) >= 0
