"""vLLM's log, read while it starts: how far it is, in words for people. Never fails on any text.

Does not know processes or files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Fact = int | float | str
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class Stage:
    """How far a start is: a name that is the same for every start, and this start's detail."""

    name: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}" if self.detail else self.name


@dataclass(frozen=True, slots=True)
class _Sign:
    """A line that shows a stage. `facts` name the pattern's groups; `tell` words them."""

    stage: str
    pattern: re.Pattern[str]
    facts: tuple[str, ...] = ()
    tell: Callable[[re.Match[str]], str] | None = None


def _cache(found: re.Match[str]) -> str:
    requests = int(float(found[3].replace(",", "")))
    return f"{found[1]} tokens ({requests:,} requests of {found[2]})"


# In the order in which a start reaches them; one of several ranks may lag behind another.
_SIGNS = (
    _Sign("loading the engine", re.compile(r"version (\d[\w.+]*)\s*$"), ("version",)),
    _Sign("reading the model", re.compile(r"Resolved architecture: (\w+)"), ("architecture",)),
    _Sign("reading the model", re.compile(r"Using max model len (\d+)"), ("max_context_tokens",)),
    _Sign("starting workers", re.compile(r"Initializing a V1 LLM engine \(v(\S+)\)"), ("version",)),
    _Sign("loading weights", re.compile(r"Starting to load model ")),
    _Sign(
        "loading weights",
        re.compile(r"checkpoint shards:\s+(\d+)% Completed"),
        tell=lambda found: f"{found[1]} %",
    ),
    _Sign("compiling", re.compile(r"Start compiling|torch\.compile takes|Compiling a graph")),
    _Sign("compiling", re.compile(r"[Ww]arming up model")),
    _Sign(
        "KV cache",
        re.compile(
            r"KV cache size: ([\d,]+) tokens, Maximum concurrency for ([\d,]+) tokens per request: "
            r"([\d.,]+)x"
        ),
        ("kv_cache_tokens", "max_context_tokens", "max_requests"),
        _cache,
    ),
    _Sign("capturing graphs", re.compile(r"Capturing (?:CUDA )?graphs?")),
    _Sign("starting the server", re.compile(r"Starting vLLM server on (\S+)"), ("address",)),
    _Sign("ready", re.compile(r"Application startup complete")),
)
STAGES = tuple(dict.fromkeys(sign.stage for sign in _SIGNS))
_LOADED = re.compile(r"Loading weights took ([\d.]+) seconds")


class Startup:
    """Reads a log line by line. `stage` is how far it came."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self._facts: dict[str, Fact] = {}

    @property
    def facts(self) -> Mapping[str, Fact]:
        """What the log has told so far, under these names where it was told at all.

        version, architecture, address (text); max_context_tokens, kv_cache_tokens (of one engine;
        the smallest where several ranks tell theirs); max_requests of full length at once;
        weights_s.
        """
        return MappingProxyType(self._facts)

    @property
    def ready(self) -> bool:
        """Whether the server said that it takes requests."""
        return self.stage is not None and self.stage.name == "ready"

    @property
    def loaded(self) -> bool:
        """Whether some rank said that it has its weights."""
        return "weights_s" in self._facts

    def feed(self, line: str) -> Stage | None:
        """Take one raw line of the log; the new stage if it shows one. Laggards are not heard."""
        reached: Stage | None = None
        for part in _COLOUR.sub("", line).split("\r"):
            if loaded := _LOADED.search(part):
                self._learn("weights_s", loaded[1])
            reached = self._read(part) or reached
        return reached

    def _read(self, text: str) -> Stage | None:
        for sign in _SIGNS:
            if found := sign.pattern.search(text):
                for name, value in zip(sign.facts, found.groups(), strict=False):
                    self._learn(name, value)
                return self._advance(Stage(sign.stage, sign.tell(found) if sign.tell else ""))
        return None

    def _learn(self, name: str, word: str) -> None:
        value = _value(word)
        known = self._facts.get(name)
        if isinstance(known, int | float) and isinstance(value, int | float):
            value = min(known, value)
        self._facts[name] = value

    def _advance(self, stage: Stage) -> Stage | None:
        before = self.stage
        if before is not None:
            behind = STAGES.index(stage.name) < STAGES.index(before.name)
            same = stage.name == before.name and _progress(stage) <= _progress(before)
            if behind or same:
                return None
        self.stage = stage
        return stage


def _progress(stage: Stage) -> int:
    """How far within its stage: the percentage, or whether it has a detail at all."""
    if not stage.detail:
        return -1
    percent = re.fullmatch(r"(\d+) %", stage.detail)
    return int(percent[1]) if percent else 0


def _value(word: str) -> Fact:
    plain = word.replace(",", "")
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            continue
    return word
