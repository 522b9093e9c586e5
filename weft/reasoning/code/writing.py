"""A thread that writes a program, runs it on the public tests and mends it. Knows no selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.reasoning.code.bench import Bench
from weft.reasoning.code.program import digest, program_in
from weft.reasoning.code.prompts import Messages, mend_messages
from weft.reasoning.thought import Sample, SampleStatus
from weft.reasoning.thread.asking import Asking, Job
from weft.reasoning.thread.said import Said

_MOST_FAILURES = 3
_NO_PROGRAM = "There is no program in your answer: write it in one block that begins with ```python"


@dataclass(frozen=True, slots=True)
class Draft:
    """A program and how it did. `program` None: the model wrote none.

    `failed` of the public tests; `rounds` of mending it took; `tokens` of all that was written for
    it. `text` is the model's last answer; `reason`, why there is none.
    """

    program: str | None
    failed: int
    rounds: int
    tokens: int
    text: str
    status: SampleStatus = "finished"
    reason: str = ""

    def sample(self, index: int, tests: int) -> Sample:
        """As a sample: its text is the program, its key the program's digest."""
        score = (tests - self.failed) / tests if tests and self.program else None
        key = digest(self.program) if self.program else None
        return Sample(index, self.program or "", key, self.tokens, self.status, score)


def writing(bench: Bench, messages: Messages, rounds: int, keep: int) -> Job[Draft]:
    """A job that answers `messages` with a program, mended at most `rounds` times.

    A mended program is kept only when it fails fewer tests. The last `keep` tokens of the purse are
    left alone.
    """

    async def write(thread: Asking) -> Draft:
        best: Draft | None = None
        asked, tokens = messages, 0
        for number in range(rounds + 1):
            name = f"mend{number}" if number else "write"
            said = await thread.ask(name, asked, keep=keep)
            tokens += said.tokens
            if not said.ok:
                best = best or Draft(None, bench.tests, 0, tokens, "", "failed", said.reason)
                break
            draft, failures = await _tried(bench, said, number, tokens)
            if best is None or draft.failed < best.failed or best.program is None:
                best = draft
            if not failures:
                break
            asked = mend_messages(messages, said.text, failures)
        assert best is not None
        thread.returns(best.program or best.text)
        return best

    return write


async def _tried(bench: Bench, said: Said, number: int, tokens: int) -> tuple[Draft, Sequence[str]]:
    """What the model wrote, and what is wrong with it in words."""
    program = program_in(said.text)
    status: SampleStatus = "length" if said.status == "length" else "finished"
    if program is None:
        return Draft(None, bench.tests, number, tokens, said.text, status), [_NO_PROGRAM]
    failures = await bench.failures(program)
    draft = Draft(program, len(failures), number, tokens, said.text, status)
    return draft, failures[:_MOST_FAILURES]
