"""The compact tokenizer of the Countdown models: a phrase or an integer up to 999 is one token.

Larger numbers are chunks of three digits, counted from the right. What it saves is loaded by
transformers and by weft. Knows nothing of searches but the phrases they are written in.
"""

from __future__ import annotations

from typing import Final

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteFallback, Fuse
from tokenizers.decoders import Sequence as Decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

SPECIAL: Final = ("<pad>", "<s>", "</s>", "<unk>")
PHRASES: Final = (
    "Sub Call Budget: ",
    "Token Budget: ",
    "Moving to Node #",
    "Current State: ",
    "], Operations: [",
    "Exploring Operation: ",
    ", Resulting Numbers: [",
    "Generated Node #",
    "] Operation: ",
    " unequal: No Solution\n",
    " equal: Goal Reached\n",
    "No solution found.\n",
    "<Calling Sub Searches>\n",
    "<Start Sub Search ",
    " at level 1> ",
    "<End Calling Sub Searches>\n",
    "<Sub Searches>\n",
    "<No Solution in Sub Search ",
    "<Goal Reached in Sub Search ",
    " at level 1 at Node #",
    ">\n",
    "<End Sub Searches>\n",
    "Start Sub Search at level ",
    "Exit Sub Search at level ",
    ": No Solution\n",
    "]\n",
    ":[",
    ", ",
    "', '",
)
SIGNS: Final = "+-*/=,:[]' \n<>#."
NUMBER: Final = r"[0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9]))"


def compact_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer, with `<s>` in front of a text; a character that no trace has is `<unk>`."""
    numbers = [str(n) for n in range(1000)] + [f"{n:03}" for n in range(100)]
    words = dict.fromkeys((*SPECIAL, *PHRASES, *SIGNS, *numbers))
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    longest_first = sorted(PHRASES, key=len, reverse=True)
    pattern = "|".join((*map(_quoted, longest_first), NUMBER, r"[\s\S]"))
    tokenizer.pre_tokenizer = Split(Regex(pattern), behavior="isolated")
    tokenizer.decoder = Decoders([ByteFallback(), Fuse()])  # Fuse alone is unknown to llguidance
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", SPECIAL.index("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


def _quoted(phrase: str) -> str:
    return "".join(f"\\{c}" if c in ".[]*+-/#'<>^$(){}?|" else c for c in phrase)
