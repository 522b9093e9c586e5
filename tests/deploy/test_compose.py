"""The compose file: it parses, says no secret, and its services are as tight as we say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.deploy import chart
from tests.deploy.commands import check_command, duration_s

FILE = chart.ROOT / "deploy" / "compose.yaml"
ENVIRONMENT = {
    "POSTGRES_PASSWORD": "hunter2",
    "WEFT_GATEWAY_KEYS": "k3y-of-a-client",
    "WEFT_WORKFLOWS": "/workflows",
}
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def interpolated(environment: dict[str, str]) -> str:
    """The file as compose reads it. Raises: `KeyError` for a variable that it asks for."""

    def value(match: re.Match[str]) -> str:
        name, kind, text = match.groups()
        return environment.get(name, text) if kind == "-" else environment[name]

    return _VARIABLE.sub(value, FILE.read_text("utf-8"))


def services() -> dict[str, Any]:
    return dict(YAML(typ="safe").load(interpolated(ENVIRONMENT))["services"])


OURS = ("gateway", "worker-1", "worker-2")


def test_it_is_a_compose_file() -> None:
    compose = pytest.importorskip("compose_spec", reason="compose-spec is not installed (dev)")
    document = YAML(typ="safe").load(interpolated(ENVIRONMENT))
    parsed = compose.PyCompose.from_json(json.dumps(document))
    parsed.validate()
    assert sorted(parsed.service_names()) == sorted([*OURS, "postgres"])
    document["services"]["gateway"]["cap_dropp"] = ["ALL"]
    with pytest.raises(ValueError, match="cap_dropp"):
        compose.PyCompose.from_json(json.dumps(document))


@pytest.mark.parametrize("name", sorted(ENVIRONMENT))
def test_what_it_needs_has_no_default(name: str) -> None:
    without = {key: value for key, value in ENVIRONMENT.items() if key != name}
    with pytest.raises(KeyError, match=name):
        interpolated(without)


@pytest.mark.parametrize("name", OURS)
def test_services_run_without_rights_on_a_read_only_root(name: str) -> None:
    service = services()[name]
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [each.partition(":")[0] for each in service["tmpfs"]] == ["/tmp", "/var/lib/weft"]
    assert all(volume.endswith(":ro") for volume in service["volumes"])
    assert service["depends_on"] == {"postgres": {"condition": "service_healthy"}}


@pytest.mark.parametrize("name", OURS)
def test_no_command_has_a_secret(name: str) -> None:
    for value in ("hunter2", "k3y-of-a-client"):
        assert value not in " ".join(services()[name]["command"])
        assert value not in services()[name]["environment"]["WEFT_JOURNAL"]


def test_only_the_gateway_has_a_port_and_only_on_this_machine() -> None:
    ports = {name: service.get("ports") for name, service in services().items()}
    assert {name for name, has in ports.items() if has} == {"gateway"}
    assert ports["gateway"] == ["127.0.0.1:8080:8080"]


@pytest.mark.parametrize("name", OURS)
def test_commands_are_those_of_weft(name: str, tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text("name: any")
    service = services()[name]
    option = "--drain" if name == "gateway" else "--grace"
    grace = re.fullmatch(r"(\d+)s", service["stop_grace_period"])
    assert grace is not None
    assert duration_s(service["command"], option) < int(grace[1])
    check_command(service["command"], tmp_path)


@pytest.mark.parametrize(
    "file",
    [
        FILE,
        chart.CHART / "Chart.yaml",
        chart.CHART / "values.yaml",
        *map(chart.golden, chart.VALUES),
    ],
    ids=lambda file: file.name,
)
def test_yaml_has_no_lint(file: Path) -> None:
    pytest.importorskip("yamllint", reason="yamllint is not installed (dev)")
    from yamllint import linter
    from yamllint.config import YamlLintConfig

    config = YamlLintConfig((Path(__file__).parent / "yamllint.yaml").read_text("utf-8"))
    problems = [str(each) for each in linter.run(file.read_text("utf-8"), config, str(file))]
    assert not problems
