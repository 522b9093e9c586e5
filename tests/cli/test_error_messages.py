"""Errors are told to people: what, where, and what to do; a traceback only when asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from tests.cli.hostile import ALL, FORBIDDEN
from weft.cli.errors import report_errors
from weft.core.errors import (
    InputError,
    ModelUnavailable,
    SourceError,
    WeftError,
)


def complained(
    error: Exception, capsys: pytest.CaptureFixture[str], *, as_json: bool = False
) -> tuple[int, str, str]:
    with pytest.raises(typer.Exit) as caught, report_errors(debug=False, as_json=as_json):
        raise error
    out, err = capsys.readouterr()
    return caught.value.exit_code, out, err


def test_a_source_error_shows_the_line_with_a_caret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text("name: x\nnodes:\n\tpromt: hi\n")
    error = SourceError(
        "unknown key 'promt'", file=str(file), line=3, column=2, hint="did you mean 'prompt'?"
    )
    code, out, err = complained(error, capsys)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "error: unknown key 'promt'",
        f"  --> {file}:3:2",
        "   |",
        " 3 |  promt: hi",
        "   |  ^",
        "hint: did you mean 'prompt'?",
    ]


@pytest.mark.parametrize(("line", "column"), [(99, 1), (1, 10_000), (0, 0)])
def test_a_place_that_is_not_there_is_only_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: int, column: int
) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text("name: x\n")
    error = SourceError("wrong", file=str(file), line=line, column=column)
    _, _, err = complained(error, capsys)
    assert err.splitlines() == ["error: wrong", f"  --> {file}:{line}:{column}"]


def test_text_without_a_file_has_no_excerpt(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = complained(SourceError("wrong"), capsys)
    assert err == "error: wrong\n  --> <text>:1:1\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("no"), 2), (ModelUnavailable("no"), 1), (ZeroDivisionError("no"), 1)],
)
def test_exit_statuses_tell_wrong_usage_from_failure(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complained(error, capsys)[0] == code


def test_errors_are_told_out_of_their_task_groups(capsys: pytest.CaptureFixture[str]) -> None:
    group = ExceptionGroup("a", [ExceptionGroup("b", [InputError("the cause")])])
    code, _, err = complained(group, capsys)
    assert (code, err) == (2, "error: the cause\n")


def test_a_bug_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = complained(ZeroDivisionError("division by zero"), capsys)
    assert err.startswith("error: ZeroDivisionError: division by zero")
    assert "--debug" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("error", [InputError("no"), ZeroDivisionError("no")])
def test_debug_shows_where_an_error_comes_from(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit), report_errors(debug=True):
        raise error
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert "raise error" in err
    assert f"{type(error).__name__}: no" in err


def test_an_interrupt_outside_a_run_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, report_errors(debug=False):
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130
    assert capsys.readouterr().err == ""


def test_as_json_the_error_is_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = complained(
        SourceError("wrong", file="f.yaml", line=3, column=4, hint="right it"), capsys, as_json=True
    )
    assert code == 2
    assert json.loads(out) == {
        "status": "invalid",
        "error": {
            "error": "SourceError",
            "message": "wrong",
            "hint": "right it",
            "node": None,
            "file": "f.yaml",
            "line": 3,
            "column": 4,
        },
    }
    assert "wrong" in err


def test_hostile_messages_are_shown_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = complained(WeftError(ALL, hint=ALL, node=ALL), capsys)
    assert not set(err) & set(FORBIDDEN)
    assert "[bold red]not bold[/]" in err
