"""The instructions of `deploy/Containerfile`, as far as tests need them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tests.deploy.chart import ROOT

FILE = ROOT / "deploy" / "Containerfile"


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What the last stage of a Containerfile says of a container."""

    environment: dict[str, str]
    user: str
    folder: str
    entrypoint: list[str]
    health: list[str]
    extras: str


def instructions() -> list[tuple[str, str]]:
    """Instructions and their arguments, in order; continued lines are joined."""
    text = re.sub(r"^#.*\n", "", FILE.read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, rest) for line in lines if line for name, _, rest in [line.partition(" ")]]


def config() -> ImageConfig:
    """The configuration that containers of the image have."""
    found = instructions()
    last = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    stage = dict(found[last:])
    pairs = [
        (name, value) for name, _, value in (pair.partition("=") for pair in stage["ENV"].split())
    ]
    health = stage["HEALTHCHECK"].partition("CMD ")[2]
    (extras,) = [rest.partition("=")[2] for _, rest in found if rest.startswith("WEFT_EXTRAS=")]
    return ImageConfig(
        environment=dict(pairs),
        user=stage["USER"],
        folder=stage["WORKDIR"],
        entrypoint=json.loads(stage["ENTRYPOINT"]),
        health=json.loads(health),
        extras=extras,
    )
