from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.content_store import ContentStoreConformance
from weft.durability.content_folder import FolderContentStore


class TestFolderContentStore(ContentStoreConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "not" / "yet"

    def make(self, max_bytes: int = 1 << 20) -> FolderContentStore:
        return FolderContentStore(self.folder, max_bytes=max_bytes)

    def damage(self, digest: str, content: bytes) -> None:
        digits = digest.removeprefix("sha256:")
        (self.folder / "sha256" / digits[:2] / digits[2:]).write_bytes(content)
