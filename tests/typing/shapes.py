"""Types, tools and functions of the programs that type checkers judge."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel
from typing_extensions import TypedDict

import weft


class Hit(BaseModel):
    title: str
    score: int = 1


class Out(BaseModel):
    answer: str
    hits: list[Hit] = []


class In(BaseModel):
    topic: str
    limit: int = 3


@dataclass
class Point:
    x: int
    y: int = 2


class Topic(TypedDict):
    topic: str


@weft.tool
async def search(query: str, limit: int = 3) -> list[Hit]:
    return [Hit(title=query), Hit(title="b", score=limit)]


@weft.tool(pure=True, timeout_s=5, retry=2, retry_on=[TimeoutError, 503])
def rate(hit: Hit) -> int:
    return hit.score


async def fetch(title: str) -> Point:
    return Point(len(title))


def longest(hits: list[Hit]) -> Hit:
    return max(hits, key=lambda hit: len(hit.title))


def above(hits: list[Hit], least: int) -> int:
    return sum(hit.score > least for hit in hits)


def shift(point: Point, by: int = 1) -> Point:
    return Point(point.x + by, point.y)
