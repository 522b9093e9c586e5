"""A house with three floors, 36 rooms and 140 things, and the tools of a robot in it.

The tools change the house, and refuse what cannot be done in it. What they declare in `needs` and
`makes` is only for the rehearsal of plans: the house itself checks each call.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import weft

SEED = 7
FLOORS, CORRIDORS, ROOMS = 3, 3, 3  # three rooms at each of three corridors on each floor: 36
FURNITURE = ("table", "shelf", "desk", "cupboard", "drawer", "fridge")
CONTAINERS = ("cupboard", "drawer", "fridge")
OBJECTS = ("apple", "cup", "book", "towel", "plate", "lamp", "key", "toy", "bottle", "box")


class Refused(Exception):
    """A call that cannot be carried out in the house as it is."""


@dataclass
class House:
    """Where everything is. `calls` and `refused` count what was asked of the robot."""

    doors: dict[str, list[str]] = field(default_factory=dict)
    rooms: dict[str, str] = field(default_factory=dict)  # of furniture
    places: dict[str, str] = field(default_factory=dict)  # of objects
    sinks: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    clean: set[str] = field(default_factory=set)
    room: str = ""
    near: str | None = None
    holding: str | None = None
    calls: int = 0
    refused: int = 0

    def check(self, possible: bool, why: str) -> None:
        """Count a call. Raises: `Refused` where it is not possible."""
        self.calls += 1
        if not possible:
            self.refused += 1
            raise Refused(why)

    def facts(self) -> list[str]:
        """All that holds, as the tools' declarations word it."""
        found = [f"at({self.room})"]
        found += [f"next({one}, {other})" for one in self.doors for other in self.doors[one]]
        found += [f"inside({place}, {room})" for place, room in self.rooms.items()]
        found += [f"container({place})" for place in self.rooms if place.startswith(CONTAINERS)]
        found += [f"sink({place})" for place in sorted(self.sinks)]
        found += [f"closed({place})" for place in sorted(self.closed)]
        found += [f"on({thing}, {place})" for thing, place in self.places.items()]
        found += [f"clean({thing})" for thing in sorted(self.clean)]
        found += [f"near({self.near})"] if self.near else []
        return found + ([f"holding({self.holding})"] if self.holding else [])

    def restart(self, seed: int = SEED) -> None:
        """Build the house again, as it is for `seed`."""
        rng = random.Random(seed)  # noqa: S311
        fresh = House()
        for floor in range(1, FLOORS + 1):
            fresh._build_floor(floor)
        rooms = list(fresh.doors)
        for number in range(60):
            kind = FURNITURE[number % len(FURNITURE)]
            place = f"{kind}_{number // len(FURNITURE) + 1}"
            fresh.rooms[place] = rooms[rng.randrange(len(rooms))]
            if kind in CONTAINERS and rng.random() < 0.8:
                fresh.closed.add(place)
        fresh.sinks.update(f"table_{number}" for number in (2, 5, 8))
        places = list(fresh.rooms)
        for number in range(80):
            thing = f"{OBJECTS[number % len(OBJECTS)]}_{number // len(OBJECTS) + 1}"
            fresh.places[thing] = places[rng.randrange(len(places))]
        fresh.room = "corridor_1_1"
        vars(self).update(vars(fresh))

    def _build_floor(self, floor: int) -> None:
        for corridor in range(1, CORRIDORS + 1):
            here = f"corridor_{floor}_{corridor}"
            self.doors[here] = []
            if corridor > 1:
                self._connect(here, f"corridor_{floor}_{corridor - 1}")
            elif floor > 1:
                self._connect(here, f"corridor_{floor - 1}_1")  # the stairs
            for room in range(1, ROOMS + 1):
                self._connect(f"room_{floor}_{corridor}_{room}", here)

    def _connect(self, one: str, other: str) -> None:
        self.doors.setdefault(one, []).append(other)
        self.doors.setdefault(other, []).append(one)


HOUSE = House()
HOUSE.restart()


@weft.tool(
    needs=["at(?here)", "next(?here, {room})"],
    makes=["not at(*)", "not near(*)", "at({room})"],
    fill=True,
)
def goto(room: str) -> str:
    """Go to a room next to this one."""
    HOUSE.check(room in HOUSE.doors[HOUSE.room], f"{room} is not next to {HOUSE.room}")
    HOUSE.room, HOUSE.near = room, None
    return f"in {room}"


@weft.tool(
    needs=["at(?room)", "inside({place}, ?room)"],
    makes=["not near(*)", "near({place})"],
    fill=True,
)
def approach(place: str) -> str:
    """Go to a piece of furniture in this room."""
    HOUSE.check(HOUSE.rooms.get(place) == HOUSE.room, f"{place} is not in {HOUSE.room}")
    HOUSE.near = place
    return f"at {place}"


@weft.tool(
    name="open",
    needs=["near({place})", "closed({place})"],
    makes=["not closed({place})"],
    fill=True,
)
def open_it(place: str) -> str:
    """Open the cupboard, drawer or fridge here."""
    HOUSE.check(HOUSE.near == place and place in HOUSE.closed, f"{place} cannot be opened now")
    HOUSE.closed.remove(place)
    return f"{place} is open"


@weft.tool(
    name="close",
    needs=["near({place})", "container({place})", "not closed({place})"],
    makes=["closed({place})"],
    fill=True,
)
def close_it(place: str) -> str:
    """Close the cupboard, drawer or fridge here."""
    possible = HOUSE.near == place and place not in HOUSE.closed and place.startswith(CONTAINERS)
    HOUSE.check(possible, f"{place} cannot be closed now")
    HOUSE.closed.add(place)
    return f"{place} is closed"


@weft.tool(
    needs=["on({thing}, ?place)", "near(?place)", "not closed(?place)", "not holding(*)"],
    makes=["holding({thing})", "not on({thing}, *)"],
    fill=True,
)
def grasp(thing: str) -> str:
    """Take a thing from the furniture here."""
    place = HOUSE.places.get(thing)
    within = place is not None and HOUSE.near == place and place not in HOUSE.closed
    HOUSE.check(within and HOUSE.holding is None, f"{thing} cannot be taken now")
    HOUSE.holding = thing
    del HOUSE.places[thing]
    return f"holding {thing}"


@weft.tool(
    needs=["holding({thing})", "near({place})", "not closed({place})"],
    makes=["on({thing}, {place})", "not holding({thing})"],
    fill=True,
)
def put(thing: str, place: str) -> str:
    """Put the thing in hand on, or into, the furniture here."""
    possible = HOUSE.holding == thing and HOUSE.near == place and place not in HOUSE.closed
    HOUSE.check(possible, f"{thing} cannot be put there now")
    HOUSE.places[thing], HOUSE.holding = place, None
    return f"{thing} is at {place}"


@weft.tool(
    needs=["holding({thing})", "near(?place)", "sink(?place)"], makes=["clean({thing})"], fill=True
)
def wash(thing: str) -> str:
    """Wash the thing in hand, at a table with a sink."""
    HOUSE.check(HOUSE.holding == thing and HOUSE.near in HOUSE.sinks, "there is no sink here")
    HOUSE.clean.add(thing)
    return f"{thing} is clean"
