"""The command line of an evaluation in sections."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path


def arguments(
    name: str,
    description: str,
    sections: Sequence[str],
    more: Callable[[argparse.ArgumentParser], None] = lambda _parser: None,
) -> argparse.Namespace:
    """What was asked for: `quick`, `only` (the names of sections), `json` and `plot` (paths), and
    the options that `more` adds.
    """

    def names(text: str) -> Sequence[str]:
        asked = text.split(",")
        unknown = [each for each in asked if each not in sections]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"there is no section {', '.join(unknown)}; there are {', '.join(sections)}"
            )
        return asked

    parser = argparse.ArgumentParser(prog=f"python -m evals.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help="fewer tasks, within ten minutes")
    parser.add_argument(
        "--only",
        type=names,
        default=sections,
        metavar="A,B",
        help=f"only these of: {', '.join(sections)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the main figures there")
    more(parser)
    return parser.parse_args()
