"""Blame: how the TTFT of each request of one run splits, exactly, and where the devices' time went.

Built on the graph engine's rules: what is split is the run that `asapmodel.engines.graph.run` computes. Components are
explained in `asapmodel.attribution.components`, the accounts in docs/background/blame.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from asapmodel.attribution.components import FREE, FREE_QUEUES, LOCKSTEP, LOCKSTEP_QUEUES, Component, members
from asapmodel.attribution.critical_path import PATH_COLUMNS, critical_paths
from asapmodel.attribution.free_parts import Batches, free_components, free_devices
from asapmodel.attribution.free_trace import trace_free
from asapmodel.attribution.lockstep_parts import lockstep_components, lockstep_devices, straggler_waste
from asapmodel.attribution.lockstep_queues import lockstep_queue_components, trace_lockstep_queues
from asapmodel.attribution.lockstep_trace import LockstepTrace, trace_lockstep
from asapmodel.attribution.step_parts import free_queue_components
from asapmodel.attribution.step_path import step_paths
from asapmodel.attribution.step_trace import trace_steps
from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import check_policy, is_vllm_like
from asapmodel.result import Parts
from asapmodel.systems.arrays import Requests

__all__ = ["LENGTH_CLASSES", "Blame", "blame_of"]

Floats = NDArray[np.float64]

LENGTH_CLASSES = (512, 1024, 2048, 4096, 8192, 16384, 32768)
"""Upper ends of the classes of `Blame.by_length`, tokens to compute."""


@dataclass(frozen=True, slots=True, eq=False)
class Blame:
    """The account of one run; seconds.

    Attributes
    ----------
    system : str
        ``"sync"`` or ``"asap"``.
    requests : Requests
        What arrived, in arrival order.
    ttft_s : array, shape (requests,)
    vocabulary : dict of Component
        Part and meaning of each component of this system.
    components : dict of arrays, shape (requests,)
        By name; for every request they add up to `ttft_s`.
    devices : pandas.DataFrame
        A row per stream (synchronous: one row, the devices), a column per state; rows add up to the length of the run
        from the first arrival. See `free_devices` and `lockstep_devices`.
    straggler_waste : float
        Share of attention time lost at barriers; 0 without barriers.
    paths : pandas.DataFrame or None
        Critical path of each request by owner and phase, columns `PATH_COLUMNS`; rows add up to
        `ttft_s - request_latency`. None in lockstep, where all wait for the slowest group.
    """

    system: str
    requests: Requests
    ttft_s: Floats
    vocabulary: dict[str, Component]
    components: dict[str, Floats]
    devices: pd.DataFrame
    straggler_waste: float
    paths: pd.DataFrame | None

    def table(self) -> pd.DataFrame:
        """One row per request: arrival, tokens, TTFT, then its components."""
        head = {
            "arrival_s": self.requests.arrival,
            "prompt_tokens": self.requests.prompt,
            "cached_tokens": self.requests.cached,
            "ttft_s": self.ttft_s,
        }
        return pd.DataFrame(head | self.components)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints: means over the requests, and the devices' time."""
        return {
            "system": self.system,
            "requests": len(self.ttft_s),
            "ttft_mean_s": float(self.ttft_s.mean()),
            "components_s": {str(name): float(value) for name, value in self.means().items()},
            "by_length": self.by_length().to_dict("records"),
            "paths_s": None if self.paths is None else {str(k): float(v) for k, v in self.paths.mean().items()},
            "devices_s": {str(name): dict(row) for name, row in self.devices.to_dict("index").items()},
            "straggler_waste": self.straggler_waste,
        }

    def means(self) -> pd.Series:
        """Mean of each component over the requests; they add up to the mean TTFT."""
        return pd.DataFrame(self.components).mean()

    def parts(self) -> Parts:
        """Return the means of queueing, kernel and waiting, as the graph engine's result has them.

        Where steps are cut in halves, kernel and waiting differ from the engine's (not their sum): own halves overlap
        otherwise beside others than alone. See docs/background/blame.md.
        """
        means = self.means()
        queueing, kernel, waiting = (
            float(means[members(self.vocabulary, part)].sum()) for part in ("queueing", "kernel", "waiting")
        )
        return Parts(queueing, kernel, waiting)

    def by_length(self, classes: Sequence[int] = LENGTH_CLASSES) -> pd.DataFrame:
        """Mean components by tokens to compute.

        Parameters
        ----------
        classes : sequence of int
            Upper ends of the classes, in rising order; longer prompts form one more class.

        Returns
        -------
        pandas.DataFrame
            A row per class with requests: mean tokens, share of the requests, mean TTFT, mean components.

        Raises
        ------
        ValueError
            If the ends do not rise.
        """
        ends = np.asarray(classes)
        if ends.ndim != 1 or np.any(np.diff(ends) <= 0):
            raise ValueError(f"classes are {tuple(classes)}: give upper ends in tokens, in rising order")
        tokens = self.requests.prompt - self.requests.cached
        table = pd.DataFrame({"tokens": tokens, "share": 1.0 / len(tokens), "ttft_s": self.ttft_s} | self.components)
        groups = table.groupby(np.searchsorted(ends, tokens))
        out = groups.mean()
        out["share"] = groups["share"].sum()
        return out.reset_index(drop=True)


def blame_of(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> Blame:
    """Run a request sequence and account for every second of every request.

    Parameters
    ----------
    layout, policy, costs
        The system.
    requests : Requests
        In arrival order (see `asapmodel.systems.arrays.make_requests`), at least one.

    Returns
    -------
    Blame
        Exact up to rounding, a few units in the last place of the run's length.

    Raises
    ------
    ValueError
        If there is no request, or the policy contradicts itself.

    Examples
    --------
    Two prompts at once on one group of a synchronous system that takes one prompt an iteration:

    >>> import numpy as np
    >>> from asapmodel.costs import Affine, Plateau, Quadratic
    >>> from asapmodel.systems.arrays import make_requests
    >>> free = Affine(0.0, 0.0)
    >>> costs = LayerCosts(Quadratic(1.0, 0.0, 0.0), free, free, Plateau(0.5, 0.0), free, free, layers=1)
    >>> policy = Policy(max_batch_tokens=100, batch_window=0.0)
    >>> requests = make_requests(np.zeros(2), np.array([100, 100]))
    >>> table = blame_of(Layout("sync", 1, 1, 1), policy, costs, requests).table()
    >>> table[["ttft_s", "own_queue", "attention", "experts"]].values.tolist()
    [[1.5, 0.0, 1.0, 0.5], [3.0, 1.5, 1.0, 0.5]]
    """
    check_policy(layout.kind, policy)
    if len(requests.arrival) == 0:
        raise ValueError("requests are 0: give at least one")
    if layout.kind == "sync":
        account = _blame_lockstep_queues if is_vllm_like(policy) else _blame_lockstep
    else:
        account = _blame_free_queues if policy.queue_per_group else _blame_free
    return account(layout, policy, costs, requests)


def _blame_free(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> Blame:
    trace = trace_free(layout, policy, costs, requests)
    batches = Batches(trace.release.group, trace.release.launch, trace.end[trace.release.tasks[:, -1]])
    return Blame(
        system="asap",
        requests=requests,
        ttft_s=trace.done.outcome.end - requests.arrival + costs.request_latency,
        vocabulary=FREE,
        components=free_components(layout, policy, costs, requests, trace),
        devices=free_devices(layout, policy, costs, requests, trace, batches),
        straggler_waste=0.0,
        paths=pd.DataFrame(critical_paths(trace, requests), columns=list(PATH_COLUMNS)),
    )


def _blame_free_queues(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> Blame:
    trace = trace_steps(layout, policy, costs, requests)
    batches = Batches(trace.group, trace.launch, trace.step_end)
    return Blame(
        system="asap",
        requests=requests,
        ttft_s=trace.done.outcome.end - requests.arrival + costs.request_latency,
        vocabulary=FREE_QUEUES,
        components=free_queue_components(layout, policy, costs, requests, trace),
        devices=free_devices(layout, policy, costs, requests, trace, batches),
        straggler_waste=0.0,
        paths=pd.DataFrame(step_paths(trace, requests), columns=list(PATH_COLUMNS)),
    )


def _blame_lockstep(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> Blame:
    trace = trace_lockstep(layout, policy, costs, requests)
    return _of_iterations(LOCKSTEP, lockstep_components(costs, requests, trace), costs, requests, trace)


def _blame_lockstep_queues(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> Blame:
    trace = trace_lockstep_queues(layout, policy, costs, requests)
    components = lockstep_queue_components(policy, costs, requests, trace)
    return _of_iterations(LOCKSTEP_QUEUES, components, costs, requests, trace.run)


def _of_iterations(
    vocabulary: dict[str, Component],
    components: dict[str, Floats],
    costs: LayerCosts,
    requests: Requests,
    trace: LockstepTrace,
) -> Blame:
    return Blame(
        system="sync",
        requests=requests,
        ttft_s=trace.end[trace.last - 1] - requests.arrival + costs.request_latency,
        vocabulary=vocabulary,
        components=components,
        devices=lockstep_devices(requests, trace),
        straggler_waste=straggler_waste(trace.times),
        paths=None,
    )
