"""Deterministic, hierarchical identifiers: a node's id is its path in the program, never random.

report                a node of the workflow
notes[3]              the fourth item of the map `notes`
refine#2              the second iteration of the loop `refine` (counted from 1)
notes~2               the nodes that `notes` appended in its second attempt
brief/summary         the node `summary` inside the sub-workflow `brief`
notes[3]/draft        all of these nest
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, product, zip_longest
from typing import NewType

NodeId = NewType("NodeId", str)
RunId = NewType("RunId", str)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_COUNTS = re.compile(r"\[\d+\]|#\d+|~\d+")
_TURNS = re.compile(r"(?:[#~]\d+)+\Z")
_ATTEMPT = re.compile(r"~\d+")
_NUMBER = re.compile(r"(?<=\[)\d+(?=\])|(?<=#)\d+")
_LAST_STEP = re.compile(r"(/[^/\[#~]+|\[\d+\]|#\d+|~\d+)\Z")


def is_name(text: str) -> bool:
    """True when `text` may name a node, an input or a parameter (ASCII identifier)."""
    return _NAME.match(text) is not None


def inside(parent: NodeId, name: str) -> NodeId:
    """The id of the node `name` inside the scope `parent`."""
    return NodeId(f"{parent}/{name}")


def item(parent: NodeId, index: int) -> NodeId:
    """The id of item `index` (from 0) of the map `parent`."""
    return NodeId(f"{parent}[{index}]")


def iteration(parent: NodeId, number: int) -> NodeId:
    """The id of iteration `number` (from 1) of the loop `parent`."""
    return NodeId(f"{parent}#{number}")


def attempt(node: NodeId, number: int) -> NodeId:
    """The scope for what `node` appends in attempt `number` (from 1): the node itself at first."""
    return node if number == 1 else NodeId(f"{node}~{number}")


def parent_of(node: NodeId) -> NodeId | None:
    """The enclosing scope of `node`, or None for a node at the top."""
    match = _LAST_STEP.search(node)
    return NodeId(node[: match.start()]) if match else None


def session_of(node: str) -> str:
    """The scope whose nodes continue one another: the item, the loop or the node around `node`.

    "" at the top. An item is a session itself; attempts and iterations are none.
    """
    around = _TURNS.sub("", node)
    if around != node or node.endswith("]"):
        return around
    return _TURNS.sub("", node.rpartition("/")[0])


def parent_session(session: str) -> str:
    """The session that the end of `session` is part of; "" is the whole program."""
    if session.endswith("]"):
        session = _TURNS.sub("", session.rpartition("[")[0])
    return session_of(session)


def attempts(scope: NodeId) -> Iterator[NodeId]:
    """`scope` and the same place in the attempts before, the latest first.

    `notes/s1` comes after `notes~2/s1`: an attempt of an enclosing node counts too.
    """
    names = _ATTEMPT.split(scope)
    numbers = [int(found[1:]) for found in _ATTEMPT.findall(scope)]
    for chosen in product(*(range(number, 0, -1) for number in numbers)):
        marks = [f"~{number}" if number > 1 else "" for number in chosen]
        yield NodeId("".join(chain.from_iterable(zip_longest(names, marks, fillvalue=""))))


def stem(node: NodeId) -> str:
    """The id without its items, iterations and attempts: the same for all of them."""
    return _COUNTS.sub("", node)


def in_any_attempt(node: NodeId) -> NodeId:
    """The id without attempt numbers: the same node, however often it was tried."""
    return NodeId(_ATTEMPT.sub("", node))


def matches(pattern: str, node: str) -> bool:
    """True when `pattern` names `node`, in any attempt; `*` matches anything but `/`.

    `first[*]/charge` is the charge of every item.
    """
    parts = in_any_attempt(NodeId(pattern)).split("*")
    match = re.fullmatch("[^/]*".join(map(re.escape, parts)), in_any_attempt(NodeId(node)))
    return match is not None


def pattern_of(node: NodeId) -> str:
    """The pattern of all instances of `node`: `first[*]/charge` for `first[3]/charge`."""
    return _NUMBER.sub("*", in_any_attempt(node))


def run_id(flow: str, inputs: Mapping[str, object], ordinal: int = 0) -> RunId:
    """An id made of the flow's name, its inputs and an ordinal; equal arguments give equal ids."""
    return next(run_ids(flow, inputs, (ordinal,)))


def run_ids(flow: str, inputs: Mapping[str, object], ordinals: Iterable[int]) -> Iterator[RunId]:
    """The ids of several runs of one flow with the same inputs; see `run_id`."""
    text = json.dumps([flow, inputs, 0], sort_keys=True, default=repr, ensure_ascii=True)
    common = hashlib.sha256(text.removesuffix("0]").encode())
    for ordinal in ordinals:
        digest = common.copy()
        digest.update(f"{ordinal}]".encode())
        yield RunId(f"{flow}-{digest.hexdigest()[:10]}")
