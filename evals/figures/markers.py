"""Markers in a Markdown text, and the text with what they stand for.

Inline, also inside table cells; the first word names a file of docs/benchmarks:

    <!--=engine chain_100/weft/median_ms .2f-->1.40<!--/-->      `<!--=engine @date-->` its day

A table, where `{}` is what stands behind the `=` of a row, or the row's label joined by `/`:

    <!--table engine
    head: case | system
    col: median ms (p10 to p90) = [{}/median_ms .2f] ([{}/p10_ms .2f] to [{}/p90_ms .2f])
    row: chain_100 | weft
    row: the same by hand | asyncio = chain_100/asyncio
    rows: fanout_*/weft*
    -->
    ...
    <!--/-->

Expressions are those of `Results.text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from evals.figures.sources import FigureError, Results, Sources

INLINE: Final = re.compile(r"<!--=(?P<asked>[^\n]*?)-->(?P<shown>[^\n]*?)<!--/-->")
TABLE: Final = re.compile(r"<!--table (?P<asked>.*?)-->\n(?P<shown>.*?)<!--/-->", re.DOTALL)
_CELL: Final = re.compile(r"\[([^\]]+)\]")


def rewritten(text: str, sources: Sources) -> tuple[str, list[str]]:
    """The text with every figure as its file has it, and why some markers are as they were."""
    faults: list[str] = []

    def made(found: re.Match[str], shown: Callable[[str], str]) -> str:
        try:
            figure = shown(found["asked"])
        except FigureError as error:
            line = found.string.count("\n", 0, found.start()) + 1
            faults.append(f"line {line}: {error}")
            return found[0]
        begin, end = found.span("shown")
        return found.string[found.start() : begin] + figure + found.string[end : found.end()]

    def inline(asked: str) -> str:
        name, _, expression = asked.partition(" ")
        return sources(name).text(expression.strip())

    text = TABLE.sub(lambda found: made(found, lambda asked: _table(asked, sources)), text)
    return INLINE.sub(lambda found: made(found, inline), text), faults


def _table(asked: str, sources: Sources) -> str:
    name, *lines = (line.strip() for line in asked.strip().splitlines())
    results = sources(name)
    head: list[str] = []
    columns: list[tuple[str, str]] = []
    rows: list[tuple[list[str], str]] = []
    for line in lines:
        word, _, rest = line.partition(": ")
        match word:
            case "head":
                head = [label.strip() for label in rest.split("|")]
            case "col":
                label, _, template = rest.partition(" = ")
                columns.append((label.strip(), template.strip()))
            case "row":
                label, _, key = rest.partition(" = ")
                labels = [part.strip() for part in label.split("|")]
                rows.append((labels, key.strip() or "/".join(labels)))
            case "rows":
                rows += ((key.split("/"), key) for key in results.keys(rest.strip()))
            case _:
                raise FigureError(f"a table has no “{line}”")
    return "".join(f"| {' | '.join(cells)} |\n" for cells in _cells(results, head, columns, rows))


def _cells(
    results: Results,
    head: list[str],
    columns: list[tuple[str, str]],
    rows: list[tuple[list[str], str]],
) -> Iterator[list[str]]:
    titles = [*head, *(label for label, _ in columns)]
    yield titles
    yield ["---"] * len(titles)
    for labels, key in rows:
        if len(labels) != len(head):
            raise FigureError(f"“{' | '.join(labels)}” has not one label for each of {head}")
        yield labels + [_cell(results, template.replace("{}", key)) for _, template in columns]


def _cell(results: Results, template: str) -> str:
    """A cell all of whose figures are optional and missing is empty."""
    shown = [results.text(asked) for asked in _CELL.findall(template)]
    texts = iter(shown)
    return _CELL.sub(lambda _: next(texts), template) if any(shown) or not shown else ""
