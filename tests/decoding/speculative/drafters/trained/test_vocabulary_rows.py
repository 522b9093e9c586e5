from __future__ import annotations

from pathlib import Path

import torch

from tests.serving.local.playback import EXACT
from weft.decoding.network.network import Network
from weft.decoding.speculative.drafters.trained.feature_layers import DraftVocabularyHead


def test_the_rows_say_what_the_head_says(tiny_path: Path) -> None:
    network = Network.load(tiny_path, EXACT)
    ids = torch.tensor([3, 50, 398])
    hidden = torch.randn(2, 5, network.width)
    expected = network.head(hidden)[..., ids]
    torch.testing.assert_close(DraftVocabularyHead(network, ids)(hidden), expected)


def test_a_head_with_a_bias_keeps_it() -> None:
    class Biased:
        width = 70
        head = torch.nn.Linear(70, 9)

        def embed(self, tokens: list[int]) -> torch.Tensor:
            return torch.zeros(len(tokens), 70)

    network, ids, hidden = Biased(), torch.tensor([1, 8]), torch.randn(4, 70)
    with torch.no_grad():
        rows = DraftVocabularyHead(network, ids)  # type: ignore[arg-type]
        torch.testing.assert_close(rows(hidden), network.head(hidden)[:, ids])
