from __future__ import annotations

from pathlib import Path

import pytest

from weft.core.errors import InputError
from weft.training.prompts import Tokenizer, read_prompts
from weft.training.starter_prompts import starter_prompts


def test_lines_of_text_are_prompts(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("first\n\n  second \nthird\u2028still third", "utf-8")
    expected = [(("user", "first"),), (("user", "second"),), (("user", "third\u2028still third"),)]
    assert read_prompts(tmp_path / "p.txt") == expected


def test_lines_of_json_are_prompts_or_conversations(tmp_path: Path) -> None:
    turns = '[{"role": "system", "content": "s"}, {"role": "user", "content": "u", "x": 1}]'
    lines = ['"bare"', '{"prompt": "p"}', f'{{"messages": {turns}}}', ""]
    (tmp_path / "p.jsonl").write_text("\n".join(lines), "utf-8")
    expected = [(("user", "bare"),), (("user", "p"),), (("system", "s"), ("user", "u"))]
    assert read_prompts(tmp_path / "p.jsonl") == expected


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "a.jsonl").write_text('"a"')
    (tmp_path / "c.md").write_text("not this")
    assert read_prompts(tmp_path) == [(("user", "a"),), (("user", "b"),)]


@pytest.mark.parametrize(
    "line",
    ["{", "3", "null", "[]", '""', '{"prompt": 3}', '{"prompt": " "}', '{"messages": []}',
     '{"messages": ["x"]}', '{"messages": [{"role": "tool", "content": "x"}]}', '{"a": "x"}',
     '{"messages": [{"role": "user", "content": null}]}', "[" * 200_000],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "p.jsonl").write_text('"fine"\n' + line)
    with pytest.raises(InputError, match=r"p\.jsonl, line 2"):
        read_prompts(tmp_path / "p.jsonl")


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_prompts(tmp_path / "missing.txt")
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(InputError, match="has no prompts"):
        read_prompts(tmp_path / "empty.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        read_prompts(tmp_path / "bytes.txt")


def test_a_chat_template_opens_the_answer(tiny_path: Path) -> None:
    tokenizer = Tokenizer(tiny_path)
    tokens = tokenizer.encode((("user", "the fox"),))
    assert tokenizer.decode(tokens) == (
        "<|im_start|>user\nthe fox<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no tokenizer"):
        Tokenizer(tmp_path)


def test_weft_brings_prompts_of_many_kinds() -> None:
    prompts = starter_prompts()
    assert len(prompts) == len(set(prompts)) == 480
    assert prompts == starter_prompts()
    texts = [text for ((role, text),) in prompts if role == "user"]
    assert len(texts) == 480
    assert 5 < sum("JSON" in text for text in texts) < 200
    assert 5 < sum("```" in text for text in texts) < 200
    assert max(map(len, texts)) < 2000
