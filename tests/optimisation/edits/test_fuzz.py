"""Edits that pass the checks never fail structurally: whatever a model proposes, it is refused
before anything runs, or it runs.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

import weft
from tests.optimisation.programs import ProgramWriter, function_model, random_edit
from weft.optimisation.edits import EDITS, Patch
from weft.optimisation.edits.error import EditError
from weft.workflow.document.rewrite import rewritten


def passing(count: int, seed: int) -> Counter[str]:
    """Run edited workflows, one to three edits each, and count the `count` edits by name."""
    random = Random(seed)
    applied: Counter[str] = Counter()
    while applied.total() < count:
        flow = ProgramWriter(random).flow(random.randint(2, 6))
        for number in range(20):
            given = [random_edit(random, flow) for _ in range(random.randint(1, 3))]
            try:
                patch = Patch.of(given)
                patched = patch.apply(flow)
            except EditError:
                continue
            clients = {"small": function_model(5), "big": function_model()}
            result = patched.run_sync(x="topic", models=clients)
            assert result.status == "succeeded", (result.reasons, given, flow.to_yaml())
            applied.update(edit.edit for edit in patch.edits)
            if number == 0:
                check_text(flow, patched)
    return applied


def check_text(flow: weft.Flow, patched: weft.Flow) -> None:
    text = "# a comment\n" + flow.to_yaml()
    new = rewritten(text, flow.document, patched.document)
    assert new.startswith("# a comment\n")
    assert weft.loads(new).document == patched.document


def test_fuzzed_edits_that_pass_the_check_run() -> None:
    assert passing(150, seed=1).total() >= 150


@pytest.mark.slow
def test_ten_thousand_fuzzed_edits_that_pass_the_check_run() -> None:
    applied = passing(10_000, seed=14)
    assert applied.keys() == EDITS.keys(), applied
