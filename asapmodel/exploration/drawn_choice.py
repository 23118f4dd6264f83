"""The best points of an exploration, drawn with the same constants.

Drawn are the best of each objective, the front, then the best point of every other layout, then all others in the
order of the ranking, until there are `MOST`. So where one layout has many policies that hardly differ, other layouts
get their chance too. A draw of a point is asked as in `asapmodel.uncertainties.drawing`, and its objectives are formed
from the answer as those of the table are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.errors import InputError, NoAnswer
from asapmodel.exploration.choice import Choice, Contender, Lead, Standing, best_shares, close_shares, front_shares
from asapmodel.exploration.designs import designs_of
from asapmodel.exploration.keys import column, part
from asapmodel.exploration.objectives import OBJECTIVES, add_derived, costs_of, ranking
from asapmodel.uncertainties.answer import interval_of
from asapmodel.uncertainties.deciding import decider_of
from asapmodel.uncertainties.drawing import Estimate, Shared, answers_of, check_stationary, estimate_of, shared_draws
from asapmodel.uncertainties.sampling import Sampled
from asapmodel.verbs.prepared import Prepared, prepare

if TYPE_CHECKING:
    import pandas as pd

    from asapmodel.exploration.result import Exploration
    from asapmodel.exploration.space import Space

__all__ = ["MOST", "check_drawable", "choice_columns", "choice_of"]

MOST = 10
"""Points that are drawn."""

_EXACT = "devices"  # the objective that no constant moves
_LAYOUT = ("scenario", "system", "D", "T", "E")

Array = NDArray[np.float64]
Progress = Callable[[str, int, int], None] | None


def check_drawable(space: Space) -> None:
    """Refuse a space whose answer no constant moves, or that is not about the stationary law.

    Raises
    ------
    InputError
        Names the key.
    """
    if set(space.objectives) == {_EXACT}:
        remedy = "add one that constants move, e.g. 'slo_throughput_per_device'"
        raise InputError(space.source, "objectives", f"has only '{_EXACT}', which is exact", remedy)
    for one in space.scenarios:
        check_stationary(one)


def choice_of(
    space: Space, found: Exploration, samples: int, seed: int, level: float, progress: Progress = None
) -> Choice:
    """Say how sure the best points of an exploration are; see `asapmodel.verbs.explore.explore`."""
    rows = _chosen(space, found)
    drawn, without = _drawn(space, rows, samples, seed, progress)
    values = _objectives(rows[rows["point"].isin(drawn.points)], drawn, space.objectives)
    costs = costs_of(values, space.objectives).reshape(len(drawn.points), 1 + samples, len(space.objectives))
    # No rate that meets the objective: such a point is not good for its few devices either.
    costs[~np.isfinite(costs).all(axis=2)] = np.inf
    costs[:, 1:][np.array([one.throughput == 0 for one in drawn.answers])] = np.inf
    columns = [
        values[OBJECTIVES[name].column].to_numpy(dtype=np.float64).reshape(costs.shape[:2]) for name in space.objectives
    ]
    moved = [k for k, name in enumerate(space.objectives) if name != _EXACT]
    order = np.argsort(costs[:, 0, moved[0]], kind="stable").tolist()
    standings = {k: _standings(space.objectives[k], columns[k], costs[:, 1:, k], level) for k in moved}
    front = front_shares(costs[:, 1:])
    contenders = tuple(
        Contender(
            drawn.points[row],
            tuple(standings[k][row] for k in moved),
            float(front[row]),
            int(np.isnan(drawn.answers[row].limit).sum()),
        )
        for row in order
    )
    shared, constants = drawn.shared, tuple(one.key for one in drawn.shared.sources.constants)
    lead = _lead(drawn, space.objectives[moved[0]], contenders, columns[moved[0]], costs[..., moved[0]], level, seed)
    return Choice(level, samples, seed, constants, shared.outside, without, contenders, lead)


def choice_columns(choice: Choice, objectives: Sequence[str]) -> pd.DataFrame:
    """Columns for the table: by `point` the ends of the intervals, `best_share`, `close_share` and `front_share`."""
    import pandas as pd

    rows = []
    for one in choice.contenders:
        row: dict[str, Any] = {"point": one.point}
        for standing in one.standings:
            name = OBJECTIVES[standing.objective].column
            row |= {f"{name}_low": standing.interval.low, f"{name}_high": standing.interval.high}
        first = one.standings[0]
        rows.append(row | {"best_share": first.best, "close_share": first.close, "front_share": one.front})
    return pd.DataFrame(rows)


def _chosen(space: Space, found: Exploration) -> pd.DataFrame:
    """Rows to draw."""
    import pandas as pd

    ranked = found.table.iloc[ranking(found.table, space.objectives)]
    settings = [column(key) for key in space.vary if part(key) == "setting"]
    firsts = ranked.drop_duplicates([*_LAYOUT, *settings])
    every = pd.concat([found.best, found.front, firsts, ranked])
    return every.drop_duplicates("point").head(MOST).reset_index(drop=True)


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Points with their estimates, and their answers in the draws that they share."""

    points: list[int]
    estimates: list[Estimate]
    answers: list[Sampled]
    shared: Shared


def _drawn(space: Space, rows: pd.DataFrame, samples: int, seed: int, progress: Progress) -> tuple[_Drawn, int]:
    """Ask every point in every draw; and how many points have no answer, or none around their own."""
    designs, timed = designs_of(space), "ttft_at_rate" in space.objectives
    asked: list[tuple[int, Prepared, Estimate]] = []
    for number in rows["point"].tolist():
        group = designs.point(number)
        ready = prepare(group.scenario.replace(**group.policies[0]))
        rate = ready.scenario.workload.rate if space.rate is None else space.rate
        try:
            asked.append((number, ready, estimate_of(ready, rate if timed else None)))
        except NoAnswer:  # a row of less than full effort
            continue
    shared = shared_draws([(ready.scenario, ready.costing.costs) for _, ready, _ in asked], samples, seed)
    out = _Drawn([], [], [], shared)
    for k, (number, ready, estimate) in enumerate(asked):
        if progress is not None:
            progress("drawing constants", k, len(asked))
        try:
            answers = answers_of(ready, estimate, shared.own[k], shared.values_of(k))
        except NoAnswer:
            continue
        out.points.append(number)
        out.estimates.append(estimate)
        out.answers.append(answers)
    if progress is not None:
        progress("drawing constants", len(asked), len(asked))
    if not out.points:
        remedy = "raise slo.ttft or lower the rate"
        raise NoAnswer(
            f"{space.source}: its best points are too near to where there is no answer to be drawn; {remedy}"
        )
    return out, len(rows) - len(out.points)


def _objectives(rows: pd.DataFrame, drawn: _Drawn, names: Sequence[str]) -> pd.DataFrame:
    """A row a point and draw, the estimates as its first draw, with the columns of objectives."""
    pairs = list(zip(drawn.estimates, drawn.answers, strict=True))
    throughput = np.array([[own.throughput, *one.throughput] for own, one in pairs])
    statistic = np.array([[own.statistic, *one.statistic] for own, one in pairs])
    many = rows.loc[np.repeat(rows.index, throughput.shape[1])].reset_index(drop=True)
    return add_derived(many.assign(slo_throughput_rps=throughput.ravel(), ttft_at_rate_s=statistic.ravel()))


def _standings(objective: str, values: Array, costs: Array, level: float) -> list[Standing]:
    """Of every point; `values` with that of the estimates first, `costs` without."""
    return [
        Standing(objective, interval_of(float(row[0]), row[1:], level), float(best), float(close))
        for row, best, close in zip(values, best_shares(costs), close_shares(costs), strict=True)
    ]


def _lead(
    drawn: _Drawn,
    objective: str,
    contenders: Sequence[Contender],
    values: Array,
    costs: Array,
    level: float,
    seed: int,
) -> Lead | None:
    """The first contender over the one of the others that is best most often."""
    if len(contenders) < 2:
        return None
    rival = max(contenders[1:], key=lambda one: one.standings[0].best)
    a, b = (drawn.points.index(one.point) for one in (contenders[0], rival))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = values[a] / values[b] if OBJECTIVES[objective].largest else values[b] / values[a]
    known = ~np.isnan(ratios[1:])
    better = float(np.mean(costs[a, 1:][known] < costs[b, 1:][known])) if known.any() else float("nan")
    measure = decider_of(drawn.shared.sources, drawn.shared.values, ratios[1:], level, seed)
    interval = interval_of(float(ratios[0]), ratios[1:], level)
    return Lead(objective, contenders[0].point, rival.point, interval, better, measure)
