"""Checks of references and types, where the table of broken files is not the right form."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from tests.workflow.case import WHOLE, loads
from weft.core.errors import (
    BuildError,
    CycleError,
    DuplicateName,
    SourceError,
    TypeMismatch,
    UnknownReference,
)
from weft.testing import FakeTools


def refused(nodes: str, outputs: str = 'a: "{{ a }}"') -> SourceError:
    with pytest.raises(SourceError) as caught:
        loads(nodes, outputs).check()
    return caught.value


@pytest.mark.parametrize(
    "nodes",
    [
        # a value made of others keeps their types
        '  b: {value: {x: {y: ["{{ topic }}", 1]}}}\n  a: {value: "{{ b.x.y[1] }}"}',
        # a map gives lists, and items have the type of what is in the list
        (
            '  b: {map: "{{ hits }}", as: h, do: {value: "{{ h.text }}"}}\n'
            "  hits: {value: [{text: x}]}\n  a: {value: '{{ b[0] }}'}"
        ),
        # paths that are guarded may not exist
        "  b: {value: {x: 1}}\n  a: {value: '{{ b.y | default(3) }}{{ b.z is defined }}'}",
        # names of loops inside templates are nobody's
        "  b: {value: [{x: 1}]}\n  a: {value: '{% for q in b %}{{ q.nope }}{% endfor %}'}",
        # methods are not fields
        "  b: {model: small, prompt: x}\n  a: {value: '{{ b.upper() }}{{ b.split() | length }}'}",
        # a default or a fallback may be of another type
        "  b: {model: small, prompt: x, default: {y: 1}}\n  a: {value: '{{ b.y }}'}",
        (
            "  b: {model: small, prompt: x, fallback: c}\n  c: {value: {y: 1}}\n"
            "  a: {value: '{{ b.y }}'}"
        ),
        # one case of a branch is enough
        "  b: {branch: x, cases: {x: {value: {y: 1}}, z: {value: 3}}}\n  a: {value: '{{ b.y }}'}",
        # nobody knows what a plain function returns
        '  b: {call: "./tools.py:shout", with: {text: x}}\n  a: {value: "{{ b.y.z }}"}',
        # samples are a list
        "  b: {model: small, prompt: x, samples: 2}\n  a: {map: '{{ b }}', do: {value: 1}}",
        "  b: {loop: {value: {y: 1}}, until: '{{ value.y }}', max: 2}\n  a: {value: '{{ b.y }}'}",
        "  b: {model: small, prompt: '{{ q.y }}', with: {q: {y: 1}}}\n  a: {value: '{{ b }}'}",
        "  b: {join: [c]}\n  c: {value: 1}\n  a: {map: '{{ b }}', do: {value: 1}}",
    ],
)
def test_right_types(nodes: str) -> None:
    loads(nodes).check()


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("  b: {value: {x: 1}}\n  a: {value: '{{ b.y }}'}", "`b.y`"),
        ("  b: {model: small, prompt: x, default: {y: 1}}\n  a: {value: '{{ b.z }}'}", "`b.z`"),
        ("  b: {map: [{t: 1}], as: h, do: {value: '{{ h.u }}'}}\n  a: {value: 1}", "`h.u`"),
        ("  b: {map: [1], do: {value: 1}}\n  a: {value: '{{ b.x }}'}", "`b.x`"),
        ("  b: {model: small, prompt: x, samples: 2}\n  a: {value: '{{ b.x }}'}", "`b.x`"),
        ("  b: {model: small, prompt: x, tools: [search]}\n  a: {value: '{{ b.x }}'}", "`b.x`"),
        ("  b: {ask: x, schema: boolean}\n  a: {value: '{{ b.x }}'}", "`b.x`"),
        ("  b: {model: small, prompt: '{{ q.z }}', with: {q: {y: 1}}}\n  a: {value: 1}", "`q.z`"),
        (
            "  a: {map: [1], do: {nodes: {b: {value: {x: 1}}}, result: '{{ b.y }}'}}",
            "`b.y`",
        ),
        ("  b: {workflow: ./part.yaml, with: {question: x}}\n  a: {value: '{{ b.y }}'}", "`b.y`"),
        (
            "  b: {value: '{{ topic | length }}'}\n  a: {tool: search, with: {query: '{{ b }}'}}",
            "query",
        ),
        ("  a: {tool: search, with: {query: '{{ topic == 1 }}'}}", "query"),
        ("  a: {tool: search, with: {query: x, limit: 'n{{ topic }}'}}", "limit"),
        ("  a: {tool: search, with: {query: [x]}}", "query"),
        ("  a: {reduce: './tools.py:longest', over: '{{ topic }}'}", "list"),
        ("  a: {call: './tools.py:shout'}", "`text`"),
    ],
)
def test_wrong_types(nodes: str, message: str) -> None:
    error = refused(nodes)
    assert message in error.message
    assert isinstance(error.__cause__, TypeMismatch)


def test_outputs_are_checked_too() -> None:
    error = refused("  a: {value: {x: 1}}", 'a: "{{ a.y }}"')
    assert (error.line, error.message.startswith("`a.y`")) == (11, True)


def test_a_long_chain_in_any_order() -> None:
    chain = [f'  n{i}: {{value: "{{{{ n{i + 1} }}}}"}}' for i in range(1200)]
    loads("\n".join([*chain, "  n1200: {value: {x: 1}}"]), 'a: "{{ n0.x }}"').check()
    error = refused("\n".join([*chain, "  n1200: {value: {x: 1}}"]), 'a: "{{ n0.y }}"')
    assert isinstance(error.__cause__, TypeMismatch)


def test_types_that_double_at_each_step() -> None:
    doubled = [
        f'  n{i}: {{value: {{a: "{{{{ n{i - 1} }}}}", b: "{{{{ n{i - 1} }}}}"}}}}'
        for i in range(1, 60)
    ]
    loads("\n".join(["  n0: {value: {x: 1}}", *doubled]), 'a: "{{ n59.a.b }}"').check()


def test_branches_that_double_at_each_step() -> None:
    doubled = [
        f'  n{i}: {{branch: x, cases: {{x: {{value: "{{{{ n{i - 1} }}}}"}},'
        f' y: {{value: ["{{{{ n{i - 1} }}}}"]}}}}}}'
        for i in range(1, 60)
    ]
    loads("\n".join(["  n0: {value: {x: 1}}", *doubled]), 'a: "{{ n59 }}"').check()


def test_files_that_include_two_files_each(tmp_path: Path) -> None:
    for i in range(40):
        part = f"{{workflow: ./f{i + 1}.yaml}}" if i < 39 else "{value: {x: 1}}"
        nodes = f"nodes: {{a: {part}, b: {part}}}"
        outputs = "outputs: {x: '{{ a }}', y: '{{ b }}'}"
        (tmp_path / f"f{i}.yaml").write_text(f"name: f\n{nodes}\n{outputs}\n")
    weft.load(tmp_path / "f0.yaml").check()


def test_a_long_cycle() -> None:
    ring = [f'  n{i}: {{value: "{{{{ n{(i + 1) % 1200} }}}}"}}' for i in range(1200)]
    assert isinstance(refused("\n".join(ring), 'a: "{{ n0 }}"').__cause__, CycleError)


def test_names_may_repeat_in_bodies_beside_each_other() -> None:
    loads(
        """\
  b: {map: [1], as: n, do: {nodes: {x: {value: "{{ n }}"}}, result: "{{ x }}"}}
  a: {map: [1], as: n, do: {nodes: {x: {value: "{{ n }}"}}, result: "{{ x }}"}}"""
    ).check()


def test_names_of_a_body_do_not_leave_it() -> None:
    error = refused("  a: {map: [1], as: n, do: {value: '{{ n }}'}}\n  b: {value: '{{ n }}'}")
    assert isinstance(error.__cause__, UnknownReference)
    inner = refused(
        "  a: {map: [1], do: {map: [2], do: {value: '{{ item }}'}}}",
    )
    assert isinstance(inner.__cause__, DuplicateName)


def test_given_tools_are_not_imported() -> None:
    text = """\
name: x
tools: {find: "./nowhere.py:find"}
nodes: {a: {tool: find, with: {anything: 1}}}
outputs: {a: "{{ a }}"}
"""
    flow = weft.loads(text)
    with pytest.raises(SourceError, match="no file"):
        flow.check()
    flow.check(tools=FakeTools(find=lambda anything: anything))


def test_a_diamond_of_files_is_read_once(tmp_path: Path) -> None:
    folder = tmp_path
    leaf = "name: leaf\nnodes: {a: {value: 1}}\noutputs: {x: '{{ a }}'}\n"
    middle = "name: m\nnodes: {a: {workflow: ./leaf.yaml}}\noutputs: {x: '{{ a.x }}'}\n"
    (folder / "leaf.yaml").write_text(leaf)
    for name in ("left", "right"):
        (folder / f"{name}.yaml").write_text(middle)
    top = folder / "top.yaml"
    top.write_text(
        "name: top\nnodes: {l: {workflow: ./left.yaml}, r: {workflow: ./right.yaml}}\n"
        "outputs: {x: '{{ l.x + r.x }}'}\n"
    )
    flow = weft.load(top)
    left, right = flow.unit.includes["./left.yaml"], flow.unit.includes["./right.yaml"]
    assert left.includes["./leaf.yaml"] is right.includes["./leaf.yaml"]
    assert flow.run_sync().outputs == {"x": 2}


def test_files_below_may_use_files_above_them_within_the_folder(
    tmp_path: Path,
) -> None:
    folder = tmp_path
    (folder / "parts").mkdir()
    (folder / "tools.py").write_text("def one() -> int:\n    return 1\n")
    (folder / "parts" / "part.yaml").write_text(
        "name: p\nnodes: {a: {call: '../tools.py:one'}}\noutputs: {x: '{{ a }}'}\n"
    )
    top = folder / "top.yaml"
    top.write_text("name: t\nnodes: {a: {workflow: parts/part.yaml}}\noutputs: {x: '{{ a.x }}'}\n")
    assert weft.load(top).run_sync().outputs == {"x": 1}
    with pytest.raises(SourceError, match="leads out"):
        weft.load(folder / "parts" / "part.yaml").check()


def test_errors_of_python_flows_name_the_node() -> None:
    flow = weft.Flow("x", folder=WHOLE)
    flow.value("{{ nowhere }}", name="a")
    flow.output(a="{{ a }}")
    with pytest.raises(UnknownReference) as caught:
        flow.check()
    assert caught.value.node == "a"
    assert not isinstance(caught.value, SourceError)
    with pytest.raises(BuildError, match="nodes"):
        weft.Flow("x").check()


@pytest.mark.parametrize(
    "schema",
    [
        '{$ref: "#/$defs/nope"}',
        '{$ref: "#nope"}',
        '{$ref: "https://example.com"}',
        '{$ref: "./other.json"}',
        '{$id: "https://example.com"}',
        "{$anchor: x}",
        '{pattern: "("}',
        '{patternProperties: {"(": {}}}',
        '{properties: {x: {pattern: "[z-a]"}}}',
        '{$ref: "#", default: 1}',
        '{allOf: [{$ref: "#/allOf/0"}], default: 1}',
        "{minimum: x}",
        "{type: [string, strin]}",
        "[strin]",
        "[string, integer]",
    ],
)
def test_schemas_that_cannot_be_used(schema: str) -> None:
    with pytest.raises(SourceError) as caught:
        loads("  a: {value: 1}", head=f"name: x\ninputs:\n  v: {schema}\n")
    assert caught.value.line == 3


def test_schemas_with_definitions() -> None:
    schema = (
        '{$schema: "https://json-schema.org/draft/2020-12/schema", $defs: {t: {type: array, '
        'items: {$ref: "#/$defs/t"}}}, $ref: "#/$defs/t"}'
    )
    flow = loads("  a: {value: '{{ v[0] }}'}", head=f"name: x\ninputs:\n  v: {schema}\n")
    assert flow.run_sync(v=[[[]], []]).outputs == {"a": [[]]}
    with pytest.raises(BuildError):
        flow.start({"v": [[1]]})
