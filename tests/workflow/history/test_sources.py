"""What a record says of the workflow is computed once for all runs of it."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.testing import MemoryJournal
from weft.workflow.compile import sources


def test_a_workflow_made_in_python_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    to_yaml = sources.to_yaml

    def counting(document: Any) -> str:
        written.append(to_yaml(document))
        return written[-1]

    monkeypatch.setattr(sources, "to_yaml", counting)
    journal = MemoryJournal()
    flow = weft.Flow("sums")
    one = flow.value(1)
    flow.output(one=one)
    results = [flow.run_sync(journal=journal) for _ in range(3)]
    assert [result["one"] for result in results] == [1, 1, 1]
    assert len(written) == 1
    flow.output(two=flow.value(2))
    flow.run_sync(journal=journal)
    assert len(written) == 2
    texts = [journal.header(summary.run).document["sums.yaml"] for summary in journal.runs()]
    assert sorted(texts) == sorted([written[0]] * 3 + [written[1]])
