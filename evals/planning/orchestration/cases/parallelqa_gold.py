"""Gold plans for ParallelQA, written by hand, and the facts that they look up.

One line of `parallelqa_gold.txt` an item: `id: part; part > how`. A part is `thing*factor`,
`thing/thing`, `thing-thing`, `thing~thing` (their mean) or `thing+thing` (states: the density of
people when they merge; one alone ends in `+`). `how` is an operation of the calculator over the
parts, or `most` or `least`: the answer is then the thing whose part is the largest or the smallest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

FACTS: Final = {
    "Mariana Trench": 10984,
    "Puerto Rico Trench": 8376,
    "Sunda Trench": 7290,
    "South Sandwich Trench": 8202,
    "Peru-Chile Trench": 8065,
    "cheetah": 104,
    "peregrine falcon": 320,
    "greyhound": 70,
    "ostrich": 70,
    "gazelle": 80,
    "Sahara Desert": 9_200_000,
    "Kalahari Desert": 900_000,
    "Sonoran Desert": 260_000,
    "Arabian Desert": 2_330_000,
    "Atacama Desert": 105_000,
    "Yangtze River": 6300,
    "Mississippi River": 3766,
    "Volga River": 3530,
    "Mekong River": 4909,
    "Congo River": 4700,
    "Mount Everest": 8848.9,
    "Mount Kilimanjaro": 5895,
    "Aconcagua": 6961,
    "K2": 8611,
    "Mount Elbert": 4401,
    "Christ the Redeemer": 38,
    "Statue of Unity": 182,
    "Washington Monument": 169.3,
    "Motherland Calls": 85,
    "Ushiku Daibutsu": 120,
    "Burj Khalifa": 830,
    "Tokyo Skytree": 634,
    "Shanghai Tower": 632,
    "CN Tower": 553.3,
    "Ostankino Tower": 540.1,
    "Empire State Building": 443.2,
    "Amazon Rainforest": 5_500_000,
    "Congo Rainforest": 2_000_000,
    "Australian Forest": 1_470_000,
    "Borneo Rainforest": 748_168,
    "Black Forest": 6009,
    "Pacific Ocean": 165_250_000,
    "Atlantic Ocean": 85_133_000,
    "Indian Ocean": 70_560_000,
    "Southern Ocean": 20_327_000,
    "Arctic Ocean": 14_060_000,
    "China": 1411.8,
    "Japan": 124.5,
    "Vietnam": 99.5,
    "Thailand": 70,
    "South Korea": 51.8,
    "population of Texas": 29.53,
    "population of Florida": 22.24,
    "population of California": 39.03,
    "population of Michigan": 10.03,
    "population of New Jersey": 9.26,
    "area of Texas": 0.695662,
    "area of Florida": 0.170312,
    "area of California": 0.423970,
    "area of Michigan": 0.250487,
    "area of New Jersey": 0.019047,
}
"""Metres, kilometres per hour, square kilometres, kilometres, millions of people; states in
millions of people and of square kilometres. Rounded, and near the sources of the published answers.
"""

GOLD: Final[Mapping[str, str]] = dict(
    line.split(": ", 1)
    for line in Path(__file__).with_name("parallelqa_gold.txt").read_text("utf-8").splitlines()
)
"""By the id of the item."""
