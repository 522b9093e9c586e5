"""weft's proposer in a real vLLM: the same text, fewer passes, and nothing lost when it breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.integration.oracle import Oracle
from tests.integration.tiny_llama import make_tiny_llama
from weft.core.ports import ModelRequest, Program, Sampling, complete
from weft.core.values import Completion
from weft.serving.vllm.client.model import VllmModel
from weft.serving.vllm.drafting.shared_texts import share_text
from weft.serving.vllm.launch.decoders import parse_speculative
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise.registry import entries, locked
from weft.serving.vllm.supervise.state_folders import drafting_folder

pytestmark = pytest.mark.vllm
TOKENS = 48
PROMPTS = tuple(f"{number} lazy dogs jump over the quick brown fox" for number in range(6))


def schema(*names: str) -> dict[str, Any]:
    """Of an object that leaves next to nothing but its values to choose."""
    return {
        "type": "object",
        "properties": {name: {"enum": ["north", "south"]} for name in names},
        "required": list(names),
        "additionalProperties": False,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(autouse=True)
def _own_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_STATE_DIR", str(tmp_path))


@asynccontextmanager
async def serving(folder: Path, decode: str) -> AsyncIterator[VllmModel]:
    spec = ServeSpec(
        str(folder),
        dtype="float32",
        decode=parse_speculative(decode),
        max_context_tokens=1024,
        kv_cache_bytes=2**28,
    )
    async with aclosing(VllmModel(spec)) as model:
        await model.start()
        yield model


def asked(ids: Sequence[int], node: str, held: Mapping[str, Any] | None = None) -> ModelRequest:
    return ModelRequest(
        prompt_token_ids=tuple(ids),
        sampling=Sampling(max_tokens=TOKENS if held is None else 2 * TOKENS, temperature=0.0),
        program=Program("run", node=node),
        extra={} if held is None else {"structured_outputs": {"json": held}},
    )


async def at_once(model: VllmModel, requests: Sequence[ModelRequest]) -> list[Completion]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(complete(model, request)) for request in requests]
    return [task.result() for task in tasks]


def drafted(answer: Completion) -> tuple[int, int]:
    """Passes and accepted tokens."""
    told = answer.speculation
    return (len(answer.token_ids) - 1, 0) if told is None else (told.forwards, told.accepted)


def test_drafts_from_siblings_earlier_runs_grammars_and_other_programs_change_no_text(
    folder: Path,
) -> None:
    """Greedy answers are those of transformers; so they are in fewer passes."""
    oracle, tokenizer = Oracle(folder), AutoTokenizer.from_pretrained(folder)
    prompts = [tokenizer(prompt).input_ids for prompt in PROMPTS]
    requests = [asked(ids, "flow/notes") for ids in prompts]
    expected = [oracle.greedy(prompt, TOKENS) for prompt in PROMPTS]

    async def main() -> None:
        async with serving(folder, "weft:8") as model:
            first = await at_once(model, requests)
            assert [list(each.token_ids) for each in first] == expected
            again = await at_once(model, requests[::-1])
            assert [list(each.token_ids) for each in again] == expected[::-1]
            for answer in again:  # its node wrote the very same before
                passes, accepted = drafted(answer)
                assert answer.speculation is not None
                assert answer.speculation.method == "weft"
                assert accepted >= TOKENS // 2 >= passes

            # the first schema has the vocabulary read, beside the engine's work
            await complete(model, asked(prompts[0], "flow/other", schema("other")))
            form = asked(prompts[1], "flow/form", schema("departure", "place_of_arrival"))
            held = await complete(model, form)
            assert list(json.loads(held.text)) == ["departure", "place_of_arrival"]
            assert drafted(held)[1] >= len("place_of_arrival")

            with locked():
                (entry,) = entries()
            sockets = drafting_folder(entry.id)
            assert await share_text(sockets, "flow/notes", [*range(100, 130)]) == 1
            assert await share_text(sockets, "flow/notes", [10**9]) == 1  # no token of any model
            last = await complete(model, requests[0])
            assert list(last.token_ids) == expected[0]

    asyncio.run(main())


@pytest.mark.slow
def test_a_proposer_that_breaks_loses_no_request(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second draft raises, and it is told nothing of the batch: greedy, then both kinds."""
    (tmp_path / "breaking.py").write_text(
        "from weft.serving.vllm.plugin.proposer import WeftProposer\n"
        "from weft.serving.vllm.drafting.requests import RequestHistory\n"
        "class Breaking(WeftProposer):\n"
        "    batch = property(lambda self: None, lambda self, value: None)\n"
        "calls = 0\n"
        "draft = RequestHistory.draft\n"
        "def breaks(self, *given):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    if calls % 2:\n"
        "        raise RuntimeError('a drafter that breaks')\n"
        "    return draft(self, *given)\n"
        "RequestHistory.draft = breaks\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    oracle, tokenizer = Oracle(folder), AutoTokenizer.from_pretrained(folder)
    requests = [asked(tokenizer(prompt).input_ids, "flow/notes") for prompt in PROMPTS]
    drawn = [
        replace(request, sampling=Sampling(max_tokens=TOKENS, temperature=0.8, top_p=0.9))
        for request in requests
    ]

    async def main() -> None:
        async with serving(folder, "custom_class:breaking.Breaking:4") as model:
            greedy = await at_once(model, requests)
            assert [list(each.token_ids) for each in greedy] == [
                oracle.greedy(prompt, TOKENS) for prompt in PROMPTS
            ]
            assert any(each.speculation is not None for each in greedy)
            mixed = await at_once(model, [*drawn, *requests])
            assert all(len(each.token_ids) == TOKENS for each in mixed)
            same = [each.token_ids for each in mixed[len(drawn) :]]
            assert same == [each.token_ids for each in greedy]

    asyncio.run(main())
