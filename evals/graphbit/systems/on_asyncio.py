"""Bare asyncio and httpx, the floor: what one writes by hand for each shape."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx

from evals.graphbit.scenarios import BEFORE, CASES, MODEL, Program, Scenario


class ChatClient:
    """Calls of one server over one pool of connections."""

    def __init__(self, base_url: str) -> None:
        self._url = f"{base_url}/chat/completions"
        self._http = httpx.AsyncClient(timeout=30)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(self, prompt: str) -> str:
        """The answer to one prompt."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": prompt}]}
        response = await self._http.post(self._url, json=body)
        response.raise_for_status()
        return str(response.json()["choices"][0]["message"]["content"])


def build(_system: str, scenario: Scenario, base_url: str) -> Program:
    """The program for the shape of `scenario`."""
    client = ChatClient(base_url)

    async def chain() -> list[str]:
        answer = await client.ask(scenario.prompts[0])
        for prompt in scenario.prompts[1:]:
            answer = await client.ask(f"{prompt}{BEFORE}{answer}")
        return [answer]

    async def together() -> Sequence[str]:
        return await asyncio.gather(*map(client.ask, scenario.prompts))  # noqa: TID251 - the floor

    async def branch() -> list[str]:
        kind = await client.ask(scenario.prompts[0])
        return [await client.ask(CASES[kind])]

    if scenario.shape == "branch":
        return Program(branch, client.aclose)
    run = chain if scenario.shape in ("single", "chain") else together
    return Program(run, client.aclose)
