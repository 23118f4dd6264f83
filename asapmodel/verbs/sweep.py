"""`sweep`: one scenario over a list of rates, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from asapmodel.result import Result
from asapmodel.scenario import Scenario
from asapmodel.verbs.evaluate import evaluate, prepare

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["results_table", "sweep", "sweep_results"]


def sweep_results(
    scenario: Scenario,
    rates: Iterable[float],
    engine: str = "graph",
    progress: Callable[[str], None] | None = None,
) -> list[Result]:
    """Evaluate a scenario at each rate, with common random numbers; records are kept."""
    ready = prepare(scenario)
    out = []
    for rate in rates:
        out.append(evaluate(scenario, rate, engine, ready))
        if progress is not None:
            progress(f"{scenario.name} at {rate:g} requests/s")
    return out


def sweep(scenario: Scenario, rates: Iterable[float], engine: str = "graph") -> pd.DataFrame:
    """Evaluate a scenario at each rate.

    Parameters
    ----------
    scenario : Scenario
        What to evaluate.
    rates : iterable of float
        Requests per second.
    engine : str
        See `evaluate`.

    Returns
    -------
    pandas.DataFrame
        One row per rate: scenario, system, rate, requests, stable, TTFT statistics, parts and utilisations.
    """
    return results_table(sweep_results(scenario, rates, engine))


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
    }
