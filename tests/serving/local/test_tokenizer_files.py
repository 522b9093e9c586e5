"""A tokenizer that is read by its files alone is the one that transformers reads."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.serving.local import tiny
from weft.core.errors import ModelRequestError
from weft.core.values import Message
from weft.serving.local.tokenizer import TokenizerFiles, read_tokenizer
from weft.serving.local.vocabulary import Vocabulary

CHAT = (Message("system", "be brief"), Message("user", "hi <|im_end|> there"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer"
    tiny.make_tokenizer().save_pretrained(path)
    change(path, tokenizer_class="TokenizersBackend")
    return path


def change(folder: Path, **changes: Any) -> None:
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


def vocabulary(tokenizer: Any) -> Vocabulary:
    return Vocabulary(tokenizer, len(tokenizer) + 8, frozenset())


def test_it_is_the_tokenizer_that_transformers_reads(folder: Path) -> None:
    found = read_tokenizer(folder)
    assert isinstance(found, TokenizerFiles)
    read = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"):
        assert getattr(found, name) == getattr(read, name)
    one, other = vocabulary(found), vocabulary(read)
    assert one.encode_chat(CHAT) == other.encode_chat(CHAT)
    assert one.encode_plain("naïve <|im_end|>") == other.encode_plain("naïve <|im_end|>")
    assert one.special_token("<|im_start|>") == other.special_token("<|im_start|>") == 1
    assert (one.size, one.end_ids) == (other.size, other.end_ids)
    assert [one.bytes_of(n) for n in range(one.size)] == [
        other.bytes_of(n) for n in range(other.size)
    ]
    with pytest.raises(ModelRequestError, match="no token"):
        one.decode([len(found)])


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages | tojson }}{{ bos_token }}{{ eos_token }}",
        (
            "{% for m in messages %}\n  {% if loop.first %}{% continue %}{% endif %}\n{{ m.role }}"
            "{% endfor %}{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}"
        ),
    ],
)
def test_a_template_gets_what_transformers_gives_it(folder: Path, template: str) -> None:
    (folder / "chat_template.jinja").write_text(template, "utf-8")
    turns = [{"role": message.role, "content": message.content} for message in CHAT]
    found = read_tokenizer(folder)
    assert isinstance(found, TokenizerFiles)
    expected = AutoTokenizer.from_pretrained(folder, local_files_only=True).apply_chat_template(
        turns, tokenize=False, add_generation_prompt=True
    )
    text = found.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert text == expected


@pytest.mark.parametrize(
    ("template", "reason"),
    [("{{ raise_exception('no system') }}", "no system"), ("{{ ''.__class__.x }}", "unsafe")],
)
def test_a_template_may_refuse_but_not_look_into_python(
    folder: Path, template: str, reason: str
) -> None:
    (folder / "chat_template.jinja").write_text(template, "utf-8")
    with pytest.raises(ModelRequestError, match=reason):
        vocabulary(read_tokenizer(folder)).encode_chat(CHAT)


@pytest.mark.parametrize(
    "changes",
    [
        {"tokenizer_class": "LlamaTokenizerFast"},
        {"add_bos_token": True},
        {"eos_token": "<new>"},
        {"eos_token": {"content": "<|im_end|>", "lstrip": True}},
    ],
)
def test_what_it_does_not_know_is_left_to_transformers(
    folder: Path, changes: dict[str, Any]
) -> None:
    change(folder, **changes)
    with pytest.raises(ValueError, match=r"."):
        TokenizerFiles(folder)


def test_templates_with_tags_of_transformers_are_left_to_it(folder: Path, tmp_path: Path) -> None:
    path = copytree(folder, tmp_path / "tagged")
    template = "{% generation %}x{% endgeneration %}"
    (path / "chat_template.jinja").write_text(template, "utf-8")
    assert not isinstance(read_tokenizer(path), TokenizerFiles)
    (path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(ValueError, match=r"tokenizer.json"):
        TokenizerFiles(path)
