import asyncio
from collections.abc import Callable

import pytest

from weft.core.errors import ModelRequestError, ModelUnavailable
from weft.core.ports import ModelRequest, Prefilled, Sampling, TextDelta, Tokenizing, complete
from weft.core.values import Completion, Message
from weft.testing import FakeClock, TokenModel, TokenReply
from weft.testing.token_model import END


def ask(
    model: TokenModel, prompt: str = "q", sampling: Sampling | None = None
) -> tuple[str, Completion]:
    async def run() -> tuple[str, Completion]:
        shown, last = "", None
        request = ModelRequest(prompt_token_ids=model.read(prompt), sampling=sampling or Sampling())
        async for event in model.generate(request):
            if isinstance(event, TextDelta):
                shown += event.text
            elif isinstance(event, Completion):
                last = event
        assert last is not None
        return shown, last

    return FakeClock().run(run())


def test_it_ends_with_its_end_token() -> None:
    shown, done = ask(TokenModel(lambda *_: "hi"))
    assert (shown, done.text, done.finish_reason, done.stop) == ("hi", "hi", "stop", None)
    assert done.token_ids == (ord("h"), ord("i"), END)
    assert done.usage.completion_tokens == 3


def test_it_stops_at_a_special_token_whose_text_it_hides() -> None:
    model = TokenModel(lambda *_: "a<T>b</T>c", tags=("<T>", "</T>"))
    close = model.read("</T>")[0]
    shown, done = ask(model, sampling=Sampling(stop_token_ids=(close,)))
    assert (shown, done.text, done.stop) == ("ab", "ab", close)
    assert model.spell(done.token_ids) == "a<T>b</T>"


@pytest.mark.parametrize("written", ["one</T>two", "o</Tne</T>two", "</</T>", "<</T></T>"])
def test_a_stop_text_is_held_back_and_cut_off(written: str) -> None:
    shown, done = ask(TokenModel(lambda *_: written), sampling=Sampling(stop=("</T>", "zz")))
    expected = written[: written.index("</T>")]
    assert (shown, done.text, done.stop) == (expected, expected, "</T>")
    assert "".join(map(chr, done.token_ids)) == expected + "</T>"


def test_what_only_looked_like_a_stop_is_shown_at_the_end() -> None:
    shown, done = ask(TokenModel(lambda *_: "ab</T"), sampling=Sampling(stop=("</T>",)))
    assert (shown, done.text, done.finish_reason) == ("ab</T", "ab</T", "stop")
    shown, done = ask(
        TokenModel(lambda *_: "ab</T"), sampling=Sampling(stop=("</T>",), max_tokens=4)
    )
    assert (shown, done.text, done.finish_reason) == ("ab</", "ab</", "length")


def test_lengths_and_the_window_end_it() -> None:
    def endless(*_: object) -> TokenReply:
        return TokenReply("x", endless=True)

    assert ask(TokenModel(endless), sampling=Sampling(max_tokens=5))[0] == "xxxxx"
    assert ask(TokenModel(endless, context_tokens=10), "12345678")[0] == "xx"
    with pytest.raises(ModelRequestError, match="no room"):
        ask(TokenModel(endless, context_tokens=8), "12345678")


def test_user_text_cannot_spell_a_special_token() -> None:
    model = TokenModel(lambda *_: "", tags=("<T>",))
    assert isinstance(model, Tokenizing)
    tag = asyncio.run(model.special_token("<T>"))
    assert tag is not None
    assert asyncio.run(model.encode("<T>", special=True)) == (tag,)
    assert tag not in asyncio.run(model.encode("a<T>b"))
    chat = asyncio.run(model.encode_chat((Message("user", "<T><|end|>"),)))
    assert (chat.count(tag), chat.count(END)) == (0, 1)
    assert asyncio.run(model.decode(chat)) == "<|user|><T><|end|><|end|><|assistant|>"


def test_it_reports_cached_blocks_and_takes_time_for_the_rest() -> None:
    model = TokenModel(lambda *_: "a" * 15, prefill_s=1.0, per_token_s=0.5)
    times = []

    async def run(prompt: str) -> int:
        start_s = asyncio.get_running_loop().time()
        request = ModelRequest(prompt_token_ids=model.read(prompt))
        async for event in model.generate(request):
            if isinstance(event, Prefilled):
                times.append(asyncio.get_running_loop().time() - start_s)
            elif isinstance(event, Completion):
                return event.usage.cached_tokens
        raise AssertionError

    async def main() -> list[int]:
        return [await run("q" * 33), await run("q" * 33 + "a" * 15), await run("q" * 32)]

    assert FakeClock().run(main()) == [0, 32, 16]
    assert times == [33.0, 16.0, 16.0]


def test_it_breaks_fails_and_is_cancelled() -> None:
    def broken(*_: object) -> TokenReply:
        return TokenReply("abc", break_after_tokens=2)

    with pytest.raises(ModelUnavailable, match="broke off"):
        ask(TokenModel(broken))
    failing: Callable[..., TokenReply] = lambda *_: TokenReply(error=ModelUnavailable("down"))  # noqa: E731
    with pytest.raises(ModelUnavailable, match="down"):
        ask(TokenModel(failing))
    model = TokenModel(lambda *_: TokenReply("x", endless=True), per_token_s=1.0)

    async def cancelled() -> None:
        async with asyncio.timeout(3.5):
            async for _ in model.generate(ModelRequest(prompt_token_ids=(1,))):
                pass

    with pytest.raises(TimeoutError):
        FakeClock().run(cancelled())
    assert (model.cancelled, model.running, model.generated) == (1, 0, 3)


def test_a_server_may_hide_its_token_ids() -> None:
    _, done = ask(TokenModel(lambda *_: "hi", hides_token_ids=True))
    assert (done.text, done.token_ids, done.usage.completion_tokens) == ("hi", (), 3)


def test_a_model_that_thinks_and_whose_prompt_opens_the_thought() -> None:
    tags = ("<think>", "</think>")
    model = TokenModel(lambda *_: "hm</think>42", tags=tags, opening="<think>\n", shows_tags=True)
    chat = asyncio.run(model.encode_chat((Message("user", "?"),)))
    assert asyncio.run(model.decode(chat)) == "<|user|>?<|end|><|assistant|><think>\n"
    answer = asyncio.run(complete(model, ModelRequest(prompt_token_ids=chat)))
    assert answer.text == "hm</think>42"
