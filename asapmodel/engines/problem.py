"""From a scenario to what the analytic engine is given: layout, policy, costs, and equally likely prompts.

The law of prompt lengths becomes a fixed quadrature: its quantiles at the middles of equally likely cells, whole
tokens. Rows of a recorded trace, which carry cached prefixes, are sorted by tokens to compute and taken at regular
ranks. No random numbers.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.costing import Costing, layer_costs
from asapmodel.engines.analysis import Problem, Prompts
from asapmodel.models.arrivals import counts_index_of_dispersion
from asapmodel.models.lengths import token_bounds
from asapmodel.models.trace_base import Trace
from asapmodel.scenario import Scenario
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.workload import length_law, recorded_trace

__all__ = ["POINTS", "gap_cv_of", "problem_of", "prompts_of"]

POINTS = 1024
"""Equally likely prompts that stand for a law; mean within 0.05 % and mean square within 0.3 % of the law's."""

_WINDOWS = 30  # of a replayed trace, for its index of dispersion: standard error about 25 %

Ints = NDArray[np.int64]


def problem_of(scenario: Scenario, costing: Costing | None = None) -> Problem:
    """Everything of a scenario but the rate.

    Parameters
    ----------
    scenario : Scenario
        What to analyse.
    costing : Costing, optional
        Result of `layer_costs(scenario)`, to share it.

    Raises
    ------
    InputError
        If the layout does not fit the memory of the devices, or a trace cannot be read.
    """
    costs = (costing or layer_costs(scenario)).costs
    workload = scenario.workload
    return Problem(scenario.layout, scenario.policy, costs, prompts_of(workload), gap_cv_of(workload))


def prompts_of(workload: WorkloadTable, points: int = POINTS) -> Prompts:
    """Equally likely prompts of a workload, ascending in tokens to compute.

    Each stands for one of `points` equally likely cells: the root mean square of the law in its cell (16 quantiles),
    so that the mean square of the law is kept, and its mean within 0.05 %. Where prefixes are cached see `_rows`.
    """
    trace = recorded_trace(workload)
    if trace is not None and np.any(trace.cached_tokens):
        return _rows(trace, points)
    law = length_law(workload)
    fewest, most = token_bounds(law)
    cells = law.quantile((np.arange(16 * points) + 0.5) / (16 * points)).reshape(points, 16)
    values = np.clip(np.rint(np.sqrt(np.mean(cells**2, axis=1))), fewest, most).astype(np.int64)
    return Prompts(values, np.zeros(points, dtype=np.int64))


def _rows(trace: Trace, points: int) -> Prompts:
    """One recorded row from each cell of equally many, cells by tokens to compute.

    Within a cell the rows are sorted by prompt, and the one at a rank of the van der Corput sequence is taken: a
    low-discrepancy sample of both coordinates.
    """
    prompt, cached = np.asarray(trace.prompt_tokens), np.asarray(trace.cached_tokens)
    order = np.lexsort((prompt, prompt - cached))
    edges = np.rint(np.arange(points + 1) / points * len(order)).astype(np.int64)
    bits = max(points - 1, 1).bit_length()
    chosen = []
    for cell in range(points):
        low, high = min(int(edges[cell]), len(order) - 1), max(int(edges[cell + 1]), int(edges[cell]) + 1)
        inside = order[low:high][np.argsort(prompt[order[low:high]], kind="stable")]
        share = int(f"{cell:0{bits}b}"[::-1], 2) / 2**bits
        chosen.append(inside[int(share * len(inside))])
    return Prompts(prompt[chosen].astype(np.int64), cached[chosen].astype(np.int64))


def gap_cv_of(workload: WorkloadTable) -> float:
    """Coefficient of variation of the gaps between arrivals.

    Poisson 1, gamma its own. For a replayed trace the square root of its index of dispersion for counts in windows of
    a thirtieth of its length, at least 1 request each: the renewal flow of equal asymptotic variability (an
    approximation: it has the trace's burstiness at the longest scale, and loses its correlations at shorter ones).
    """
    if workload.trace is None:
        return 1.0 if workload.cv is None else float(workload.cv)
    trace = recorded_trace(workload)
    assert trace is not None
    times = np.asarray(trace.arrival_s) - trace.arrival_s[0]
    if len(times) < 2 * _WINDOWS or times[-1] <= 0:
        return 1.0
    return float(np.sqrt(counts_index_of_dispersion(times, float(times[-1]) / _WINDOWS)))
