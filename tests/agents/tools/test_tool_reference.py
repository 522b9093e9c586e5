"""Import paths: only tools, only from inside the folder, and errors that name the line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from weft.agents.tools import Toolbox, resolve
from weft.core.errors import BuildError, ToolNotFound, WeftError

TOOLS = """\
from dataclasses import dataclass
import weft.agents.tools as weft

@dataclass
class Word:
    text: str

loaded = []

@weft.tool
def shout(text: str) -> Word:
    loaded.append(text)
    return Word(text.upper() + "{mark}")

@weft.tool
def whisper(text: str) -> str:
    return text.lower()

def plain() -> None: ...
"""


def write(folder: Path, text: str = TOOLS, name: str = "tools.py", mark: str = "!") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text.replace("{mark}", mark))
    return folder


@pytest.mark.parametrize("path", ["./tools.py:shout", "tools.py:shout", "./sub/../tools.py:shout"])
def test_a_file_beside_the_workflow_is_found(tmp_path: Path, path: str) -> None:
    (tmp_path / "sub").mkdir()
    assert resolve(path, write(tmp_path))("a").text == "A!"


def test_the_working_directory_is_the_base_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write(tmp_path))
    assert resolve("tools.py:shout")("a").text == "A!"


def test_a_module_is_found_by_name() -> None:
    assert resolve("tests.agents.tools.hostile:twice").spec.name == "twice"


def test_two_files_of_one_name_never_meet(tmp_path: Path) -> None:
    one = resolve("tools.py:shout", write(tmp_path / "one", mark="1"))
    two = resolve("tools.py:shout", write(tmp_path / "two", mark="2"))
    assert (one("a").text, two("a").text) == ("A1", "A2")
    assert one.__module__ != two.__module__
    assert "tools" not in sys.modules
    assert str(tmp_path / "one") not in sys.path


def test_a_file_is_loaded_once(tmp_path: Path) -> None:
    folder = write(tmp_path)
    first = resolve("tools.py:shout", folder)
    assert resolve("./tools.py:shout", folder) is first
    (tmp_path / "linked").symlink_to(folder)
    assert resolve("tools.py:shout", tmp_path / "linked") is first


def refused(path: str, base: Path, kind: type[WeftError]) -> str:
    with pytest.raises(kind) as caught:
        resolve(path, base)
    assert type(caught.value) is kind
    return str(caught.value)


@pytest.mark.parametrize("path", ["os:system", "builtins:eval", "json:JSONDecoder"])
def test_only_tools_can_be_reached(tmp_path: Path, path: str) -> None:
    assert "decorate the function with @weft.tool" in refused(path, tmp_path, BuildError)


def test_a_plain_function_is_not_a_tool(tmp_path: Path) -> None:
    assert "tools.py:plain is not a tool" in refused("tools.py:plain", write(tmp_path), BuildError)


@pytest.mark.parametrize(
    "path",
    ["", "shout", ":shout", "tools.py:", "tools.py", "tools.py:a.b", "t.py:a b", "a b:c"],
)
def test_what_is_no_path_is_refused(tmp_path: Path, path: str) -> None:
    refused(path, tmp_path, BuildError)


def test_a_file_stays_inside_its_folder(tmp_path: Path) -> None:
    write(tmp_path)
    inside = tmp_path / "flow"
    inside.mkdir()
    (inside / "link.py").symlink_to(tmp_path / "tools.py")
    (inside / "loop.py").symlink_to(inside / "loop.py")
    (inside / "up").symlink_to(tmp_path)
    for path in ("../tools.py", "link.py", "up/tools.py", str(tmp_path / "tools.py")):
        assert "lies outside" in refused(f"{path}:shout", inside, BuildError)
    for path in ("loop.py", "nul\0.py"):
        refused(f"{path}:shout", inside, BuildError)


def test_an_absolute_path_is_refused_even_inside(tmp_path: Path) -> None:
    refused(f"{write(tmp_path) / 'tools.py'}:shout", tmp_path, BuildError)


def test_a_misspelt_name_is_corrected(tmp_path: Path) -> None:
    told = refused("tools.py:shuot", write(tmp_path), ToolNotFound)
    assert "did you mean 'shout'? there are: shout, whisper" in told


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    assert "there is no file" in refused("tools.py:shout", tmp_path, ToolNotFound)
    assert "'no_such_thing'" in refused("no_such_thing.at_all:x", tmp_path, ToolNotFound)
    assert "'json.no_such'" in refused("json.no_such:x", tmp_path, ToolNotFound)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\nx = undefined\n", "tools.py:2: NameError: name 'undefined' is not defined"),
        ("x = 1\n\ndef f(:\n", "tools.py:3: SyntaxError"),
        ("import json\n\n\njson.loads('{')\n", "tools.py:4: JSONDecodeError"),
        ("import no_such_thing\n", "tools.py:1: ModuleNotFoundError"),
        ("raise SystemExit('bye')\n", "tools.py:1: SystemExit: bye"),
        ("import weft.agents.tools as t\n@t.tool\ndef f(x): ...\n", "tool f (tools.py:2)"),
        ("\0", "tools.py"),
    ],
)
def test_a_file_that_fails_names_the_line_and_leaves_nothing(
    tmp_path: Path, text: str, says: str
) -> None:
    before = set(sys.modules)
    assert says in refused("tools.py:f", write(tmp_path, text), BuildError)
    assert not [name for name in set(sys.modules) - before if "tools" in name]
    write(tmp_path)
    assert resolve("tools.py:shout", tmp_path)("a").text == "A!"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("missing", "\nimport no_such_thing\n", "missing.py:2: ModuleNotFoundError"),
        ("wrong", "x = 1 / 0\n", "wrong.py:1: ZeroDivisionError"),
        (
            "bare",
            "import weft.agents.tools as t\n@t.tool\ndef f(x): ...\n",
            "tool f (weft_test_bare.py",
        ),
    ],
)
def test_a_module_that_fails_names_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, says: str
) -> None:
    write(tmp_path, text, f"weft_test_{name}.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert says in refused(f"weft_test_{name}:f", tmp_path, BuildError)


def test_a_declared_tool_is_imported_on_first_use(tmp_path: Path) -> None:
    box = Toolbox()
    box.declare("loud", "tools.py:shout", tmp_path)
    assert box.names == ("loud",)
    with pytest.raises(ToolNotFound):
        box.specs()
    write(tmp_path)
    assert [spec.name for spec in box.specs()] == ["loud"]
    assert box.get("loud") is box.get("loud")
