"""`weft check` and `weft.check` report all mistakes of a workflow at once, in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.errors import BuildError, SourceError

TOOLS = """\
import weft

@weft.tool
def search(query: str, limit: int = 3) -> list[dict[str, str]]:
    '''Search.'''
    return []
"""
WRONG = """\
name: wrong
inputs: {topic: string}
models: {small: local:smollm2-135m-instruct}
tools: {search: ./tools.py:search}
nodes:
  hits: {tool: search, with: {query: 5}}
  short: {model: small, promt: "About {{ topic }}"}
  long: {model: smal, prompt: "About {{ topik }}", retry: -1}
  both: {value: "{{ short }} {{ longg }}"}
  each:
    map: "{{ topic }}"
    do: {model: small, prompt: "{{ hits[0].text }}{{ itm }}", fallbak: both}
  same: {value: "{{ hits.text }}", after: nothing}
outputs:
  a: "{{ both }}"
  b: "{{ no }}"
"""


def write(folder: Path, text: str) -> Path:
    (folder / "tools.py").write_text(TOOLS)
    (folder / "wrong.yaml").write_text(text)
    return folder / "wrong.yaml"


def test_all_defects_of_a_file_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        weft.check(write(tmp_path, WRONG))
    found = [(e.line, e.message) for e in caught.value.defects if isinstance(e, SourceError)]
    assert [line for line, _ in found] == [6, 7, 8, 9, 11, 12, 13, 16]
    for (_, message), words in zip(
        found,
        [
            "`query`",
            "`promt`",
            "`attempts`",
            "longg",
            "needs a list",
            "`fallbak`",
            "nothing",
            "`no`",
        ],
        strict=True,
    ):
        assert words in message
    notes = "\n".join(caught.value.__notes__)
    assert all(message in notes for _, message in found[1:])


def test_keys_names_and_types_of_one_file(tmp_path: Path) -> None:
    text = WRONG.replace(", retry: -1", "").replace(", fallbak: both", "")
    with pytest.raises(SourceError) as caught:
        weft.check(write(tmp_path, text))
    lines = [e.line for e in caught.value.defects if isinstance(e, SourceError)]
    assert lines == [6, 7, 8, 8, 9, 11, 12, 13, 16]


def test_a_mistake_is_reported_once(tmp_path: Path) -> None:
    for wrong, right in (("promt", "prompt"), ("longg", "both"), ("query: 5", "query: x")):
        text = (
            "name: one\ninputs: {topic: string}\nmodels: {small: local:smollm2-135m-instruct}\n"
            "tools: {search: ./tools.py:search}\nnodes:\n"
            "  both: {value: '{{ topic }}'}\n"
            f"  a: {{model: small, {wrong if right == 'prompt' else 'prompt'}: x}}\n"
            f"  b: {{value: '{{{{ {wrong if right == 'both' else 'both'} }}}}'}}\n"
            f"  c: {{tool: search, with: {{{wrong if 'query' in right else 'query: x'}}}}}\n"
            "outputs: {o: '{{ a }}{{ b }}{{ c }}'}\n"
        )
        with pytest.raises(SourceError) as caught:
            weft.check(write(tmp_path, text))
        assert len(caught.value.defects) == 1


def test_defects_of_included_files_are_reported_too(tmp_path: Path) -> None:
    inner = "name: inner\nnodes:\n  a: {value: 1, wen: x}\n  b: {value: '{{ x }}'}\n"
    (tmp_path / "inner.yaml").write_text(inner + "outputs: {o: '{{ b }}'}\n")
    outer = "name: o\nnodes:\n  i: {workflow: ./inner.yaml}\n  j: {value: '{{ y }}'}\n"
    with pytest.raises(SourceError) as caught:
        weft.check(write(tmp_path, outer + "outputs: {o: '{{ i.o }}{{ j }}'}\n"))
    places = {
        (Path(e.file).name, e.line) for e in caught.value.defects if isinstance(e, SourceError)
    }
    assert places == {("inner.yaml", 3), ("inner.yaml", 4), ("wrong.yaml", 4)}


def test_the_command_prints_all(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(write(tmp_path, WRONG))])
    assert result.exit_code == 2
    assert result.output.count("error: ") == 8


def test_a_flow_in_python_reports_all() -> None:
    def size(text: str) -> int:
        return len(text)

    flow = weft.Flow("wrong", models={"small": "local:smollm2-135m-instruct"})
    flow.value("{{ nothing }}", name="one")
    flow.model("smal", "x", name="two")
    flow.call(size, args={}, name="three")
    flow.output(a="{{ one }}")
    with pytest.raises(BuildError) as caught:
        flow.check()
    assert [error.node for error in caught.value.defects] == ["one", "two"]
    flow = weft.Flow("wrong")
    flow.call(size, name="a")
    b = flow.call(size, text="x", name="b")
    flow.map(b, lambda one: flow.call(size, name="c"), name="d")
    flow.value("{{ b }}", name="e")
    flow.output(o="{{ e }}")
    with pytest.raises(BuildError) as caught:
        flow.check()
    assert [error.node for error in caught.value.defects] == ["a", "d"]


def test_a_misspelt_local_model_is_found(tmp_path: Path) -> None:
    text = "name: x\nmodels: {small: local:smollm2-135m-instrct}\nnodes:\n"
    text += "  a: {model: small, prompt: x}\noutputs: {o: '{{ a }}'}\n"
    with pytest.raises(SourceError, match=r"smollm2-135m-instrct.*did you mean") as caught:
        weft.check(write(tmp_path, text))
    assert caught.value.line == 2
    assert "smollm2-135m-instruct" in str(caught.value.hint)
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weft.check(write(tmp_path, text.replace("local:smollm2-135m-instrct", f"local:{folder}")))


DECLARED = """\
name: x
inputs: {q: %s}
models: {small: %s}
tools: {s: %s}
nodes:
  a: {value: {y: 1}}
  b: {value: "{{ a.z }}"}
  c: {model: small, prompt: "{{ q }}", decode: "lookup:8"}
  d: {tool: s, with: {q: "{{ c }}"}}
outputs: {o: "{{ b }}"}
"""
SOUND = ("string", "local:smollm2-135m-instruct", "{mcp: 'server'}")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (("strin", *SOUND[1:]), "'strin' is not a type"),
        ((SOUND[0], "{use: openai, modle: m}", SOUND[2]), "unknown key `modle`"),
        ((*SOUND[:2], "{use: 3}"), "`use` must be a text"),
    ],
)
def test_defects_of_declarations_do_not_hide_those_of_types(
    declared: tuple[str, str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "x.yaml").write_text(DECLARED % declared)
    with pytest.raises(SourceError) as caught:
        weft.check(tmp_path / "x.yaml")
    told = [str(each) for each in caught.value.defects]
    assert message in told[0]
    assert "no property 'z'" in told[-1], told
