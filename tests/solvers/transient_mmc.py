"""M/M/c from an empty start, exactly: by uniformisation. What approximations of finite runs are judged by."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma, poisson

Floats = NDArray[np.float64]


def birth_death(rate: float, service: float, servers: int, until: float, states: int) -> tuple[Floats, Floats]:
    """Law of the number in system at a time, and its mean over the time until then."""
    events = rate + servers * service
    down = service * np.minimum(np.arange(states), servers) / events
    up = np.full(states, rate / events)
    up[-1] = 0.0
    stay = 1 - up - down
    jumps = int(events * until + 10 * np.sqrt(events * until) + 30)
    weight = poisson.pmf(np.arange(jumps), events * until)
    rest = poisson.sf(np.arange(jumps), events * until) / (events * until)
    law = np.zeros(states)
    law[0] = 1.0
    at, average = np.zeros(states), np.zeros(states)
    for k in range(jumps):
        at += weight[k] * law
        average += rest[k] * law
        new = stay * law
        new[1:] += up[:-1] * law[:-1]
        new[:-1] += down[1:] * law[1:]
        law = new
    return at, average


def wait_tail(law: Floats, service: float, servers: int, time: Floats) -> Floats:
    """P(wait > y) of an arrival that finds the number in system distributed as `law`."""
    ahead = np.arange(servers, len(law)) - servers + 1
    return np.asarray(law[servers:] @ gamma.sf(servers * service * time[None, :], ahead[:, None]), dtype=np.float64)


def stationary_wait_tail(rate: float, service: float, servers: int, time: Floats) -> Floats:
    """P(wait > y) of M/M/c: Erlang's C times an exponential."""
    load = rate / (servers * service)
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = servers * load * blocking / (k + servers * load * blocking)
    waits = blocking / (1 - load * (1 - blocking))
    return np.asarray(waits * np.exp(-(servers * service - rate) * time), dtype=np.float64)
