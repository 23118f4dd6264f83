"""The table's rows on batches, polling and parallel tasks, each at its printed precision."""

import pytest

from asapmodel.solvers.bulk import batch_arrival_wait, bulk_service_queue
from asapmodel.solvers.fork_join import (
    fork_join_response,
    fork_join_two,
    harmonic,
    max_of_exponentials,
    split_merge_capacity,
    split_merge_response,
)
from asapmodel.solvers.polling import exhaustive_wait, gated_wait, limited_wait
from tests.solvers.table import Row, where

BATCHES = {  # mean and second moment, by the text of the table
    "X=3 fixed": (3.0, 9.0),
    "X~geom(mean 4)": (4.0, 28.0),
    "X in {1:.2,2:.3,3:.1,4:.2,5:.2}": (2.9, 0.2 + 1.2 + 0.9 + 3.2 + 5.0),
}
POLLING = {"exhaustive": exhaustive_wait, "gated": gated_wait, "1-limited": limited_wait}


@pytest.mark.parametrize("row", where("M^X/M/1", "M^X/D/1"))
def test_batch_arrivals(row: Row) -> None:
    mean, second = BATCHES[row.parameters.split(";", 2)[2]]
    row.check(batch_arrival_wait(row.number("rho") / mean, mean, second, 1.0, float(row.system == "M^X/M/1")))


@pytest.mark.parametrize("row", where("M/M[a,b]/1"))
def test_bulk_service(row: Row) -> None:
    queue = bulk_service_queue(row.number("lambda"), row.number("mu"), int(row.number("a")), int(row.number("b")))
    names = {"r": "ratio", "mean_queue_Lq": "mean_queue", "mean_wait_Wq": "mean_wait", "P(server idle)": "idle"}
    row.check(getattr(queue, names[row.quantity]))


@pytest.mark.parametrize("row", where("polling symmetric*"))
def test_polling(row: Row) -> None:
    rule, law = row.system.split()[2:]
    switch = float(row.given["switchover"].removeprefix("const "))
    row.check(POLLING[rule](int(row.number("Q")), row.number("rho"), 1.0, float(law == "M/M"), switch))


@pytest.mark.parametrize("row", where("fork-join*"))
def test_fork_join(row: Row) -> None:
    rho, servers = row.number("rho"), int(row.system.rsplit("x", 1)[1])
    row.check(fork_join_response(rho, 1.0, servers))
    if servers == 2:
        row.check(fork_join_two(rho, 1.0))


@pytest.mark.parametrize("row", where("split-merge*"))
def test_split_merge(row: Row) -> None:
    servers = int(row.system.split("K=")[1].split()[0])
    if row.quantity == "max_throughput":
        row.check(split_merge_capacity(row.number("mu"), servers))
    else:
        rate = float(row.parameters.rsplit("=", 1)[1]) / harmonic(servers)
        row.check(split_merge_response(rate, 1.0, servers))


@pytest.mark.parametrize("row", where("max of*"))
def test_maximum(row: Row) -> None:
    row.check(max_of_exponentials(1.0, int(row.number("K")))[0])
