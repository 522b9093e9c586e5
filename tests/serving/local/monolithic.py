"""Concurrent attention and placed prompts done slowly, in float64, with one monolithic cache.

Nothing is shared with the code under test: keys are kept as they are before any rotation, put one
after another as a worker sees them, turned to those positions as complex numbers, and attended to
by one softmax.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import torch
from transformers import LlamaForCausalLM


@dataclass(eq=False)
class Token:
    """A token that was read: keys and values of each layer, [kv_heads, head_dim]."""

    id: int
    keys: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)


@dataclass
class Reading:
    """A token that is being read: where it stands, and all that it sees, itself included."""

    token: Token
    position: int
    sees: list[tuple[Token, int]]


class Slow:
    """A Llama, token by token."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        self._model = deepcopy(model).double()
        config = model.config
        self._heads, self._kv = config.num_attention_heads, config.num_key_value_heads
        self._width = config.hidden_size // config.num_attention_heads
        base = config.rope_parameters["rope_theta"]
        pairs = torch.arange(self._width // 2, dtype=torch.float64)
        self._angles = base ** (-2 * pairs / self._width)

    def read(self, readings: Sequence[Reading]) -> list[torch.Tensor]:
        """Logits [vocabulary] of each; all are computed at once, layer by layer."""
        with torch.inference_mode():
            return self._read(readings)

    def _read(self, readings: Sequence[Reading]) -> list[torch.Tensor]:
        body = self._model.model
        hidden = [body.embed_tokens.weight[reading.token.id] for reading in readings]
        for layer in body.layers:
            attention = layer.self_attn
            normed = [layer.input_layernorm(h) for h in hidden]
            for reading, h in zip(readings, normed, strict=True):
                reading.token.keys.append(attention.k_proj(h).view(self._kv, self._width))
                reading.token.values.append(attention.v_proj(h).view(self._kv, self._width))
            number = attention.layer_idx
            for at, (reading, h) in enumerate(zip(readings, normed, strict=True)):
                query = attention.q_proj(h).view(self._heads, self._width)
                found = self._attend(query, reading, number)
                hidden[at] = hidden[at] + attention.o_proj(found.flatten())
            hidden = [h + layer.mlp(layer.post_attention_layernorm(h)) for h in hidden]
        return [self._model.lm_head(body.norm(h)) for h in hidden]

    def _attend(self, query: torch.Tensor, reading: Reading, layer: int) -> torch.Tensor:
        positions = torch.tensor([position for _, position in reading.sees])
        keys = torch.stack([token.keys[layer] for token, _ in reading.sees])
        values = torch.stack([token.values[layer] for token, _ in reading.sees])
        keys = self._turned(keys, positions[:, None])
        query = self._turned(query, torch.tensor([reading.position]))
        outputs = []
        for head in range(self._heads):
            shared = head * self._kv // self._heads
            scores = keys[:, shared] @ query[head] / self._width**0.5
            outputs.append(scores.softmax(0) @ values[:, shared])
        return torch.stack(outputs)

    def _turned(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """[..., head_dim] at positions [...]; the halves of a head are real and imaginary part."""
        half = self._width // 2
        plane = torch.complex(vectors[..., :half], vectors[..., half:])
        turned = plane * torch.polar(
            torch.ones_like(positions, dtype=torch.float64)[..., None],
            positions[..., None] * self._angles,
        )
        return torch.cat([turned.real, turned.imag], dim=-1)


@dataclass
class Writer:
    """A worker: the parts of its view that are its own."""

    prompt: list[int]
    others: list[int]
    own: list[int]
    written: list[int]
    parts: dict[str, list[Token]] = field(default_factory=dict)
    unread: list[tuple[int, str]] = field(default_factory=list)
    opening: int = 0
    gone: bool = False
    over: bool = False


class SlowGroup:
    """Workers that are told what to write, and say with which logits they would have chosen it."""

    def __init__(
        self,
        slow: Slow,
        writers: list[Writer],
        layout: str,
        stride: int,
        ends: Callable[[int], bool],
    ) -> None:
        self._slow = slow
        self._writers = writers
        self._layout = layout
        self._stride = stride
        self._ends = ends
        self._history: list[Token] = []
        for writer in writers:
            writer.parts = {"prompt": [], "others": [], "own": [], "block": []}
            ids = [
                *((i, "prompt") for i in writer.prompt),
                *((i, "others") for i in writer.others),
                *((i, "own") for i in writer.own),
                *((i, "block") for i in writer.written),
            ]
            writer.unread = ids
            writer.opening = len(writer.written)
            keep = len(writer.written) or 1
            while len(writer.unread) > keep:
                self._read_alone(writer)

    def _read_alone(self, writer: Writer) -> None:
        """Before anybody writes there is nothing to see but the own text, one after another."""
        number, part = writer.unread.pop(0)
        token = Token(number)
        writer.parts[part].append(token)
        row = [t for name in ("prompt", "others", "own", "block") for t in writer.parts[name]]
        sees = [(t, at) for at, t in enumerate(row)]
        self._slow.read([Reading(token, len(row) - 1, sees)])

    def step(self) -> dict[int, torch.Tensor]:
        """Everyone who writes reads what it has not read; the logits after it, by worker."""
        writing = [w for w in self._writers if not (w.gone or w.over)]
        fresh: dict[int, list[Token]] = {}
        for writer in writing:
            fresh[id(writer)] = []
            for number, part in writer.unread:
                token = Token(number)
                writer.parts[part].append(token)
                fresh[id(writer)].append(token)
            writer.unread = []
        readings = []
        for writer in writing:
            view = self._view(writer)
            own = {id(token): at for token, at in view}
            for token in fresh[id(writer)]:
                hidden = {id(t) for t in fresh[id(writer)] if own[id(t)] > own[id(token)]}
                sees = [(t, at) for t, at in view if id(t) not in hidden]
                readings.append(Reading(token, own[id(token)], sees))
        logits = iter(self._slow.read(readings))
        found = {}
        for writer in writing:
            found[self._writers.index(writer)] = [next(logits) for _ in fresh[id(writer)]][-1]
        for writer in writing:
            self._finish_steps(writer)
        return found

    def write(self, worker: int, tokens: Sequence[int]) -> None:
        """What a worker chose, and was made to write after it."""
        self._writers[worker].unread = [(token, "block") for token in tokens]

    def end(self, worker: int) -> None:
        """A worker has written its last; what was read of it is finished."""
        writer = self._writers[worker]
        writer.over = True
        if self._layout in ("interleaved", "combined"):
            self._history.extend(writer.parts["block"])
            writer.parts["block"] = []

    def _finish_steps(self, writer: Writer) -> None:
        if self._layout not in ("interleaved", "combined"):
            return
        block = writer.parts["block"]
        for at, token in enumerate(block):
            if at >= writer.opening and self._ends(token.id):
                self._history.extend(block[: at + 1])
                writer.parts["block"] = block[at + 1 :]
                writer.opening = len(writer.parts["block"])
                return

    def _view(self, writer: Writer) -> list[tuple[Token, int]]:
        parts = writer.parts
        head = [*parts["prompt"], *self._history, *parts["others"]]
        others = (
            []
            if self._layout == "interleaved"
            else [w for w in self._writers if w is not writer and not w.gone]
        )
        tail = [*parts["own"], *parts["block"]]
        if self._layout != "slots":
            row = [*head, *(t for other in others for t in other.parts["block"]), *tail]
            return [(token, at) for at, token in enumerate(row)]
        view = [(token, at) for at, token in enumerate(head)]
        for other in others:
            start = len(head) + self._writers.index(other) * self._stride + len(other.parts["own"])
            view += [(token, start + at) for at, token in enumerate(other.parts["block"])]
        start = len(head) + self._writers.index(writer) * self._stride
        return view + [(token, start + at) for at, token in enumerate(tail)]
