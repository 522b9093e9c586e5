"""`python -m evals.catalogue [--quick] [--json FILE] [--model NAME]`: tools found, tokens shown.

The 404 queries of Seal-Tools' development set over a catalogue of 3,347 tools: which share of the
tools that a query calls is offered, and how many tokens of declarations that takes. Half of the
queries, by a hash, were tuned on (`development`); nothing was chosen by the others (`test`).

`reworded` queries are a stress test: every word is removed that the names of the called tools have.
They stand for requests in other words than the catalogue's, and are no longer requests that
anybody would write. Measures finding tools, not using them: none of the tools can run.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from evals.engine.rows import Row
from evals.planning.data import folder, load_lines
from evals.results import environment, title, write_results
from weft.agents.agent import AgentOptions
from weft.agents.catalogue.bm25 import Bm25
from weft.agents.catalogue.choice import ToolChoice
from weft.agents.catalogue.lexical import LexicalChooser
from weft.agents.catalogue.model import ModelChooser
from weft.agents.catalogue.reader import read_catalogue
from weft.agents.catalogue.search import CatalogueIndex
from weft.agents.catalogue.tree import Catalogue
from weft.agents.catalogue.words import terms, words
from weft.agents.untrusted import identifier
from weft.core.ids import NodeId
from weft.engine import Graph, Inputs, Node, NodeContext, Run
from weft.workflow.runtime.models.factory import Models

TOP: Final = 20
SHARES: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Limits, as shares of the tokens of all declarations."""
DEFAULT_SHARE: Final = 0.05
_MODEL_TOKENS: Final = 2_000

Choose = Callable[[str, int], ToolChoice]


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """A query and the names of the tools that it calls."""

    text: str
    gold: frozenset[str]

    @property
    def half(self) -> str:
        """`development` or `test`, by a hash of the text."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return "test" if int(digest, 16) % 2 else "development"

    def reworded(self) -> str:
        """The text without the words that the names of its tools have."""
        named = {term for name in self.gold for term in terms(name)}
        kept = [word for word in self.text.split() if not named & set(terms(word))]
        return " ".join(kept)


def queries() -> list[ToolQuery]:
    """The queries in the data folder. Raises: `Skipped` without it."""
    return [
        ToolQuery(item["query"], frozenset(identifier(call["api"]) for call in item["calling"]))
        for item in load_lines("programs/sealtools-dev/dev_clean.jsonl")
    ]


def all_tools(catalogue: Catalogue) -> Choose:
    """The baseline that offers everything."""
    everything = ToolChoice(tuple(catalogue.tools), catalogue.tokens)
    return lambda _, __: everything


def plain_bm25(catalogue: Catalogue, top: int | None = None) -> Choose:
    """BM25 over whole declarations, every word alike: the best `top`, or what fits the limit."""
    names = list(catalogue.tools)
    index = Bm25([_plain_bag(catalogue, name) for name in names], b=0.75)

    def choose(text: str, limit: int) -> ToolChoice:
        scores = index.scores(words(text))
        ranked = [names[number] for number in sorted(scores, key=lambda each: -scores[each])]
        if top is None:
            kept, spent = [], 0
            for name in ranked:
                spent += catalogue.tools[name].tokens
                if spent > limit:
                    break
                kept.append(name)
        else:
            kept = ranked[:top]
        return ToolChoice(tuple(kept), sum(catalogue.tools[name].tokens for name in kept))

    return choose


def _plain_bag(catalogue: Catalogue, name: str) -> Mapping[str, float]:
    spec = catalogue.tools[name].spec
    parameters: Mapping[str, Any] = spec.parameters.get("properties", {})
    texts = [name, spec.description, *parameters, *(str(one) for one in parameters.values())]
    bag: dict[str, float] = {}
    for text in texts:
        for word in words(text):
            bag[word] = bag.get(word, 0.0) + 1
    return bag


def measured(
    case: str, system: str, choices: Sequence[tuple[ToolQuery, ToolChoice]], whole: int
) -> list[Row]:
    """The rows of one system on some queries; `whole`: the tokens of all declarations."""
    hits = [len(query.gold & set(choice.tools)) for query, choice in choices]
    gold = [len(query.gold) for query, _ in choices]
    tokens = [choice.tokens + choice.read for _, choice in choices]
    figures: list[tuple[str, float, str]] = [
        ("queries", len(choices), ""),
        ("found_macro", fmean(hit / of for hit, of in zip(hits, gold, strict=True)), "share"),
        ("found_micro", sum(hits) / sum(gold), "share"),
        ("complete", fmean(hit == of for hit, of in zip(hits, gold, strict=True)), "share"),
        ("tools", fmean(len(choice.tools) for _, choice in choices), "tools"),
        ("tokens", fmean(tokens), "tokens"),
        ("most_tokens", max(tokens), "tokens"),
        ("tokens_share", fmean(tokens) / whole, "share"),
    ]
    return [Row(case, system, metric, value, unit) for metric, value, unit in figures]


def systems(catalogue: Catalogue) -> Iterable[tuple[str, Choose, float]]:
    """Name, system, and limit as a share of all tokens."""
    index = CatalogueIndex(catalogue)
    lexical, full = LexicalChooser(index), LexicalChooser(index, whole=0.0, clause=0.0)
    plain = plain_bm25(catalogue)
    yield "all_tools", all_tools(catalogue), 1.0
    yield f"bm25_top{TOP}", plain_bm25(catalogue, TOP), 1.0
    yield "hierarchy_lexical", lexical.choice, DEFAULT_SHARE
    for share in SHARES:
        yield f"bm25_{share:.1%}", plain, share
        yield f"hierarchy_filled_{share:.1%}", full.choice, share


def rows_of(catalogue: Catalogue, asked: Sequence[ToolQuery]) -> list[Row]:
    """Every system on both halves, on the queries as they are and reworded."""
    found: list[Row] = []
    whole = catalogue.tokens
    found.append(Row("catalogue", "all", "tools", len(catalogue), "tools"))
    found.append(Row("catalogue", "all", "refused", len(catalogue.refused), "tools"))
    found.append(Row("catalogue", "all", "fields", len(catalogue.root.groups), "fields"))
    found.append(Row("catalogue", "all", "tokens", whole, "tokens"))
    halves = {half: [one for one in asked if one.half == half] for half in ("development", "test")}
    for name, choose, share in systems(catalogue):
        limit = int(share * whole)
        for half, part in halves.items():
            for kind in ("", "_reworded"):
                made = [(one, choose(one.reworded() if kind else one.text, limit)) for one in part]
                found += measured(f"{half}{kind}", name, made, whole)
    return found


def missed(catalogue: Catalogue, asked: Sequence[ToolQuery]) -> list[tuple[str, str]]:
    """Queries and called tools that `hierarchy_lexical` does not offer."""
    lexical = LexicalChooser(CatalogueIndex(catalogue))
    limit = int(DEFAULT_SHARE * catalogue.tokens)
    return [
        (one.text, name)
        for one in asked
        for name in sorted(one.gold - set(lexical.choice(one.text, limit).tools))
    ]


def model_rows(catalogue: Catalogue, asked: Sequence[ToolQuery], model: str) -> list[Row]:
    """`hierarchy_model` on some queries: its tokens include the views that the model was shown.

    `chose_itself`: the share of queries for which the lexical chooser had not to step in.
    """
    index = CatalogueIndex(catalogue)
    lexical = LexicalChooser(index)

    async def choices() -> list[tuple[ToolQuery, ToolChoice]]:
        async with Models() as models:
            chooser = ModelChooser(
                index, models.of(model), AgentOptions(max_tokens=256), lexical, 8
            )

            async def one(query: ToolQuery) -> tuple[ToolQuery, ToolChoice]:
                async def work(context: NodeContext, _: Inputs) -> ToolChoice:
                    return await chooser.choose(context, query.text, _MODEL_TOKENS)

                node = NodeId("choose")
                ended = await Run(Graph("choose", (Node(node, work, kind="agent"),))).wait()
                value = ended.outcomes[node].value
                return query, value if isinstance(value, ToolChoice) else ToolChoice((), 0)

            return [await one(query) for query in asked]

    made = asyncio.run(choices())
    own = fmean(choice.by == "model" for _, choice in made)
    rows = measured("test_model", "hierarchy_model", made, catalogue.tokens)
    return [*rows, Row("test_model", "hierarchy_model", "chose_itself", own, "share")]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evals.catalogue", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one query in eight")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--model", metavar="NAME", help="also a model, such as local:NAME")
    parser.add_argument("--queries", type=int, default=10, help="of a model")
    parser.add_argument("--missed", action="store_true", help="print what is not found, no figures")
    given = parser.parse_args()
    catalogue = read_catalogue(folder("programs/toolcatalogue") / "tools.jsonl")
    asked = queries()[:: 8 if given.quick else 1]
    if given.missed:
        print("\n".join(f"{name}\t{text}" for text, name in missed(catalogue, asked)))
        return
    rows = rows_of(catalogue, asked)
    if given.model:
        part = [one for one in asked if one.half == "test"][: given.queries]
        rows += model_rows(catalogue, part, given.model)
    about = environment()
    print(f"\n{title(about)}\n")
    for row in rows:
        print(f"{row.case:<22} {row.system:<24} {row.metric:<14} {row.value:12.4f} {row.unit}")
    if given.json:
        write_results(given.json, rows, about)


if __name__ == "__main__":
    main()
