"""Every speculative decoder: passes saved, time against plain decoding, and whether texts agree.

In bfloat16, as it is used, and in float32, where a lossless decoder must write what plain decoding
writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from evals.engine.rows import Lookup, Row
from evals.gpu.bench import Bench
from evals.gpu.local_engine import PROMPTS, StepwiseEngine, asking, autoregressive
from weft.core.errors import WeftError
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Lossless, Lossy
from weft.decoding.speculative.presets import NAMES, preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weft.decoding.network.options import Dtype

_NAMES: tuple[Literal["bfloat16", "float32"], ...] = ("bfloat16", "float32")


def rows(bench: Bench) -> Iterator[Row]:
    """In both precisions; a decoder that cannot run says why."""
    for dtype in _NAMES:
        yield from _in(bench, dtype)


def _in(bench: Bench, dtype: Dtype) -> Iterator[Row]:
    engine, _network = autoregressive(bench.path, bench.options(dtype=dtype))
    case = f"decoders, {dtype}"
    prompts = PROMPTS[: bench.of(len(PROMPTS), 1)]
    _answers(bench, engine, prompts, AUTOREGRESSIVE)
    plain, plain_s = _answers(bench, engine, prompts, AUTOREGRESSIVE)
    yield Row(case, "autoregressive", "tokens_per_s", _tokens(plain) / plain_s, "tokens/s")
    for name in NAMES:
        try:
            lossless = preset(name).lossless
            options = tuple(bench.draft_options(name).items())
            spec = (Lossless if lossless else Lossy)(name, options)
            if not bench.dry:
                _answers(bench, engine, prompts, spec)
            found, seconds = _answers(bench, engine, prompts, spec)
        except (WeftError, ImportError, RuntimeError) as error:
            yield Row(case, name, f"skipped: {error}", None, "")
            continue
        yield from _compared(case, name, (plain, plain_s), (found, seconds))


def _answers(
    bench: Bench, engine: StepwiseEngine, prompts: Sequence[str], decode: DecodeSpec
) -> tuple[list[Completion], float]:
    """One prompt at a time: together they would share passes."""
    completions: list[Completion] = []
    seconds = 0.0
    for prompt in prompts:
        (found,), took = engine.answers([asking(prompt, bench.of(96, 5), decode=decode)])
        completions.append(found)
        seconds += took
    return completions, seconds


def _compared(
    case: str,
    name: str,
    plain: tuple[list[Completion], float],
    drafted: tuple[list[Completion], float],
) -> Iterator[Row]:
    found, seconds = drafted
    told = [one.speculation for one in found if one.speculation is not None]
    same = [a.token_ids == b.token_ids for a, b in zip(plain[0], found, strict=True)]
    passes = sum(one.forwards for one in told)
    accepted, offered = sum(one.accepted for one in told), sum(one.drafted for one in told)
    yield Row(case, name, "identical_outputs", sum(same) / len(same), "share")
    yield Row(case, name, "wall_ratio", plain[1] / seconds, "x")
    yield Row(case, name, "tokens_per_target_forward", _tokens(found) / max(passes, 1), "tokens")
    yield Row(case, name, "accepted", accepted / offered if offered else 0.0, "share")
    for reason in {one.fallback for one in told if one.fallback}:
        yield Row(case, name, f"fell back to plain decoding: {reason}", None, "")


def _tokens(found: Sequence[Completion]) -> int:
    return sum(len(one.token_ids) for one in found)


def panel(axes: Axes, figures: Lookup) -> None:
    """How many times as fast as plain decoding, in bfloat16."""
    case = f"decoders, {_NAMES[0]}"
    ratios = {n: v for (c, n), v in figures.of("wall_ratio").items() if c == case}
    axes.barh(list(ratios), list(ratios.values()), color="#0b6e4f")
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel("times as fast as plain decoding")
