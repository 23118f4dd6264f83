"""What the verbs return: frozen records of plain floats, arrays and tables that say which engine made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Assumption", "Capacity", "Parts", "Records", "Result", "Slo", "Ttft"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Assumption:
    """One number or choice an answer rests on. `kind`: stated, measured, fitted, assumed, derived or override."""

    name: str
    value: str
    unit: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """One entry per request, in arrival order; seconds and tokens. `kernel_s` is the request's own batches alone."""

    arrival_s: FloatArray
    prompt_tokens: IntArray
    cached_tokens: IntArray
    start_s: FloatArray
    end_s: FloatArray
    ttft_s: FloatArray
    kernel_s: FloatArray

    def table(self) -> pd.DataFrame:
        """Return the records as a table with the columns of ``--requests``."""
        import pandas as pd

        names = ("arrival_s", "prompt_tokens", "cached_tokens", "start_s", "end_s", "ttft_s")
        return pd.DataFrame({name: getattr(self, name) for name in names})


@dataclass(frozen=True, slots=True)
class Ttft:
    """Time to first token over all requests, seconds; `mean_interval_s` is a 95 % interval by batch means."""

    mean_s: float
    std_s: float
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    mean_interval_s: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Slo:
    """The objective and whether it is met; `attainment` is the share of requests within `ttft_s`."""

    ttft_s: float
    statistic: str
    value_s: float
    met: bool
    attainment: float


@dataclass(frozen=True, slots=True)
class Parts:
    """Mean TTFT split: waiting for a batch, own computation and transfers alone, waiting inside."""

    queueing_s: float
    kernel_s: float
    waiting_s: float


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of one engine for one scenario at one rate."""

    engine: str
    scenario: str
    system: str
    rate_rps: float
    requests: int
    duration_s: float
    stable: bool
    saturation_rps: float
    ttft: Ttft
    slo: Slo
    parts: Parts
    utilisation: dict[str, float]
    bottleneck: str
    batches: int
    batch_tokens_mean: float
    barrier_waste: float
    assumptions: tuple[Assumption, ...] = ()
    records: Records | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints: plain numbers, no records."""
        from dataclasses import asdict, replace

        out = asdict(replace(self, records=None))
        out.pop("records")
        return out


@dataclass(frozen=True, slots=True)
class Capacity:
    """The SLO throughput of one scenario.

    `bracket_rps` holds the highest rate seen to meet the objective and the lowest seen to miss it, pooled over the
    replications. `interval_rps` is a 95 % confidence interval over replications (None with fewer than two, and for a
    replayed trace, of which there is only one), and `run_std_rps` how much the SLO throughput of a single run of that
    length scatters. `stability_limit_rps` is the rate at which a backlogged system serves. `points` are the evaluated
    rates with the pooled statistic in seconds.
    """

    engine: str
    scenario: str
    system: str
    slo_throughput_rps: float
    bracket_rps: tuple[float, float]
    interval_rps: tuple[float, float] | None
    run_std_rps: float | None
    replications: int
    stability_limit_rps: float
    limited_by: str
    slo_ttft_s: float
    statistic: str
    devices: int
    points: tuple[tuple[float, float], ...]
    assumptions: tuple[Assumption, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        from dataclasses import asdict

        return asdict(self)
