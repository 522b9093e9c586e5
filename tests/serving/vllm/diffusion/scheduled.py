"""vLLM's own scheduler, the one of diffusion models, above weft's sampler: texts as JSON.

Run in a process of its own, on a CPU: the scheduler is real, the model is a table. What the
scheduler counts as computed is compared with what the runner's formula says, step by step.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from tests.serving.vllm.diffusion.runner import Text, table
from weft.decoding.diffusion.models.folder import describe
from weft.serving.vllm.diffusion.batch import CanvasRequests
from weft.serving.vllm.diffusion.decoder import ServedCanvas
from weft.serving.vllm.diffusion.sampler import CanvasSampler

WIDTH, LONGEST, SEED = 4, 64, 3
# name, prompt, decoder, most tokens
WISHES = [
    ("a", [5, 6, 7, 8, 9, 10, 11, 12], "threshold:0.4", 24),
    ("b", [5, 6, 7, 8, 9, 10], "sequential", 11),
    ("c", [20, 21, 22], "factor:1.0", 40),
    ("d", [30] * 61, "threshold:0.9", 40),  # until the context ends
]


def engine(folder: Path, asynchronous: bool, blocks: int) -> Any:
    """The scheduler, as vLLM would set it up for the folder."""
    from vllm.config import CacheConfig, ModelConfig, SchedulerConfig, VllmConfig
    from vllm.config.diffusion import DiffusionConfig
    from vllm.v1.core.sched import diffusion_scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    from weft.serving.vllm.diffusion.config import set_for_canvases

    model = ModelConfig(
        str(folder), dtype="float32", skip_tokenizer_init=True, max_model_len=LONGEST
    )
    model.config_updated = True  # the hook refuses a CPU: its settings are made below
    config = VllmConfig(
        model_config=model,
        cache_config=CacheConfig(block_size=16),
        scheduler_config=SchedulerConfig(
            max_model_len=LONGEST,
            max_num_seqs=8,
            max_num_batched_tokens=LONGEST,
            is_encoder_decoder=False,
            async_scheduling=asynchronous,
        ),
        diffusion_config=DiffusionConfig(canvas_length=WIDTH),
    )
    set_for_canvases(config)
    config.cache_config.num_gpu_blocks = blocks
    spec = FullAttentionSpec(block_size=16, num_kv_heads=2, head_size=16, dtype=torch.float32)
    kind = (
        diffusion_scheduler.DiffusionAsyncScheduler
        if asynchronous
        else diffusion_scheduler.DiffusionScheduler
    )
    return kind(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(blocks, [], [KVCacheGroupSpec(["layer"], spec)]),
        structured_output_manager=StructuredOutputManager(config),
        block_size=16,
    )


class Worker:
    """What a worker does between the scheduler and the sampler."""

    def __init__(self, served: ServedCanvas) -> None:
        self.requests = CanvasRequests(served, LONGEST)
        self.drafts = torch.zeros(8, WIDTH, dtype=torch.int64)
        self.sampler = CanvasSampler(self.requests, self.drafts, self._head, SimpleNamespace)
        self.model = table(served.traits.vocabulary, SEED, served.traits)
        self.texts: dict[str, Text] = {}
        self._free = list(range(8))

    def _head(self, *_: Any) -> torch.Tensor:
        raise AssertionError("the model has no shift")

    def run(self, scheduled: Any) -> tuple[list[str], list[list[int]]]:
        for name in {*scheduled.finished_req_ids, *(scheduled.preempted_req_ids or ())}:
            text = self.texts.pop(name, None)
            if text is not None:
                self.requests.remove(name)
                self._free.append(text.place)
        for new in scheduled.scheduled_new_reqs:
            self._add(new)
        names = list(scheduled.num_scheduled_tokens)
        return names, self._step(names, scheduled) if names else []

    def _add(self, new: Any) -> None:
        ids = list(new.prefill_token_ids or new.prompt_token_ids)
        got = len(ids) - len(new.prompt_token_ids)
        place = self._free.pop()
        text = Text(new.req_id, place, ids, new.sampling_params, new.num_computed_tokens)
        self.texts[new.req_id] = text
        self.requests.add(new.req_id, place, ids, got, new.sampling_params)
        self.sampler.add_request(place, new.sampling_params)

    def _step(self, names: list[str], scheduled: Any) -> list[list[int]]:
        texts = [self.texts[name] for name in names]
        canvas = [name in scheduled.scheduled_spec_decode_tokens for name in names]
        lengths = np.array([scheduled.num_scheduled_tokens[name] for name in names])
        raw, reads = [], []
        for text, has, length in zip(texts, canvas, lengths.tolist(), strict=True):
            assert has == (text.computed >= len(text.ids)), (text.name, has, text.computed)
            ids = self.drafts[text.place, :length].tolist()
            if not has:
                ids = text.ids[text.computed : text.computed + length]
            reads.append(ids)
            raw.append(self.model(text, ids))
        rows = np.where(canvas, lengths, 0)
        given = [one for one, has in zip(raw, canvas, strict=True) if has]
        output = self.sampler(
            torch.cat(given) if given else torch.empty(0, raw[0].shape[1]),
            SimpleNamespace(
                num_reqs=len(texts),
                idx_mapping_np=np.array([text.place for text in texts]),
                cu_num_logits_np=np.concatenate([[0], rows.cumsum()]),
                query_start_loc_np=np.concatenate([[0], lengths.cumsum()]),
                num_computed_prefill_tokens_np=np.array([text.computed for text in texts]),
                num_scheduled_tokens=lengths,
                prefill_len_np=np.array([len(text.ids) for text in texts]),
            ),
        )
        finals = []
        for index, text in enumerate(texts):
            final = output.sampled_token_ids[index, : int(output.num_sampled[index])].tolist()
            text.computed += len(reads[index]) - int(output.num_rejected[index])
            text.ids += final
            finals.append(final)
        return finals


def texts(folder: Path, asynchronous: bool, blocks: int) -> dict[str, list[int]]:
    """Everything that the scheduler says was written, by request."""
    from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput

    found = describe(folder)
    scheduler = engine(folder, asynchronous, blocks)
    worker = Worker(ServedCanvas(found.traits, found.preset, WIDTH))
    ask(scheduler, found.traits.end_ids)
    written: dict[str, list[int]] = {name: [] for name, *_ in WISHES}
    ahead: deque[tuple[Any, Any]] = deque()
    steps = 0
    while scheduler.has_requests():
        steps += 1
        assert steps < 600, "requests never end"
        scheduled = scheduler.schedule()
        names, finals = worker.run(scheduled)
        if names:
            places = {name: index for index, name in enumerate(names)}
            ahead.append((scheduled, ModelRunnerOutput(names, places, finals)))
        if ahead and (len(ahead) > asynchronous or not names):
            outputs = scheduler.update_from_output(*ahead.popleft())
            for output in (output for one in outputs.values() for output in one.outputs):
                written[output.request_id] += output.new_token_ids
        if names and not asynchronous:
            held = [worker.drafts[worker.texts[name].place].tolist() for name in names]
            scheduler.update_draft_token_ids(DraftTokenIds(names, held))
            check(scheduler, worker)
    return written


def ask(scheduler: Any, end_ids: frozenset[int]) -> None:
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request

    for name, prompt, decoder, most in WISHES:
        sampling = SamplingParams(max_tokens=most, extra_args={"weft_decode": decoder})
        sampling._eos_token_id = min(end_ids)
        sampling._all_stop_token_ids = set(end_ids)
        scheduler.add_request(Request(name, prompt, sampling, None))


def check(scheduler: Any, worker: Worker) -> None:
    """What is computed is the same on both sides."""
    for name, request in scheduler.requests.items():
        text = worker.texts.get(name)
        if text is not None and request in scheduler.running:
            assert request.num_computed_tokens == text.computed, name


def main(folder: Path) -> None:
    from vllm.config import vllm as configuration

    from weft.serving.vllm.plugin import register

    configuration.HAS_TRITON = True  # the configuration asks for it; the scheduler runs no kernel
    register()
    said = {
        "plain": texts(folder, asynchronous=False, blocks=64),
        "ahead": texts(folder, asynchronous=True, blocks=64),
        "cramped": texts(folder, asynchronous=False, blocks=8),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
