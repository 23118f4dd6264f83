"""Costs without tokens in them, in binary fractions of a second: times come out to the bit."""

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic

__all__ = ["flat_costs"]


def flat_costs(
    attention: float = 4.0,
    send: float = 1.0,
    receive: float = 0.5,
    experts: float = 2.0,
    combine: float = 0.25,
    take: float = 0.125,
    host: float = 0.0,
    step: float = 0.0,
    latency: float = 0.0,
) -> LayerCosts:
    """One layer whose phases take the given times, whatever the batch."""
    return LayerCosts(
        attention=Quadratic(attention, 0.0, 0.0),
        dispatch_send=Affine(send, 0.0),
        dispatch_recv=Affine(receive, 0.0),
        moe=Plateau(experts, 0.0),
        combine_send=Affine(combine, 0.0),
        combine_recv=Affine(take, 0.0),
        host_dispatch=host,
        layers=1,
        step_overhead=step,
        request_latency=latency,
    )
