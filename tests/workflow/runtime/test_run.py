"""Runs: results, failures, fallbacks, budgets, cancellation, questions, caches."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.workflow.case import HEAD, WHOLE, echo, loads, run, search
from weft.core.budget import Budget
from weft.core.errors import BuildError, InputError, ModelUnavailable, UnknownReference
from weft.core.events import BudgetReached, Event, NodeRetrying, NodeStarted, NodeStreamed
from weft.core.ports import ModelRequest
from weft.engine.graph.node import BudgetLimit
from weft.testing import FakeClock, FakeModel, FakeTools, MemoryStore, Reply
from weft.workflow.runtime.options import settings_of


def slow(request: ModelRequest) -> Reply:
    return Reply(f"<{request.messages[-1].content}>", first_token_s=1.0)


def test_nodes_run_in_parallel_as_soon_as_they_can() -> None:
    clock = FakeClock()
    flow = loads(
        """\
  hits: {tool: search, with: {query: x, limit: 50}}
  notes: {map: "{{ hits }}", as: hit, do: {model: small, prompt: "{{ hit.text }}"}}
  other: {model: small, prompt: other}
  a: {value: "{{ notes | length }}{{ other }}"}"""
    )
    result = run(flow, slow, clock=clock)
    assert result.outputs == {"a": "50<other>"}
    assert result.wall_s == pytest.approx(1.0)
    assert result.usage.requests == 51


def test_maps_stream_into_maps() -> None:
    """The second map starts on an item when the first is done with it, not with all of them."""
    flow = loads(
        """\
  first: {map: [1, 2, 3], as: n, do: {model: small, prompt: "{{ n }}"}}
  a: {map: "{{ first }}", as: m, do: {model: small, prompt: "{{ m }}"}}"""
    )
    delays = {"1": 1.0, "2": 2.0, "3": 3.0}

    def script(request: ModelRequest) -> Reply:
        text = request.messages[-1].content
        return Reply(f"<{text}>", first_token_s=delays.get(text, 3.0))

    result = run(flow, script)
    assert result.outputs["a"] == ["<<1>>", "<<2>>", "<<3>>"]
    assert result.wall_s == pytest.approx(6.0)
    blocks = loads(
        """\
  first: {map: [1, 2, 3], as: n, do: {model: small, prompt: "{{ n }}"}}
  a:
    map: "{{ first }}"
    as: m
    do:
      nodes: {b: {model: small, prompt: "{{ m }}"}, c: {value: "{{ b }}!"}}
      result: "{{ c }}" """
    )
    started: dict[str, float] = {}

    def listen(event: Event) -> None:
        if isinstance(event, NodeStarted):
            started[event.node] = event.at_s

    result = run(blocks, script, listeners=[listen])
    assert result.outputs["a"] == ["<<1>>!", "<<2>>!", "<<3>>!"]
    assert started["a[0]/b"] == pytest.approx(1.0)


def test_bodies_see_nodes_around_them_that_are_not_done_yet() -> None:
    flow = loads(
        """\
  style: {model: small, prompt: style}
  a: {map: [1, 2], as: n, do: {value: "{{ n }}{{ style }}"}}"""
    )
    assert run(flow, slow).outputs["a"] == ["1<style>", "2<style>"]


def test_a_failure_leaves_the_other_branches_alone() -> None:
    flow = loads(
        """\
  bad: {value: "{{ 1 / ('' | length) }}"}
  worse: {value: "{{ bad }}"}
  good: {value: fine}""",
        'good: "{{ good }}"\n  worse: "{{ worse }}"',
    )
    result = run(flow)
    assert result.status == "failed"
    assert not result.ok
    assert result.outputs == {"good": "fine"}
    assert result["good"] == "fine"
    assert "needs bad" in result.missing["worse"]
    assert "1 / (''" in " ".join(result.reasons)
    assert set(result.outcomes) == {"bad", "worse", "good"}
    with pytest.raises(KeyError, match="worse"):
        result["worse"]


def test_an_output_that_cannot_be_computed_fails_the_run() -> None:
    result = run(loads("  a: {value: {x: 1}}", 'a: "{{ [1, 2][a.x + 5] }}"'))
    assert result.status == "failed"
    assert "output a" in result.reasons[-1]
    assert "no item 6" in result.missing["a"]


def test_a_condition_leaves_a_node_and_what_needs_it_out() -> None:
    flow = loads(
        '  a: {value: 1, when: "{{ topic == \'hills\' }}"}\n  b: {value: "{{ a }}"}',
        'b: "{{ b }}"\n  t: "{{ topic }}"',
    )
    result = run(flow)
    assert result.status == "succeeded"
    assert result.outputs == {"t": "rivers"}
    assert result.missing == {"b": "b was left out"}
    assert run(flow, topic="hills").outputs == {"b": 1, "t": "hills"}


def test_a_branch_without_a_fitting_case_is_left_out() -> None:
    result = run(loads("  a: {branch: x, cases: {y: {value: 1}}}", "a: '{{ a }}'"))
    assert (result.status, result.missing) == ("succeeded", {"a": "a was left out"})


def test_retries_until_the_stream_holds() -> None:
    replies = [Reply("one two", break_after_tokens=1), Reply(error=ModelUnavailable("away")), "yes"]
    flow = loads("  a: {model: small, prompt: x, retry: {attempts: 3, delay: 1s, jitter: 0}}")
    retried: list[Event] = []
    clock = FakeClock()
    model = FakeModel(replies)
    result = clock.run(flow.run(models={"small": model}, clock=clock, listeners=[retried.append]))
    assert result.outputs == {"a": "yes"}
    assert [e.attempt for e in retried if isinstance(e, NodeRetrying)] == [1, 2]
    assert result.wall_s == pytest.approx(3.0)


def test_a_fallback_takes_over_when_the_model_breaks() -> None:
    flow = loads(
        """\
  a: {model: small, prompt: x, fallback: plain}
  plain: {value: "plain {{ topic }}"}"""
    )
    result = run(flow, lambda _: Reply("one two", break_after_tokens=1))
    assert result.outputs == {"a": "plain rivers"}
    assert result.outcomes["a"].via == "fallback"
    assert "plain" not in result.outcomes
    assert result.ok


def test_a_default_counts_after_the_fallback() -> None:
    flow = loads(
        """\
  a: {value: "{{ 1 / ('' | length) }}", fallback: b, default: ["{{ topic }}"]}
  b: {value: "{{ 2 / ('' | length) }}"}"""
    )
    assert run(flow).outputs == {"a": ["rivers"]}


def test_a_timeout_ends_a_node() -> None:
    result = run(loads("  a: {model: small, prompt: x, timeout: 500ms, default: late}"), slow)
    assert result.outputs == {"a": "late"}
    assert result.wall_s == pytest.approx(0.5)


def test_constrained_answers_are_typed_and_checked() -> None:
    flow = loads(
        """\
  a:
    model: small
    prompt: x
    schema: {type: object, properties: {n: {type: integer}}, required: [n]}
    retry: {attempts: 3, delay: 0}"""
    )
    assert run(flow, lambda _: '{"n": 3}').outputs == {"a": {"n": 3}}
    replies = iter(["no json", '{"n": "three"}', '{"n": 3}'])
    assert run(flow, lambda _: next(replies)).outputs == {"a": {"n": 3}}
    result = run(flow, lambda _: '{"n": ')
    assert result.status == "failed"
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert failure.error == "ModelOutputError"


def test_samples_that_fail_are_left_out() -> None:
    flow = loads(
        "  a: {model: small, prompt: x, samples: 4, seed: 0, retry: {attempts: 2, delay: 0}}"
    )

    def odd(request: ModelRequest) -> Reply:
        seed = request.sampling.seed or 0
        return Reply(str(seed)) if seed % 2 else Reply(error=ModelUnavailable("even"))

    result = run(flow, odd)
    # Seeds 0 and 2 fail, and succeed when repeated: another attempt has another seed.
    assert result.outputs["a"] == ["1000003", "1", "1000005", "3"]
    failing = loads("  a: {model: small, prompt: x, samples: 4, seed: 0, retry: 1}")
    result = run(failing, odd)
    assert (result.outputs["a"], result.status) == (["1", "3"], "partial")
    assert result.reasons[0].startswith("a is partial: Incomplete: 2 of 4 samples failed: ")
    assert result.outcomes["a[0]"].status == "failed"
    result = run(failing, lambda _: Reply(error=ModelUnavailable("away")))
    assert result.status == "failed"
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert failure.error == "JoinUnsatisfied"


def test_the_request_says_what_the_node_says() -> None:
    seen: list[ModelRequest] = []

    def script(request: ModelRequest) -> str:
        seen.append(request)
        return "ok"

    flow = loads(
        """\
  a:
    model: small
    system: "Know {{ topic }}."
    prompt: "{{ [1, {'x': none}] }}"
    max_tokens: 9
    temperature: 0
    top_p: 0.5
    top_k: 3
    min_p: 0.1
    stop: [END]
    seed: 4"""
    )
    run(flow, script)
    (request,) = seen
    assert [(m.role, m.content) for m in request.messages] == [
        ("system", "Know rivers."),
        ("user", '[1, {"x": null}]'),
    ]
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.temperature, sampling.seed) == (9, 0, 4)
    assert (sampling.top_p, sampling.top_k, sampling.stop) == (0.5, 3, ("END",))
    assert sampling.min_p == 0.1
    assert request.priority > 0


def test_tools_offered_to_a_model_come_back_typed() -> None:
    from weft.core.values import ToolCall

    flow = loads("  a: {model: small, prompt: x, tools: [search], tool_choice: required}")
    calls = (ToolCall("1", "search", '{"query": "y"}'),)

    def ask(reply: Reply) -> Any:
        clock = FakeClock()
        model = FakeModel([reply])
        result = clock.run(flow.run(models={"small": model}, clock=clock))
        assert [spec.name for spec in model.requests[0].tools] == ["search"]
        assert model.requests[0].tool_choice == "required"
        failure = result.outcomes["a"].failure
        return result.outputs.get("a") or (failure and failure.message)

    assert ask(Reply("hm", tool_calls=calls)) == {
        "text": "hm",
        "tool_calls": [{"name": "search", "arguments": {"query": "y"}}],
    }
    assert "calls 'rm'" in ask(Reply(tool_calls=(ToolCall("1", "rm", "{}"),)))
    assert "does not fit the schema: at query" in ask(
        Reply(tool_calls=(ToolCall("1", "search", '{"query": 3}'),))
    )
    assert "not JSON" in ask(Reply(tool_calls=(ToolCall("1", "search", "{"),)))


def test_a_budget_stops_the_run_and_says_so() -> None:
    flow = loads(
        """\
  a: {model: small, prompt: one two three}
  b: {model: small, prompt: "{{ a }}"}""",
        'a: "{{ a }}"\n  b: "{{ b }}"',
    )
    result = run(flow, budget=Budget(tokens=4))
    assert result.status == "partial"
    assert "tokens" in " ".join(result.reasons)
    assert "b" in result.missing


def test_a_budget_degrades() -> None:
    flow = loads(
        """\
  a: {model: small, prompt: one two three}
  b: {model: small, prompt: "{{ a }}", degrade: cheap}
  cheap: {value: "cheap {{ a }}"}""",
        'b: "{{ b }}"',
    )
    events: list[Event] = []
    result = run(flow, budget=BudgetLimit(Budget(tokens=5), "degrade"), listeners=[events.append])
    assert result.outputs == {"b": "cheap <one two three>"}
    assert any(isinstance(event, BudgetReached) and event.degrade for event in events)


def test_tokens_left_bound_the_answer() -> None:
    model = FakeModel(echo)
    flow = loads("  a: {model: small, prompt: one, budget: {tokens: 3}, max_tokens: 50}")
    run(flow, models={"small": model})
    assert model.requests[0].sampling.max_tokens == 3


@pytest.mark.parametrize("kind", ["map", "samples"])
def test_a_node_that_expands_beyond_the_limit_fails_and_says_so(kind: str) -> None:
    node = {
        "map": '{map: [1, 2, 3, 4], do: {value: "{{ index }}"}}',
        "samples": "{model: small, prompt: x, samples: 4, temperature: 1}",
    }[kind]
    flow = loads(f"  a: {node}", head=HEAD + "run: {max_nodes: 4}\n")
    result = run(flow)
    assert result.status == "failed"
    assert len(result.outcomes) == 1
    assert "expands into 4 nodes" in result.reasons[0]
    assert "max_nodes" in result.reasons[0]
    assert run(flow, max_nodes=5).ok


def test_limits_hold_for_a_model_and_a_tool() -> None:
    most = {"small": 0, "search": 0}
    running = 0

    async def counted(query: str, limit: int = 1) -> list[str]:
        nonlocal running
        running += 1
        most["search"] = max(most["search"], running)
        await asyncio.sleep(1)
        running -= 1
        return [query]

    model = FakeModel(slow)

    def listen(_: Event) -> None:
        most["small"] = max(most["small"], model.running)

    flow = loads(
        """\
  a: {map: [1, 2, 3, 4, 5], as: n, do: {model: small, prompt: "{{ n }}"}}
  b: {map: [1, 2, 3, 4, 5], as: n, do: {tool: search, with: {query: "{{ n }}"}}}""",
        head=HEAD + "run: {limits: {small: 2, search: 3}}\n",
    )
    run(flow, models={"small": model}, tools=FakeTools(search=counted), listeners=[listen])
    assert most == {"small": 2, "search": 3}


def test_streams_are_shown() -> None:
    events: list[Event] = []
    run(loads("  a: {model: small, prompt: one two}"), listeners=[events.append])
    pieces = [event.text for event in events if isinstance(event, NodeStreamed)]
    assert "".join(pieces) == "<one two>"


def test_a_question_is_answered() -> None:
    flow = loads('  ok: {ask: "Is {{ topic }} right?", schema: boolean}\n  a: {value: "{{ ok }}"}')

    async def main() -> None:
        started = flow.start({})
        waiting = asyncio.create_task(started.wait())
        while not started.questions:
            await asyncio.sleep(1)
        assert started.questions["ok"].question == "Is rivers right?"  # type: ignore[index]
        with pytest.raises(InputError, match="boolean"):
            started.answer("ok", "perhaps")
        with pytest.raises(UnknownReference):
            started.answer("a", True)
        started.answer("ok", True)
        result = await waiting
        assert result.outputs == {"a": True}

    FakeClock().run(main())


def test_a_run_is_cancelled_with_what_it_has() -> None:
    flow = loads("  a: {value: 1}\n  b: {model: small, prompt: x}", 'a: "{{ a }}"\n  b: "{{ b }}"')
    model = FakeModel(slow)

    async def main() -> None:
        started = flow.start({}, models={"small": model})
        asyncio.get_running_loop().call_later(0.5, started.cancel, "enough")
        result = await started.wait()
        assert (result.status, result.outputs) == ("cancelled", {"a": 1})
        assert model.cancelled == 1
        assert "enough" in " ".join(result.reasons)

    FakeClock().run(main())


def test_results_are_cached_by_content() -> None:
    calls: list[str] = []

    async def counted(query: str, limit: int = 3) -> list[str]:
        calls.append(query)
        return [query]

    flow = loads(
        """\
  style: {value: "{{ topic }}"}
  a: {tool: search, with: {query: "{{ topic }}"}, cache: {ttl: 1h}}
  b: {map: [1, 2], as: n, do: {tool: search, with: {query: "{{ n }}{{ style }}"}}, cache: true}""",
        'a: "{{ a }}"\n  b: "{{ b }}"',
    )
    store = MemoryStore()
    tools = FakeTools(search=counted)
    first = run(flow, tools=tools, store=store)
    again = run(flow, tools=tools, store=store)
    assert first.outputs == again.outputs
    assert sorted(calls) == ["1rivers", "2rivers", "rivers"]
    assert again.outcomes["a"].via == again.outcomes["b"].via == "cache"
    other = run(flow, tools=tools, store=store, topic="hills")
    assert other.outputs["b"] == [["1hills"], ["2hills"]]


def test_the_default_store_is_in_the_users_folder(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    flow = loads("  a: {tool: search, with: {query: x}, cache: true}")
    assert flow.run_sync().outputs == flow.run_sync().outputs
    assert (tmp_path / "results.sqlite").exists()
    assert loads("  a: {value: '{{ topic }}'}").run_sync().ok


def test_a_changed_tool_file_is_not_served_from_the_cache(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    seen = []
    for version in ("one", "two", "two"):
        folder = tmp_path / version
        folder.mkdir(exist_ok=True)
        (folder / "f.py").write_text(f'def answer() -> str:\n    return "{version}"\n')
        file = folder / "flow.yaml"
        text = "name: t\nnodes:\n  a: {call: ./f.py:answer, cache: true}\noutputs: {a: '{{ a }}'}\n"
        file.write_text(text)
        result = weft.load(file).run_sync()
        seen.append((result.outputs["a"], result.outcomes["a"].via))
    assert seen == [("one", ""), ("two", ""), ("two", "cache")]


def test_results_of_substitutes_are_not_kept_for_the_next_run(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    flow = loads("  a: {tool: search, with: {query: x}, cache: true}")
    for _ in range(2):
        assert flow.run_sync({}, tools=FakeTools(search=lambda query: [query])).ok
    assert not (tmp_path / "results.sqlite").exists()


def test_loop_limits() -> None:
    text = '  a: {loop: {value: "{{ n + 1 }}"}, as: n, start: 0, until: "{{ n > 9 }}", max: 3'
    assert run(loads(text + "}")).outputs == {"a": 3}
    result = run(loads(text + ", on_limit: fail}"))
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert failure.error == "LoopLimit"


def test_a_condition_of_a_loop_sees_nodes_around_it() -> None:
    flow = loads(
        """\
  goal: {value: 4}
  a: {loop: {value: "{{ n + 1 }}"}, as: n, start: 0, until: "{{ n >= goal }}", max: 9}"""
    )
    assert run(flow).outputs == {"a": 4}


def test_a_map_over_what_is_no_list() -> None:
    result = run(
        loads("  b: {value: {x: 3}}\n  a: {map: '{{ b[topic] | default(3) }}', do: {value: 1}}")
    )
    failure = result.outcomes["a"].failure
    assert failure is not None
    assert failure.error == "TypeMismatch"


def test_joins_keep_what_bodies_still_need() -> None:
    """A race that is decided does not cancel a node that the body of a map will use later."""
    flow = loads(
        """\
  fast: {value: 1}
  slow: {model: small, prompt: slow}
  race: {join: [fast, slow], mode: any}
  gate: {model: small, prompt: "{{ race }}"}
  a: {map: ["{{ gate }}"], as: n, do: {value: "{{ n }}{{ slow }}"}}"""
    )
    assert run(flow, slow).outputs == {"a": ["<1><slow>"]}
    inner = loads(
        """\
  a:
    map: [1]
    do:
      nodes:
        fast: {value: 1}
        slow: {model: small, prompt: slow}
        race: {join: [fast, slow], mode: any}
        late: {map: ["{{ race }}"], as: n, do: {value: "{{ n }}{{ slow }}"}}
      result: "{{ late }}" """
    )
    assert run(inner, slow).outputs == {"a": [["1<slow>"]]}


def test_a_race_leaves_alone_what_another_join_will_need() -> None:
    flow = loads(
        """\
  fast: {value: 1}
  slow: {model: small, prompt: slow}
  race: {join: [fast, slow], mode: any}
  gate: {model: small, prompt: gate}
  a: {join: [slow, fast], when: "{{ gate }}"}""",
        'a: "{{ a }}"\n  race: "{{ race }}"',
    )
    assert run(flow, slow).outputs == {"a": ["<slow>", 1], "race": 1}


def test_included_workflows_check_their_inputs_while_they_run() -> None:
    flow = loads(
        """\
  b: {value: {q: 3}}
  a: {workflow: ./part.yaml, with: {question: "{{ b[topic] | default(7) }}"}}"""
    )
    failure = run(flow).outcomes["a"].failure
    assert failure is not None
    assert failure.error == "InputError"


def test_inputs_are_checked_before_anything_runs() -> None:
    flow = loads("  a: {value: 1}", head="name: x\ninputs: {n: integer, m: integer}\n")
    with pytest.raises(InputError) as caught:
        flow.start({"n": "3", "l": 1})
    message = caught.value.message
    assert "`n`" in message
    assert "`m` is missing" in message
    assert "no input `l`" in message


def test_settings_are_checked() -> None:
    flow = loads("  a: {model: small, prompt: x}")
    with pytest.raises(UnknownReference, match="smal"):
        flow.start({}, models={"smal": FakeModel(echo)})
    with pytest.raises(BuildError, match="`durability` must be") as refused:
        flow.start({}, durability="forever")  # type: ignore[arg-type]
    assert refused.value.hint == "there are: none, exit, async, sync"
    with pytest.raises(BuildError, match="`journal` is 7") as refused:
        flow.start({}, journal=7)  # type: ignore[arg-type]
    assert "weft.open_journal(path)" in (refused.value.hint or "")


def test_a_journal_is_named_by_its_path(tmp_path: Path) -> None:
    flow = weft.Flow("seven")
    flow.output(a=flow.value(1))
    file = tmp_path / "runs.sqlite"
    first = flow.run_sync(journal=file, run="first")
    assert first["a"] == 1
    assert flow.run_sync(journal=str(file), run="second").ok
    with closing(weft.open_journal(file)) as journal:
        assert {info.run for info in journal.runs()} == {"first", "second"}


def test_settings_that_a_record_cannot_mean_count_as_not_said() -> None:
    said = {"durability": "forever", "seed": "7", "concurrency": 3}
    assert settings_of(said) == {"concurrency": 3}
    assert settings_of({"durability": "async"}) == {"durability": "async"}


def test_the_run_has_the_same_id_for_the_same_inputs() -> None:
    flow = loads("  a: {value: '{{ topic }}'}")
    ids = [
        flow.start(inputs, durability="none").id
        for inputs in ({}, {"topic": "rivers"}, {"topic": "hills"})
    ]
    assert ids[0] == ids[1] != ids[2]


def test_everything_runs() -> None:
    """The document with one of each, on fakes but with its own functions and files."""
    flow = weft.load(WHOLE / "everything.yaml")

    async def words(text: str) -> int:
        return len(text.split())

    def script(request: ModelRequest) -> str:
        return '{"title": "T", "score": 3}' if request.schema else "river text"

    async def main() -> None:
        models = {"small": FakeModel(script), "big": FakeModel(script)}
        tools = FakeTools(search=search, words=words)
        started = flow.start(
            {"topic": "rivers", "tags": ["a", "b"]}, models=models, tools=tools, store=MemoryStore()
        )
        waiting = asyncio.create_task(started.wait())
        while not started.questions and not waiting.done():
            await asyncio.sleep(0)
        started.answer("ok", True)
        result = await waiting
        assert result.outputs == {
            "final": {"title": "T", "score": 3},
            "notes": ["RIVER TEXT!"] * 3,
            "all": {
                "samples": ["river text"] * 3,
                "verdict": "RIVER TEXT!",
                "two": ["RIVER TEXT!", "late"],
            },
            "route": "good",
            "refine": "RIVER TEXT!!!",
            "ok": True,
            "size": 2,
            "second": "river text",
        }, result

    asyncio.run(main())
