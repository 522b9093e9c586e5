"""The code of tools: packed with a digest, unpacked once, and imported as the same tool."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from tests.cluster import far_tools
from weft.agents.tools import resolve, tool
from weft.agents.tools.declaration import tool_from_schema
from weft.cluster import code
from weft.cluster.code import ShippedCode, packed, packed_tool
from weft.core.errors import PlacementError, ToolNotFound

SOURCE = """
import weft
from .beside import word


@weft.tool(effect="once")
def greet(name: str) -> str:
    return f"{word()} {name}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("sys.path", [])
    made = tmp_path / "flow"
    (made / ".venv" / "lib").mkdir(parents=True)
    (made / ".venv" / "lib" / "secret.py").write_text("KEY = 1", "utf-8")
    (made / "tools.py").write_text(SOURCE, "utf-8")
    (made / "beside.py").write_text("def word():\n    return 'hello'\n", "utf-8")
    (made / ".env").write_text("TOKEN=x", "utf-8")
    return made


def test_equal_files_are_one_package_of_python_alone(folder: Path, tmp_path: Path) -> None:
    archive = packed(folder, "files")
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.namelist() == ["files/beside.py", "files/tools.py"]
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in sorted(folder.glob("*.py"), reverse=True):
        (copy / file.name).write_bytes(file.read_bytes())
    assert packed(copy, "files") == archive
    (folder / "beside.py").write_text("def word():\n    return 'other'\n", "utf-8")
    assert packed(folder, "files") != archive


def test_a_shipped_tool_is_the_same_tool(folder: Path) -> None:
    greet = resolve("./tools.py:greet", folder).named("salute")
    found = packed_tool(greet)
    assert found.root == folder
    shipped = ShippedCode(packed(folder, found.inside)).tool(found.ref)
    assert shipped.spec == greet.spec
    assert shipped(name="you") == "hello you"
    assert shipped.function is not greet.function


def test_other_code_on_the_worker_is_refused(folder: Path) -> None:
    found = packed_tool(resolve("./tools.py:greet", folder))
    source = SOURCE.replace("{word()}", "{word()}!")
    (folder / "tools.py").write_text(source, "utf-8")
    with pytest.raises(PlacementError, match="another version"):
        ShippedCode(packed(folder, found.inside)).tool(found.ref)


def test_a_tool_that_is_gone_is_named(folder: Path) -> None:
    found = packed_tool(resolve("./tools.py:greet", folder))
    (folder / "tools.py").write_text("", "utf-8")
    with pytest.raises(ToolNotFound, match="greet"):
        ShippedCode(packed(folder, found.inside)).tool(found.ref)


def test_what_no_worker_can_import_is_refused() -> None:
    @tool
    def inner() -> int:
        return 1

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    declared = tool_from_schema(far_tools.add, schema, name="free")
    for each in (inner, declared):
        with pytest.raises(PlacementError, match="on: local"):
            packed_tool(each)


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "a/../../b.py"])
def test_an_archive_writes_nothing_outside_its_folder(folder: Path, name: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(PlacementError, match="damaged"):
        ShippedCode(buffer.getvalue())
    assert not list(folder.parent.rglob("outside.py"))


def test_what_is_no_archive_is_refused(folder: Path) -> None:
    assert folder
    with pytest.raises(PlacementError, match="damaged"):
        ShippedCode(b"no archive")


def test_a_folder_of_somebody_else_is_not_used(folder: Path) -> None:
    first = code.unpacked(packed(folder, "files"))
    assert code.unpacked(packed(folder, "files")) == first
    first.parent.chmod(0o777)
    with pytest.raises(PlacementError, match="somebody else"):
        code.unpacked(packed(folder, "files"))


def test_too_many_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_CODE_FILES", 1)
    with pytest.raises(PlacementError, match="too many"):
        packed(folder, "files")


def test_a_package_travels_whole_unless_it_is_installed() -> None:
    found = packed_tool(tool(far_tools.add))
    assert found.root == Path(far_tools.__file__).parent.parent
    assert found.inside == "tests"
    from docstring_parser.common import Docstring  # noqa: F401 - a module of a dependency

    far_tools.add.__module__, own = "docstring_parser.common", far_tools.add.__module__
    try:
        assert packed_tool(tool(far_tools.add)).root is None
    finally:
        far_tools.add.__module__ = own
