from __future__ import annotations

import dataclasses
import inspect
import json
import re

import pytest

from weft.core import errors
from weft.core.errors import (
    BuildError,
    Failure,
    InternalError,
    ModelOverloaded,
    ModelUnavailable,
    NodeFailed,
    NodeTimeout,
    SourceError,
    ToolRaised,
    WeftError,
    convert,
)

CLASSES = [
    cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, WeftError)
]


def drawn_tree() -> dict[str, str]:
    """Each class in the drawing of the module's docstring, and its parent there."""
    path: list[str] = []
    parents: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"([│├└─ ]*)(\w+)  ", line)
        if not found or not found[2].endswith(("Error", *_NAMES)):
            continue
        depth = len(found[1]) // 4
        path[depth:] = [found[2]]
        parents[found[2]] = path[depth - 1] if depth else ""
    return parents


_NAMES = tuple(cls.__name__ for cls in CLASSES)


def test_the_drawing_shows_the_true_tree() -> None:
    real = {cls.__name__: cls.__bases__[0].__name__ for cls in CLASSES}
    real["WeftError"] = ""
    assert drawn_tree() == real


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_becomes_plain_data(cls: type[WeftError]) -> None:
    failure = cls("what happened").failure()
    assert failure.error == cls.__name__
    assert failure.message == "what happened"
    assert failure.stage == cls.stage
    assert json.loads(json.dumps(dataclasses.asdict(failure)))["retryable"] == cls.retryable


def test_stages_follow_the_branches() -> None:
    stages = {cls.__name__: cls.stage for cls in (BuildError, ToolRaised, ModelUnavailable)}
    assert stages == {"BuildError": "build", "ToolRaised": "tool", "ModelUnavailable": "model"}
    assert InternalError("x").stage == "internal"


def test_only_what_may_pass_by_itself_is_retryable() -> None:
    assert {cls.__name__ for cls in CLASSES if cls.retryable} == {
        "ToolBreakerOpen",
        "ModelBreakerOpen",
        "ClusterError",
        "WorkerLost",
        "NodeTimeout",
        "MachineBusy",
        "NotDone",
        "ModelUnavailable",
        "ModelOverloaded",
        "ModelOutputError",
        "OutputTruncated",
    }


def test_one_error_can_say_otherwise() -> None:
    assert ToolRaised("x", retryable=True).retryable
    assert not NodeTimeout("x", retryable=False).retryable
    assert not ToolRaised("x").retryable, "the class must not have changed"


def test_texts_name_the_node_and_the_remedy() -> None:
    assert str(NodeTimeout("took 3 s", node="a[1]", hint="raise it")) == (
        "a[1]: took 3 s (raise it)"
    )
    assert str(
        SourceError("no such key", file="f.yaml", line=3, column=7, hint="did you mean?")
    ) == ("f.yaml:3:7: no such key (did you mean?)")
    assert str(Failure("X", "y", hint="z")) == "X: y (z)"
    assert "report" in str(InternalError("x"))


def test_an_overloaded_model_keeps_its_delay() -> None:
    assert ModelOverloaded("busy", retry_after_s=3).retry_after_s == 3


def test_conversion_keeps_ours_and_wraps_the_rest_once() -> None:
    ours = ToolRaised("x")
    assert convert(ours, "a") is ours
    assert ours.node == "a"
    assert convert(ours, "b").node == "a", "the first place is the true one"
    foreign = KeyError("k")
    wrapped = convert(foreign, "a")
    assert isinstance(wrapped, NodeFailed)
    assert (wrapped.node, wrapped.message, wrapped.__cause__) == ("a", "KeyError: 'k'", foreign)
