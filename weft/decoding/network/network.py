"""The language model itself: weights in, logits out, one pass over many rows.

Knows nothing of text, sampling or requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from weft.core.errors import CapabilityError
from weft.core.ports.model import Placed
from weft.decoding.adapters import adapter_file
from weft.decoding.adapters.base import check_base
from weft.decoding.adapters.folder import FindModel, adapter_folder
from weft.decoding.network.attention import rows_depend
from weft.decoding.network.cache import KvCache
from weft.decoding.network.fused_decoder import FusedDecoder, FusedLayer
from weft.decoding.network.layers import (
    LOADING,
    dtype_of,
    find_layers,
    folder_of,
    load_weights,
    some_layers,
    watch,
)
from weft.decoding.network.llama_folder import LlamaModel, read_llama
from weft.decoding.network.logit_rows import LogitRows
from weft.decoding.network.options import NetworkOptions, Quantization, model_threads
from weft.decoding.network.packing import PackedBatch, Span, few_shapes, pack, padding_for
from weft.decoding.network.pass_graphs import GraphedPasses, capture_for
from weft.decoding.network.quantization import fuse, has_kernels, pack_linears
from weft.decoding.network.rotary import Rotary, rotate
from weft.decoding.network.visibility import Placement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import GenerationConfig, PreTrainedModel

    from weft.decoding.network.llama_folder import LlamaGenerationConfig


@dataclass(frozen=True, slots=True)
class ModelGenerationConfig:
    """What the model's generation config says: how to sample, and which tokens end an answer.

    `temperature` is None where it says none. `do_sample` is not read, as vLLM does not read it.
    """

    temperature: float | None
    top_p: float
    top_k: int
    end_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class SpanOutput:
    """What came of one span: logits, as `rows` that want them, and by tapped layer what entered it,
    [tokens of the span, width].
    """

    rows: LogitRows
    hidden: Mapping[int, torch.Tensor]

    @property
    def logits(self) -> NDArray[np.float32]:
        """[rows, vocabulary], on the host."""
        return self.rows.host


class Network:
    """A decoder-only transformer with full attention, and the cache its rows share.

    `path` is the folder it was read from, if it was; `quantization` is how its weights are kept.
    `graphs` replay its passes, on a device that has them.
    Not safe to use from two threads at once.
    """

    def __init__(
        self, model: PreTrainedModel | LlamaModel, options: NetworkOptions, first: int = 0
    ) -> None:
        config = model.config.get_text_config()
        self._model = model
        self._heads = config.num_attention_heads
        self._kv_heads = getattr(config, "num_key_value_heads", None) or self._heads
        self._head_dim = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self.layers: int = config.num_hidden_layers
        self.width: int = config.hidden_size
        self._threads = options.threads or model_threads()
        self.vocabulary_size: int = config.vocab_size
        trained: int = config.max_position_embeddings
        self.context_tokens = min(options.max_context_tokens or trained, trained)
        self.generation = _generation_config(model.generation_config)
        self.path = folder_of(model)
        self._options = options
        self._first = first
        self._rotary: Rotary | None = None
        queries_per_key = self._heads // self._kv_heads
        self._by_token = model.device.type == "cpu" and rows_depend(
            model.dtype, queries_per_key, self._head_dim
        )
        self._decoder = find_layers(model, self.layers)
        self.quantization: Quantization = "none"
        self._fused: FusedDecoder | None = None
        self.graphs: GraphedPasses | None = None
        self._padding = padding_for(self.device)
        if self._decoder is not None and isinstance(self._decoder[0], FusedLayer):
            self.quantization = self._decoder[0].quantization
            self._fused = FusedDecoder(model, self._decoder, self._heads, self._kv_heads)
            capture = capture_for(self.device) if options.graphs == "auto" else None
            if capture is not None:
                self.graphs = GraphedPasses(self._fused, capture)
                self._padding = few_shapes
        elif self._decoder is not None:
            watch(model, self._decoder)
        self.reset()
        self._try_out()

    @classmethod
    def load(cls, path: Path, options: NetworkOptions, *, find: FindModel | None = None) -> Network:
        """Read a folder's safetensors weights. Runs no code that comes with them. `find` locates
        the base of an adapter folder by its name; the adapter is merged into it.

        Raises: `CapabilityError` for a model this class cannot run, or an adapter of another base;
        what transformers raises when the files are broken, and what `find` raises.
        """
        # weights are packed below: idle threads would spin beside it
        _use_threads(options.threads or model_threads())
        adapter = adapter_folder(path, find)
        if adapter is not None:
            path = adapter.base
        model = None
        if has_kernels(options.device):
            model = read_llama(path, dtype_of(options))
        if model is None:
            model = load_weights(path, options)
        if adapter is not None:
            check_base(adapter.own, model)
            adapter_file.merge(model, adapter.file)
        with torch.inference_mode():
            fuse(model, options)
            pack_linears(model)
        return cls(model, options)

    def reset(self) -> None:
        """Forget every row."""
        self._cache = self._empty_cache()

    def copy_prefix(self, source: int, target: int, tokens: int) -> None:
        """Give slot `target` the first `tokens` of slot `source`."""
        self._cache.reserve(max(source, target) + 1, tokens)
        self._cache.copy(source, target, tokens)

    def keep(self, slot: int, first: int, rows: Sequence[int]) -> None:
        """Of what was read into a slot from column `first` on, only `rows` stay, ascending there.

        They move together to the columns from `first` on; nothing is computed again.
        """
        if list(rows) != list(range(len(rows))):
            found = [(slot, first + row) for row in rows]
            self.splice(found, slot, range(first, first + len(rows)))

    def splice(self, sources: Sequence[tuple[int, int]], slot: int, columns: Sequence[int]) -> None:
        """Give `columns` of a slot what others hold, each named by its slot and column."""
        self._cache.reserve(slot + 1, max(columns) + 1)
        with torch.inference_mode():
            self._cache.splice(sources, slot, columns)

    def move(self, source: int, first: int, tokens: int, target: int, at: int) -> None:
        """Copy columns of slot `source` to column `at` of `target`, turned to stand there."""
        self._cache.reserve(max(source, target) + 1, at + tokens)
        with torch.inference_mode():
            by = self.rotary().turns(torch.tensor([at - first], device=self._model.device))
            self._cache.move(source, first, tokens, target, at, by)

    def column(self, slot: int, column: int) -> torch.Tensor:
        """The keys and values of one token, copied: [layers, 2, kv_heads, head_dim]."""
        return self._cache.column(slot, column).clone()

    def values(self, slot: int, layer: int, columns: Sequence[int]) -> torch.Tensor:
        """The values of some tokens in one layer: [tokens, kv_heads * head_dim]."""
        return self._cache[layer][1, slot, :, list(columns)].transpose(0, 1).flatten(1)

    def rotary(self) -> Rotary:
        """How the model turns its keys.

        Raises: `CapabilityError` when that cannot be told, or is no plain rotation: then its keys
        cannot be seen from other positions than their own.
        """
        if self._rotary is None:
            self._rotary = self._find_rotary()
        return self._rotary

    def _find_rotary(self) -> Rotary:
        kind = type(self._model).__name__
        found = [module for module in self._model.modules() if hasattr(module, "inv_freq")]
        rotary = Rotary(found[0].inv_freq) if len(found) == 1 else None
        if rotary is None or rotary.head_dim != self._head_dim or not self._turns_by(rotary):
            raise CapabilityError(
                f"workers of a {kind} cannot see one another's tokens: its positions are no plain"
                " rotation of its keys",
                hint="concurrent attention works with models like Llama and Qwen",
            )
        return rotary

    def _turns_by(self, rotary: Rotary) -> bool:
        """Whether all layers' keys of one token, alone at two positions, are turns of each other.

        Also finds layers without positions, and positions that are part of what layers read.
        """
        far = 97
        kept, self._cache = self._cache, self._empty_cache()
        try:
            self.forward([Span(0, (0,), (0,), wants_logits=True)])
            away = Placement([Placed(1, far)])
            self.forward([Span(1, (0,), (0,), wants_logits=True, placement=away)])
            here, there = self._cache.keys(0, 0), self._cache.keys(1, 0)  # [layers, heads, 1, dim]
        finally:
            self._cache = kept
        expected = rotate(here, rotary.turns(torch.tensor([far], device=here.device)))
        tolerance = 1e-4 if here.dtype == torch.float32 else 3e-2
        error = (there - expected).abs().amax(dim=(1, 2, 3))
        return bool((error <= tolerance * here.abs().amax(dim=(1, 2, 3))).all())

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = self._model.device
        return device

    def _empty_cache(self) -> KvCache:
        dtype, device = self._model.dtype, self._model.device
        return KvCache(self.layers, self._kv_heads, self._head_dim, dtype, device, self._first)

    def forward(self, spans: Sequence[Span]) -> dict[int, SpanOutput]:
        """Read the spans into their slots; what came of it by slot.

        Prompts are read in a pass of their own where the network `reads_prompts_apart`.

        Raises: `CapabilityError` for a view, where keys cannot be turned, and for a look into
        layers that cannot be found.
        """
        if self._decoder is None and any(span.taps or span.writes for span in spans):
            raise CapabilityError(f"the layers of a {type(self._model).__name__} cannot be found")
        _use_threads(self._threads)
        self._cache.reserve(1 + max(_slots(spans)), max(s.reach for s in spans))
        readings: dict[int, SpanOutput] = {}
        for together in self._passes(spans):
            readings |= self._pass(together)
        return readings

    @property
    def reads_prompts_apart(self) -> bool:
        """Whether tokens of a prompt are computed in another precision than those of an answer."""
        return self._fused is not None and self._fused.reads_prompts_apart

    def _passes(self, spans: Sequence[Span]) -> list[Sequence[Span]]:
        if not self.reads_prompts_apart or len({span.prompt for span in spans}) == 1:
            return [spans]
        return [[s for s in spans if s.prompt], [s for s in spans if not s.prompt]]

    def _pass(self, spans: Sequence[Span]) -> dict[int, SpanOutput]:
        with torch.inference_mode():
            step = pack(
                spans,
                queries_per_key=self._heads // self._kv_heads,
                dtype=self._model.dtype,
                device=self._model.device,
                rotary=self.rotary() if any(span.view for span in spans) else None,
                padding=self._padding,
                by_token=self._by_token,
            )
            return _span_outputs(step, LogitRows.of(self._logits(step)))

    def _logits(self, step: PackedBatch) -> torch.Tensor:
        """float32 [wanted, vocabulary]"""
        decoder = self.graphs or self._fused
        if decoder is not None:
            return decoder.logits(step, self._cache)
        output = self._model(
            input_ids=step.token_ids[None],
            position_ids=step.positions[None],
            use_cache=False,
            logits_to_keep=step.wanted,
            step=step,
            cache=self._cache,
        )
        logits: torch.Tensor = output.logits[0].float()
        return logits

    def embed(self, tokens: Sequence[int]) -> torch.Tensor:
        """What the model reads for tokens: [tokens, width]."""
        with torch.inference_mode():
            ids = torch.tensor(tokens, dtype=torch.int64, device=self._model.device)
            embedded: torch.Tensor = self._model.get_input_embeddings()(ids)
            return embedded

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """The plain logits [rows, vocabulary] of what leaves the last layer: [rows, width]."""
        with torch.inference_mode():
            logits: torch.Tensor = self._model.get_output_embeddings()(hidden)
            return logits

    def share(self, layers: int) -> Network:
        """The first `layers` of the model, with its norm and head, and a cache of their own.

        Raises: `CapabilityError` where the layers cannot be found, `ValueError` for none or more.
        """
        return self.part(0, layers)

    def part(self, first: int, last: int) -> Network:
        """The layers `first` to `last` - 1, with the norm and head, and a cache of their own.

        They keep their numbers: what shall enter the part is a `Write` for layer `first`, and what
        leaves it is the tap -`last`.

        Raises: `CapabilityError` where the layers cannot be found, `ValueError` for none or more.
        """
        if self._decoder is None:
            raise CapabilityError(f"the layers of a {type(self._model).__name__} cannot be found")
        if not 0 <= first < last <= self.layers:
            raise ValueError(f"layers {first} to {last} of {self.layers}")
        with LOADING:
            some = some_layers(self._model, self._decoder, first, last)
        return Network(some, self._options, first)

    def _try_out(self) -> None:
        """Run one token, so that a model of another shape is refused when it is loaded."""
        kind = type(self._model).__name__
        try:
            self.forward([Span(0, (0,), (0,), wants_logits=True)])
        except (RuntimeError, TypeError, AttributeError) as error:
            raise CapabilityError(f"a local model cannot be a {kind}: {error}") from error
        if not self._cache.written(slot=0, column=0):
            raise CapabilityError(f"a local model cannot be a {kind}: not all layers attend")


def _use_threads(threads: int) -> None:
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def _span_outputs(step: PackedBatch, logits: LogitRows) -> dict[int, SpanOutput]:
    readings, row = {}, 0
    for span, (first, last) in zip(step.spans, pairwise(step.firsts), strict=True):
        hidden = {layer: step.hidden[layer][first:last] for layer in span.taps}
        readings[span.slot] = SpanOutput(logits.part(row, row + span.wants_logits), hidden)
        row += span.wants_logits
    return readings


def _slots(spans: Sequence[Span]) -> Iterator[int]:
    """All that are written or seen."""
    for span in spans:
        yield span.slot
        yield from (stretch.slot for stretch in span.view)


def _generation_config(
    config: GenerationConfig | LlamaGenerationConfig | None,
) -> ModelGenerationConfig:
    if config is None:
        return ModelGenerationConfig(None, 1.0, 0, frozenset())
    ends = config.eos_token_id
    end_ids = frozenset(ends if isinstance(ends, list) else [] if ends is None else [ends])
    values = config.to_diff_dict()
    return ModelGenerationConfig(
        values.get("temperature"), values.get("top_p") or 1.0, values.get("top_k") or 0, end_ids
    )
