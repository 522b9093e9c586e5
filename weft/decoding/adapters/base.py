"""The base model of an adapter: is it the one that the adapter was trained on?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import torch

from weft.decoding.config_fields import ConfigFields
from weft.decoding.speculative.trained_drafter import Fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from weft.decoding.network.llama_folder import LlamaModel

_TARGET: Final = "target"


class BaseModelTarget:
    """A transformers model as a `FingerprintedModel`, before anything in it is changed."""

    def __init__(self, model: PreTrainedModel | LlamaModel) -> None:
        config = model.config.get_text_config()
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self.vocabulary_size: int = config.vocab_size
        self._model = model

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        with torch.inference_mode():
            ids = torch.tensor(tokens, dtype=torch.int64, device=self._model.device)
            embedded: torch.Tensor = self._model.get_input_embeddings()(ids)
            return embedded


def check_base(own: ConfigFields, model: PreTrainedModel | LlamaModel) -> None:
    """Raise `CapabilityError` for a base other than the `target` of `own`.

    Compares fingerprints: sizes, and the embeddings of the first tokens.
    """
    if _TARGET not in own:
        return
    there = own.within(_TARGET)
    for name, value in asdict(Fingerprint.of(BaseModelTarget(model))).items():
        recorded = there.text(name) if isinstance(value, str) else there.whole(name, 0, 1 << 24)
        if recorded != value:
            raise there.wrong(name, f"the base has {str(value)[:12]}: it is another model")
