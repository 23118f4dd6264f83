"""`sweep`: one scenario over a list of rates, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from asapmodel.result import Result
from asapmodel.scenario import Scenario
from asapmodel.verbs.evaluate import answer, check_rate, prepare
from asapmodel.verbs.prepared import DEFAULT_ENGINE, Prepared, check_engine, check_horizon

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["results_table", "sweep", "sweep_results"]


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

    Returns
    -------
    pandas.DataFrame
        One row per rate: scenario, system, rate, requests, stable, TTFT statistics, parts and utilisations, engine and
        law. Rates at or above the stability limit have `stable` False and, in the stationary law, NaN times.
    """
    return results_table(sweep_results(scenario, rates, engine, horizon=horizon))


def results_table(results: Iterable[Result]) -> pd.DataFrame:
    """Results as one table, a row each."""
    import pandas as pd

    return pd.DataFrame([_row(result) for result in results])


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
