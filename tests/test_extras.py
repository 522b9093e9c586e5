"""A bare install: every command works, or says which extra brings what is missing."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from typer.main import get_command

from weft.cli.main import app
from weft.core.extras import advice, extra_with

_NOWHERE = "http://127.0.0.1:9/v1"
_LOCAL = "pip install 'weft[local]'"
_FILES = {
    "tools.py": (
        "import weft\n\n\n@weft.tool\ndef twice(number: int) -> int:\n"
        '    """Double it."""\n    return 2 * number\n'
    ),
    "plain.yaml": (
        "name: plain\nnodes: {b: {tool: ./tools.py:twice, with: {number: 4}}}\n"
        'outputs: {b: "{{ b }}"}\n'
    ),
    "local.yaml": (
        "name: local\nmodels: {m: {use: local, model: smollm2-135m-instruct}}\n"
        'nodes: {a: {model: m, prompt: hi}}\noutputs: {a: "{{ a }}"}\n'
    ),
    "here.yaml": (
        "name: here\nmodels: {m: {use: local, model: ./model}}\n"
        'nodes: {a: {model: m, prompt: hi}}\noutputs: {a: "{{ a }}"}\n'
    ),
    "decoded.yaml": (
        "name: decoded\nmodels: {m: {use: local, model: smollm2-135m-instruct}}\n"
        'nodes: {a: {model: m, prompt: hi, decode: llada}}\noutputs: {a: "{{ a }}"}\n'
    ),
    "own.yaml": (
        "name: own\nmodels: {m: {use: local, model: list-full}}\n"
        'nodes: {a: {model: m, prompt: hi}}\noutputs: {a: "{{ a }}"}\n'
    ),
    "remote.yaml": (
        f"name: remote\nmodels: {{m: {{use: openai, model: m, base_url: '{_NOWHERE}'}}}}\n"
        'nodes: {a: {model: m, prompt: hi}}\noutputs: {a: "{{ a }}"}\n'
    ),
    "claude.yaml": (
        "name: claude\nmodels: {m: {use: anthropic, model: m, options: {thinking: adaptive}}}\n"
        'nodes: {a: {model: m, prompt: hi}}\noutputs: {a: "{{ a }}"}\n'
    ),
    "gemini.yaml": (
        "name: gemini\nmodels: {m: gemini:m}\n"
        'nodes: {a: {model: m, prompt: hi}}\noutputs: {a: "{{ a }}"}\n'
    ),
    "model/config.json": '{"model_type": "llama"}',
    "prompts.txt": "hello\n",
    "one.jsonl": '{"expected": 8}\n',
}
_TRAINER = ("--data", "prompts.txt", "--out", "out", "--model", "model")
_BARE: dict[tuple[str, ...], tuple[int, str]] = {
    ("--help",): (0, "Commands"),
    ("version",): (0, "weft"),
    ("doctor",): (1, _LOCAL),
    ("doctor", "--json"): (1, _LOCAL),
    ("init", "new"): (0, "workflow.yaml"),
    ("generate-calls", "--tools", "one.jsonl", "--out", "calls.jsonl"): (2, "tool"),
    ("write", "hi", "--tools", "tools.py", "--out", "new.yaml", "--model", "local:./model"): (
        1,
        _LOCAL,
    ),
    ("optimise", "plain.yaml", "--data", "one.jsonl", "--metric", "exact"): (2, "effect"),
    ("check", "plain.yaml"): (0, ""),
    ("check", "local.yaml"): (0, ""),
    ("check", "remote.yaml"): (0, ""),
    ("check", "decoded.yaml"): (2, _LOCAL),
    ("check", "claude.yaml"): (0, ""),
    ("check", "gemini.yaml"): (0, ""),
    ("run", "claude.yaml"): (1, "pip install 'weft[providers]'"),
    ("run", "gemini.yaml"): (1, "the package google-genai is missing for models of the Gemini API"),
    ("run", "plain.yaml", "--run-id", "a"): (0, "succeeded"),
    ("run", "plain.yaml", "--run-id", "b"): (0, "succeeded"),
    ("run", "local.yaml"): (1, "[local]"),
    ("run", "here.yaml"): (1, _LOCAL),
    ("run", "own.yaml"): (1, "weft-weights is missing"),
    ("run", "remote.yaml"): (1, "cannot connect"),
    ("runs",): (0, "succeeded"),
    ("runs", "show", "a"): (0, "plain"),
    ("runs", "check"): (0, "all that was recorded is there"),
    ("resume", "a"): (0, "has succeeded"),
    ("replay", "a"): (0, "identical"),
    ("diff", "a", "b"): (0, ""),
    ("regroup", "a"): (0, "join"),
    ("simulate", "a"): (0, ""),
    ("answer", "a", "b", "1"): (2, ""),
    ("signal", "a", "b", "--value", "1"): (2, ""),
    ("submit", "plain.yaml", "--key", "q"): (0, "q"),
    ("queue", "list"): (0, "queued"),
    ("schedule", "list"): (0, "there are none"),
    ("schedule", "add", "s", "0 3 * * *", "plain.yaml"): (2, "the package cronsim is missing"),
    ("worker", "decoded.yaml"): (2, _LOCAL),
    ("graph", "plain.yaml", "-o", "graph.svg"): (0, ""),
    ("graph", "plain.yaml", "-o", "graph.png"): (1, "pip install 'weft[png]'"),
    ("schema",): (0, "$schema"),
    ("model", "list"): (0, "the package weft-weights is missing"),
    ("model", "pull", "smollm2-135m-instruct"): (1, _LOCAL),
    ("conversations", "list"): (0, ""),
    ("cluster", "status"): (0, "no cluster was started here"),
    ("cluster", "up"): (1, "pip install 'weft[ray]'"),
    ("run", "plain.yaml", "--on", "ray"): (1, "the package ray is missing"),
    ("run", "plain.yaml", "--on", "ray:127.0.0.1:9"): (1, "pip install 'weft[ray]'"),
    ("decoders",): (2, _LOCAL),
    ("think", "hi", "--model", "local:./model"): (1, _LOCAL),
    ("think", "hi", "--model", "m", "--base-url", _NOWHERE): (1, "cannot connect"),
    ("ask", "hi", "--tools", "tools.py", "--model", "local:./model"): (1, _LOCAL),
    ("ask", "hi", "--tools", "tools.py", "--model", "m", "--base-url", _NOWHERE): (1, "connect"),
    ("eval", "plain.yaml", "--data", "one.jsonl", "--metric", "exact", "--json"): (0, "finished"),
    ("ps",): (0, ""),
    ("stop", "--all"): (0, ""),
    ("serve", "model"): (1, "vllm"),
    ("plan-serve", "model", "--gpu", "h100"): (2, ""),
    ("train-drafter", "--list"): (2, _LOCAL),
    ("train-drafter", "medusa", *_TRAINER): (2, _LOCAL),
    ("export-drafter", "head", "--model", "m", "--out", "new"): (2, _LOCAL),
    ("train-diffusion", "--list"): (2, _LOCAL),
    ("train-diffusion", "block", *_TRAINER): (2, _LOCAL),
    ("train-planner", "--data", "one.jsonl", "--out", "new"): (2, _LOCAL),
    ("train-router", "nothing", "--out", "router.json"): (2, "no run"),
    ("gateway", "plain.yaml"): (1, "pip install 'weft[gateway]'"),
    ("ui", "--no-open"): (1, "pip install 'weft[gateway]'"),
    ("mcp", "plain.yaml"): (1, "pip install 'weft[mcp]'"),
    ("runs", "--journal", "postgresql://nobody@127.0.0.1:9/x"): (1, "pip install 'weft[postgres]'"),
}
_WITH_GATEWAY: dict[tuple[str, ...], tuple[int, str]] = {
    ("gateway", "plain.yaml", "--port", "0"): (0, "http://127.0.0.1:"),
    ("gateway", "here.yaml", "--port", "0"): (1, _LOCAL),
    ("ui", "--no-open"): (0, "http://127.0.0.1:"),
}


@pytest.mark.parametrize(
    ("extra", "commands"), [("", _BARE), ("gateway", _WITH_GATEWAY)], ids=["bare", "gateway"]
)
def test_without_packages_commands_work_or_name_an_extra(
    extra: str, commands: dict[tuple[str, ...], tuple[int, str]], tmp_path: Path
) -> None:
    found = _outcomes(extra, list(commands), tmp_path)
    wrong = [
        f"weft {' '.join(command)}: {code}, expected {expected} and {part!r}\n{out[-600:]}{err}"
        for (command, (expected, part)), (code, out, err) in zip(
            commands.items(), found, strict=True
        )
        if code != expected or part not in out + err or "bug in weft" in err
    ]
    assert not wrong, "\n".join(wrong)


def test_each_command_is_among_them() -> None:
    groups = {command[0] for command in _BARE}
    assert not set(getattr(get_command(app), "commands")) - groups  # noqa: B009


def _outcomes(
    extra: str, commands: list[tuple[str, ...]], folder: Path
) -> list[tuple[int, str, str]]:
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "tests.bare_install", extra],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
            "PYTHONPATH": str(Path(__file__).parent.parent),
            "PYTHONSAFEPATH": "1",
            "WEFT_HOME": str(folder / "home"),
            "WEFT_JOURNAL": str(folder / "runs.sqlite"),
        },
    )
    assert found.returncode == 0, found.stderr
    outcomes: list[tuple[int, str, str]] = json.loads(found.stdout)
    return outcomes


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("numpy", "local"),
        ("torch", "local"),
        ("weft_weights", "local"),
        ("starlette", "gateway"),
        ("prometheus_client", "gateway"),
        ("mcp", "mcp"),
        ("anthropic", "providers"),
        ("google", "providers"),
        ("opentelemetry", "otel"),
        ("psycopg_pool", "postgres"),
        ("PIL", "png"),
        ("vllm", "vllm"),
    ],
)
def test_the_extra_of_a_module_is_read_from_the_metadata(module: str, extra: str) -> None:
    assert extra_with(module) == extra
    assert advice(module) == f"pip install 'weft[{extra}]'"


def test_the_page_of_the_installation_names_every_extra() -> None:
    page = (Path(__file__).parents[1] / "docs" / "install.md").read_text("utf-8")
    extras = set(metadata.metadata("weft").get_all("Provides-Extra") or ()) - {"dev"}
    assert extras == set(re.findall(r"^\| `weft\[([\w-]+)\]`", page, re.MULTILINE))


def test_what_no_extra_has_is_installed_by_its_name() -> None:
    assert advice("unheard_of") == "pip install unheard_of"
