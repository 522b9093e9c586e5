"""A model as proposer, judge and rewriter of items. What it writes is parsed strictly."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.gates import CallRefusal, check_item
from weft.agents.calls.item import CallItem, GoldCall
from weft.agents.calls.reading import names_in, number_words, numbers_in, plain, stems
from weft.core.errors import ModelRequestError
from weft.core.generated_json import NoJson, read_generated_json
from weft.core.generated_text import without_thought
from weft.core.ports.metering import complete
from weft.core.ports.model import ModelClient, ModelRequest, Sampling
from weft.core.values import JsonSchema, Message

_MOST_CALLS: Final = 12
_MOST_CHARS: Final = 2_000
_DETAIL_CHARS: Final = 200
_KEPT: Final = 0.4
"""A reworded query keeps this share of the words, by their beginnings."""
_STYLES: Final[Mapping[str, str]] = {
    "simple": "needs exactly one call of the tool",
    "multiple": "needs exactly one call of one of the tools",
    "parallel": "needs two to four calls of one of the tools, with different arguments",
    "parallel_multiple": "needs calls of two or more different tools",
    "irrelevance": "sounds like the tools but can be fulfilled by none of them",
    "missing": "needs one of the tools but leaves out a required value, named in `ask`",
    "nested": 'needs two calls, the second with "$1" (the result of the first) as an argument',
    "chained": 'needs three calls; later ones use results of earlier ones: "$1", "$2.name"',
}
_PROPOSE: Final = """\
Write a request of a user and the calls of tools that fulfil it.

Tools, as JSON:
{tools}

The request {style}. Write it as people write: varied, concrete, with invented names, numbers and \
dates. Every value of a call must be said in the request, word for word.
{seed}
Answer with one JSON object and nothing else:
{{"query": "...", "calls": [{{"name": "...", "arguments": {{...}}}}], "ask": []}}"""
_JUDGE: Final = """\
Tools, as JSON:
{tools}

Request of a user:
{query}

Calls that were made for it, as JSON:
{calls}

Do the calls do all that the request asks for, and nothing else, with the values that it \
says? With no call: is it right that none of the tools fits, or that a value must be asked for \
first ({ask})?
Answer with one JSON object and nothing else: {{"passes": true or false, "why": "..."}}"""
_REWORD: Final = """\
Rewrite this request in other words, as another person would say it. Keep its meaning, its order, \
and every name, number, date and quoted text exactly as it is. Answer with the request alone.

{query}"""
_ITEM_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": _MOST_CHARS},
        "calls": {
            "type": "array",
            "maxItems": _MOST_CALLS,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            },
        },
        "ask": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query", "calls", "ask"],
    "additionalProperties": False,
}
_VERDICT_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {"passes": {"type": "boolean"}, "why": {"type": "string", "maxLength": 300}},
    "required": ["passes", "why"],
    "additionalProperties": False,
}


class CallModel:
    """A model that proposes, judges and rewords items.

    Its answers are data: they are parsed, checked by the gates, and never run as they are.
    Raises of all methods: `ModelError` where the model cannot be asked.
    """

    def __init__(self, client: ModelClient, sampling: Sampling | None = None) -> None:
        self._client = client
        self._sampling = sampling or Sampling(max_tokens=700)

    async def propose(
        self, tools: Sequence[CallTool], style: str, seed: int, example: CallItem | None = None
    ) -> tuple[CallItem, CallRefusal | None]:
        """An item for the tools, checked by `format` and `semantic`; of an unreadable answer, an
        item without calls and its refusal. `example`: an accepted item to take after.
        """
        told = "" if example is None else f"\nAn example of the form:\n{_shown(example)}\n"
        text = await self._ask(
            _PROPOSE.format(tools=_tools(tools), style=_STYLES[style], seed=told),
            _ITEM_SCHEMA,
            temperature=0.9,
            seed=seed,
        )
        blank = CallItem(text[:_MOST_CHARS], tuple(tools), (), style, "proposed by a model")
        try:
            item = _item(read_generated_json(text, {"object"}), blank)
        except (NoJson, ValueError) as error:
            return blank, CallRefusal("proposal", "unreadable", str(error)[:_DETAIL_CHARS])
        return item, check_item(item)

    async def judge(self, item: CallItem) -> CallRefusal | None:
        """Why the model refuses the item; an unreadable verdict refuses it as well."""
        prompt = _JUDGE.format(
            tools=_tools(item.tools),
            query=item.query,
            calls=json.dumps(item.document()["calls"], ensure_ascii=False),
            ask=", ".join(item.ask) or "nothing",
        )
        text = await self._ask(prompt, _VERDICT_SCHEMA, temperature=0.0)
        try:
            verdict = read_generated_json(text, {"object"})
        except NoJson as error:
            return CallRefusal("judge", "unreadable", str(error)[:_DETAIL_CHARS])
        passes = verdict.get("passes") if isinstance(verdict, dict) else None
        if not isinstance(passes, bool):
            return CallRefusal("judge", "unreadable", "no verdict `passes`")
        why = str(verdict.get("why", ""))[:_DETAIL_CHARS]
        return None if passes else CallRefusal("judge", "judged_wrong", why)

    async def reword(self, item: CallItem, seed: int) -> tuple[CallItem, CallRefusal | None]:
        """The item with its query in other words; or the item as it is, and why.

        The new query must have the same numbers, and pass the gates with the same calls.
        """
        text = await self._ask(_REWORD.format(query=item.query), None, temperature=0.7, seed=seed)
        query = " ".join(without_thought(text).split()).strip('"')
        if not query or len(query) > 3 * len(item.query) + 80:
            return item, CallRefusal("proposal", "unreadable", "empty or too long")
        if why := _other_content(item.query, query):
            return item, CallRefusal("semantic", "reworded", why)
        reworded = replace(item, query=query, why=f"{item.why}; reworded by a model")
        refusal = check_item(reworded)
        return (reworded, None) if refusal is None else (item, refusal)

    async def _ask(
        self, prompt: str, schema: JsonSchema | None, *, temperature: float, seed: int = 0
    ) -> str:
        able = await self._client.capabilities()
        sampling = replace(self._sampling, temperature=temperature, seed=seed)
        request = ModelRequest(
            messages=(Message("user", prompt),),
            sampling=sampling,
            schema=schema if able.structured_output else None,
        )
        try:
            return (await complete(self._client, request)).text
        except ModelRequestError:
            if request.schema is None:
                raise
            return (await complete(self._client, replace(request, schema=None))).text


def draw_tasks(
    tools: Sequence[CallTool], styles: Mapping[str, float], offered: int, seed: int
) -> Iterator[tuple[tuple[CallTool, ...], str, int]]:
    """Endlessly: tools to offer, a style, and a seed for the model."""
    rng = random.Random(f"tasks-{seed}")  # noqa: S311 - not for secrets
    names = [name for name in styles if name in _STYLES]
    weights = [styles[name] for name in names]
    while True:
        style = rng.choices(names, weights)[0]
        count = 1 if style == "simple" else rng.randint(2, max(2, offered))
        chosen = rng.sample(list(tools), min(count, len(tools)))
        yield tuple(chosen), style, rng.randrange(2**31)


def _item(answer: Any, blank: CallItem) -> CallItem:
    """The item that the answer is. Raises: `ValueError` with what is wrong."""
    if not isinstance(answer, dict) or set(answer) - {"query", "calls", "ask"}:
        raise ValueError("expected an object with query, calls and ask alone")
    query, calls, ask = answer.get("query"), answer.get("calls"), answer.get("ask", [])
    if not isinstance(query, str) or not 0 < len(query.strip()) <= _MOST_CHARS:
        raise ValueError("`query` is no text of at most 2000 characters")
    if not isinstance(calls, list) or len(calls) > _MOST_CALLS:
        raise ValueError(f"`calls` is no list of at most {_MOST_CALLS}")
    if not isinstance(ask, list) or not all(isinstance(name, str) for name in ask):
        raise ValueError("`ask` is no list of names")
    return replace(
        blank, query=query.strip(), calls=tuple(_call(one) for one in calls), ask=tuple(ask)
    )


def _call(given: Any) -> GoldCall:
    if not isinstance(given, dict) or set(given) != {"name", "arguments"}:
        raise ValueError("a call has other keys than name and arguments")
    name, arguments = given["name"], given["arguments"]
    if isinstance(name, str) and isinstance(arguments, dict):
        return GoldCall(name, arguments)
    raise ValueError("a call has a name that is no text, or arguments that are no object")


def _tools(tools: Sequence[CallTool]) -> str:
    return json.dumps([tool.document() for tool in tools], ensure_ascii=False)


def _shown(item: CallItem) -> str:
    document = item.document()
    return json.dumps({key: document[key] for key in ("query", "calls", "ask")}, ensure_ascii=False)


def _other_content(query: str, reworded: str) -> str:
    """What of the query's content the other text lacks or adds; "" where it has the same."""
    if _numbers(reworded) != _numbers(query):
        return "other numbers"
    if lost := [name for name in names_in(query) if plain(name) not in plain(reworded)]:
        return f"without {lost[0]}"
    words = stems(query)
    kept = len(words & stems(reworded))
    return "other words" if kept < _KEPT * len(words) else ""


def _numbers(query: str) -> tuple[Counter[float], frozenset[float]]:
    return Counter(max(one.readings) for one in numbers_in(query)), number_words(query)
