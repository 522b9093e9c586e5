"""Answers of a given form: by a word in the request, as with models that write on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from tests.serving.local.diffusion.conftest import Playing
from tests.serving.local.diffusion.test_batching import FAST, PROMPTS, facts, fast
from tests.serving.local.playback import EXACT
from weft.core.errors import ModelRequestError
from weft.core.ports import ModelRequest
from weft.core.values import Message

SCHEMA: Any = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 12},
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        "kind": {"enum": ["book", "film", "play"]},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}, "maxItems": 2},
    },
    "required": ["title", "stars", "kind", "tags"],
    "additionalProperties": False,
}
GRAMMAR = 'start: word (", " word){2}\nword: "red" | "green" | "blue"'


def held(prompt: int, schema: Any = SCHEMA, **fields: Any) -> ModelRequest:
    fields = {"max_tokens": 120, "extra": {}, **fields}
    return replace(fast(*PROMPTS[prompt], decode=FAST, **fields), schema=schema)


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_fits_its_schema_in_fewer_forwards_than_tokens(play: Playing, seed: int) -> None:
    heard = play().add_and_finish(held(seed, temperature=1.0, seed=seed))
    answer = heard.completion
    jsonschema.validate(json.loads(answer.text), SCHEMA)
    assert answer.finish_reason == "stop"
    assert answer.denoised is not None
    assert answer.denoised.forwards < answer.usage.completion_tokens


def test_held_and_free_answers_share_a_batch(play: Playing) -> None:
    asked = [held(0), fast(*PROMPTS[1]), held(2, temperature=1.0, seed=4), fast(*PROMPTS[3])]
    lone = [play().answer(request) for request in asked]
    playback = play()
    heard = [playback.add(request) for request in asked]
    playback.finish()
    assert [facts(each.completion) for each in heard] == [facts(answer) for answer in lone]


def test_a_grammar_is_kept(play: Playing) -> None:
    request = replace(fast(*PROMPTS[0], max_tokens=60, extra={}), grammar=GRAMMAR)
    answer = play().answer(request)
    assert re.fullmatch("(red|green|blue)(, (red|green|blue)){2}", answer.text)
    assert answer.finish_reason == "stop"


def test_a_grammar_that_is_cut_off_says_so(play: Playing) -> None:
    request = replace(fast(*PROMPTS[0], max_tokens=2, extra={}), grammar=GRAMMAR)
    assert play().answer(request).finish_reason == "length"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "object", "properties": {}, "additionalProperties": False}, "{}"),
        ({"const": {"a": [1, None]}}, '{"a": [1, null]}'),
    ],
)
def test_a_form_without_anything_open_is_an_answer(play: Playing, schema: Any, text: str) -> None:
    answer = play().answer(held(0, schema))
    assert (answer.text, answer.finish_reason) == (text, "stop")
    assert answer.usage.forwards == 0


def test_a_grammar_that_leaves_no_choice_is_an_answer(play: Playing) -> None:
    request = replace(fast(*PROMPTS[0], max_tokens=60, extra={}), grammar='start: "yes sir"')
    answer = play().answer(request)
    assert (answer.text, answer.finish_reason) == ("yes sir", "stop")


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (held(0, max_tokens=3), "max_tokens|room|tokens"),
        (held(0, {"type": "no such type"}), "schema"),
        (held(0, {"type": "array", "items": {"$ref": "#"}, "minItems": 1}), "hold itself"),
        (held(0, stop=("x",)), "exclude"),
    ],
)
def test_what_cannot_be_held_to_is_refused(
    play: Playing, request_: ModelRequest, said: str
) -> None:
    with pytest.raises(ModelRequestError, match=said):
        play().answer(request_)


def test_advice_that_is_not_for_the_caller_is_left_out(play: Playing) -> None:
    """The grammar engine speaks of its own options."""
    schema = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
    with pytest.raises(ModelRequestError, match="oneOf constraints") as told:
        play().answer(held(0, schema))
    assert told.value.message.endswith("oneOf constraints are not supported")


def test_strings_without_a_bound_get_the_models(play: Playing) -> None:
    free = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    bounded = play(replace(EXACT, max_string_chars=5)).answer(held(0, free))
    assert len(json.loads(bounded.text)["a"]) <= 5


def test_a_model_that_knows_whole_words_only_names_the_one_it_does_not() -> None:
    from weft.serving.local.tokenizer import LocalTokenizer
    from weft.serving.weights import locate

    tokens = LocalTokenizer.read(locate("list-full"))
    assert tokens.encode_chat([Message("user", "sort | Hugo Anna")])
    for text in ("sort | Hugo Zorro Anna", "sort | Zorro"):
        with pytest.raises(ModelRequestError, match="no tokens for 'Zorro'"):
            tokens.encode_chat([Message("user", text)])


def test_a_model_without_the_letters_of_json_says_so() -> None:
    """The list models know whole words only."""
    from weft.decoding.diffusion.models.folder import describe
    from weft.serving.local.grammar import GrammarCompiler
    from weft.serving.local.vocabulary import Vocabulary
    from weft.serving.weights import locate

    path = locate("list-full")
    traits = describe(path).traits
    compiler = GrammarCompiler(Vocabulary.load(path, traits.vocabulary, traits.end_ids), EXACT)
    with pytest.raises(ModelRequestError, match="no tokens of this model"):
        compiler.start(SCHEMA)
