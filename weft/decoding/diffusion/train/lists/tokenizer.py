"""The tokenizer of the list models: a token for each word, and a chat template for questions.

A conversation is `operation [arguments] | item item ...`; the answer is items. Knows no weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from weft.decoding.diffusion.oracle import vocabulary as words

_SPECIAL: Final = 4
"""The first ids are no words: padding, end, separator, mask."""
_SPACE: Final = "Ġ"
"""How byte-level tokenizers write the space that a word begins with."""
_TEMPLATE: Final = (
    "{% for message in messages %}{% if message.role == 'user' %}"
    " {{ message.content | trim | replace(' |', '<sep>') }}<sep>"
    "{% else %}{{ raise_exception('a question is one message of the user') }}{% endif %}"
    "{% endfor %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Reads words of the list languages, between single spaces, and no others."""
    spelling = {
        token if number < _SPECIAL else _SPACE + token: number
        for number, token in enumerate(words.TOKENS)
    }
    backend = Tokenizer(models.WordLevel(spelling, unk_token="<unknown>"))  # noqa: S106 - none
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(" ", "merged_with_next"),
            pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in words.TOKENS[:_SPECIAL]]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=words.TOKENS[words.EOS],
        pad_token=words.TOKENS[words.PAD],
        chat_template=_TEMPLATE,
    )


def write_tokenizer(folder: Path) -> None:
    """Beside the weights of a list model. Raises: `OSError`."""
    tokenizer().save_pretrained(folder)
