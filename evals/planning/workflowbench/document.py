"""A sample's statements as a weft document: variables become data flow, calls become stub tools.

call            tool node; one whose value nothing takes waits for the one before it
name = value    value node; of another variable: only another name for it
if, match       branch, whose value has the variables that its cases set; `input(...)` asks a person
for over list   map; loop where an iteration needs what an earlier one set, as for range and while
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from evals.planning.workflowbench.lines import Statement, statements
from evals.planning.workflowbench.samples import ControlFlow, Sample
from evals.planning.workflowbench.values import ValueReader, arguments_of, closing
from weft.workflow.document.spec.fields import RESERVED, free_name
from weft.workflow.document.writer import sections_text

_CALL: Final = re.compile(r"((?:is_workflow_actions|com|dk)_\w+)\s*\(")
_WORD: Final = re.compile(r"[^\W\d]\w*")
_FOR: Final = re.compile(r"(\w+)(?:\s*,\s*(\w+))?\s+in\s+(enumerate|range)?\s*(.*)\Z", re.DOTALL)
_MOST_TURNS: Final = 1000


@dataclass(slots=True)
class StubTool:
    """A tool made from calls: the types of its arguments, and how often each was given."""

    calls: int = 0
    given: dict[str, int] = field(default_factory=dict)
    types: dict[str, set[str]] = field(default_factory=dict)

    def take(self, arguments: Mapping[str, Any]) -> None:
        """Count one more call."""
        self.calls += 1
        for name, value in arguments.items():
            self.given[name] = self.given.get(name, 0) + 1
            self.types.setdefault(name, set()).add(_type(value))

    def source(self, name: str) -> str:
        """The tool as Python."""
        needed = [each for each, times in self.given.items() if times == self.calls]
        optional = [each for each in self.given if each not in needed]
        parameters = [f"{each}: {self._annotation(each)}" for each in needed]
        parameters += [f"{each}: {self._annotation(each)} | None = None" for each in optional]
        star = "*, " if parameters else ""
        values = ", ".join(f'"{each}": {each}' for each in self.given)
        return (
            f"@weft.tool(pure=True)\ndef {name}({star}{', '.join(parameters)}) -> Any:\n"
            f'    """A stub: returns its arguments."""\n    return {{{values}}}\n'
        )

    def _annotation(self, name: str) -> str:
        types = self.types[name]
        return next(iter(types)) if len(types) == 1 else "Any"


def _type(value: Any) -> str:
    if isinstance(value, str):
        whole = value.startswith("{{") and value.endswith("}}") and value.count("{{") == 1
        return "Any" if whole else "str"
    return type(value).__name__ if isinstance(value, (bool, int, float)) else "Any"


@dataclass(frozen=True, slots=True)
class Imported:
    """A sample as a document in plain data, with its tools as Python, and what it was made of."""

    sample: Sample
    raw: Mapping[str, Any]
    tools: str
    kept: ControlFlow

    @property
    def text(self) -> str:
        """The document as YAML."""
        return sections_text(self.raw)

    def write(self, folder: Path) -> Path:
        """Write the workflow and its tools into `folder`, and return the workflow's file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tools.py").write_text(self.tools, "utf-8")
        file = folder / "flow.yaml"
        file.write_text(self.text, "utf-8")
        return file


def import_sample(sample: Sample) -> Imported:
    """The sample as a document. Nothing of it is evaluated."""
    program = _Program()
    level = _Level(program, {})
    level.take(statements(sample.code))
    last = next(reversed(level.nodes), None)
    if last is None:
        level.nodes["nothing"] = {"value": None}
        last = "nothing"
    raw = {
        "name": f"sample_{sample.number}",
        "description": " ".join(sample.query.split())[:200],
        "tools": {name: f"./tools.py:{name}" for name in program.tools},
        "nodes": level.nodes,
        "outputs": {"last": f"{{{{ {last} }}}}"},
    }
    stubs = (stub.source(name) for name, stub in program.tools.items())
    tools = "\n\n".join(["from typing import Any\n\nimport weft\n", *stubs])
    return Imported(sample, raw, tools, _flow_of(level.nodes))


class _Program:
    """What is shared by all levels of one document: tools, and names that are taken."""

    def __init__(self) -> None:
        self.tools: dict[str, StubTool] = {}
        self._taken: set[str] = set()

    def claim(self, wanted: str) -> str:
        """A free name for a node or an item."""
        plain = re.sub(r"\W|_+", "_", wanted, flags=re.ASCII)
        plain = plain if re.match(r"[A-Za-z_]*[A-Za-z]", plain) else "value"
        name = free_name(plain, self._taken | RESERVED)
        self._taken.add(name)
        return name


class _Level:
    """The nodes of one level, and the variables there with their expressions."""

    def __init__(self, program: _Program, names: Mapping[str, str]) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.names = dict(names)
        self._program = program
        self._effect: str | None = None
        self._reader = ValueReader(self.names, self._ask)

    def take(self, block: Iterable[Statement]) -> None:
        """Add the nodes of statements, in order."""
        rest = list(block)
        chain: list[Statement] = []
        for at, statement in enumerate(rest):
            if statement in chain:
                continue
            match statement.kind:
                case "set" | "call":
                    self._set(statement)
                case "if":
                    others = takewhile(lambda each: each.kind in ("elif", "else"), rest[at + 1 :])
                    chain = list(others)
                    self._branch(statement, chain)
                case "elif":  # of nothing
                    self._branch(statement, [])
                case "else" | "case":
                    self.take(statement.body)
                case "match":
                    self._menu(statement)
                case "for":
                    self._for(statement)
                case "while":
                    self._while(statement)

    def _add(self, wanted: str, node: dict[str, Any], *, effect: bool = False) -> str:
        name = self._program.claim(wanted)
        if effect and self._effect is not None:
            node["after"] = [self._effect]
        if effect:
            self._effect = name
        self.nodes[name] = node
        return name

    def _ask(self, question: str, choices: Iterable[str] = ()) -> str:
        listed = list(dict.fromkeys(choices))
        schema = {"schema": {"enum": listed}} if listed else {}
        return self._add("asked", {"ask": question, **schema}, effect=True)

    def _set(self, statement: Statement) -> None:
        called = _CALL.match(statement.text)
        if called is not None:
            end = closing(statement.text, called.end() - 1)
            self._call(called[1], statement.text[called.end() : end], statement.target)
        elif statement.kind == "set":
            found = self._reader.path(statement.text)
            if found is None:
                value = self._reader.value(statement.text)
                found = self._add(statement.target, {"value": value})
            self.names[statement.target] = found

    def _call(self, name: str, inside: str, target: str) -> None:
        arguments = {
            f"{key}_" if keyword.iskeyword(key) else key: self._reader.value(text)
            for key, text in arguments_of(inside)
        }
        self._program.tools.setdefault(name, StubTool()).take(arguments)
        node = {"tool": name, **({"with": arguments} if arguments else {})}
        made = self._add(target or name.rpartition("_")[2], node, effect=not target)
        if target:
            self.names[target] = made

    def body(self, written: Iterable[str], more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The level as a body, whose result has the variables that it sets."""
        result = {_field(name): _value(self.names.get(name)) for name in written}
        result |= dict(more or {})
        last = self._program.claim("result")
        return {"nodes": {**self.nodes, last: {"value": result}}, "result": f"{{{{ {last} }}}}"}

    # -- control -------------------------------------------------------------------------------

    def _branch(self, statement: Statement, rest: list[Statement]) -> None:
        otherwise: list[Statement] = []
        if rest and rest[0].kind == "elif":
            again = Statement("if", rest[0].text, indent=rest[0].indent, body=rest[0].body)
            otherwise = [again, *rest[1:]]
        elif rest and rest[0].kind == "else":
            otherwise = rest[0].body
        test = self._reader.condition(statement.text)
        self._cases(f"{{{{ {test} }}}}", {"true": statement.body, "false": otherwise}, "decided")

    def _menu(self, statement: Statement) -> None:
        cases: dict[str, list[Statement]] = {}
        case = "default"
        for number, each in enumerate(statement.body, 1):
            if each.kind == "case":
                case = self._case(each.text, number)
                case = f"{case} ({number})" if case in cases else case
            cases.setdefault(case, []).extend(each.body if each.kind == "case" else [each])
        cases = cases or {"default": []}
        inside = statement.text[statement.text.find("(") + 1 : statement.text.rfind(")")]
        question = self._reader.value(inside.partition("prompt=")[2] or inside)
        asked = self._ask(str(question or "Choose"), [case for case in cases if case != "default"])
        self._cases(f"{{{{ {asked} }}}}", cases, "chosen")

    @staticmethod
    def _case(text: str, number: int) -> str:
        plain = text.strip().strip("'\"")
        return "default" if plain == "_" else plain or f"case {number}"

    def _cases(self, on: str, cases: Mapping[str, list[Statement]], wanted: str) -> None:
        written = list(dict.fromkeys(name for body in cases.values() for name in _set_in(body)))
        made = {}
        for case, body in cases.items():
            level = _Level(self._program, self.names)
            level.take(body)
            made[case] = level.body(written)
        node = self._add(wanted, {"branch": on, "cases": made}, effect=True)
        self.names.update({name: f"{node}[{_key(name)}]" for name in written})

    def _for(self, statement: Statement) -> None:
        found = _FOR.match(statement.text)
        if found is None:
            self._loop(statement, None, {})
            return
        first, second, how, over = found.groups()
        inside = over[1 : closing(over, 0)] if how else over
        inside = re.sub(r",\s*start\s*=\s*\d+\s*\Z", "", inside)
        if how == "range":
            self._loop(statement, self._reader.expression(inside), {first: "turn + 1"})
            return
        items = self._reader.expression(inside)
        items = "[]" if items == "none" else items
        carried = set(_set_in(statement.body)) & set(self.names) & _read_in(statement.body)
        if carried:
            names = {second or first: "item", **({first: "turn + 1"} if second else {})}
            self._loop(statement, f"({items} | list | length)", names, items)
            return
        item = self._program.claim((second or first).lower())
        level = _Level(self._program, {**self.names, second or first: item})
        if second and first in _read_in(statement.body):
            counted = level._add(first, {"value": "{{ index + 1 }}"})
            level.names[first] = counted
        level.take(statement.body)
        written = list(dict.fromkeys(_set_in(statement.body)))
        body = level.body(written)
        node = self._add("each", {"map": f"{{{{ {items} }}}}", "as": item, "do": body}, effect=True)
        self.names.update({name: f"({node} | last)[{_key(name)}]" for name in written})

    def _while(self, statement: Statement) -> None:
        self._loop(statement, None, {})

    def _loop(
        self, statement: Statement, turns: str | None, names: Mapping[str, str], items: str = ""
    ) -> None:
        """A loop over a state: its turn from 0, and the variables that the body sets."""
        state = self._program.claim("state")
        written = list(dict.fromkeys(_set_in(statement.body)))
        level = _Level(self._program, self.names)
        level.names.update({name: f"{state}[{_key(name)}]" for name in written})
        turn = f"{state}.turn"
        known = {"turn + 1": f"({turn} + 1)", "item": f"({items} | list)[{turn}]"}
        level.names.update({name: known[what] for name, what in names.items()})
        ends = f"{turn} >= ({turns} | int)" if turns is not None else "false"
        if statement.kind == "while":
            reader = ValueReader(dict(level.names), lambda _: "true")
            ends = f"not ({reader.condition(statement.text)})"
        level.take(statement.body)
        start = {_field(name): _value(self.names.get(name)) for name in written} | {"turn": 0}
        body = level.body(written, {"turn": f"{{{{ {turn} + 1 }}}}"})
        node = self._add(
            "repeated",
            {"loop": body, "as": state, "start": start}
            | {"until": f"{{{{ {ends} }}}}", "max": _MOST_TURNS},
            effect=True,
        )
        self.names.update({name: f"{node}[{_key(name)}]" for name in written})


def _value(expression: str | None) -> Any:
    return None if expression is None else f"{{{{ {expression} }}}}"


def _field(name: str) -> str:
    """The key of a variable in a result: no expression may have two underscores in a row."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*_?", name)
    return name if plain else f"v{name.encode().hex()}"


def _key(name: str) -> str:
    return f'"{_field(name)}"'


def _set_in(block: Iterable[Statement]) -> Iterator[str]:
    """The variables that statements set, also in their blocks."""
    for statement in block:
        if statement.kind == "set":
            yield statement.target
        yield from _set_in(statement.body)


def _read_in(block: Iterable[Statement]) -> set[str]:
    """Words of statements that may be variables which they read."""
    found: set[str] = set()
    for statement in block:
        found |= {*_WORD.findall(statement.text), *_read_in(statement.body)}
    return found


def _flow_of(nodes: Mapping[str, Any]) -> ControlFlow:
    """The control flow of a document's nodes; those that ask a person are no calls."""
    calls = branches = loops = 0
    todo: list[Any] = [nodes]
    while todo:
        for node in todo.pop().values():
            calls += "tool" in node
            branches += "branch" in node
            loops += "map" in node or "loop" in node
            bodies = (*node.get("cases", {}).values(), node.get("do"), node.get("loop"))
            todo += [body["nodes"] for body in bodies if body is not None]
    return ControlFlow(calls, branches, loops)
