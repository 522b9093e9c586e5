"""`weft serve`: starts a model's servers, shows their start, and runs them until stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.options import Debug, byte_count, pairs, placement, seconds

if TYPE_CHECKING:
    from weft.cluster.settings import Ray

HELP = """Serve a model with vLLM behind an OpenAI-compatible API.

It listens on this machine only unless --host says otherwise. It serves until Ctrl-C, SIGTERM or
`weft stop`: requests in flight may finish (--drain), a second signal ends it at once. Crashed
replicas are started again. Whatever ends it, no process and no port stays behind.
With --on ray the replicas are on the nodes of a cluster, each at its node's address.

\b
Exit status:
  0    served, and was told to stop
  1    could not start, or crashed again and again
  2    wrong usage, or options that cannot work together
  130  interrupted while it started
"""


def serve(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A name of `weft model list`, or a folder.")
    ],
    extra: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARGUMENT", help="Further arguments of the engine."),
    ] = None,
    tp: Annotated[int, typer.Option(metavar="N", help="Ranks of tensor parallelism.")] = 1,
    pp: Annotated[int, typer.Option(metavar="N", help="Ranks of pipeline parallelism.")] = 1,
    dp: Annotated[int, typer.Option(metavar="N", help="Ranks of data parallelism.")] = 1,
    replicas: Annotated[int, typer.Option(metavar="N", help="Servers beside each other.")] = 1,
    nodes: Annotated[int, typer.Option(metavar="N", help="Machines of a server (Ray).")] = 1,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ray[:HOST:PORT]",
            help="Replicas on the nodes of a Ray cluster: this one, or that of `weft cluster up`.",
        ),
    ] = None,
    engine: Annotated[Literal["vllm"], typer.Option(help="What serves.")] = "vllm",  # noqa: ARG001 - one choice so far
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="Where it computes.")
    ] = "auto",
    decode: Annotated[
        str,
        typer.Option(
            metavar="SPEC", help="Such as weft:8 or ngram:4; of a diffusion model threshold:0.9."
        ),
    ] = "autoregressive",
    host: Annotated[
        str, typer.Option(help="The address to listen on; others need --api-key-env.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port, further replicas count up; 0: any that is free.")
    ] = 0,
    name: Annotated[str | None, typer.Option(help="What clients call the model.")] = None,
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"], typer.Option(help="Number format.")
    ] = "auto",
    quantization: Annotated[str | None, typer.Option(help="As vLLM names it.")] = None,
    max_context: Annotated[
        int | None, typer.Option(metavar="N", help="Longest prompt and answer, in tokens.")
    ] = None,
    max_seqs: Annotated[
        int | None, typer.Option(metavar="N", help="Most requests decoded at once.")
    ] = None,
    max_batched_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens in one pass.")
    ] = None,
    chunked_prefill: Annotated[
        bool | None,
        typer.Option(
            "--chunked-prefill/--no-chunked-prefill",
            help="Long prompts in pieces beside decodes (SARATHI); vLLM's own choice by default.",
        ),
    ] = None,
    kv_cache: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory for the KV cache, such as 1GiB.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Variable with the key clients must show.")
    ] = None,
    lora: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FOLDER", help="An adapter; repeat it.")
    ] = None,
    tool_parser: Annotated[str | None, typer.Option(help="How tool calls are found.")] = None,
    reasoning_parser: Annotated[str | None, typer.Option(help="How reasoning is found.")] = None,
    eager: Annotated[
        bool | None, typer.Option("--eager/--no-eager", help="Do not compile graphs.")
    ] = None,
    drain: Annotated[
        str, typer.Option(metavar="TIME", help="What requests in flight get at the end.")
    ] = "30s",
    start_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a start may take.")
    ] = "30m",
    detach: Annotated[
        bool, typer.Option("--detach", help="Return once it is ready; `weft stop` ends it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands, start nothing.")
    ] = False,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    adapters = pairs(lora or (), "--lora")
    times = seconds(drain), seconds(start_timeout)
    ray = _cluster(on, foreground=not (detach or dry_run))
    with report_errors(debug=debug):
        from weft.cli.console import stderr
        from weft.cli.serving import ServingView, print_commands, print_ready
        from weft.serving.vllm import serve as serving
        from weft.serving.vllm.launch.decoders import parse_decode
        from weft.serving.vllm.launch.spec import ServeSpec
        from weft.serving.vllm.supervise.detached import SupervisionTerms

        spec = ServeSpec(
            model,
            served_name=name,
            tp=tp,
            pp=pp,
            dp=dp,
            replicas=replicas,
            nodes=nodes,
            decode=parse_decode(decode),
            device=device,
            dtype=dtype,
            quantization=quantization,
            max_context_tokens=max_context,
            max_seqs=max_seqs,
            max_batched_tokens=max_batched_tokens,
            chunked_prefill=chunked_prefill,
            kv_cache_bytes=None if kv_cache is None else byte_count(kv_cache, "--kv-cache"),
            eager=eager,
            adapters=adapters,
            tool_parser=tool_parser,
            reasoning_parser=reasoning_parser,
            api_key_env=api_key_env,
            host=host,
            port=port,
            extra=_flags(extra or []),
        )
        terms = SupervisionTerms(drain_s=times[0], start_timeout_s=times[1])
        if dry_run and nodes > 1:
            typer.echo(serving.across_machines(spec), nl=False)
            return
        if dry_run:
            print_commands(serving.launches(spec, terms), spec)
            return
        with ServingView(stderr()) as view:
            if detach:
                print_ready(serving.serve_detached(spec, terms, view.show), detached=True)
                return
            if ray is not None:
                from weft.cluster.replicas import serve_on

                was_ready = serve_on(ray, spec, terms, view.show, view.ready)
            else:
                was_ready = serving.serve(spec, terms, view.show, view.ready)
    raise typer.Exit(ExitCode.SUCCEEDED if was_ready else ExitCode.INTERRUPTED)


def _cluster(on: str | None, *, foreground: bool) -> Ray | None:
    """The cluster that serves; None: this machine. Raises: `typer.BadParameter`."""
    ray = placement(on)
    if ray is None or ray == "local":
        return None
    if not foreground:
        hint = "goes without --detach and --dry-run: the cluster's replicas end with this process"
        raise typer.BadParameter(hint, param_hint="--on")
    return ray


def _flags(words: list[str]) -> tuple[str, ...]:
    """The engine's own arguments; a stray word is more likely a mistake."""
    if words and not words[0].startswith("-"):
        raise typer.BadParameter(f"one model at a time; what is {words[0]!r}?")
    return tuple(words)
