"""Refuses specifications that cannot work, before anything starts and with the reason."""

from __future__ import annotations

import re
from difflib import get_close_matches

from weft.core.errors import SpecError
from weft.serving.vllm.launch.engine import Engine
from weft.serving.vllm.launch.spec import ServeSpec, flag_of
from weft.serving.vllm.launch.weights import ModelShape

_OURS = {
    "--model": "model",
    "--served-model-name": "served_name",
    "--host": "host",
    "--port": "port",
    "--scheduling-policy": "",
    "--api-key": "api_key_env",
    "--uds": "",
    "--config": "",
}
_OTHER_PROTOCOLS = ("--ssl-", "--enable-ssl-", "--grpc")
"""TLS or gRPC: weft watches and calls its servers over plain HTTP."""


def refuse(spec: ServeSpec, engine: Engine, shape: ModelShape) -> None:
    """Check the spec against the engine and the model. Raises: `SpecError` with the reason."""
    _refuse_nodes(spec)
    _refuse_names(spec)
    _refuse_device(spec, engine)
    _refuse_cuts(spec, shape)
    _refuse_batches(spec, shape)
    _refuse_decoder(spec, shape)
    _refuse_extra(spec, engine)


def refuse_unknown_flags(argv: tuple[str, ...], engine: Engine) -> None:
    """Raises: `SpecError` where the installed version lacks a flag that weft would use."""
    for word in argv:
        flag = flag_of(word)
        if flag is not None and flag not in engine.flags:
            raise SpecError(
                f"{engine.distribution} {engine.version} has no {flag}",
                hint="weft is made for vLLM 0.32: install that, or leave the option out",
            )


def _refuse_nodes(spec: ServeSpec) -> None:
    nodes = spec.engine_nodes
    if spec.ranks % nodes:
        raise SpecError(
            f"{spec.ranks} ranks (tp * pp * dp) cannot be dealt out over --nnodes {nodes}",
            hint="every machine gets as many",
        )
    if spec.headless and spec.replicas > 1:
        raise SpecError(
            "replicas are servers, and with --headless there is none here",
            hint="start the first machine without --headless; leave replicas out",
        )


def _refuse_names(spec: ServeSpec) -> None:
    if not spec.name or spec.name.startswith("-"):
        raise SpecError(f"a model cannot be called {spec.name!r}", hint="set `served_name`")
    if spec.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", spec.api_key_env):
        raise SpecError(
            "`api_key_env` is no name of an environment variable",
            hint="name the variable that holds the key; never write the key itself",
        )


def _refuse_device(spec: ServeSpec, engine: Engine) -> None:
    cpu = engine.platform == "cpu"
    if (spec.device == "cuda" and engine.platform != "cuda") or (spec.device == "cpu" and not cpu):
        raise SpecError(
            f"device {spec.device!r} was asked for, and the installed {engine.distribution} "
            f"serves on {engine.platform}",
            hint="`weft doctor` says what is installed",
        )
    if spec.nodes > 1 and cpu:
        raise SpecError(
            "several nodes need vLLM's Ray executor, and vLLM refuses Ray on a CPU",
            hint="use replicas, or `-- --nnodes N --node-rank R --master-addr HOST` on each "
            "machine; --dry-run prints what to type on machines with GPUs",
        )
    if spec.nodes > spec.ranks:
        raise SpecError(
            f"{spec.nodes} nodes have only {spec.ranks} ranks to run",
            hint="tp * pp * dp must be at least the number of nodes",
        )


def _refuse_cuts(spec: ServeSpec, shape: ModelShape) -> None:
    if shape.heads and shape.heads % spec.tp:
        raise SpecError(
            f"tp {spec.tp} does not divide the {shape.heads} attention heads of {spec.name}",
            hint=f"tp can be {_divisors(shape)}; replicas cut nothing",
        )
    kv = shape.kv_heads
    if kv and kv % spec.tp and spec.tp % kv:
        raise SpecError(
            f"tp {spec.tp} and the {kv} key-value heads of {spec.name} do not divide one another",
            hint=f"tp can be {_divisors(shape)}; replicas cut nothing",
        )
    if shape.layers and spec.pp > shape.layers:
        raise SpecError(f"pp {spec.pp} is more than the {shape.layers} layers of {spec.name}")


def _divisors(shape: ModelShape) -> str:
    heads = shape.heads or 1
    kv = shape.kv_heads or heads
    fine = [n for n in range(1, heads + 1) if heads % n == 0 and (kv % n == 0 or n % kv == 0)]
    return " or ".join(str(n) for n in fine)


def _refuse_batches(spec: ServeSpec, shape: ModelShape) -> None:
    context = spec.max_context_tokens
    if context and shape.context_tokens and context > shape.context_tokens:
        raise SpecError(
            f"{spec.name} was made for {shape.context_tokens:,} tokens, not {context:,}",
            hint=f"max_context_tokens can be {shape.context_tokens} at most",
        )
    batched = spec.max_batched_tokens
    if batched and spec.max_seqs and batched < spec.max_seqs:
        raise SpecError(
            f"{spec.max_seqs} requests at once need a token each, and a pass takes {batched}",
            hint="raise max_batched_tokens or lower max_seqs",
        )
    longest = context or shape.context_tokens
    if spec.chunked_prefill is False and batched and longest and batched < longest:
        raise SpecError(
            f"without chunked prefill a prompt of up to {longest:,} tokens must fit one pass, "
            f"and a pass takes {batched:,}",
            hint="raise max_batched_tokens, lower max_context_tokens or allow chunked prefill",
        )


def _refuse_decoder(spec: ServeSpec, shape: ModelShape) -> None:
    if spec.decode.method == "mtp" and shape.layers and not shape.drafts:
        raise SpecError(
            f"{spec.name} has no layers for multi-token prediction, which `mtp` drafts with",
            hint="use ngram, suffix, or draft_model:MODEL",
        )


def _refuse_extra(spec: ServeSpec, engine: Engine) -> None:
    for word in spec.extra:
        flag = flag_of(word)
        if flag is None:
            continue
        if flag in _OURS:
            instead = f"set `{_OURS[flag]}` instead" if _OURS[flag] else "leave it out"
            raise SpecError(f"the extra argument {flag} is weft's to set", hint=instead)
        if flag.startswith(_OTHER_PROTOCOLS):
            raise SpecError(
                f"with {flag} the server would not speak plain HTTP, by which weft watches it",
                hint="leave it on 127.0.0.1, and put a proxy that speaks TLS in front of it",
            )
        if flag not in engine.flags:
            close = get_close_matches(flag, engine.flags, n=3)
            raise SpecError(
                f"{engine.distribution} {engine.version} has no argument {flag}",
                hint=f"did you mean {' or '.join(close)}?" if close else None,
            )
