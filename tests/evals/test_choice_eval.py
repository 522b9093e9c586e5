from __future__ import annotations

import pytest

from evals.planning.choice.evaluation import compare
from evals.planning.choice.expert import NgramExpert
from evals.planning.choice.items import Item
from evals.planning.choice.measuring import measure, profiles_of, rows_of

SUMS = [Item("sums", f"add {n} and {n + 1} now", f"the sum is {2 * n + 1}") for n in range(60)]
SONGS = [Item("songs", f"a song for verse {n}", f"la la {n} la") for n in range(60)]


def experts() -> dict[str, NgramExpert]:
    return {
        "sums": NgramExpert(f"{item.prompt}\n{item.answer}" for item in SUMS[40:]),
        "songs": NgramExpert(f"{item.prompt}\n{item.answer}" for item in SONGS[40:]),
    }


def test_an_expert_spreads_its_belief_over_all_bytes() -> None:
    expert = NgramExpert(["abracadabra", "abc"])
    for prompt in ("", "abra", "xyz"):
        total = sum(2 ** -expert.bits_per_byte(prompt, chr(byte)) for byte in range(128))
        rest = sum(2 ** (-2 * expert.bits_per_byte(prompt, chr(byte))) for byte in range(128, 256))
        assert 0.4 < total <= 1.0 + 1e-9
        assert rest < 0.1


def test_an_expert_knows_its_domain_and_copies_from_the_prompt() -> None:
    found = experts()
    assert found["sums"].bits_per_byte("add 3 and 4 now", "the sum is 7") < found[
        "songs"
    ].bits_per_byte("add 3 and 4 now", "the sum is 7")
    expert = NgramExpert(["nothing of the kind"])
    name = "Zyxomma"
    assert expert.bits_per_byte(f"Call {name}.", name) < expert.bits_per_byte("Call it.", name)


def test_policies_are_compared_on_what_they_have_not_seen() -> None:
    scorers = dict(experts())
    seen, unseen = (
        measure(scorers, SUMS[:20] + SONGS[:20]),
        measure(scorers, SUMS[20:40] + SONGS[20:40]),
    )
    assert len(rows_of(seen)) == 80
    assert profiles_of(scorers, seen)["sums"].size > 0
    rows = {(row.case, row.system, row.metric): row.value for row in compare(scorers, seen, unseen)}
    assert rows["choice", "trained", "best_model_hits"] == pytest.approx(1.0)
    assert rows["choice", "random", "best_model_hits"] == 0.5
    assert rows["choice", "static", "best_model_hits"] == pytest.approx(0.5)
    perfect, trained, static = (
        rows["choice", system, "loss"] for system in ("perfect", "trained", "static")
    )
    assert perfect is not None
    assert trained is not None
    assert static is not None
    assert perfect <= trained < static
    assert rows["choice", "always sums", "loss"] is not None
    assert any(case.startswith("pareto") for case, _, _ in rows)
