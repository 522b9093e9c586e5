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

    Raises: `BuildError` for a bad name.
    """
    if not _NAME.fullmatch(name):
        raise BuildError(f"{name!r} cannot name a cluster", hint="lower-case letters, digits and -")
    for variable in credentials:
        if not _VARIABLE.fullmatch(variable):
            raise BuildError(f"{variable!r} is no name of an environment variable")
    pod = _PodTemplate(name, image, claim, tuple(credentials))
    pools = ray.with_pools({}).pools
    groups = []
    for pool_name in pools:
        pool = ray.with_pools({}).pool(pool_name)
        resources = "{" + ", ".join(f'\\"{label}\\": 1000000' for label in pool.labels) + "}"
        parameters = {"num-cpus": "1"}
        if pool.labels:
            parameters["resources"] = f'"{resources}"'
        groups.append(
            {
                "groupName": pool_name.lower().replace("_", "-"),
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
