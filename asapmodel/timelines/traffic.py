"""Requests in a trace: an instant for each arrival, and a counter of those that wait for a batch."""

from collections.abc import Iterator

import numpy as np

from asapmodel.systems.arrays import Outcome, Requests
from asapmodel.timelines.chrome import Event, counter_event, instant_event
from asapmodel.timelines.spans import Track

__all__ = ["ARRIVALS", "request_events"]

ARRIVALS = Track("requests", "arrivals")


def request_events(requests: Requests, outcome: Outcome, first: float, last: float, thread: Event) -> Iterator[Event]:
    """What happens to the queue from `first` to `last`, seconds.

    Parameters
    ----------
    requests, outcome
        In order of arrival; a request waits from its arrival until its first batch is formed.
    first, last : float
        Seconds.
    thread : dict
        Process and thread numbers of `ARRIVALS`.

    Yields
    ------
    dict
        Arrivals with number and tokens (``"i"``), and the counter (``"C"``) at `first` and where it changes.
    """
    arrival, start = requests.arrival, outcome.start
    for k in np.flatnonzero((arrival >= first) & (arrival < last)).tolist():
        args = {"request": k, "prompt_tokens": int(requests.prompt[k]), "cached_tokens": int(requests.cached[k])}
        yield instant_event("arrival", float(arrival[k]), args, thread)
    left = np.sort(start)
    moments = np.unique(np.concatenate([[first], arrival, start]))
    moments = moments[(moments >= first) & (moments < last)]
    waiting = np.searchsorted(arrival, moments, "right") - np.searchsorted(left, moments, "right")
    for moment, value in zip(moments.tolist(), waiting.tolist(), strict=True):
        yield counter_event("waiting requests", moment, value, thread)
