"""Data sets: rows made into cases by templates or by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, overload

from weft.core.errors import InputError, NodeFailed
from weft.evaluation.case import SHARES, SPLITS, Case, digest_of, split_of
from weft.evaluation.rows import Row, called_rows, rows_from, rows_of
from weft.validation import violation
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.expressions import BadExpression, ValueTemplate, value_template
from weft.workflow.document.inputs import check_inputs, coerce_inputs

RESERVED: Final = frozenset(("id", "expected", "group", "split"))
"""The columns that are no inputs, unless a mapping says so."""


class Dataset(Sequence[Case]):
    """Cases in order, with a digest of their content.

    `explicit`: their inputs were mapped, so that one which the workflow lacks is a mistake.

    Raises: `InputError` where two cases have one id.
    """

    def __init__(self, cases: Iterable[Case], name: str = "data", *, explicit: bool = True) -> None:
        self.name = name
        self._cases = tuple(cases)
        self._explicit = explicit
        seen: set[str] = set()
        for case in self._cases:
            if case.id in seen:
                hint = "give them different ids, or leave out the column"
                raise InputError(f"{name}: two cases have the id {case.id!r}", hint=hint)
            seen.add(case.id)

    @overload
    def __getitem__(self, place: int) -> Case: ...
    @overload
    def __getitem__(self, place: slice) -> Dataset: ...
    def __getitem__(self, place: int | slice) -> Case | Dataset:
        return self._cases[place] if isinstance(place, int) else self._with(self._cases[place])

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of the content."""
        return digest_of(self._cases)

    def split(self, name: str) -> Dataset:
        """The cases of a split: train, dev or held_out. Raises: `InputError` for another name."""
        if name not in SPLITS:
            raise InputError(f"there is no split {name!r}", hint=f"there are {', '.join(SPLITS)}")
        return self._with(case for case in self if case.split == name)

    def where(self, condition: str | Callable[[Case], bool]) -> Dataset:
        """The cases that fulfil a function, or a template: `{{ case.group == 'tea' }}`."""
        if callable(condition):
            return self._with(filter(condition, self))
        parsed = _condition(condition)
        return self._with(case for case in self if _rendered(parsed, case.data, case.id))

    def fitting(self, document: WorkflowDocument) -> Dataset:
        """The cases with the inputs of `document`: defaults filled in, texts of CSV converted.

        Raises: `InputError` with the case whose inputs do not fit.
        """
        return self._with(self._fitted(case, document) for case in self)

    def _fitted(self, case: Case, document: WorkflowDocument) -> Case:
        given = dict(case.inputs)
        if not self._explicit:
            given = {name: value for name, value in given.items() if name in document.inputs}
        try:
            texts = {name: text for name, text in given.items() if _is_misfit(text, name, document)}
            inputs = check_inputs(document, {**given, **coerce_inputs(document, texts)})
        except InputError as error:
            columns = ", ".join(case.inputs) or "none"
            hint = f"{error.hint or 'map them under `inputs` of the data'}; its columns: {columns}"
            raise InputError(f"{self.name}, case {case.id}: {error.message}", hint=hint) from error
        return replace(case, inputs=inputs)

    def _with(self, cases: Iterable[Case]) -> Dataset:
        return Dataset(cases, self.name, explicit=self._explicit)


DataLike: TypeAlias = (
    "str | Path | Dataset | Callable[[], Iterable[object]] | Iterable[Case | Mapping[str, Any]]"
)


def cases(
    data: DataLike,
    *,
    inputs: Mapping[str, Any] | None = None,
    expected: Any = None,
    id: Any = None,  # noqa: A002 - the word of the data
    group: Any = None,
    filter: str | None = None,  # noqa: A002 - as on the command line
    shares: Sequence[int] = SHARES,
    folder: str | Path | None = None,
) -> Dataset:
    """The cases of a data set.

        weft.cases("cases.jsonl")
        weft.cases("cases.csv", inputs={"topic": "{{ case.Title }}"}, expected="{{ case.Answer }}")

    Args:
        data: a .jsonl, .csv or .parquet file, `./data.py:function`, `hf:NAME:SPLIT`, a function
            that returns rows, or rows
        inputs: the inputs by name, as templates of the row `case`; else the row's `inputs`, or
            its columns
        expected: what is right, a template; likewise `id` and `group`, which may also be the name
            of a column. Else the columns of these names
        filter: only rows for which this template is true
        shares: of the splits train, dev and held_out
        folder: where paths start; the working directory by default

    Raises: `InputError`, `SourceError` for a file's wrong line, `BuildError` for a missing package.
    """
    if isinstance(data, Dataset):
        return data if filter is None else data.where(filter)
    found, name = _rows(data, Path.cwd() if folder is None else Path(folder))
    columns = {"expected": expected, "id": id, "group": group}
    numbered = list(enumerate(found, 1))
    if filter is not None:
        keep = _condition(filter)
        numbered = [row for row in numbered if _rendered(keep, row[1], f"{name}, row {row[0]}")]
    mapping = _RowMapping(
        None if inputs is None else _parsed(dict(inputs)),
        {key: _column(value, key) for key, value in columns.items()},
        shares,
    )
    made = [mapping.case(row, number, name) for number, row in numbered]
    explicit = inputs is not None or any("inputs" in row for row in found)
    return Dataset(made, name, explicit=explicit)


def _rows(data: Any, folder: Path) -> tuple[list[Row], str]:
    if isinstance(data, str | Path):
        return rows_of(str(data), folder), str(data)
    if callable(data):
        name = getattr(data, "__name__", "data")
        return list(called_rows(data, name)), name
    values = (each.data if isinstance(each, Case) else each for each in data)
    return list(rows_from(values, "data")), "data"


@dataclass(frozen=True, slots=True)
class _RowMapping:
    """How a row becomes a case: templates by the field of the case."""

    inputs: ValueTemplate | None
    columns: Mapping[str, ValueTemplate | None]
    shares: Sequence[int]

    def case(self, row: Row, number: int, name: str) -> Case:
        """Raises: `InputError` with the name of the data and the row's number."""
        where = f"{name}, row {number}"
        values = {
            key: row.get(key) if parsed is None else _rendered(parsed, row, where)
            for key, parsed in self.columns.items()
        }
        own = str(number) if values["id"] in (None, "") else str(values["id"])
        group = own if values["group"] in (None, "") else str(values["group"])
        split = row.get("split") or split_of(group, self.shares)
        if split not in SPLITS:
            hint = f"there are {', '.join(SPLITS)}; rename the column"
            raise InputError(f"{where}: there is no split {split!r}", hint=hint)
        return Case(own, self._inputs(row, where), values["expected"], group, split)

    def _inputs(self, row: Row, where: str) -> Mapping[str, Any]:
        if self.inputs is not None:
            found: Mapping[str, Any] = _rendered(self.inputs, row, where)
            return found
        given = row.get("inputs")
        if given is None:
            return {str(name): value for name, value in row.items() if name not in RESERVED}
        if not isinstance(given, Mapping):
            raise InputError(f"{where}: `inputs` is {given!r:.80}", hint="it is a mapping")
        return given


def _is_misfit(value: Any, name: str, document: WorkflowDocument) -> bool:
    """Whether a value is a text where the input is of another type, as all values of CSV are."""
    declared = document.inputs.get(name)
    return isinstance(value, str) and declared is not None and bool(violation(value, declared.root))


def _column(value: Any, key: str) -> ValueTemplate | None:
    """A template; a bare name is that of a column (not of `expected`, which may be a text)."""
    if value is None:
        return None
    bare = isinstance(value, str) and "{" not in value and key != "expected"
    return _parsed(f"{{{{ case['{value}'] }}}}" if bare else value)


def _parsed(value: Any) -> ValueTemplate:
    try:
        parsed = value_template(value)
    except BadExpression as error:
        raise InputError(f"{value!r:.80}: {error.message}", hint=error.hint) from error
    if parsed.names - {"case"}:
        unknown = ", ".join(sorted(parsed.names - {"case"}))
        raise InputError(f"{value!r:.80}: there is no {unknown}", hint="a row is called `case`")
    return parsed


def _condition(text: str) -> ValueTemplate:
    """A template whose value is not always the text around it. Raises: `InputError`."""
    parsed = _parsed(text)
    whole = parsed.whole
    if whole is None or (whole.kind != "expression" and "{%" not in text):
        hint = f'write "{{{{ {text} }}}}"' if "{{" not in text else "put all of it into one {{ }}"
        raise InputError(f"{text!r:.80} is a text, which is true of every row", hint=hint)
    return parsed


def _rendered(parsed: ValueTemplate, row: Row, where: str) -> Any:
    try:
        return parsed.render({"case": row})
    except NodeFailed as error:
        raise InputError(f"{where}: {error.message}", hint=error.hint) from error
