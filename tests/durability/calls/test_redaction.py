from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.calls import (
    CallId,
    ModelAnswered,
    ModelCalled,
    ModelStreamed,
    ModelTold,
    ToolCalled,
    ToolReturned,
)
from weft.core.codec import encode
from weft.core.errors import Failure
from weft.core.events import (
    NodeFinished,
    NodeLogged,
    NodeStarted,
    NodeStreamed,
    Outcome,
    RunFinished,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports import ModelRequest, Prefilled, ReasoningDelta, TextDelta, ToolCallDelta
from weft.core.ports.journal import Record, RunHeader
from weft.core.values import Completion, Message, ToolCall, Usage
from weft.durability.calls import RecordRedactor, Redactor
from weft.testing import MemoryJournal

SECRET = "sk-aaab-1234"
NODE, CALL = NodeId("n"), CallId("model:x#0")
PLACE = (NODE, 1, CALL)
END = RunFinished("succeeded", Usage(), (), 9.0)


def kept(*records: Record, secrets: dict[str, str] | None = None) -> list[Record]:
    redactor = RecordRedactor(Redactor(secrets or {"KEY": SECRET}))
    return [each for record in (*records, END) for each in redactor(record)][:-1]


def streamed(*pieces: Any) -> list[Record]:
    return [
        ModelStreamed(*PLACE, ((float(at), piece),), float(at)) for at, piece in enumerate(pieces)
    ]


def pieces_of(records: list[Record]) -> list[Any]:
    return [
        piece for each in records if isinstance(each, ModelStreamed) for _, piece in each.deltas
    ]


@st.composite
def cut(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text that is full of secrets and their beginnings, and pieces that it comes in."""
    parts = st.sampled_from([SECRET, SECRET[:3], SECRET[:-1], "a", "sk-", "x", "[secret:KEY]"])
    text = "".join(draw(st.lists(parts, max_size=8)))
    ends = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)) | {0, len(text)})
    return text, [text[a:b] for a, b in itertools.pairwise(ends)]


class TestStreams:
    @given(cut())
    def test_no_cut_lets_a_secret_through(self, given_: tuple[str, list[str]]) -> None:
        text, pieces = given_
        records = kept(*[NodeStreamed(NODE, piece, 1, 0.0) for piece in pieces])
        texts = [each.text for each in records if isinstance(each, NodeStreamed)]
        assert len(texts) == len(pieces)
        assert SECRET not in "".join(texts)
        redactor = Redactor({"KEY": SECRET})
        assert "".join(map(redactor.restore, texts)) == text
        assert sum(each.tokens for each in records if isinstance(each, NodeStreamed)) == len(pieces)

    @given(cut(), st.integers(0, 5))
    def test_nor_does_a_crash_at_any_moment(self, given_: tuple[str, list[str]], left: int) -> None:
        text, pieces = given_
        keep, redactor = RecordRedactor(Redactor({"KEY": SECRET})), Redactor({"KEY": SECRET})
        come = pieces[: max(0, len(pieces) - left)]
        records = [each for piece in come for each in keep(NodeStreamed(NODE, piece, 1, 0.0))]
        seen = [record.text for record in records if isinstance(record, NodeStreamed)]
        assert SECRET not in "".join(seen)
        said = "".join(map(redactor.restore, seen))
        assert text.startswith(said)
        assert len(said) <= redactor.open_from("".join(come))

    def test_a_piece_waits_no_longer_than_it_has_to(self) -> None:
        redactor = RecordRedactor(Redactor({"KEY": SECRET}))
        assert redactor(NodeStreamed(NODE, "so sk", 1, 0.0)) == []
        first, second = redactor(NodeStreamed(NODE, "y", 1, 1.0))
        assert (first, second) == (
            NodeStreamed(NODE, "so sk", 1, 0.0),
            NodeStreamed(NODE, "y", 1, 1.0),
        )

    def test_the_end_of_its_node_lets_it_go(self) -> None:
        ended = NodeFinished(NODE, Outcome("succeeded", "so sk"), 1.0)
        redactor = RecordRedactor(Redactor({"KEY": SECRET}))
        redactor(NodeStreamed(NODE, "so sk", 1, 0.0))
        assert redactor(NodeStreamed(NodeId("other"), "sk", 1, 0.0)) == []
        assert redactor(ended) == [NodeStreamed(NODE, "so sk", 1, 0.0), ended]

    def test_nodes_and_calls_are_apart(self) -> None:
        half = len(SECRET) // 2
        records = kept(
            NodeStreamed(NODE, SECRET[:half], 1, 0.0),
            NodeStreamed(NodeId("other"), SECRET[half:], 1, 0.0),
        )
        assert [each.text for each in records if isinstance(each, NodeStreamed)] == [
            SECRET[half:],
            SECRET[:half],
        ]

    def test_pieces_of_an_answer_keep_their_order_and_times(self) -> None:
        half = len(SECRET) // 2
        sent = [
            Prefilled((1, 2)),
            ReasoningDelta(f"think {SECRET[:half]}", (3,)),
            TextDelta("say ", (4,)),
            ReasoningDelta(f"{SECRET[half:]} hard", (5,)),
            TextDelta(f"{SECRET[:half]}", (6,)),
            TextDelta(f"{SECRET[half:]} it", (7,)),
            ToolCallDelta(0, f'{{"key": "{SECRET[:half]}', "id", "f"),
            ToolCallDelta(1, "{}", "id2", "g"),
            ToolCallDelta(0, f'{SECRET[half:]}"}}'),
            TextDelta("done", (8,)),
        ]
        records = kept(*streamed(*sent))
        assert pieces_of(records) == [
            Prefilled((1, 2)),
            ReasoningDelta("think [secret:KEY]"),
            TextDelta("say ", (4,)),
            ReasoningDelta(" hard"),
            TextDelta("[secret:KEY]"),
            TextDelta(" it"),
            ToolCallDelta(0, '{"key": "[secret:KEY]', "id", "f"),
            ToolCallDelta(1, "{}", "id2", "g"),
            ToolCallDelta(0, '"}'),
            TextDelta("done", (8,)),
        ]
        times = [at for each in records if isinstance(each, ModelStreamed) for at, _ in each.deltas]
        assert times == [float(at) for at in range(len(sent))]

    def test_without_secrets_everything_passes_as_it_is(self) -> None:
        records = streamed(TextDelta("sk-", (1,)), TextDelta("x", (2,)))
        redactor = RecordRedactor(Redactor())
        assert [redactor(record) for record in records] == [[record] for record in records]


class TestTokenIds:
    def test_those_of_a_prompt_with_a_secret_are_left_out(self) -> None:
        request = ModelRequest((Message("user", SECRET),))
        records = kept(
            ModelCalled(*PLACE, "m", request, 0.0),
            *streamed(Prefilled((1, 2, 3)), TextDelta("ok", (4,))),
            ModelAnswered(*PLACE, Completion("ok", token_ids=(4,)), None, 1.0, (1, 2, 3)),
        )
        assert pieces_of(records) == [Prefilled(()), TextDelta("ok", (4,))]
        answered = records[-1]
        assert isinstance(answered, ModelAnswered)
        assert answered.prompt_token_ids == ()
        assert answered.completion == Completion("ok", token_ids=(4,))

    def test_those_of_other_prompts_stay(self) -> None:
        records = kept(
            ModelCalled(*PLACE, "m", ModelRequest((Message("user", "hi"),)), 0.0),
            *streamed(Prefilled((1, 2, 3))),
            ModelAnswered(*PLACE, Completion("ok"), None, 1.0, (1, 2, 3)),
        )
        assert pieces_of(records) == [Prefilled((1, 2, 3))]
        assert isinstance(records[-1], ModelAnswered)
        assert records[-1].prompt_token_ids == (1, 2, 3)

    @pytest.mark.parametrize(
        "told",
        [
            ModelTold("m", ("encode", SECRET, False), (7, 8, 9), 0.0),
            ModelTold("m", ("decode", (7, 8, 9)), SECRET, 0.0),
        ],
    )
    def test_what_a_tokenizer_made_of_one_is_not_told_and_blotted_out(
        self, told: ModelTold
    ) -> None:
        request = ModelRequest(prompt_token_ids=(1, 7, 8, 9, 2))
        records = kept(
            told, ModelCalled(*PLACE, "m", request, 0.0), *streamed(Prefilled((7, 8, 9)))
        )
        [made, *_] = records
        assert isinstance(made, ModelCalled)
        assert made.request.prompt_token_ids == (1, 0, 0, 0, 2)
        assert pieces_of(records) == [Prefilled((0, 0, 0))]

    def test_what_is_no_secret_is_told(self) -> None:
        told = ModelTold("m", ("encode", "hello", False), (7, 8, 9), 0.0)
        assert kept(told) == [told]


def planted(secret: str) -> list[Record]:
    """A secret wherever a record has room for one."""
    message = Message("user", f"use {secret}", (ToolCall("1", "f", json.dumps({"k": secret})),))
    failure = Failure("ToolRaised", f"401 for {secret}", "tool", False, f"is {secret} right?")
    half = len(secret) // 2
    return [
        ToolCalled(
            NODE, 1, CALL, "f", {"key": secret, secret: [json.dumps([secret])]}, "once", "k", 0
        ),
        ToolReturned(
            NODE, 1, CALL, {"headers": {"Authorization": f"Bearer {secret}"}}, None, "done", 1
        ),
        ToolReturned(NODE, 1, CALL, None, failure, "unknown", 1),
        ModelCalled(NODE, 1, CALL, "m", ModelRequest((message,), extra={"key": secret}), 1),
        *streamed(TextDelta(secret[:half]), TextDelta(secret[half:])),
        ModelAnswered(NODE, 1, CALL, Completion(f"{secret}!", token_ids=(1,)), None, 2),
        ModelAnswered(NODE, 1, CALL, None, failure, 2),
        NodeStreamed(NODE, secret[:half], 1, 2),
        NodeStreamed(NODE, secret[half:], 1, 2),
        NodeLogged(NODE, f"key {secret}", 2),
        NodeFinished(NODE, Outcome("failed", [secret], failure), 3),
        RunFinished("failed", Usage(), (f"n failed: {secret}",), 4),
    ]


SECRETS = st.text('QZXJ"\\/é+% \n', max_size=24).map(lambda text: f"QZ{text}JX")
"""None of them is spelt by chance in what the records say."""


@given(SECRETS)
def test_nothing_secret_reaches_a_journal(secret: str) -> None:
    redactor = Redactor({"KEY": secret})
    keep = RecordRedactor(redactor)
    journal, run = MemoryJournal(), RunId("run")
    claim = journal.begin(RunHeader(run, "flow", "2026-01-01", "0"))
    for record in planted(secret):
        journal.append(run, keep(record))
    claim.release()
    written = [numbered.record for numbered in journal.records(run)]
    streams = [
        "".join(each.text for each in written if isinstance(each, NodeStreamed)),
        "".join(piece.text for piece in pieces_of(written) if isinstance(piece, TextDelta)),
    ]
    assert streams == ["[secret:KEY]", "[secret:KEY]"]
    for text in map(encode, written):
        assert not redactor.found(text)
        assert "QZ" not in text
    assert [redactor.restore(each) for each in written if isinstance(each, ToolCalled)] == [
        each for each in planted(secret) if isinstance(each, ToolCalled)
    ]


TOOL = CallId("tool:0123456789ab#0")
CLEAN = (
    NodeStarted(NODE, 1, 0.0, "4c" * 16),
    ToolCalled(NODE, 1, TOOL, "f", {"x": 1, "y": ["a", {"z": None}]}, "pure", "", 0.1),
    ToolReturned(NODE, 1, TOOL, {"a": (1, 2.0)}, None, "done", 0.2),
    ToolReturned(NODE, 1, TOOL, None, Failure("E", "no"), "unknown", 0.2),
    NodeFinished(NODE, Outcome("succeeded", "text"), 0.3),
    NodeFinished(NODE, Outcome("failed", failure=Failure("E", "no")), 0.3),
)


@pytest.mark.parametrize("record", CLEAN)
def test_records_that_hide_nothing_stay_as_they_are(record: Record) -> None:
    keep = RecordRedactor(Redactor({"KEY": SECRET}))
    records = [record, *CLEAN]
    assert all(now is before for now, before in zip(keep.redact_all(records), records, strict=True))


@pytest.mark.parametrize(
    "record",
    [
        replace(CLEAN[0], node=NodeId(f"m[{SECRET}]")),
        replace(CLEAN[1], tool=SECRET),
        replace(CLEAN[1], key=f"a{SECRET}"),
        replace(CLEAN[1], stands_for=f"{SECRET}@{TOOL}"),
        replace(CLEAN[1], arguments={"x": f"a{SECRET}b"}),
        replace(CLEAN[1], arguments={SECRET: 1}),
        replace(CLEAN[1], arguments={"x": 1, "y": [{"z": (0, SECRET)}]}),
        replace(CLEAN[1], arguments={"x": SECRET.encode()}),
        replace(CLEAN[1], arguments={"x": json.dumps(SECRET)}),
        replace(CLEAN[2], value=SECRET),
        replace(CLEAN[2], value=[SECRET]),
        replace(CLEAN[2], value={"é": '"[secret:KEY]"'}),
        replace(CLEAN[3], failure=Failure("E", SECRET)),
        replace(CLEAN[4], outcome=Outcome("succeeded", {1: SECRET})),
        replace(CLEAN[5], outcome=Outcome("failed", failure=Failure("E", "", hint=SECRET))),
    ],
)
def test_a_batch_is_redacted_as_its_records_are(record: Any) -> None:
    keep, alone = (RecordRedactor(Redactor({"KEY": SECRET})) for _ in range(2))
    records = [CLEAN[0], record, CLEAN[1]]
    found = keep.redact_all(records)
    assert found == [each for one in records for each in alone(one)]
    assert found[1] != record
    assert SECRET not in repr(found)


@pytest.mark.parametrize("secret", ['a"b\\c', "ä\n💧x", "7777"])
def test_a_secret_is_found_in_a_batch_however_json_writes_it(secret: str) -> None:
    keep = RecordRedactor(Redactor({"KEY": secret}))
    called = replace(CLEAN[1], arguments={"x": f"<{secret}>", "n": 7777})
    (found,) = keep.redact_all([called])
    assert found == replace(called, arguments={"x": "<[secret:KEY]>", "n": 7777})
    assert secret not in encode(found).replace('"n":7777', "")


def test_the_end_of_a_node_is_redacted_at_once_while_a_piece_is_held_back() -> None:
    keep = RecordRedactor(Redactor({"KEY": SECRET}))
    assert {type(record) for record in CLEAN} - set(keep.alone) == {NodeFinished}
    assert not keep.holds_back
    keep(NodeStreamed(NODE, SECRET[:4], 1, 0.1))
    assert keep.holds_back
    keep(CLEAN[4])
    assert not keep.holds_back
