"""How a function is called in a sandbox: the program around it, which reads and prints JSON."""

from __future__ import annotations

from typing import Final

SOLUTION: Final = "solution.py"
"""The file that holds the function."""
_CALLER: Final = """\
import json, sys
sys.path.insert(0, "")
given = json.load(sys.stdin)
printed, sys.stdout = sys.stdout, sys.stderr
import solution
found = solution
for name in {path!r}:
    found = getattr(found() if isinstance(found, type) else found, name)
result = found(*given)
json.dump(result, printed, default=list, sort_keys=True)
printed.flush()
"""


def caller(function: str) -> str:
    """A program that calls `function` of `SOLUTION` and prints its result.

    `Class.method` is called on a new object. What the function prints goes to standard error.
    """
    return _CALLER.format(path=tuple(function.split(".")))
