"""Whether a base is the model that an adapter was trained on. Knows no adapter's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import torch

from weft.decoding.diffusion.models.fields import Fields
from weft.decoding.speculative.artefact import Fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_TARGET: Final = "target"


class Base:
    """A model of transformers as a `Target`, before anything in it is changed."""

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config()
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self.vocabulary_size: int = config.vocab_size
        self._model = model

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        """See `Target`."""
        with torch.inference_mode():
            ids = torch.tensor(tokens, dtype=torch.int64, device=self._model.device)
            embedded: torch.Tensor = self._model.get_input_embeddings()(ids)
            return embedded


def check_base(own: Fields, model: PreTrainedModel) -> None:
    """Raise `CapabilityError` for a base other than the one that `own` says as its `target`.

    Compares the fingerprints of both: sizes, and the embeddings of the first tokens.
    """
    if _TARGET not in own:
        return
    there = own.within(_TARGET)
    for name, value in asdict(Fingerprint.of(Base(model))).items():
        said = there.text(name) if isinstance(value, str) else there.whole(name, 0, 1 << 24)
        if said != value:
            raise there.wrong(name, f"the base has {str(value)[:12]}: it is another model")
