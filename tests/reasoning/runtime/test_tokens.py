"""Seams between text and tokens, with a tokenizer whose tokens are longer than a character."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.core.errors import ContextLengthExceeded, ModelRequestError
from weft.core.values import Completion, FinishReason, Message
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.moves import ControlTag, ProtocolText, UntrustedText
from weft.reasoning.runtime.special_tokens import SpecialTokens
from weft.reasoning.runtime.token_codec import TokenCodec, encode_spellable, encoded_chat
from weft.testing import TokenModel

T = TypeVar("T")
END, OPEN, CLOSE = 1, 2, 3
SPECIAL = {END: "<|end|>", OPEN: "<t>", CLOSE: "</t>"}


class Pairs:
    """A token is two characters, or a special token; so text has as many spellings as cuts."""

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        assert not special
        return tuple(self.token(text[at : at + 2]) for at in range(0, len(text), 2))

    def token(self, text: str) -> int:
        return 16 + ord(text[0]) * 0x110000 + (ord(text[1]) + 1 if len(text) > 1 else 0)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await self.encode("".join(message.content for message in messages))

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return "".join(map(self.spell, token_ids))

    def spell(self, token: int) -> str:
        if token in SPECIAL:
            return SPECIAL[token]
        first, second = divmod(token - 16, 0x110000)
        return chr(first) + (chr(second - 1) if second else "")

    async def special_token(self, text: str) -> int | None:
        return next(
            (number for number, spelling in SPECIAL.items() if spelling == text),
            None,
        )


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def tokens(special: bool = False) -> TokenCodec:
    ids = {"<t>": OPEN, "</t>": CLOSE} if special else {}
    return TokenCodec(Pairs(), SpecialTokens(("<t>", "</t>"), ids))


def ids(text: str) -> tuple[int, ...]:
    return run(Pairs().encode(text))


def read(
    completion: Completion, *, special: bool = False, stops: tuple[str, ...] = ("</t>",)
) -> tuple[str, str, str | None, str]:
    some = tokens(special)
    reading = run(some.read(completion, stops))
    return run(some.decode(reading.ids)), reading.ended, reading.stop, reading.text


def completion(text: str, spelling: str, reason: FinishReason = "stop", **more: Any) -> Completion:
    return Completion(text, reason, token_ids=ids(spelling), **more)


def test_a_stop_text_that_ends_inside_a_token_is_cut_off_there() -> None:
    said = completion("one", "one</t>x", stop="</t>")
    assert read(said) == ("one</t>", "stop", "</t>", "one</t>")
    some = tokens()
    kept = run(some.read(said, ("</t>",))).ids
    assert kept[:3] == ids("one</t>x")[:3], "what was generated stays as it was"


def test_the_token_that_ends_an_answer_is_not_part_of_it() -> None:
    ended = Completion("one", token_ids=(*ids("one"), END))
    assert read(ended) == ("one", "end", None, "one")
    word = Completion("one", token_ids=ids("one"))
    assert read(word) == ("one", "end", None, "one"), "a word is never taken for it"
    cut = Completion("one", "length", token_ids=ids("one"))
    assert read(cut) == ("one", "length", None, "one")


def test_a_special_stop_is_found_by_its_id_even_when_the_server_does_not_say() -> None:
    for told in (CLOSE, None):
        said = Completion("one", token_ids=(*ids("one"), CLOSE), stop=told)
        assert read(said, special=True) == ("one</t>", "stop", "</t>", "one</t>")


def test_a_stop_that_was_not_asked_for_is_an_end() -> None:
    said = Completion("one", token_ids=(*ids("one"), CLOSE), stop=CLOSE)
    assert read(said, special=True, stops=("<t>",)) == ("one", "end", None, "one")


def test_servers_may_hide_their_ids() -> None:
    assert read(Completion("one", stop="</t>")) == ("one</t>", "stop", "</t>", "one</t>")
    told = read(Completion("one", stop=CLOSE), special=True)
    assert told == ("one</t>", "stop", "</t>", "one</t>")
    assert read(Completion("one")) == ("one", "end", None, "one")
    assert read(Completion("", "length")) == ("", "length", None, "")


def test_words_that_meet_are_encoded_together_and_ids_are_kept() -> None:
    written = run(
        tokens().write((ProtocolText("a"), ControlTag("<t>"), ids("xyz"), ProtocolText("b")))
    )
    assert written.ids == (*ids("a<t>"), *ids("xyz"), *ids("b"))
    assert (written.text, written.runs) == ("a<t>xyzb", ((2, True), (2, False), (1, True)))
    written = run(
        tokens(special=True).write((ProtocolText("a"), ControlTag("<t>"), ProtocolText("b")))
    )
    assert written.ids == (*ids("a"), OPEN, *ids("b"))


def test_what_others_said_is_guarded_and_cut_to_its_end() -> None:
    written = run(tokens().write((UntrustedText("see <t> and </t>"),)))
    assert written.text == "see \u2039t\u203a and \u2039/t\u203a"
    written = run(tokens().write((UntrustedText("0123456789", 2),)))
    assert (written.text, len(written.ids)) == ("6789", 2)
    assert run(tokens().write((UntrustedText("", 2),))).ids == ()


def test_a_context_is_cut_before_the_last_mark() -> None:
    async def cut(text: str, *, special: bool) -> tuple[str, str]:
        some = tokens(special)
        written = await some.write(
            tuple(ControlTag(p) if p == "<t>" else ProtocolText(p) for p in text.split("|"))
        )
        context = TokenContext((7, 7), written.ids, written.text)
        before = await some.back_to(context, "<t>")
        return before.text, await some.decode(before.ids)

    async def both(special: bool) -> tuple[Any, Any, Any]:
        return (
            await cut("one|<t>|two|<t>|three", special=special),
            await cut("<t>", special=special),
            await cut("none", special=special),
        )

    for special in (False, True):
        assert run(both(special)) == (("one<t>two", "one<t>two"), ("", ""), ("none", "none"))


@examples(200)
@given(st.lists(st.sampled_from(["a", "<", "t", ">", "</t", "<t>", "\u4e2d", "\n"]), max_size=12))
def test_any_text_fits_any_beginning_of_it(words: list[str]) -> None:
    async def check() -> None:
        some, text = tokens(), "".join(words)
        spelling = await Pairs().encode(text)
        for end in range(len(text) + 1):
            kept, rest = await some.fit(spelling, text[:end])
            assert await some.decode((*spelling[:kept], *rest)) == text[:end]
            most = len(spelling) if end == len(text) else end // 2
            assert kept == most, "as much as can be is kept"

    run(check())


@examples(200)
@given(st.lists(st.sampled_from(["<t>", "</t>", "<", "t>", "/", "a"]), max_size=8))
def test_pieces_spell_what_was_written(words: list[str]) -> None:
    async def check() -> None:
        text = "".join(words)
        pieces = await tokens().pieces(await Pairs().encode(text))
        assert "".join(p if isinstance(p, str) else p.text for p in pieces) == text
        assert not [p for p in pieces if isinstance(p, str) and ("<t>" in p or "</t>" in p)]
        plain = await tokens(special=True).pieces(await Pairs().encode(text))
        assert plain in ((), (text,)), "only ids are tags where the tags are special tokens"

    run(check())


class Lacking(Pairs):
    """Has no tokens for texts with `|`. Counts what it is asked to encode."""

    def __init__(self, error: type[ModelRequestError] = ModelRequestError) -> None:
        self.asked = 0
        self.error = error

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        self.asked += 1
        if "|" in text:
            raise self.error("no token spells '|'")
        return await super().encode(text, special=special)


def test_what_a_model_wrote_loses_the_words_that_it_has_no_tokens_for() -> None:
    client = Lacking()
    found = run(encode_spellable(client, "so <|user|> many words and <|end|> then"))
    assert found.text == "so many words and then"
    assert run(client.decode(found.ids)) == found.text
    assert run(encode_spellable(client, "plain")) == (ids("plain"), "plain")
    assert run(encode_spellable(client, "")) == ((), "")
    messages = (Message("user", "a <|user|> b"), Message("assistant", "c"))
    assert run(client.decode(run(encoded_chat(client, messages)))) == "a bc"


@pytest.mark.parametrize(
    ("text", "error"),
    [("|", ModelRequestError), ("| " * 900, ModelRequestError), ("a |", ContextLengthExceeded)],
)
def test_a_text_that_is_not_to_blame_for_its_words_is_refused(
    text: str, error: type[ModelRequestError]
) -> None:
    client = Lacking(error)
    with pytest.raises(error):
        run(encode_spellable(client, text))
    assert client.asked < 60
    with pytest.raises(error):
        run(encoded_chat(client, (Message("user", text),)))


def test_a_text_that_is_one_such_word_is_left_out_of_a_context() -> None:
    codec = TokenCodec(Lacking(), SpecialTokens((), {}))
    written = run(codec.write((UntrustedText("<|user|>"), UntrustedText("so"))))
    assert (written.ids, written.text) == (ids("so"), "so")


def test_what_closes_an_open_thought() -> None:
    model = TokenModel(lambda *_: "", tags=("<think>", "</think>"))
    codec = TokenCodec(model, SpecialTokens((), {}))
    assert run(codec.closing("<think>hm")) == (model.read("\n</think>"),)
    assert run(codec.closing("hm")) == ()


def test_a_prompt_that_opens_a_thought_is_split_there() -> None:
    model = TokenModel(lambda *_: "", tags=("<think>", "</think>"))
    codec = TokenCodec(model, SpecialTokens((), {}))
    prompt = model.read("<|user|>?<|assistant|><think>\n")
    before, opened = run(codec.split_opened(prompt))
    assert (model.spell(before), opened.text) == ("<|user|>?<|assistant|>", "<think>\n")
    assert before + opened.ids == prompt
    assert run(codec.split_opened(before))[1].ids == ()
