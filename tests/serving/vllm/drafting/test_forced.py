"""What a grammar forces, on a vocabulary of single bytes; and nothing where it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pytest

from weft.serving.vllm.drafting.forced_tokens import ForcedTokens, ForcedTokensCompiler
from weft.serving.vllm.drafting.requests import Constraint

llguidance = pytest.importorskip("llguidance")

END = 256
Kind = Literal["json", "lark", "regex"]
SCHEMA = (
    '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},'
    ' "required": ["name", "age"], "additionalProperties": false}'
)


class Bytes:
    """A tokenizer of single bytes as llguidance wants one."""

    def __init__(self) -> None:
        self.eos_token_id = END
        self.bos_token_id = None
        self.tokens = [bytes([byte]) for byte in range(256)] + [b"<end>"]
        self.special_token_ids = [END]

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


def vocabulary() -> Any:
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


@pytest.fixture
def forcing() -> Iterator[ForcedTokensCompiler]:
    forcing = ForcedTokensCompiler(vocabulary, whitespace_flexible=False)
    yield forcing
    forcing.close()


def begun(forcing: ForcedTokensCompiler, kind: Kind, text: str) -> ForcedTokens:
    forced = forcing(Constraint(kind, text))
    assert forced is not None
    forcing.wait()
    return forced


def spelt(tokens: Sequence[int]) -> bytes:
    return bytes(tokens)


def test_a_schema_forces_its_names_and_nothing_where_the_model_chooses(
    forcing: ForcedTokensCompiler,
) -> None:
    forced = begun(forcing, "json", SCHEMA)
    assert spelt(forced.forced()) == b'{"name":"'
    forced.take(list(b'{"name":"'))
    assert forced.forced() == ()
    forced.take(list(b'Ada"'))
    assert spelt(forced.forced()) == b',"age":'
    assert spelt(forced.forced()) == b',"age":'  # asking changes nothing


def test_a_plan_grammar_forces_its_words(forcing: ForcedTokensCompiler) -> None:
    forced = begun(forcing, "lark", 'start: "call " ("search" | "read") "(" /[a-z]+/ ")"')
    assert spelt(forced.forced()) == b"call "
    forced.take(list(b"call s"))
    assert spelt(forced.forced()) == b"earch("


def test_an_answer_that_begins_before_the_grammar_is_read_catches_up(
    forcing: ForcedTokensCompiler,
) -> None:
    forced = forcing(Constraint("regex", "abcdef"))
    assert forced is not None
    forced.take(list(b"ab"))
    forcing.wait()
    assert spelt(forced.forced()) == b"cdef"
    other = begun(forcing, "regex", "abcdef")
    assert spelt(other.forced()) == b"abcdef"  # each answer has a place of its own


@pytest.mark.parametrize(
    ("kind", "text"), [("json", '{"type": 3}'), ("json", "{"), ("lark", "start: ("), ("regex", "(")]
)
def test_a_grammar_that_cannot_be_read_forces_nothing(
    forcing: ForcedTokensCompiler, kind: Kind, text: str
) -> None:
    forced = begun(forcing, kind, text)
    forced.take(list(b"anything"))
    assert forced.forced() == ()


def test_an_answer_outside_its_grammar_forces_nothing(forcing: ForcedTokensCompiler) -> None:
    forced = begun(forcing, "regex", "abcdef")
    forced.take(list(b"x"))
    assert forced.forced() == ()
    forced.take(list(b"ab"))
    assert forced.forced() == ()


def test_a_tokenizer_that_cannot_be_had_forces_nothing() -> None:
    def missing() -> Any:
        raise OSError("no tokenizer")

    forcing = ForcedTokensCompiler(missing)
    assert begun(forcing, "regex", "abc").forced() == ()
    forcing.close()


def test_a_grammar_of_any_length_is_not_read(forcing: ForcedTokensCompiler) -> None:
    assert forcing(Constraint("json", " " * 1_000_000)) is None
