"""Map-reduce over documents longer than the window: split, map, collapse, reduce, cite.

After LLMxMapReduce (arXiv 2410.09342). Knows no server and reads no files.
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
"""Tokens of a prompt beside its words: roles, and what changes when texts are put together."""

_SOURCE: Final = re.compile(r"\w+")


class MapReduceStrategy(ChatStrategy):
    """Settings: `part_tokens` and `note_tokens`, how long a part and a note are at most; `parts`.

    A part is shorter where the window is small. `parts`: how many are read at most.
    """

    name = "map-reduce"
    defaults: ClassVar = {"part_tokens": 2000, "note_tokens": 320, "parts": 512}
    least: ClassVar = dict.fromkeys(defaults, 1)

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        return await _MapReduceRun(self, thread, question).answer()


class _MapReduceRun:
    """The work on one question."""

    def __init__(self, strategy: MapReduceStrategy, thread: ChatThread, question: Question) -> None:
        self._options = strategy.options
        self._part_tokens: int = strategy.settings["part_tokens"]
        self._most_parts: int = strategy.settings["parts"]
        self._note_tokens = min(strategy.settings["note_tokens"], max(1, thread.window // 4))
        self._thread = thread
        self._question = question
        self._lost: list[str] = []

    async def answer(self) -> Thought:
        notes = await self._mapped(await self._parts())
        notes = await self._fitting(numbered(notes))
        return await self._reduced(notes)

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

    async def _mapped(self, parts: Sequence[DocumentPart]) -> list[Note]:
        """A note on each of `parts` that says something, in their order."""
        share = min(self._note_tokens, self._spendable // max(1, len(parts)))
        jobs = [(f"part{n}", self._mapping(part, share)) for n, part in enumerate(parts, 1)]
        found = await self._thread.fork("map", jobs, role="map") if jobs else ()
        failed = sum(note is None for note in found)
        if failed:
            self._lost.append(f"{failed} of {len(parts)} parts could not be read")
        return [note for notes in found for note in notes or ()]

    def _mapping(self, part: DocumentPart, share: int) -> Job[tuple[Note, ...]]:
        async def read(thread: ChatThread) -> tuple[Note, ...]:
            messages = map_messages(
                self._question, part.document.name, part.text, json=thread.constrains
            )
            text = await self._said(thread, "read", messages, share, quotes=True)
            written = read_note(text)
            notes = () if written is None else (looked_up(written, part),)
            thread.returns(notes[0].information if notes else "")
            return notes

        return read

    async def _fitting(self, notes: list[Note]) -> list[Note]:
        """As many notes as the last prompt has room for; neighbours are merged until they fit."""
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
            notes = await self._collapsed(number, [[notes[n] for n in group] for group in groups])
        return await self._dropped(notes, room)

    async def _collapsed(self, number: int, groups: Sequence[list[Note]]) -> list[Note]:
        share = min(self._note_tokens, self._spendable // len(groups))
        jobs = [(f"group{n}", self._merging(group, share)) for n, group in enumerate(groups, 1)]
        found = await self._thread.fork(f"collapse{number}", jobs, role="collapse")
        kept: list[Note] = []
        for group, note in zip(groups, found, strict=True):
            if note is None:
                self._lost.append(
                    f"{len(group)} notes could not be merged: only the surest is kept"
                )
            kept.append(note or surest(group, 1)[0])
        return kept

    def _merging(self, group: list[Note], share: int) -> Job[Note]:
        async def merge(thread: ChatThread) -> Note:
            if len(group) == 1:
                return group[0]
            messages = collapse_messages(self._question, group, json=thread.constrains)
            text = await self._said(thread, "merge", messages, share, quotes=False)
            written = read_note(text)
            if written is None:
                return surest(group, 1)[0]
            note = merged(written, _SOURCE.findall(written.sources), group)
            thread.returns(note.information)
            return note

        return merge

    async def _dropped(self, notes: list[Note], room: int) -> list[Note]:
        """What is left when merging does not help: the surest notes that fit, and at least one."""
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

    async def _reduced(self, notes: list[Note]) -> Thought:
        messages = reduce_messages(self._question, notes)
        said = await self._thread.ask(
            "reduce", messages, max_tokens=self._options.answer_tokens, schema=self._question.schema
        )
        why = f"{len(notes)} notes were reduced"
        answer, cut = said.text, said.cut
        if not said.ok:
            cut = False
            ranked = weigh(notes)
            if not ranked:
                raise ReasoningError(f"there is no answer: {said.reason}")
            answer = ranked[0][0]
            why = f"the surest answer of {len(notes)} notes: {said.reason or 'nothing was written'}"
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

    async def _said(
        self,
        thread: ChatThread,
        name: str,
        messages: tuple[Message, ...],
        share: int,
        *,
        quotes: bool,
    ) -> str:
        """What the model says. Raises: `ReasoningError` when it cannot be asked."""
        schema = note_schema(quotes=quotes)
        said = await thread.ask(name, messages, max_tokens=share, keep=thread.kept, schema=schema)
        if said.status in ("failed", "refused"):
            raise ReasoningError(said.reason)
        return said.text

    @property
    def _spendable(self) -> int:
        return max(0, self._thread.tokens_left - self._thread.kept)

    async def _room(self, messages: Sequence[Message], answer_tokens: int) -> int:
        """How many tokens may be added to `messages` so that an answer still fits."""
        prompt = "\n".join(message.content for message in messages)
        return self._thread.window - answer_tokens - await self._thread.measure(prompt) - _SLACK
