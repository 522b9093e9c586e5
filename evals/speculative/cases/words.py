"""Made-up visits of a repair firm, told in sentences: the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_NAMES: Final = (
    ("Ines", "Farrow"),
    ("Tobias", "Quill"),
    ("Marta", "Lindqvist"),
    ("Ravi", "Okonjo"),
    ("Selma", "Brandt"),
    ("Hugo", "Pereira"),
    ("Aiko", "Tanaka"),
    ("Dario", "Conti"),
    ("Nadia", "Rahman"),
    ("Felix", "Moreau"),
    ("Greta", "Nilsson"),
    ("Omar", "Haddad"),
)
_TOWNS: Final = (
    "Halden",
    "Porto Vell",
    "Kestrel Bay",
    "Ludham",
    "Marsh End",
    "Tarnow",
    "Ostrava",
    "Bremer Hook",
    "Saint Aubin",
    "Whitby",
)
_THINGS: Final = (
    "water pump",
    "lift motor",
    "cooling fan",
    "ticket printer",
    "conveyor belt",
    "fire door",
    "solar inverter",
    "garage gate",
    "heat exchanger",
    "traffic light",
)
_FAULTS: Final = (
    "made a grinding noise whenever it was started",
    "stopped after about ten minutes every morning",
    "leaked oil on the floor of the machine room",
    "did not answer to the main switch any more",
    "ran far too hot even without any load",
    "shook so hard that two screws had come loose",
)
_REPAIRS: Final = (
    "replaced the bearing and cleaned the housing",
    "fitted a new seal and tested it for an hour",
    "tightened all screws and renewed the cable",
    "changed the fuse and reset the controller",
    "adjusted the sensor and oiled the chain",
    "swapped the worn coupling for a spare one",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


@dataclass(frozen=True, slots=True)
class Visit:
    """Who repaired what, where and when. `minutes` it took, and what it cost in euros."""

    first: str
    last: str
    town: str
    thing: str
    fault: str
    repair: str
    day: str
    minutes: int
    euros: int

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first} {self.last}"

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        return (
            f"On {self.day} {self.name} drove to {self.town}, where the {self.thing} {self.fault}, "
            f"and {self.repair} in {self.minutes} minutes for {self.euros} euros."
        )


def visits(seed: str, count: int) -> Sequence[Visit]:
    """`count` visits of different people to different towns for different things."""
    draw = random.Random(seed)
    rows = zip(
        draw.sample(_TOWNS, count),
        draw.sample(_THINGS, count),
        draw.sample(_FAULTS, count),
        draw.sample(_REPAIRS, count),
        draw.sample(_DAYS, count),
        strict=True,
    )
    return [
        Visit(*name, *told, draw.randrange(15, 180, 5), draw.randrange(40, 900, 10))
        for name, told in zip(draw.sample(_NAMES, count), rows, strict=True)
    ]
