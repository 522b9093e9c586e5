"""The embedded chat model as a scorer of given answers: a loss, not a generation."""

from __future__ import annotations

import math
from typing import Any, Final

MODEL: Final = "smollm2-135m-instruct"


class ChatModel:
    """The weights in this process, with torch. Raises: `ModelNotFound` when they are not here."""

    def __init__(self) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from weft.serving.weights import locate

        path = locate(MODEL)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True)
        # Few processors compute well in the half precision that the weights are kept in.
        self._model: Any = AutoModelForCausalLM.from_pretrained(
            path, local_files_only=True, dtype=torch.float32
        ).eval()

    @property
    def parameters(self) -> int:
        """How many weights it has."""
        return sum(each.numel() for each in self._model.parameters())

    def bits_per_byte(self, prompt: str, answer: str) -> float:
        """The loss on `answer` as the reply to `prompt`: mean bits for each of its bytes."""
        import torch

        begin = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        before = self._tokenizer(begin, add_special_tokens=False)["input_ids"]
        wanted = self._tokenizer(answer, add_special_tokens=False)["input_ids"]
        ids = torch.tensor([before + wanted])
        with torch.inference_mode():
            logits = self._model(ids).logits[0, len(before) - 1 : -1].float()
        nats = torch.nn.functional.cross_entropy(
            logits, torch.tensor(wanted), reduction="sum"
        ).item()
        return float(nats) / math.log(2) / len(answer.encode())
