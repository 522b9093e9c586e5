"""The registry's files: stale, corrupt, foreign; ids; forms; which serving satisfies whom."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ServeError
from weft.core.values import Lossless, Lossy
from weft.serving.vllm.client.demand import satisfies
from weft.serving.vllm.launch.spec import ServeSpec, from_form, to_form
from weft.serving.vllm.serve import chosen
from weft.serving.vllm.supervise import failure, registry
from weft.serving.vllm.supervise.detached import SupervisionTerms, entry_for
from weft.serving.vllm.supervise.processes import Identity, Mark
from weft.serving.vllm.supervise.registry import ReplicaEntry, ServingEntry

options = st.tuples(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.booleans())
decoders = st.builds(
    lambda kind, method, chosen: kind(method, tuple(chosen)),
    st.sampled_from([Lossless, Lossy]),
    st.text(max_size=8),
    st.lists(options, max_size=2),
)
specs = st.builds(
    ServeSpec,
    model=st.text(min_size=1, max_size=20),
    tp=st.integers(1, 8),
    replicas=st.integers(1, 4),
    decode=decoders,
    eager=st.none() | st.booleans(),
    kv_cache_bytes=st.none() | st.integers(1, 2**40),
    adapters=st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=2),
    extra=st.lists(st.text(max_size=9), max_size=3).map(tuple),
)


def entry(serving: str = "a-1", spec: ServeSpec | None = None, **given: object) -> ServingEntry:
    made = entry_for(serving, spec or ServeSpec("m"), SupervisionTerms(), Identity.own())
    return replace(made, **given)  # type: ignore[arg-type]


@given(specs)
def test_a_spec_survives_its_form(spec: ServeSpec) -> None:
    assert from_form(json.loads(json.dumps(to_form(spec)))) == spec


def test_an_entry_survives_its_file(state: Path) -> None:
    kept = entry(replicas=(ReplicaEntry(0, "http://127.0.0.1:1/v1", "0.log"),))
    with registry.locked():
        registry.write(kept)
        assert registry.entries() == [kept]
    file = state / "servers" / "a-1.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_entries_of_dead_supervisors_are_removed(state: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        living = Identity.of(process.pid)
        with registry.locked():
            registry.write(entry(supervisor=living))
            assert len(registry.entries()) == 1
        process.kill()
    with registry.locked():
        assert not registry.entries()
    assert not list((state / "servers").glob("*.json"))


def test_a_number_that_was_given_again_is_not_the_same_process() -> None:
    own = Identity.own()
    assert own.lives()
    assert not replace(own, born=own.born + "0").lives()
    assert not Identity.of(2**22 + 1).lives()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": 1}',
        json.dumps(entry().to_data() | {"format": 2}),
        json.dumps(entry("b-2").to_data()),
        json.dumps(entry().to_data() | {"spec": {"model": "m", "evil": 1}}),
        json.dumps(entry().to_data() | {"replicas": [{"number": 0}]}),
        json.dumps(entry().to_data() | {"status": "on fire"}),
        json.dumps(entry().to_data() | {"started_at": "yesterday"}),
    ],
)
def test_a_file_that_cannot_be_read_is_set_aside(state: Path, content: str) -> None:
    good = entry("good-1")
    with registry.locked():
        registry.write(good)
        (state / "servers" / "a-1.json").write_text(content)
        with pytest.warns(UserWarning, match="cannot be read"):
            assert registry.entries() == [good]
        assert registry.entries() == [good], "and only once"
    assert (state / "servers" / "a-1.unreadable").exists()


def test_a_state_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEFT_STATE_DIR", str(tmp_path / "file"))
    with pytest.raises(ServeError, match="WEFT_STATE_DIR"), registry.locked():
        pass


@given(st.text(max_size=60))
def test_ids_are_short_and_fit_for_files(name: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_STATE_DIR", folder)
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,23}-[0-9a-f]{4}", registry.new_id(name))


def test_marks() -> None:
    mark = Mark("a-1", Identity(7, "123@ab"))
    assert Mark.parse(mark.text()) == mark
    for text in ("", "a", "a b c", "a 7", "a 7 b c"):
        assert Mark.parse(text) is None


def test_failures_travel(state: Path) -> None:
    from weft.core.errors import EngineMissing, InternalError, NodeFailed, StartError

    assert failure.read("a-1") is None
    for error in (
        StartError("s", stage_reached="weights", hint="h"),
        EngineMissing("e", hint="h"),
        ServeError("p"),
    ):
        failure.write("a-1", error)
        found = failure.read("a-1")
        assert type(found) is type(error)
        assert str(found) == str(error)
        assert getattr(found, "stage_reached", "") == getattr(error, "stage_reached", "")
    failure.write("a-1", NodeFailed("odd"))
    assert isinstance(failure.read("a-1"), InternalError)
    (state / "logs" / "a-1" / "failure.json").write_text("[")
    assert isinstance(failure.read("a-1"), ServeError)


def test_an_unknown_serving_is_told_with_those_there_are(state: Path) -> None:
    with pytest.raises(ServeError, match="none is running"):
        chosen(["x"])
    with registry.locked():
        registry.write(entry("a-1"))
        registry.write(entry("b-2", ServeSpec("other")))
        registry.write(entry("c-3", ServeSpec("other")))
    with pytest.raises(ServeError, match="there are: a-1, b-2, c-3"):
        chosen(["x"])
    assert [found.id for found in chosen(["m", "a-1", "b-2"])] == ["a-1", "b-2"]
    with pytest.raises(ServeError, match="2 servings are called other"):
        chosen(["other"])


@pytest.mark.parametrize(
    ("running", "wanted", "fits"),
    [
        ({}, {}, True),
        ({"dtype": "float32", "max_seqs": 4, "port": 8000}, {}, True),
        ({}, {"dtype": "float32"}, False),
        ({"dtype": "float32"}, {"dtype": "float32"}, True),
        ({"model": "n"}, {}, False),
        ({"served_name": "s"}, {}, True),
        ({}, {"tp": 2}, False),
        ({"decode": Lossless("ngram")}, {}, True),
        ({"decode": Lossy("d")}, {}, False),
        ({"decode": Lossy("d")}, {"decode": Lossy("d")}, True),
        ({"quantization": "fp8"}, {}, False),
        ({"api_key_env": "KEY"}, {}, False),
        ({"adapters": {"a": "f"}}, {"adapters": {"a": "f"}}, True),
    ],
)
def test_which_serving_satisfies_a_wish(
    running: dict[str, object], wanted: dict[str, object], fits: bool
) -> None:
    there = entry(spec=ServeSpec(**({"model": "m"} | running)))  # type: ignore[arg-type]
    assert satisfies(there, ServeSpec(**({"model": "m"} | wanted))) is fits  # type: ignore[arg-type]
    assert not satisfies(replace(there, status="stopping"), there.spec)
