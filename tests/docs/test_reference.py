"""The reference is that of the code, and what other pages count is so."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from types import ModuleType

import pytest

from tests.docs.pages import ROOT

pytest.importorskip("torch", reason="the decoders need the `local` extra")


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


def test_every_page_is_up_to_date() -> None:
    """In a process of its own: fixtures of other tests change defaults that a page shows."""
    check = [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"]
    ran = subprocess.run(check, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_readme_counts_what_there_is(reference: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    drafting = [each for each in reference._decoders() if each["kind"] == "autoregressive"]
    filling = [each for each in reference._decoders() if each["kind"] == "diffusion"]
    assert re.findall(r"(\d+) strategies", readme) == [str(len(reference.STRATEGIES))]
    assert re.findall(r"(\d+) decoders", readme) == [str(len(drafting))]
    assert len(filling) > 40
