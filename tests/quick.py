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
FULL: tuple[str, ...] = (
    "agents/loops/test_compiler_properties.py",
    "agents/untrusted/test_declared.py::test_every_raw_declaration_of_the_data_registers",
    "cli/test_declared_schedules.py::test_a_worker_registers_them_first",
    "cli/test_serving.py",
    "cli/test_signals.py",
    "cluster/test_ray_replicas.py",
    "conformance/test_postgres_journal.py",
    "conformance/test_postgres_queue.py",
    "conformance/test_ray_tools.py",
    "core/test_schema.py::test_no_value_fits_two_schemas_that_mismatch",
    "core/test_schema.py::test_schemas_that_share_a_value_never_mismatch",
    "decoding/devices/test_trainers.py",
    "decoding/diffusion/guidance/test_on_smollm2.py",
    "decoding/diffusion/network/test_presets.py",
    "decoding/network/test_fusing.py",
    "decoding/speculative/drafters/auto/test_choice.py",
    "decoding/speculative/drafters/model/layer_parallel/test_layered.py",
    "decoding/speculative/drafters/model/layer_parallel/test_ranks.py",
    "decoding/speculative/drafters/model/test_networks.py",
    "decoding/speculative/drafters/ngram/test_lookahead.py",
    "decoding/speculative/drafters/trained/published/test_exported.py",
    "decoding/speculative/drafters/trained/published/test_refusals.py",
    "decoding/speculative/drafters/trained/test_hidden_transfer.py",
    "decoding/speculative/drafters/trained/test_lexical_units.py",
    "decoding/speculative/drafters/trained/test_on_smollm2.py",
    "decoding/speculative/drafters/trained/test_trained.py",
    "decoding/speculative/test_chi_square.py",
    "decoding/speculative/test_real_model.py",
    "deploy/test_container.py",
    "evals/reasoning/test_code_eval.py",
    "evals/reasoning/test_live.py",
    "evals/speculative",
    "evals/test_engine_eval.py",
    "evals/test_local_engine_eval.py",
    "evaluation/test_kills.py",
    "examples/test_examples.py::test_the_examples_run_on_the_embedded_model",
    "gpu/test_gpu_eval.py::test_a_dry_run_walks_every_section",
    "integration/queues",
    "integration/test_agent_loops.py::test_the_embedded_model",
    "integration/test_approved_agents.py",
    "integration/test_crash.py",
    "integration/test_drafting_vllm.py",
    "integration/test_fifty_replays.py",
    "integration/test_fleet_vllm.py",
    "integration/test_gateway.py",
    "integration/test_killed_endpoint.py",
    "integration/test_lossless_smollm2.py",
    "integration/test_mcp_client.py",
    "integration/test_mcp_hostile.py",
    "integration/test_mcp_hostile_http.py",
    "integration/test_mcp_server.py",
    "integration/test_order_across_processes.py",
    "integration/test_parallel_serving.py",
    "integration/test_planner_models.py::test_a_local_model_writes_plans",
    "integration/test_postgres_outages.py",
    "integration/test_prompted_strategies.py",
    "integration/test_recorded_servers.py",
    "integration/test_repaired_engine.py",
    "integration/test_resume_killed.py",
    "integration/test_secrets_vllm.py",
    "integration/test_serve_vllm.py",
    "integration/test_thread_trees.py",
    "integration/test_two_processes.py",
    "integration/test_ui.py",
    "integration/test_ui_hostile.py",
    "integration/test_ui_process.py",
    "integration/test_ui_small.py",
    "integration/test_ui_unsettled.py",
    "integration/test_vllm_continued.py",
    "integration/test_wheel.py",
    "optimisation/edits/test_fuzz.py",
    "planner/grammar/test_accepted.py",
    "planner/grammar/test_language.py",
    "planner/test_compile.py::test_a_hundred_orders_of_completion_give_one_answer",
    "security",
    "serving/gateway/test_connections.py",
    "serving/local/diffusion/test_shipped_block.py",
    "serving/local/test_batching.py",
    "serving/local/test_grammar.py",
    "serving/local/test_placed_prompts.py",
    "serving/local/test_workers.py",
    "serving/openai/test_contract_vllm.py",
    "serving/plan/test_plans.py",
    "serving/providers/test_recorded.py::test_a_damaged_answer_is_an_error_of_the_model_or_an_answer",
    "serving/providers/test_recorded.py::test_an_answer_does_not_depend_on_how_its_bytes_are_cut",
    "serving/vllm/client/test_demand.py",
    "serving/vllm/diffusion/test_inside.py",
    "serving/vllm/launch/test_heads.py",
    "serving/vllm/supervise/test_supervisor.py",
    "serving/weights/test_wheel.py",
    "training/diffusion/test_own_model.py",
    "training/drafters/test_kinds.py",
    "typing/test_checkers.py",
    "workflow/document/test_source.py::test_many_values",
    "workflow/postgres/test_lost_connections.py",
    "workflow/queue/test_signals.py::test_a_signal_wakes_a_worker_on_a_server",
    "workflow/test_sources.py",
)
"""Folders, modules and functions of tests that take long for what a change is likely to break."""
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
        if f"{path}::{test}" in FULL or is_full_module(PurePath(path)):
            continue
        if cases[members[0]].get_closest_marker("vllm") and f"{path}::{test}" not in VLLM:
            continue
        kept.update(members[at * len(members) // CASES] for at in range(CASES))
    return set(range(len(cases))) - kept
