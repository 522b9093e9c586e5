"""What a change of source changes of a function's digest, and what not."""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.agents.tools.code import digest as digest_module
from weft.agents.tools.code import function_digest, object_digest
from weft.agents.tools.code.digest import ReachableCode
from weft.agents.tools.code.sources import SourcePackage
from weft.agents.tools.module import load_file

TOOLS = '''
"""Tools."""
import weft
from .prices import VAT, unused
from . import shelf

RATE = 2
NAMES = {}
NAMES["a"] = 1

def twice(value):
    """Twice as much."""
    return RATE * value

@weft.tool
def pay(amount: int) -> int:
    """Pay."""
    from .late import add
    return twice(amount) * VAT + add(amount)

@weft.tool
def look(amount: int) -> int:
    return shelf.find(amount)

if __name__ == "__main__":
    print(pay(1))
'''
PRICES = "import os\nVAT = 19\n\ndef unused():\n    return os\n"
LATE = "def add(value):\n    return value\n"
SHELF = "def find(value):\n    return value\n\nother = 1\n"
FILES = {"tools.py": TOOLS, "prices.py": PRICES, "late.py": LATE, "shelf.py": SHELF}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def digests(folder: Path) -> tuple[str | None, str | None]:
    return function_digest(folder / "tools.py", "pay"), function_digest(folder / "tools.py", "look")


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("tools.py", "RATE = 2", "RATE = 2  # twice", ""),
        ("tools.py", '"""Tools."""', '"""More tools."""', ""),
        ("tools.py", '    """Pay."""\n', "", ""),
        ("tools.py", '    """Twice as much."""\n', '    """Double."""\n\n', ""),
        ("tools.py", "def pay(amount: int) -> int:", "def pay(\n    amount: int\n) -> int:", ""),
        ("tools.py", "print(pay(1))", "print(pay(2))", ""),
        ("tools.py", "RATE = 2", "RATE = 2\nother = 3", ""),
        ("tools.py", "import weft", "import weft\nimport json", ""),
        ("prices.py", "return os", "return 1", ""),
        ("shelf.py", "# nothing", "", ""),
        ("tools.py", "RATE = 2", "RATE = 3", "pay"),
        ("tools.py", "RATE * value", "value * RATE", "pay"),
        ("tools.py", "VAT + add", "VAT - add", "pay"),
        ("tools.py", "    from .late import add", "    from .late import other as add", "pay"),
        ("tools.py", "@weft.tool\ndef pay", '@weft.tool(effect="once")\ndef pay', "pay"),
        ("tools.py", "def pay(amount: int)", "def pay(amount: float)", "pay"),
        ("prices.py", "VAT = 19", "VAT = 7", "pay"),
        ("late.py", "return value", "return -value", "pay"),
        ("shelf.py", "return value", "return -value", "look"),
        ("shelf.py", "other = 1", "other = 2", "look"),
        ("tools.py", "shelf.find(amount)", "shelf.find(-amount)", "look"),
        ("tools.py", 'NAMES["a"] = 1', 'NAMES["a"] = 2', "pay look"),
    ],
)
def test_what_changes_a_digest(tmp_path: Path, file: str, old: str, new: str, changed: str) -> None:
    write(tmp_path, FILES)
    before = digests(tmp_path)
    text = FILES[file]
    write(tmp_path, {file: text.replace(old, new, 1) if old in text else f"{old}\n{text}"})
    after = digests(tmp_path)
    assert None not in before
    assert [name for name, a, b in zip(("pay", "look"), before, after, strict=True) if a != b] == (
        changed.split()
    )


def test_where_a_file_lies_is_not_part_of_it(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(tmp_path / folder, FILES)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


PACKAGE = {
    "shopping/__init__.py": "from .tools import pay\n",
    "shopping/tools.py": (
        "import json\nfrom shopping.deep import rates\nfrom shopping import deep\n"
        "def pay(x):\n    return rates.find(x)\n"
        "def registered():\n    return deep.KNOWN\n"
    ),
    "shopping/deep/__init__.py": "KNOWN = {}\n",
    "shopping/deep/rates.py": (
        "from ..register import keep\nfrom shopping.deep import KNOWN\n"
        "def find(x):\n    return KNOWN.get(x)\n@keep\ndef small(x):\n    return 1\n"
    ),
    "shopping/register.py": "def keep(f):\n    return f\n",
    "shopping/apart.py": "x = 1\n",
}


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("shopping/deep/rates.py", "KNOWN.get(x)", "KNOWN[x]", True),
        ("shopping/deep/rates.py", "return 1", "return 2", True),  # a decorator of ours keeps it
        ("shopping/register.py", "return f", "return None", True),
        ("shopping/deep/__init__.py", "{}", "{1: 1}", True),
        ("shopping/tools.py", "deep.KNOWN", "None", False),
        ("shopping/apart.py", "x = 1", "x = 2", False),
        ("shopping/__init__.py", "from", "start = 1\nfrom", False),
        ("shopping/__init__.py", "from", "print()\nfrom", True),
    ],
)
def test_a_package_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, changed: bool
) -> None:
    write(tmp_path, PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = function_digest("shopping.tools", "pay")
    assert before is not None
    assert function_digest("shopping", "pay") != before  # reached through one file more
    write(tmp_path, {file: PACKAGE[file].replace(old, new, 1)})
    importlib.invalidate_caches()
    assert (function_digest("shopping.tools", "pay") != before) is changed
    assert "shopping" not in sys.modules, "it was read, not imported"


def test_a_namespace_package_and_a_compiled_module_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    write(
        tmp_path, {"spread/inner/tools.py": "from . import quick\ndef f():\n    return quick.g()\n"}
    )
    compiled = tmp_path / f"spread/inner/quick{suffix}"
    compiled.write_bytes(b"\x7fELF 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = function_digest("spread.inner.tools", "f")
    compiled.write_bytes(b"\x7fELF 2")
    assert None is not before != function_digest("spread.inner.tools", "f")


@pytest.mark.parametrize("name", ["json", "os.path", "weft.core.ids", "nowhere.at_all"])
def test_what_goes_with_a_version_has_none(name: str) -> None:
    assert function_digest(name, "f") is None


def test_code_that_cannot_be_parsed_counts_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path, {"tools.py": "def f(:\n"})
    before = function_digest(tmp_path / "tools.py", "f")
    write(tmp_path, {"tools.py": "def f(:\n\n"})
    assert None is not before != function_digest(tmp_path / "tools.py", "f")


NESTED = """
import functools
STEP = 1

def decorated(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args) + STEP
    return inner

@decorated
def plain(x):
    return x

def outer():
    \"\"\"Make one.\"\"\"
    factor = 3
    apart = 4
    def inner(x):
        return x * factor
    return inner

made = outer()
short = lambda x: x + STEP
class Shop:
    def buy(self, x):
        return x + STEP
bought = Shop().buy
"""


@pytest.mark.parametrize("name", ["plain", "made", "short", "bought"])
@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("apart = 4", "apart = 5", ""),
        ("Make one.", "Make another.", ""),
        # What a decorator of the same package decorates counts for all: it may register it.
        ("STEP = 1", "STEP = 2", "plain made short bought"),
        ("factor = 3", "factor = 4", "made"),
        ("x * factor", "factor * x", "made"),
        ("lambda x: x + STEP", "lambda x: STEP + x", "short"),
        ("        return x + STEP", "        return STEP + x", "bought"),
        ("return function(*args) + STEP", "return STEP", "plain made short bought"),
    ],
)
def test_functions_that_a_program_has(
    tmp_path: Path, name: str, old: str, new: str, changed: str
) -> None:
    found = []
    for number, text in enumerate((NESTED, NESTED.replace(old, new, 1))):
        write(tmp_path / str(number), {"program.py": text})
        module = load_file(tmp_path / str(number) / "program.py")
        found.append(object_digest(getattr(module, name)))
    assert None not in found
    assert (found[0] != found[1]) is (name in changed.split())


@pytest.mark.parametrize("function", [len, json.dumps, functools.partial(json.dumps), "text".join])
def test_functions_of_others_have_none(function: Callable[..., Any]) -> None:
    assert object_digest(function) is None


def reaches(monkeypatch: pytest.MonkeyPatch) -> list[SourcePackage]:
    """Each time that what a function reaches is collected anew."""
    found: list[SourcePackage] = []

    class Counted(ReachableCode):
        def __init__(self, package: SourcePackage) -> None:
            found.append(package)
            super().__init__(package)

    monkeypatch.setattr(digest_module, "ReachableCode", Counted)
    return found


def test_a_digest_is_made_once_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FILES)
    made, before = reaches(monkeypatch), digests(tmp_path)
    assert len(made) == 2
    assert digests(tmp_path) == before
    assert len(made) == 2
    write(tmp_path, {"prices.py": PRICES.replace("19", "21")})
    assert digests(tmp_path)[0] != before[0]
    assert len(made) > 2


def test_a_module_that_comes_or_goes_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, {"tools.py": "from .rates import rate\ndef f():\n    return rate\n"})
    found = [function_digest(tmp_path / "tools.py", "f")]
    write(tmp_path, {"rates.py": "rate = 1\n"})
    found.append(function_digest(tmp_path / "tools.py", "f"))
    (tmp_path / "rates.py").unlink()
    write(tmp_path, {"rates/__init__.py": "rate = 1\n", "rates/x.py": ""})
    found.append(function_digest(tmp_path / "tools.py", "f"))
    (tmp_path / "rates/__init__.py").write_text("from .x import rate\n")
    found.append(function_digest(tmp_path / "tools.py", "f"))
    assert None not in found
    missing, there, elsewhere, other = found
    assert missing != there == elsewhere != other != missing


def test_a_package_that_was_loaded_again_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"one/again/__init__.py": "", "one/again/t.py": "def f():\n    return 1\n"})
    write(tmp_path, {"two/again/__init__.py": "", "two/again/t.py": "def f():\n    return 2\n"})
    found = []
    for folder in ("one", "two"):
        with monkeypatch.context() as patched:
            patched.syspath_prepend(str(tmp_path / folder))
            importlib.invalidate_caches()
            importlib.import_module("again")
            found.append(function_digest("again.t", "f"))
            del sys.modules["again"]
    assert None not in found
    assert len(set(found)) == 2
