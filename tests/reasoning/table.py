"""The table of strategies in docs/reasoning.md, made from the registry and from where tests are.

`python -m tests.reasoning.table` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weft.reasoning.strategies import STRATEGIES, StrategyEntry

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reasoning.md"
HEAD = (
    "| strategy | what it does | exact or approximate | engine | needs | tested by |",
    "|---|---|---|---|---|---|",
)
_HERE = "tests/reasoning"
EVERYWHERE = f"{_HERE}/test_every_strategy.py"
"""Runs every strategy from a file, Python and the command line."""

_SAMPLED = ("samplers and votes replayed on recorded traces", f"{_HERE}/sampling")
_GOLDEN = "golden trace; hostile output, drawn at random"
_TOGETHER = (
    "equal to a monolithic cache, `tests/serving/local/test_workers.py`; budgets, ends",
    f"{_HERE}/protocols/test_concurrent.py",
)
TESTED: dict[str, tuple[str, str]] = {
    "direct": ("by itself", f"{_HERE}/sampling"),
    "sample": _SAMPLED,
    "best-of": ("scorers and ties", f"{_HERE}/selection"),
    "backtrack": ("turns and budgets", f"{_HERE}/sampling"),
    "apr": (
        "finds exactly what the symbolic search finds; hostile output",
        f"{_HERE}/protocols/test_apr.py",
    ),
    "threadweaver": (_GOLDEN, f"{_HERE}/protocols/test_threadweaver.py"),
    "parallel-r1": (_GOLDEN, f"{_HERE}/protocols/test_parallel_r1.py"),
    "multiverse": (_GOLDEN, f"{_HERE}/protocols/test_multiverse.py"),
    "npr": (_GOLDEN, f"{_HERE}/protocols/test_npr.py"),
    "parathinker": (_GOLDEN, f"{_HERE}/protocols/test_parathinker.py"),
    "a2r": (_GOLDEN, f"{_HERE}/protocols/test_a2r.py"),
    "skeleton": ("golden trace; fallbacks, budgets", f"{_HERE}/chat/test_skeleton.py"),
    "map-reduce": ("golden trace; citations looked up", f"{_HERE}/mapreduce/test_map_reduce.py"),
    "mirage": ("golden trace; proofs, hostile facts", f"{_HERE}/mirage/test_mirage.py"),
    "abstraction": ("golden trace; fallbacks, budgets", f"{_HERE}/chat/test_abstraction.py"),
    "self-refine": ("golden trace; fallbacks, budgets", f"{_HERE}/chat/test_self_refine.py"),
    "pasta": (_GOLDEN, f"{_HERE}/protocols/test_pasta.py"),
    "sprint": (_GOLDEN, f"{_HERE}/protocols/test_sprint.py"),
    "leap": (_GOLDEN, f"{_HERE}/protocols/test_leap.py"),
    "hogwild": _TOGETHER,
    "group-think": _TOGETHER,
    "sstar": ("programs run in the sandbox", f"{_HERE}/code/test_strategies.py"),
    "plansearch": ("programs run in the sandbox", f"{_HERE}/code/test_strategies.py"),
}
"""How each strategy is tested by itself, and where."""


def rows() -> Iterator[str]:
    """The rows, one for each strategy of the registry."""
    for name, entry in STRATEGIES.items():
        how, where = TESTED.get(name, ("conformance", EVERYWHERE))
        what = f"{entry.summary} ({entry.source})" if entry.source else entry.summary
        exact, engine = exactness(entry), _engine(entry)
        yield f"| `{name}` | {what} | {exact} | {engine} | {entry.needs} | {how}: `{where}` |"


def exactness(entry: StrategyEntry) -> str:
    """Whether it runs as it was published, in words."""
    if entry.exact.startswith("any model"):
        return "exact" if entry.exact == "any model" else f"exact with {entry.exact}"
    return f"exact with {entry.exact}; else approximate" if entry.exact else "approximate"


def _engine(entry: StrategyEntry) -> str:
    if "token ids" in entry.needs:
        return "vLLM and other completion servers; the local model"
    return (
        "the local model" if "the local" in entry.needs else "any server of chats; the local model"
    )


if __name__ == "__main__":
    print("\n".join([*HEAD, *rows()]))
