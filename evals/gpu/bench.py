"""What a run of the evaluation is on: a device, a model, and how much of everything."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from evals.planning.effort import Skipped
from weft.core.errors import ModelNotFound
from weft.serving.local import LocalOptions
from weft.serving.weights import locate

MODEL: Final = "smollm2-135m-instruct"
Options = Mapping[str, Any]
OptionsOf = Callable[[str], Options]


def _as_it_comes(_decoder: str) -> Options:
    return {}


@dataclass(frozen=True, slots=True)
class Bench:
    """A device, and what is run on it.

    `path` is the autoregressive model in this process, `chat` the one that a block diffusion model
    is made from; `named` is the one for strategies, as `--model` names it (empty: `path` here).
    `draft_options` by decoder are what it needs beside its defaults. `dry`: all sections at the
    least size, on a fake device; figures mean nothing.
    """

    device: str
    path: Path
    chat: Path
    folder: Path
    dry: bool = False
    named: str = ""
    items: int = 20
    draft_options: OptionsOf = field(default=_as_it_comes)

    def of(self, full: int, dry: int) -> int:
        """The one of the two that this run is for."""
        return dry if self.dry else full

    def options(self, **changes: Any) -> LocalOptions:
        """Options of a model in this process, on the device."""
        return LocalOptions(
            **{"device": self.device, "threads": 1 if self.dry else None, **changes}
        )


@contextmanager
def real_bench(named: str, items: int) -> Iterator[Bench]:
    """The GPU of this machine. Raises: `Skipped` where there is none, or no model."""
    import torch

    if not torch.cuda.is_available():
        raise Skipped("this torch sees no GPU; --dry-run walks through all sections without one")
    kind, _, name = named.rpartition(":")
    wanted = name if kind in ("", "local") and name else MODEL
    try:
        path = locate(wanted)
    except ModelNotFound as error:
        raise Skipped(f"{error}") from error
    with tempfile.TemporaryDirectory(prefix="weft-gpu-") as folder:
        yield Bench("cuda", path, path, Path(folder), named=named, items=items)


@contextmanager
def dry_bench() -> Iterator[Bench]:
    """A device that is none, which refuses what CUDA refuses, and a model with random weights.

    Both are those of the tests: it runs in a checkout only.
    """
    from torch.__future__ import (
        get_swap_module_params_on_conversion,
        set_swap_module_params_on_conversion,
    )

    from tests import fake_device
    from tests.decoding.speculative.decoder_fixtures import options_for
    from tests.serving.local.tiny import make_model, make_tokenizer
    from weft.decoding.network.network import Network
    from weft.decoding.network.options import NetworkOptions
    from weft.training import devices

    device = fake_device.register()
    before = get_swap_module_params_on_conversion()
    with ExitStack() as undone:
        folder = Path(undone.enter_context(tempfile.TemporaryDirectory(prefix="weft-gpu-")))
        set_swap_module_params_on_conversion(True)
        undone.callback(set_swap_module_params_on_conversion, before)
        undone.enter_context(patch.object(devices, "_DEVICE", re.compile(f"cpu|{device}")))
        tokenizer = make_tokenizer()
        tokenizer.add_special_tokens({"additional_special_tokens": ["<|reserved|>"]})
        path = folder / "tiny"
        tokenizer.save_pretrained(path)
        make_model(len(tokenizer)).save_pretrained(path)
        network = Network.load(path, NetworkOptions(dtype="float32", threads=1))

        @cache
        def given(decoder: str) -> Options:
            return options_for(decoder, network, path, folder / f"drafter-{decoder}")

        yield Bench(device, path, path, folder, dry=True, items=1, draft_options=given)
