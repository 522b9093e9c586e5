"""What models are told, word for word: a change here asks for a new version of the prompt.

`WEFT_WRITE_GOLDEN=1` writes the golden files anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.loops.scripted_agent import call, cost, says, talk
from tests.golden_files import assert_golden
from weft.agents.agent import Observation
from weft.agents.chat import prompt
from weft.agents.chat.observations import format_observations
from weft.agents.chat.reply_format import ReplyFormat
from weft.agents.loops import divide, joiner, parallel_react, react
from weft.core.errors import ToolRaised
from weft.core.events import Outcome
from weft.core.ports import Capabilities
from weft.core.values import Message, ToolCall, ToolSpec
from weft.testing import FakeTools, Reply

GOLDEN = Path(__file__).parents[2] / "golden" / "agents"
SHOP = {"type": "object", "properties": {"best": {"type": "string"}}, "required": ["best"]}


class Shop(FakeTools):
    """One tool, described as tools are."""

    def specs(self) -> tuple[ToolSpec, ...]:
        item = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
        return (ToolSpec("price", "What an item costs, in pounds.", item, {"type": "integer"}),)


SCRIPTS: dict[str, list[Reply | str]] = {
    "react": [
        says(call=cost("tea")[0]),
        says(call=cost("gold")[0]),
        "hm",
        says(call=cost("tea")[0]),
        says(call=cost("tea")[0]),
        says(answer={"best": "tea"}),
    ],
    "divide": [
        says(calls=[*cost("tea", "gold", "coffee"), call("prize")]),
        says(answer={"best": 3}),
        says(answer={"best": "tea"}),
    ],
    "parallel-react": [
        Reply("", tuple(ToolCall(f"c{n}", "price", f'{{"item": "{item}"}}')
                        for n, item in enumerate(("tea", "gold", "coffee", "milk")))),
        "The tea.",
        '{"best": "tea"}',
    ],
}  # fmt: skip


def told(messages: tuple[Message, ...]) -> str:
    parts = []
    for message in messages:
        calls = "".join(f"\n[call {c.id}] {c.name} {c.arguments}" for c in message.tool_calls)
        about = f" (of {message.tool_call_id})" if message.tool_call_id else ""
        parts.append(f"=== {message.role}{about} ===\n{message.content}{calls}\n")
    return "\n".join(parts)


def conversation(agent: str, held: bool) -> str:
    tools = Shop(price=lambda item: {"tea": 3, "coffee": 4}[item])
    options: dict[str, Any] = {"schema": SHOP, "instructions": "Prices are in pounds.", "calls": 3}
    offered = Capabilities(structured_output=held, tools=True)
    talked = talk(agent, SCRIPTS[agent], tools, offered=offered, **options)
    assert talked.answer.value == {"best": "tea"}
    return told(talked.requests[-1].messages)


def joining(held: bool) -> str:
    form = ReplyFormat(replan=True)
    failed = Outcome("failed", None, ToolRaised("price raised KeyError: 'gold'").failure())
    lines = format_observations(
        [
            Observation(1, "price", {"item": "tea"}, Outcome("succeeded", 3)),
            Observation(2, "price", {"item": "gold"}, failed),
            Observation(3, "note", {"text": "$2"}, Outcome("skipped")),
        ],
        10_000,
    )
    first = prompt.system(joiner.RULES, form, constrained=held, instructions="Be brief.")
    return told(
        (
            first,
            Message("user", joiner.joiner_prompt("Which is cheaper?", lines, last=False)),
            Message("user", joiner.joiner_prompt("Which is cheaper?", lines, last=True)),
        )
    )


VERSIONS = {
    "react": f"{react.REACT_PROMPT_VERSION} {prompt.SYSTEM_PROMPT_VERSION}",
    "divide": f"{divide.DIVIDE_PROMPT_VERSION} {prompt.SYSTEM_PROMPT_VERSION}",
    "joiner": f"{joiner.JOINER_PROMPT_VERSION} {prompt.SYSTEM_PROMPT_VERSION}",
    "parallel-react": parallel_react.PARALLEL_REACT_PROMPT_VERSION,
}


def golden(name: str, held: bool) -> str:
    versions = f"{VERSIONS[name]} {prompt.TURNS_PROMPT_VERSION}"
    said = joining(held) if name == "joiner" else conversation(name, held)
    return f"{versions}\n\n{said}"


def path(name: str, held: bool) -> Path:
    return GOLDEN / f"{name.replace('-', '_')}{'' if held else '_free'}.txt"


@pytest.mark.parametrize("held", [True, False], ids=["held to JSON", "free"])
@pytest.mark.parametrize("name", VERSIONS)
def test_every_word_is_known(name: str, held: bool) -> None:
    assert_golden(path(name, held), golden(name, held))
