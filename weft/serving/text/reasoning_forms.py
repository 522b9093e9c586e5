"""The forms in which models write their thoughts, and which of them a chat template shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

ReasoningStyle = Literal["think", "think-open", "mistral", "granite", "harmony"]


@dataclass(frozen=True, slots=True)
class ReasoningTags:
    """Texts around a thought: any of `opens` begins it, any of `closes` ends it.

    `wrap` is a pair of tags that may stand around the answer. `opened`: the prompt has begun the
    thought.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...]
    wrap: tuple[str, str] | None = None
    opened: bool = False


TAGS: Final[Mapping[ReasoningStyle, ReasoningTags]] = {
    "think": ReasoningTags(("<think>",), ("</think>",)),
    "think-open": ReasoningTags(("<think>",), ("</think>",), opened=True),
    "mistral": ReasoningTags(("[THINK]",), ("[/THINK]",)),
    "granite": ReasoningTags(
        ("<think>", "Here is my thought process:", "Here's my thought process:"),
        ("</think>", "Here is my response:", "Here's my response:"),
        wrap=("<response>", "</response>"),
    ),
}
"""The forms of tags: think (Qwen3, SmolLM3, DeepSeek-R1), think-open (the same where the prompt
ends with the opening tag), mistral (Magistral), granite (3.2 in words, 3.3 in tags)."""

CHANNEL: Final = "<|channel|>"
MESSAGE: Final = "<|message|>"
HARMONY_ASSISTANT: Final = "<|start|>assistant"
HARMONY_MARKS: Final = (
    *("<|start|>", CHANNEL, MESSAGE, "<|constrain|>"),
    *("<|end|>", "<|return|>", "<|call|>"),
)
"""The special tokens of OpenAI's harmony format (gpt-oss)."""


def marks_of(style: ReasoningStyle | None) -> tuple[str, ...]:
    """The texts that mark a thought in the form `style`."""
    if style is None:
        return ()
    if style == "harmony":
        return HARMONY_MARKS
    return (*TAGS[style].opens, *TAGS[style].closes)


def opened_thought(prompt: str) -> ReasoningTags | None:
    """The tags of the thought that `prompt` ends with opening; None without one."""
    end = prompt.rstrip()
    return next(
        (TAGS[style] for style in ("think", "mistral") if end.endswith(TAGS[style].opens)), None
    )


def mentions_thoughts(template: str) -> bool:
    """Whether a chat template may show the form of its model's thoughts, and is to be rendered."""
    return any(mark in template for mark in ("think>", "[THINK]", CHANNEL))


def style_of(template: str, prompt: str) -> ReasoningStyle | None:
    """The form of a model with the chat `template`, which renders `prompt`; None where it is not
    certain: some models think in a form that their template does not mention.
    """
    if CHANNEL in template and MESSAGE in template:
        return "harmony"
    if "[THINK]" in template:
        return "mistral"
    if prompt.rstrip().endswith("<think>"):
        return "think-open"
    if "</think>" not in template:
        return None
    return "granite" if "<response>" in template else "think"


def style_after(style: ReasoningStyle | None, beginning: str) -> ReasoningStyle | None:
    """The form of what follows the `beginning` of an unfinished answer: a thought is open there or
    not, whatever the prompt did.
    """
    if style not in ("think", "think-open") or not beginning:
        return style
    return "think-open" if beginning.rfind("<think>") > beginning.rfind("</think>") else "think"


def continued(prompt: str, answer: str) -> str:
    """`prompt` followed by the beginning of its `answer`.

    A thought that the prompt opens is closed first, unless the answer opens it again or closes it.
    A harmony answer goes to the channel `final`.
    """
    if not answer:
        return prompt
    if prompt.endswith(HARMONY_ASSISTANT) and not answer.startswith(CHANNEL):
        return f"{prompt}{CHANNEL}final{MESSAGE}{answer}"
    tags = opened_thought(prompt)
    if tags is None:
        return prompt + answer
    opening = next((tag for tag in tags.opens if answer.lstrip().startswith(tag)), None)
    if opening is not None:
        return prompt + answer.lstrip().removeprefix(opening).lstrip("\n")
    if any(tag in answer for tag in tags.closes):
        return prompt + answer
    return f"{prompt}\n{tags.closes[0]}\n\n{answer}"
