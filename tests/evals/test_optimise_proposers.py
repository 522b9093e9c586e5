"""The planted prompt trap: what is hidden, what the scripted model says, and one study each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from statistics import fmean

import pytest

from evals.optimise.proposers import (
    QUALITIES,
    SENTENCES,
    SYSTEMS,
    TRAP,
    TrapProgram,
    proposer_rows,
    rewrite,
    trap_study,
)
from weft.optimisation.candidates import Candidate
from weft.optimisation.edits import SetPrompt
from weft.optimisation.options import EditOption
from weft.optimisation.propose.diagnosis import asked_hypotheses
from weft.optimisation.propose.prompt_nodes import asked_rewrite, prompt_nodes


def with_prompt(program: TrapProgram, text: str) -> Candidate:
    option = EditOption.of([SetPrompt(node="answer", prompt=text)], "prompt")
    return program.baseline.replace("answer.prompt", option)


def test_the_trap_hides_every_other_effect() -> None:
    program = TrapProgram(3, 0.2)
    every = "\n".join(["{{ question }}", *SENTENCES.values()])
    full = with_prompt(program, every)
    for knob in ("answer.temperature", "answer.model"):
        full = full.replace(knob, program.knobs[knob][1])
    assert len(program.active(full)) == 4
    trapped = full.replace(
        "answer.prompt", dict(with_prompt(program, f"{every} {TRAP}").settings)["answer.prompt"]
    )
    assert program.active(trapped) == program.active(program.baseline) == []
    assert not program.escaped(trapped)
    means = [
        fmean(program.score(each, case.id) for split in program.cases.values() for case in split)
        for each in (program.baseline, trapped, with_prompt(program, "{{ question }}"), full)
    ]
    assert abs(means[0] - means[1]) < 0.06
    assert means[1] + 0.1 < means[2]
    assert means[2] + 0.2 < means[3]


@pytest.mark.parametrize("q", [0.0, 0.2, 0.8, 1.0])
def test_the_scripted_model_names_the_trap_as_often_to_both(q: float) -> None:
    program = TrapProgram(5, q)
    nodes = prompt_nodes(program, program.baseline, ["answer"])

    async def shares() -> tuple[float, float]:
        runs = await program.observe(program.baseline, program.train[:3])
        named, removed = [], []
        for attempt in range(300):
            told, dropped = await asked_hypotheses(program, nodes, runs, 3, attempt)
            assert dropped == 0
            named.append("field_order" in {each.label for each in told})
            text, why = await asked_rewrite(program, nodes["answer"], runs, attempt)
            assert text == rewrite(nodes["answer"].prompt, why)
            removed.append(TRAP not in str(text))
        return fmean(named), fmean(removed)

    named, removed = asyncio.run(shares())
    assert abs(removed - q) < 0.06
    assert abs(named - (1 - (1 - q) ** 3)) < 0.06


def test_a_hypothesis_decides_the_rewrite() -> None:
    program = TrapProgram(5, 0.0)
    node = prompt_nodes(program, program.baseline, ["answer"])["answer"]

    async def asked(hypothesis: str) -> object:
        return (await asked_rewrite(program, node, [], 0, hypothesis))[0]

    assert asyncio.run(asked("field_order: so")) == "{{ question }}"
    assert asyncio.run(asked("length: so")) == f"{node.prompt}\n{SENTENCES['length']}"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_study_repeats_itself_within_its_budget(system: str) -> None:
    one = trap_study(system, 0.2, 1)
    assert one == trap_study(system, 0.2, 1)
    assert 0 < one.asked < one.calls <= 12_000


def test_who_never_names_the_trap_leaves_it_by_a_restart_only() -> None:
    studies = [trap_study(system, 0.0, 4) for system in SYSTEMS]
    assert [study.seen for study in studies] == [True, False, False]
    every = [replace(study, q=q) for study in studies for q in QUALITIES]
    rows = {
        (row.case, row.system, row.metric): row.value
        for row in proposer_rows(lambda _, numbers: [every for _ in numbers], 0, 2)
    }
    assert rows["prompt_trap_q0", "reflect", "escaped_share"] == 0
    assert rows["prompt_trap_q0", "reflect", "trap_studies"] == 2
