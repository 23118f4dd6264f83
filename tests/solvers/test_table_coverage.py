"""Which rows of the table are tested; and the dual-batch rows, which the event graph answers."""

import importlib
import pkgutil
from collections import Counter

import numpy as np
import pytest

import tests.solvers
from asapmodel.solvers.event_graph import advance, launch, new_log, new_network, new_state
from tests.solvers.table import Row, rows, where


def covered() -> set[int]:
    """Indices of all rows that some test in this folder is parametrised over."""
    found = set()
    for module in pkgutil.iter_modules(tests.solvers.__path__):
        if not module.name.startswith("test_"):
            continue
        for item in vars(importlib.import_module(f"tests.solvers.{module.name}")).values():
            for mark in getattr(item, "pytestmark", []):
                if mark.name == "parametrize":
                    values = [value for case in mark.args[1] for value in getattr(case, "values", ())]
                    found |= {value.index for value in values if isinstance(value, Row)}
    return found


@pytest.mark.parametrize("row", where("dual-batch interleaving*"))
def test_dual_batch_rows(row: Row) -> None:
    """Two chains on two resources, transfers on resources of their own: time per pair of layers in the steady state."""
    a1, a2, m1, m2, c = (row.number(name) for name in ("A1", "A2", "M1", "M2", "c"))
    ends = []
    for repeats in (200, 400):
        network = new_network(np.array([[0, 2, 1, 3], [0, 4, 1, 5]]), [(0, 3, repeats)])
        state, log = new_state(network, 1), new_log()
        state.duration[:] = [[a1, c, m1, c], [a2, c, m2, c]]
        launch(network, state, log, 0, 0.0)
        launch(network, state, log, 1, 0.0)
        while advance(network, state, log, np.inf) >= 0:
            pass
        ends.append(float(state.clock[0]))
    row.check((ends[1] - ends[0]) / 200)


def test_every_row_is_tested() -> None:
    seen = covered()
    missing = Counter(row.system for row in rows() if row.index not in seen)
    assert not missing
    assert len(seen) >= 1000
