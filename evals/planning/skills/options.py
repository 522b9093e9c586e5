"""What the section `skills` is asked for: which systems, and how many cases of each task."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evals.planning.quality.planned import MAX_TOKENS
from evals.planning.skills.planted import PLANTED

GOLD: Final = "gold"
PREFIX: Final = "planted:"


@dataclass(frozen=True, slots=True)
class SkillOptions:
    """`systems`: `gold`, `planted:KIND`, and models as workflows name them: `local:NAME`; with
    `base_url` the names that an OpenAI-compatible server gives them.

    `limit`: cases of each task; None for all, or a few where time is short. `max_tokens` of an
    answer, thoughts included. `rows`: the skills by name; none: all. `held`: only plans that
    are held to the grammar.
    """

    systems: tuple[str, ...] = (GOLD,)
    base_url: str = ""
    limit: int | None = None
    max_tokens: int = MAX_TOKENS
    rows: tuple[str, ...] = ()
    held: bool = False

    def declared(self, system: str) -> str | Mapping[str, str]:
        """A model as `Models.of` takes it; a bare name is a model in this process."""
        if self.base_url:
            return {"use": "openai", "model": system, "base_url": self.base_url}
        return system if ":" in system else f"local:{system}"

    def label(self, system: str) -> str:
        """The name in the rows: the model's own, without where it runs or where its folder lies."""
        if is_scripted(system) or self.base_url:
            return system
        name = system.partition(":")[2] or system
        return Path(name).name if system.startswith("local:") else name


def is_scripted(system: str) -> bool:
    """Whether no model answers."""
    return system == GOLD or system.startswith(PREFIX)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the section to the command line of an evaluation."""
    group = parser.add_argument_group("skills", "the section `skills`")
    group.add_argument(
        "--model",
        type=_systems,
        default=(GOLD,),
        metavar="A,B",
        help="local:NAME, vllm:NAME, with --base-url NAME; also gold and planted:KIND, of "
        + ", ".join(PLANTED),
    )
    group.add_argument("--base-url", default="", help="an OpenAI-compatible server")
    group.add_argument("--limit", type=_count, metavar="N", help="cases of each task")
    group.add_argument(
        "--max-tokens", type=_count, default=MAX_TOKENS, help="of an answer, thoughts included"
    )
    group.add_argument(
        "--skills", default="", metavar="A,B", help="only these, such as bfcl_simple,bfcl_parallel"
    )
    group.add_argument(
        "--held", action="store_true", help="only plans that are held to the grammar"
    )


def options_of(asked: argparse.Namespace) -> SkillOptions:
    """The options that a command line asks for."""
    rows = tuple(name for name in asked.skills.split(",") if name)
    return SkillOptions(
        asked.model, asked.base_url, asked.limit, asked.max_tokens, rows, asked.held
    )


def _systems(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if not name:
            raise argparse.ArgumentTypeError("a model has a name")
        kind = name.removeprefix(PREFIX)
        if kind != name and kind not in PLANTED:
            known = ", ".join(PLANTED)
            raise argparse.ArgumentTypeError(f"there is no planted error {kind}; try {known}")
    return names


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not {number}")
    return number
