"""A server that does not stop at `max_tokens` is left there, and the answer is cut off."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.serving.openai.endpoint_calls import ask, question
from tests.serving.openai.scripted import EndpointServer, Json, Script, chunk, says, usage
from weft.core.errors import ModelOutputError
from weft.core.ports import ModelRequest, Sampling, complete
from weft.serving.openai import OpenAIModel

ENDLESS = [
    chunk({"content": "again and again. "}),
    chunk({"reasoning": "again and again. "}),
    chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "1"}}]}),
]


def limited(tokens: int) -> ModelRequest:
    return question(sampling=Sampling(max_tokens=tokens))


@pytest.mark.parametrize("piece", ENDLESS)
def test_an_endless_answer_is_cut_off(endpoints: EndpointServer, piece: Json) -> None:
    endpoint = endpoints.add(Script([piece], repeat=True))

    async def main() -> None:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as client:
            answer = await complete(client, limited(10))
            assert answer.finish_reason == "length"
            assert 10 < answer.usage.completion_tokens <= 10 + 16 + 2
            await endpoint.settled(broken_off=1)  # the server is told to stop

    asyncio.run(main())


def test_token_ids_are_counted_where_they_are_told(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(Script([chunk({"content": "ab"}, token_ids=[1, 2])], repeat=True))
    answer = ask(endpoint, limited(10))
    assert (answer.finish_reason, len(answer.token_ids)) == ("length", 12)
    assert answer.text == "ab" * 6


def test_pieces_that_are_too_long_for_a_token_count_as_several(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(Script([chunk({"content": "x" * 5120})], repeat=True))
    answer = ask(endpoint, limited(20))
    assert (answer.finish_reason, len(answer.text)) == ("length", 4 * 5120)


def test_one_id_is_no_licence_to_go_on(endpoints: EndpointServer) -> None:
    first = chunk({"content": "x"}, token_ids=[1])
    endpoint = endpoints.add(Script([first, chunk({"content": "x" * 512})], repeat=True))
    assert ask(endpoint, limited(10)).finish_reason == "length"


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_answer_of_its_whole_length_is_as_the_server_says(
    endpoints: EndpointServer, finish: str
) -> None:
    text = " ".join("abcdefghij")
    answer = ask(endpoints.add(says(text, finish)), limited(10))
    assert (answer.text, answer.finish_reason, answer.usage.completion_tokens) == (text, finish, 10)
    ids = [chunk({"content": "a"}, token_ids=[n]) for n in range(10)]
    script = Script([*ids, chunk(finish=finish), usage(1, 10)])
    assert ask(endpoints.add(script), limited(10)).finish_reason == finish


def test_tokens_that_come_in_several_pieces_are_no_offence(endpoints: EndpointServer) -> None:
    answer = ask(endpoints.add(says(" ".join("a" * 26))), limited(10))
    assert (answer.finish_reason, len(answer.text)) == ("stop", 51)


def test_without_a_limit_the_characters_are_bounded(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(Script([ENDLESS[0]], repeat=True))
    with pytest.raises(ModelOutputError, match="larger than 1,000 characters"):
        ask(endpoint, max_answer_chars=1000)
