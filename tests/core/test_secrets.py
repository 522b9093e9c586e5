"""Which variables hold secrets, and what hides them: looked at for every run, made when new."""

from __future__ import annotations

import pytest

from weft.core.redaction import named_secrets, redactor_for


def test_a_secret_that_changes_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "first-secret")
    first = redactor_for(named_secrets())
    assert redactor_for(named_secrets()) is first
    monkeypatch.setenv("SOME_API_KEY", "second-secret")
    second = redactor_for(named_secrets())
    assert second.redact("second-secret") == "[secret:SOME_API_KEY]"
    assert second.redact("first-secret") == "first-secret"


def test_the_same_value_under_another_name_has_another_mark() -> None:
    one, other = redactor_for({"A_KEY": "the-secret"}), redactor_for({"B_KEY": "the-secret"})
    assert one.redact("the-secret") == "[secret:A_KEY]"
    assert other.redact("the-secret") == "[secret:B_KEY]"


def test_names_that_tell() -> None:
    there = {"MY_TOKEN": "0123456789", "MONKEY": "0123456789", "A_PASSWORD": "short"}
    assert named_secrets((), there) == {"MY_TOKEN": "0123456789"}
    assert named_secrets(("MONKEY",), there).keys() == {"MONKEY", "MY_TOKEN"}
