"""Answers at a few loads, and between them: what the queueing engine interpolates.

Every time that is answered (mean, deviation, quantiles) is tabulated at loads `rho_i` and interpolated as `log y`
over `x = -log(1 - rho)` by monotone cubic pieces (Fritsch and Carlson, SIAM J. Numer. Anal. 17 (1980)). A queue
whose times grow like `1 / (1 - rho)` is a straight line of slope 1 there, and beyond the last node exactly that is
assumed. Monotone in the load because the nodes are made so (but see `NodeTable.may_fall`). What need not grow with the
load (seconds of work per request, batch sizes) is interpolated as it is.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

__all__ = ["CLASSES", "LOADS", "SHARES", "Node", "NodeTable", "node_loads"]

Floats = NDArray[np.float64]

LOADS = (0.35, 0.6, 0.8, 0.9, 0.96)
"""Loads, relative to saturation, at which the stationary law is found; below the first see `node_loads`."""

WALKS = ((3500, 1), (8000, 2), (16000, 4), (24000, 6), (24000, 6))
"""Prompts of the walk at each of `LOADS`, and every how many of them one is kept: neighbours tell much the same."""

_LIGHT_WALK = (6000, 2)


def node_loads(lone_arrivals: float) -> tuple[tuple[float, tuple[int, int]], ...]:
    """Loads of the nodes above 0, and their walks.

    `lone_arrivals` is the number of prompts that arrive at saturation during the time of a lone one: where it is large,
    batches form, and times rise, already at loads around its reciprocal.
    """
    first = min(max(0.35 / lone_arrivals, 0.015), 0.1)
    second = min(max(1.2 / lone_arrivals, 2.0 * first), 0.22)
    return ((first, _LIGHT_WALK), (second, _LIGHT_WALK), *zip(LOADS, WALKS, strict=True))


SHARES: Floats = np.unique(
    np.concatenate([np.linspace(0.0, 0.9, 91), 1.0 - np.geomspace(0.1, 1e-5, 81), [0.95, 0.98, 0.99, 0.995, 1.0]])
)
"""Probabilities at which the TTFT law is kept as quantiles."""

CLASSES = 12
"""Classes of prompts by tokens to compute, equally likely as far as ties allow."""

UTILISATION = ("attention", "barrier", "transfers", "moe", "engine")


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Stationary answer at one load, seconds; `busy` is seconds per request of each of `UTILISATION`."""

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


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Nodes in ascending load, the first at load 0 (a lone prompt).

    `may_fall`: at light load the TTFT may fall with the rate, up to the node of the least mean. It does where prompts
    wait for company, the less the more there are.
    """

    nodes: tuple[Node, ...]
    may_fall: bool = False

    @cached_property
    def _places(self) -> Floats:
        places: Floats = -np.log1p(-np.array([node.load for node in self.nodes]))
        return places

    @cached_property
    def _times(self) -> PchipInterpolator:
        # Later nodes are never below earlier ones: quadrature errors must not show as a falling TTFT.
        rows = np.array([node.times() for node in self.nodes])
        least = int(np.argmin(rows[:, 0])) if self.may_fall else 0
        rows[least:] = np.maximum.accumulate(rows[least:], axis=0)
        return PchipInterpolator(self._places, np.log(np.maximum(rows, _LEAST)), axis=0)

    @cached_property
    def _rest(self) -> PchipInterpolator:
        return PchipInterpolator(self._places, np.array([node.rest() for node in self.nodes]), axis=0)

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
