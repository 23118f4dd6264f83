"""Bounds of the throughput of a backlog, whatever the order of service, and which constraint is the tightest.

A bound holds for the batches given: `throughput_bounds` treats them as a population, equally likely, in the order in
which they are formed. Proofs are in `docs/background/event-graphs.md`, and in short at the functions.
"""

from dataclasses import dataclass

from asapmodel.circuits.batches import Batches
from asapmodel.circuits.follow import COMBINE_REGION, DISPATCH_REGION
from asapmodel.circuits.free_bounds import IN_FLIGHT, STAY, free_lower, free_upper
from asapmodel.circuits.lockstep_bounds import ATTENTION, EXPERTS, ITERATION, TRANSFERS, lockstep_lower, lockstep_upper
from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy

__all__ = ["JOINT", "REGIMES", "Bounds", "Regime", "regime_of", "throughput_bounds"]

REGIMES = {
    "attention stream of the group": "attention-bound",
    "attention compute": "attention-bound",
    ATTENTION: "attention-bound",
    "stream of the MoE devices": "MoE-bound",
    "MoE compute": "MoE-bound",
    EXPERTS: "MoE-bound",
    "sending stream of the group": "transfer-bound",
    "receiving stream of the group": "transfer-bound",
    "sending stream of the MoE devices": "transfer-bound",
    "receiving stream of the MoE devices": "transfer-bound",
    DISPATCH_REGION: "transfer-bound",
    COMBINE_REGION: "transfer-bound",
    TRANSFERS: "transfer-bound",
    IN_FLIGHT: "latency-bound",
}
"""The regime that each constraint stands for. A merged stream is its compute's, whatever else it does."""

JOINT = {"asap": STAY, "sync": ITERATION}
"""By kind of system the bound that combines the constraints of a group, or the parts of an iteration; no regime."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the saturation throughput.

    Attributes
    ----------
    upper : dict of str to float
        Batches/s by constraint; every one is a bound.
    lower : float
        Batches/s that the system certainly reaches in the long run.
    filling_s : float
        A run of these batches is over `batches / lower + filling_s` seconds after the first starts, at the latest.
    tokens, prompts : float
        Means of a batch, to turn rates into tokens/s and prompts/s.
    """

    upper: dict[str, float]
    lower: float
    filling_s: float
    tokens: float
    prompts: float

    @property
    def upper_batches(self) -> float:
        """The tightest upper bound, batches/s."""
        return min(self.upper.values())

    @property
    def prompt_rates(self) -> tuple[float, float]:
        """Lower and upper bound in prompts/s."""
        return self.prompts * self.lower, self.prompts * self.upper_batches

    @property
    def token_rates(self) -> tuple[float, float]:
        """Lower and upper bound in tokens/s."""
        return self.tokens * self.lower, self.tokens * self.upper_batches


@dataclass(frozen=True, slots=True)
class Regime:
    """What bounds a system: the constraint with the smallest upper bound, batches/s, and the next regime after it.

    `margin` is the next regime's bound over this one's, at least 1: how much the constraint must be relieved until
    another takes over.
    """

    name: str
    constraint: str
    upper: float
    next_name: str
    margin: float


def throughput_bounds(layout: Layout, policy: Policy, costs: LayerCosts, batches: Batches) -> Bounds:
    """Upper and lower bounds of the throughput of a backlog.

    Parameters
    ----------
    layout, policy, costs
        Either system.
    batches : Batches
        Asynchronous: as `form_batches` gives them. Synchronous: as `form_iterations` does; how they are grouped into
        iterations is not used (`lockstep_bounds.iteration_times` is exact for that).

    Examples
    --------
    >>> import numpy as np
    >>> from asapmodel.costs import Affine, Plateau, Quadratic
    >>> none = Affine(0.0, 0.0)
    >>> costs = LayerCosts(Quadratic(3e-3, 0.0, 0.0), none, none, Plateau(1e-3, 0.0), none, none, layers=10)
    >>> equal = Batches(np.full(100, 2048.0), np.zeros(100), np.zeros(100, dtype=bool), 100)
    >>> found = throughput_bounds(Layout("asap", 4, 1, 1), Policy(pairing="rolling"), costs, equal)
    >>> round(found.upper["attention stream of the group"]), round(found.upper["MoE compute"]), round(found.lower)
    (133, 100, 57)
    >>> regime_of(found).name, round(regime_of(found).margin, 3)
    ('MoE-bound', 1.333)
    """
    if layout.kind == "sync":
        upper, lower, filling = lockstep_upper(layout, costs, batches), lockstep_lower(layout, costs, batches), 0.0
    else:
        upper = free_upper(layout, policy, costs, batches)
        lower, filling = free_lower(layout, policy, costs, batches)
    return Bounds(upper, lower, filling, float(batches.n.mean()), batches.prompts / batches.n.size)


def regime_of(bounds: Bounds) -> Regime:
    """Name the constraint with the smallest upper bound (joint bounds apart), and the distance to the next regime."""
    best: dict[str, tuple[float, str]] = {}
    for constraint, rate in bounds.upper.items():
        if constraint not in JOINT.values():
            name = REGIMES[constraint]
            best[name] = min(best.get(name, (rate, constraint)), (rate, constraint))
    (rate, constraint, name), (next_rate, _, next_name) = sorted((*pair, name) for name, pair in best.items())[:2]
    return Regime(name, constraint, rate, next_name, next_rate / rate)
