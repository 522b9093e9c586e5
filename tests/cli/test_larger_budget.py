"""`weft resume --budget`: a run that has spent its tokens goes on with more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import go_into
from tests.cli.command_line import typed as weft
from tests.serving.openai.scripted import EndpointServer, Script, chunk, usage

FLOW = """
name: f
models: {{m: {{use: openai, model: m, base_url: "{url}"}}}}
run: {{budget: {{tokens: 200}}}}
nodes:
  a: {{model: m, prompt: one}}
  b: {{model: m, prompt: "two {{{{ a }}}}"}}
  c: {{model: m, prompt: "three {{{{ b }}}}"}}
outputs: {{r: "{{{{ c }}}}"}}
"""


def test_what_was_spent_counts_and_what_is_done_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoints: EndpointServer
) -> None:
    go_into(tmp_path, monkeypatch, "own.sqlite")
    endpoint = endpoints.add(
        Script([chunk({"content": "yes"}), chunk({}, "stop"), usage(100, 10)]),
        model={"owned_by": "somebody"},
    )
    Path("f.yaml").write_text(FLOW.format(url=endpoint.base_url))
    assert weft("run", "f.yaml").exit_code == 3
    assert weft("resume", "last").exit_code == 3
    assert weft("resume", "last", "--budget", "219").exit_code == 3
    ran = weft("resume", "last", "--budget", "1000tok", "--json")
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["outputs"] == {"r": "yes"}
    asked = [request["messages"][0]["content"] for request in endpoint.requests]
    assert (asked.count("one"), asked.count("three yes")) == (1, 1)
    assert weft("resume", "last", "--budget", "none").exit_code == 2
