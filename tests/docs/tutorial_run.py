"""A tutorial as its reader would follow it: files are written, commands typed, outputs compared.

```python title="tools.py"      a file
$ weft run flow.yaml            a command of a `console` block; its output stands below
...                             lines, or a part of a line, that differ from run to run
[exit status 4]                 how it ends, where that is not 0; `3 or 0` for either
<!-- not run: why -->           before a block: its commands and options are only looked up
<!-- background -->             before a block: its command serves until the page ends
<!-- embedded model -->         before a block: its output is that of the embedded model, up to
                                numbers and times; of another one only the exit status is compared
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Final

from tests.cli.command_line import typed
from tests.docs.pages import Block, blocks

FILES: Final = ("python", "yaml", "text")
_STATUS: Final = re.compile(r"\[exit status (\d+(?: or \d+)*)\]")
_PATIENCE_S: Final = 600
_AMOUNT: Final = re.compile(r"(\d[\d,]*(?:\.\d+)?(?: (?:ms|s|min \d+ s)\b)?)| +")
_ANY_AMOUNT: Final = r"\d[\d,]*(?:\.\d+)?(?:e-\d+)?(?: (?:ms|s|min \d+ s)\b)?"


@dataclass(frozen=True)
class Command:
    """What is typed, what it prints (None: not compared), and the exit statuses it may have."""

    words: tuple[str, ...]
    output: tuple[str, ...]
    statuses: frozenset[int]


def commands(block: Block) -> Iterator[Command]:
    """The commands of a `console` block."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, *shown = part.splitlines()
        status = _STATUS.fullmatch(shown[-1]) if shown else None
        yield Command(
            tuple(shlex.split(line, comments=True)),
            tuple(shown[:-1] if status else shown),
            frozenset(map(int, status[1].split(" or "))) if status else frozenset((0,)),
        )


class Lesson:
    """A page played in `folder`.

    `instead` replaces texts, such as the address of a server. `embedded`: the embedded model
    answers, and its answers may be cut off.
    """

    def __init__(
        self, page: Path, folder: Path, instead: Mapping[str, str], *, embedded: bool = False
    ) -> None:
        self._page = page
        self._folder = folder
        self._instead = instead
        self._embedded = embedded
        self._fine = frozenset((3,) if embedded else ())
        self.played = 0

    def play(self) -> None:
        """Everything on the page, in order."""
        with ExitStack() as running:
            for block in blocks(self._page):
                where = f"{self._page.name}:{block.line}"
                if block.title:
                    self._write(block)
                elif block.language == "console":
                    for command in commands(block):
                        self._type(command, block.note, where, running)
                else:
                    raise AssertionError(f"{where}: a block without a file name that nobody runs")
                self.played += 1

    def _write(self, block: Block) -> None:
        assert block.language in FILES, block
        path = self._folder / block.title
        path.parent.mkdir(exist_ok=True)
        path.write_text(self._told(block.text), "utf-8")

    def _told(self, text: str) -> str:
        for one, other in self._instead.items():
            text = text.replace(one, other)
        return text

    def _type(self, command: Command, note: str, where: str, running: ExitStack) -> None:
        words = shlex.split(self._told(shlex.join(command.words)))
        if note.startswith("not run"):
            check_words(words)
            return
        if note == "background":
            running.enter_context(_Serving(words, self._folder))
            return
        status, printed = self._ran(words)
        told = f"{where}: {words} ended with {status} and printed\n{printed}"
        assert status in command.statuses | self._fine, told
        loose = note == "embedded model"
        if command.output and (self._embedded or not loose):
            lines = (_pattern(line, loose=loose) for line in command.output)
            assert re.fullmatch("".join(lines), printed), told

    def _ran(self, words: list[str]) -> tuple[int, str]:
        if words[0] == "weft":
            result = typed(*words[1:])
            return result.exit_code, result.output
        module = ["-m", "pytest", "-p", "no:cacheprovider"] if words[0] == "pytest" else []
        assert module or words[0] == "python", words
        done = subprocess.run(
            [sys.executable, *module, *words[1:]],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_S,
        )
        return done.returncode, done.stdout


def check_words(words: list[str]) -> None:
    """That a command of weft, and its options, are there."""
    assert words[0] == "weft", words
    helped = typed(words[1], "--help")
    assert helped.exit_code == 0, words
    for word in words[2:]:
        if word.startswith("--") and word != "--":
            assert word in helped.output, f"weft {words[1]} has no {word}"


def _pattern(line: str, *, loose: bool = False) -> str:
    """What the line matches; `loose`: with any numbers, times and widths of columns."""
    if line.strip() == "...":
        return r"(?:.*\n)*"
    pattern = _any_amounts(line.strip()) if loose else re.escape(line.rstrip())
    return pattern.replace(r"\.\.\.", ".*") + r"[ \t]*\n(?:[ \t]*\n)*"


def _any_amounts(line: str) -> str:
    pieces, at = [r"[ ]*"], 0
    for found in _AMOUNT.finditer(line):
        pieces += [re.escape(line[at : found.start()]), _ANY_AMOUNT if found[1] else " +"]
        at = found.end()
    return "".join([*pieces, re.escape(line[at:])])


class _Serving:
    """A command of weft in a process of its own, from its first line until the end."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._words, self._folder = words, folder

    def __enter__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._words],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        ending = Timer(_PATIENCE_S, self._process.kill)
        ending.start()
        printed = []
        for line in self._process.stdout:
            printed.append(line)
            if "http://" in line:
                ending.cancel()
                return
        raise AssertionError(f"{self._words} ended:\n{''.join(printed)}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=_PATIENCE_S)
