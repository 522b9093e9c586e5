from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the compact tokenizer needs weft[local]")

from transformers import AutoTokenizer

from evals.reasoning.countdown.problem import Range
from evals.reasoning.countdown.sequences import Recipe, training_texts
from evals.reasoning.countdown.vocabulary import compact_tokenizer
from weft.serving.local.tokenizer import LocalTokenizer

TOKENIZER = compact_tokenizer()


def tokens(text: str) -> list[str]:
    return TOKENIZER.convert_ids_to_tokens(TOKENIZER(text, add_special_tokens=False).input_ids)


@pytest.mark.parametrize("kind", ["apr", "sos"])
def test_every_trace_is_read_back_from_its_tokens(kind: str) -> None:
    def count(text: str) -> int:
        return len(TOKENIZER(text).input_ids)

    for call in training_texts(kind, Recipe(Range(4)), 5, 4, (), count):
        ids = TOKENIZER(call).input_ids
        assert TOKENIZER.unk_token_id not in ids
        assert ids[0] == TOKENIZER.bos_token_id
        assert TOKENIZER.decode(ids, skip_special_tokens=True) == call


def test_phrases_and_small_numbers_are_one_token() -> None:
    assert tokens("Moving to Node #0,12\n") == ["Moving to Node #", "0", ",", "12", "\n"]
    assert tokens("<Calling Sub Searches>\n") == ["<Calling Sub Searches>\n"]


@pytest.mark.parametrize(
    ("number", "chunks"),
    [
        ("999", ["999"]),
        ("9801", ["9", "801"]),
        ("12005", ["12", "005"]),
        ("1000000", ["1", "000", "000"]),
    ],
)
def test_large_numbers_are_chunks_from_the_right(number: str, chunks: list[str]) -> None:
    assert tokens(number) == chunks


def test_what_no_trace_has_is_unknown_and_never_special() -> None:
    assert tokens("é") == ["<unk>"]
    assert "</s>" not in TOKENIZER.tokenize("x", add_special_tokens=False)


def test_a_model_that_writes_the_name_of_its_unknown_token_can_be_quoted() -> None:
    quoted = LocalTokenizer(TOKENIZER).encode_plain("1, <unk>")
    assert [TOKENIZER.convert_ids_to_tokens(token) for token in quoted] == ["1", ", ", "<unk>"]


def test_the_files_are_loaded_by_transformers(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = "Exploring Operation: 65-54=11, Resulting Numbers: [11]\n"
    assert again(text).input_ids == TOKENIZER(text).input_ids
    assert again.decode(again(text).input_ids, skip_special_tokens=True) == text
