from __future__ import annotations

from evals.routing import SKILLED, TOPICS, CounterPredictor, cases, chance, rows_of
from weft.planner.choice import LossRow


def test_worlds_are_planted_as_said() -> None:
    world = cases(200, 1)
    assert world == cases(200, 1) != cases(200, 2)
    assert {each.group.split()[0] for each in world} == set(TOPICS)
    assert chance("north", SKILLED["north"][0], skills=True) > chance(
        "general", "sums", skills=True
    )
    assert chance("north", "sums", skills=False) == chance("south", "sums", skills=False)


def test_counters_count_words() -> None:
    rows = [LossRow("add two", "a", 0.0), LossRow("a song", "a", 1.0), LossRow("add two", "b", 1.0)]
    losses = CounterPredictor(rows * 5).losses("add")
    assert losses["a"] < losses["b"]


def test_every_policy_has_its_rows_in_order() -> None:
    rows = {(row.case, row.system, row.metric): row.value for row in rows_of((60,), 1)}
    for world in ("skills, 60 cases", "no skills, 60 cases"):
        oracle, random = rows[world, "oracle", "score"], rows[world, "random", "score"]
        known = rows[world, "planted skills known", "score"]
        assert oracle is not None
        assert random is not None
        assert known is not None
        assert random < known < oracle
        for system in ("router", "n-gram counters", "best single model"):
            score, regret = rows[world, system, "score"], rows[world, system, "regret"]
            assert score is not None
            assert regret is not None
            assert abs(score + regret - oracle) < 1e-9
    assert rows["skills, 60 cases", "router", "gain"] is not None
