"""LeaP, Learning from Peers (arXiv 2505.07787): paths pause and read what the others found.

Every `turn` tokens each path writes a summary, reads some of its peers' summaries, and continues.
The most frequent answer of the paths wins. Works by prompt; the trained models of the paper
(LeaP-T) only follow it better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from weft.core.ports import ModelClient
from weft.reasoning.answers import answer_key
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.protocols.blocks import THINK, without
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.runtime.grammar import AppendJoin, ProtocolGrammar
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Part,
    Parts,
    ProtocolText,
    Return,
    UntrustedText,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.strategy import Strategy

PeerSelection = Literal["clustered", "dispersed", "hybrid"]
PEER_SELECTIONS: Final = ("clustered", "dispersed", "hybrid")

_COMPARED_CHARS: Final = 2000


def select_peers(
    key: str, summaries: Mapping[str, str], route: PeerSelection, most: int
) -> tuple[str, ...]:
    """The keys of at most `most` of the other `summaries` for the path `key`, in declared order.

    clustered: the most similar ones; dispersed: the least similar; hybrid: both alternately, the
    most similar first. Of equals the earlier one.
    """
    others = [other for other in summaries if other != key]
    own = summaries.get(key, "")[:_COMPARED_CHARS]
    likeness = {other: _alike(own, summaries[other][:_COMPARED_CHARS]) for other in others}
    near = sorted(others, key=lambda other: -likeness[other])
    chosen = set(_preference(near, route)[:most])
    return tuple(other for other in others if other in chosen)


def _preference(near: Sequence[str], route: PeerSelection) -> list[str]:
    far = list(reversed(near))
    if route == "hybrid":
        both = (key for pair in zip(near, far, strict=True) for key in pair)
        return list(dict.fromkeys(both))
    return list(near) if route == "clustered" else far


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


SUMMARY: Final = "<summary>"
SUMMARY_END: Final = "</summary>"
PEERS: Final = "<peers>"
PEERS_END: Final = "</peers>"

_SUMMARY_TOKENS: Final = 256
_PATHS: Final = "paths"
_PAUSES: Final = "pauses"

PROMPT_VERSION: Final = "leap-1"
_RULES: Final = """\
Solve the question step by step. Others solve it at the same time. From time to time you are \
interrupted by <summary>: then sum up in at most three sentences what you have found so far and \
what you try next, and end with </summary>. Behind it, between <peers> and </peers>, you may find \
what others have summed up. They may be right or wrong: check what is new to you, use it if it \
holds, and go on where you were. When you are done, write the answer on a last line that begins \
with "Answer:"."""
_FOUND: Final = "\n\nWhat those who worked on it found:\n"


@dataclass(slots=True)
class _LeapPath:
    """One path: its context after the prompt, its text and last summary, and whether it ended."""

    parts: Parts = ()
    text: str = ""
    ended: bool = False
    summary: str = ""


class Leap(ProtocolGrammar):
    """`paths` in parallel. A turn is two forks: the paths, and their summaries."""

    name = "leap"
    tags = (SUMMARY, SUMMARY_END, PEERS, PEERS_END)
    also = THINK
    steps = ("summary",)
    lead = "\n\nAnswer:"

    def __init__(
        self, options: ThinkOptions, *, paths: int, turn: int, route: PeerSelection, peers: int
    ) -> None:
        self._options = options
        self._paths = paths
        self._turn = turn
        self._route = route
        self._peers = peers

    def opening(self, question: Question, *, prompted: bool) -> Opening:
        return Opening(conversation(question, _RULES if prompted else "", question_text(question)))

    def first(self, thread: Thread) -> Move:
        """Fork the paths; the root writes nothing before they end."""
        if thread.depth:
            return Continue()
        thread.memory[_PATHS] = {str(number): _LeapPath() for number in range(1, self._paths + 1)}
        return self._next_turn(thread)

    def stops(self, thread: Thread) -> tuple[str, ...]:
        return (SUMMARY_END,) if thread.role == "summary" else ()

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        if not thread.depth:
            return Answer(without(output.text, self.tags))
        thread.memory["ended"] = output.ended == "end"
        return Return(thread.text)

    def close(self, child: Thread) -> Parts:
        if child.role != "summary" or child.text.endswith(SUMMARY_END):
            return ()
        return (ControlTag(SUMMARY_END),)

    def join(self, parent: Thread, children: Sequence[Thread]) -> AppendJoin:
        """Fork summaries after paths, and paths after summaries; vote when all have ended."""
        paths: dict[str, _LeapPath] = parent.memory[_PATHS]
        for child in children:
            path = paths[child.key]
            path.parts = (child.context.ids,)
            if child.role == "summary":
                path.summary = without(child.text, self.tags)
                continue
            path.text += child.text
            path.ended = bool(child.memory.get("ended"))
        summed_up = bool(children) and children[0].role == "summary"
        if not any(not path.ended for path in paths.values()):
            return AppendJoin((), self._vote_or_answer(parent))
        if summed_up:
            return AppendJoin((), self._next_turn(parent))
        if not parent.memory[_PAUSES]:
            return AppendJoin((), self._vote_or_answer(parent))
        return AppendJoin((), self._sum_up(paths))

    def refuse(self, thread: Thread, fork: ForkMove, reason: str) -> Move:  # noqa: ARG002
        """Vote with what the paths have written."""
        return self._vote_or_answer(thread)

    def conclude(self, thread: Thread) -> Parts:
        return self._path_ends(thread)

    def answer(self, thread: Thread) -> str:
        """The most frequent answer of the paths; without any, the text of the first."""
        paths = self._written(thread)
        return self._voted(paths) or next((path.text.strip() for path in paths), "")

    # -- turns -------------------------------------------------------------------------------

    def _next_turn(self, thread: Thread) -> ForkMove:
        """The next turn of all paths that have not ended; the last turn has no pause."""
        paths: dict[str, _LeapPath] = thread.memory[_PATHS]
        left = self._options.max_tokens - self._turn * (thread.rounds // 2)
        pauses = len(paths) > 1 and thread.rounds + 3 <= self._options.rounds and left > self._turn
        most = self._turn if pauses else max(left, self._turn)
        thread.memory[_PAUSES] = pauses
        children = tuple(
            ChildSpec(key, "prompt", self._path_context(key, paths), role="path", max_tokens=most)
            for key, path in paths.items()
            if not path.ended
        )
        return ForkMove(children, appends=False)

    def _sum_up(self, paths: dict[str, _LeapPath]) -> ForkMove:
        children = tuple(
            ChildSpec(
                key,
                "prompt",
                (*path.parts, ProtocolText("\n\n"), ControlTag(SUMMARY), ProtocolText("\n")),
                role="summary",
                max_tokens=_SUMMARY_TOKENS,
            )
            for key, path in paths.items()
            if not path.ended
        )
        return ForkMove(children, appends=False)

    def _path_context(self, key: str, paths: dict[str, _LeapPath]) -> Parts:
        """The context of a path's next turn: its text, and some of its peers' summaries.

        The end of the text replaces the summary of a path that has ended.
        """
        own = paths[key].parts
        texts = {k: path.text if path.ended else path.summary for k, path in paths.items()}
        peers = select_peers(
            key, {k: text for k, text in texts.items() if text}, self._route, self._peers
        )
        if not peers:
            return (*own, ProtocolText("\n\n")) if own else ()
        parts: list[Part] = [*own, ProtocolText("\n"), ControlTag(PEERS), ProtocolText("\n")]
        for peer in peers:
            parts += [
                ProtocolText(f"Peer {peer}: "),
                UntrustedText(texts[peer], _SUMMARY_TOKENS),
                ProtocolText("\n"),
            ]
        return (*parts, ControlTag(PEERS_END), ProtocolText("\n\n"))

    # -- the end -----------------------------------------------------------------------------

    def _vote_or_answer(self, thread: Thread) -> Move:
        """The vote; without any answer to count, the root writes one."""
        voted = self._voted(self._written(thread))
        return Answer(voted) if voted else Continue(self._path_ends(thread))

    def _written(self, thread: Thread) -> list[_LeapPath]:
        paths: dict[str, _LeapPath] = thread.memory.get(_PATHS, {})
        return [path for path in paths.values() if path.text.strip()]

    def _voted(self, paths: Sequence[_LeapPath]) -> str:
        """The first path with the most frequent answer; empty: there is none."""
        keys = [answer_key(path.text, path.ended) for path in paths]
        votes = Counter(key for key in keys if key is not None)
        if not votes:
            return ""
        winner = max(votes, key=lambda key: votes[key])  # the first of those with most votes
        return paths[keys.index(winner)].text.strip()

    def _path_ends(self, thread: Thread) -> Parts:
        """What makes the root answer: the ends of all paths, and a lead-in."""
        parts: list[Part] = [ProtocolText(_FOUND)]
        for path in self._written(thread):
            parts += [
                ProtocolText("- "),
                UntrustedText(path.text.strip(), _SUMMARY_TOKENS),
                ProtocolText("\n"),
            ]
        return (*(parts if len(parts) > 1 else ()), ProtocolText(self.lead))


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `leap`.

    Settings: `paths` (0: the width of the options); `turn`, tokens between two pauses; `route`, the
    selection of summaries: "clustered", "dispersed" or "hybrid"; `peers`, their number at most.

    Raises: `BuildError` for other settings.
    """
    given = read_settings(
        "leap",
        options.settings,
        {"paths": 4, "turn": 256, "route": "dispersed", "peers": 4},
        least={"paths": 0, "turn": 1, "peers": 0},
        choices={"route": PEER_SELECTIONS},
    )
    given["paths"] = min(given["paths"] or options.width, options.width)
    return GrammarStrategy(Leap(options, **given), model, options)
