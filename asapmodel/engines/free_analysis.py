"""The asynchronous system in the queueing engine: stability limit, and the law of TTFT at any rate below it.

1. `free_layers`: few long layers stand for many short ones;
2. `free_backlog`: the stability limit, from the reduced system under a backlog;
3. `free_walk`: the law at several loads, each from a fixed walk of some thousand prompts through the scheduler's own
   rules and the event graph of the reduced system, corrected by what is known exactly about its arrivals;
4. between the loads: monotone interpolation.

No random numbers. An approximation; measured errors are in `docs/engines.md`, the derivation in
`docs/background/asynchronous.md`.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.effort import FULL, Effort
from asapmodel.engines.free_backlog import FreeBacklog, backlog_of, reduced
from asapmodel.engines.free_walk import Alone, alone_of, free_node, lone_node, resources
from asapmodel.engines.unlocked import unlocked_property
from asapmodel.engines.walk_analysis import Saturated, WalkAnalysis, enough_rows
from asapmodel.engines.walk_nodes import Node

__all__ = ["FreeAnalysis", "analyse_free"]

Floats = NDArray[np.float64]


def analyse_free(problem: Problem, walk: int = 0, effort: Effort = FULL) -> "FreeAnalysis":
    """Analyse an asynchronous system.

    Parameters
    ----------
    problem : Problem
        `problem.layout.kind` is ``"asap"``.
    walk, effort
        Which of many fixed walks, and their lengths; see `asapmodel.engines.queueing.analyse`.

    Raises
    ------
    ValueError
        If the layout is of another kind.
    """
    if problem.layout.kind != "asap":
        raise ValueError(f"free execution is that of asynchronous systems, not of {problem.layout.kind!r}")
    return FreeAnalysis(enough_rows(problem), walk, effort)


@dataclass(frozen=True, eq=False)
class FreeAnalysis(WalkAnalysis):
    """An asynchronous system with everything that does not depend on the rate; see `Analysis`."""

    known: FreeBacklog | None = None
    known_alone: Alone | None = None

    @unlocked_property
    def _reduced(self) -> Problem:
        return reduced(self.problem, self.effort)

    @unlocked_property
    def _backlog(self) -> FreeBacklog:
        return self.known or backlog_of(self._reduced, self.effort, self.walk)

    @property
    def saturation_rps(self) -> float:
        """Stability limit, requests/s."""
        return self._backlog.saturation

    @property
    def saturated(self) -> Saturated:
        """The system under a backlog."""
        slots = self.problem.layout.D * self.problem.policy.slots
        return Saturated(self._backlog.saturation, self._backlog.work, slots * self._backlog.prompts)

    def with_window(self, window: float) -> "FreeAnalysis":
        """The same system with another `batch_window`, seconds; prompts of a backlog do not wait for it."""
        policy = replace(self.problem.policy, batch_window=window)
        problem = replace(self.problem, policy=policy)
        return FreeAnalysis(problem, self.walk, self.effort, self._backlog, self._alone)

    @unlocked_property
    def _alone(self) -> Alone | None:
        return None if self.problem.policy.queue_per_group else self.known_alone or alone_of(self.problem)

    @unlocked_property
    def _lone(self) -> tuple[Node, Floats]:
        return lone_node(self.problem, self._alone)

    @property
    def lone(self) -> Node:
        """Answer at load 0."""
        return self._lone[0]

    def loads(self) -> tuple[float, ...]:
        """Ascending loads above 0 that this effort walks at."""
        return tuple(load for load, _ in self.effort.walks)

    def node(self, load: float) -> Node:
        """Answer at a load, by a walk of the length of the effort's nearest one."""
        return free_node(self._reduced, self._backlog, self._lone[1], load, self.effort, self.walk)

    def _busy(self, rate: float, node: Node) -> tuple[dict[str, float], float]:
        return dict(zip(resources(self.problem), np.minimum(rate * node.busy, 1.0).tolist(), strict=True)), 0.0
