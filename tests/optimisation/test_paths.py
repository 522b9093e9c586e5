"""`choices` of nodes: the edit, what runs teach, and the best combinations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.cli.command_line import typed
from weft.core.errors import InputError, SourceError
from weft.evaluation.case import Case
from weft.optimisation.candidates import Candidate, SearchState
from weft.optimisation.edits import Choose, EditError, Patch
from weft.optimisation.options import EditOption, baseline_of, knob_options, patch_of
from weft.optimisation.paths import (
    ChoiceObservation,
    ChoiceStatistics,
    best_paths,
    check_choices,
)
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.paths import ParetoPaths
from weft.optimisation.space import declared_space
from weft.testing import FakeModel
from weft.workflow.document.spec.optimise import ChoiceSpec
from weft.workflow.history.run_history import RunHistory, find_run, read_history
from weft.workflow.runtime.journals import open_journal

TEXT = """\
name: billing
inputs: {invoice: string}
models:
  small: {use: local, model: tiny}
  big: {use: local, model: tiny}
nodes:
  lines: {model: small, prompt: "Lines of {{ invoice }}"}
  code: {model: small, prompt: "Codes of {{ lines }}", description: medical codes}
  check: {model: small, prompt: "Check {{ invoice }}"}
  post: {value: "{{ code }} {{ check }}"}
outputs: {post: "{{ post }}"}
optimise:
  knobs:
    code:
      choices:
        cheap: {success: 0.5, latency: 1s, cost: 0.01}
        dear:
          do: {model: big, prompt: "All codes of {{ lines }}"}
          success: 0.9
          latency: 5s
          cost: 0.1
        slow:
          do: {model: big, prompt: "{{ lines }}", samples: 3}
          success: 0.5
          latency: 9s
          cost: 0.01
    check:
      choices:
        full: {success: 0.8, latency: 3s, cost: 0.02}
        skipped: {do: {value: fine}, success: 0.25, latency: 0s, cost: 0}
"""


def flow() -> weft.Flow:
    return weft.loads(TEXT)


def models() -> dict[str, FakeModel]:
    def echo(name: str) -> FakeModel:
        return FakeModel(lambda request: f"{name}: {request.messages[-1].content}")

    return {name: echo(name) for name in ("small", "big")}


def test_a_choice_takes_the_place_of_its_node() -> None:
    edit = Choose(node="code", choice="dear", do={"model": "big", "prompt": "All of {{ lines }}"})
    made = Patch((edit,)).apply(flow())
    assert made.document.nodes["code"].description == "medical codes"
    value = made.run_sync(invoice="A1", models=models())["post"]
    assert value.startswith("big: All of small: Lines of A1")


@pytest.mark.parametrize(
    ("do", "why"),
    [
        ({"prompt": "x"}, "`x` is no node"),
        ({"model": "big", "value": 1}, "`x` is no node"),
        ({"break": "x"}, "`x` is no node"),
        ({"model": "big", "prompt": "{{ check }}"}, "uses `check`"),
        ({"model": "huge", "prompt": "{{ lines }}"}, "huge"),
        ({"map": 3, "do": 4}, "`x` is no node"),
        ({"tool": "nothing"}, "nothing"),
    ],
)
def test_what_cannot_stand_there_is_refused(do: dict[str, Any], why: str) -> None:
    with pytest.raises(EditError, match=why):
        Patch((Choose(node="code", choice="x", do=do),)).apply(flow())


def test_a_choice_with_a_body_of_its_own_may_name_what_is_inside() -> None:
    inside: dict[str, Any] = {
        "map": ["{{ lines }}"],
        "as": "line",
        "do": {
            "nodes": {"one": {"model": "big", "prompt": "{{ line }} {{ index }}"}},
            "result": "{{ one }}",
        },
    }
    Patch((Choose(node="code", choice="x", do=inside),)).apply(flow())


def test_choices_are_a_knob() -> None:
    [code, check] = [
        knob for knob in declared_space(flow().document).knobs if knob.kind == "choice"
    ]
    assert [option.value for option in code.options] == ["cheap", "dear", "slow"]
    assert [option.value for option in check.options] == ["full", "skipped"]


def test_two_choices_cannot_both_be_the_node_itself() -> None:
    with pytest.raises(SourceError, match="both the node itself"):
        weft.loads(TEXT.replace("cheap: {", "one: {success: 1}\n        cheap: {"))


def test_weft_check_checks_choices(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    text = TEXT.replace(
        "{use: local, model: tiny}", "{use: openai, model: tiny, base_url: 'http://127.0.0.1:1/v1'}"
    )
    file.write_text(text)
    assert typed("check", str(file)).exit_code == 0
    file.write_text(text.replace('"{{ lines }}", samples', '"{{ check }}", samples'))
    shown = typed("check", str(file))
    assert shown.exit_code == 2
    assert "`slow` uses `check`" in shown.output


def test_the_front_of_what_the_document_says() -> None:
    front = best_paths(flow())
    named = {(path.choice["code"], path.choice["check"]) for path in front.paths}
    # `slow` is never better than `cheap`; nor `dear` without a check than `cheap` with one.
    assert named == {("cheap", "full"), ("cheap", "skipped"), ("dear", "full")}
    best = front.paths[0]
    assert best.choice["code"] == "dear"
    assert best.success == pytest.approx(0.9 * 0.8)
    assert best.seconds == pytest.approx(5.0)
    assert best.cost == pytest.approx(0.12)
    made = front.patch(best).apply(flow())
    assert made.document.nodes["code"].model == "big"  # type: ignore[union-attr]
    assert "code: dear" in front.table()


def test_a_workflow_without_choices_has_no_paths() -> None:
    bare = weft.loads(TEXT[: TEXT.index("optimise:")])
    check_choices(bare)
    with pytest.raises(InputError, match="no node of the workflow has choices"):
        best_paths(bare)


def recorded(journal: Path, *runs: str) -> list[RunHistory]:
    with closing(open_journal(str(journal))) as opened:
        return [read_history(opened, find_run(opened, run)) for run in runs]


def test_runs_teach_what_each_choice_does(tmp_path: Path) -> None:
    """With each choice: runs, an evaluation, and one of a workflow in which the node is another."""
    whole, place = flow(), tmp_path / "runs.sqlite"
    dear = Patch((_edit("dear"),)).apply(whole)
    other = weft.loads(TEXT.replace("Codes of", "Numbers of"))
    clients = models()
    for number in range(6):
        whole.run_sync(invoice="A", models=clients, journal=str(place), run=f"cheap{number}")
    broken = {**clients, "big": FakeModel(lambda _: fail())}
    dear.run_sync(invoice="A", models=broken, journal=str(place), run="broken")
    other.run_sync(invoice="A", models=clients, journal=str(place), run="other")
    cases = [{"id": str(n), "invoice": f"A{n}", "expected": "x"} for n in range(3)]
    file = tmp_path / "dear.yaml"
    file.write_text(dear.to_yaml())
    weft.evaluate_sync(
        weft.load(file), cases, "exact", models=clients, journal=str(place), run="evaluated"
    )
    names = [*(f"cheap{number}" for number in range(6)), "broken", "other", "evaluated"]
    found = best_paths(whole, recorded(place, *names))
    code = found.statistics["code"]
    assert {name: len(each.observed) for name, each in code.items()} == {
        "cheap": 6,
        "dear": 4,
        "slow": 0,
    }
    assert code["cheap"].beta == (8.0, 2.0)
    assert [round(each, 9) for each in code["dear"].beta] == [4 * 0.9 + 3, 4 * 0.1 + 1]
    assert code["slow"].seconds() == 9.0
    assert 0 < code["cheap"].seconds() < 1.0
    low, high = code["dear"].success_interval
    assert low < code["dear"].success < high
    assert len(found.statistics["lines"]["as written"].observed) == 11


def fail() -> Any:
    raise RuntimeError("no")


def _edit(name: str) -> Choose:
    [knob] = [each for each in declared_space(flow().document).knobs if each.name == "code.choice"]
    edit = next(option.edit for option in knob.options if option.value == name)
    assert isinstance(edit, Choose)
    return edit


def test_few_runs_are_shrunk_and_many_are_not() -> None:
    declared = ChoiceSpec(success=0.5, latency=10.0, cost=1.0)
    seen = ChoiceObservation(True, 1.0, 0.0)
    none, few, many = (ChoiceStatistics(declared, (seen,) * count) for count in (0, 4, 396))
    assert (none.success, none.seconds(), none.cost) == (0.5, 10.0, 1.0)
    assert (few.success, few.seconds(), few.cost) == (0.75, 5.5, 0.5)
    assert many.success == pytest.approx(0.995)
    assert many.seconds(0.9) == 1.0
    assert few.seconds(0.9) == 10.0
    unknown = ChoiceStatistics(ChoiceSpec(), (), (seen, seen))
    assert (unknown.success, unknown.seconds(), unknown.cost) == (0.5, 1.0, 0.0)


def labelled(option: object) -> str:
    assert isinstance(option, EditOption)
    return option.label


class PlantedContext:
    """Scores multiply: `dear` and `skipped` are better. A run makes three calls."""

    train: Sequence[Case] = tuple(Case(str(n), {"invoice": f"A{n}"}) for n in range(20))
    seed = 1

    def __init__(self) -> None:
        self.calls = 0
        self.dearest = 0

    def flow(self, candidate: Candidate) -> Any:
        return patch_of(candidate).apply(flow())

    def allowed(self, candidate: Candidate) -> bool:
        return bool(self.flow(candidate))

    def bound(self, candidate: Candidate, case: Case, replicate: int = 0) -> int:
        return 3

    async def observe(
        self, candidate: Candidate, cases: Sequence[Case], replicates: int = 1, first: int = 0
    ) -> list[ObservedRun]:
        del replicates
        labels = {labelled(option) for _, option in candidate.settings}
        score, code = 0.5, 1.0
        if any("dear" in label for label in labels):
            score, code = score * 1.5, 5.0
        if any("slow" in label for label in labels):
            score, code = score * 0.5, 9.0
        if any("skipped" in label for label in labels):
            score *= 1.2
        nodes = (
            ObservedNode("code", "model", seconds=code),
            ObservedNode("lines", "model", seconds=2),
        )
        self.calls += 3 * len(cases)
        return [ObservedRun(case, first, {}, score, "", nodes) for case in cases]

    async def ask(
        self, prompt: str, *, schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> Any:
        raise NotImplementedError


def proposed(**options: Any) -> tuple[list[set[str]], PlantedContext, int]:
    context, knobs = PlantedContext(), knob_options(declared_space(flow().document))
    proposer = ParetoPaths(context, knobs, **options)
    base = baseline_of(knobs)
    made = asyncio.run(proposer.propose(SearchState(base, knobs, (), base)))
    assert made.calls == context.calls <= proposer.calls
    labels = [
        {labelled(option) for option in each.edits(base).values()} for each in made.candidates
    ]
    return labels, context, made.calls


def test_the_proposer_names_the_front_of_combinations() -> None:
    labels, _, _ = proposed()
    assert labels[0] == {'code.choice = "dear"', 'check.choice = "skipped"'}
    assert {'check.choice = "skipped"'} in labels
    assert not any("slow" in label for found in labels for label in found)
    assert proposed()[0] == labels


@pytest.mark.parametrize("most", [1, 3, 20, 50])
def test_the_proposer_stays_within_its_calls(most: int) -> None:
    _, context, calls = proposed(most_calls=most)
    assert calls <= most
    assert context.calls == calls


def test_without_choices_the_proposer_asks_for_nothing() -> None:
    bare = weft.loads(TEXT[: TEXT.index("optimise:")])
    knobs = knob_options(declared_space(bare.document))
    context = PlantedContext()
    proposer = ParetoPaths(context, knobs)
    base = baseline_of(knobs)
    assert proposer.calls == 0
    made = asyncio.run(proposer.propose(SearchState(base, knobs, (), base)))
    assert (list(made.candidates), context.calls) == ([], 0)
