"""The Helm chart: what it renders fits the schema of Kubernetes, and is as tight as we say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from tests.deploy import chart
from tests.deploy.commands import check_command, duration_s

OLDEST, NEWEST = "1.27", "1.33"
EVERY = pytest.mark.parametrize("values", chart.VALUES, ids=lambda values: values.stem)


def pods(values: Path) -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in deployments(values)]


def deployments(values: Path) -> list[dict[str, Any]]:
    found = [each for each in chart.rendered(values) if each["kind"] == "Deployment"]
    assert len(found) == 2
    return found


def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["containers"]
    return dict(only)


@EVERY
def test_the_golden_files_are_of_this_chart(values: Path) -> None:
    assert chart.recorded_digest(values) == chart.digest(values), (
        "the chart changed: where helm is installed, run python -m tests.deploy.chart"
    )


@EVERY
def test_helm_renders_the_golden_files(values: Path) -> None:
    text = chart.helm(values)
    if text is None:
        pytest.skip("helm is not installed here")
    assert chart.documents(text) == chart.rendered(values)


@EVERY
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_manifests_fit_the_schema_of_kubernetes(values: Path, version: str) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="it is not installed (dev)")
    for manifest in chart.rendered(values):
        kubernetes.validate(manifest, version, strict=True)


@pytest.mark.parametrize("broken", [{"replicas": "two"}, {"replica": 2}])
def test_the_schema_refuses_what_is_wrong(broken: dict[str, Any]) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="it is not installed (dev)")
    manifest = deployments(chart.VALUES[0])[0]
    manifest["spec"].update(broken)
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(manifest, NEWEST, strict=True)


@EVERY
def test_pods_have_no_rights(values: Path) -> None:
    for pod in pods(values):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container(pod)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounts = {each["mountPath"]: each for each in container(pod)["volumeMounts"]}
        writable = {path for path, mount in mounts.items() if not mount.get("readOnly")}
        assert writable == {"/tmp", "/var/lib/weft"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert not [each for each in pod["volumes"] if "hostPath" in each]


@EVERY
def test_pods_have_requests_and_a_bound_of_memory(values: Path) -> None:
    for pod in pods(values):
        resources = container(pod)["resources"]
        assert resources["requests"].keys() == {"cpu", "memory"}
        assert "memory" in resources["limits"]


@EVERY
def test_secrets_are_references(values: Path) -> None:
    kinds = {each["kind"] for each in chart.rendered(values)}
    assert "Secret" not in kinds
    for pod in pods(values):
        variables = {each["name"]: each for each in container(pod)["env"]}
        for name in variables.keys() & {"PGPASSWORD", "WEFT_GATEWAY_KEYS"}:
            assert variables[name].keys() == {"name", "valueFrom"}
            assert variables[name]["valueFrom"].keys() == {"secretKeyRef"}
        assert "PGPASSWORD" in variables
        for each in container(pod).get("envFrom", ()):
            assert each.keys() == {"secretRef"}


@EVERY
def test_a_drain_has_the_time_that_its_command_takes(values: Path) -> None:
    worker, gateway = sorted(pods(values), key=lambda pod: container(pod)["name"], reverse=True)
    args = container(worker)["args"]
    assert duration_s(args, "--grace") < worker["terminationGracePeriodSeconds"]
    (hook,) = container(gateway)["lifecycle"].items()
    assert hook[0] == "preStop"
    name, seconds = hook[1]["exec"]["command"]
    assert name == "sleep"
    drain_s = duration_s(container(gateway)["args"], "--drain")
    assert int(seconds) + drain_s < gateway["terminationGracePeriodSeconds"]


@EVERY
def test_commands_are_those_of_weft(values: Path, tmp_path: Path) -> None:
    for name in ("starter.yaml", "other.yaml"):
        (tmp_path / name).write_text("name: any")
    worker, gateway = sorted(map(container, pods(values)), key=lambda one: one["name"] == "gateway")
    check_command(gateway["args"], tmp_path)
    program, *probe = worker["startupProbe"]["exec"]["command"]
    assert program == "weft"
    check_command(probe, tmp_path)
    check_command(worker["args"], tmp_path)


@EVERY
def test_selectors_find_the_pods_of_their_component(values: Path) -> None:
    manifests = chart.rendered(values)
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in deployments(values)
    }
    for each in manifests:
        selector = each.get("spec", {}).get("selector")
        if selector is not None:
            wanted = selector.get("matchLabels", selector)
            found = {name for name, has in labels.items() if wanted.items() <= has.items()}
            assert found == {each["metadata"]["name"]}


def schema() -> dict[str, Any]:
    return dict(json.loads((chart.CHART / "values.schema.json").read_text("utf-8")))


def test_all_values_are_in_the_schema_and_have_defaults() -> None:
    values = YAML(typ="safe").load(chart.CHART / "values.yaml")
    jsonschema.validate(values, schema())

    def check(values: dict[str, Any], form: dict[str, Any], path: str) -> None:
        known = form.get("properties")
        if known is None:
            return
        assert values.keys() == known.keys() - {"global"}, path
        for name, value in values.items():
            if isinstance(value, dict):
                check(value, known[name], f"{path}.{name}")

    check(values, schema(), "values")


@pytest.mark.parametrize(
    "values",
    [
        {"journal": {"address": "postgresql://weft:hunter2@db/weft"}},
        {"journal": {"address": "postgresql://db/weft?password=hunter2"}},
        {"content": {"address": "s3://key:secret@bucket/prefix"}},
        {"content": {"environment": {"AWS_SECRET_ACCESS_KEY": "hunter2"}}},
        {"content": {"environment": {"AWS_SESSION_TOKEN": "hunter2"}}},
        {"wokrer": {}},
        {"worker": {"replicas": -1}},
        {"gateway": {"files": ["../etc/passwd"]}},
        {"image": {"digest": "latest"}},
    ],
)
def test_values_with_a_secret_or_a_slip_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, schema())
