"""How the prompt of a pipeline grows: every stage with all answers before it, or with the state.

A stage of `history` gets all earlier answers. One of `state` gets the findings, one line of each
stage, and the whole answer of the stage before: two fields of the workflow's state. The answers are
scripted, so the figures are counts of words, and say nothing of how well a model does with less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.scripted_server import ScriptedServer

STAGES: Final = 20
WORDS: Final = 120
"""The words of an answer, beside the twelve of its finding."""
TASK: Final = "You work on one report. Write your finding in the first line, then explain it."
SYSTEMS: Final = ("history", "state")


def answer_to(messages: Sequence[Mapping[str, Any]]) -> str:
    """A finding of twelve words, and its explanation."""
    del messages
    return " ".join(["Finding:", *["fact"] * 11]) + "\n" + " ".join(["reason"] * WORDS)


def document(system: str, base_url: str, stages: int = STAGES) -> dict[str, Any]:
    """The pipeline as a workflow."""
    nodes: dict[str, Any] = {}
    for number in range(stages):
        before = [f"{{{{ s{n} }}}}" for n in range(number)]
        seen = "\n\n".join(before)
        if system == "state" and number:
            seen = "{{ state.findings | join('\n') }}\n\n{{ state.last }}"
        nodes[f"s{number}"] = {"model": "m", "prompt": f"{TASK}\n\nStage {number + 1}.\n\n{seen}"}
        if system == "state":
            finding = "{{ value.split('\n')[0] }}"
            nodes[f"s{number}"]["writes"] = {"findings": finding, "last": "{{ value }}"}
    found: dict[str, Any] = {
        "name": system,
        "models": {"m": {"use": "openai", "model": "scripted", "base_url": base_url}},
        "nodes": nodes,
        "outputs": {"report": f"{{{{ s{stages - 1} }}}}"},
    }
    if system == "state":
        findings = {"type": ["string"], "reduce": "append"}
        found["state"] = {"findings": findings, "last": "string"}
    return found


def rows(stages: int = STAGES) -> list[Row]:
    """Words of all prompts, of the last one, and how much each stage adds to its prompt."""
    found = []
    for system in SYSTEMS:
        with ScriptedServer(answer_to) as server:
            prompts = _prompts(system, server.base_url, stages)
        case = f"pipeline_{stages}"
        found += [
            Row(case, system, "prompt_tokens", sum(prompts), "words"),
            Row(case, system, "last_prompt_tokens", prompts[-1], "words"),
            Row(case, system, "added_by_a_stage", prompts[-1] - prompts[-2], "words"),
        ]
    return found


def _prompts(system: str, base_url: str, stages: int) -> list[int]:
    """The tokens of each stage's prompt, as the server counts them."""
    import json

    from weft.core.events import NodeSpent

    used: dict[str, int] = {}

    def listen(event: object) -> None:
        if isinstance(event, NodeSpent):
            used[event.node] = used.get(event.node, 0) + event.usage.prompt_tokens

    flow = weft.loads(json.dumps(document(system, base_url, stages)))
    result = flow.run_sync(listeners=[listen], durability="none")
    if not result.ok:
        raise RuntimeError("; ".join(result.reasons))
    return [used[f"s{number}"] for number in range(stages)]
