"""The checks of `asapmodel validate`, short enough for a minute or two together."""

from asapmodel.reference.checks import Check, agreement, buffers, out_of_order
from asapmodel.reference.prediction import predicted_makespan
from asapmodel.reference.protocol_checks import every_interleaving, mistakes, processes, random_interleavings

__all__ = ["CHECKS"]

CHECKS = (
    Check("buffers: Table 2", buffers),
    Check("asynchronous = graph engine, plain pass", lambda: agreement("asap", range(15), 20)),
    Check("synchronous = graph engine, plain pass", lambda: agreement("sync", range(15), 20)),
    Check("layers out of order, one dispatch", lambda: out_of_order(range(10), 20)),
    Check("random interleavings", lambda: random_interleavings(range(40))),
    Check("all interleavings", every_interleaving),
    Check("mistakes in the protocol are caught", mistakes),
    Check("operating-system processes", lambda: processes(range(2, 5), 10)),
    Check("makespan predicted", predicted_makespan),
)
