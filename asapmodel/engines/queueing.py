"""The queueing engine: the stationary law of TTFT at any rate, without random numbers.

A problem is analysed once (`analyse`): stability limit, limit of light load, and the law at a few loads, each from one
fixed walk through the scheduler's rules whose error is removed by what queueing theory knows exactly about its arrivals
(a reference queue solved by Wiener-Hopf factorisation, discounted work). Between the loads the law is interpolated: an
operating point takes well under a millisecond. The same problem gives the same answer. An approximation;
`docs/engines.md` holds its errors against the graph engine.
"""

from collections.abc import Sequence

from asapmodel.engines.analysis import Analysis, Point, Problem
from asapmodel.engines.effort import FULL, Effort
from asapmodel.engines.horizon import HorizonLaw
from asapmodel.engines.walk_analysis import WalkAnalysis
from asapmodel.solvers.queue_errors import UnstableError

__all__ = ["analyse", "law_of", "operating_point", "operating_points"]


def analyse(problem: Problem, walk: int = 0, effort: Effort = FULL) -> Analysis:
    """Do what does not depend on the rate, for the kind of system that the layout names.

    Parameters
    ----------
    problem : Problem
        See `asapmodel.engines.problem.problem_of`.
    walk : int
        Which of many fixed walks; 0 is the engine's, another shows how far the answer depends on it.
    effort : Effort, optional
        How long the walks are.
    """
    # Each half brings compiled code of its own, which a question about the other should not wait for.
    if problem.layout.kind == "sync":
        from asapmodel.engines.lockstep_analysis import analyse_lockstep

        return analyse_lockstep(problem, walk, effort)
    from asapmodel.engines.free_analysis import analyse_free

    return analyse_free(problem, walk, effort)


def law_of(analysis: Analysis, horizon: float | None) -> Analysis:
    """The stationary law (None), or that of the requests of runs of `horizon` seconds that start empty."""
    return analysis if horizon is None else HorizonLaw(analysis, horizon)


def operating_point(law: Analysis, rate: float) -> Point | None:
    """Answer at a rate, or None where there is none: the stationary law at or above the stability limit.

    Parameters
    ----------
    law : Analysis
        Result of `law_of`.
    rate : float
        Requests per second, positive.
    """
    if rate >= law.saturation_rps and not isinstance(law, HorizonLaw):
        return None
    try:
        return law.at(rate)
    except UnstableError:  # so near the limit that floating point calls it reached
        return None


def operating_points(law: Analysis, rates: Sequence[float]) -> list[Point | None]:
    """Answers at several rates; a stationary law is interpolated once for all of them."""
    if not isinstance(law, WalkAnalysis):
        return [operating_point(law, rate) for rate in rates]
    stable = [rate for rate in rates if rate < law.saturation_rps]
    try:
        found = dict(zip(stable, law.at_many(stable), strict=True))
    except UnstableError:  # one of them so near the limit that floating point calls it reached
        return [operating_point(law, rate) for rate in rates]
    return [found.get(rate) for rate in rates]
