"""Images, sound and files in messages: to servers that take them, refused elsewhere, kept once."""

import json
import sqlite3
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.serving.openai.scripted import EndpointServer, Script, says
from weft.errors import CapabilityError, InputError
from weft.testing import FakeModel

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt " + bytes(100)
TEXT = """
name: look
inputs: {photo: image, sound: audio, paper: {type: file, description: A PDF.}}
models: {eyes: {use: openai, model: m, base_url: "ADDRESS"}}
nodes:
  say:
    model: eyes
    messages:
      - role: user
        content: [Look, {image: "{{ photo }}"}, {audio: "{{ sound }}"}, {file: "{{ paper }}"}]
  again:
    model: eyes
    messages: [{role: user, content: ["Again {{ say }}", {image: "{{ photo }}"}]}]
outputs: {answer: "{{ again }}", photo: "{{ photo }}"}
"""
MEDIA: dict[str, Any] = {
    "photo": weft.Image(PNG, name="cat.png"),
    "sound": weft.Audio(WAV),
    "paper": weft.File(b"%PDF-1.4 my-secret-0815", name="a.pdf"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[EndpointServer]:
    with EndpointServer() as started:
        yield started


def test_an_openai_server_gets_the_parts_in_its_own_form(server: EndpointServer) -> None:
    endpoint = server.add(says("A cat."), model={"owned_by": "system"})
    flow = weft.loads(TEXT.replace("ADDRESS", endpoint.base_url))
    result = flow.run_sync(**MEDIA, journal=None)
    assert result["answer"] == "A cat."
    assert result["photo"] == MEDIA["photo"]
    text, image, sound, file = endpoint.requests[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "Look"}
    url = image["image_url"]["url"]
    assert url.startswith("data:image/png;base64,")
    assert b64decode(url.partition(",")[2]) == PNG
    assert sound["type"] == "input_audio"
    assert sound["input_audio"]["format"] == "wav"
    assert file["file"]["filename"] == "a.pdf"
    assert file["file"]["file_data"].startswith("data:application/pdf;base64,")


def test_a_server_that_takes_no_media_is_a_capability_error(server: EndpointServer) -> None:
    body = json.dumps({"error": {"message": "m is not a multimodal model", "code": 400}})
    text_only = server.add(Script(status=400, plain=body), model={"owned_by": "system"})
    vllm = server.add(says("never"))
    for endpoint, why in ((text_only, "takes no such media"), (vllm, "audio and image beside")):
        flow = weft.loads(TEXT.replace("ADDRESS", endpoint.base_url))
        result = flow.run_sync(**MEDIA, journal=None)
        failure = result.outcomes["say"].failure
        assert failure is not None
        assert (failure.error, why in failure.message) == (CapabilityError.__name__, True)
    assert not vllm.requests


def test_a_local_model_and_one_that_thinks_refuse_media() -> None:
    local = TEXT.replace(
        '{use: openai, model: m, base_url: "ADDRESS"}', "local:smollm2-135m-instruct"
    )
    for text in (local,):
        result = weft.loads(text).run_sync(**MEDIA, journal=None)
        failure = result.outcomes["say"].failure
        assert failure is not None
        assert failure.error == CapabilityError.__name__
        assert "takes only text" in failure.message


def test_bytes_are_stored_once_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_API_KEY", "my-secret-0815")
    path = tmp_path / "runs.db"
    flow = weft.loads(TEXT.replace("ADDRESS", "http://localhost:1/v1"))
    model = FakeModel(["A cat."])
    result = flow.run_sync(**MEDIA, models={"eyes": model}, journal=weft.open_journal(str(path)))
    assert result["photo"] == MEDIA["photo"]
    with sqlite3.connect(path) as db:
        rows = [body for (body,) in db.execute("SELECT body FROM blobs")]
    assert sum(len(body) for body in rows) < 3 * len(PNG)
    assert b"my-secret-0815" not in path.read_bytes()
    events = [numbered.record for numbered in weft.open_journal(str(path)).records(result.run)]
    asked = [event.request for event in events if hasattr(event, "request")]
    assert [part.sha256 for part in asked[1].messages[0].media] == [MEDIA["photo"].sha256]


def test_media_show_their_digest_and_never_their_bytes() -> None:
    photo = MEDIA["photo"]
    assert photo["sha256"] == photo.sha256
    assert str(photo).startswith("[image image/png, 10,248 bytes, ")
    flow = weft.Flow("digest")
    given = flow.input("photo", "image")
    flow.output(
        size=flow.value(f"{given.bytes} of {given.media_type}"), whole=flow.value(f"x {given}")
    )
    result = flow.run_sync(photo=photo, journal=None)
    assert result.outputs["size"] == "10248 of image/png"
    failure = next(outcome.failure for outcome in result.outcomes.values() if outcome.failure)
    assert "is no text: give it in `messages`" in failure.message


def test_a_path_is_the_workflows_own_and_never_a_value(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(PNG)
    model = FakeModel(["A cat."])
    for part, fails in (("./cat.png", ""), ("../cat.png", "leads out"), ("{{ path }}", "no image")):
        (tmp_path / "flow.yaml").write_text(
            "name: look\ninputs: {path: {type: string, default: cat.png}}\n"
            "models: {eyes: local:smollm2-135m-instruct}\nnodes:\n  say:\n    model: eyes\n"
            f'    messages: [{{role: user, content: [{{image: "{part}"}}]}}]\n'
            'outputs: {answer: "{{ say }}"}\n'
        )
        flow = weft.load(tmp_path / "flow.yaml")
        result = flow.run_sync(models={"eyes": model}, journal=None)
        failure = result.outcomes["say"].failure
        assert (failure is not None) == bool(fails)
        assert fails in (failure.message if failure else "")
    assert model.requests[0].messages[0].media[0].name == "cat.png"


def test_the_type_comes_from_the_bytes_and_sizes_are_bounded(tmp_path: Path) -> None:
    assert weft.File(b"plain words").media_type == "text/plain"
    with pytest.raises(InputError, match="is text/plain by its bytes"):
        weft.Image(b"plain words")
    with pytest.raises(InputError, match="is image/png by its bytes, not image/jpeg"):
        weft.Image(PNG, "image/jpeg")
    with pytest.raises(InputError, match="the most is"):
        weft.File.from_bytes(bytes(20 * 1024 * 1024 + 1))
    with pytest.raises(InputError, match="cannot be read"):
        weft.Image.from_file(tmp_path / "none.png")
