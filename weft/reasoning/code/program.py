"""The program in what a model wrote. It is found by its marks, never parsed and never run here."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_FENCE: Final = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+.-]*+)[^\n]*+\n", re.MULTILINE)
_PYTHON: Final = frozenset({"python", "py", "python3", "py3"})
_BEGINS: Final = re.compile(r"^(?:def |class |import |from \w[\w.]* import |@)", re.MULTILINE)
_MOST_CHARS: Final = 65_536


def program_in(text: str) -> str | None:
    """The program in `text`: the last block marked as Python, else the last block of code.

    A block that does not end goes to the end of the text. Without blocks: from the first line that
    begins like a definition or an import. None when there is none, or one longer than 64 Ki
    characters.
    """
    blocks = _blocks(text)
    marked = [code for language, code in blocks if language in _PYTHON]
    found = marked or [code for language, code in blocks if not language]
    if found:
        program = found[-1]
    else:
        begins = None if blocks else _BEGINS.search(text)
        program = text[begins.start() :] if begins else ""
    program = program.strip("\n")
    return program + "\n" if program.strip() and len(program) < _MOST_CHARS else None


def digest(program: str) -> str:
    """A short name of a program, by which equal ones are equal."""
    return hashlib.sha256(program.encode("utf-8", "replace")).hexdigest()[:12]


def _blocks(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place = 0
    while opening := _FENCE.search(text, place):
        closing = re.compile(rf"^[ \t]*{re.escape(opening[1])}[ \t]*$", re.MULTILINE)
        end = closing.search(text, opening.end())
        code = text[opening.end() : end.start() if end else len(text)]
        found.append((opening[2].lower(), code))
        if end is None:
            break
        place = end.end()
    return found
