"""`compare`: several scenarios under the same workload and objective, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asapmodel.errors import InputError
from asapmodel.result import Capacity, Result
from asapmodel.scenario import Scenario
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import answer, check_rate, prepare
from asapmodel.verbs.prepared import DEFAULT_ENGINE, check_engine, check_horizon

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "check_same_workload", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Capacities, and results at common rates, in the order of the scenarios."""

    capacities: tuple[Capacity, ...]
    results: tuple[tuple[Result, ...], ...]
    """Per rate, one result per scenario."""

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "capacity": [one.to_dict() for one in self.capacities],
            "evaluate": [[one.to_dict() for one in row] for row in self.results],
        }

    def table(self) -> pd.DataFrame:
        """One row per scenario: devices, SLO throughput and its interval, per device, mean TTFT at each rate."""
        import pandas as pd

        rows = []
        for k, one in enumerate(self.capacities):
            row: dict[str, Any] = {
                "scenario": one.scenario,
                "system": one.system,
                "devices": one.devices,
                "slo_throughput_rps": one.slo_throughput_rps,
                "interval_low_rps": one.interval_rps[0] if one.interval_rps else None,
                "interval_high_rps": one.interval_rps[1] if one.interval_rps else None,
                "per_device_rps": one.slo_throughput_rps / one.devices,
                "gain": one.slo_throughput_rps / self.capacities[0].slo_throughput_rps,
                "stability_limit_rps": one.stability_limit_rps,
                "limited_by": one.limited_by,
                "bottleneck": one.bottleneck,
            }
            for results in self.results:
                row[f"ttft_mean_s_at_{results[k].rate_rps:g}"] = results[k].ttft.mean_s
            rows.append(row)
        return pd.DataFrame(rows)


def check_same_workload(scenarios: Sequence[Scenario]) -> None:
    """Refuse to compare different traffic or objectives.

    Raises
    ------
    InputError
        Names the first scenario that differs.
    """
    first = scenarios[0]
    for other in scenarios[1:]:
        for table in ("workload", "slo"):
            if getattr(other, table) != getattr(first, table):
                remedy = f"give both the same [{table}], or compare them one by one"
                raise InputError(other.source, table, f"differs from that of {first.source}", remedy)


def compare(
    scenarios: Sequence[Scenario],
    rates: Sequence[float] = (),
    engine: str = DEFAULT_ENGINE,
    replications: int | None = None,
    progress: Callable[[str], None] | None = None,
    horizon: float | str | None = None,
) -> Comparison:
    """Compare scenarios under the same traffic; with the graph engine on the same request sequences.

    Parameters
    ----------
    scenarios : sequence of Scenario
        At least one; same `[workload]` and `[slo]`.
    rates : sequence of float
        Rates to evaluate besides the SLO throughput; none by default. Results are as those of `sweep`: NaN where a
        system has no stationary law.
    engine, replications, progress, horizon
        See `capacity`.

    Raises
    ------
    InputError
        If workloads or objectives differ.
    NoAnswer
        If one has no SLO throughput.
    """
    if not scenarios:
        raise InputError("compare", "", "no scenario given", "name at least one")
    check_same_workload(scenarios)
    check_engine(engine)
    speeds = [check_rate(rate) for rate in rates]
    lengths = [check_horizon(scenario, horizon, engine) for scenario in scenarios]
    prepared = [prepare(scenario) for scenario in scenarios]
    capacities = []
    for scenario, ready in zip(scenarios, prepared, strict=True):
        if progress is not None:
            progress(f"SLO throughput of {scenario.name}")
        capacities.append(capacity(scenario, engine, replications, horizon=horizon, prepared=ready))
    asked = list(zip(scenarios, prepared, lengths, strict=True))
    results = tuple(tuple(answer(one, rate, engine, ready, length) for one, ready, length in asked) for rate in speeds)
    return Comparison(tuple(capacities), results)
