"""Random workflows that use every kind of node and every option. Valid by construction."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

names = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True).map(lambda name: f"n_{name}")
texts = st.text(max_size=12).filter(lambda text: not any(m in text for m in ("{{", "{%", "{#")))
durations = st.sampled_from([0, 0.25, "250ms", "30s", "1.5m", "2h", 7, "1d"])
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
schemas = st.sampled_from(
    ["string", "integer", ["number"], {"type": "object", "properties": {"x": {"type": "string"}}}]
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A whole document, as plain data."""
    inputs = draw(st.lists(names.map(lambda n: f"in_{n}"), unique=True, max_size=2))
    models = draw(st.lists(names, unique=True, min_size=1, max_size=2))
    tools = draw(st.lists(names, unique=True, min_size=1, max_size=2))
    writer = _Writer(draw, models, tools)
    nodes = writer.level(inputs, depth=2)
    document: dict[str, Any] = {
        "name": draw(st.sampled_from(["x", "brief-2", "a.b"])),
        "inputs": {name: draw(schemas) for name in inputs},
        "models": {name: draw(_models) for name in models},
        "tools": {name: draw(_tools) for name in tools},
        "state": draw(st.dictionaries(names, _fields, max_size=2)),
        "run": draw(_runs(models)),
        "optimise": draw(_knobs(models, list(nodes))),
        "nodes": nodes,
        "outputs": {"out": writer.reference(writer.seen(nodes, inputs))},
    }
    if draw(st.booleans()):
        document["description"] = draw(texts)
    if draw(st.booleans()):
        document["schedule"] = draw(_schedules | st.lists(_schedules, max_size=2))
    return {key: value for key, value in document.items() if value or key in ("nodes", "outputs")}


_fields = st.sampled_from(
    [
        "string",
        ["integer"],
        {"type": ["string"], "reduce": "append"},
        {"type": {"type": "array", "items": {"type": "object"}}, "initial": [{}]},
        {"type": "number", "initial": 2, "reduce": "max"},
        {"type": "object", "reduce": "merge"},
    ]
)
_models = st.sampled_from(
    [
        "local:tiny",
        {"use": "local", "model": "tiny", "options": {"threads": 1}},
        {"use": "openai", "model": "m", "base_url": "http://h/v1", "api_key_env": "KEY"},
        {"use": "think", "model": "m", "think": "any"},
        {"use": "think", "model": "m", "think": {"strategy": "any", "budget": "2ktok"}},
    ]
)
_thinking = st.fixed_dictionaries(
    {"strategy": st.sampled_from(["any", "other"])},
    optional={
        "width": st.integers(1, 9),
        "budget": st.integers(1, 9) | st.sampled_from(["20tok", "3 ktok"]),
        "path_tokens": st.integers(1, 9) | st.just("2 ktok"),
        "depth": st.integers(0, 3),
        "rounds": st.integers(1, 9),
        "max_tokens": st.integers(1, 99),
        "answer_tokens": st.integers(1, 99),
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0.1, 1),
        "seed": st.integers(0, 9),
        "settings": st.dictionaries(texts, plain, max_size=2),
    },
)
_tools = st.sampled_from(
    [
        "./tools.py:search",
        {"use": "./tools.py:search"},
        {"use": "pack.mod:f", "isolate": {"timeout": "5s", "memory": "512MiB"}},
        {"use": "pack.mod:f", "isolate": True},
        {"use": "pack.mod:f", "on": "gpu"},
    ]
)
_budgets = st.fixed_dictionaries(
    {},
    optional={
        "tokens": st.integers(0, 9999),
        "time": durations,
        "money": st.floats(0, 9),
        "on_reached": st.sampled_from(["stop", "degrade"]),
    },
)
_retries = st.integers(1, 5) | st.fixed_dictionaries(
    {},
    optional={
        "attempts": st.integers(1, 5),
        "delay": durations,
        "factor": st.floats(1, 3),
        "max_delay": durations,
        "jitter": st.floats(0, 1),
    },
)


_schedules = st.fixed_dictionaries(
    {"cron": st.sampled_from(["0 7 * * 1-5", "*/5 * * * *"])},
    optional={
        "name": names,
        "timezone": st.sampled_from(["UTC", "Europe/Berlin"]),
        "inputs": st.dictionaries(names, plain, max_size=2),
        "catch_up": st.sampled_from(["one", "skip", "all"]),
        "priority": st.integers(-9, 9),
        "queue": names,
        "concurrency_limit": st.integers(1, 9),
        "concurrency_key": names,
    },
)


def _runs(models: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "deadline": durations,
            "concurrency": st.integers(1, 9),
            "max_nodes": st.integers(1, 9),
            "limits": st.dictionaries(st.sampled_from(models), st.integers(1, 9), max_size=2),
            "budget": _budgets,
            "seed": st.integers(0, 9),
            "on": st.just("ray"),
            "address": st.just("10.0.0.1:6379"),
            "content": st.just("/shared"),
            "token_file": st.just("/run/token"),
            "pools": st.dictionaries(
                names, st.just({}) | st.just({"labels": ["gpu"], "workers": 2}), max_size=2
            ),
        },
    )


def _knobs(models: list[str], nodes: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    knobs = st.fixed_dictionaries(
        {},
        optional={
            "model": st.lists(st.sampled_from(models), min_size=1, max_size=2),
            "decode": st.just(["lookup:8"]),
            "temperature": st.lists(st.floats(0, 2), min_size=1, max_size=2),
            "samples": st.lists(st.integers(1, 9), min_size=1, max_size=3),
            "width": st.lists(st.integers(1, 9), min_size=1, max_size=3),
            "schema_order": st.booleans() | st.just([["why", "answer"]]),
            "prompt": st.booleans() | st.just(["Another"]),
            "demonstrations": st.just({}) | st.just({"max": 2}),
            "optional": st.booleans() | st.just("{{ 1 }}"),
        },
    )
    return st.just({}) | st.fixed_dictionaries(
        {}, optional={"knobs": st.dictionaries(st.sampled_from(nodes), knobs, max_size=2)}
    )


class _Writer:
    def __init__(self, draw: st.DrawFn, models: list[str], tools: list[str]) -> None:
        self._draw = draw
        self._models = models
        self._tools = tools
        self._used: set[str] = set()

    def fresh(self) -> str:
        """A name that nothing in the document has."""
        name = self._draw(names.filter(lambda n: n not in self._used))
        self._used.add(name)
        return name

    def level(self, visible: list[str], depth: int) -> dict[str, Any]:
        nodes: dict[str, Any] = {}
        beside: list[str] = []
        for _ in range(self._draw(st.integers(1, 3))):
            name, seen = self.fresh(), [*visible, *beside]
            nodes[name] = self.node(seen, beside, depth) | self.options(seen, beside)
            if self._draw(st.booleans()):
                other = self.fresh()
                nodes[other] = self.node(seen, beside, 0)
                nodes[name][self._draw(st.sampled_from(["fallback", "degrade"]))] = other
            beside.append(name)
        return nodes

    def seen(self, nodes: dict[str, Any], visible: list[str]) -> list[str]:
        """The names that may be referred to."""
        replaced = {
            n for node in nodes.values() for n in (node.get("fallback"), node.get("degrade"))
        }
        return [*visible, *(name for name in nodes if name not in replaced)] or visible

    def reference(self, visible: list[str]) -> str:
        if not visible:
            return "{{ 1 + 1 }}"
        name = self._draw(st.sampled_from(visible))
        forms = [f"{{{{ {name} }}}}", f"a\n{{{{ {name} | tojson }}}}\n b", f"{{{{ {name} == 1 }}}}"]
        return str(self._draw(st.sampled_from(forms)))

    def data(self, visible: list[str]) -> Any:
        if self._draw(st.booleans()):
            return self.reference(visible)
        return {"plain": self._draw(plain), "used": [self.reference(visible)]}

    def body(self, visible: list[str], depth: int) -> dict[str, Any]:
        if self._draw(st.booleans()):
            return self.node(visible, [], depth - 1)
        nodes = self.level(visible, depth - 1)
        return {"nodes": nodes, "result": self.data(self.seen(nodes, visible))}

    def arguments(self, visible: list[str]) -> dict[str, Any]:
        return {name: self.data(visible) for name in self._draw(st.lists(names, max_size=2))}

    def node(self, visible: list[str], beside: list[str], depth: int) -> dict[str, Any]:
        kinds = ["tool", "call", "model", "reduce", "ask", "value"]
        kinds += ["join"] * bool(beside) + ["map", "branch", "loop"] * (depth > 0)
        return dict(getattr(self, self._draw(st.sampled_from(kinds)))(visible, beside, depth))

    def tool(self, visible: list[str], *_: Any) -> dict[str, Any]:
        tools = st.sampled_from([*self._tools, "./tools.py:search"])
        return {"tool": self._draw(tools), "with": self.arguments(visible)}

    def call(self, visible: list[str], *_: Any) -> dict[str, Any]:
        return {"call": "./tools.py:shout", "with": self.arguments(visible)}

    def reduce(self, visible: list[str], *_: Any) -> dict[str, Any]:
        return {"reduce": "./tools.py:longest", "over": self.reference(visible)}

    def value(self, visible: list[str], *_: Any) -> dict[str, Any]:
        return {"value": self.data(visible)}

    def ask(self, visible: list[str], *_: Any) -> dict[str, Any]:
        return {"ask": self.reference(visible), "schema": self._draw(schemas)}

    def model(self, visible: list[str], *_: Any) -> dict[str, Any]:
        match self._draw(st.integers(0, 5)):
            case 0:
                return self.thinking(visible)
            case 1:
                return self.acting(visible)
        optional = {
            "system": st.just(self.reference(visible)),
            "schema": schemas,
            "max_tokens": st.integers(1, 99),
            "temperature": st.floats(0, 2),
            "top_p": st.floats(0.1, 1),
            "top_k": st.integers(1, 9),
            "min_p": st.floats(0, 1),
            "repair": st.integers(0, 3),
            "messages": st.just([{"role": "user", "content": ["Hi", {"text": "there"}]}]),
            "presence_penalty": st.floats(-2, 2),
            "frequency_penalty": st.floats(-2, 2),
            "repetition_penalty": st.floats(0.5, 2),
            "logit_bias": st.dictionaries(st.integers(0, 99).map(str), st.floats(-9, 9)),
            "reasoning_effort": st.sampled_from(["low", "high"]),
            "thinking_tokens": st.integers(0, 99),
            "extra_body": st.just({"verbosity": "low"}),
            "stop": st.lists(texts, max_size=2),
            "seed": st.integers(0, 9),
            "samples": st.integers(1, 4),
            "tools": st.lists(st.sampled_from(self._tools), max_size=2),
            "tool_choice": st.sampled_from(["auto", "none", "required"]),
            "with": st.just(self.arguments(visible)),
        }
        said = self._draw(st.fixed_dictionaries({}, optional=optional))
        model = self._draw(st.sampled_from(self._models))
        places = "".join(f" {{{{ {name} }}}}" for name in said.get("with", ()))
        return {"model": model, "prompt": self.reference(visible) + places, **said}

    def thinking(self, visible: list[str]) -> dict[str, Any]:
        think: Any = self._draw(_thinking)
        if self._draw(st.booleans()):
            think["documents"] = self.data(visible)
        if list(think) == ["strategy"] and self._draw(st.booleans()):
            think = think["strategy"]
        model = self._draw(st.sampled_from(self._models))
        return {"model": model, "prompt": self.reference(visible), "think": think}

    def acting(self, visible: list[str]) -> dict[str, Any]:
        limits = {"rounds": st.integers(1, 9), "calls": st.integers(0, 9)}
        agent: Any = self._draw(
            st.fixed_dictionaries({"loop": st.sampled_from(["compiler", "react"])}, optional=limits)
        )
        if list(agent) == ["loop"] and self._draw(st.booleans()):
            agent = agent["loop"]
        model = self._draw(st.sampled_from(self._models))
        tools = self._draw(st.lists(st.sampled_from(self._tools), max_size=2))
        return {"model": model, "prompt": self.reference(visible), "tools": tools, "agent": agent}

    def choice(self, branches: int) -> dict[str, Any]:
        mode = self._draw(
            st.sampled_from(["", "all", "any", "quorum", "first_valid", "best_effort"])
        )
        more = {
            "quorum": {"k": self._draw(st.integers(1, branches))},
            "first_valid": {"valid": "{{ value != 3 }}"},
            "best_effort": {"otherwise": self._draw(plain)},
        }
        return {"mode": mode, **more.get(mode, {})} if mode else {}

    def join(self, _: Any, beside: list[str], __: Any) -> dict[str, Any]:
        branches = self._draw(st.lists(st.sampled_from(beside), unique=True, min_size=1))
        return {"join": branches, **self.choice(len(branches))}

    def map(self, visible: list[str], _: Any, depth: int) -> dict[str, Any]:
        item = self.fresh()
        body = self.body([*visible, item, "index"], depth)
        width = self._draw(st.sampled_from([{}, {"width": 3}, {"on": "local"}]))
        over = self.reference(visible)
        return {"map": over, "as": item, "do": body, **width, **self.choice(9)}

    def branch(self, visible: list[str], _: Any, depth: int) -> dict[str, Any]:
        cases = self._draw(
            st.lists(texts | st.just("default"), unique=True, min_size=1, max_size=3)
        )
        bodies = {case: self.body(visible, depth) for case in cases}
        return {"branch": self.reference(visible), "cases": bodies}

    def loop(self, visible: list[str], _: Any, depth: int) -> dict[str, Any]:
        item = self.fresh()
        inside = [*visible, item, "iteration"]
        body = self.body(inside, depth)
        if "nodes" in body and self._draw(st.booleans()):
            end = {"break": self.reference(inside), "value": self.data(inside)}
            body["nodes"] = {self.fresh(): end, **body["nodes"]}
        return {
            "loop": body,
            "as": item,
            "start": self.data(visible),
            "until": f"{{{{ {item} == 3 }}}}",
            "max": self._draw(st.integers(1, 9)),
            "on_limit": self._draw(st.sampled_from(["last", "fail"])),
        }

    def options(self, visible: list[str], beside: list[str]) -> dict[str, Any]:
        said: dict[str, Any] = self._draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "description": texts,
                    "retry": _retries,
                    "timeout": durations,
                    "default": plain,
                    "on_failure": st.sampled_from(["fail", "skip"]),
                    "cache": st.sampled_from([True, {"ttl": "1h"}]),
                    "budget": _budgets,
                    "weight": st.floats(0.5, 3),
                },
            )
        )
        if self._draw(st.booleans()):
            said["when"] = self.reference(visible)
        if beside and self._draw(st.booleans()):
            said["after"] = self._draw(st.sampled_from([beside[:1], beside[0], list(beside)]))
        return said
