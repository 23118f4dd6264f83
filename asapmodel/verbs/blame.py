"""`blame`: where the TTFT of a scenario's requests comes from, at one rate."""

from asapmodel.attribution.blame import Blame, blame_of
from asapmodel.scenario import Scenario
from asapmodel.verbs.evaluate import check_rate, rate_of
from asapmodel.verbs.prepared import Prepared, prepare

__all__ = ["blame"]


def blame(scenario: Scenario, rate: float | None = None, prepared: Prepared | None = None) -> Blame:
    """Account for every second of every request of one run of the graph engine.

    Parameters
    ----------
    scenario : Scenario
        What to run.
    rate : float, optional
        Requests per second; default the workload's rate, or the recorded rate of a replayed trace.
    prepared : Prepared, optional
        Result of `prepare(scenario)`, to share it between rates.

    Returns
    -------
    Blame
        Of the same requests, and with the same TTFT, as ``evaluate(scenario, rate, engine="graph")``.

    Raises
    ------
    InputError
        If there is no rate, or the layout does not fit the devices.
    """
    if rate is not None:  # a mistake is found before the work
        check_rate(rate)
    ready = prepared or prepare(scenario)
    speed = rate_of(scenario, rate, ready)
    return blame_of(scenario.layout, scenario.policy, ready.costing.costs, ready.requests(speed))
