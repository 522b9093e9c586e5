"""Map-reduce over documents longer than the window: split, map, collapse, reduce, cite.

After LLMxMapReduce (arXiv 2410.09342).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from weft.core.errors import ReasoningError
from weft.core.values import Message
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import ChatThread, Job
from weft.reasoning.evidence import CitedAnswer, check_markers
from weft.reasoning.mapreduce.note import (
    Note,
    fitting_groups,
    note_schema,
    read_note,
    surest,
    weigh,
)
from weft.reasoning.mapreduce.parts import DocumentPart, looked_up, merged, numbered, parts_of
from weft.reasoning.mapreduce.prompts import (
    collapse_messages,
    conflicts,
    map_messages,
    reduce_messages,
    shown,
)
from weft.reasoning.question import Question
from weft.reasoning.thought import Thought

_LEAST_PART: Final = 32
_LEAST_NOTE: Final = 48
_SLACK: Final = 32
"""Tokens of a prompt beyond its words: roles, and changes where texts are joined."""

_SOURCE: Final = re.compile(r"\w+")


class MapReduceStrategy(ChatStrategy):
    """Answers from documents longer than the window.

    Settings: `part_tokens` and `note_tokens`, the limits of a part and of a note (a part is shorter
    where the window is small); `parts`, the number of parts read at most.
    """

    name = "map-reduce"
    defaults: ClassVar = {"part_tokens": 2000, "note_tokens": 320, "parts": 512}
    least: ClassVar = dict.fromkeys(defaults, 1)

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        return await _MapReduceRun(self, thread, question).answer()


class _MapReduceRun:
    """The map-reduce of one question."""

    def __init__(self, strategy: MapReduceStrategy, thread: ChatThread, question: Question) -> None:
        self._options = strategy.options
        self._part_tokens: int = strategy.settings["part_tokens"]
        self._most_parts: int = strategy.settings["parts"]
        self._note_tokens = min(strategy.settings["note_tokens"], max(1, thread.window // 4))
        self._thread = thread
        self._question = question
        self._lost: list[str] = []

    async def answer(self) -> Thought:
        notes = await self._map(await self._parts())
        notes = await self._fit(numbered(notes))
        return await self._reduce(notes)

    async def _parts(self) -> list[DocumentPart]:
        room = await self._room(map_messages(self._question, "", "", json=True), self._note_tokens)
        if room < _LEAST_PART:
            raise ReasoningError(
                f"the question leaves {max(0, room)} of {self._thread.window} tokens for a part",
                hint="ask a shorter question, or give the model a larger window",
            )
        limit = min(room, self._part_tokens)
        parts = await parts_of(self._question.documents, limit, self._thread.measure)
        if not parts:
            self._lost.append("there were no documents, so nothing was read")
        affordable = self._spendable // min(_LEAST_NOTE, self._note_tokens)
        most = min(self._most_parts, affordable)
        if len(parts) > most:
            limit_of = "setting `parts`" if most == self._most_parts else "budget"
            self._lost.append(
                f"{len(parts) - most} of {len(parts)} parts were not read ({limit_of})"
            )
        return parts[:most]

    async def _map(self, parts: Sequence[DocumentPart]) -> list[Note]:
        """The notes on those of `parts` that say something, in order."""
        share = min(self._note_tokens, self._spendable // max(1, len(parts)))
        jobs = [(f"part{n}", self._map_job(part, share)) for n, part in enumerate(parts, 1)]
        found = await self._thread.fork("map", jobs, role="map") if jobs else ()
        failed = sum(note is None for note in found)
        if failed:
            self._lost.append(f"{failed} of {len(parts)} parts could not be read")
        return [note for notes in found for note in notes or ()]

    def _map_job(self, part: DocumentPart, share: int) -> Job[tuple[Note, ...]]:
        async def read(thread: ChatThread) -> tuple[Note, ...]:
            messages = map_messages(
                self._question, part.document.name, part.text, json=thread.constrains
            )
            text = await self._ask(thread, "read", messages, share, quotes=True)
            written = read_note(text)
            notes = () if written is None else (looked_up(written, part),)
            thread.returns(notes[0].information if notes else "")
            return notes

        return read

    async def _fit(self, notes: list[Note]) -> list[Note]:
        """`notes`, merged with their neighbours until all fit into the last prompt."""
        room = await self._room(reduce_messages(self._question, ()), self._options.answer_tokens)
        for number in range(1, self._options.rounds + 1):
            sizes = await self._sizes(notes)
            if await self._fits(notes, sizes, room):
                return notes
            inside = await self._room(
                collapse_messages(self._question, (), json=True), self._note_tokens
            )
            groups = fitting_groups(sizes, inside)
            if len(groups) == len(notes):
                break
            notes = await self._collapse(number, [[notes[n] for n in group] for group in groups])
        return await self._drop(notes, room)

    async def _collapse(self, number: int, groups: Sequence[list[Note]]) -> list[Note]:
        share = min(self._note_tokens, self._spendable // len(groups))
        jobs = [(f"group{n}", self._merge_job(group, share)) for n, group in enumerate(groups, 1)]
        found = await self._thread.fork(f"collapse{number}", jobs, role="collapse")
        kept: list[Note] = []
        for group, note in zip(groups, found, strict=True):
            if note is None:
                self._lost.append(
                    f"{len(group)} notes could not be merged: only the surest is kept"
                )
            kept.append(note or surest(group, 1)[0])
        return kept

    def _merge_job(self, group: list[Note], share: int) -> Job[Note]:
        async def merge(thread: ChatThread) -> Note:
            if len(group) == 1:
                return group[0]
            messages = collapse_messages(self._question, group, json=thread.constrains)
            text = await self._ask(thread, "merge", messages, share, quotes=False)
            written = read_note(text)
            if written is None:
                return surest(group, 1)[0]
            note = merged(written, _SOURCE.findall(written.sources), group)
            thread.returns(note.information)
            return note

        return merge

    async def _drop(self, notes: list[Note], room: int) -> list[Note]:
        """The surest notes that fit, at least one, where merging does not help."""
        sizes = dict(zip(map(id, notes), await self._sizes(notes), strict=True))
        room -= await self._thread.measure(conflicts(notes))
        keep = len(notes)
        while keep > 1 and sum(sizes[id(note)] for note in surest(notes, keep)) > room:
            keep -= 1
        if keep < len(notes):
            left_out = len(notes) - keep
            self._lost.append(f"{left_out} of {len(notes)} notes, the least sure, are left out")
        return surest(notes, keep)

    async def _sizes(self, notes: Sequence[Note]) -> list[int]:
        return [await self._thread.measure(shown(note, len(notes))) + 2 for note in notes]

    async def _fits(self, notes: Sequence[Note], sizes: Sequence[int], room: int) -> bool:
        return sum(sizes) + await self._thread.measure(conflicts(notes)) <= room

    async def _reduce(self, notes: list[Note]) -> Thought:
        messages = reduce_messages(self._question, notes)
        reply = await self._thread.ask(
            "reduce",
            messages,
            purpose="conclusion",
            max_tokens=self._options.answer_tokens,
            schema=self._question.schema,
        )
        why = f"{len(notes)} notes were reduced"
        answer, cut = reply.text, reply.cut
        if not reply.ok:
            cut = False
            ranked = weigh(notes)
            if not ranked:
                raise ReasoningError(f"there is no answer: {reply.reason}", hint=reply.hint)
            answer = ranked[0][0]
            cause = reply.reason or "nothing was written"
            why = f"the surest answer of {len(notes)} notes: {cause}"
        known = tuple(piece for note in notes for piece in note.evidence)
        cited = CitedAnswer(answer) if self._question.schema else check_markers(answer, known)
        why += cited.remarks(known, "all that it was made of is listed")
        return self._thread.finish(
            cited.answer,
            why,
            fidelity="approximate" if self._lost else "exact",
            lost="; ".join(self._lost),
            evidence=cited.evidence or known,
            cut=cut,
        )

    async def _ask(
        self,
        thread: ChatThread,
        name: str,
        messages: tuple[Message, ...],
        share: int,
        *,
        quotes: bool,
    ) -> str:
        """The text of the model's answer. Raises: `ReasoningError` when the call fails."""
        schema = note_schema(quotes=quotes)
        reply = await thread.ask(
            name,
            messages,
            purpose="step",
            max_tokens=share,
            keep=thread.kept,
            schema=schema,
        )
        if reply.status in ("failed", "refused"):
            raise ReasoningError(reply.reason)
        return reply.text

    @property
    def _spendable(self) -> int:
        return max(0, self._thread.tokens_left - self._thread.kept)

    async def _room(self, messages: Sequence[Message], answer_tokens: int) -> int:
        """The tokens that may be added to `messages` so that an answer still fits."""
        prompt = "\n".join(message.content for message in messages)
        return self._thread.window - answer_tokens - await self._thread.measure(prompt) - _SLACK
