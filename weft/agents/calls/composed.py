"""Tools composed from word lists: calculations, conversions, searches, bookings, lists.

A catalogue that mostly looks things up teaches little about numbers, lists, flags and objects.
These declarations fill the gap; nothing behind them can run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.agents.calls import pools
from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.pools import listed

Schema = Mapping[str, Any]
_QUANTITIES: Final = listed(
    "heat loss,wear rate,drain time,payload,buckling load,torque margin,yield,cooling time,"
    "fill level,drag loss,noise level,running cost,service life,energy use,bearing load,leak rate,"
    "safety margin,output voltage,range,charge time,efficiency,thermal resistance,dilution,"
    "break-even point,growth index,water demand,bending stress,signal loss,stopping time,fatigue "
    "limit,vibration period,shrinkage,purity,turnover,depreciation,fuel reserve"
)
_DEVICES: Final = listed(
    "pump,gearbox,kiln,turbine,sail,lens,boiler,crane,battery pack,antenna,greenhouse,conveyor,"
    "bridge cable,wind mill,radiator,drone,furnace,dam,fermenter,loudspeaker,pipeline,elevator,"
    "solar panel,loan portfolio,warehouse,bakery oven,fish pond,vineyard,tractor,freezer,mixer"
)
_NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "mass": ("number", "The mass of the {d} in kilograms."),
    "length": ("number", "Length of the {d} in meters."),
    "width": ("integer", "The width in centimeters."),
    "thickness": ("number", "Thickness of the wall in millimeters."),
    "load": ("integer", "The load on the {d} in newtons."),
    "flow_rate": ("number", "Flow through the {d} in liters per minute."),
    "inlet_temperature": ("number", "The temperature at the inlet in Celsius."),
    "outlet_temperature": ("number", "The temperature at the outlet in Celsius."),
    "speed": ("integer", "The speed of the {d} in meters per second."),
    "hours": ("integer", "How many hours the {d} runs."),
    "efficiency": ("number", "The efficiency of the {d} (e.g., 0.85)."),
    "voltage": ("number", "The supply voltage in volts."),
    "current": ("number", "The current in amperes."),
    "angle": ("integer", "The angle in degrees."),
    "pressure": ("number", "The pressure inside the {d}."),
    "density": ("number", "The density of the medium."),
    "loss_rate": ("number", "The rate of loss per year (e.g., 0.05)."),
    "unit_price": ("number", "The price of one unit in dollars."),
    "initial_cost": ("integer", "What the {d} cost at first."),
    "num_units": ("integer", "The number of units."),
    "years": ("integer", "The number of years."),
    "a": ("integer", "The first coefficient."),
    "b": ("integer", "The second coefficient."),
    "x": ("number", "The x-coordinate of the point."),
    "y": ("number", "The y-coordinate of the point."),
    "v0": ("number", "The value at the start."),
}
_PLACES: Final = listed(
    "hostel,workshop,clinic,bakery,campsite,library,gallery,co-working space,swimming pool,dentist,"
    "tailor,climbing hall,pharmacy,vineyard,ferry,language school,repair shop,observatory,farm,"
    "youth club,antique shop,sports field,car park,playground,laundry,theatre,garden centre"
)
_FEATURES: Final = listed(
    "parking,wifi,terrace,wheelchair access,pets allowed,card payment,"
    "open on Sundays,showers,lockers,breakfast,"
    "air conditioning,free entry,guided tours,kitchen,garden,24 hours,delivery,sauna"
)
_STATISTICS: Final = listed(
    "weighted average,running total,spread,trimmed mean,moving average,outliers,growth rate,rank,"
    "largest gap,cumulative share,trend,normalized values,peak,percentile,entropy"
)
_SERIES: Final = listed(
    "readings,scores,prices,sales,rainfall,heart rates,votes,distances,wages,temperatures,yields"
)
_FACTS: Final = listed(
    "founding year,birthplace,main ingredient,first owner,inventor,anthem,opening date,"
    "author,budget,nickname,successor,record holder,"
    "motto,predecessor,architect,sponsor,mascot,release date"
)
_SUBJECTS: Final[Mapping[str, str]] = {
    "person": "The full name of the person.",
    "company": "The name of the company.",
    "city": "The city, e.g. Lisbon, Oslo.",
    "country": "The country.",
    "team": "The team.",
    "painting": "The title of the painting.",
    "building": "The name of the building.",
    "film": "The title of the film.",
    "festival": "The festival.",
    "species": "The species.",
}


def compose_tools(count: int, seed: int) -> tuple[CallTool, ...]:
    """`count` tools with different names; the same seed gives the same tools."""
    rng = random.Random(f"tools-{seed}")  # noqa: S311 - not for secrets
    tools: dict[str, CallTool] = {}
    for _ in range(20 * count):
        if len(tools) == count:
            break
        made = rng.choices(_MAKERS, _WEIGHTS)[0](rng)
        tools.setdefault(made.name, made)
    return tuple(tools.values())


def _calculation(rng: random.Random) -> CallTool:
    quantity, device = rng.choice(_QUANTITIES), rng.choice(_DEVICES)
    names = rng.sample(list(_NUMBERS), rng.choice((1, 2, 2, 3, 3, 4)))
    properties: dict[str, Schema] = {
        name: {"type": _NUMBERS[name][0], "description": _NUMBERS[name][1].format(d=device)}
        for name in names
    }
    required = names[: max(1, len(names) - rng.choice((0, 0, 1)))]
    if rng.random() < 0.3:
        properties["unit"] = _enum(["SI", "imperial"], "The units of the result. Default is 'SI'.")
    if rng.random() < 0.2:
        properties["material"] = _text("What it is made of (e.g., steel, copper, oak, glass).")
    verb = rng.choice(("Calculate", "Compute", "Estimate", "Determine"))
    given = f" given its {names[0].replace('_', ' ')}" if rng.random() < 0.4 else ""
    text = f"{verb} the {quantity} of a {device}{given}"
    name = f"{verb.lower()} {quantity} {rng.choice(('', device))}"
    return _tool(name, text, properties, required, "engineering")


def _conversion(rng: random.Random) -> CallTool:
    thing = rng.choice((*pools.NOUNS[:30], *pools.THINGS))
    what = rng.choice(("sizes", "amounts", "weights", "prices", "grades"))
    units = rng.sample(("metric", "imperial", "EU", "US", "UK", "JP", "points", "grams", "cups"), 5)
    properties = {
        "value": {"type": "number", "description": "The value to convert."},
        "from_unit": rng.choice(
            (_enum(units, "Convert from this."), _text("The unit of the value."))
        ),
        "to_unit": rng.choice((_enum(units, "Convert to this."), _text("The unit of the result."))),
        "decimals": {"type": "integer", "description": "Decimal places. Default is 2."},
    }
    text = f"Convert {thing} {what} from one unit to another"
    return _tool(f"convert {thing} {what}", text, properties, list(properties)[:3], "conversion")


def _search(rng: random.Random) -> CallTool:
    place = rng.choice(_PLACES)
    many = f"{place[:-1]}ies" if place.endswith("ry") else f"{place}s"
    options: dict[str, Schema] = {
        "max_price": {"type": "integer", "description": "The highest price in dollars."},
        "radius": {"type": "number", "description": "The search radius in km. Default is 5."},
        "min_rating": {"type": "number", "description": "The lowest rating, e.g. 3.5, 4.5."},
        "open_now": {"type": "boolean", "description": "Only those open now. Default is false."},
        "guests": {"type": "integer", "description": "The number of guests."},
        "price_range": _enum(["cheap", "moderate", "expensive"], "The range of prices."),
        "amenities": {
            "type": "array",
            "items": _enum(rng.sample(_FEATURES, 6), ""),
            "description": "What must be there.",
        },
        "features": {
            "type": "array",
            "items": {"type": "string"},
            "description": f"What it has (e.g., {', '.join(rng.sample(_FEATURES, 4))}).",
        },
        "date": _text("The date of the visit in the format yyyy-mm-dd."),
        "time": _text("The time of arrival."),
        "sort_by": _enum(["distance", "rating", "price"], "How to sort. Default is 'distance'."),
    }
    extra = rng.sample(list(options), rng.choice((1, 2, 3)))
    where = rng.choice(("location", "city", "area"))
    properties = {where: _text(f"The {where} to search in."), **{x: options[x] for x in extra}}
    text = f"{rng.choice(('Find', 'Search for', 'List'))} {many} in a {where}"
    required = [where, *extra[: rng.choice((0, 1, 1))]]
    return _tool(f"{rng.choice(('find', 'search'))} {many}", text, properties, required, "places")


def _booking(rng: random.Random) -> CallTool:
    place = rng.choice(_PLACES)
    options: dict[str, Schema] = {
        "start_date": _text("The first day, yyyy-mm-dd."),
        "end_date": _text("The last day, yyyy-mm-dd."),
        "date": _text("The day."),
        "nights": {"type": "integer", "description": "The number of nights."},
        "guests": {"type": "integer", "description": "How many guests."},
        "customer_name": _text("The name of the customer."),
        "email": _text("The email address for the confirmation."),
        "insurance": {"type": "boolean", "description": "Whether insurance is wanted."},
        "room_type": _enum(["single", "double", "family", "suite"], "The type of room."),
        "payment_method": _text("How it is paid (e.g., card, cash, transfer, voucher)."),
        "city": _text("The city."),
        "preferences": {
            "type": "object",
            "properties": {
                "floor": {"type": "integer", "description": "The floor."},
                "smoking": {"type": "boolean", "description": "Whether smoking is allowed."},
                "view": _text("The view (e.g., sea, garden, street)."),
            },
            "description": "Wishes of the guest.",
        },
    }
    names = rng.sample(list(options), rng.choice((2, 3, 4)))
    verb = rng.choice(("Book", "Reserve", "Request"))
    properties = {name: options[name] for name in names}
    required = [name for name in names if name not in {"preferences", "insurance"}][:3]
    if not required:
        required = names[:1]
    return _tool(f"{verb.lower()} {place}", f"{verb} a {place}", properties, required, "bookings")


def _statistic(rng: random.Random) -> CallTool:
    what, series = rng.choice(_STATISTICS), rng.choice(_SERIES)
    kind = rng.choice(("integer", "number"))
    name = rng.choice(("values", "data", "numbers", series.replace(" ", "_")))
    properties: dict[str, Schema] = {
        name: {"type": "array", "items": {"type": kind}, "description": f"List of {series}."}
    }
    options: dict[str, Schema] = {
        "window": {"type": "integer", "description": "The size of the window."},
        "weights": {"type": "array", "items": {"type": "number"}, "description": "The weights."},
        "ascending": {"type": "boolean", "description": "Whether the order is ascending."},
        "confidence_level": {"type": "number", "description": "Confidence level (e.g., 0.95)."},
        "order": _enum(["ascending", "descending"], "The order of the result."),
        "labels": {"type": "array", "items": {"type": "string"}, "description": "The labels."},
    }
    extra = rng.sample(list(options), rng.choice((0, 1, 1, 2)))
    properties |= {one: options[one] for one in extra}
    text = f"{rng.choice(('Calculate', 'Compute', 'Find'))} the {what} of a list of {series}"
    required = [name, *extra[: rng.choice((0, 1))]]
    return _tool(f"{rng.choice(('', 'calc', 'get'))} {what} {series}", text, properties, required,
                 "statistics")  # fmt: skip


def _fact(rng: random.Random) -> CallTool:
    fact, (subject, told) = rng.choice(_FACTS), rng.choice(list(_SUBJECTS.items()))
    name = rng.choice((subject, f"{subject}_name"))
    properties: dict[str, Schema] = {name: _text(told)}
    if rng.random() < 0.4:
        properties["year"] = {"type": "integer", "description": "The year. Default is this year."}
    if rng.random() < 0.25:
        properties["detailed"] = {"type": "boolean", "description": "Whether to give details."}
    if rng.random() < 0.2:
        properties["language"] = _text("The language of the answer. Default is 'English'.")
    verb = rng.choice(("Get", "Retrieve", "Find", "Look up"))
    verb_name = rng.choice(("get", "fetch", "find", "lookup"))
    text = f"{verb} the {fact} of a {subject}"
    return _tool(f"{verb_name} {subject} {fact}", text, properties, [name], "facts")


def _tool(
    name: str, description: str, properties: Mapping[str, Schema], required: list[str], field: str
) -> CallTool:
    snake = "_".join(name.replace("-", " ").split())
    schema = {"type": "object", "properties": dict(properties), "required": required}
    return CallTool(snake, f"{description}.", schema, field)


def _enum(values: list[str], description: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values), "description": description}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_MAKERS: Final[tuple[Callable[[random.Random], CallTool], ...]] = (
    *(_calculation, _conversion, _search, _booking, _statistic, _fact),
)
_WEIGHTS: Final = (4, 1, 2, 2, 2, 2)
