"""Which tests `make test` runs: all but what this table leaves to `make test-full`.

`tests/conftest.py` marks the others `full`, and `tests/test_quick.py` holds the table to its
promise: every package of weft, and vLLM, in a run of a few minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Protocol

CASES = 4
"""At most so many cases of one parametrised test, spread over all of them."""
FULL: tuple[str, ...] = ()
"""Folders and modules of tests that take long for what a change is likely to break."""
VLLM: tuple[str, ...] = (
    "conformance/test_tokenizing.py::TestVllm::test_texts_come_back",
    "conformance/test_vllm_client.py::TestVllmClient::test_a_schema_is_kept",
    "conformance/test_vllm_client.py::TestVllmClient::test_cancelling_the_caller_frees_the_model",
    "conformance/test_vllm_client.py::test_a_required_call_fits_its_schema",
    "conformance/test_vllm_client.py::test_an_adapter_changes_the_answer",
    "conformance/test_vllm_client.py::test_every_token_has_its_id_and_its_logprob",
    "conformance/test_vllm_client.py::test_the_client_reads_what_the_server_counts",
    "conformance/test_vllm_client.py::test_what_the_server_can_do_is_found_out",
    "integration/test_every_strategy_vllm.py::test_a_small_model_comes_to_an_end_within_its_budget",
    "integration/test_fork_vllm.py::test_siblings_find_the_full_blocks_that_they_share",
    "integration/test_planner_models.py::test_schemas_and_grammars_are_held_on_one_server",
)
"""Of the tests marked `vllm`, those of `make test`: all of them on one shared server."""


class Case(Protocol):
    """As much of a pytest item as the rules look at."""

    nodeid: str

    def get_closest_marker(self, name: str) -> object: ...


def is_full_module(path: PurePath) -> bool:
    """Whether no test of a module, named from `tests/`, is part of `make test`."""
    return any(path.is_relative_to(name) for name in FULL)


def left_to_full(cases: Sequence[Case]) -> set[int]:
    """Positions of the cases that are not part of `make test`."""
    functions: dict[str, list[int]] = {}
    for at, case in enumerate(cases):
        if case.get_closest_marker("slow"):
            continue
        functions.setdefault(case.nodeid.split("[")[0], []).append(at)
    kept = set()
    for name, members in functions.items():
        path, _, test = name.removeprefix("tests/").partition("::")
        if is_full_module(PurePath(path)):
            continue
        if cases[members[0]].get_closest_marker("vllm") and f"{path}::{test}" not in VLLM:
            continue
        kept.update(members[at * len(members) // CASES] for at in range(CASES))
    return set(range(len(cases))) - kept
