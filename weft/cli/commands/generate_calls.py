"""`weft generate-calls`: data for training and testing a function caller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, TextIO

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug, pairs


def generate_calls(
    tools: Annotated[
        Path, typer.Option(metavar="FILE", help="Tool schemas: a JSON array or JSON lines.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the items here, as JSON lines.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many items.")] = 1000,
    styles: Annotated[
        str | None, typer.Option(metavar="STYLE=WEIGHT,...", help="Else all styles equally.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same items.")] = 0,
    split: Annotated[
        int, typer.Option(min=1, max=100, help="Per cent of the tools that are for training.")
    ] = 100,
    test: Annotated[bool, typer.Option("--test", help="Use the other tools of the split.")] = False,
    exclude: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Names of tools to leave out, one a line.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    refused: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write refused items and reasons here.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Make queries with the tools offered and the calls that answer them."""
    with report_errors(debug=debug):
        from weft.agents.calls import STYLES, GenerateOptions, generate, read_tools
        from weft.agents.calls.catalogue import split as split_tools
        from weft.agents.calls.catalogue import without
        from weft.cli.console import stderr

        weights = _weights(styles) if styles else dict.fromkeys(STYLES, 1.0)
        names = exclude.read_text("utf-8").split() if exclude else []
        faulty: list[str] = []
        usable = without(read_tools(tools, faulty), names)
        chosen = split_tools(usable, split / 100, seed)[test]
        options = GenerateOptions(n, weights, seed)
        kept = dropped = 0
        with out.open("w", encoding="utf-8") as good, _opened(refused) as bad:
            for item, refusal in generate(chosen, options):
                if refusal is None:
                    kept += 1
                    _write(good, item.document())
                    continue
                dropped += 1
                duplicate = isinstance(refusal, str)
                reason = (
                    {"gate": "duplicate"}
                    if duplicate
                    else {one: getattr(refusal, one) for one in ("gate", "reason", "detail")}
                )
                _write(bad, item.document() | {"refusal": reason})
        stderr().print(f"{kept} items in {out}, {dropped} refused", markup=False)
        if faulty:
            more = f"{len(faulty)} declarations were left out, the first: {faulty[0]}"
            stderr().print(more, markup=False)


def _weights(text: str) -> dict[str, float]:
    try:
        return {name: float(x) for name, x in pairs(text.split(","), "--styles").items()}
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--styles") from None


def _opened(path: Path | None) -> TextIO:
    import os

    return (path or Path(os.devnull)).open("w", encoding="utf-8")


def _write(file: TextIO, document: object) -> None:
    file.write(json.dumps(document, ensure_ascii=False) + "\n")
