"""What requests of earlier servers wrote, in a file for the user alone: bounded, read at a start.

A line of the file is a line of the channel. It belongs to one model: a file of another vocabulary
gives nothing.
"""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.serving.vllm.drafting.channel.message import Text, from_line, to_line

LOG = logging.getLogger("vllm.weft")
_KEPT: Final = 2000
_LARGEST: Final = 64 * 2**20


class Known:
    """The last texts of a model, in `folder`. Reading and writing never raise."""

    def __init__(self, folder: Path, model: str, vocabulary: int) -> None:
        name = re.sub(r"[^\w.-]", "_", model)[-80:].lstrip(".") or "model"
        self._path = folder / f"{name}-{vocabulary}.jsonl"
        self._vocabulary = vocabulary
        self._lines = 0

    def texts(self) -> Iterator[Text]:
        """The last texts, oldest first. The file is cut down to them."""
        try:
            if self._path.stat().st_size > _LARGEST:
                raise OSError("it is too large")
            with self._path.open("rb") as file:
                lines = deque(file, maxlen=_KEPT)
            self._write(b"".join(lines))
        except FileNotFoundError:
            return
        except OSError as error:
            LOG.warning("weft's proposer starts without what was known: %s", error)
            with suppress(OSError):
                self._path.unlink()
            return
        self._lines = len(lines)
        for line in lines:
            text = from_line(line, self._vocabulary)
            if text is not None:
                yield text

    def keep(self, label: str, tokens: Sequence[int]) -> None:
        """Add a text; one without a label is of no use to a later run."""
        if not label or len(tokens) < 3 or self._lines >= 2 * _KEPT:
            return
        self._lines += 1
        with suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "ab") as file:
                file.write(to_line(label, tokens))

    def _write(self, content: bytes) -> None:
        new = self._path.with_suffix(".new")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        new.replace(self._path)
