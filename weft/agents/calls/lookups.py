"""Questions that tools over tables answer, with plans, results and replies: data for a planner.

Each item has a table of its own: a kind of thing with invented names, numbers and words, tools
whose names vary, and a question about it. Calls use one another's results, or are made for each
item of a list, and the item has what they return. Plain rules; no model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from weft.agents.calls.lookup_kinds import KINDS, part, whole

Item = dict[str, Any]

_SYLLABLES: Final = (
    *("ka", "lo", "mi", "ra", "ten", "var", "sel", "do", "nor", "bri", "fal", "gos", "hin"),
    *("jul", "mer", "nas", "opa", "pel", "qui", "ros", "sti", "tol", "ulm", "wes", "yar", "zan"),
)


_GET: Final = ("{one}", "get_{one}", "{one}_info", "lookup_{one}", "{one}Details", "find_{one}",
               "{one}.get", "describe_{one}")  # fmt: skip
_LIST: Final = ("{many}_by_{group}", "list_{many}", "find_{many}_of", "{many}.in_{group}",
                "search_{many}")  # fmt: skip
_REDUCE: Final = {
    "sum": (("add_up", "sum_of", "sum", "addNumbers", "math.sum"), "The sum of some numbers."),
    "max": (("max_of", "biggest", "highest_of", "math.max"), "The largest of some numbers."),
    "min": (("min_of", "lowest_of", "smallest", "math.min"), "The smallest of some numbers."),
    "mean": (("average_of", "mean", "math.mean"), "The mean of some numbers."),
}
_KEYS: Final = ("name", "{one}", "{one}_name", "title")


def lookup_items(n: int, seed: int) -> Iterator[Item]:
    """`n` items; the same numbers give the same items."""
    rng = random.Random(f"lookups-{seed}")  # noqa: S311 - not for secrets
    makers = (_fact, _fact, _facts, _compared, _reduced, _reduced, _listed, _listed, _mapped,
              _counted, _literal, _absent, _unnamed)  # fmt: skip
    for _ in range(n):
        yield rng.choice(makers)(_LookupTable(rng))


class _LookupTable:
    """A drawn kind with the names of its tools."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kind = rng.choice(KINDS)
        words = {"one": self.kind.one, "many": self.kind.many, "group": self.kind.group.field}
        self.key = rng.choice(_KEYS).format(**words)
        self.get = rng.choice(_GET).format(**words)
        self.list = rng.choice(_LIST).format(**words)
        self.numbers = [one for one in self.kind.facts if one.more]

    def name(self) -> str:
        """One of the kind's names, or an invented one."""
        if self.kind.names and self.rng.random() < 0.6:
            return self.rng.choice(self.kind.names)
        made = "".join(self.rng.sample(_SYLLABLES, self.rng.randint(2, 3))).capitalize()
        return made if self.rng.random() < 0.6 else f"{made} {self.rng.choice(_SYLLABLES).title()}"

    def names(self, least: int, most: int) -> list[str]:
        """So many different names."""
        count, found = self.rng.randint(least, most), dict.fromkeys([self.name()])
        while len(found) < count:
            found[self.name()] = None
        return list(found)

    def row(self, name: str, **fixed: Any) -> Item:
        """What the tool returns for a name."""
        facts = (*self.kind.facts, self.kind.group)
        return {self.key: name, **{one.field: one.draw(self.rng) for one in facts}, **fixed}

    def call(self, name: str) -> Item:
        return {"name": self.get, "arguments": {self.key: name}}

    def tools(self, *reducers: str) -> list[Item]:
        """The tool that looks up, the one that lists, and some that compute, mixed."""
        kind, facts = self.kind, (*self.kind.facts, self.kind.group)
        fields = {one.field: {"type": _type(one.draw(self.rng))} for one in facts}
        nouns = ", ".join(one.noun for one in facts)
        found = [
            _tool(self.get, f"Facts about one {kind.one}: {nouns}.", self.key,
                  f"the name of the {kind.one}", "string",
                  _record({self.key: {"type": "string"}, **fields})),
            _tool(self.list, f"The names of all {kind.many} of one {kind.group.noun}.",
                  kind.group.field, f"the {kind.group.noun}", "string",
                  {"type": "array", "items": {"type": "string"}}),
        ]  # fmt: skip
        more = [one for one in _REDUCE if one not in reducers]
        for one in (*reducers, *self.rng.sample(more, self.rng.randint(0, 2))):
            name, what = self.reducer(one), _REDUCE[one][1]
            tool = _tool(name, what, "numbers", "what to compute from", "array", {"type": "number"})
            tool["parameters"]["properties"]["numbers"]["items"] = {"type": "number"}
            found.append(tool)
        self.rng.shuffle(found)
        return found

    def reducer(self, what: str) -> str:
        """Its name in this table."""
        names = _REDUCE[what][0]
        return names[len(self.key + self.get) % len(names)]


def _fact(table: _LookupTable) -> Item:
    """One fact of one thing."""
    fact, name = table.rng.choice((*table.kind.facts, table.kind.group)), table.name()
    question = fact.question if table.rng.random() < 0.6 else f"What is the {fact.noun} of {{}}?"
    row = table.row(name)
    reply = f"The {fact.noun} of {name} is {row[fact.field]}."
    return _item(question.format(name), table.tools(), [table.call(name)], [row], reply)


def _facts(table: _LookupTable) -> Item:
    """The same fact, or two, of several things."""
    facts = table.rng.sample(table.kind.facts, table.rng.randint(1, 2))
    names = table.names(2, 3) if len(facts) == 1 else table.names(1, 2)
    rows = [table.row(name) for name in names]
    nouns = _and([f"the {one.noun}" for one in facts])
    question = table.rng.choice(("What is {} of {}?", "Tell me {} of {}.", "I need {} of {}."))
    told = "; ".join(
        f"{name}: " + _and([f"{one.noun} {row[one.field]}" for one in facts])
        for name, row in zip(names, rows, strict=True)
    )
    asked = question.format(nouns, _and(names))
    if len(facts) == 1 and table.rng.random() < 0.5:
        asked = facts[0].question.format(_and(names))
    calls = [table.call(name) for name in names]
    return _item(asked, table.tools(), calls, rows, f"{told}.")


def _compared(table: _LookupTable) -> Item:
    """Which of two or three has more."""
    fact, names = table.rng.choice(table.numbers), table.names(2, 3)
    rows = [table.row(name) for name in names]
    best = max(range(len(rows)), key=lambda at: rows[at][fact.field])
    question = table.rng.choice((
        f"Which has {fact.more}, {_or(names)}?", f"Does {_or(names)} have {fact.more}?",
        f"Which {table.kind.one} has {fact.more}: {_or(names)}?",
        f"Compare {_and(names)}: which has {fact.more}?"))  # fmt: skip
    told = "; ".join(f"{name}: {row[fact.field]}" for name, row in zip(names, rows, strict=True))
    reply = f"{told}. {names[best]} has {fact.more}."
    return _item(question, table.tools(), [table.call(name) for name in names], rows, reply)


def _reduced(table: _LookupTable) -> Item:
    """A sum, mean, largest or smallest over the results of other calls."""
    what = table.rng.choice(("sum", "max", "sum", "min", "mean"))
    fact = table.rng.choice([one for one in table.numbers if what != "sum" or one.sums])
    names = table.names(2, 4)
    rows = [table.row(name) for name in names]
    value = _computed(what, [row[fact.field] for row in rows])
    words = {"sum": ("total {}", "{} together", "sum of the {}"), "max": ("largest {}",),
             "min": ("smallest {}",), "mean": ("average {}", "mean {}")}[what]  # fmt: skip
    told = table.rng.choice(words).format(fact.noun)
    question = table.rng.choice(
        ("What is the {} of {}?", "Find the {} of {}.", "Give me the {} of {}.")
    ).format(told, _and(names))
    if what == "sum" and table.rng.random() < 0.4:
        ending = table.rng.choice((" together?", " in total?", " in all?"))
        question = fact.question.format(_and(names)).removesuffix("?") + ending
    refs = [f"${number}.{fact.field}" for number in range(1, len(names) + 1)]
    reduce = {"name": table.reducer(what), "arguments": {"numbers": refs}}
    calls = [*(table.call(name) for name in names), reduce]
    reply = f"The {told} of {_and(names)} is {value}."
    return _item(question, table.tools(what), calls, [*rows, value], reply)


def _literal(table: _LookupTable) -> Item:
    """A computation over numbers that the question gives."""
    what = table.rng.choice(tuple(_REDUCE))
    draw = whole(1, 400) if table.rng.random() < 0.6 else part(0, 90)
    numbers = [draw(table.rng) for _ in range(table.rng.randint(2, 5))]
    value = _computed(what, numbers)
    words = {"sum": ("sum", "total"), "max": ("largest", "maximum"), "min": ("smallest", "minimum"),
             "mean": ("average", "mean")}[what]  # fmt: skip
    word, listed = table.rng.choice(words), _and([str(each) for each in numbers])
    question = table.rng.choice(("What is the {} of {}?", "Find the {} of {}.", "The {} of {}?"))
    calls = [{"name": table.reducer(what), "arguments": {"numbers": numbers}}]
    reply = f"The {word} of {listed} is {value}."
    return _item(question.format(word, listed), table.tools(what), calls, [value], reply)


def _computed(what: str, numbers: Sequence[float]) -> float:
    mean = sum(numbers) / len(numbers)
    made = {"sum": sum(numbers), "max": max(numbers), "min": min(numbers), "mean": mean}
    return round(made[what], 2)


def _listed(table: _LookupTable) -> Item:
    """All things of a group."""
    group = table.kind.group
    of, names, many = group.draw(table.rng), table.names(1, 5), table.kind.many
    question = table.rng.choice((
        f"Which {many} have the {group.noun} {of}?", f"List the {many} of the {group.noun} {of}.",
        f"What {many} are there for {of}?", f"Name all {of} {many}."))  # fmt: skip
    reply = f"The {table.kind.many} of {of}: {', '.join(names)}."
    return _item(question, table.tools(), [_list_call(table, of)], [names], reply)


def _counted(table: _LookupTable) -> Item:
    """How many things a group has."""
    of, names = table.kind.group.draw(table.rng), table.names(1, 6)
    many, group = table.kind.many, table.kind.group
    question = table.rng.choice((
        f"How many {many} of the {group.noun} {of} are there?", f"Count the {many} of {of}.",
        f"How many {many} of {of} are there?", f"How many {of} {many} are there?"))  # fmt: skip
    reply = f"There are {len(names)}: {', '.join(names)}."
    return _item(question, table.tools(), [_list_call(table, of)], [names], reply)


def _mapped(table: _LookupTable) -> Item:
    """A fact of each thing of a group."""
    group = table.kind.group
    fact, of = table.rng.choice(table.kind.facts), group.draw(table.rng)
    names = table.names(2, 4)
    rows = [table.row(name, **{group.field: of}) for name in names]
    each = {"name": table.get, "arguments": {table.key: "$item"}, "for_each": "$1"}
    question = table.rng.choice((
        f"What is the {fact.noun} of each of the {table.kind.many} of {of}?",
        f"Tell me the {fact.noun} of every one of the {of} {table.kind.many}.",
        fact.question.format(f"each {table.kind.one} of {of}")))  # fmt: skip
    told = "; ".join(f"{name}: {row[fact.field]}" for name, row in zip(names, rows, strict=True))
    return _item(question, table.tools(), [_list_call(table, of), each], [names, rows], f"{told}.")


def _absent(table: _LookupTable) -> Item:
    """A question about another kind of thing."""
    other = table.rng.choice([one for one in KINDS if one is not table.kind])
    fact = table.rng.choice(other.facts)
    return _item(fact.question.format(table.name()), table.tools(), [])


def _unnamed(table: _LookupTable) -> Item:
    """A question that does not say which thing it is about."""
    fact = table.rng.choice(table.kind.facts)
    question = f"What is the {fact.noun} of the {table.kind.one}?"
    return _item(question, table.tools(), [], ask=[table.key])


def _list_call(table: _LookupTable, of: str) -> Item:
    return {"name": table.list, "arguments": {table.kind.group.field: of}}


def _item(
    query: str,
    tools: list[Item],
    calls: list[Item],
    results: list[Any] | None = None,
    reply: str = "",
    ask: Sequence[str] = (),
) -> Item:
    made: Item = {"query": query, "tools": tools, "calls": calls, "ask": list(ask)}
    made |= {"style": "lookup", "why": "a table answers it"}
    return made if results is None else {**made, "results": results, "reply": reply}


def _tool(name: str, what: str, key: str, meaning: str, kind: str, result: Item) -> Item:
    parameter = {"type": kind, "description": meaning}
    schema = {"type": "object", "properties": {key: parameter}, "required": [key]}
    return {"name": name, "description": what, "parameters": schema, "result": result}


def _record(fields: Item) -> Item:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _type(value: object) -> str:
    return {int: "integer", float: "number"}.get(type(value), "string")


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _or(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
