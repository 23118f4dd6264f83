"""`sweep`: one scenario over a list of rates, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from asapmodel.errors import InputError
from asapmodel.result import Result
from asapmodel.scenario import Scenario
from asapmodel.verbs.evaluate import answer, check_rate, prepare
from asapmodel.verbs.prepared import DEFAULT_ENGINE, Prepared, check_engine, check_horizon

if TYPE_CHECKING:
    import pandas as pd

    from asapmodel.uncertainties.rates import RateIntervals

__all__ = ["results_table", "sweep", "sweep_intervals", "sweep_results"]


def sweep_results(
    scenario: Scenario,
    rates: Iterable[float],
    engine: str = DEFAULT_ENGINE,
    progress: Callable[[str], None] | None = None,
    horizon: float | str | None = None,
    prepared: Prepared | None = None,
) -> list[Result]:
    """Evaluate a scenario at each rate; with the graph engine with common random numbers, and records are kept.

    Where there is no stationary law the result is there, with NaN for every time and `stable` False.
    """
    check_engine(engine)
    length = check_horizon(scenario, horizon, engine)
    ready = prepared or prepare(scenario)
    out = []
    for rate in rates:
        out.append(answer(scenario, check_rate(rate), engine, ready, length))
        if progress is not None:
            progress(f"{scenario.name} at {rate:g} requests/s")
    return out


def sweep(
    scenario: Scenario,
    rates: Iterable[float],
    engine: str = DEFAULT_ENGINE,
    horizon: float | str | None = None,
    *,
    uncertainty: bool = False,
    samples: int = 128,
    seed: int = 0,
    level: float = 0.9,
) -> pd.DataFrame:
    """Evaluate a scenario at each rate.

    Parameters
    ----------
    scenario : Scenario
        What to evaluate.
    rates : iterable of float
        Requests per second.
    engine, horizon
        See `evaluate`.
    uncertainty : bool
        Add intervals from the errors of constants, see `asapmodel.verbs.uncertainty.uncertainty`; stationary law only.
    samples, seed, level
        Of the intervals.

    Returns
    -------
    pandas.DataFrame
        One row per rate: scenario, system, rate, requests, stable, TTFT statistics, parts and utilisations, engine and
        law. Rates at or above the stability limit have `stable` False and, in the stationary law, NaN times. With
        intervals also ``ttft_mean_low_s``, ``ttft_mean_high_s``, ``ttft_p99_low_s``, ``ttft_p99_high_s`` (infinite
        where too many of the drawn systems are not stable) and ``slo_met_share``, the share of the drawn systems that
        meet the objective.

    Raises
    ------
    InputError
        If an argument is out of range, or intervals are asked of runs.
    """
    if not uncertainty:
        return results_table(sweep_results(scenario, rates, engine, horizon=horizon))
    if engine != "queueing":
        raise InputError("uncertainty", "", f"is not for engine '{engine}'", "leave one of the two out")
    if horizon is not None:
        raise InputError("uncertainty", "", "cannot be combined with a horizon", "leave one of the two out")
    ready = prepare(scenario)
    results = sweep_results(scenario, rates, prepared=ready)
    return results_table(results, sweep_intervals(ready, results, samples, seed, level))


def sweep_intervals(
    ready: Prepared, results: Sequence[Result], samples: int = 128, seed: int = 0, level: float = 0.9
) -> RateIntervals:
    """State how sure the answers of `sweep_results` are; see `uncertainty`."""
    from asapmodel.uncertainties.rates import rate_intervals
    from asapmodel.verbs.uncertainty import check_draws

    check_draws(samples, level)
    return rate_intervals(ready, results, samples, seed, level)


def results_table(results: Iterable[Result], sure: RateIntervals | None = None) -> pd.DataFrame:
    """Results as one table, a row each, with intervals if they are given."""
    import pandas as pd

    table = pd.DataFrame([_row(result) for result in results])
    if sure is None:
        return table
    for name, ends in (("mean", [one.ttft_mean for one in sure.rates]), ("p99", [one.ttft_p99 for one in sure.rates])):
        table[f"ttft_{name}_low_s"] = [one.low for one in ends]
        table[f"ttft_{name}_high_s"] = [one.high for one in ends]
    return table.assign(slo_met_share=[one.met for one in sure.rates])


def _row(result: Result) -> dict[str, Any]:
    ttft = asdict(result.ttft)
    ttft.pop("mean_interval_s")
    return {
        "scenario": result.scenario,
        "system": result.system,
        "rate_rps": result.rate_rps,
        "requests": result.requests,
        "stable": result.stable,
        **{f"ttft_{name}": value for name, value in ttft.items()},
        "slo_statistic": result.slo.statistic,
        "slo_value_s": result.slo.value_s,
        "slo_met": result.slo.met,
        "attainment": result.slo.attainment,
        **asdict(result.parts),
        **{f"utilisation_{name}": value for name, value in result.utilisation.items()},
        "bottleneck": result.bottleneck,
        "batch_tokens_mean": result.batch_tokens_mean,
        "barrier_waste": result.barrier_waste,
        "engine": result.engine,
        "law": result.law,
    }
