"""Each typed edit: what it changes, that its workflow runs, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import weft
from tests.optimisation.edits.flows import TEXT, echo
from weft.optimisation.edits import (
    EDITS,
    Choose,
    Demonstration,
    Drop,
    Edit,
    Fuse,
    Hoist,
    InsertRevise,
    InsertVerifier,
    Parallelise,
    Patch,
    SetDecoder,
    SetDemonstrations,
    SetMessageFormat,
    SetModel,
    SetPrompt,
    SetSamples,
    SetSchemaOrder,
    SetWidth,
    Split,
    WrapCascade,
    WrapVote,
    document_digest,
    edits_schema,
)
from weft.optimisation.edits.error import EditError
from weft.testing import FakeModel
from weft.workflow.document.writer import to_yaml

_SHOWN = Demonstration(user="two {{ braces", assistant="yes")
FITTING: tuple[Edit, ...] = (
    SetPrompt(node="rating", prompt="Judge {{ answer.why }}", system="You are strict."),
    SetDemonstrations(node="rating", demonstrations=[_SHOWN]),
    SetModel(node="notes/note", model="big"),
    SetDecoder(node="short/do", temperature=0.5, max_tokens=20),
    SetWidth(node="notes", width=1),
    SetSchemaOrder(node="answer", order=["why"]),
    SetMessageFormat(node="notes/note", format="fields", fields=["answer", "why"], max_tokens=50),
    InsertVerifier(node="rating", prompt="Is {{ answer }} right?", model="big"),
    InsertRevise(node="short/do", prompt="Shorter: {{ answer }}"),
    WrapVote(node="rating", samples=3),
    WrapCascade(node="rating", model="big"),
    Split(node="rating", name="plan", prompt="Plan {{ topic }}", rest="{{ plan }} {{ answer }}"),
    Fuse(node="short", first="notes"),
    Parallelise(node="rating", after=["notes"]),
    Hoist(node="notes/intro"),
    Choose(node="rating", choice="fixed", do={"value": "good: {{ answer.answer }}"}),
    Drop(node="short", instead="{{ notes }}"),
)


def patched(*edits: Edit) -> weft.Flow:
    flow = weft.loads(TEXT)
    if any(isinstance(edit, Fuse) for edit in edits):
        flow = Patch((Parallelise(node="rating"),)).apply(flow)
    return Patch(edits).apply(flow)


def judge() -> FakeModel:
    """Refuses every answer, with a reason."""
    return FakeModel(
        lambda request: (
            {"reason": "too short", "ok": False} if request.schema is not None else "dear"
        )
    )


@pytest.mark.parametrize("edit", FITTING, ids=lambda edit: edit.edit)
def test_an_edited_workflow_runs(edit: Edit) -> None:
    result = patched(edit).run_sync(topic="x", models={"small": echo(), "big": judge()})
    assert result.status == "succeeded", result.reasons
    assert set(result.outputs) == {"answer", "rating"}


@pytest.mark.parametrize("edit", FITTING, ids=lambda edit: edit.edit)
def test_an_edit_is_the_same_after_json(edit: Edit) -> None:
    text = json.dumps([edit.plain()])
    assert Patch.of(text).edits == (edit,)
    assert edit.edit in EDITS


def test_every_edit_has_a_case_here() -> None:
    assert {edit.edit for edit in FITTING} == EDITS.keys() - {"set_samples"}
    assert len(edits_schema()["items"]["oneOf"]) == len(EDITS) == 18


def test_an_edit_leaves_its_document_as_it_is() -> None:
    before = weft.loads(TEXT).document
    text = before.model_dump_json()
    for edit in FITTING[:-5]:
        assert document_digest(edit.apply(before)) != document_digest(before)
    assert before.model_dump_json() == text


def rating(flow: weft.Flow, **models: FakeModel) -> tuple[Any, list[str]]:
    clients = {"small": echo(), **models}
    value = flow.run_sync(topic="x", models=clients)["rating"]
    asked = [r.messages[-1].content for client in clients.values() for r in client.requests]
    return value, asked


def test_a_refused_answer_is_asked_for_again_with_the_reason() -> None:
    edit = InsertVerifier(node="rating", prompt="Is {{ answer }} right?", model="big")
    value, asked = rating(patched(edit), big=judge())
    assert "Is <Rate yes> right?" in asked
    assert value.startswith("<Rate yes\n\nAn earlier answer was refused: too short")


def test_an_accepted_answer_stays() -> None:
    fine = FakeModel(lambda _: {"reason": "", "ok": True})
    edit = InsertVerifier(node="rating", prompt="{{ answer }}?", model="big")
    value, asked = rating(patched(edit), big=fine)
    assert value == "<Rate yes>"
    assert len(asked) == 9


def test_a_vote_takes_the_most_frequent_answer() -> None:
    def answer(request: Any) -> Any:
        if request.schema is not None:
            return {"answer": "yes", "why": ""}
        return "b" if request.sampling.seed == 0 else "a"

    value, asked = rating(patched(WrapVote(node="rating", samples=3)), small=FakeModel(answer))
    assert value == "a"
    assert asked.count("Rate yes") == 3


@pytest.mark.parametrize(("agree", "value", "dear"), [(True, "a", 0), (False, "dear", 1)])
def test_a_cascade_asks_the_dear_model_where_answers_disagree(
    agree: bool, value: str, dear: int
) -> None:
    def answer(request: Any) -> Any:
        if request.schema is not None:
            return {"answer": "yes", "why": ""}
        return "a" if agree else str(request.sampling.seed)

    big = judge()
    flow = patched(WrapCascade(node="rating", model="big", samples=3, agreement=0.6))
    assert rating(flow, small=FakeModel(answer), big=big)[0] == value
    assert len(big.requests) == dear


def test_demonstrations_are_shown_as_they_were_written_and_go_again() -> None:
    shown = Patch((SetDemonstrations(node="rating", demonstrations=[_SHOWN]),))
    small = echo()
    rating(shown.apply(weft.loads(TEXT)), small=small)
    messages = next(r.messages for r in small.requests if len(r.messages) == 3)
    assert [m.content for m in messages] == ["two {{ braces", "yes", "Rate yes"]
    gone = shown.then(SetDemonstrations(node="rating", demonstrations=[]))
    assert gone.apply(weft.loads(TEXT)).document == weft.loads(TEXT).document


def test_the_order_of_an_answers_fields_makes_another_candidate() -> None:
    before = weft.loads(TEXT).document
    after = SetSchemaOrder(node="answer", order=["why", "answer"]).apply(before)
    assert "properties: {why: {type: string}, answer: {type: string}}" in to_yaml(after)
    assert document_digest(after) != document_digest(before)


def test_the_order_of_edits_that_do_not_meet_makes_one_candidate() -> None:
    one, other = WrapVote(node="rating"), InsertRevise(node="answer", prompt="Now {{ answer }}")
    document = weft.loads(TEXT).document
    there = document_digest(Patch((one, other)).apply(document))
    assert there == document_digest(Patch((other, one)).apply(document))


def refusal(make: Callable[[], object]) -> EditError:
    with pytest.raises(EditError) as caught:
        make()
    return caught.value


REFUSED: tuple[tuple[Edit, str], ...] = (
    (SetPrompt(node="ratin", prompt="x"), "there is no node `ratin`"),
    (SetPrompt(node="notes", prompt="x"), "it is a map node"),
    (SetPrompt(node="rating", prompt="{{ nowhere }}"), "nothing here is called `nowhere`"),
    (SetPrompt(node="rating", prompt="{{ answer.nothing }}"), "has no property 'nothing'"),
    (SetPrompt(node="answer", prompt="{{ rating }}"), "needs"),
    (SetModel(node="rating", model="huge"), "there is no model called `huge`"),
    (SetDecoder(node="rating"), "it changes nothing"),
    (SetSamples(node="rating", samples=3), "its value is not a list"),
    (SetWidth(node="rating", width=3), "it does not `think`"),
    (SetSchemaOrder(node="rating", order=["why"]), "its answer has no fields"),
    (SetSchemaOrder(node="answer", order=["whi"]), "`whi` is no field"),
    (InsertVerifier(node="rating", prompt="Fine?"), "does not use the answer"),
    (Split(node="rating", name="answer", prompt="x", rest="{{ answer }}"), "is taken"),
    (Split(node="rating", name="plan", prompt="x", rest="y"), "does not use the new node"),
    (Fuse(node="short", first="notes"), "is used elsewhere"),
    (Fuse(node="notes", first="short"), "does not run for each result"),
    (Parallelise(node="answer"), "it waits for no node"),
    (Hoist(node="notes/note"), "it uses `intro`"),
    (Hoist(node="rating"), "it is in no map or loop"),
    (Drop(node="short"), "its value is used"),
    (Drop(node="notes/intro", instead="{{ note }}"), "needs"),
)


@pytest.mark.parametrize(("edit", "why"), REFUSED, ids=lambda value: str(value)[:40])
def test_an_edit_that_does_not_fit_names_itself_and_the_node(edit: Edit, why: str) -> None:
    error = refusal(lambda: Patch((edit,)).apply(weft.loads(TEXT)))
    assert why in error.message
    assert error.edit == edit.edit
    assert error.node is not None
    assert str(error).startswith(f"{edit.edit}: ")


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "{}",
        "[1]",
        '[{"edit": "rm_rf", "node": "a"}]',
        '[{"edit": ["set_prompt"], "node": "a"}]',
        '[{"edit": "set_prompt", "node": "a"}]',
        '[{"edit": "set_prompt", "node": "a", "prompt": 1}]',
        '[{"edit": "set_prompt", "node": "a", "prompt": "x", "code": "import os"}]',
        '[{"edit": "wrap_vote", "node": 3}]',
        "[" * 100_000,
    ],
)
def test_what_a_model_writes_is_read_or_refused(text: str) -> None:
    assert refusal(lambda: Patch.of(text)).edit


def test_a_replacement_cannot_be_wrapped() -> None:
    text = TEXT.replace("after: [notes]}", "fallback: spare}\n  spare: {model: small, prompt: x}")
    error = refusal(lambda: Patch((WrapVote(node="spare"),)).apply(weft.loads(text)))
    assert "only in the place of `rating`" in error.message
