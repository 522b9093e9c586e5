"""A causal model supervises a diffusion model: of each draft it passes the part it finds likely.

FlashDLM's guided diffusion (arXiv 2505.21467). The supervisor never writes: all tokens are those
of the diffusion model.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.core.errors import CapabilityError, ModelNotFound
from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.network.network import Network
from weft.decoding.network.options import NetworkOptions
from weft.decoding.network.packing import Span
from weft.decoding.vocabularies import ModelPair, check_sizes, check_tokens


class AcceptanceRule(Protocol):
    """Decides whether one token passes."""

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        """`logits` [vocabulary] are the supervisor's at the position of `token`."""


@dataclass(frozen=True, slots=True)
class ExactAcceptance:
    """The token that the supervisor would write itself, the lowest id of equals."""

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        return int(logits.argmax()) == token


@dataclass(frozen=True, slots=True)
class RelativeAcceptance:
    """One of its `top` likeliest tokens, at least `share` times as likely as the likeliest
    (FlashDLM, arXiv 2505.21467).

    Raises: `ValueError` for values out of range.
    """

    top: int = 2
    share: float = 0.5

    def __post_init__(self) -> None:
        if self.top < 1 or not 0.0 <= self.share <= 1.0:
            raise ValueError(f"nothing passes {self}")

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        likelier = int((logits > logits[token]).sum())
        ratio = np.exp(np.float64(logits[token]) - np.float64(logits.max()))
        return likelier < self.top and bool(ratio >= self.share)


@dataclass(frozen=True, slots=True)
class DynamicAcceptance:
    """A threshold that falls where the supervisor itself is unsure: `share` times exp(-entropy),
    at most `most` (the form of typical acceptance, arXiv 2401.10774).

    Raises: `ValueError` for values out of range.
    """

    most: float = 0.3
    share: float = 0.6

    def __post_init__(self) -> None:
        if not 0.0 <= self.most <= 1.0 or not 0.0 <= self.share <= 1.0:
            raise ValueError(f"nothing passes {self}")

    def accepts(self, logits: NDArray[np.float32], token: int) -> bool:
        weights = np.exp(logits.astype(np.float64) - logits.max())
        probabilities = weights / weights.sum()
        positive = probabilities[probabilities > 0]
        entropy = -float((positive * np.log(positive)).sum())
        return bool(probabilities[token] >= min(self.most, self.share * np.exp(-entropy)))


class SharedNetwork:
    """A network that several threads may use: passes are made one after the other.

    It must be the only user of `network`.
    """

    def __init__(self, network: Network) -> None:
        self.vocabulary_size = network.vocabulary_size
        self.path = network.path
        self._network = network
        self._one_pass = threading.Lock()
        self._free: deque[int] = deque()  # returned by finalisers, which must not wait
        self._fresh = count()

    def take(self) -> int:
        """A cache slot that no other text uses."""
        try:
            return self._free.popleft()
        except IndexError:
            return next(self._fresh)

    def give(self, slot: int) -> None:
        """Return the slot of a text that has ended."""
        self._free.append(slot)

    def read(
        self, slot: int, first: int, tokens: Sequence[int], wanted: int
    ) -> NDArray[np.float32]:
        """Read `tokens` at positions from `first` on; the last logits [wanted, vocabulary]."""
        span = Span(slot, range(first, first + len(tokens)), tokens, wanted)
        with self._one_pass:
            return self._network.forward([span])[slot].logits


_PIECE: Final = 256
_LOADED: Final = 2
"""Supervisors that stay in memory."""
_PAIR: Final = ModelPair("supervisor", "diffusion model")


@dataclass(frozen=True, slots=True)
class CausalSupervisor:
    """A `VerifierPolicy` that passes the longest prefix of a proposal that `network` accepts.

    Texts are written from left to right with it, without gaps. Vocabularies may be padded to
    different sizes: a prefix ends before a token that the supervisor does not know.
    """

    network: SharedNetwork
    rule: AcceptanceRule = field(default_factory=RelativeAcceptance)
    beyond: bool = False

    def check(self, traits: ModelTraits) -> None:
        """Raises: `CapabilityError` for a diffusion model with another vocabulary."""
        ours, theirs = self.network.vocabulary_size, traits.vocabulary
        check_sizes(theirs, ours, _PAIR)
        check_tokens(traits.folder, self.network.path, min(ours, theirs), _PAIR)

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> CausalSupervisorSession:
        """Raises: `CapabilityError` for sizes that cannot be of one vocabulary."""
        check_sizes(traits.vocabulary, self.network.vocabulary_size, _PAIR)
        return CausalSupervisorSession(self.network, self.rule, traits)


class CausalSupervisorSession:
    """Implements `VerifierSession`; keys and values of passed text stay cached."""

    def __init__(self, network: SharedNetwork, rule: AcceptanceRule, traits: ModelTraits) -> None:
        self.passes = 0
        self._network = network
        self._slot = network.take()
        weakref.finalize(self, network.give, self._slot)
        self._rule = rule
        self._end_ids = traits.end_ids
        self._known = min(network.vocabulary_size, traits.vocabulary)
        self._read = np.empty(0, dtype=np.int64)

    def verified(
        self, action: Action, stats: Stats, drawn: SampledTokens, canvas: Canvas
    ) -> Action:
        """Keep the commits that pass, or else commit the own token for the first open slot."""
        if not stats.open.any():
            return action
        start = canvas.decided_to
        draft = self._draft(action, start, canvas)
        passed = self._passed(draft, start, canvas) if len(draft) else 0
        if not passed:
            rows = stats.rows(np.array([start]))
            return action.committing(SlotTokens.of([start], drawn.ids[rows]))
        slots = np.arange(start, start + passed)
        ours = canvas.undecided[slots]
        return action.committing(SlotTokens.of(slots[ours], draft[:passed][ours]))

    def _draft(self, action: Action, start: int, canvas: Canvas) -> NDArray[np.int64]:
        """Proposed or decided tokens from slot `start` on, up to a gap or an unknown token."""
        if start == 0 or (canvas.ids[:start] >= self._known).any():
            return np.empty(0, dtype=np.int64)  # without a prompt nothing predicts the first token
        proposed = dict(zip(action.commit.slots.tolist(), action.commit.ids.tolist(), strict=True))
        draft = []
        for slot in range(start, canvas.window.stop):
            if canvas.undecided[slot] and slot not in proposed:
                break
            token = proposed.get(slot, int(canvas.ids[slot]))
            if token >= self._known:
                break
            draft.append(token)
            if slot in proposed and draft[-1] in self._end_ids:
                break  # what follows the end of a text is no text
        return np.array(draft, dtype=np.int64)

    def _passed(self, draft: NDArray[np.int64], start: int, canvas: Canvas) -> int:
        """How many tokens of `draft` pass. Decided ones always do."""
        logits = self._predicted(draft, start, canvas)
        for at, token in enumerate(draft):
            undecided = canvas.undecided[start + at]
            if undecided and not self._rule.accepts(logits[at], int(token)):
                return at
        return len(draft)

    def _predicted(
        self, draft: NDArray[np.int64], start: int, canvas: Canvas
    ) -> NDArray[np.float32]:
        """The supervisor's logits [draft, vocabulary] for the slots from `start` on."""
        text = np.concatenate([canvas.ids[:start], draft[:-1]])
        common = min(len(self._read), len(text))
        same = self._read[:common] == text[:common]
        known = common if same.all() else int(same.argmin())
        first = min(known, start - 1)  # the row before the draft predicts its first token
        while start - first > _PIECE:
            self._pass(text[first : first + _PIECE], first, 0)
            first += _PIECE
        read = self._pass(text[first:], first, len(draft))
        self._read = text
        return read

    def _pass(self, tokens: NDArray[np.int64], first: int, wanted: int) -> NDArray[np.float32]:
        self.passes += 1
        read = self._network.read(self._slot, first, tokens.tolist(), wanted)
        return read[:, : self._known]


def supervisor_of(folder: str, device: str = "cpu") -> SharedNetwork:
    """The causal model of a folder on a device, loaded once for all callers.

    Raises: `ModelNotFound` for a folder without a model, `CapabilityError` for a broken one.
    """
    path = Path(folder).expanduser()
    if not (path / "config.json").is_file():
        raise ModelNotFound(
            f"there is no supervisor at {folder}",
            hint="give `supervisor` the folder of a causal model with the same tokenizer",
        )
    return _loaded(path.resolve(), device)


@lru_cache(maxsize=_LOADED)
def _loaded(path: Path, device: str) -> SharedNetwork:
    try:
        return SharedNetwork(Network.load(path, NetworkOptions(device=device)))
    except CapabilityError:
        raise
    except Exception as error:
        raise CapabilityError(f"the supervisor at {path} cannot be read: {error}") from error
