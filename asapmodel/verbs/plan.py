"""`plan`: the smallest fleet of instances that serves a day of demand within its objectives."""

import math
from collections.abc import Callable
from dataclasses import replace

from asapmodel.errors import InputError, NoAnswer
from asapmodel.planning.answer import Plan, plan_of
from asapmodel.planning.demand import Demand
from asapmodel.planning.limits import check_lengths, objective_worths, shortfall, worths
from asapmodel.planning.search import Search
from asapmodel.planning.settling import settle
from asapmodel.solvers.integer_program import Infeasible, NotSolved

__all__ = ["plan"]


def plan(
    demand: Demand | str,
    *,
    what_if: bool = False,
    gap: float = 1e-4,
    time_limit: float = 60.0,
    progress: Callable[[str], None] | None = None,
    uncertainty: bool = False,
    samples: int = 128,
    seed: int = 0,
    level: float = 0.9,
) -> Plan:
    """Plan a fleet.

    Parameters
    ----------
    demand : Demand or str
        A demand, a file, or the name of a shipped one.
    what_if : bool
        Whether to say also what reserve, forecast, traffic and a second of each objective are worth; what one more of
        each limit is worth is always said. Takes several times as long.
    gap : float
        Relative gap at which a program counts as solved.
    time_limit : float
        Seconds for each program; the best fleet so far is taken then, with its gap.
    progress : callable, optional
        Called with a line of text after each step.
    uncertainty : bool
        Say also whether the plan would survive the errors of constants: in which share of draws it carries the demand,
        and what would in 90 % of them. The fleet stays the one that is best by the estimates.
    samples, seed, level
        See `asapmodel.verbs.uncertainty.uncertainty`.

    Raises
    ------
    NoAnswer
        If no fleet serves the demand: says which limit is missed by how much; or none was found in time.
    InputError
        If the demand, gap or time limit is not valid, or a layout does not fit its devices.
    """
    if not 0 <= gap < 1:
        raise InputError("gap", "", f"is {gap:g}", "give a share from 0 to below 1, e.g. 0.01")
    if not 0 < time_limit < math.inf:
        raise InputError("time_limit", "", f"is {time_limit:g}", "give a positive number of seconds")
    if uncertainty:
        from asapmodel.verbs.uncertainty import check_draws

        check_draws(samples, level)
    search = Search(demand if isinstance(demand, Demand) else Demand.load(demand), time_limit, gap, progress)
    check_lengths(search)
    try:
        settled = settle(search)
        values = worths(search, settled, what_if)
        if what_if:
            values += objective_worths(search, settled)
    except Infeasible:
        raise shortfall(search) from None
    except NotSolved as error:
        remedy = "give a longer time limit, or fewer lengths to split at"
        raise NoAnswer(f"{search.demand.source}: {error}; {remedy}") from None
    answer = plan_of(search, settled, values)
    if not uncertainty:
        return answer
    from asapmodel.planning.drawn_plan import drawn_plan

    sure = drawn_plan(search, settled, samples=samples, seed=seed, level=level, progress=progress)
    return replace(answer, uncertainty=sure)
