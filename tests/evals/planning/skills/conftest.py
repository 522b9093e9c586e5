"""A tiny data folder in the formats of the public sets; every item is made up here."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest


def _function(name: str, **types: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"The function {name}.",
        "parameters": {
            "type": "dict",
            "properties": {key: {"type": kind, "description": key} for key, kind in types.items()},
            "required": list(types)[:1],
        },
    }


_AREA = _function("shape.area", side="integer", unit="string")
_RAIN = _function("rain", city="string", days="integer")
_BFCL: dict[str, list[tuple[str, list[Any], list[Any]]]] = {
    "simple_python": [
        ("Area of a square of 4?", [_AREA], [{"shape.area": {"side": [4], "unit": ["cm", ""]}}]),
        ("Rain in Oslo?", [_RAIN], [{"rain": {"city": ["Oslo", "oslo"], "days": [1, ""]}}]),
    ],
    "parallel": [
        (
            "Rain in Oslo and Bergen for 2 days?",
            [_RAIN],
            [
                {"rain": {"city": ["Oslo"], "days": [2]}},
                {"rain": {"city": ["Bergen"], "days": [2]}},
            ],
        )
    ],
    "parallel_multiple": [
        (
            "Area of a square of 4, and rain in Oslo?",
            [_AREA, _RAIN],
            [{"shape.area": {"side": [4]}}, {"rain": {"city": ["Oslo"]}}],
        )
    ],
    "irrelevance": [("Who wrote Faust?", [_AREA], []), ("Sing.", [_RAIN], [])],
}
_TEXT = {"type": "string"}
_SERVICES = ("find_shop", "book_visit", "send_note", "read_tide", "play_song", "cut_hair", "bake")


def _service(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"The service {name}.",
        "parameters": {"place": {**_TEXT, "required": True}, "other": _TEXT},
        "output_parameters": {"name": _TEXT, "time": _TEXT},
    }


_SEQUENCE = {
    "input": "Find a shop in Ulm, book a visit there, and send a note with the time.",
    "output": [
        {"name": "find_shop", "arguments": {"place": "Ulm"}, "label": "var1"},
        {"name": "book_visit", "arguments": {"place": "$var1.name$"}, "label": "var2"},
        {
            "name": "send_note",
            "arguments": {"place": "$var1.name$", "other": "$var2.time$"},
            "label": "var3",
        },
        {"name": "var_result", "arguments": {"sent": "$var3$"}},
    ],
}
_ORDER = {
    "api_name": "OrderTea",
    "param_dict": {"sort": "Assam", "cups": "2"},
    "result": {"output": {"order": "T4711", "price": "5.20", "shop": "Kettle"}, "exception": None},
}
_DIALOGUE = {
    "file": "tea-1",
    "turns": [
        {"role": "User", "text": "I want tea, please."},
        {"role": "AI", "text": "Which sort, and how many cups?"},
        {"role": "User", "text": "Two cups of Assam."},
        {"role": "API", **_ORDER},
        {"role": "AI", "text": "Your order is T4711 at Kettle, for 5.20."},
        {"role": "User", "text": "Thanks."},
        {"role": "API", "api_name": "Close", "param_dict": {}, "result": {"output": "success"}},
        {"role": "AI", "text": "Closed."},
    ],
}
_INVENTING = {
    "file": "tea-2",
    "turns": [
        {"role": "User", "text": "Two cups of Assam."},
        {"role": "API", **_ORDER},
        {"role": "AI", "text": "Order T4711 will come at 17:45 with Mortimer."},
    ],
}
_UNDESCRIBED = {
    "file": "tea-3",
    "turns": [
        {"role": "User", "text": "Find a tool."},
        {"role": "API", "api_name": "Finder", "param_dict": {"q": "tea"}, "result": None},
        {"role": "AI", "text": "Done."},
    ],
}
_INFO = (
    'description = "{0}"\ninput_parameters = {{{1}}}\n'
    "output_parameters = {{'status': {{'type': 'str', 'description': 'status'}}}}"
)


def write_samples(root: Path) -> None:
    """Write all files below `root`."""
    bfcl = root / "planner" / "bfcl_v4"
    (bfcl / "possible_answer").mkdir(parents=True)
    for category, items in _BFCL.items():
        asked, gold = [], []
        for place, (question, functions, calls) in enumerate(items):
            name = f"{category}_{place}"
            turn = [[{"role": "user", "content": question}]]
            asked.append({"id": name, "question": turn, "function": functions})
            gold.append({"id": name, "ground_truth": calls})
        _lines(bfcl / f"BFCL_v4_{category}.json", asked)
        if category != "irrelevance":
            _lines(bfcl / "possible_answer" / f"BFCL_v4_{category}.json", gold)
    nestful = root / "planner" / "nestful"
    nestful.mkdir()
    for part, items in (("glaive", [_SEQUENCE]), ("sgd", [])):
        (nestful / f"non-executable-{part}-data.json").write_text(json.dumps(items))
        described = json.dumps([_service(name) for name in _SERVICES])
        (nestful / f"non-executable-{part}-spec.json").write_text(described)
    apibank = root / "programs" / "apibank"
    apibank.mkdir(parents=True)
    _lines(apibank / "dialogues.jsonl", [_DIALOGUE, _INVENTING, _UNDESCRIBED])
    with (apibank / "all_apis.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "\u7c7b\u540d", "api_info"])
        kind = "'sort': {'type': 'str', 'description': 'The sort.'}"
        writer.writerow([1, "OrderTea", _INFO.format("Orders tea.", kind)])
        writer.writerow([2, "Close", _INFO.format("Ends it.", "None")])
        writer.writerow([3, "Sweep", _INFO.format("Sweeps a room.", kind)])
        writer.writerow([4, "Finder", "."])


def _lines(path: Path, values: list[Any]) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the samples, which `WEFT_DATA` names."""
    write_samples(tmp_path)
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    return tmp_path
