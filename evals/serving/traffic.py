"""Agent-shaped traffic: a seeded mix of programs of mixed sizes. Runs nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from evals.serving import lengths
from evals.serving.arrivals import arrivals
from evals.serving.programs import Call, First, Ids, Output, Piece, Program, Step, Tool
from evals.serving.prose import Prose

MOST_CONTEXT = 3_600
"""Prompt and answer of any call, in tokens."""

_AGENTS = 4
_ROLES = ("writer", "reviewer", "editor")
_MIX = {"chat": 0.35, "chain": 0.25, "fan_out": 0.15, "race": 0.15, "pipeline": 0.10}
KINDS = tuple(_MIX)


class Traffic:
    """Makes programs. What agents and roles are told is the same in all programs of all seeds."""

    def __init__(self, prose: Prose) -> None:
        self._prose = prose
        lasting = random.Random("what is told to everyone")
        self._agents = [prose.write(lasting, 256) for _ in range(_AGENTS)]
        self._roles = {role: prose.write(lasting, 192) for role in _ROLES}
        self._makers: Mapping[str, Callable[[random.Random], list[Step]]] = {
            "chat": self._chat,
            "chain": self._chain,
            "fan_out": self._fan_out,
            "race": self._race,
            "pipeline": self._pipeline,
        }

    def trace(self, seed: int, count: int, span_s: float) -> list[Program]:
        """`count` programs that arrive within `span_s` seconds, in the order of arrival.

        The programs of a seed do not depend on the span. Their kinds stand in the proportions of
        the mix as closely as whole numbers allow.
        """
        source = random.Random(f"programs {seed}")
        kinds = _kinds(count)
        source.shuffle(kinds)
        made = [(kind, tuple(self._makers[kind](source))) for kind in kinds]
        times = arrivals(random.Random(f"arrivals {seed}"), count, span_s)
        return [
            Program(f"s{seed}-{place:02d}-{kind}", kind, at_s, steps)
            for place, (at_s, (kind, steps)) in enumerate(zip(times, made, strict=True))
        ]

    def _text(self, source: random.Random, tokens: int) -> Ids:
        return self._prose.write(source, tokens)

    def _chat(self, source: random.Random) -> list[Step]:
        prompt = self._text(source, lengths.CHAT_PROMPT.draw(source))
        return [Call("answer", (prompt,), lengths.CHAT_ANSWER.draw(source))]

    def _chain(self, source: random.Random) -> list[Step]:
        """ReAct: every turn's prompt is the agent's instructions and tools, and all before it."""
        turns = lengths.TURNS.draw(source)
        history: list[Piece] = [source.choice(self._agents), self._text(source, 64)]
        steps: list[Step] = []
        size = sum(len(piece) for piece in history if not isinstance(piece, Output))
        for turn in range(1, turns + 1):
            answer = lengths.TURN_ANSWER.draw(source)
            steps.append(Call(f"turn{turn}", tuple(history), answer, prefix="history"))
            seen = lengths.OBSERVATION.draw(source)
            size += answer + seen
            if turn == turns or size + 128 > MOST_CONTEXT:
                break
            seconds, said = lengths.TOOL_MS.draw(source) / 1_000, self._text(source, seen)
            steps.append(Tool(f"tool{turn}", seconds, said, (f"turn{turn}",)))
            history += [Output(f"turn{turn}"), Output(f"tool{turn}")]
        return steps

    def _fan_out(self, source: random.Random) -> list[Step]:
        """Questions about one document, then a call that joins the answers."""
        document = self._text(source, lengths.DOCUMENT.draw(source))
        names = [f"part{n}" for n in range(source.randint(3, 10))]
        steps: list[Step] = [
            Call(
                name,
                (document, self._text(source, 24)),
                min(96, lengths.API_ANSWER.draw(source)),
                prefix="document",
            )
            for name in names
        ]
        told = self._text(source, 48)
        prompt: tuple[Piece, ...] = (told, *(Output(name) for name in names))
        return [*steps, Call("join", prompt, lengths.CHAT_ANSWER.draw(source))]

    def _race(self, source: random.Random) -> list[Step]:
        """Several attempts at one task; the first valid answer is taken."""
        task = self._text(source, 256)
        names = [f"try{n}" for n in range(source.randint(3, 5))]
        steps = [
            Call(
                name,
                (task, self._text(source, 12)),
                2 * lengths.CHAT_ANSWER.draw(source),
                prefix="task",
                valid=source.random() < 0.6,
            )
            for name in names
        ]
        lucky = source.randrange(len(steps))
        steps[lucky] = replace(steps[lucky], valid=True)
        return [*steps, First("first", tuple(names))]

    def _pipeline(self, source: random.Random) -> list[Step]:
        """One role after the other, each with its own instructions, a tool between them."""
        material = self._text(source, lengths.DOCUMENT.draw(source) // 2)
        steps: list[Step] = []
        before: tuple[Piece, ...] = ()
        for place, role in enumerate(_ROLES):
            prompt = (self._roles[role], material, *before)
            steps.append(Call(role, prompt, lengths.CHAT_ANSWER.draw(source)))
            if place == len(_ROLES) - 1:
                break
            said = self._text(source, lengths.OBSERVATION.draw(source))
            tool = Tool(f"check{place}", lengths.TOOL_MS.draw(source) / 1_000, said, (role,))
            steps.append(tool)
            before = (*before, Output(role), Output(tool.name))
        return steps


def _kinds(count: int) -> list[str]:
    """`count` kinds in the proportions of the mix, by largest remainder."""
    shares = {kind: share * count for kind, share in _MIX.items()}
    whole = {kind: int(share) for kind, share in shares.items()}
    left = sorted(shares, key=lambda kind: whole[kind] - shares[kind])
    for kind in left[: count - sum(whole.values())]:
        whole[kind] += 1
    return [kind for kind, number in whole.items() for _ in range(number)]
