"""When repairs are looked for, what is said about them, and that they never harm a server."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from weft.serving.vllm import plugin
from weft.serving.vllm.plugin import LOG, mend


class Fault:
    """A fault that is there until it is mended."""

    name = "the weather"
    why = "it rained"

    def __init__(self, there: bool = True) -> None:
        self.there = there
        self.applied = 0

    def probe(self) -> bool:
        return self.there

    def apply(self) -> None:
        self.there = False
        self.applied += 1


class Unknown(Fault):
    def probe(self) -> bool:
        raise AttributeError("module 'vllm' has no attribute 'weather'")


class Platform:
    """As much of a vLLM platform as the plugin touches."""

    cpu = True
    calls = 0

    def is_cpu(self) -> bool:
        return self.cpu

    @classmethod
    def register_triton_kernel_overrides(cls) -> str:
        cls.calls += 1
        return "registered"


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Any:
    kind = type("CpuPlatform", (Platform,), dict(vars(Platform)))
    module = ModuleType("vllm.platforms")
    vars(module)["current_platform"] = kind()
    monkeypatch.setitem(sys.modules, "vllm.platforms", module)
    monkeypatch.delenv("WEFT_VLLM_REPAIRS", raising=False)
    return kind


@pytest.fixture
def mended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    moments: list[str] = []
    monkeypatch.setattr(plugin, "_mend_worker", lambda: moments.append("mended"))
    return moments


def test_each_repair_is_one_line_in_vllms_log(caplog: pytest.LogCaptureFixture) -> None:
    fault, healthy = Fault(), Fault(there=False)
    with caplog.at_level(logging.INFO, LOG.name):
        mend([fault, healthy])
        mend([fault, healthy])
    assert [fault.applied, healthy.applied] == [1, 0]
    assert caplog.messages == ["weft repaired the weather: it rained"]
    assert LOG.name.split(".")[0] == "vllm"


def test_what_cannot_be_checked_is_left_and_the_rest_is_mended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unknown, fault = Unknown(), Fault()
    with caplog.at_level(logging.INFO, LOG.name):
        mend([unknown, fault])
    assert [unknown.applied, fault.applied] == [0, 1]
    assert caplog.messages[0].startswith("weft cannot check the weather in this vLLM: Attribute")


def test_a_worker_is_mended_once_after_its_platform(platform: Any, mended: list[str]) -> None:
    plugin.register()
    plugin.register()
    assert mended == []
    assert platform().register_triton_kernel_overrides() == "registered"
    assert mended == ["mended"]
    assert platform.calls == 1


def test_vllms_own_failure_stays_its_own(
    platform: Any, mended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("no kernels")

    monkeypatch.setattr(platform, "register_triton_kernel_overrides", staticmethod(fail))
    plugin.register()
    with pytest.raises(RuntimeError, match="no kernels"):
        platform.register_triton_kernel_overrides()
    assert mended == []


def test_other_platforms_are_not_touched(platform: Any, mended: list[str]) -> None:
    platform.cpu = False
    plugin.register()
    platform.register_triton_kernel_overrides()
    assert mended == []


def test_it_can_be_switched_off(
    platform: Any, mended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_VLLM_REPAIRS", "0")
    plugin.register()
    platform.register_triton_kernel_overrides()
    assert mended == []


def test_an_unknown_vllm_starts_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "vllm.platforms", ModuleType("vllm.platforms"))
    plugin.register()
    assert caplog.messages[0].startswith("weft repairs nothing in this vLLM")


def test_registering_loads_no_repair_and_no_torch() -> None:
    """Every vLLM process pays for it, on GPUs too."""
    script = (
        "import sys, types; module = types.ModuleType('vllm.platforms');"
        "module.current_platform = type('Gpu', (), {'is_cpu': lambda self: False})();"
        "sys.modules['vllm.platforms'] = module;"
        "from weft.serving.vllm.plugin import register; register();"
        "print(*sorted(n for n in sys.modules if n.startswith(('torch', 'weft.serving.'))))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert answer.stdout.decode().split() == [
        "weft.serving.vllm",
        "weft.serving.vllm.plugin",
    ]


@pytest.mark.vllm
def test_the_installed_vllm_has_the_faults_and_loses_them() -> None:
    """In a process of its own, because vLLM changes torch and the log for all that follows."""
    command = [sys.executable, "-m", "tests.serving.vllm.plugin.installed_faults"]
    root = Path(__file__).parents[4]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=120)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout.splitlines()[-1])
    if found["platform"] != "cpu":
        pytest.skip("the faults are those of a CPU")
    for name, there in found["before"].items():
        assert there, f"vLLM has mended {name}: drop the repair"
    assert not any(found["after"].values()), found
    assert found["lines"] == [4, 0]
