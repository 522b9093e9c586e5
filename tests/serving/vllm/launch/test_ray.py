"""The commands that put one server on several machines; they are not run here."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest

from tests.golden_files import assert_golden
from tests.serving.vllm.launch.engines import CPU, CUDA, model
from weft.core.errors import SpecError
from weft.serving.vllm import serve
from weft.serving.vllm.launch.ray import ray_commands
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.serve import across_machines

GOLDEN = Path(__file__).parents[3] / "golden" / "vllm_ray.txt"


def drawn(folder: Path) -> str:
    model(folder, "my model")
    specs = (
        ServeSpec("owner/Large-70B", tp=8, pp=2, nodes=2, host="0.0.0.0", api_key_env="MY_KEY"),
        ServeSpec("./my model", tp=8, dp=3, nodes=3, port=9000),
        ServeSpec("owner/Large-405B", tp=16, nodes=2, host="0.0.0.0"),
    )
    with chdir(folder):
        text = "\n".join(ray_commands(spec, CUDA) for spec in specs)
    return text.replace(str(folder), "/models")


def test_commands_for_several_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    assert_golden(GOLDEN, drawn(tmp_path))


def test_a_machine_without_a_gpu_can_say_what_to_type_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "installed_engine", lambda: CPU)
    spec = ServeSpec("owner/model", nodes=2, tp=2)
    assert across_machines(spec) == ray_commands(spec, CUDA)


def test_what_needs_no_ray_or_cannot_have_it() -> None:
    with pytest.raises(SpecError, match="one machine needs no Ray"):
        ray_commands(ServeSpec("owner/model"), CUDA)
    with pytest.raises(SpecError, match="vLLM refuses Ray on a CPU"):
        ray_commands(ServeSpec("owner/model", nodes=2, tp=2), CPU)
