"""Files of tools: loaded once, apart from one another, with the files beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from weft.agents.tools import resolve
from weft.core.errors import BuildError

TOOL = """
import weft
{imports}
@weft.tool
def price() -> int:
    return {value}
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("imports", "value"),
    [
        ("from .prices import TEA", "TEA"),
        ("from . import prices", "prices.TEA"),
        ("from .deep.more import SALT", "SALT"),
    ],
)
def test_a_file_imports_its_neighbours(tmp_path: Path, imports: str, value: str) -> None:
    found = []
    for number in (1, 2):
        folder = write(
            tmp_path / str(number),
            tools=TOOL.format(imports=imports, value=value),
            prices=f"TEA = {number}",
            deep__more="from ..prices import TEA as SALT",
        )
        found.append(resolve("./tools.py:price", folder).function())
    assert found == [1, 2], "files of one name in two folders do not meet"
    assert "prices" not in sys.modules


def test_a_neighbour_that_is_itself_a_file_of_tools_is_loaded_once(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        tools=TOOL.format(imports="from .other import COUNT", value="len(COUNT)"),
        other=TOOL.format(imports="COUNT = [0]", value="COUNT.append(1) or 0"),
    )
    resolve("./other.py:price", folder).function()
    assert resolve("./tools.py:price", folder).function() == 2


def test_files_whose_names_are_no_identifiers_do_not_meet(tmp_path: Path) -> None:
    for name in ("a-b", "a.b", "a b"):
        (tmp_path / f"{name}.py").write_text(
            TOOL.format(imports="", value=repr(name)).replace("int", "str")
        )
    found = [resolve(f"./{name}.py:price", tmp_path).function() for name in ("a-b", "a.b", "a b")]
    assert found == ["a-b", "a.b", "a b"]


@pytest.mark.parametrize(
    ("imports", "hint"),
    [("import prices", r"write `from \.prices import"), ("import nowhere_at_all", "install it")],
)
def test_what_cannot_be_imported_is_told(tmp_path: Path, imports: str, hint: str) -> None:
    folder = write(tmp_path, tools=TOOL.format(imports=imports, value="1"), prices="TEA = 1")
    with pytest.raises(BuildError, match=hint):
        resolve("./tools.py:price", folder)


def test_a_file_does_not_import_what_lies_above_its_folder(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        prices="TEA = 1",
        flow__tools=TOOL.format(imports="from ..prices import TEA", value="TEA"),
    )
    with pytest.raises(BuildError, match="beyond top-level package"):
        resolve("./tools.py:price", folder / "flow")


def test_the_version_of_a_tool_is_that_of_what_it_uses(tmp_path: Path) -> None:
    versions = []
    for number, rate in enumerate(("RATE = 1", "RATE = 1  # one", "RATE = 2")):
        tools = TOOL.format(imports="from .rates import RATE", value="RATE")
        folder = write(tmp_path / str(number), tools=tools, rates=rate)
        versions.append(resolve("./tools.py:price", folder).spec.version)
    assert "" != versions[0] == versions[1] != versions[2]
