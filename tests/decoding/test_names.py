"""A decoder's name leads to the code of that name, and no code is there that no name leads to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    pytest.skip("torch is not installed", allow_module_level=True)

from tests.decoding.devices.decoder_requirements import GIVEN
from tests.decoding.speculative.decoder_fixtures import options_for
from tests.serving.local.conftest import tiny_path
from tests.serving.local.playback import EXACT
from weft.core.values import DecodeSpec, Lossless, Lossy
from weft.decoding import decoders
from weft.decoding.diffusion import catalogue
from weft.decoding.diffusion.models.loading import load
from weft.decoding.network.network import Network
from weft.decoding.options import format_decoder
from weft.decoding.speculative import presets
from weft.decoding.speculative.drafters.model.pipelined import PipelinedMethod
from weft.serving.weights import locate
from weft.training.diffusion import spec as diffusion_kinds
from weft.training.drafters import spec

__all__ = ["tiny_path"]

ROOT: Final = Path(__file__).parent.parent.parent
DRAFTERS: Final = {
    "lookup": "LookupDrafter",
    "suffix": "RecordingSuffixDrafter",
    "hybrid": "HybridDrafter",
    "draft_model": "ModelDrafter",
    "self_draft": "ModelDrafter",
    "sequoia": "SequoiaDrafter",
    "medusa": "MedusaDrafter",
    "medusa_typical": "MedusaDrafter with TypicalAcceptance",
    "ppd": "PromptTokenDrafter",
    "pass": "PassDrafter",
    "eagle": "EagleDrafter",
    "dflash": "DFlashDrafter",
    "hidden_transfer": "HiddenTransferDrafter",
    "lookahead": "LookaheadDrafter",
    "lexical_units": "LexicalUnitDrafter with AcceptAll",
    "lexical_units_verified": "LexicalUnitDrafter",
    "pearl": "PipelinedDrafter at the pace of PearlPacing",
    "continuous": "PipelinedDrafter at the pace of ContinuousPacing",
    "llmcad": "CascadeDrafter",
    "easyspec": "EasySpecDrafter",
    "auto": "AutoDrafter",
}
"""By decoder: what drafts one sequence; its rule where that is not the usual one; its pace."""
_ON_BLOCKS: Final = ("sdar", "fastdllm_v2")
PLUGS: Final = {
    **dict.fromkeys(("sequential", "llada", "random"), "FixedPacePolicy"),
    "dilated": "DilatedPolicy",
    "dream_origin": "AncestralPolicy",
    **dict.fromkeys(("dream_maskgit", "dream_margin", "dream_entropy"), "FixedPacePolicy"),
    **dict.fromkeys(("dimple", "threshold", "llada2"), "ThresholdPolicy"),
    "factor": "FactorPolicy",
    "entropy_threshold": "EntropyThresholdPolicy",
    "entropy_bound": "EntropyBoundPolicy",
    "klass": "KlassPolicy",
    "hierarchy": "HierarchyPolicy",
    "credit": "CreditPolicy",
    "smooth": "SmoothingPolicy",
    "wino": "WinoPolicy",
    "rcr": "RunningConfidencePolicy",
    "remdm": "RemdmPolicy",
    **dict.fromkeys(("llada21_quality", "llada21_speed"), "TokenEditPolicy"),
    "llada22": "IndelPolicy",
    "adablock": "ThresholdPolicy in AdaBlock",
    "daedal": "ThresholdPolicy in Daedal",
    "slowfast": "ThresholdPolicy in SlowFast",
    **dict.fromkeys(("fastdllm_prefix", "fastdllm_dual"), "ThresholdPolicy by PrefixCache"),
    "freecache": "ThresholdPolicy by FreeCache",
    "delayed": "ThresholdPolicy by DelayedCache",
    "interval": "ThresholdPolicy by IntervalCache",
    "vicinity": "ThresholdPolicy by VicinityCache",
    **dict.fromkeys(_ON_BLOCKS, "ThresholdPolicy by BlockCausalCache"),
    "flashdlm": "ThresholdPolicy by FreeCache under CausalSupervisor",
    "learn2pd": "Learn2pdPolicy",
    "dparallel": "EntropyThresholdPolicy",
    "self_speculative": "SelfSpeculativePolicy",
    "uniform_state": "UniformStatePolicy",
    "adaptive": "AdaptivePolicy",
}
"""By decoder: its policy; its schedule, cache and verifier where those are not the usual ones."""


def asked(name: str, options: dict[str, str | int | float | bool]) -> DecodeSpec:
    """As people write it."""
    if name in presets.NAMES:
        lossless = presets.preset(name).lossless
    else:
        lossless = catalogue.preset(name).plain
    kind = Lossless if lossless else Lossy
    return decoders.parse_decode(format_decoder(kind(name, tuple(options.items()))))


@pytest.mark.parametrize("name", presets.NAMES)
def test_a_name_leads_to_its_drafter(name: str, tiny_path: Path, tmp_path: Path) -> None:
    network = Network.load(tiny_path, EXACT)
    spec = asked(name, dict(options_for(name, network, tiny_path, tmp_path / "drafter")))
    method = presets.made(spec.method, network, dict(spec.options))
    try:
        found = type(method.begin()).__name__
    finally:
        method.close()
    rule = type(method.acceptor).__name__
    found += f" with {rule}" if rule != "ExactMatch" else ""
    if type(method) is PipelinedMethod:
        found += f" at the pace of {type(method._pacing).__name__}"
    assert method.name == name
    assert found == DRAFTERS[name]


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_a_name_leads_to_its_plugs(name: str) -> None:
    folder = locate("list-block" if name in _ON_BLOCKS else "list-full")
    spec = asked(name, dict(GIVEN.get(name, {})))
    plugs = catalogue.decoder_config(spec.method, load(folder, EXACT).traits, dict(spec.options))
    found = type(plugs.commit).__name__
    for word, part, usual in (
        ("in", plugs.schedule, "FixedBlocks"),
        ("by", plugs.cache, "NoCache"),
    ):
        kind = type(part).__name__
        found += f" {word} {kind}" if kind != usual else ""
    found += "".join(f" under {type(verifier).__name__}" for verifier in plugs.verifiers)
    assert found == PLUGS[name]


def test_what_is_not_here_is_no_name_and_says_why() -> None:
    assert not set(presets.NOT_HERE) & {*presets.NAMES, *catalogue.NAMES}


_OPTION: Final = r"[^\s`\"'},|;)]+"
WRITTEN: Final = re.compile(
    rf'(?:--decode |\bdecode: ?"?)([a-z_0-9]+(?::{_OPTION})?(?:,\w+={_OPTION})*)'
)
_OF_SERVERS: Final = ("eagle3", "ngram", "weft")
"""What vLLM's servers are told, who read it themselves."""


def written() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for found in WRITTEN.findall(path.read_text("utf-8")):
            if path.name != "python.md" and found.partition(":")[0] not in _OF_SERVERS:
                yield path.relative_to(ROOT).as_posix(), found


@pytest.mark.parametrize(("page", "text"), sorted(set(written())))
def test_what_the_docs_write_is_read(page: str, text: str) -> None:
    decoders.parse_decode(text)


FOR_PROGRAMS: Final = (
    # one sequence without a server: `decode_alone`
    "weft.decoding.speculative.loop",
    "weft.decoding.speculative.loop",
    "weft.decoding.speculative.target",
    "weft.decoding.speculative.target",
    # a model that is exact, and has no weights: docs/diffusion.md
    "weft.decoding.diffusion.oracle",
)
"""Told of in the documentation, for programs that import them."""


def test_no_module_is_for_tests_alone() -> None:
    """From what is not decoding itself, and from the names, every module of it is reached."""
    imports = {module: set(_imports(path)) for module, path in _modules()}
    reached = {
        module for module in imports if not module.startswith(("weft.decoding", "weft.training"))
    }
    reached |= set(presets.MODULES.values())
    reached |= {f"weft.training.drafters.{name}" for name in spec.KINDS.values()}
    reached |= {f"weft.training.diffusion.{name}" for name in diffusion_kinds.KINDS.values()}
    waiting = list(reached & set(imports))
    while waiting:
        for name in imports[waiting.pop()]:
            if name in imports and name not in reached:
                reached.add(name)
                waiting.append(name)
    packages = {module for module, path in _modules() if path.name == "__init__.py"}
    left = sorted(set(imports) - reached - packages)
    assert [module for module in left if not module.startswith(FOR_PROGRAMS)] == []


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / "weft").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{one.name}" for one in names)
            case ast.Constant(value=str(text)) if text.startswith("weft."):
                yield text.partition(":")[0]
