"""An `Analysis` out of answers at a few loads: what the synchronous and the asynchronous half share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import ByLength, Point, Problem, Prompts, TtftLaw
from asapmodel.engines.effort import FULL, Effort
from asapmodel.engines.side_by_side import side_by_side
from asapmodel.engines.unlocked import unlocked_property
from asapmodel.engines.walk_nodes import CLASSES, SHARES, Node, NodeTable
from asapmodel.solvers.queue_errors import UnstableError, positive

__all__ = ["Saturated", "WalkAnalysis", "enough_rows"]

Floats = NDArray[np.float64]

_FEWEST_ROWS = 512
_SIDE_BY_SIDE = 5  # walks from which on threads pay: those of the full effort


class Saturated(NamedTuple):
    """A system under a backlog: prompts/s, each prompt's share of what limits it (mean 1), and prompts in service."""

    limit_rps: float
    work: Floats
    in_service: float


def enough_rows(problem: Problem) -> Problem:
    """The problem with its prompts repeated until there are enough for classes and strata."""
    rows = len(problem.prompts.prompt)
    if rows >= _FEWEST_ROWS:
        return problem
    times = -(-_FEWEST_ROWS // rows)
    prompts = Prompts(np.repeat(problem.prompts.prompt, times), np.repeat(problem.prompts.cached, times))
    return replace(problem, prompts=prompts)


@dataclass(frozen=True, eq=False)
class WalkAnalysis(ABC):
    """A system with everything that does not depend on the rate; see `Analysis`.

    Stability limit and nodes are computed on first use; `at` is an interpolation. A half of the engine gives the limit,
    the nodes and what is busy. `walk` says which of many fixed walks is taken,
    `effort` how long they are.
    """

    problem: Problem
    walk: int = 0
    effort: Effort = FULL

    @property
    @abstractmethod
    def saturation_rps(self) -> float:
        """Stability limit, requests/s."""

    @property
    @abstractmethod
    def saturated(self) -> Saturated:
        """The system under a backlog."""

    @abstractmethod
    def with_window(self, window: float) -> Self:
        """The same system with another `batch_window`, seconds; prompts of a backlog do not wait for it."""

    @property
    @abstractmethod
    def lone(self) -> Node:
        """Answer at load 0."""

    @abstractmethod
    def loads(self) -> tuple[float, ...]:
        """Ascending loads above 0 that this effort walks at."""

    @abstractmethod
    def node(self, load: float) -> Node:
        """Answer at a load, by a walk; slow."""

    @abstractmethod
    def _busy(self, rate: float, node: Node) -> tuple[dict[str, float], float]:
        """Utilisation by resource, and the share of the groups' time lost at barriers."""

    @unlocked_property
    def _table(self) -> NodeTable:
        policy = self.problem.policy
        waits = self.problem.layout.kind == "asap" and policy.batch_window > 0
        alone, _ = self.lone, self.saturation_rps  # what all walks share, before they begin
        loads = self.loads()
        nodes = side_by_side(self.node, loads) if len(loads) >= _SIDE_BY_SIDE else map(self.node, loads)
        return NodeTable((alone, *nodes), may_fall=waits)

    @unlocked_property
    def _classes(self) -> tuple[Floats, Floats]:
        """Mean tokens and share of each class of prompts by length."""
        tokens = (self.problem.prompts.prompt - self.problem.prompts.cached).astype(np.float64)
        group = np.arange(len(tokens)) * CLASSES // len(tokens)
        share = np.bincount(group, minlength=CLASSES) / len(tokens)
        sums = np.bincount(group, tokens, minlength=CLASSES) / len(tokens)
        return sums / np.where(share > 0, share, 1.0), share

    def at(self, rate: float) -> Point:
        """Stationary answer at a rate, requests/s; UnstableError at or above the stability limit."""
        return self.at_many([rate])[0]

    def at_many(self, rates: Sequence[float] | Floats) -> list[Point]:
        """Stationary answers at several rates, requests/s, in one interpolation.

        Raises
        ------
        UnstableError
            If one is at or above the stability limit.
        MomentError
            If one is not positive and finite.
        """
        wanted = np.array([positive("rate", float(rate)) for rate in rates])
        loads = wanted / self.saturation_rps
        if np.any(loads >= 1.0):
            raise UnstableError(float(loads.max()))
        return [self.point_of(float(rate), node) for rate, node in zip(wanted, self._table.at(loads), strict=True)]

    def point_of(self, rate: float, node: Node) -> Point:
        """The operating point of a rate whose node is known, requests/s."""
        latency = self.problem.costs.request_latency
        busy, waste = self._busy(rate, node)
        service = min(node.service, node.mean)
        kernel = min(node.kernel, service)
        tokens, share = self._classes
        return Point(
            rate_rps=rate,
            ttft=TtftLaw(node.quantiles + latency, SHARES, node.mean + latency, node.std),
            queueing_s=node.mean - service,
            kernel_s=kernel,
            waiting_s=service - kernel,
            utilisation=busy,
            batch_tokens_mean=node.batch_tokens,
            barrier_waste=waste,
            by_length=ByLength(tokens, share, node.class_mean + latency, node.class_p95 + latency),
        )
