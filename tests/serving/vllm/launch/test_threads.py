"""Cores are shared out: nobody waits for another's core while there are enough."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.launch.machine import HostResources, as_list, cores_of_ranks, this_machine

CORES = st.sets(st.integers(0, 200), min_size=1, max_size=64).map(lambda ids: tuple(sorted(ids)))


def machine(cores: tuple[int, ...]) -> HostResources:
    return HostResources(cores, len(cores), 2**34)


@given(CORES, st.integers(1, 8), st.integers(1, 8))
def test_ranks_share_no_core_while_there_are_enough(
    cores: tuple[int, ...], ranks: int, replicas: int
) -> None:
    shares = [
        cores_of_ranks(machine(cores), ranks, replicas, replica) for replica in range(replicas)
    ]
    given_out = list(chain.from_iterable(chain.from_iterable(shares)))
    assert all(len(share) == ranks and all(share) for share in shares)
    assert set(given_out) <= set(cores)
    if len(cores) // replicas >= ranks:
        assert len(given_out) == len(set(given_out))
    sizes = {len(rank) for share in shares for rank in share}
    assert len(sizes) == 1


def test_a_core_is_left_to_the_scheduler_where_there_is_one() -> None:
    assert cores_of_ranks(machine((0, 1)), 1, 1, 0) == ((0,),)
    assert cores_of_ranks(machine((0, 1, 2)), 1, 1, 0) == ((0, 1),)
    assert cores_of_ranks(machine((0, 1, 2, 3)), 2, 1, 0) == ((0,), (1,))
    assert cores_of_ranks(machine((0,)), 2, 2, 1) == ((0,), (0,))


@given(CORES)
def test_lists_of_cores_are_written_the_way_linux_does(cores: tuple[int, ...]) -> None:
    read: list[int] = []
    for part in as_list(cores).split(","):
        first, _, last = part.partition("-")
        read += range(int(first), int(last or first) + 1)
    assert tuple(read) == cores


def test_this_machine_has_cores_and_memory() -> None:
    here = this_machine()
    assert 1 <= here.quota_cores <= len(here.cores)
    assert here.memory_bytes > 2**28
