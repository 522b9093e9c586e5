from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import threading
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.serving.local.playback import EXACT, asking
from weft.core.errors import CapabilityError, ModelNotFound, ModelRequestError, ModelUnavailable
from weft.core.ports import ModelRequest, Sampling, TextDelta, complete
from weft.core.values import Completion, Lossless, Message, ToolSpec
from weft.serving.local import LocalModel, LocalModels, LocalOptions


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "weft-local-model"]


async def answer(model: LocalModel, *prompt: int, **fields: object) -> Completion:
    return await complete(model, asking(*prompt, **fields))  # type: ignore[arg-type]


def test_importing_the_client_imports_no_torch() -> None:
    code = "import sys, weft.serving.local; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_unknown_weights_are_named_with_the_command_that_fetches_them(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="weft model pull smollm2-135m-instruct"):
        LocalModel("smollm2-135m-instruct", home=tmp_path)


def test_weights_that_cannot_be_read_end_every_request_that_waits(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', "utf-8")

    async def main() -> None:
        async with aclosing(LocalModel(tmp_path, EXACT)) as model:
            for _ in range(2):
                outcomes = [asyncio.ensure_future(answer(model, 5)) for _ in range(3)]
                await asyncio.wait(outcomes)
                errors = [outcome.exception() for outcome in outcomes]
                assert all(isinstance(error, ModelUnavailable) for error in errors)
                assert len({id(error) for error in errors}) == 3
                assert "cannot be loaded" in str(errors[0])

    asyncio.run(main())


def test_the_thread_lives_only_while_there_is_work(tiny_path: Path) -> None:
    async def main() -> None:
        model = LocalModel(tiny_path, EXACT)
        assert workers() == []
        await answer(model, 5, 6)
        async with asyncio.timeout(60):
            while workers():
                await asyncio.sleep(0.001)
        assert (await answer(model, 5, 6)).text

    asyncio.run(main())


def test_a_loop_that_ends_half_way_leaves_no_thread_and_no_row(tiny_path: Path) -> None:
    model = LocalModel(tiny_path, EXACT)

    async def main() -> None:
        stream = model.generate(asking(5, 6, max_tokens=900))
        await anext(stream)

    asyncio.run(main())
    for thread in workers():
        thread.join(60)
    assert workers() == []
    assert model.running == 0


def test_two_loops_share_one_model(tiny_path: Path) -> None:
    model = LocalModel(tiny_path, EXACT)
    results: dict[int, list[Completion]] = {}

    def other(number: int) -> None:
        async def main() -> list[Completion]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(model, number, n, max_tokens=30)) for n in (7, 8)]
            return [task.result() for task in tasks]

        results[number] = asyncio.run(main())

    threads = [threading.Thread(target=other, args=(number,)) for number in (5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def alone() -> None:
        for number, found in results.items():
            for n, completion in zip((7, 8), found, strict=True):
                expected = await answer(model, number, n, max_tokens=30)
                assert completion.token_ids == expected.token_ids
        await model.aclose()

    asyncio.run(alone())


def test_two_models_do_not_disturb_each_other(tiny_path: Path) -> None:
    async def main() -> None:
        async with (
            aclosing(LocalModel(tiny_path, EXACT)) as first,
            aclosing(LocalModel(tiny_path, replace(EXACT, max_batch=1))) as second,
        ):
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(answer(model, 5, n, max_tokens=20))
                    for n in range(4)
                    for model in (first, second)
                ]
            ids = [task.result().token_ids for task in tasks]
            assert ids[::2] == ids[1::2]
            assert second.forwards > first.forwards

    asyncio.run(main())


def test_equal_seeds_give_equal_answers_beside_different_neighbours(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            async with asyncio.TaskGroup() as group:
                seeded = [
                    group.create_task(answer(model, 5, 6, temperature=1.0, seed=n % 3, top_p=0.9))
                    for n in range(6)
                ]
            alone = await answer(model, 5, 6, temperature=1.0, seed=1, top_p=0.9)
            ids = [task.result().token_ids for task in seeded]
            assert ids[:3] == ids[3:]
            assert len(set(ids[:3])) == 3
            assert ids[1] == alone.token_ids
            free = [await answer(model, 5, 6, temperature=1.0) for _ in range(3)]
            assert len({completion.token_ids for completion in free}) > 1

    asyncio.run(main())


def test_min_p_leaves_only_likely_tokens(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            greedy = await answer(model, 5, 6)
            drawn = await answer(model, 5, 6, temperature=1.0, seed=1)
            certain = await answer(model, 5, 6, temperature=1.0, seed=1, min_p=1.0)
            every = await answer(model, 5, 6, temperature=1.0, seed=1, min_p=0.0)
            assert certain.token_ids == greedy.token_ids != drawn.token_ids
            assert every.token_ids == drawn.token_ids

    asyncio.run(main())


def test_the_generation_config_decides_what_a_request_leaves_open(
    tiny_path: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sampling"
    folder.mkdir()
    for path in tiny_path.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config = {"do_sample": True, "temperature": 0.0, "top_k": 40, "eos_token_id": [2]}
    (folder / "generation_config.json").write_text(json.dumps(config), "utf-8")

    async def texts(path: Path, seed: int | None = None) -> set[str]:
        async with aclosing(LocalModel(path, EXACT)) as model:
            sampling = Sampling(max_tokens=12, seed=seed)
            open_request = ModelRequest(prompt_token_ids=(5, 6), sampling=sampling)
            return {(await complete(model, open_request)).text for _ in range(4)}

    assert len(asyncio.run(texts(tiny_path))) > 1  # temperature 1, as everywhere
    assert len(asyncio.run(texts(tiny_path, seed=7))) == 1
    assert asyncio.run(texts(tiny_path, seed=7)) != asyncio.run(texts(tiny_path, seed=8))
    assert len(asyncio.run(texts(folder))) == 1


@pytest.mark.parametrize(
    ("config", "sampling"),
    [
        (None, Sampling(temperature=1.0)),
        ("no json", Sampling(temperature=1.0)),
        ({"do_sample": False}, Sampling(temperature=1.0)),
        ({"temperature": 0.6, "top_p": 0.95, "top_k": 20}, Sampling(None, 0.6, 0.95, 20)),
        ({"temperature": True, "top_k": 0}, Sampling(temperature=1.0)),
    ],
)
def test_a_model_tells_what_it_is_sampled_with(
    config: object, sampling: Sampling, tiny_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_bytes((tiny_path / "config.json").read_bytes())
    if config is not None:
        text = config if isinstance(config, str) else json.dumps(config)
        (tmp_path / "generation_config.json").write_text(text, "utf-8")

    async def main() -> Sampling | None:
        async with aclosing(LocalModel(tmp_path, EXACT)) as model:
            return (await model.capabilities()).sampling

    assert asyncio.run(main()) == sampling


def test_an_end_token_stops_and_is_counted_but_not_written(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            for seed in range(60):
                found = await answer(
                    model, 5, 6, temperature=3.0, seed=seed, max_tokens=200, extra={}
                )
                if found.finish_reason == "stop":
                    assert found.token_ids[-1] == 2
                    assert 2 not in found.token_ids[:-1]
                    assert found.usage.completion_tokens == len(found.token_ids)
                    assert "im_end" not in found.text
                    ignored = await answer(model, 5, 6, temperature=3.0, seed=seed, max_tokens=200)
                    assert ignored.token_ids[: len(found.token_ids)] == found.token_ids
                    assert len(ignored.token_ids) == 200
                    return
            raise AssertionError("no seed ends by itself")

    asyncio.run(main())


def test_a_stop_string_ends_the_answer_before_it(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            whole = (await answer(model, 5, 6, max_tokens=30)).text
            word = whole[9:12]
            deltas: list[str] = []
            cut = await complete(
                model,
                asking(5, 6, max_tokens=30, stop=(word,)),
                lambda delta: deltas.append(delta.text) if isinstance(delta, TextDelta) else None,
            )
            assert cut.text == "".join(deltas) == whole[: whole.index(word)]
            assert cut.finish_reason == "stop"

    asyncio.run(main())


def test_logprobs_are_the_plain_models_also_under_temperature(tiny_path: Path) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            by_first: dict[int, set[float]] = {}
            for seed in range(30):
                request = asking(5, 6, temperature=2.0, seed=seed, max_tokens=1)
                found = await complete(model, replace(request, logprobs=True))
                by_first.setdefault(found.token_ids[0], set()).add(found.logprobs[0])
            greedy = await complete(model, replace(asking(5, 6, max_tokens=1), logprobs=True))
            assert len(by_first) > 3
            assert all(len(values) == 1 for values in by_first.values())
            best = {greedy.token_ids[0]: greedy.logprobs[0]}
            drawn = {token: value for token, (value,) in by_first.items()}
            assert max(drawn.values()) <= greedy.logprobs[0]
            assert sum(math.exp(value) for value in {**drawn, **best}.values()) < 1.0
            plain = await complete(model, asking(5, 6))
            assert plain.logprobs == ()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("request_", "error", "named"),
    [
        (replace(asking(5), decode=Lossless("ngram")), CapabilityError, "ngram"),
        (replace(asking(5), tools=(ToolSpec("t", "", {}),)), CapabilityError, "tools"),
        (asking(5, 10_000), ModelRequestError, "vocabulary"),
        (asking(5, -1), ModelRequestError, "vocabulary"),
        (asking(5, extra={"guided": 1}), ModelRequestError, "guided"),
        (asking(5, max_tokens=0), ModelRequestError, "max_tokens"),
        (asking(5, temperature=float("nan")), ModelRequestError, "temperature"),
        (asking(5, temperature=-1.0), ModelRequestError, "temperature"),
        (asking(5, top_p=0.0), ModelRequestError, "top_p"),
        (asking(5, top_k=-2), ModelRequestError, "top_k"),
        (asking(5, min_p=1.5), ModelRequestError, "min_p"),
        (asking(5, min_p=float("nan")), ModelRequestError, "min_p"),
        (asking(5, stop=("",)), ModelRequestError, "stop"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused_by_name(
    tiny_path: Path, request_: ModelRequest, error: type[Exception], named: str
) -> None:
    async def main() -> None:
        async with aclosing(LocalModel(tiny_path, EXACT)) as model:
            with pytest.raises(error, match=named):
                await complete(model, request_)
            assert (await answer(model, 5)).token_ids

    asyncio.run(main())


def test_the_registry_loads_equal_models_once(tiny_path: Path) -> None:
    async def main() -> None:
        models = LocalModels()
        first = models.get(tiny_path, EXACT)
        assert models.get(str(tiny_path), EXACT) is first
        assert models.get(tiny_path, LocalOptions(dtype="bfloat16")) is not first
        await models.aclose()
        await models.aclose()
        with pytest.raises(ModelUnavailable, match="closed"):
            await answer(first, 5)
        again = models.get(tiny_path, EXACT)
        assert (await answer(again, 5)).token_ids
        await models.aclose()

    asyncio.run(main())


def test_the_context_is_the_smaller_of_what_is_asked_and_what_was_trained(tiny_path: Path) -> None:
    async def context(size: int | None) -> int | None:
        model = LocalModel(tiny_path, replace(EXACT, max_context_tokens=size))
        return (await model.capabilities()).max_context_tokens

    sizes = {size: asyncio.run(context(size)) for size in (None, 100, 10**6)}
    assert sizes == {None: 1024, 100: 100, 10**6: 1024}


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="max_batch"):
        LocalOptions(max_batch=0)


@pytest.mark.model
def test_a_real_model_answers_together_as_it_does_alone(smollm2: Path) -> None:
    questions = ["What is the capital of France?", "What is 2+2?", "Name the colour of grass."]

    def request(question: str) -> ModelRequest:
        sampling = Sampling(max_tokens=16, temperature=0.0)
        return ModelRequest(messages=(Message("user", question),), sampling=sampling)

    async def main() -> None:
        async with aclosing(LocalModel(smollm2, LocalOptions(dtype="float32"))) as model:
            alone = [await complete(model, request(question)) for question in questions]
            before = model.forwards
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(complete(model, request(q))) for q in questions]
            together = [task.result() for task in tasks]
            assert [c.token_ids for c in together] == [c.token_ids for c in alone]
            assert "Paris" in together[0].text
            passes = model.forwards - before
            assert passes < sum(c.usage.forwards for c in together)

    asyncio.run(main())
