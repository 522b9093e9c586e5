"""Playbooks that grow from runs: lessons, tags, operations, and what hostile answers become."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.optimisation.propose.colours import FLOW, context, state_of, study
from tests.optimisation.table_context import TableContext
from weft.core.ports import ModelRequest
from weft.optimisation.candidates import Candidate, CaseOutcome, SearchState
from weft.optimisation.optimise import replay_study
from weft.optimisation.options import patch_of
from weft.optimisation.propose.curator import PlaybookCurator
from weft.optimisation.propose.playbook import PlaybookBullet, bullet_id

LESSON = "Answer in one word."


def reflection(lessons: Sequence[object] = (LESSON,), tags: Sequence[object] = ()) -> Any:
    return {"reasoning": "too long", "lessons": list(lessons), "tags": list(tags)}


def operations(*items: object) -> dict[str, Any]:
    return {"reasoning": "it is new", "operations": list(items)}


def add(text: str) -> dict[str, str]:
    return {"kind": "ADD", "id": "", "text": text}


def author(lesson: str) -> Callable[[ModelRequest], Any]:
    """Finds this lesson in every batch, and has it added."""

    def answer(request: ModelRequest) -> Any:
        assert request.schema is not None
        if "lessons" in request.schema["properties"]:
            return reflection([lesson])
        assert lesson in request.messages[-1].content
        return operations(add(lesson))

    return answer


def test_a_lesson_that_helps_is_found_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    found = study(["playbook"], tmp_path, author(LESSON))
    assert found.verdict.kind == "improved", found.verdict.why
    (edit,) = found.best.edits
    assert (edit.knob, edit.why) == ("answer.prompt", LESSON)
    assert edit.edits[0]["prompt"] == f"Colour of {{{{ thing }}}}?\n\nLessons:\n- {LESSON}"
    journal = tmp_path / "journal.db"
    again = asyncio.run(replay_study(found.run, weft.loads(FLOW), journal=journal))
    assert (again.best, again.proposers) == (found.best, found.proposers)
    (tmp_path / "no").mkdir()
    nothing = study(["playbook"], tmp_path / "no", author("Be kind."))
    assert nothing.verdict.kind in ("no_headroom", "not_shown")
    assert nothing.best.edits == ()


class Scripted:
    """A curator over a scripted context: each round its state, with the last child as the best."""

    def __init__(self, answers: Sequence[Any], **options: Any) -> None:
        self.answers = list(answers)
        self.own: TableContext = context(answer=lambda _prompt, _attempt: self.answers.pop(0))
        self.state = state_of(self.own)
        self.curator = PlaybookCurator(self.own, self.state.knobs, **options)

    def propose(self) -> Candidate | None:
        before = self.own.calls
        proposal = asyncio.run(self.curator.propose(self.state))
        assert proposal.calls == self.own.calls - before <= self.curator.calls
        return next(iter(proposal.candidates), None)

    def accept(self, child: Candidate) -> None:
        """The child was measured, and is the best now."""
        outcome = [CaseOutcome(0.5)]
        blocks = [*self.state.blocks, {self.state.baseline: outcome, child: outcome}]
        self.state = SearchState(self.state.baseline, self.state.knobs, blocks, child)

    def bullets(self) -> tuple[PlaybookBullet, ...]:
        return self.curator.playbook("answer", self.state.best).bullets


def test_counters_change_by_the_tags_of_the_reflector_only() -> None:
    first, second = bullet_id(LESSON), bullet_id("Be brief.")
    greedy = {**add("Be brief."), "helpful": 9}
    script = Scripted([reflection(), operations(add(LESSON), greedy)], threshold=2.0)
    child = script.propose()
    assert child is not None
    script.accept(child)
    assert {bullet.id: bullet.helpful for bullet in script.bullets()} == {first: 0, second: 0}
    tags = [
        {"id": first, "tag": "helpful"},
        {"id": first, "tag": "harmful"},
        {"id": second, "tag": "harmful"},
        {"id": "unknown", "tag": "helpful"},
        {"id": [], "tag": "helpful"},
    ]
    remove = {"kind": "REMOVE", "id": second, "text": ""}
    script.answers = [reflection([], tags), operations(remove)]
    shorter = script.propose()
    counters = {each.id: (each.helpful, each.harmful) for each in script.bullets()}
    assert counters == {first: (1, 0), second: (0, 1)}
    assert shorter is not None
    script.accept(shorter)
    assert script.bullets() == (PlaybookBullet(first, LESSON, 1, 0),)
    assert '"helpful": 0, "harmful": 1' in script.own.asked[3]


def test_without_lessons_the_curator_is_not_asked() -> None:
    script = Scripted([reflection([])])
    assert script.propose() is None
    assert len(script.own.asked) == 1
    good = Scripted([], threshold=0.0)
    assert good.propose() is None
    assert good.own.asked == []


def test_a_playbook_that_did_not_help_is_left_with_its_candidate() -> None:
    script = Scripted([reflection(["Be kind."]), operations(add("Be kind."))])
    assert script.propose() is not None
    script.accept(script.state.baseline)
    script.answers = [reflection(), operations(add(LESSON))]
    child = script.propose()
    assert child is not None
    assert "Be kind." not in patch_of(child).plain()[0]["prompt"]


def test_the_playbook_keeps_its_size_and_an_emptied_one_is_the_old_prompt() -> None:
    script = Scripted([reflection(), operations(*(add(f"Lesson {n}.") for n in range(9)))], limit=4)
    child = script.propose()
    assert child is not None
    script.accept(child)
    assert len(script.bullets()) == 4
    gone = [{"kind": "REMOVE", "id": each.id, "text": ""} for each in script.bullets()]
    script.answers = [reflection(), operations(*gone)]
    assert script.propose() is None, "the workflow as it was is no new candidate"
    assert script.curator.refused == 1


@pytest.mark.parametrize(
    "item",
    [
        7,
        None,
        {"kind": "REWRITE", "id": "", "text": "all"},
        add(""),
        add("{{ weft.secrets }}"),
        add("{% raw %}"),
        add("one\ntwo"),
        add("x" * 401),
        {"kind": "ADD", "id": "", "text": ["x"]},
    ],
)
def test_what_is_no_operation_is_dropped(item: object) -> None:
    script = Scripted([reflection(), operations(item)])
    assert script.propose() is None
    assert script.curator.refused == 1


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON",
        7,
        None,
        {},
        {"lessons": "all", "tags": 7},
        reflection([7, None, "", [LESSON]], [7, None]),
    ],
)
def test_what_is_no_reflection_teaches_nothing(answer: Any) -> None:
    script = Scripted([answer])
    assert script.propose() is None
    assert len(script.own.asked) == 1


def test_operations_on_bullets_that_are_not_there_change_nothing() -> None:
    unknown = {"kind": "UPDATE", "id": "0" * 12, "text": "other"}
    script = Scripted([reflection(), operations(unknown)])
    assert script.propose() is None
    assert script.curator.playbook("answer", script.state.best).bullets == ()
