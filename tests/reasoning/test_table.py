"""docs/reasoning.md says what the registry says, and what it shows works."""

from __future__ import annotations

import ast
import re

import weft
from tests.reasoning.table import DOCUMENT, EVERYWHERE, HEAD, ROOT, TESTED, rows
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES
from weft.testing import FakeModel

TEXT = DOCUMENT.read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_the_table_is_that_of_the_registry() -> None:
    written = [line for line in TEXT.splitlines() if line.startswith("| `")]
    expected = list(rows())
    assert "\n".join(HEAD) in TEXT
    assert written[: len(expected)] == expected, "python -m tests.reasoning.table prints it"


def test_what_the_table_names_is_there() -> None:
    assert (ROOT / EVERYWHERE).is_file()
    assert set(TESTED) <= set(STRATEGIES)
    for name, (_, where) in TESTED.items():
        assert (ROOT / where).exists(), name


def test_the_workflow_runs() -> None:
    (text,) = blocks("yaml")
    flow = weft.loads(text)
    flow.check()
    pages = ["Rome lies on the Tiber.", "Paris lies on the Seine."]
    model = FakeModel(["The answer is 4."])
    result = flow.run_sync(question="2 + 2?", pages=pages, models={"small": model})
    assert result.ok, result.missing
    assert result.outputs["quick"] == result.outputs["second"] == "4"


def test_the_program_is_one() -> None:
    (text,) = blocks("python")
    ast.parse(text.replace("await ", ""))


def test_the_options_and_their_defaults() -> None:
    options = ThinkOptions()
    table = TEXT[TEXT.index("| option |") : TEXT.index("The budget is strict")]
    for name in ("width", "max_tokens", "answer_tokens"):
        assert re.search(rf"`{name}`.*\| {getattr(options, name)} \|", table), name
    for name in ThinkOptions.__slots__:
        assert f"`{name}`" in table, name
