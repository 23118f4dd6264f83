"""Copies of experts: what holding every routed expert several times costs and gains.

With c copies of every routed expert, a token goes to one copy of each of its K experts, evenly. Seen from the devices
that is a model of `c E_total` experts that a token visits K of: all laws of experts, memory and imbalance hold with
`E_total` replaced by `c E_total`, and v unchanged.
"""

from dataclasses import replace

from asapmodel.models.parameters import Architecture

__all__ = ["with_copies"]


def with_copies(architecture: Architecture, copies: int) -> Architecture:
    """The architecture as the devices see it when each routed expert is held `copies` times.

    Parameters
    ----------
    architecture : Architecture
        The model.
    copies : int
        c >= 1.

    Returns
    -------
    Architecture
        With `c E_total` routed experts.

    Raises
    ------
    ValueError
        copies < 1.

    Notes
    -----
    Weights, padding, metadata and the read of weights count physical experts, each of which a token visits with
    probability ``K / (c E_total)``: exact. Imbalance: a copy has 1/c of its expert's load, mean and deviation, so its
    coefficient of variation is v again, and a device that holds ``c r`` independent ones has a relative deviation of
    ``v / sqrt(c r)``: `chi - 1` falls with the square root of the copies. Copies of one expert carry the same load, so
    devices that share an expert rise and fall together: then their largest is smaller than that of independent ones
    (Slepian's inequality), and chi is an upper bound. If all copies of an expert lie on one device nothing is gained;
    a placement puts them on different ones. Copies of the hottest experts alone gain more for the same memory; how much
    depends on the law of their loads, of which the profile knows only v.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> from asapmodel.models.imbalance import imbalance
    >>> architecture, device, profile, split = paper_deployment()
    >>> uneven = replace(profile, expert_load_cv=0.4)
    >>> [round(imbalance(with_copies(architecture, c), device, uneven, split), 4) for c in (1, 2, 4)]
    [1.1766, 1.1249, 1.0883]
    """
    if copies < 1:
        raise ValueError(f"copies must be at least 1, got {copies}")
    return replace(architecture, routed_experts=copies * architecture.routed_experts)
