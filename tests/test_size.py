"""No package grows without a reviewed line: see scripts/size.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("size", ROOT / "scripts" / "size.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "size", module)
    spec.loader.exec_module(module)
    return module


def test_every_package_is_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    size = script(monkeypatch)
    found = size.sizes()
    assert not size.over_budget(found)
    assert {one.package for one in found} == size.BUDGET.keys()
    monkeypatch.setattr(size, "BUDGET", {})
    assert size.over_budget(found)
