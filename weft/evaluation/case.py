"""A case: inputs, what is expected of them, its group and the split of that group."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from weft.core.errors import InputError
from weft.workflow.document.spec.evaluation import Split

SPLITS: Final[tuple[Split, ...]] = get_args(Split)
SHARES: Final = (40, 30, 30)
"""The shares of train, dev and held_out."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a data set.

    id        unique in its data set
    inputs    the inputs of the workflow, by name
    expected  what is right, if that is known
    group     cases of one group, such as paraphrases, stay in one split; resampled together
    split     train, dev or held_out
    """

    id: str
    inputs: Mapping[str, Any]
    expected: Any = None
    group: str = ""
    split: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """The case as plain data."""
        fields = ("id", "inputs", "expected", "group", "split")
        return {name: getattr(self, name) for name in fields}


def split_of(group: str, shares: Sequence[int] = SHARES) -> Split:
    """The split of a group: by its digest, so that it is the same in every data set.

    `shares`: of train, dev and held_out; any numbers. Raises: `InputError`.
    """
    if len(shares) != len(SPLITS) or min(shares) < 0 or not sum(shares):
        raise InputError(
            f"{shares!r} are no shares of train, dev and held_out",
            hint="three numbers, such as (40, 30, 30)",
        )
    digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") * sum(shares) / 2**64
    for name, share in zip(SPLITS, shares, strict=True):
        if place < share:
            return name
        place -= share
    return SPLITS[-1]


def seed_of_case(case: str, replicate: int) -> int:
    """The seed of a replicate (from 0) of a case: common random numbers of all candidates."""
    digest = hashlib.sha256(f"{case}\0{replicate}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % 2**31


def digest_of(cases: Iterable[Case]) -> str:
    """16 hexadecimal digits of the content of the cases, in their order."""
    digest = hashlib.sha256()
    for case in cases:
        fields = [case.id, case.inputs, case.expected, case.group, case.split]
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False, default=str)
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()[:16]
