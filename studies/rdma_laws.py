"""From which network latency on does it bound an asynchronous system? Two readings of what a latency occupies."""

from dataclasses import dataclass

import numpy as np

from asapmodel.scenario import Scenario
from asapmodel.studies.overlap import backlog
from asapmodel.verbs.evaluate import prepare

__all__ = ["Laws", "laws_of"]


@dataclass(frozen=True, slots=True)
class Laws:
    """A layer of a mean batch without send latency, seconds, in a system of `groups` groups.

    Parameters
    ----------
    group_s : float
        G, on the group's one stream: attention, dispatch send, combine receive.
    lone_s : float
        S, all six phases.
    experts_s, send_s : float
        On the pool's computing and sending streams.
    groups : int
        D.

    Notes
    -----
    With a send latency tau a lone layer takes ``S + 2 tau``. *Delay*: messages are under way, streams go on. N batches
    of a group are paced by ``max(G, (S + 2 tau) / N)``, so latency binds from ``tau = (N G - S) / 2`` on. *Occupied*,
    as in the cost models: a stream stands still while it sends. The group takes ``G + tau``, which two batches can fill
    whatever tau where ``S <= 2 G``, and the pool's sending stream ``tau + send`` for each of D groups, which binds from
    ``tau = (G - D send) / (D - 1)`` on. Mean batches for all: upper bounds, for comparison.

    Examples
    --------
    >>> law = Laws(group_s=4e-3, lone_s=6e-3, experts_s=0.9e-3, send_s=0.25e-3, groups=4)
    >>> round(law.delay_limit(2), 9), round(law.delay_limit(3), 9), round(law.send_limit(), 9)
    (0.001, 0.003, 0.001)
    >>> round(law.rate(1e-3, occupied=True)), round(law.rate(1e-3, occupied=False))
    (800, 1000)
    """

    group_s: float
    lone_s: float
    experts_s: float
    send_s: float
    groups: int

    def delay_limit(self, batches: int) -> float:
        """Latency from which on so many batches a group cannot hide it, if it occupies nothing; s, may be negative."""
        return (batches * self.group_s - self.lone_s) / 2

    def send_limit(self) -> float:
        """Latency from which on the pool's sending stream binds, if latency occupies it; s, may be negative."""
        return (self.group_s - self.groups * self.send_s) / (self.groups - 1)

    def rate(self, latency: float, occupied: bool, batches: int = 2) -> float:
        """Upper bound of batches a layer time, 1/s."""
        own = latency if occupied else 0.0
        pace = (self.group_s + own) / self.groups
        lone = (self.lone_s + 2 * latency) / (batches * self.groups)
        return 1 / max(pace, lone, self.experts_s, self.send_s + own)


def laws_of(scenario: Scenario) -> Laws:
    """Phases in the mean over the batches of a backlog.

    Raises
    ------
    ValueError
        The scenario has streams on the attention devices, or a send latency.
    """
    profile = scenario.profile.value
    if scenario.policy.overlap_attention or profile.send_latency:
        raise ValueError(
            f"send latency {profile.send_latency:g} s, attention streams {scenario.policy.overlap_attention}: "
            "give the system without either"
        )
    ready = prepare(scenario)
    batches = backlog(ready)
    A, t1, t2, M, t4, t5 = (float(np.mean(one)) for one in ready.costing.costs.phases(batches.n, batches.w))
    return Laws(A + t1 + t5, A + t1 + t2 + M + t4 + t5, M, t4, scenario.layout.D)
