"""The checks of `asapmodel validate`, short enough for a minute or two together."""

from asapmodel.reference.checks import Check, agreement, buffers, out_of_order

__all__ = ["CHECKS"]

CHECKS = (
    Check("shared buffers: bytes of Table 2", buffers),
    Check("asynchronous: graph engine, monolithic pass", lambda: agreement("asap", range(15), 20)),
    Check("synchronous, chunked: the same", lambda: agreement("sync", range(15), 20)),
    Check("layers out of order, one dispatch", lambda: out_of_order(range(10), 20)),
)
