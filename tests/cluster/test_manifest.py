"""The RayCluster that `weft cluster manifest` prints: its own fields, and the pods in it.

`RAY_CLUSTER` is written by hand. It states, of the resource that KubeRay's operator 1.x defines
(`ray.io/v1`), the fields that weft writes: their names, types and which are required, as the Go
types of KubeRay's API have them. It is not KubeRay's own schema, and allows nothing that weft does
not write. Pods are checked against the schema of Kubernetes itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from weft.cluster.manifest import manifests
from weft.cluster.settings import Ray
from weft.core.errors import BuildError

GOLDEN = Path(__file__).parent.parent / "golden" / "cluster_manifest.yaml"
OLDEST, NEWEST = "1.27", "1.33"
INT32 = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
PARAMETERS = {"type": "object", "additionalProperties": {"type": "string"}}
POD = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["containers"],
            "properties": {"containers": {"type": "array", "minItems": 1}},
        }
    },
}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


RAY_CLUSTER = closed(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayCluster"},
    metadata=closed(
        ["name"],
        # The operator makes names of services and pods from it.
        name={"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 50},
        labels={"type": "object", "additionalProperties": {"type": "string"}},
    ),
    spec=closed(
        ["headGroupSpec"],
        rayVersion={"type": "string"},
        headGroupSpec=closed(
            ["rayStartParams", "template"], rayStartParams=PARAMETERS, template=POD
        ),
        workerGroupSpecs={
            "type": "array",
            "items": closed(
                ["groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"],
                groupName={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
                replicas=INT32,
                minReplicas=INT32,
                maxReplicas=INT32,
                rayStartParams=PARAMETERS,
                template=POD,
            ),
        },
    ),
)


def check(manifest: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(RAY_CLUSTER).validate(manifest)
    spec = manifest["spec"]
    groups = [group["groupName"] for group in spec["workerGroupSpecs"]]
    assert len(set(groups)) == len(groups)
    for group in spec["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def golden() -> dict[str, Any]:
    loaded = YAML(typ="safe", pure=True).load(GOLDEN.read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_the_golden_file_fits() -> None:
    check(golden())


def pods(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    return [
        {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": f"pod{number}"},
            "template": group["template"],
        }
        for number, group in enumerate(groups)
    ]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_its_pods_fit_the_schema_of_kubernetes(version: str) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="it is not installed (dev)")
    found = pods(golden())
    assert len(found) == 3
    for pod in found:
        kubernetes.validate(pod, version, strict=True)


def test_a_pod_that_does_not_fit_is_found() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="it is not installed (dev)")
    pod = pods(golden())[0]
    pod["template"]["spec"]["containers"][0]["enw"] = []
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(pod, NEWEST, strict=True)


NAMES = st.from_regex("[A-Za-z][a-z0-9_]{0,9}", fullmatch=True).filter(lambda n: n != "local")
LABELS = st.one_of(NAMES, st.text(min_size=1, max_size=5))


@given(
    st.dictionaries(
        NAMES,
        st.lists(LABELS, max_size=3, unique=True).map(lambda labels: {"labels": labels}),
        max_size=4,
    ),
    st.integers(1, 100),
    st.sampled_from(["", "shared"]),
    st.lists(st.from_regex("[A-Z_]{1,9}", fullmatch=True), max_size=2, unique=True),
)
def test_any_pools_make_a_manifest_that_fits(
    pools: dict[str, Any], nodes: int, claim: str, credentials: list[str]
) -> None:
    ray = Ray(pools=pools)
    try:
        (made,) = manifests(ray, "prod", "image", nodes=nodes, claim=claim, credentials=credentials)
    except BuildError:
        labels = [label for pool in pools.values() for label in pool["labels"]]
        groups = {name.lower().replace("_", "-") for name in pools}
        assert (
            len(groups) < len(pools)
            or any(group.endswith("-") for group in groups)
            or not all(label.isascii() and label.replace("_", "a").isalnum() for label in labels)
        )
    else:
        check(made)


@pytest.mark.parametrize(
    ("pools", "says"),
    [
        ({"gpu_": {}}, "cannot name a group"),
        ({"_gpu": {}}, "cannot name a group"),
        ({"a_b": {}, "A_b": {}}, "both be the group a-b"),
        ({"a": {"labels": ['gpu"; reboot; "']}}, "has a label"),
        ({"a": {"labels": ["$(reboot)"]}}, "has a label"),
    ],
)
def test_names_that_would_break_the_operator_are_refused(pools: dict[str, Any], says: str) -> None:
    with pytest.raises(BuildError, match=says):
        manifests(Ray(pools=pools), "prod", "image")


@pytest.mark.parametrize(
    ("where", "what"),
    [
        (("spec", "headGroupSpec", "rayStartParams", "num-cpus"), 0),
        (("spec", "workerGroupSpecs", 0, "maxReplicas"), "2"),
        (("spec", "workerGroupSpecs", 0, "groupName"), "big_gpu"),
        (("spec", "workerGroupSpecs", 0, "replica"), 2),
        (("spec", "rayVersion"), 2.6),
        (("apiVersion",), "ray.io/v1alpha1"),
        (("metadata", "name"), "Prod"),
    ],
)
def test_what_is_wrong_is_found(where: tuple[str | int, ...], what: object) -> None:
    broken: Any = golden()
    at = broken
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = what
    with pytest.raises(jsonschema.ValidationError):
        check(broken)
