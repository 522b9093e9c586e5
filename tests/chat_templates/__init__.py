"""Chat templates of eight families of models, with tokenizers that have their special tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from weft.serving.text import FormatName, ReasoningStyle

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Family:
    """A family of models: its template, its special tokens, and its form of thoughts and calls.

    `tags` are tokens that are no special ones. `thinking` and `silent`: variables that switch
    thoughts on and off, as far as the template has any.
    """

    name: str
    special: tuple[str, ...]
    eos: str
    bos: str = ""
    tags: tuple[str, ...] = ()
    style: ReasoningStyle | None = None
    tool_format: FormatName = "hermes"
    thinking: Mapping[str, Any] = field(default_factory=dict)
    silent: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def template(self) -> str:
        return (FOLDER / f"{self.name}.jinja").read_text("utf-8")

    def write(self, folder: Path) -> Path:
        """The files of a tokenizer whose other tokens are bytes."""
        folder.mkdir(parents=True, exist_ok=True)
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        backend = Tokenizer(models.BPE(vocab={c: n for n, c in enumerate(alphabet)}, merges=[]))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.decoder = decoders.ByteLevel()
        backend.add_special_tokens([AddedToken(text, special=True) for text in self.special])
        backend.add_tokens([AddedToken(text, special=False) for text in self.tags])
        backend.save(str(folder / "tokenizer.json"))
        named = {"bos_token": self.bos, "eos_token": self.eos}
        config = {"tokenizer_class": "TokenizersBackend", **{k: v for k, v in named.items() if v}}
        (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
        (folder / "chat_template.jinja").write_text(self.template, "utf-8")
        return folder


def _deepseek(*names: str) -> tuple[str, ...]:
    return tuple(f"<\uff5c{name.replace(' ', chr(0x2581))}\uff5c>" for name in names)


_DEEPSEEK = _deepseek(
    *("begin of sentence", "end of sentence", "User", "Assistant"),
    *("tool calls begin", "tool call begin", "tool sep", "tool call end", "tool calls end"),
    *("tool outputs begin", "tool output begin", "tool output end", "tool outputs end"),
)
_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_THINK = ("<think>", "</think>")

FAMILIES = {
    family.name: family
    for family in (
        Family(
            "qwen3",
            special=_CHATML,
            tags=("<tool_call>", "</tool_call>", *_THINK),
            eos="<|im_end|>",
            style="think",
            thinking={"enable_thinking": True},
            silent={"enable_thinking": False},
        ),
        Family(
            "deepseek-r1-distill",
            special=_DEEPSEEK,
            tags=_THINK,
            bos=_DEEPSEEK[0],
            eos=_DEEPSEEK[1],
            style="think-open",
        ),
        Family(
            "gpt-oss",
            special=(
                *("<|startoftext|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>"),
                *("<|constrain|>", "<|return|>", "<|call|>"),
            ),
            bos="<|startoftext|>",
            eos="<|return|>",
            style="harmony",
            thinking={"reasoning_effort": "high"},
            silent={"reasoning_effort": "low"},
        ),
        Family(
            "llama3",
            special=(
                *("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"),
                *("<|eom_id|>", "<|python_tag|>"),
            ),
            bos="<|begin_of_text|>",
            eos="<|eot_id|>",
            tool_format="json",
        ),
        Family(
            "gemma3",
            special=("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
            bos="<bos>",
            eos="<end_of_turn>",
            tool_format="json",
        ),
        Family(
            "mistral",
            special=(
                *("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
                *("[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
                *("[THINK]", "[/THINK]"),
            ),
            bos="<s>",
            eos="</s>",
            style="mistral",
            tool_format="mistral",
        ),
        Family(
            "smollm3",
            special=_CHATML,
            tags=_THINK,
            eos="<|im_end|>",
            style="think",
            thinking={"enable_thinking": True},
            silent={"enable_thinking": False},
        ),
        Family(
            "granite",
            special=("<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"),
            eos="<|end_of_text|>",
            style="granite",
            thinking={"thinking": True},
            silent={"thinking": False},
        ),
    )
}
