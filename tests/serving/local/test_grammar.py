"""Constrained answers of a model that says anything: random weights, temperature 1 and above."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.random_schemas import random_schema
from tests.serving.local.playback import EXACT, Heard, Playback
from weft.core.errors import ModelOutputError, ModelRequestError
from weft.core.ports import ModelRequest, Sampling
from weft.core.values import Completion
from weft.decoding.network.network import Network
from weft.serving.local import LocalOptions
from weft.serving.local.autoregressive.batcher import Batcher
from weft.serving.local.autoregressive.row import _finite
from weft.serving.local.grammar import NumberScanner, SchemaBounds
from weft.serving.local.vocabulary import Vocabulary

Play = Callable[..., Playback]
BOOK = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 20},
        "year": {"type": "integer", "minimum": 1900, "maximum": 1999},
    },
    "required": ["title", "year"],
    "additionalProperties": False,
}


def constrained(schema: Any, seed: int = 0, **fields: Any) -> ModelRequest:
    sampling = Sampling(temperature=1.0, seed=seed, max_tokens=fields.pop("max_tokens", 400))
    return ModelRequest(prompt_token_ids=(9, 8, 7), sampling=sampling, schema=schema, **fields)


def test_two_hundred_random_schemas_always_parse_and_validate(play: Play) -> None:
    playback = play(replace(EXACT, max_string_chars=12, max_items=3))
    source = random.Random(11)
    asked: list[tuple[dict[str, Any], Heard]] = []
    for seed in range(200):
        schema = random_schema(source)
        asked.append((schema, playback.add(constrained(schema, seed, max_tokens=1000))))
    playback.finish()
    texts = []
    for schema, heard in asked:
        text = heard.completion.text
        jsonschema.validate(json.loads(text), schema)
        texts.append(text)
    assert len(set(texts)) > 120


def test_every_key_is_written_whatever_the_temperature(play: Play) -> None:
    for temperature in (0.0, 1.0, 50.0):
        request = constrained(BOOK)
        request = replace(request, sampling=replace(request.sampling, temperature=temperature))
        book = json.loads(play().answer(request).text)
        assert set(book) == {"title", "year"}
        assert 1900 <= book["year"] <= 1999


def test_forced_text_costs_no_forward_pass_of_its_own(play: Play) -> None:
    schema = {"const": {"a long fixed key": ["and", "a", "fixed", "value"]}}
    answer = play().answer(constrained(schema))
    assert json.loads(answer.text) == schema["const"]
    assert len(answer.token_ids) > 10
    assert answer.usage.forwards <= 3


def test_forced_text_does_not_change_what_is_drawn_after_it(play: Play) -> None:
    """Drawing forced tokens one by one, as a request for logprobs does, gives the same answer."""
    for seed in range(5):
        quick = play().answer(constrained(BOOK, seed))
        slow = play().answer(constrained(BOOK, seed, logprobs=True))
        assert json.loads(slow.text).keys() == json.loads(quick.text).keys()
        assert len(slow.logprobs) == len(slow.token_ids)
        assert slow.usage.forwards > quick.usage.forwards


def test_max_tokens_inside_json_is_an_error_never_half_an_answer(play: Play) -> None:
    whole = play().answer(constrained(BOOK)).text
    outcomes = []
    for limit in range(1, 40):
        heard = play().add_and_finish(constrained(BOOK, max_tokens=limit))
        outcomes.append(heard.events[-1])
    errors = [outcome for outcome in outcomes if isinstance(outcome, ModelOutputError)]
    assert all("maxLength" in str(error) and not error.retryable for error in errors)
    assert 3 < len(errors) < 39
    answers = outcomes[len(errors) :]
    assert all(isinstance(answer, Completion) and answer.text == whole for answer in answers)


def test_a_second_draw_may_be_shorter_so_it_may_be_retried(play: Play) -> None:
    request = constrained(BOOK, max_tokens=1)
    unseeded = replace(request, sampling=replace(request.sampling, seed=None))
    with pytest.raises(ModelOutputError) as raised:
        play().answer(unseeded)
    assert raised.value.retryable


def test_a_number_cut_at_max_tokens_is_still_a_number(play: Play) -> None:
    schema = {"type": "integer", "minimum": 10**15}
    ends = [
        play().add_and_finish(constrained(schema, max_tokens=limit)).events[-1]
        for limit in range(1, 40)
    ]
    cut = [end for end in ends if isinstance(end, Completion) and end.finish_reason == "length"]
    assert cut
    assert all(json.loads(answer.text) >= 10**15 for answer in cut)


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "no such type"}, "no such type"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "minLength"),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
        ({"$ref": "http://127.0.0.1:9/schema"}, "127.0.0.1"),
        ({"type": "string", "default": object()}, "object"),
        ({"const": float("inf")}, "Out of range"),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_refused_by_name(
    play: Play, schema: dict[str, Any], named: str
) -> None:
    with pytest.raises(ModelRequestError, match="schema") as raised:
        play().answer(constrained(schema))
    assert named in str(raised.value)


def test_a_schema_may_be_any_mapping_and_cannot_loosen_the_style(play: Play) -> None:
    style = {"whitespace_flexible": True, "item_separator": " ,    "}
    schema = MappingProxyType({**BOOK, "x-guidance": style})
    assert '", "year": ' in play().answer(constrained(schema)).text


def test_a_grammar_is_followed_and_its_words_are_not_taken_for_numbers(play: Play) -> None:
    grammar = 'start: WORD{2,4} "."\nWORD: /base64(encode|decode)|[0-9]{25} ?/'
    playback = play()
    warm = replace(constrained(None).sampling, temperature=4.0)
    held = [
        playback.add(replace(constrained(None), grammar=grammar, sampling=replace(warm, seed=seed)))
        for seed in range(20)
    ]
    playback.finish()
    texts = [one.completion.text for one in held]
    assert all(re.fullmatch(r"(base64(en|de)code|[0-9]{25} ?){2,4}\.", text) for text in texts)
    assert {"encode", "decode"} <= set(re.findall("encode|decode", "".join(texts)))
    assert any(re.search("[0-9]{25}", text) for text in texts)


def test_text_of_a_grammar_that_was_cut_off_says_so(play: Play) -> None:
    request = replace(constrained(None, max_tokens=3), grammar="start: /[a-z]{40}/")
    answer = play().answer(request)
    assert answer.finish_reason == "length"
    assert 3 <= len(answer.text) < 40


def test_a_grammar_that_is_none_is_refused_in_short(play: Play) -> None:
    with pytest.raises(ModelRequestError, match="nobody") as raised:
        play().answer(replace(constrained(None), grammar="start: nobody"))
    assert len(str(raised.value)) < 500


def test_stop_strings_and_a_schema_exclude_one_another(play: Play) -> None:
    request = replace(constrained(BOOK), sampling=Sampling(stop=("}",)))
    with pytest.raises(ModelRequestError, match="exclude"):
        play().answer(request)


def test_numbers_end_although_the_grammar_lets_them_go_on(play: Play) -> None:
    playback = play()
    heard = [
        playback.add(constrained({"type": kind}, seed))
        for kind in ("number", "integer")
        for seed in range(30)
    ]
    playback.finish()
    texts = [h.completion.text for h in heard]
    assert max(map(len, texts)) in range(20, 30)
    assert all(math.isfinite(json.loads(text)) for text in texts)


def test_a_number_that_must_be_long_is_long(play: Play) -> None:
    schema = {"type": "string", "pattern": "^[0-9]{60}$"}
    assert len(play().answer(constrained(schema)).text) == 62
    for number in (-0.0012345678901234567, 1e100):
        assert float(play().answer(constrained({"const": number})).text) == number


def test_strings_end_although_the_schema_lets_them_go_on(play: Play) -> None:
    playback = play(replace(EXACT, max_string_chars=10))
    searched = {"type": "string", "pattern": "[0-9]{3}"}
    short = [playback.add(constrained({"type": "string"}, seed)) for seed in range(12)]
    longer = [playback.add(constrained(searched, seed)) for seed in range(12)]
    playback.finish()
    assert all(len(json.loads(heard.completion.text)) <= 10 for heard in short)
    for heard in longer:
        text = json.loads(heard.completion.text)
        assert len(text) <= 200
        jsonschema.validate(text, searched)


def test_bounds_that_nothing_fits_are_dropped(play: Play) -> None:
    playback = play(replace(EXACT, max_string_chars=10))
    long = {"allOf": [{"type": "string", "minLength": 30, "maxLength": 40}, {"type": "string"}]}
    assert 30 <= len(json.loads(playback.answer(constrained(long)).text)) <= 40


def test_bounds_are_put_only_where_there_are_none() -> None:
    loose = {"type": "array", "items": {"type": ["array", "null"]}}
    schema = {
        "type": "object",
        "properties": {
            "a": loose,
            "b": {"type": "array", "maxItems": 9},
            "c": {"const": [1, 2]},
            "d": {"type": "string", "minLength": 50},
            "e": {"type": "string", "format": "email"},
            "f": {"type": "string", "enum": ["x"]},
            "type": {"type": "integer"},
        },
        "$defs": {"d": {"anyOf": [{"type": "array", "minItems": 5}, {"type": "string"}, True]}},
        "description": "a string",
    }
    before = copy.deepcopy(schema)
    assert SchemaBounds(7, 3).put_on(schema) == {
        "type": "object",
        "properties": {
            "a": {
                "type": "array",
                "items": {"type": ["array", "null"], "maxItems": 3},
                "maxItems": 3,
            },
            "b": {"type": "array", "maxItems": 9},
            "c": {"const": [1, 2]},
            "d": {"type": "string", "minLength": 50, "maxLength": 50},
            "e": {"type": "string", "format": "email", "maxLength": 200},
            "f": {"type": "string", "enum": ["x"]},
            "type": {"type": "integer"},
        },
        "$defs": {
            "d": {
                "anyOf": [
                    {"type": "array", "minItems": 5, "maxItems": 5},
                    {"type": "string", "maxLength": 7},
                    True,
                ]
            }
        },
        "description": "a string",
    }
    assert schema == before
    assert SchemaBounds(None, None).put_on(schema) == schema


PIECES = [
    "1",
    "-2.5",
    "3e1",
    "12345678901234567890",
    '"a 1 \\\\"',
    '"\\" 漢 7"',
    "true",
    '{"1": -0}',
]


@given(pieces=st.lists(st.sampled_from(PIECES)), end=st.integers(0, 400), cut=st.integers(0, 400))
def test_the_number_that_json_ends_in_is_measured(pieces: list[str], end: int, cut: int) -> None:
    text = ("[" + ", ".join(pieces) + "]")[:end]
    watch = NumberScanner()
    watch.read(text.encode()[:cut])
    watch.read(text.encode()[cut:])
    outside = re.sub(r'"(\\.|[^"\\])*("|$)', "", text)
    number = re.search(r"[-0-9][-+.0-9eE]*$", outside)
    assert watch.characters == (len(number[0]) if number else 0)


def test_infinity_is_not_an_answer() -> None:
    assert _finite("1e99") == 1e99
    with pytest.raises(ValueError, match="too large"):
        _finite("1e999")


def test_a_failing_grammar_ends_its_row_only(
    play: Play, monkeypatch: pytest.MonkeyPatch, vocabulary: Vocabulary
) -> None:
    playback = play()
    broken, fine = playback.add(constrained(BOOK)), playback.add(constrained(BOOK, seed=1))
    playback.batcher.step()

    class Panic(BaseException):
        pass

    def panic(_: object) -> None:
        raise Panic("boom")

    monkeypatch.setattr(playback.batcher.rows[0]._grammar, "restrict", panic)
    playback.finish()
    assert json.loads(fine.completion.text)
    with pytest.raises(Exception, match="boom"):
        _ = broken.completion


@pytest.mark.model
def test_random_schemas_on_a_real_model(smollm2: Any) -> None:
    options = LocalOptions(max_string_chars=30, max_items=3)
    network = Network.load(smollm2, options)
    words = Vocabulary.load(smollm2, network.vocabulary_size, network.generation.end_ids)
    playback = Playback(Batcher(network, words, options, "smollm2"))
    source = random.Random(5)
    asked = []
    for seed in range(8):
        schema = random_schema(source)
        asked.append((schema, playback.add(constrained(schema, seed, max_tokens=300))))
    playback.finish()
    for schema, heard in asked:
        jsonschema.validate(json.loads(heard.completion.text), schema)
