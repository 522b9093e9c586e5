"""A thought in a few lines: the key of each vote is among them."""

from __future__ import annotations

from weft.cli.threads.report import summary
from weft.reasoning.thought import Sample, Thought


def lines(*keys: str | None) -> list[str]:
    samples = tuple(Sample(at, "text", key, 1, "finished") for at, key in enumerate(keys))
    return list(summary("sample", Thought("a", samples=samples)))[1:]


def test_every_answer_is_shown_with_its_votes_the_most_frequent_first() -> None:
    assert lines("yes", None, "no", "no") == [
        "answer 'no': 2 samples (2, 3)",
        "answer 'yes': 1 sample (0)",
        "no answer that can be compared: 1 sample (1)",
    ]


def test_one_sample_is_no_vote_and_many_are_not_all_listed() -> None:
    assert lines("yes") == []
    assert lines(*["yes"] * 20) == ["answer 'yes': 20 samples (0, 1, 2, 3, 4, 5, 6, 7, …)"]
    many = lines(*map(str, range(20)))
    assert len(many) == 9
    assert many[-1] == "and 12 more answers"
    assert "\n" not in lines("a\n\x1b[31mb", "c")[0]
