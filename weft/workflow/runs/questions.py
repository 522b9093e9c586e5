"""What the record of a question says beside its workflow: where it was asked, with which tools.

Such a workflow has no file of its own: it is read again from the record. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from weft.agents.tools.module import is_file
from weft.core.codec import decode, encode
from weft.core.errors import StoreError, ToolNotFound
from weft.core.ports import ToolRunner
from weft.core.ports.journal import RunHeader
from weft.core.values import ToolSpec
from weft.workflow.document.leaves import ModelNode
from weft.workflow.question_run import ANSWER
from weft.workflow.unit import ONLY_PYTHON, Unit

_QUESTION: Final = "question"
_FOLDER: Final = "folder"
_SPECS: Final = "tools"


def question_notes(folder: Path, specs: Iterable[ToolSpec] = ()) -> dict[str, Any]:
    """What a record says: the folder in which paths start, and its tools as models see them."""
    return {_QUESTION: True, _FOLDER: str(folder), _SPECS: [encode(spec) for spec in specs]}


def noted(header: RunHeader) -> dict[str, Any]:
    """What the record of a question says beside; nothing where it is of another workflow."""
    if not is_question(header):
        return {}
    return {k: header.settings[k] for k in (_QUESTION, _FOLDER, _SPECS) if k in header.settings}


def is_question(header: RunHeader) -> bool:
    """Whether the run is a question, whose workflow is nowhere but in its record."""
    return header.settings.get(_QUESTION) is True


def strategy_of(header: RunHeader, unit: Unit) -> str | None:
    """The strategy that a question is thought about by; None for what is no such question."""
    step = unit.document.nodes.get(ANSWER) if is_question(header) else None
    thinks = step.think if isinstance(step, ModelNode) else None
    return None if thinks is None else thinks.strategy


def asked_in(header: RunHeader) -> Path | None:
    """The folder in which its paths start; None where it was asked on another machine."""
    folder = header.settings.get(_FOLDER)
    return Path(folder) if isinstance(folder, str) else None


def told_tools(header: RunHeader, unit: Unit) -> ToolRunner | None:
    """The tools as the record has them, for a question that is repeated without their code.

    None where their code is there: what has changed in it is found then.
    """
    uses = [tool.use for tool in unit.document.tools.values() if tool.use is not None]
    if not is_question(header) or (asked_in(header) and all(_is_here(unit, use) for use in uses)):
        return None
    return _ToldTools(header.settings.get(_SPECS))


class _ToldTools:
    """Implements `ToolRunner`: tools of which no more is known than what models were told."""

    def __init__(self, told: object) -> None:
        found = map(_spec, told if isinstance(told, list) else ())
        self._specs = tuple(spec for spec in found if spec is not None)

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ARG002 - the port
        raise ToolNotFound(f"the record has no code of {name}", hint="it can only be replayed")


def _spec(text: object) -> ToolSpec | None:
    try:
        found = decode(text) if isinstance(text, str) else None
    except StoreError:
        return None
    return found if isinstance(found, ToolSpec) else None


def _is_here(unit: Unit, use: str) -> bool:
    source = use.rpartition(":")[0]
    if use.startswith(ONLY_PYTHON):
        return use in unit.functions
    return not is_file(source) or (unit.folder / source).is_file()
