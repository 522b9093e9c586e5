"""vLLM's own classes as the oracle: they load the same folders, and guess the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.decoding.speculative.drafters.trained.published import formats
from tests.decoding.speculative.drafters.trained.published.test_exported import trained
from tests.decoding.speculative.drafters.trained.published.test_published import TEXT, features
from tests.serving.local import tiny
from tests.serving.local.playback import EXACT
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.trained.dflash import DFlashContext, DFlashModel
from weft.decoding.speculative.drafters.trained.eagle import (
    DraftTables,
    EagleModel,
    EagleOptions,
    EagleSequence,
)
from weft.decoding.speculative.drafters.trained.feature_layers import LayerCache
from weft.decoding.speculative.drafters.trained.published.dflash import read_dflash
from weft.decoding.speculative.drafters.trained.published.eagle3 import read_eagle3
from weft.decoding.speculative.drafters.trained.published.medusa import read_medusa
from weft.serving.vllm.launch.drafts import draft_tokens
from weft.training.drafters.export import export_drafter

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM is installed"),
]
ROWS = 9
PUBLISHED = {
    **{f"eagle {name}": ("eagle3", make) for name, make in formats.EAGLE3.items()},
    **{f"dflash {name}": ("dflash", make) for name, make in formats.DFLASH.items()},
    "medusa vLLM": ("medusa", formats.medusa_vllm),
    "medusa vLLM, one table": ("medusa", formats.medusa_shared),
}
OURS = {"eagle": "eagle3", "dflash": "dflash", "medusa": "medusa"}
NAMES = [*PUBLISHED, *(f"ours {kind}" for kind in OURS), "FasterDecoding's, converted"]


@pytest.fixture(scope="module")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def network(tiny_path: Path) -> Network:
    return Network.load(tiny_path, EXACT)


@pytest.fixture(scope="module")
def folders(
    network: Network, tiny_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[str, Path]]:
    """By name: vLLM's method, and the folder."""
    root = tmp_path_factory.mktemp("heads")
    found = {}
    for number, (name, (method, make)) in enumerate(PUBLISHED.items()):
        folder = formats.write(root / f"{method}-{number}", *make(network.vocabulary_size))
        found[name] = (method, folder)
    for kind, method in OURS.items():
        (root / kind).mkdir()
        ours = trained(kind, network, tiny_path, root / kind)
        found[f"ours {kind}"] = (method, export_drafter(ours, network, root / f"{kind}-v").folder)
    config, weights = formats.medusa_published(network.vocabulary_size)
    heads = formats.write(root / "heads", config, weights, "medusa_lm_head.pt")
    theirs = export_drafter(heads, network, root / "medusa-v2").folder
    found[NAMES[-1]] = ("medusa", theirs)
    return found


def case(method: str, folder: Path, network: Network) -> dict[str, Any]:
    """What vLLM is asked."""
    torch.manual_seed(6)
    block = draft_tokens(method, folder)  # of DFlash, all slots see one another
    asked: dict[str, Any] = {"method": method, "folder": str(folder), "tokens": block or 3}
    if method == "medusa":
        return asked | {"state": torch.randn(network.width).tolist()}
    taps = (read_eagle3 if method == "eagle3" else read_dflash)(folder, network).taps
    return asked | {
        "features": features(network, taps, ROWS).tolist(),
        "text": TEXT[1 : ROWS + 1],
        "embeddings": network.embed(range(network.vocabulary_size)).tolist(),
        "head": network.head(torch.eye(network.width)).T.tolist(),
    }


@pytest.fixture(scope="module")
def answers(
    folders: dict[str, tuple[str, Path]],
    network: Network,
    tiny_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, dict[str, Any]]:
    file = tmp_path_factory.mktemp("asked") / "cases.json"
    file.write_text(json.dumps([case(*folders[name], network) for name in NAMES]))
    command = [sys.executable, "-m", "tests.serving.vllm.launch.heads", str(tiny_path), str(file)]
    quiet = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=400, env=quiet)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return dict(zip(NAMES, json.loads(ran.stdout.strip().splitlines()[-1]), strict=True))


def ours(method: str, folder: Path, network: Network) -> tuple[list[int], np.ndarray]:
    """The drafted tokens, and weft's logits for them."""
    asked = case(method, folder, network)
    if method == "medusa":
        heads = read_medusa(folder, network)
        return heads.ids.tolist(), heads(torch.tensor([asked["state"]]))[:, 0].numpy()
    read = torch.tensor(asked["features"])
    if method == "dflash":
        net = read_dflash(folder, network)
        drafting = DFlashModel(net.net, net.taps, net.head.ids, network, net.head)
        context = DFlashContext(drafting.memories(), read, asked["text"][-1])
        return net.head.ids.tolist(), drafting.look([context])[0][: asked["tokens"]]
    parts = read_eagle3(folder, network)
    own = DraftTables(parts.head, parts.embed)
    options = EagleOptions(depth=1, width=1, nodes=1)
    model = EagleModel(parts.layer, parts.taps, parts.head.ids, network, options, own)
    line = EagleSequence(LayerCache(), First(), 1)
    model.draft([line], [(asked["text"], read)])
    logits = parts.head(parts.layer.ready(line.states))
    return parts.head.ids.tolist(), logits.numpy()


class First:
    """Grows nothing."""

    def grow(self, tokens: np.ndarray, scores: np.ndarray) -> None:
        """Nothing."""

    def tree(self, most: int) -> None:
        """None."""


@pytest.mark.parametrize("name", NAMES)
def test_vllm_computes_the_same_guesses(
    name: str,
    folders: dict[str, tuple[str, Path]],
    answers: dict[str, dict[str, Any]],
    network: Network,
) -> None:
    method, folder = folders[name]
    ids, expected = ours(method, folder, network)
    found = answers[name]["logits"]
    assert len(found) == len(expected)
    for theirs, row in zip(found, expected, strict=True):
        drafted = {token for token, logit in enumerate(theirs) if logit is not None}
        assert drafted == set(ids)
        np.testing.assert_allclose([theirs[token] for token in ids], row, atol=2e-4, rtol=1e-4)
    if method == "eagle3":
        taps = read_eagle3(folder, network).taps
        # without layers in the config, the target's class has the same three for its size
        assert answers[name]["taps"] is None or tuple(answers[name]["taps"]) == taps
    if method == "dflash":
        assert tuple(answers[name]["taps"]) == read_dflash(folder, network).taps
