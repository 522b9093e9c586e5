"""Patches: composed, shown, applied to files and to Python flows, and reverted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import BaseModel

import weft
from tests.optimisation.edits.flows import TEXT, echo
from weft.errors import BuildError
from weft.optimisation.edits import (
    InsertRevise,
    Parallelise,
    Patch,
    SetModel,
    SetPrompt,
    SetSchemaOrder,
    WrapVote,
    document_diff,
    document_digest,
    with_document,
)
from weft.optimisation.edits.error import EditError
from weft.testing import FakeModel

PATCH = Patch((SetModel(node="rating", model="big"), WrapVote(node="rating", samples=2)))


def test_a_patch_is_read_as_a_diff() -> None:
    shown = PATCH.diff(weft.loads(TEXT)).splitlines()
    assert "-  rating: {model: small, prompt: 'Rate {{ answer.answer }}', after: [notes]}" in shown
    assert any(line.startswith("+  rating_samples:") for line in shown)
    assert shown[-1].startswith(" ")
    assert PATCH.diff(weft.loads(TEXT).document).splitlines() == shown
    assert document_diff(weft.loads(TEXT).document, weft.loads(TEXT).document) == ""


def test_a_file_keeps_its_comments_and_is_reverted(tmp_path: Path) -> None:
    file = tmp_path / "brief.yaml"
    file.write_text(TEXT)
    applied = PATCH.apply_to_file(file)
    text = file.read_text()
    for comment in (
        "# a comment at the top",
        "# what about",
        "# one for each item",
        "# the answer",
    ):
        assert comment in text
    assert 'prompt: "Introduce {{ topic }}"' in text  # what did not change stays as it was
    changed = [line for line in applied.diff().splitlines() if line[:1] in "+-"]
    assert len(changed) < 16, applied.diff()
    assert weft.load(file).document == PATCH.apply(weft.loads(TEXT)).document
    applied.revert()
    assert file.read_text() == TEXT


def test_a_file_that_was_changed_since_is_not_reverted(tmp_path: Path) -> None:
    file = tmp_path / "brief.yaml"
    file.write_text(TEXT)
    applied = PATCH.apply_to_file(file)
    file.write_text(applied.after + "# mine\n")
    with pytest.raises(EditError, match="was changed since"):
        applied.revert()


def test_a_patch_that_does_not_fit_leaves_the_file(tmp_path: Path) -> None:
    file = tmp_path / "brief.yaml"
    file.write_text(TEXT)
    with pytest.raises(EditError) as caught:
        PATCH.then(
            SetPrompt(node="answer", prompt="{{ rating_samples.x }} {{ no }}")
        ).apply_to_file(file)
    assert (caught.value.edit, caught.value.node) == ("set_prompt", "answer")
    assert file.read_text() == TEXT


def test_a_value_that_no_file_can_hold_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "brief.yaml"
    file.write_text(TEXT)
    deep = f'{"[" * 80}"{{{{ notes }}}}"{"]" * 80}'
    patch = Patch.of(f'[{{"edit": "drop", "node": "short", "instead": {deep}}}]')
    with pytest.raises(BuildError, match="no file can hold"):
        patch.apply_to_file(file)
    assert file.read_text() == TEXT


def test_a_file_with_aliases_is_written_anew(tmp_path: Path) -> None:
    text = TEXT.replace('"Introduce {{ topic }}"', '&x "Introduce {{ topic }}"')
    text = text.replace(
        '{model: small, prompt: "Rate {{ answer.answer }}"', "{model: small, prompt: *x"
    )
    file = tmp_path / "brief.yaml"
    file.write_text(text)
    patch = Patch(
        (SetPrompt(node="notes/intro", prompt="Begin"), SetModel(node="rating", model="big"))
    )
    patch.apply_to_file(file)
    document = weft.load(file).document
    assert document == patch.apply(weft.loads(text)).document


class Verdict(BaseModel):
    why: str
    ok: bool


def shout(text: str) -> str:
    return text.upper()


def python_flow(model: FakeModel) -> weft.Flow:
    flow = weft.Flow("python", models={"small": model, "big": model})
    topic = flow.input("topic", str)
    first = flow.model("small", f"Judge {topic}", schema=Verdict)
    flow.output(verdict=first, loud=flow.call(shout, first.why))
    return flow


def test_a_python_flow_keeps_its_functions_clients_and_types() -> None:
    model = FakeModel(lambda _: {"why": "fine", "ok": True})
    flow = python_flow(model)
    (name,) = (n for n, step in flow.document.nodes.items() if step.kind == "model")
    before = flow.run_sync(topic="x")
    patch = Patch((SetModel(node=name, model="big"), SetSchemaOrder(node=name, order=["ok"])))
    patched = patch.apply(flow)
    after = patched.run_sync(topic="x")
    assert after.outputs == before.outputs
    assert isinstance(after["verdict"], Verdict)
    assert after["loud"] == "FINE"
    assert list(model.requests[-1].schema["properties"]) == ["ok", "why"]  # type: ignore[index]
    revised = Patch((InsertRevise(node=name, prompt="Again: {{ answer }}"),)).apply(flow)
    assert isinstance(revised.run_sync(topic="x")["verdict"], Verdict)
    assert len(flow.document.nodes) == 2


def test_equal_documents_have_one_digest() -> None:
    document = weft.loads(TEXT).document
    other = weft.loads(TEXT.replace("name: brief", "name: other")).document
    assert document_digest(document) == document_digest(other)
    lines = TEXT.splitlines()
    at = lines.index("  # the answer itself")
    moved = [*lines[:8], *lines[at:-3], *lines[8:at], *lines[-3:]]
    assert document_digest(weft.loads("\n".join(moved)).document) == document_digest(document)
    one = Patch((SetModel(node="rating", model="big"),)).apply(document)
    assert document_digest(one) != document_digest(document)


def test_a_workflow_that_runs_itself_cannot_be_edited(tmp_path: Path) -> None:
    file = tmp_path / "again.yaml"
    file.write_text(
        "name: again\ninputs: {n: integer}\nnodes:\n  a: {value: '{{ n }}'}\n"
        "  b: {workflow: ./again.yaml, with: {n: '{{ a }}'}, max_depth: 2, when: '{{ n > 3 }}'}\n"
        "outputs: {a: '{{ a }}'}\n"
    )
    flow = weft.load(file)
    with pytest.raises(BuildError, match="runs itself"):
        with_document(flow.unit, flow.document)


def test_the_same_patch_fits_documents_and_flows() -> None:
    patch = Patch((Parallelise(node="rating"),))
    flow = weft.loads(TEXT)
    assert patch.apply(flow.document) == patch.apply(flow).document
    result = asyncio.run(patch.apply(flow).run(topic="x", models={"small": echo()}))
    assert result.status == "succeeded"
