from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.decoding.diffusion.toy import END, MASK, TRAITS, Leftmost, Toy
from weft.core.errors import ModelRequestError
from weft.decoding.diffusion.caches.exact import NoCache
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.denoising import GREEDY, DenoisingRow, denoise, denoise_all
from weft.decoding.diffusion.guard.moderation import ModerationGuard, ModerationRecord, RefusalProbe
from weft.decoding.diffusion.guard.priors import PriorLimits, literals, words_in
from weft.decoding.diffusion.ports import DecoderConfig, Refusal
from weft.decoding.diffusion.schedules import FixedBlocks
from weft.decoding.diffusion.stops import FirstTerminator
from weft.decoding.sampling import CounterRng


def decode(ids: Sequence[int]) -> str:
    return "".join("abcdefghEM"[token] for token in ids)


class Objects:
    """Objects to a piece of text, or breaks down over it."""

    def __init__(self, piece: str, *, breaks: bool = False) -> None:
        self.piece, self.breaks = piece, breaks
        self.seen: list[str] = []

    def objection(self, text: str) -> str | None:
        self.seen.append(text)
        if self.piece in text:
            if self.breaks:
                raise RuntimeError(text)
            return "piece"
        return None


def row_of(
    moderator: Objects, notes: list[ModerationRecord], literals: dict[int, int]
) -> DenoisingRow:
    guard = ModerationGuard(moderator, decode, notes.append)
    plugs = DecoderConfig(
        Leftmost(2), FixedBlocks(4), NoCache(), FirstTerminator(), guards=(guard,)
    )
    canvas = Canvas([0, 1], 8, MASK, literals=literals)
    return DenoisingRow(canvas, plugs, TRAITS, CounterRng(0), GREEDY)


def test_prompt_and_fill_are_judged_as_one_text_before_a_block_is_shown() -> None:
    """The model writes "cdefgh"...: "bc" is only there where the prompt's "b" meets the fill."""
    moderator, notes = Objects("bc"), list[ModerationRecord]()
    row = row_of(moderator, notes, {})
    toy = Toy()
    while not row.over:
        denoise([row], toy)
        assert row.canvas.released == row.canvas.first
        assert not len(row.kept)
    assert row.finish == "refused"
    assert row.refusal is not None
    assert row.refusal.reason == "piece"
    assert moderator.seen == ["abcdef"]


def test_what_was_released_stays_and_the_block_refused_does_not_show() -> None:
    row = row_of(Objects("fg"), [], {})
    denoise_all([row], Toy())
    assert row.finish == "refused"
    assert decode(row.kept) == "cdef"


def test_what_nobody_minds_is_released_block_by_block() -> None:
    moderator, notes = Objects("zz"), list[ModerationRecord]()
    row = row_of(moderator, notes, {1: 5, 6: 2})
    denoise_all([row], Toy(token=lambda slot: slot % 7))
    assert row.finish == "length"
    assert [note.filled for note in notes] == [3, 6]
    assert [note.block for note in notes] == [0, 1]
    assert {note.verdict for note in notes} == {"released"}
    assert len(moderator.seen) == 2
    assert moderator.seen[1].startswith(moderator.seen[0])


def test_a_judge_that_fails_lets_nothing_through() -> None:
    notes = list[ModerationRecord]()
    row = row_of(Objects("c", breaks=True), notes, {})
    denoise_all([row], Toy())
    assert row.finish == "refused"
    assert [note.verdict for note in notes] == ["the moderator failed"]


def test_records_tell_priors_apart_and_hold_no_text() -> None:
    notes = list[ModerationRecord]()
    for literals_ in ({1: 5}, {2: 5}, {1: 6}, {1: 5}, {}):
        denoise_all([row_of(Objects("zz"), notes, literals_)], Toy())
    first = [note for note in notes if note.block == 0]
    assert len({note.prior for note in first}) == 4
    assert first[0].prior == first[3].prior
    assert first[4].prior == ""
    assert len({note.prompt for note in first}) == 1


def test_free_text_in_an_answer_is_for_trusted_callers() -> None:
    limits = PriorLimits()
    with pytest.raises(ModelRequestError, match="only trusted callers"):
        limits.check(["Of course: "])
    limits.check(["Of course, and more than eight words in one go: "] * 9, trusted=True)
    limits.check(["", " "])
    allowed = PriorLimits(words=2, total_words=3, free=True)
    allowed.check(["Answer:", "{ }"])
    with pytest.raises(ModelRequestError, match="a literal of 3 words"):
        allowed.check(["Here it is"])
    with pytest.raises(ModelRequestError, match="literals of 4 words"):
        allowed.check(["one two", "three four"])


PROSE = "first of all you take the FORBIDDEN_TOPIC and then you go on with it"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {PROSE: {"type": "string"}}},
        {"type": "object", "required": [PROSE]},
        {"const": PROSE},
        {"enum": ["a", {"b": [PROSE]}]},
        {"anyOf": [{"items": {"const": PROSE.replace(" ", "_")}}]},
        {"$defs": {"x": {"type": "string", "pattern": f"^{PROSE}$"}}},
    ],
)
def test_a_schema_is_no_place_for_prose(schema: dict[str, object]) -> None:
    with pytest.raises(ModelRequestError, match="a literal of 15 words"):
        PriorLimits().check_schema(schema)
    PriorLimits().check_schema(schema, trusted=True)


def test_ordinary_schemas_pass() -> None:
    schema = {
        "type": "object",
        "description": PROSE,
        "properties": {
            "first_name": {"type": "string", "title": PROSE},
            "deliveryAddress": {"type": "object", "properties": {"zipCode": {}}},
            "state": {"enum": ["open", "closed", 3, None]},
        },
        "required": ["first_name"],
    }
    PriorLimits(words=2, total_words=9).check_schema(schema)
    with pytest.raises(ModelRequestError, match="literals of 11 words, and 9"):
        PriorLimits(words=2, total_words=9).check_schema({**schema, "enum": ["x y"]})
    assert words_in("HTTPServer_name-2") == 2
    assert words_in("allinoneword" * 8) == 6
    assert set(literals({"properties": {"a": {"enum": ["b"]}}})) == {"a", "b"}


def test_a_schema_without_end_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(300):
        deep = {"items": deep}
    with pytest.raises(ModelRequestError, match="nests deeper"):
        PriorLimits().check_schema(deep)


def test_the_first_look_sums_what_refusals_begin_with() -> None:
    """The toy writes `slot % 8` with logits of 9 less a tenth a slot."""

    def reviewed(openings: tuple[tuple[int, ...], ...], model: Toy) -> Refusal | None:
        look = RefusalProbe(openings, slots=4).begin([0, 1], model.traits, 0)
        return look.review(model.forward([look.query])[0])

    toy = Toy()
    look = RefusalProbe(((2, 3), (4,)), slots=4).begin([0, 1], toy.traits, 0)
    assert look.probability(toy.forward([look.query])[0]) > 0.99
    assert reviewed(((2, 3), (4,)), toy) is not None
    assert reviewed(((3, 2),), toy) is None
    refusal = reviewed((), Toy(token=lambda _: END))
    assert refusal is not None
    assert refusal.reason == "the model would refuse"
    assert all(query.scratch for queries in toy.passes for query in queries)


@pytest.mark.parametrize(
    ("openings", "most", "slots"), [(((1,) * 5,), 0.5, 4), (((),), 0.5, 4), ((), 0, 4)]
)
def test_a_first_look_that_cannot_be(
    openings: tuple[tuple[int, ...], ...], most: float, slots: int
) -> None:
    with pytest.raises(ValueError, match=r"first look|begins with nothing"):
        RefusalProbe(openings, most, slots)
