"""The model's value for every row of `data/paper_claims.csv` under given constants, and what a row is for.

Rows that need a run are computed by `asapmodel.studies.evidence_paper_systems`, the others by the laws of
`asapmodel.studies.paper_model`.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asapmodel.studies.evidence_paper_systems import SHORT, Systems
from asapmodel.studies.paper import Claim
from asapmodel.studies.paper_model import ROWS

__all__ = [
    "FITTED",
    "HINGES",
    "P2P",
    "SAME_REQUESTS",
    "SCATTER",
    "SLO_ROWS",
    "TARGETS",
    "model_value",
    "short_parts",
    "shortfall",
]

Engine = Literal["queueing", "graph"]
Value = float | tuple[float, float]

SLO_ROWS = {
    "rps-default": "default",
    "rps-chunked": "chunked",
    "rps-asap": "asap",
    "rps-no-dual": "no-dual",
    "rps-no-overlap": "no-overlap",
    "rps-no-super": "no-super",
}
"""SLO throughputs and their systems."""

FITTED = {"attn-batch-ratio": 0.02, "ttft-1-default": 0.03, "ttft-1-asap": 0.03, "rps-asap": 0.03}
"""Rows that the five constants of the systems are fitted to, and how far the model itself may be off, relative."""

SCATTER = {"ttft-1-default": 0.14, "ttft-1-asap": 0.065, "rps-asap": 0.03, "ttft-8-default": 0.44}
"""Standard deviation of the logarithm between runs of 300 s with other requests: what one number of the paper, of one
run, may be off. By 48 runs of the model, systems of one run with the same requests."""

SAME_REQUESTS = 0.87
"""Correlation of the two TTFTs at 1 request/s in such runs; the throughput's with either is below 0.1."""

HINGES = ("moe-share-long", "moe-kernel-range", "attn-len-aware", "ttft-8-default", "ttft-1-overlap")
"""Claims in the objective: they count where they are violated. Of other systems are `comm-share` and `eaas-512`."""

P2P = ("p2p-ratio-1k", "p2p-ratio-8k", "async-512")
"""Rows that the three constants of point-to-point transfers are fitted to."""

TARGETS = (
    "ttft-1-chunked",
    "ttft-4-asap-default",
    "ttft-4-asap-chunked",
    "ttft-8-asap-chunked",
    "rps-default",
    "rps-chunked",
    "rps-no-dual",
    "rps-no-overlap",
    "rps-no-super",
    "decomp-sync-short",
    "decomp-queue-short",
    "decomp-asap-short",
    "ttft-1-dual",
    "host-dispatch-ttft",
)
"""Rows of the role target that nothing is fitted to."""


def short_parts(systems: Systems, name: str) -> NDArray[np.float64]:
    """Mean queueing, kernel and waiting of prompts under 512 tokens at 4 requests/s, seconds."""
    return systems.parts(name, 4.0, np.array([0.0, SHORT]))[:, 0]


def _share(systems: Systems, part: int) -> float:
    parts = short_parts(systems, "default")
    return float(parts[part] / parts.sum())


def _reduction(systems: Systems) -> float:
    own, other = (short_parts(systems, name) for name in ("asap", "default"))
    return 1.0 - float((own[0] + own[2]) / (other[0] + other[2]))


def _communication(systems: Systems) -> float:
    ready = systems.ready("chunked")
    busy = ready.run(ready.requests(8.0)).busy_s
    receiving = (
        systems.receiving("chunked") / systems.costing("chunked").costs.moe.per_token
    )  # counted with the experts
    return (busy["transfers"] + receiving * busy["moe"]) / busy["engine"]


def _ratio(above: str, below: str, rate: float) -> Callable[[Systems], float]:
    return lambda systems: systems.ttft(above, rate) / systems.ttft(below, rate)


_RUNS: dict[str, Callable[[Systems], float]] = {
    "comm-share": _communication,
    "host-dispatch-ttft": lambda s: s.ttft("no-super", 1.0) - s.ttft("asap", 1.0),
    "ttft-1-default": lambda s: s.ttft("default", 1.0),
    "ttft-1-chunked": lambda s: s.ttft("chunked", 1.0),
    "ttft-1-asap": lambda s: s.ttft("asap", 1.0),
    "ttft-4-asap-default": _ratio("asap", "default", 4.0),
    "ttft-4-asap-chunked": _ratio("asap", "chunked", 4.0),
    "ttft-8-asap-chunked": _ratio("asap", "chunked", 8.0),
    "ttft-8-default": lambda s: s.ttft("default", 8.0),
    "decomp-sync-short": lambda s: _share(s, 2),
    "decomp-queue-short": lambda s: _share(s, 0),
    "decomp-asap-short": _reduction,
    "ttft-1-dual": _ratio("asap", "no-dual", 1.0),
    "ttft-1-overlap": _ratio("asap", "no-overlap", 1.0),
}


def model_value(row: str, systems: Systems, engine: Engine = "graph") -> Value:
    """The model's value of a row, in the row's unit.

    Raises
    ------
    ValueError
        If the row is of a system that is not modelled.
    """
    if row in SLO_ROWS:
        return systems.slo_rate(SLO_ROWS[row], engine)
    if row in _RUNS:
        return _RUNS[row](systems)
    if row not in ROWS:
        raise ValueError(f"row {row!r} is of a system that is not modelled; leave it out")
    return ROWS[row](systems.laws)


def shortfall(claim: Claim, value: Value) -> float:
    """How far a claim is violated, as a logarithm; 0 where it holds. An approximate claim holds within 5 %.

    Examples
    --------
    >>> from asapmodel.studies.paper import claims
    >>> row = {claim.id: claim for claim in claims()}["comm-share"]
    >>> shortfall(row, 0.15), round(shortfall(row, 0.22), 3)
    (0.0, 0.095)
    """
    low, high = value if isinstance(value, tuple) else (value, value)
    if claim.relation == "between":
        least, most = (float(x) for x in claim.value.split(".."))
    else:
        stated = float(claim.value)
        least, most = {"<": (0.0, stated), ">": (stated, np.inf)}.get(claim.relation, (stated / 1.05, stated * 1.05))
    below = np.log(least / low) if least > 0 else 0.0
    above = np.log(high / most) if np.isfinite(most) else 0.0
    return float(max(0.0, below, above))
