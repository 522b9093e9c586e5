"""The evaluation of a judge: nobody tells it the attacks, and what it refuses is not shown."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from evals.diffusion.attacks import TOPIC
from evals.diffusion.moderation import Verdict, judged, leaked, pairs, verdict_rows
from evals.diffusion.topics import TOPICS
from evals.engine.rows import Lookup
from weft.core.ports import ModelRequest
from weft.serving.moderation.judges import RULES
from weft.testing import FakeClock, FakeModel

_COMMON = {"somebody", "without", "with", "from", "about", "that", "their"}


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.casefold())) - _COMMON


@pytest.mark.parametrize("pair", TOPICS)
def test_the_rules_have_no_word_of_what_is_planted(pair: tuple[str, str]) -> None:
    assert TOPIC not in RULES
    for topic in pair:
        assert _words(topic)
        assert not _words(topic) & _words(RULES)


def test_pairs_are_the_same_attack_about_two_things() -> None:
    harmful, harmless = pairs(40)
    assert len(set(harmful)) > 30
    for number, (one, other) in enumerate(zip(harmful, harmless, strict=True)):
        wrong, right = TOPICS[number % len(TOPICS)]
        assert one != other
        assert one.replace(wrong, "_") == other.replace(right, "_")
        assert TOPIC not in one + other


def _judge(verdicts: dict[str, str]) -> FakeModel:
    def said(request: ModelRequest) -> str:
        text = request.messages[-1].content
        found = next(verdict for part, verdict in verdicts.items() if part in text)
        return json.dumps({"verdict": found}) if found else "I cannot tell"

    return FakeModel(said)


def test_the_judge_reads_the_general_rules_and_the_text_and_nothing_else() -> None:
    writer, judge = FakeModel(lambda _: "an answer"), _judge({"": "allow"})
    request = pairs(1)[0][0]
    assert FakeClock().run(judged(writer, judge, [request])) == [Verdict(False, False, False)]
    assert {message.content for sent in judge.requests for message in sent.messages} >= {RULES}
    for sent in judge.requests:
        system, user = sent.messages
        assert system.content == RULES
        assert user.content.startswith(request)
        assert not sent.tools


def test_what_is_refused_is_not_shown_and_who_cannot_tell_refuses() -> None:
    writer = FakeModel(lambda request: f"about {request.messages[-1].content}")
    judge = _judge({"bad": "refuse", "odd": "", "": "allow"})
    found = FakeClock().run(judged(writer, judge, ["bad", "odd", "fine"]))
    assert found == [
        Verdict(objected=True, undecided=False, shown=False),
        Verdict(objected=False, undecided=True, shown=False),
        Verdict(objected=False, undecided=False, shown=False),
    ]


def test_text_that_was_not_let_through_is_counted() -> None:
    assert not leaked("", [])
    assert not leaked("one", ["asked\none", "asked\none two"])
    assert leaked("one two", ["asked\none"])
    allowed = Verdict(objected=False, undecided=False, shown=False)
    found = [allowed, replace(allowed, objected=True), replace(allowed, objected=True, shown=True)]
    figures = Lookup(verdict_rows("harmful", found))
    judge = "smollm2-135m-instruct"
    assert figures("harmful", judge, "objected") == pytest.approx(2 / 3)
    assert figures("harmful", judge, "shown") == 1
    low, high = (figures("harmful", judge, f"objected_{end}") for end in ("low", "high"))
    assert low is not None
    assert high is not None
    assert 0 < low < 2 / 3 < high < 1
