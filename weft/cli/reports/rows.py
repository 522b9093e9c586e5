"""The outcome table as data: the rows of nodes.

Items of a map share the row of their map unless they failed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from weft.cli.text import amount, clean, one_line
from weft.core.errors import Failure
from weft.core.events import Outcome
from weft.core.ids import NodeId
from weft.core.values import Denoised, Speculated
from weft.engine.analysis.trace import NodeTrace, Trace


def drafted(answers: Iterable[Speculated | Denoised]) -> str:
    """One phrase for each decoder; a lossy one is marked."""
    speculated: dict[str, list[Speculated]] = {}
    denoised: dict[str, list[Denoised]] = {}
    for each in answers:
        name = clean(each.method) if each.lossless else f"{clean(each.method)} (lossy)"
        if isinstance(each, Denoised):
            denoised.setdefault(name, []).append(each)
        else:
            speculated.setdefault(name, []).append(each)
    phrases = [_phrase(name, some) for name, some in speculated.items()]
    phrases += [_filled(name, some) for name, some in denoised.items()]
    return "; ".join(phrases)


def _phrase(name: str, answers: list[Speculated]) -> str:
    forwards = sum(each.forwards for each in answers)
    read, kept = (sum(getattr(each, key) for each in answers) for key in ("drafted", "accepted"))
    parts = [f"{1 + kept / forwards:.1f} tokens a pass"] if forwards else []
    if read:
        parts.append(f"{kept / read:.0%} of drafts kept")
    given_up = [each.fallback for each in answers if each.fallback]
    if given_up:
        parts.append(f"given up in {len(given_up)} of {len(answers)}: {clean(given_up[0])}")
    return f"{name}: {', '.join(parts)}" if parts else name


def _filled(name: str, answers: list[Denoised]) -> str:
    forwards, kept = (sum(getattr(each, key) for each in answers) for key in ("forwards", "kept"))
    if not forwards:
        return name
    return f"{name}: {amount(forwards, 'forward')}, {kept / forwards:.1f} tokens a forward"


_FEW_CHILDREN = 6
_MOST_FAILED = 5
_NOTE_WIDTH = 300


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One line of the table. `depth`: its nesting; `seconds` None: it never started."""

    name: str
    depth: int
    status: str
    via: str = ""
    attempts: int = 0
    seconds: float | None = None
    tokens: int = 0
    note: str = ""


def rows(trace: Trace) -> list[OutcomeRow]:
    """The rows of a run in declared order, nested below the node that appended them."""
    children, tokens = children_of(trace), _tokens(trace)
    return [row for node in children[None] for row in _rows(node, 0, children, tokens)]


def children_of(trace: Trace) -> defaultdict[NodeId | None, list[NodeTrace]]:
    """The nodes by their parent, in declared order; top-level nodes under None."""
    children: defaultdict[NodeId | None, list[NodeTrace]] = defaultdict(list)
    for node in trace.nodes.values():
        parent = node.info.parent
        children[parent if parent in trace.nodes else None].append(node)
    return children


def _tokens(trace: Trace) -> Counter[NodeId]:
    """The tokens of each node with all its children. Children come after parents."""
    total: Counter[NodeId] = Counter()
    for node in reversed(trace.nodes.values()):
        total[node.info.id] += node.usage.tokens
        if node.info.parent is not None:
            total[node.info.parent] += total[node.info.id]
    return total


def _rows(
    node: NodeTrace,
    depth: int,
    children: dict[NodeId | None, list[NodeTrace]],
    tokens: Counter[NodeId],
) -> Iterator[OutcomeRow]:
    below = children.get(node.info.id, [])
    items = any(child.info.id.startswith(f"{node.info.id}[") for child in below)
    folded = items or len(below) > _FEW_CHILDREN
    notes = [_counts(below)] if folded and below else []
    notes.append(drafted(_decoded(node, children, deep=folded)))
    yield _row(node, depth, tokens[node.info.id], "; ".join(filter(None, notes)))
    shown = [child for child in below if _failed(child)] if folded else below
    for child in shown[: _MOST_FAILED if folded else None]:
        yield from _rows(child, depth + 1, children, tokens)
    if folded and len(shown) > _MOST_FAILED:
        yield OutcomeRow(f"… and {len(shown) - _MOST_FAILED:,} more", depth + 1, "failed")


def _decoded(
    node: NodeTrace, children: dict[NodeId | None, list[NodeTrace]], *, deep: bool
) -> Iterator[Speculated | Denoised]:
    """How the answers of a node were decoded; `deep`: with those of all its children."""
    yield from node.decoded
    for child in children.get(node.info.id, []) if deep else ():
        yield from _decoded(child, children, deep=True)


def _row(node: NodeTrace, depth: int, tokens: int, note: str) -> OutcomeRow:
    outcome = node.outcome
    seconds = None
    if node.started_s is not None and node.finished_s is not None:
        seconds = node.finished_s - node.started_s
    if outcome is None:
        return OutcomeRow(node.info.id, depth, "unfinished", "", node.attempts, None, tokens, note)
    notes = [part for part in (note, _reason(outcome)) if part]
    return OutcomeRow(
        node.info.id,
        depth,
        outcome.status,
        outcome.via,
        outcome.attempts,
        seconds,
        tokens,
        "; ".join(notes),
    )


def _reason(outcome: Outcome) -> str:
    if outcome.failure is None:
        return "left out on purpose" if outcome.status == "skipped" else ""
    instead = "instead of " if outcome.via else "partial: " if outcome.partial else ""
    return one_line(instead + _failure_text(outcome.failure), _NOTE_WIDTH)


def _failure_text(failure: Failure) -> str:
    plain = failure.error in ("Upstream", "Cancelled")
    return failure.message if plain else f"{failure.error}: {failure.message}"


def _ending(outcome: Outcome | None) -> str:
    if outcome is None:
        return "unfinished"
    return f"{outcome.status} ({outcome.via})" if outcome.via else outcome.status


def _failed(node: NodeTrace) -> bool:
    return node.outcome is not None and node.outcome.status == "failed"


def _counts(nodes: Sequence[NodeTrace]) -> str:
    counts = Counter(_ending(node.outcome) for node in nodes)
    listed = ", ".join(f"{number:,} {status}" for status, number in counts.most_common())
    return f"{amount(len(nodes), 'item')}: {listed}"
