"""Who computes makes no difference, and a worker may be lost."""

import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from distributed import Client, LocalCluster

import asapmodel as am
from asapmodel.exploration import explorer
from asapmodel.exploration.space import Space
from asapmodel.exploration.workforce import workforce
from asapmodel.verbs.explore import explore
from tests.exploration.spaces import SMALL

SPACE = Space.parse(SMALL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A real cluster of two processes."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as own:
        yield own


def double(value: int) -> int:
    """A task."""
    return 2 * value


def slow_double(value: int) -> int:
    """A task of a tenth of a second."""
    time.sleep(0.1)
    return 2 * value


def test_here_tasks_run_in_order() -> None:
    with workforce(points=3) as run:
        assert list(run(double, [3, 1, 2])) == [(0, 6), (1, 2), (2, 4)]


@pytest.mark.slow
def test_answers_do_not_depend_on_the_workers(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = explore(SPACE, workers=1)
    monkeypatch.setattr(explorer, "PIECE", 3)
    together = explore(SPACE, scheduler=cluster.scheduler_address)
    pd.testing.assert_frame_equal(together.table, alone.table)
    assert together.to_dict() == alone.to_dict()


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(cluster: LocalCluster) -> None:
    """One of two processes is killed in the middle; its tasks go to the other, each answer comes once."""
    with workforce(points=10_000, scheduler=cluster.scheduler_address) as run:
        with Client(cluster, set_as_default=False) as client:
            victims = list(client.run(os.getpid).values())
        found: dict[int, int] = {}
        for place, answer in run(slow_double, list(range(40))):
            assert place not in found
            found[place] = answer
            if len(found) == 5:
                os.kill(victims[0], signal.SIGKILL)
    assert found == {k: 2 * k for k in range(40)}


@pytest.mark.slow
def test_exploration_survives_a_killed_worker(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(explorer, "PIECE", 1)
    whole = explore(SPACE, tmp_path / "whole.parquet", workers=1)
    killed: list[int] = []

    def kill_once(title: str, done: int, total: int) -> None:
        if done == 3 and not killed:
            with Client(cluster, set_as_default=False) as client:
                killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    found = explore(SPACE, tmp_path / "out.parquet", scheduler=cluster.scheduler_address, progress=kill_once)
    assert killed
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    pd.testing.assert_frame_equal(found.table, whole.table)


@pytest.mark.slow
def test_a_task_that_fails_says_so(cluster: LocalCluster) -> None:
    with workforce(points=1, scheduler=cluster.scheduler_address) as run, pytest.raises(ZeroDivisionError):
        list(run(one_over, [1, 0]))


def one_over(value: int) -> float:
    """A task that may fail."""
    return 1 / value


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "tcp://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_no_scheduler_answers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asapmodel.exploration.workforce._ANSWER_WITHIN", 1.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = address.format(port=port)
    with pytest.raises(am.InputError) as caught:
        explore(SPACE, scheduler=place)
    assert str(caught.value).startswith(f"--scheduler: no scheduler answers at {place}; give the address")
    # Nothing of the client is left that could be collected while another one is started, in the thread of that one.
    assert not [one for one in gc.get_objects() if isinstance(one, Client)]


@pytest.mark.slow
def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asapmodel.exploration.workforce._ANSWER_WITHIN", 1.0)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=logging.CRITICAL) as empty,
        pytest.raises(am.InputError, match="has no workers; start some"),
    ):
        explore(SPACE, scheduler=empty.scheduler_address)
