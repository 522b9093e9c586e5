"""What the decoders that need something are given in tests: models, and weights nobody trained."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from weft.decoding.network.network import Network
from weft.decoding.speculative import trained_drafter
from weft.decoding.speculative.presets import Options
from weft.training.corpus import Corpus, TrainingText
from weft.training.drafters.spec import kind_of
from weft.training.teacher import Teacher

TRAINED = {
    "medusa": "medusa",
    "medusa_typical": "medusa",
    "ppd": "ppd",
    "pass": "pass",
    "eagle": "eagle",
    "dflash": "dflash",
    "hidden_transfer": "hidden_transfer",
    "lexical_units": "lexical_units",
    "lexical_units_verified": "lexical_units",
}
"""By preset: the kind of trained drafter that it needs."""


def like_it(tiny_path: Path, folder: Path) -> Path:
    """A draft model that often agrees with the tiny one: the same, with noise on its weights."""
    shutil.copytree(tiny_path, folder)
    file = folder / "model.safetensors"
    noise = torch.Generator().manual_seed(1)
    weights = load_file(file)
    for name, weight in sorted(weights.items()):
        weights[name] = weight + 0.004 * torch.randn(weight.shape, generator=noise)
    save_file(weights, file, {"format": "pt"})
    return folder


def untrained(kind: str, network: Network, tiny_path: Path, folder: Path) -> Path:
    """A drafter of that kind as it is before its first lesson."""
    teacher = Teacher.load(tiny_path)
    texts = [TrainingText(tuple(5 + (n * 7 + at) % 200 for at in range(24)), 8) for n in range(6)]
    corpus = Corpus(texts)
    described = kind_of(kind)
    torch.manual_seed(3)
    course = described.begin(teacher, corpus, described.set_to({}), 3)
    with torch.no_grad():
        made = course.made(corpus)
    settings = hopeful(made.settings) if kind == "medusa" else made.settings
    trained_drafter.save(folder, kind, settings, made.tensors, network)
    return folder


def hopeful(settings: Mapping[str, object]) -> Mapping[str, object]:
    """The settings as if something had been learnt: else no tree would be drafted."""
    table = settings["accuracy"]
    assert isinstance(table, list)
    learnt = [
        [0.6 ** (depth + 1) / (rank + 1) for rank in range(len(row))]
        for depth, row in enumerate(table)
    ]
    return {**settings, "accuracy": learnt}


STILL: dict[str, Options] = {
    "medusa": {"num_speculative_tokens": 12},
    "medusa_typical": {"num_speculative_tokens": 12},
    "ppd": {"rows": 12},
    "lexical_units": {"beta": 0.0},
    "lexical_units_verified": {"beta": 0.0},
}
"""Options that do not depend on what passes take here, nor on what was learnt."""

Furnish = Callable[[Network, Path, Path], Options]


def _draft_model(network: Network, tiny_path: Path, folder: Path) -> Options:
    return {"model": str(like_it(tiny_path, folder))}


def _still(network: Network, tiny_path: Path, folder: Path) -> Options:
    """By assumed times, and with nothing remembered: the same choices in every run."""
    given = _draft_model(network, tiny_path, folder)
    return {**given, "measured": False, "remember": False}


def _auto(network: Network, tiny_path: Path, folder: Path) -> Options:
    return {**_still(network, tiny_path, folder), "among": "lookup+suffix+draft_model"}


def _self(network: Network, tiny_path: Path, folder: Path) -> Options:
    return {"layers": 2}


def _one_process(network: Network, tiny_path: Path, folder: Path) -> Options:
    return {"group": 2, "processes": False, "model": str(like_it(tiny_path, folder))}


def _drafting_on(network: Network, tiny_path: Path, folder: Path) -> Options:
    """Drafts beside the target, but without a thread: how far they come is always the same."""
    return {**_draft_model(network, tiny_path, folder), "overlap": False}


def _in_step(network: Network, tiny_path: Path, folder: Path) -> Options:
    return {**_drafting_on(network, tiny_path, folder), "adaptive": False}


FURNISHED: dict[str, Furnish] = {
    "draft_model": _draft_model,
    "self_draft": _self,
    "sequoia": _still,
    "pearl": _in_step,
    "continuous": _drafting_on,
    "llmcad": _in_step,
    "auto": _auto,
    "easyspec": _one_process,
}


def options_for(name: str, network: Network, tiny_path: Path, folder: Path) -> Options:
    """What the preset of that name takes on the tiny model. Empty: as it comes."""
    if name in TRAINED:
        model = str(untrained(TRAINED[name], network, tiny_path, folder))
        return {"model": model, **STILL.get(name, {})}
    if name in FURNISHED:
        return FURNISHED[name](network, tiny_path, folder)
    return {}
