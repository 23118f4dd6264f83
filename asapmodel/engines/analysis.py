"""What the analytic engine is given and what it answers: the nouns its synchronous and asynchronous halves share."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy

__all__ = ["Analysis", "ByLength", "Point", "Problem", "Prompts", "TtftLaw"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Prompts(NamedTuple):
    """Equally likely prompts in ascending order of tokens to compute: length and cached prefix, tokens."""

    prompt: Ints
    cached: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A system and its traffic, without the rate.

    `gap_cv` is the coefficient of variation of the times between arrivals: 1 for Poisson arrivals, else independent
    gamma-distributed gaps.
    """

    layout: Layout
    policy: Policy
    costs: LayerCosts
    prompts: Prompts
    gap_cv: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class TtftLaw:
    """Distribution of TTFT on a grid: `cdf[k] = P(TTFT <= time[k])`, linear in between, 0 before `time[0]`.

    `mean` and `std` come with the law, since the grid is coarser than they are known.
    """

    time: Floats
    cdf: Floats
    mean: float
    std: float

    def quantile(self, share: float) -> float:
        """Time that a share of the requests stays within, seconds."""
        return float(np.interp(share, self.cdf, self.time))

    def within(self, time: float) -> float:
        """Share of the requests with a TTFT of at most `time` seconds."""
        return float(np.interp(time, self.time, self.cdf, left=0.0, right=1.0))


class ByLength(NamedTuple):
    """TTFT conditional on the prompt's tokens to compute, for classes of prompts with shares `weight`."""

    tokens: Floats
    weight: Floats
    mean_s: Floats
    p95_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One operating point; the parts of the mean add up to it, less `request_latency`."""

    rate_rps: float
    ttft: TtftLaw
    queueing_s: float
    kernel_s: float
    waiting_s: float
    utilisation: dict[str, float]
    batch_tokens_mean: float
    barrier_waste: float
    by_length: ByLength


class Analysis(Protocol):
    """A problem with everything computed that does not depend on the rate."""

    @property
    def saturation_rps(self) -> float:
        """Stability limit, requests/s."""

    def at(self, rate: float) -> Point:
        """Stationary answer at a rate; UnstableError (`solvers.queue_errors`) at or above the stability limit."""
