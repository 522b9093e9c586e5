"""weft: one `weft.Flow` for each scenario. `weft` at its defaults, recorded in a journal;
`weft_none` not recorded.
"""

from __future__ import annotations

import asyncio
from typing import Any

import weft
from evals.graphbit.scenarios import BEFORE, CASES, MODEL, Program, Scenario


def build(system: str, scenario: Scenario, base_url: str) -> Program:
    """The flow, and how one runs it. The runs of a process share one connection."""
    served = {"use": "openai", "model": MODEL, "base_url": base_url}
    flow = weft.Flow("scenario", models={"m": served})
    prompt: Any = flow.input("prompt", str) if scenario.shape == "many" else None
    flow.output(**_outputs(flow, scenario, prompt))
    settings: dict[str, Any] = {"durability": "none"} if system == "weft_none" else {}
    models = weft.Models()

    async def one(**inputs: str) -> list[str]:
        result = await flow.run(**inputs, **settings, models=models)
        if not result.ok:
            raise RuntimeError("; ".join(result.reasons))
        return [str(value) for value in result.outputs.values()]

    async def many() -> list[str]:
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(one(prompt=prompt)) for prompt in scenario.prompts]
        return [run.result()[0] for run in runs]

    return Program(many if scenario.shape == "many" else one, models.aclose)


def _outputs(flow: weft.Flow, scenario: Scenario, prompt: Any) -> dict[str, Any]:
    match scenario.shape:
        case "many":
            return {"answer": flow.model("m", f"{prompt}")}
        case "single" | "chain":
            answer = flow.model("m", scenario.prompts[0])
            for each in scenario.prompts[1:]:
                answer = flow.model("m", f"{each}{BEFORE}{answer}")
            return {"answer": answer}
        case "fanout":
            return {f"a{i}": flow.model("m", each) for i, each in enumerate(scenario.prompts)}
        case "branch":
            kind = flow.model("m", scenario.prompts[0])
            cases = {name: lambda p=text: flow.model("m", p) for name, text in CASES.items()}
            return {"answer": flow.branch(kind, cases)}
