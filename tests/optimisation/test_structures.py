"""Proposers of structure: slack first, edits of a model as data, fuzzed rules, message formats."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

import weft
from tests.optimisation.programs import ProgramWriter, function_model
from tests.optimisation.table_context import TableContext
from weft.evaluation.case import Case
from weft.optimisation.candidates import Candidate, CaseOutcome, SearchState
from weft.optimisation.edits import EditError, Patch, SetMessageFormat
from weft.optimisation.options import EditOption, baseline_of, knob_options, patch_of
from weft.optimisation.propose.context import ObservedNode, ObservedRun
from weft.optimisation.propose.formats import MessageFormats, senders
from weft.optimisation.propose.slack import slack_of
from weft.optimisation.propose.structure_rules import StructureRules
from weft.optimisation.propose.tree import StructureTree, experience, mean_scores, selection
from weft.optimisation.space import discovered_space

TEXT = """\
name: report
inputs: {x: string}
models: {small: "local:tiny"}
nodes:
  facts: {model: small, prompt: "Facts of {{ x }}"}
  style: {model: small, prompt: "Style of {{ x }}"}
  report: {model: small, prompt: "Write {{ facts }} as {{ style }}"}
outputs: {report: "{{ report }}"}
"""
CASES = tuple(Case(str(at), {"x": f"topic {at}"}) for at in range(3))
NEEDS = {"report": ("facts", "style")}
SECONDS = {"facts": 9.0, "style": 1.0, "report": 4.0}


def state_of(flow: weft.Flow) -> SearchState:
    knobs = knob_options(discovered_space(flow.document))
    baseline = baseline_of(knobs)
    return SearchState(baseline, knobs, [], baseline)


def context_of(flow: weft.Flow, answer: Any = None) -> TableContext:
    models = {"small": function_model()}
    return TableContext(flow, models, CASES, needs=NEEDS, seconds=SECONDS, answer=answer)


def changed(candidate: Candidate) -> list[tuple[str, str]]:
    return [(edit.edit, edit.node) for edit in patch_of(candidate).edits]


def test_slack_is_what_a_node_may_take_longer() -> None:
    nodes = [
        ObservedNode(name, "model", seconds=SECONDS[name], needs=NEEDS.get(name, ()))
        for name in SECONDS
    ]
    run = ObservedRun(CASES[0], 0, {}, 1.0, "", tuple(nodes))
    assert slack_of([run, run]) == {"facts": (9, 0), "style": (1, 8), "report": (4, 0)}


def test_rules_propose_verifiers_where_there_is_slack_first() -> None:
    flow = weft.loads(TEXT)
    proposer = StructureRules(context_of(flow), {}, count=99)
    proposal = asyncio.run(proposer.propose(state_of(flow)))
    edits = [changed(each)[0] for each in proposal.candidates]
    added = [node for edit, node in edits if edit == "insert_verifier"]
    assert added == ["style", "report", "facts"]
    assert edits.index(("insert_verifier", "style")) < edits.index(("split", "report"))
    assert 0 < proposal.calls <= proposer.calls


def test_rules_propose_nothing_twice() -> None:
    flow = weft.loads(TEXT)
    state, context = state_of(flow), context_of(flow)
    seen: list[Candidate] = []
    for _ in range(20):
        made = asyncio.run(StructureRules(context, {}).propose(state)).candidates
        assert not set(made) & set(seen)
        seen += made
        for candidate in made:
            for knob, option in candidate.settings:
                if option not in state.knobs[knob]:
                    state.knobs[knob].append(option)  # type: ignore[attr-defined]
    assert not asyncio.run(StructureRules(context, {}).propose(state)).candidates
    assert len(seen) == 14


def fuzzed(count: int, seed: int) -> int:
    """Run `count` proposals of rules on random workflows; how many kinds of edits there were."""
    random, kinds, run = Random(seed), set(), 0
    models = {"small": function_model(5), "big": function_model()}
    while run < count:
        flow = ProgramWriter(random).flow(random.randint(2, 6))
        context, state = TableContext(flow, models), state_of(flow)
        for proposer in (StructureRules(context, {}, count=9), MessageFormats(context, {})):
            for candidate in asyncio.run(proposer.propose(state)).candidates:
                made = context.flow(candidate)
                result = made.run_sync(x="topic", models=models)
                assert result.status == "succeeded", (result.reasons, made.to_yaml())
                kinds |= {edit.edit for edit in patch_of(candidate).edits}
                run += 1
    return len(kinds)


def test_what_the_rules_propose_runs() -> None:
    assert fuzzed(150, seed=3) >= 8


@pytest.mark.slow
def test_two_thousand_proposals_of_the_rules_run() -> None:
    assert fuzzed(2_000, seed=22) == 10


def measured(state: SearchState, gains: dict[Candidate, float]) -> SearchState:
    block = {state.baseline: [CaseOutcome(0.5), CaseOutcome(0.3)]}
    block |= {each: [CaseOutcome(0.5 + g), CaseOutcome(0.3 + g)] for each, g in gains.items()}
    return SearchState(state.baseline, state.knobs, [block], state.best)


def test_selection_is_the_mixed_softmax_over_the_best_and_the_root() -> None:
    flow = weft.loads(TEXT)
    state = state_of(flow)
    options = [EditOption('[{"edit": "parallelise", "node": "x"}]', f"o{n}") for n in range(1)]
    child = state.baseline.replace("facts.structure", options[0])
    scores = mean_scores(measured(state, {child: 0.1}))
    assert scores == pytest.approx({state.baseline: 0.4, child: 0.5})
    chances = selection(scores, state.baseline)
    weight = 2.718281828459045**-2
    assert chances[child] == pytest.approx(0.15 + 0.7 / (1 + weight))
    assert sum(chances.values()) == pytest.approx(1)
    (edge,) = experience(state.baseline, scores)
    assert edge.label == "facts.structure: o0"
    assert (edge.before, edge.after) == pytest.approx((0.4, 0.5))


VOTE = {"why": "luck", "edits": [{"edit": "wrap_vote", "node": "facts", "samples": 3}]}


def test_the_tree_takes_edits_of_the_model_and_replays() -> None:
    flow = weft.loads(TEXT)
    state = state_of(flow)
    made = []
    for _ in range(2):
        context = context_of(flow, lambda prompt, attempt: VOTE)
        proposer = StructureTree(context, {})
        proposal = asyncio.run(proposer.propose(state))
        assert 0 < proposal.calls == context.calls <= proposer.calls
        made.append(proposal.candidates)
    assert made[0] == made[1]
    assert changed(made[0][0]) == [("wrap_vote", "facts")]
    option = dict(made[0][0].settings)["facts.structure"]
    assert isinstance(option, EditOption)
    assert option.why == "luck"
    assert "Write {{ facts }} as {{ style }}" in context.asked[0]
    assert "topic 0" in context.asked[0]
    assert "wrap_cascade" in context.asked[0]


@pytest.mark.parametrize(
    "answer",
    [
        "no data",
        {"edits": "[]"},
        {"edits": []},
        {"edits": [{"edit": "exec", "node": "facts"}]},
        {"edits": [{"edit": "drop", "node": "nowhere"}]},
        {"edits": [{"edit": "drop", "node": "facts"}]},
        {"edits": VOTE["edits"] * 6},  # type: ignore[operator]
        {
            "why": "same",
            "edits": [{"edit": "set_prompt", "node": "style", "prompt": "Style of {{ x }}"}],
        },
    ],
)
def test_answers_that_are_no_new_candidate_are_counted_and_replaced_by_a_rule(answer: Any) -> None:
    flow = weft.loads(TEXT)
    context = context_of(flow, lambda prompt, attempt: answer)
    proposer = StructureTree(context, {})
    (candidate,) = asyncio.run(proposer.propose(state_of(flow))).candidates
    assert proposer.refused == len(context.asked) == 2
    assert context.allowed(candidate)


def test_without_a_model_the_tree_expands_by_rules() -> None:
    flow = weft.loads(TEXT)
    proposer = StructureTree(context_of(flow), {})
    assert len(asyncio.run(proposer.propose(state_of(flow))).candidates) == 1
    assert proposer.refused == 0


def test_senders_are_nodes_whose_text_another_model_reads() -> None:
    assert senders(weft.loads(TEXT).document) == ["facts", "style"]


def test_a_message_of_fields_reaches_its_reader_as_lines() -> None:
    flow = weft.loads(TEXT)
    fields = SetMessageFormat(node="facts", format="fields", fields=["a", "items"], max_tokens=20)
    made = Patch((fields,)).apply(flow)
    model = function_model()
    assert made.run_sync(x="rivers", models={"small": model}).status == "succeeded"
    (request,) = [one for one in model.requests if one.messages[-1].content.startswith("Write")]
    assert request.messages[-1].content.startswith("Write a: a")
    assert "\nitems: items" in request.messages[-1].content
    (sent,) = [one for one in model.requests if one.schema is not None]
    assert sent.sampling.max_tokens == 20
    assert sent.schema is not None
    assert list(sent.schema["properties"]) == ["a", "items"]


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "fields"},
        {"format": "text", "fields": ["a"]},
        {"format": "fields", "fields": ["a", "a"]},
        {"format": "fields", "fields": ["not a name"]},
    ],
)
def test_a_format_that_does_not_fit_is_refused(fields: dict[str, Any]) -> None:
    given = [{"edit": "set_message_format", "node": "facts", **fields}]
    with pytest.raises(EditError):
        Patch.of(given).apply(weft.loads(TEXT))


def test_formats_come_node_by_node_without_a_call() -> None:
    flow = weft.loads(TEXT)
    proposer = MessageFormats(context_of(flow), {}, budgets=[16], count=8)
    proposal = asyncio.run(proposer.propose(state_of(flow)))
    assert proposal.calls == proposer.calls == 0
    nodes = [changed(each)[0][1] for each in proposal.candidates]
    assert nodes == ["facts", "style"] * 4


def test_a_best_candidate_whose_edits_do_not_fit_gives_way_to_the_baseline() -> None:
    flow = weft.loads(TEXT)
    state = state_of(flow)
    lost = EditOption('[{"edit": "drop", "node": "nowhere"}]', "lost")
    best = state.baseline.replace("*.structure", lost)
    block = {state.baseline: [CaseOutcome(0.5)], best: [CaseOutcome(0.9)]}
    state = SearchState(state.baseline, state.knobs, [block], best)
    for kind in (StructureRules, StructureTree, MessageFormats):
        context = context_of(flow)
        made = asyncio.run(kind(context, {}).propose(state)).candidates
        assert made
        assert all(map(context.allowed, made))
