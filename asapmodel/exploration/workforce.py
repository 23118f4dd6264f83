"""Who does the work: this process, workers of its own, or a Dask cluster elsewhere.

::

    with workforce(points=10_000, workers=None, scheduler=None) as run:
        for place, answer in run(function, tasks):      # in the order in which they end
            ...

Tasks are handed out by `distributed`, which gives those of a lost worker to another. No answer depends on who computed
it, nor on how many they are.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from asapmodel.engines.side_by_side import cores
from asapmodel.errors import InputError, NoAnswer

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["FEW_POINTS", "Run", "workforce"]

T = TypeVar("T")
R = TypeVar("R")
Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[tuple[int, Any]]]

FEW_POINTS = 400
"""Points up to which starting workers takes longer than the work."""

_ANSWER_WITHIN = 10.0  # seconds; a scheduler that does not is not there
_AHEAD = 3  # tasks a worker is given ahead
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@contextmanager
def workforce(points: int, workers: int | None = None, scheduler: str | None = None) -> Iterator[Run]:
    """Yield a function that runs tasks.

    Parameters
    ----------
    points : int
        How much there is to do, to see whether workers pay.
    workers : int, optional
        Processes; 1 is this one. Default: one a core, or this one for few points.
    scheduler : str, optional
        Address of a Dask scheduler whose workers are used instead.

    Raises
    ------
    InputError
        If no scheduler answers there, it has no workers, or they run another version of this package.
    """
    count = cores() if workers is None else workers
    if scheduler is not None:
        with _connected(scheduler) as client:
            yield _on(client)
    elif count == 1 or (workers is None and points <= FEW_POINTS):
        yield _here
    else:
        with _own(count) as client:
            yield _on(client)


def _here(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
    for place, task in enumerate(tasks):
        yield place, function(task)


def _on(client: Client) -> Run:
    """Run tasks on the workers of a client, a few ahead of what they can do, as thousands may be waiting."""
    from distributed import CancelledError, as_completed
    from distributed.scheduler import KilledWorker

    def run(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        waiting = iter(enumerate(tasks))
        places: dict[Any, int] = {}

        def submit() -> list[Any]:
            place, task = next(waiting, (-1, None))
            if place < 0:
                return []
            future = client.submit(function, task, pure=False)
            places[future] = place
            return [future]

        room = _AHEAD * max(sum(client.nthreads().values()), 1)
        ended = as_completed([one for _ in range(room) for one in submit()], loop=client.loop)
        try:
            for future in ended:
                answer = future.result()
                yield places.pop(future), answer
                ended.update(submit())
        except KilledWorker as error:
            raise NoAnswer(
                f"a task ended every worker it was given to ({error}); see their logs, memory first"
            ) from None
        except (CancelledError, OSError) as error:
            raise NoAnswer(f"the scheduler is gone ({error}); run again: what is done is kept beside -o") from None

    return run


@contextmanager
def _own(count: int) -> Iterator[Client]:
    """Worker processes on this machine, one thread each."""
    from distributed import Client, LocalCluster

    # What workers say when they end is not for the user; errors come as exceptions.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    cluster = LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
        memory_limit=0,
        env=dict.fromkeys(_THREADS, "1"),
        preload=["asapmodel.exploration.quiet_worker"],
    )
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """The workers of a scheduler."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    client = _client(address)
    if client is None:
        # What is left of the client is garbage in a cycle, and takes the lock under which another one is started: found
        # by the collector in the thread that is being started then, it would wait for itself.
        gc.collect()
        remedy = "give the address that `dask scheduler` prints, e.g. tcp://10.0.0.1:8786"
        raise InputError("--scheduler", "", f"no scheduler answers at {address}", remedy)
    with client:
        _check_workers(client, address)
        yield client


def _client(address: str) -> Client | None:
    from distributed import Client

    try:
        return Client(address, timeout=_ANSWER_WITHIN, set_as_default=False)
    except (OSError, ValueError, TimeoutError):
        return None


def _check_workers(client: Client, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_ANSWER_WITHIN)
    except TimeoutError:
        remedy = f"start some: dask worker {address} --nthreads 1"
        raise InputError("--scheduler", "", f"{address} has no workers", remedy) from None
    from asapmodel import __version__

    remedy = f"install asapmodel {__version__} where they run"
    try:
        versions = set(client.run(_version).values())
    except ModuleNotFoundError as error:
        raise InputError("--scheduler", "", f"workers at {address} cannot import {error.name}", remedy) from None
    if versions != {__version__}:
        found = ", ".join(sorted(versions))
        raise InputError("--scheduler", "", f"workers at {address} have asapmodel {found}", remedy)


def _version() -> str:
    from asapmodel import __version__

    return __version__
