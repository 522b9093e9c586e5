"""What is known of a published family of models: whose shape it has, its names and its habits.

Knows no files and no torch.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Literal

from weft.decoding.diffusion.adapter import Attention

Body = Literal["llama", "qwen2", "qwen3"]
"""Whose layers a model has: transformers' own class of that model type."""


@dataclass(frozen=True, slots=True)
class Family:
    """A row of the table.

    model_type   of config.json
    classes      names in its `architectures`, for folders whose model type says less
    body         None: the class that transformers has for this model type, if it has one
    keys         by transformers' name of a setting: the published one, where it is another
    only         settings that must have one of these values, if they are there
    tensors      (published, transformers') beginnings of weight names; N stands for a number
    ignored      beginnings of weight names that are left out
    trained      positions it was trained for, where its config says more
    mask_token   its text in the tokenizer, `mask_id` where the folder does not tell
    end_tokens   theirs; `end_ids` where the folder does not tell
    block_key    of config.json; `block` where it is not there. 0: no blocks
    unreadable   tokens of a prompt that stand for what is not read here: images
    preset       decoded with it, unless told otherwise
    refusal      why it is not run, if it is never run
    """

    model_type: str
    preset: str
    body: Body | None = None
    classes: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    tensors: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()
    trained: int | None = None
    mask_token: str = "<|mask|>"  # noqa: S105 - a token of text
    mask_id: int | None = None
    end_tokens: tuple[str, ...] = ()
    end_ids: tuple[int, ...] = ()
    attention: Attention = "full"
    block_key: str = ""
    block: int = 0
    shifted: bool = False
    unreadable: tuple[str, ...] = ()
    refusal: str = ""

    def key(self, config: Container[str], name: str) -> str:
        """The published name of a setting; transformers' own where only that is there."""
        published = self.keys.get(name, name)
        return name if published not in config and name in config else published

    def renamed(self, name: str) -> str:
        """What transformers calls a published weight."""
        for pattern, replacement in self.patterns.items():
            name, found = re.subn(pattern, replacement, name)
            if found:
                break
        return name

    @property
    def patterns(self) -> dict[str, str]:
        """Regular expressions of published beginnings, and what replaces them."""
        return {
            "^" + re.escape(published).replace("N", r"(\d+)") + r"\.": ours.replace("N", r"\1")
            + "."
            for published, ours in self.tensors
        }
