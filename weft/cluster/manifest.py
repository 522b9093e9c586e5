"""The manifest of a cluster for the KubeRay operator, without any secret in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.cluster.nodes import HEALTH_CHECKS
from weft.cluster.settings import Ray
from weft.core.errors import BuildError

RAY_VERSION: Final = "2.60.0"
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z0-9._:-]+", re.ASCII)
_ENTRY: Final = "token"
_MOUNTED: Final = "/etc/weft/token"
_CONTENT: Final = "/var/lib/weft-content"


def manifests(
    ray: Ray,
    name: str,
    image: str,
    *,
    nodes: int = 1,
    claim: str = "",
    credentials: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """The manifests, as data: one group of workers for each pool, of `nodes` pods.

    `image` has Ray and weft. The token is the key `token` of the Secret `NAME-token`, which the
    user makes: no value of a secret is in a manifest. `claim`: a volume claim that all nodes share,
    for code and large values. `credentials`: environment variables, from the Secret
    `NAME-credentials`.

    Raises: `BuildError` for a bad name, of the cluster, of a pool or of a label.
    """
    if not _NAME.fullmatch(name):
        raise BuildError(f"{name!r} cannot name a cluster", hint="lower-case letters, digits and -")
    for variable in credentials:
        if not _VARIABLE.fullmatch(variable):
            raise BuildError(f"{variable!r} is no name of an environment variable")
    pod = _PodTemplate(name, image, claim, tuple(credentials))
    pools = ray.with_pools({}).pools
    groups: list[dict[str, Any]] = []
    for pool_name in pools:
        pool = ray.with_pools({}).pool(pool_name)
        group_name = _group_name(pool_name, [each["groupName"] for each in groups])
        _check_labels(pool_name, pool.labels)
        resources = "{" + ", ".join(f'\\"{label}\\": 1000000' for label in pool.labels) + "}"
        parameters = {"num-cpus": "1"}
        if pool.labels:
            parameters["resources"] = f'"{resources}"'
        groups.append(
            {
                "groupName": group_name,
                "replicas": nodes,
                "minReplicas": nodes,
                "maxReplicas": nodes,
                "rayStartParams": parameters,
                "template": pod.template("ray-worker"),
            }
        )
    head = {
        "rayStartParams": {"num-cpus": "0", "include-dashboard": "false"},
        "template": pod.template("ray-head"),
    }
    spec = {"rayVersion": RAY_VERSION, "headGroupSpec": head, "workerGroupSpecs": groups}
    return [
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "weft"}},
            "spec": spec,
        }
    ]


def _group_name(pool: str, others: Sequence[str]) -> str:
    """The group of workers for a pool. Raises: `BuildError`."""
    name = pool.lower().replace("_", "-")
    if not _NAME.fullmatch(name):
        hint = "begin it with a letter, and end it with one or a digit"
        raise BuildError(f"the pool {pool} cannot name a group of workers", hint=hint)
    if name in others:
        raise BuildError(f"the pool {pool} and another one would both be the group {name}")
    return name


def _check_labels(pool: str, labels: Sequence[str]) -> None:
    """The operator makes words of a shell's command from them. Raises: `BuildError`."""
    for label in labels:
        if not _LABEL.fullmatch(label):
            hint = "letters, digits and . _ : -"
            raise BuildError(f"the pool {pool} has a label {label!r:.60}", hint=hint)


class _PodTemplate:
    """The template of every pod of a cluster: not root, a read-only token, no privileges."""

    def __init__(self, name: str, image: str, claim: str, credentials: tuple[str, ...]) -> None:
        self._name = name
        self._image = image
        self._claim = claim
        self._credentials = credentials

    def template(self, container: str) -> dict[str, Any]:
        """The template with one container."""
        volumes: list[dict[str, Any]] = [
            {"name": "token", "secret": {"secretName": f"{self._name}-token", "defaultMode": 0o440}}
        ]
        mounts: list[dict[str, Any]] = [{"name": "token", "mountPath": _MOUNTED, "readOnly": True}]
        if self._claim:
            volumes.append({"name": "content", "persistentVolumeClaim": {"claimName": self._claim}})
            mounts.append({"name": "content", "mountPath": _CONTENT})
        return {
            "spec": {
                "automountServiceAccountToken": False,
                "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
                "containers": [
                    {
                        "name": container,
                        "image": self._image,
                        "env": self._env(),
                        "resources": {
                            "requests": {"cpu": "1", "memory": "2Gi"},
                            "limits": {"memory": "4Gi"},
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                        "volumeMounts": mounts,
                    }
                ],
                "volumes": volumes,
            }
        }

    def _env(self) -> list[Mapping[str, Any]]:
        plain = {
            **HEALTH_CHECKS,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": f"{_MOUNTED}/{_ENTRY}",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        made: list[Mapping[str, Any]] = [{"name": key, "value": plain[key]} for key in plain]
        for variable in self._credentials:
            reference = {"name": f"{self._name}-credentials", "key": variable}
            made.append({"name": variable, "valueFrom": {"secretKeyRef": reference}})
        return made
