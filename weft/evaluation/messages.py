"""Metrics of the messages between nodes: how many tokens, and how readable they are.

Both need the trace of a case, and so are computed from the record. Two of the reward's terms in
Optima (Chen et al., arXiv 2410.08115): readability keeps models from private codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from statistics import fmean
from typing import Any, TypeAlias

from weft.core.errors import InputError, TypeMismatch
from weft.evaluation.metric import Score

TraceMetric: TypeAlias = Callable[[Any, Any, Mapping[str, Any]], Score]


def message_tokens(answer: Collection[str], budget: int) -> TraceMetric:
    """A metric for `metric=`: 1 where nodes send each other nothing, 0 from `budget` tokens on.

    Counts what models wrote in all nodes but those of `answer`, by their names in the workflow; the
    part `tokens` has the count. Raises: `InputError` for a budget below 1.
    """
    if budget < 1:
        raise InputError(f"a budget of {budget} tokens", hint="give at least 1")

    def tokens_between(case: Any, outputs: Any, trace: Mapping[str, Any]) -> Score:
        del case, outputs
        written = sum(node["completion_tokens"] for node in _messages(trace, answer))
        feedback = f"{written} tokens between nodes, of {budget}"
        return Score(1 - min(1.0, written / budget), feedback, {"tokens": float(written)})

    return tokens_between


def readability(answer: Collection[str], loss: Callable[[str], float]) -> TraceMetric:
    """A metric for `metric=`: the mean probability of a token of the messages under a base model.

    `loss` gives the mean loss of a text's tokens in nats; the score is exp(-loss), averaged over
    the messages, and 1 without any. A loss that is no number from 0 on leaves the case unscored.
    """

    def readable(case: Any, outputs: Any, trace: Mapping[str, Any]) -> Score:
        del case, outputs
        texts = [f"{node['value']}" for node in _messages(trace, answer)]
        losses = [loss(text) for text in texts]
        if not all(each >= 0 for each in losses):
            raise TypeMismatch("a loss is no number from 0 on", hint="the mean of -ln p, in nats")
        return Score(fmean(math.exp(-each) for each in losses) if losses else 1.0)

    return readable


def _messages(trace: Mapping[str, Any], answer: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """The nodes that wrote tokens, but those of the answer and those inside of them."""
    for place, node in trace["nodes"].items():
        top = place.partition("/")[0].partition("[")[0].partition("#")[0]
        if node["completion_tokens"] and top not in answer:
            yield node
