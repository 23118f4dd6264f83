"""What the verbs return: frozen records of plain floats, arrays and tables that say which engine made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from asapmodel.engines.analysis import ByLength, TtftLaw

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
    """Time to first token over all requests, seconds.

    `mean_interval_s` is a 95 % interval of the graph engine's mean by batch means; the queueing engine has no noise,
    hence None.
    """

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
    """The answer of one engine for one scenario at one rate.

    `law` says what the numbers are of: ``"stationary"``, a system that has run forever, or ``"run of 300 s"``. A
    stationary law has no number of requests or batches and no duration: these are None. Where no stationary law
    exists (`stable` is False; only `sweep`, `compare` and `grid` hand such a result out) all times are NaN.
    `distribution` is the law of TTFT, `by_length` TTFT by tokens to compute, `records` are the graph engine's requests.
    """

    engine: str
    scenario: str
    system: str
    rate_rps: float
    law: str
    requests: int | None
    duration_s: float | None
    stable: bool
    saturation_rps: float
    ttft: Ttft
    slo: Slo
    parts: Parts
    utilisation: dict[str, float]
    bottleneck: str
    batches: int | None
    batch_tokens_mean: float
    barrier_waste: float
    assumptions: tuple[Assumption, ...] = ()
    by_length: ByLength | None = field(default=None, repr=False, compare=False)
    distribution: TtftLaw | None = field(default=None, repr=False, compare=False)
    records: Records | None = field(default=None, repr=False, compare=False)

    def to_dict(self, distribution: bool = False) -> dict[str, Any]:
        """Return the object that ``--json`` prints: plain numbers, no records.

        Parameters
        ----------
        distribution : bool
            Whether the distribution of TTFT is in it, as `time_s` and `cdf`.
        """
        from dataclasses import asdict, replace

        out = asdict(replace(self, by_length=None, distribution=None, records=None))
        del out["records"], out["distribution"]
        columns = [] if self.by_length is None else [column.tolist() for column in self.by_length]
        names = ("tokens", "share", "mean_s", "p95_s")
        out["by_length"] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        if distribution:
            law = self.distribution
            out["distribution"] = law and {"time_s": law.time.tolist(), "cdf": law.cdf.tolist()}
        return out

    def length_table(self) -> pd.DataFrame:
        """TTFT by tokens to compute: mean tokens of a class, its share of the requests, their mean and p95."""
        import pandas as pd

        names = ["tokens", "share", "mean_s", "p95_s"]
        return pd.DataFrame(dict(zip(names, self.by_length, strict=True)) if self.by_length else {}, columns=names)


@dataclass(frozen=True, slots=True)
class Capacity:
    """The SLO throughput of one scenario.

    `bracket_rps` holds the highest rate seen to meet the objective and the lowest seen to miss it, with the graph
    engine pooled over the replications. `interval_rps` is a 95 % confidence interval over replications (None with fewer
    than two, for a replayed trace, of which there is only one, and with the queueing engine, which draws nothing and
    has 0 replications), and `run_std_rps` how much the SLO throughput of a single run of that length scatters.
    `stability_limit_rps` is the rate at which a backlogged system serves. `limited_by` is a resource, or
    ``"stability"`` where the stationary objective holds nearly up to that limit; `bottleneck` always is the resource.
    `law` says what the statistic is of, as in `Result`. `points` are the evaluated rates with the statistic in seconds.
    """

    engine: str
    scenario: str
    system: str
    law: str
    slo_throughput_rps: float
    bracket_rps: tuple[float, float]
    interval_rps: tuple[float, float] | None
    run_std_rps: float | None
    replications: int
    stability_limit_rps: float
    limited_by: str
    bottleneck: str
    slo_ttft_s: float
    statistic: str
    devices: int
    points: tuple[tuple[float, float], ...]
    assumptions: tuple[Assumption, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        from dataclasses import asdict

        return asdict(self)
