"""transformers' own assisted generation: a peer, and an oracle that shares no code with weft.

Its prompt lookup, and its draft model: here the first layers of the same weights. Greedy; each
prompt plainly, assisted, assisted, plainly. Passes are counted at the model's door, without the
prompt's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

import torch
from transformers import AutoModelForCausalLM

from evals.engine.rows import Row
from evals.planning.effort import Skipped
from evals.speculative.cases import CASES
from evals.speculative.figures import method_rows, plain_rows
from evals.speculative.single import Model, plainly
from evals.speculative.taken import Taken
from weft.core.errors import ModelNotFound
from weft.decoding.network.options import model_threads
from weft.serving.weights import locate

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MODEL: Final = "smollm2-135m-instruct"
_CASES: Final = ("agent_quoting", "agent_edits", "mt_bench", "translation", "qa")
_LAYERS: Final = 5
"""Of the draft model: the first layers of the target, with its head; nobody trained it for that."""
SYSTEMS: Final[dict[str, Callable[[PreTrainedModel], Mapping[str, Any]]]] = {
    "transformers_plain": lambda _: {},
    "transformers_prompt_lookup": lambda _: {"prompt_lookup_num_tokens": 10},
    "transformers_assistant": lambda draft: {"assistant_model": draft},
}


def rows(quick: bool) -> list[dict[str, Any]]:
    """The figures of both ways, and whether weft's plain text is that of transformers."""
    try:
        path = locate(MODEL)
    except ModelNotFound as error:
        raise Skipped(str(error)) from error
    torch.set_num_threads(model_threads())
    own, peer = Model(path, dtype="float32"), _loaded(path)
    draft = _shortened(path)
    found: list[Row] = []
    for case in _CASES[:2] if quick else _CASES:
        try:
            prompts = CASES[case](1 if quick else 4)
        except Skipped as reason:
            found.append(Row(case, "", f"skipped: {reason}", None, ""))
            continue
        most = 20 if quick else 64
        answers: dict[str, list[Taken]] = {"weft": [], **{name: [] for name in SYSTEMS}}
        for prompt in prompts:
            read = own.read(prompt, ())
            answers["weft"].append(read.answer(plainly(), most))
            for name, taken in _interleaved(peer, draft, read.tokens, most).items():
                answers[name].append(taken)
        found += _case_rows(case, answers)
    return [asdict(row) for row in found]


def _case_rows(case: str, answers: Mapping[str, Sequence[Taken]]) -> Iterator[Row]:
    plain = answers["transformers_plain"]
    for row in plain_rows(case, plain):
        yield replace(row, system="transformers_plain")
    for name, taken in answers.items():
        if name != "transformers_plain":
            system = "weft_plain" if name == "weft" else name
            yield from method_rows(case, system, plain, taken)


def _interleaved(
    peer: PreTrainedModel, draft: PreTrainedModel, prompt: Sequence[int], most: int
) -> dict[str, Taken]:
    """What every system takes for a prompt: all in turn, and back again."""
    several: dict[str, list[Taken]] = {name: [] for name in SYSTEMS}
    for name in (*SYSTEMS, *reversed(SYSTEMS)):
        several[name].append(_generated(peer, SYSTEMS[name](draft), prompt, most))
    return {
        name: replace(taken[0], seconds=mean(one.seconds for one in taken))
        for name, taken in several.items()
    }


def _generated(
    peer: PreTrainedModel, options: Mapping[str, Any], prompt: Sequence[int], most: int
) -> Taken:
    """One answer. Its seconds begin when the model has read the prompt."""
    given = torch.tensor([prompt])
    with _counted(peer) as passes, torch.inference_mode():
        text = peer.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=most,
            do_sample=False,
            **options,
        )
        ended = time.perf_counter()
    tokens = tuple(text[0, len(prompt) :].tolist())
    # the first pass reads the prompt, and writes a token
    seconds, accepted = ended - passes[0], len(tokens) - len(passes)
    return Taken(tokens, len(passes), seconds, accepted=accepted)


@contextmanager
def _counted(model: PreTrainedModel) -> Iterator[list[float]]:
    """When each pass of `model` ended."""
    passes: list[float] = []
    hook = model.register_forward_hook(lambda *_: passes.append(time.perf_counter()))
    try:
        yield passes
    finally:
        hook.remove()


def _loaded(path: Path) -> PreTrainedModel:
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, local_files_only=True, use_safetensors=True
    )
    return model.eval()


def _shortened(path: Path) -> PreTrainedModel:
    """The model's first layers as a model."""
    model = _loaded(path)
    model.model.layers = model.model.layers[:_LAYERS]
    model.config.num_hidden_layers = _LAYERS
    return model
