"""The synchronous system in the queueing engine: stability limit, and the law of TTFT at any rate below it.

In three steps, each in a module of its own, none with random numbers:

1. `lockstep_backlog`: the stability limit, and what each prompt costs in full iterations, from iterations under a
   backlog;
2. `lockstep_walk`: the law at several loads, each from a fixed walk of some thousand prompts through the system's own
   rules, corrected by a reference queue that is solved exactly;
3. `walk_nodes`: monotone interpolation between the loads; an operating point is only this.

An approximation: measured errors are in `docs/engines.md`, derivation and limits in `docs/background/synchronous.md`.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.effort import FULL, Effort
from asapmodel.engines.lockstep_backlog import Backlog, under_backlog
from asapmodel.engines.lockstep_walk import UTILISATION, lone_prompts, node_at, node_loads
from asapmodel.engines.unlocked import unlocked_property
from asapmodel.engines.walk_analysis import Saturated, WalkAnalysis, enough_rows
from asapmodel.engines.walk_nodes import Node

__all__ = ["LockstepAnalysis", "analyse_lockstep"]

Floats = NDArray[np.float64]


def analyse_lockstep(problem: Problem, walk: int = 0, effort: Effort = FULL) -> "LockstepAnalysis":
    """Analyse a synchronous system.

    Parameters
    ----------
    problem : Problem
        `problem.layout.kind` is ``"sync"``.
    walk, effort
        Which of many fixed walks, and their lengths; see `asapmodel.engines.queueing.analyse`.

    Raises
    ------
    ValueError
        If the layout is of another kind.
    """
    if problem.layout.kind != "sync":
        raise ValueError(f"the lockstep engine analyses synchronous systems, not {problem.layout.kind!r}")
    return LockstepAnalysis(enough_rows(problem), walk, effort)


@dataclass(frozen=True, eq=False)
class LockstepAnalysis(WalkAnalysis):
    """A synchronous system with everything that does not depend on the rate; see `Analysis`.

    The stability limit takes about 2 ms, the nodes 10 to 30, both on first use.
    """

    known: Backlog | None = None

    @unlocked_property
    def _backlog(self) -> Backlog:
        return self.known or under_backlog(self.problem, self.effort)

    @property
    def saturation_rps(self) -> float:
        """Stability limit, requests/s."""
        return self._backlog.saturation

    @property
    def saturated(self) -> Saturated:
        """The system under a backlog."""
        policy, (tokens, share) = self.problem.policy, self._classes
        batch = (policy.chunk_tokens or policy.max_batch_tokens) / float(tokens @ share)
        return Saturated(*self._backlog, self.problem.layout.D * batch)

    def with_window(self, window: float) -> "LockstepAnalysis":
        """The same system with another `batch_window`, seconds; prompts of a backlog do not wait for it."""
        policy = replace(self.problem.policy, batch_window=window)
        return replace(self, problem=replace(self.problem, policy=policy), known=self._backlog)

    @unlocked_property
    def _lone(self) -> tuple[Node, Floats]:
        return lone_prompts(self.problem)

    @unlocked_property
    def _walks(self) -> tuple[tuple[float, tuple[int, int]], ...]:
        return node_loads(self._backlog.saturation * self.lone.mean, self.effort)

    @property
    def lone(self) -> Node:
        """Answer at load 0."""
        return self._lone[0]

    def loads(self) -> tuple[float, ...]:
        """Ascending loads above 0 that this effort walks at."""
        return tuple(load for load, _ in self._walks)

    def node(self, load: float) -> Node:
        """Answer at a load, by a walk of the length of the effort's nearest one."""
        limit, work = self._backlog
        _, length = min(self._walks, key=lambda one: abs(one[0] - load))
        return node_at(self.problem, work, self._lone[1], limit, load, length, self.effort, self.walk)

    def _busy(self, rate: float, node: Node) -> tuple[dict[str, float], float]:
        # Near the limit the engine is always busy, which work per request sampled elsewhere may overshoot.
        share_busy = min(rate, 1.0 / float(node.busy[-1])) * node.busy
        busy = dict(zip(UTILISATION, share_busy.tolist(), strict=True))
        pace = busy["attention"] + busy["barrier"]
        return busy, busy["barrier"] / pace if pace > 0 else 0.0
