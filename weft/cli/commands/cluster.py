"""`weft cluster`: a Ray cluster on this machine, on hosts over ssh, or as a manifest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.options import Debug, Json
from weft.cli.text import clean, json_text
from weft.core.errors import BuildError

cluster = typer.Typer(
    help="Ray clusters that run tools: `weft run --on ray`.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="[USER@]HOST[=LABEL,...]",
        help="Start on this host over ssh; the first is the head. Repeat it for more.",
    ),
]


@cluster.command()
def up(
    context: typer.Context,
    nodes: Annotated[
        int, typer.Option(metavar="N", help="Nodes on this machine, besides the head.", min=1)
    ] = 1,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=LABEL,...",
            help="Labels of a node on this machine, such as 1=gpu. Repeat it for more.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An environment variable that the nodes on this machine get, with its value here.",
        ),
    ] = None,
    host: Hosts = None,
    python: Annotated[
        str, typer.Option(metavar="PATH", help="With --host: the Python there, with Ray and weft.")
    ] = "python3",
    debug: Debug = False,
) -> None:
    """Start a Ray cluster: on this machine, or on hosts over ssh.

    It has a token of its own. Ray listens on all addresses of a machine, and its connections are
    not encrypted: use a private network.
    """
    with report_errors(debug=debug):
        from weft.cluster import nodes as local
        from weft.cluster import remote

        _check_together(context, hosts=bool(host))
        if host:
            hosts = [remote.RemoteHost.parse(text) for text in host]
            started = remote.RemoteStarter(hosts, python).start()
            typer.echo(f"{len(hosts)} hosts at {started.address}, token in {started.token_file}")
            return
        saved = local.saved_cluster()
        if saved is not None and saved.is_alive:
            _check_no_options(context, saved.address)
            typer.echo(f"it runs already, at {saved.address}")
            return
        if saved is not None:
            saved.stop()
        _check_set(env or [])
        made = local.start_cluster(_labels(nodes, label or []), env or [])
        local.save_cluster(made)
        typer.echo(f"{nodes + 1} nodes at {made.address}, token in {made.token_file}")


@cluster.command()
def status(as_json: Json = False, debug: Debug = False) -> None:
    """Show the nodes, and whether they run."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.cluster import nodes as local
        from weft.cluster import remote

        rows: list[dict[str, object]] = []
        saved, hosts = local.saved_cluster(), remote.saved_hosts()
        for node in () if saved is None else saved.nodes:
            row = {"node": node.name, "address": node.address, "pid": node.pid}
            rows.append({**row, "labels": list(node.labels), "alive": node.is_alive})
        for name, alive in ({} if hosts is None else remote.hosts_alive(hosts)).items():
            rows.append({"node": name, "address": name, "labels": [], "alive": alive})
        if as_json:
            found = saved or hosts
            address = None if found is None else found.address
            typer.echo(json_text({"address": address, "nodes": rows}))
            return
        if not rows:
            typer.echo("no cluster was started here")
        for row in rows:
            state = "runs" if row["alive"] else "is dead"
            labels = " ".join(map(str, row["labels"])) if isinstance(row["labels"], list) else ""
            typer.echo(f"{row['node']}  {row['address']}  {state}  {labels}".rstrip())


@cluster.command()
def down(debug: Debug = False) -> None:
    """End the clusters that `weft cluster up` started, by their process ids."""
    with report_errors(debug=debug):
        from weft.cluster import nodes as local
        from weft.cluster import remote

        saved, hosts = local.saved_cluster(), remote.saved_hosts()
        if saved is not None:
            saved.stop()
            local.forget_cluster()
            typer.echo(f"the cluster at {saved.address} is gone")
        problems = [] if hosts is None else remote.stop_hosts(hosts)
        if hosts is not None and not problems:
            typer.echo(f"the cluster at {hosts.address} is gone")
        for problem in problems:
            typer.echo(clean(problem), err=True)
        if problems:
            raise typer.Exit(1)
        if saved is None and hosts is None:
            typer.echo("no cluster was started here")


@cluster.command()
def manifest(
    image: Annotated[str, typer.Option(metavar="IMAGE", help="A container image with weft[ray].")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="WORKFLOW", help="Its pools become groups of workers.", exists=True),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the cluster.")] = "weft",
    nodes: Annotated[int, typer.Option(metavar="N", help="Pods of each pool.", min=1)] = 1,
    claim: Annotated[
        str,
        typer.Option(metavar="NAME", help="A volume claim that all pods share, for the content."),
    ] = "",
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A variable of the pods, from the Secret NAME-credentials."
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Print a RayCluster for the KubeRay operator, as YAML.

    Make the Secret NAME-token, with the key `token`, before you apply it.
    """
    with report_errors(debug=debug, file=file):
        from weft.cluster.manifest import manifests
        from weft.cluster.settings import Ray
        from weft.workflow.document.writer import yaml_text
        from weft.workflow.runtime.compiled import check_file

        pools = {} if file is None else check_file(file, Ray()).document.run.pools
        ray = Ray(pools={key: pool.model_dump() for key, pool in pools.items()})
        found = manifests(ray, name, image, nodes=nodes, claim=claim, credentials=env or [])
        typer.echo("---\n".join(yaml_text(each) for each in found), nl=False)


def _check_no_options(context: typer.Context, address: str) -> None:
    """Raises: `BuildError` for options that would change a cluster that runs."""
    given = _given(context, *_OF_THIS_MACHINE)
    if given:
        raise BuildError(
            f"the cluster at {address} runs already: {', '.join(given)} cannot change it",
            hint="end it first: `weft cluster down`",
        )


_OF_THIS_MACHINE = {
    "nodes": "name each host: --host HOST --host HOST",
    "label": "write --host HOST=LABEL,LABEL",
    "env": "set the variable on each host: values do not travel",
}
"""Options of a cluster on this machine, and what stands for them with `--host`."""


def _check_together(context: typer.Context, *, hosts: bool) -> None:
    """Raises: `BuildError` for options that do not go with `--host`, or only with it."""
    refused = _given(context, *_OF_THIS_MACHINE) if hosts else _given(context, "python")
    if hosts and refused:
        hint = "; ".join(_OF_THIS_MACHINE[name.removeprefix("--")] for name in refused)
        message = f"{', '.join(refused)} is of a cluster on this machine, and not of --host"
        raise BuildError(message, hint=hint)
    if refused:
        raise BuildError("--python is of hosts", hint="add --host HOST, or leave it out")


def _given(context: typer.Context, *names: str) -> list[str]:
    """Those options among `names` that were written."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [f"--{name}" for name, at in sources.items() if at and at.name != "DEFAULT"]


def _check_set(names: list[str]) -> None:
    """Raises: `BuildError` for variables that are not set here."""
    unset = [name for name in names if name not in os.environ]
    if unset:
        are = "are" if len(unset) > 1 else "is"
        raise BuildError(
            f"{', '.join(unset)} {are} not set here", hint="export it, then --env NAME"
        )


def _labels(nodes: int, given: list[str]) -> list[list[str]]:
    labels: list[list[str]] = [[] for _ in range(nodes)]
    for text in given:
        number, _, names = text.partition("=")
        if not number.isdecimal() or not 1 <= int(number) <= nodes or not names:
            raise typer.BadParameter(f"expected NODE=LABEL with a node of 1 to {nodes}: {text!r}")
        labels[int(number) - 1] += names.split(",")
    return labels
