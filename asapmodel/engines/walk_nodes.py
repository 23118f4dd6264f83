"""Answers at a few loads, and between them: what the queueing engine interpolates.

Every time that is answered (mean, deviation, quantiles) is tabulated at loads `rho_i` and interpolated as `log y`
over `x = -log(1 - rho)` by monotone cubic pieces (Fritsch and Carlson, SIAM J. Numer. Anal. 17 (1980)). A queue
whose times grow like `1 / (1 - rho)` is a straight line of slope 1 there, and beyond the last node exactly that is
assumed. Monotone in the load because the nodes are made so (but see `NodeTable.may_fall`). What need not grow with the
load (seconds of work per request, batch sizes) is interpolated as it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.unlocked import unlocked_property
from asapmodel.solvers.distinct import distinct
from asapmodel.solvers.monotone_cubic import MonotoneCubic

__all__ = ["CLASSES", "SHARES", "Node", "NodeTable", "node_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHARES: Floats = distinct(
    np.concatenate([np.linspace(0.0, 0.9, 91), 1.0 - np.geomspace(0.1, 1e-5, 81), [0.95, 0.98, 0.99, 0.995, 1.0]])
)
"""Probabilities at which the TTFT law is kept as quantiles."""

CLASSES = 12
"""Classes of prompts by tokens to compute, equally likely as far as ties allow."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Stationary answer at one load, seconds; `busy` is seconds per request of each resource."""

    load: float
    quantiles: Floats  # at SHARES
    mean: float
    std: float
    service: float  # start of the first own iteration to the end
    kernel: float
    busy: Floats
    batch_tokens: float
    class_mean: Floats
    class_p95: Floats

    def times(self) -> Floats:
        """Return everything that grows with the load, in one row."""
        head = np.array([self.mean, self.std])
        return np.concatenate([head, self.quantiles, self.class_mean, self.class_p95])

    def rest(self) -> Floats:
        """Return everything else, in one row."""
        return np.concatenate([[self.service, self.kernel, self.batch_tokens], self.busy])


def node_of(
    load: float,
    ttft: Floats,
    rows: Ints,
    points: int,
    *,
    service: float,
    kernel: float,
    busy: Floats,
    batch_tokens: float,
) -> Node:
    """Node of the TTFT of single prompts.

    Parameters
    ----------
    load : float
        Between 0 and 1.
    ttft, rows : arrays
        TTFT by prompt, seconds, and its row of the length law.
    points : int
        Rows of the length law.
    service, kernel, busy, batch_tokens
        As in `Node`.
    """
    group = rows * CLASSES // points
    by_class = ttft[np.argsort(group * (ttft.max() + 1.0) + ttft)]
    sizes = np.bincount(group, minlength=CLASSES)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    mean = float(ttft.mean())
    return Node(
        load=load,
        quantiles=np.interp(SHARES, (np.arange(len(ttft)) + 0.5) / len(ttft), np.sort(ttft)),
        mean=mean,
        std=float(ttft.std()),
        service=min(service, mean),
        kernel=kernel,
        busy=busy,
        batch_tokens=batch_tokens,
        class_mean=np.add.reduceat(by_class, first) / sizes,
        class_p95=by_class[first + (0.95 * sizes).astype(np.int64)],
    )


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Nodes in ascending load, the first at load 0 (a lone prompt).

    `may_fall`: at light load the TTFT may fall with the rate, up to the node of the least mean. It does where prompts
    wait for company, the less the more there are.
    """

    nodes: tuple[Node, ...]
    may_fall: bool = False

    @unlocked_property
    def _places(self) -> Floats:
        places: Floats = -np.log1p(-np.array([node.load for node in self.nodes]))
        return places

    @unlocked_property
    def _times(self) -> MonotoneCubic:
        # Later nodes are never below earlier ones: quadrature errors must not show as a falling TTFT.
        rows = np.array([node.times() for node in self.nodes])
        least = int(np.argmin(rows[:, 0])) if self.may_fall else 0
        rows[least:] = np.maximum.accumulate(rows[least:], axis=0)
        return MonotoneCubic(self._places, np.log(np.maximum(rows, _LEAST)))

    @unlocked_property
    def _rest(self) -> MonotoneCubic:
        return MonotoneCubic(self._places, np.array([node.rest() for node in self.nodes]))

    def at(self, loads: Floats) -> list[Node]:
        """Interpolated nodes at loads in [0, 1)."""
        places = -np.log1p(-loads)
        last = self._places[-1]
        within = np.minimum(places, last)
        times = np.exp(self._times(within) + (places - within)[:, None])
        rest = self._rest(within)
        times[:, 2 : 2 + len(SHARES)] = np.maximum.accumulate(times[:, 2 : 2 + len(SHARES)], axis=1)
        return [_node(float(load), row, other) for load, row, other in zip(loads, times, rest, strict=True)]


_LEAST = 1e-12  # seconds: a logarithm for times that are 0


def _node(load: float, times: Floats, rest: Floats) -> Node:
    edge = 2 + len(SHARES)
    return Node(
        load=load,
        quantiles=times[2:edge],
        mean=float(times[0]),
        std=float(times[1]),
        service=float(rest[0]),
        kernel=float(rest[1]),
        busy=rest[3:],
        batch_tokens=float(rest[2]),
        class_mean=times[edge : edge + CLASSES],
        class_p95=times[edge + CLASSES :],
    )
