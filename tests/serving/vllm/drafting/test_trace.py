"""Every draft of three answers that quote, step by step, as it was when it was looked at."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from tests.serving.vllm.drafting.test_drafts import Fixed
from weft.serving.vllm.drafting.batch_drafter import BatchDrafter
from weft.serving.vllm.drafting.requests import RowFacts
from weft.serving.vllm.drafting.settings import ProposerSettings

GOLDEN = Path(__file__).parent / "golden" / "trace.json"
LONGEST = 256


def answers() -> list[tuple[str, list[int], list[int]]]:
    """Label, prompt and answer of each: two forms that quote their prompts, and a list of lines."""
    draw = random.Random(5)

    def words(count: int) -> list[int]:
        return [draw.randrange(100, 200) for _ in range(count)]

    found = []
    for label in ("form", "form", "lines"):
        name, place = words(4), words(6)
        prompt = [1, *words(5), 2, *name, 3, *place, 4]
        form = [10, 11, 12, *name, 13, 14, *place, 15, 16]
        lines = [token for word in place for token in (20, word, 21, 22)]
        found.append((label, prompt, form if label == "form" else lines))
    return found


def trace() -> list[dict[str, object]]:
    """What was drafted in each step, and how many tokens of it were right."""
    drafts = BatchDrafter(ProposerSettings(), 6, LONGEST, clock=lambda: 0.0)
    told: list[dict[str, object]] = []
    for number, (label, prompt, answer) in enumerate(answers()):
        batch = Fixed(RowFacts(str(number), label, len(prompt)))
        ids = np.zeros((1, LONGEST), np.int32)
        written = new = 1
        while written < len(answer):
            text = [*prompt, *answer[:written]]
            ids[0, : len(text)] = text
            (draft,) = drafts.propose([text[-new:]], np.array([len(text)], np.int32), ids, batch)
            right = 0
            while right < len(draft) and answer[written + right : written + right + 1] == [
                draft[right]
            ]:
                right += 1
            told.append({"label": label, "at": written, "draft": draft, "right": right})
            new = min(right + 1, len(answer) - written)
            written += new
    return told


def test_the_drafts_are_those_that_were_looked_at() -> None:
    assert trace() == json.loads(GOLDEN.read_text("utf-8"))


def test_they_save_passes_and_the_second_form_more_than_the_first() -> None:
    """Its fixed words are known from the first, its quotes from its own prompt."""
    told = trace()
    passes = dict.fromkeys(range(3), 0)
    number = -1
    for step in told:
        number += step["at"] == 1
        passes[number] += 1
    lengths = [len(answer) - 1 for _, _, answer in answers()]
    assert passes[1] < passes[0] < lengths[0]
    assert passes[2] < lengths[2]
