"""`grid`: many scenarios at many operating points with the queueing engine, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asapmodel import summary
from asapmodel.engines.analysis import Point
from asapmodel.engines.effort import EffortName
from asapmodel.errors import InputError
from asapmodel.scenario import Scenario
from asapmodel.verbs.evaluate import Prepared, check_rate, prepare
from asapmodel.verbs.prepared import check_horizon

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["grid"]

_NUMBERS = (
    "rate_rps", "utilisation", "saturation_rps", "ttft_mean_s", "ttft_std_s", "ttft_p50_s", "ttft_p90_s", "ttft_p95_s",
    "ttft_p99_s", "attainment", "queueing_s", "kernel_s", "waiting_s", "batch_tokens_mean", "barrier_waste",
)  # fmt: skip
_SHARES = np.array([0.5, 0.9, 0.95, 0.99])


def grid(
    scenarios: Iterable[Scenario | Prepared],
    rates: Sequence[float] | None = None,
    *,
    utilisations: Sequence[float] | None = None,
    horizon: float | str | None = None,
    effort: EffortName = "full",
) -> pd.DataFrame:
    """Evaluate every scenario at every rate, or at every share of its own stability limit.

    What depends on the scenario alone is done once a scenario: 0.03 s for a synchronous system, up to 0.4 s for an
    asynchronous one, with the quick effort a third and an eighth of that. Then come some 30,000 points a second, since
    nothing is built for a point but its row.

    Parameters
    ----------
    scenarios : iterable of Scenario or Prepared
        Variants, say of `scenario.replace(D=..., E=...)`; a generator is taken one at a time.
    rates : sequence of float, optional
        Requests per second, the same for all.
    utilisations : sequence of float, optional
        In place of `rates`: shares of each scenario's stability limit.
    horizon : float or str, optional
        See `evaluate`.
    effort : str
        ``"quick"`` is for screening: larger errors, which `docs/engines.md` states. Scenarios that are prepared have
        their own.

    Returns
    -------
    pandas.DataFrame
        A row per scenario and rate, in that order: `place` (of the scenario), `scenario`, `system`, `rate_rps`,
        `utilisation` (rate over stability limit), `stable`, TTFT statistics, parts and `bottleneck` as in `sweep`;
        NaN times where there is no stationary law.

    Raises
    ------
    InputError
        If not exactly one of `rates` and `utilisations` is given, one of them is no positive number, or a scenario
        cannot be evaluated.
    """
    import pandas as pd

    if (rates is None) == (utilisations is None):
        raise InputError("grid", "", "needs either rates or utilisations", "give one of them")
    wanted = [check_rate(value) for value in (utilisations if rates is None else rates) or ()]
    blocks: list[NDArray[np.float64]] = []
    names: list[tuple[int, str, str]] = []
    words: list[tuple[bool, str]] = []
    for place, one in enumerate(scenarios):
        ready = one if isinstance(one, Prepared) else prepare(one, effort=effort)
        scale = 1.0 if utilisations is None else ready.limit_rps
        speeds = [scale * value for value in wanted]
        blocks.append(_block(ready, speeds, check_horizon(ready.scenario, horizon, "queueing"), words))
        names += [(place, ready.scenario.name, ready.scenario.layout.kind)] * len(speeds)
    numbers = np.concatenate(blocks) if blocks else np.empty((0, len(_NUMBERS)))
    table = pd.DataFrame(numbers, columns=list(_NUMBERS))
    for k, name in enumerate(("place", "scenario", "system")):
        table.insert(k, name, [row[k] for row in names])
    table.insert(5, "stable", [stable for stable, _ in words])
    table["bottleneck"] = [bottleneck for _, bottleneck in words]
    return table


def _block(
    ready: Prepared, rates: Sequence[float], horizon: float | None, words: list[tuple[bool, str]]
) -> NDArray[np.float64]:
    """Rows of one scenario; what is no number goes to `words`."""
    out = np.full((len(rates), len(_NUMBERS)), np.nan)
    limit, layout = ready.limit_rps, ready.scenario.layout
    objective = ready.scenario.slo.ttft
    for row, rate, point in zip(out, rates, ready.points(rates, horizon), strict=True):
        row[:3] = rate, rate / limit, limit
        if point is None:
            words.append((False, ready.limit_bottleneck))
            continue
        row[3:] = _numbers(point, objective)
        words.append((rate < limit, summary.bottleneck(layout, point.utilisation)))
    return out


def _numbers(point: Point, objective: float) -> tuple[float, ...]:
    law = point.ttft
    quantiles = np.interp(_SHARES, law.cdf, law.time)
    parts = (point.queueing_s, point.kernel_s, point.waiting_s, point.batch_tokens_mean, point.barrier_waste)
    return (law.mean, law.std, *quantiles, law.within(objective), *parts)
