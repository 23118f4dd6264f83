"""`capacity`: the largest rate at which the objective is met, with its bracket and what limits it."""

from collections.abc import Callable

from asapmodel.errors import InputError
from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.verbs.capacity_of_law import capacity_of_law
from asapmodel.verbs.capacity_of_runs import DEFAULT_REPLICATIONS, capacity_of_runs
from asapmodel.verbs.prepared import DEFAULT_ENGINE, Prepared, check_engine, check_horizon

__all__ = ["DEFAULT_REPLICATIONS", "capacity"]

_TOLERANCE = {"queueing": 1e-4, "graph": 5e-3}


def capacity(
    scenario: Scenario,
    engine: str = DEFAULT_ENGINE,
    replications: int | None = None,
    tolerance: float | None = None,
    progress: Callable[[str], None] | None = None,
    horizon: float | str | None = None,
    prepared: Prepared | None = None,
) -> Capacity:
    """Find the SLO throughput of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Its `[slo]` names statistic and objective.
    engine : str
        ``"queueing"``: of the stationary law, or with a horizon of that of runs of that length. ``"graph"``: of runs
        of the workload's duration, pooled over replications.
    replications : int, optional
        Graph engine: independent request sequences, seeds `seed, seed + 1, ...`; default 8, for a replayed trace 3 if
        its ticks are spread and else 1, as nothing in it is random.
    tolerance : float, optional
        Relative width of the bracket; default 0.0001 (queueing) or 0.005 (graph).
    progress : callable, optional
        Called with a line of text after each evaluated rate.
    horizon : float or str, optional
        Queueing engine: see `evaluate`.
    prepared : Prepared, optional
        Queueing engine: result of `prepare(scenario)`, to share it.

    Returns
    -------
    Capacity
        `limited_by` is the bottleneck there, or ``"stability"`` (queueing engine) where the stationary objective is
        still met at 99 % of the stability limit.

    Raises
    ------
    NoAnswer
        If the objective is missed at any rate, or met at every rate.
    InputError
        As for `evaluate`, if the tolerance is not positive, and if replications are asked of the queueing engine.

    Notes
    -----
    A finite run near saturation shows less delay than the stationary law, and can meet the objective above the
    stability limit; both limits are in the answer.
    """
    check_engine(engine)
    length = check_horizon(scenario, horizon, engine)
    wanted = _TOLERANCE[engine] if tolerance is None else tolerance
    if not wanted > 0:
        raise InputError("tolerance", "", f"is {tolerance}", "give a number greater than 0")
    if engine == "graph":
        return capacity_of_runs(scenario, replications, wanted, progress)
    if replications is not None:
        remedy = "it draws nothing: leave them out, or give --engine graph"
        raise InputError("--replications", "", "are not for engine 'queueing'", remedy)
    return capacity_of_law(scenario, length, wanted, progress, prepared)
