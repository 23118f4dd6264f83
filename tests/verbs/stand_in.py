"""An analysis whose every answer is known: a single server with exponential service (M/M/1), any system's costs."""

import math
from dataclasses import dataclass

import numpy as np

from asapmodel.engines.analysis import ByLength, Point, Problem, TtftLaw
from asapmodel.engines.effort import FULL, Effort
from asapmodel.solvers.queue_errors import UnstableError

__all__ = ["SERVICE", "SingleServer", "analyse"]

SERVICE = 10.0
"""Services per second, which is the stability limit."""

_SHARES = np.concatenate([np.linspace(0.0, 0.99, 200, endpoint=False), 1.0 - np.geomspace(0.01, 1e-6, 100)])


@dataclass(frozen=True)
class SingleServer:
    """M/M/1: time in the system is exponential with rate `service - rate`."""

    problem: Problem
    saturation_rps: float = SERVICE

    def at(self, rate: float) -> Point:
        """Operating point."""
        if rate >= self.saturation_rps:
            raise UnstableError(rate / self.saturation_rps)
        mean = 1.0 / (self.saturation_rps - rate)
        time = np.append(-mean * np.log1p(-_SHARES), 20 * mean)
        busy = rate / self.saturation_rps
        sync = {"attention": 0.5 * busy, "barrier": 0.3 * busy, "transfers": 0.1 * busy, "moe": 0.1 * busy}
        asap = {"attention": busy, "moe": 0.5 * busy}
        tokens = np.array([512.0, 4096.0])
        return Point(
            rate_rps=rate,
            ttft=TtftLaw(time, np.append(_SHARES, 1.0), mean, mean),
            queueing_s=mean - 1 / SERVICE,
            kernel_s=1 / SERVICE,
            waiting_s=0.0,
            utilisation=sync | {"engine": busy} if self.problem.layout.kind == "sync" else asap,
            batch_tokens_mean=3000.0,
            barrier_waste=0.25 if self.problem.layout.kind == "sync" else 0.0,
            by_length=ByLength(tokens, np.array([0.75, 0.25]), np.full(2, mean), np.full(2, mean * math.log(20))),
        )


def analyse(problem: Problem, walk: int = 0, effort: Effort = FULL) -> SingleServer:
    """In place of `asapmodel.engines.queueing.analyse`."""
    return SingleServer(problem)
