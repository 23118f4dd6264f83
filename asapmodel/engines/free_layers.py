"""Fewer layers that stand for many: the reduced asynchronous system that the queueing engine walks through.

A batch passes dozens of equal layers. What it loses to others in one of them it does not know in the next, so over its
stay the losses average out, and its stay is nearly a function of who else is active: few layers, each as long as many,
give the same stays. With `l` layers for `L` every duration of a layer is multiplied by `L / l`; a lone batch takes
exactly as long as before, resources are asked for exactly as much work, and 96 task completions replace 366. What is
lost is grain: a batch joins, or starts behind a partner, at a boundary of a layer, which is now longer.

Dense layers and the step's overhead come before and stay as they are. (Spread over the MoE layers they would be the
same work, but the stability limit came out up to 11 % too high where they are a large part of a batch's way.)
"""

from dataclasses import dataclass, field, fields

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic

__all__ = ["fewer_layers"]


@dataclass(frozen=True, slots=True)
class FewLayers(LayerCosts):
    """Costs of fewer, longer MoE layers behind dense layers that are those of the whole system."""

    whole_dense_layer: Quadratic = field(kw_only=True)

    @property
    def dense_layer(self) -> Quadratic:
        """Attention and feed-forward network of a dense layer as one law."""
        return self.whole_dense_layer


def fewer_layers(costs: LayerCosts, layers: int) -> FewLayers:
    """Costs of a system of at most `layers` MoE layers, besides its dense ones, on which a lone batch takes as long.

    Parameters
    ----------
    costs : LayerCosts
        Of the whole system.
    layers : int
        MoE layers to keep, at least 1.

    Examples
    --------
    >>> from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
    >>> t = Affine(1e-5, 1e-8)
    >>> costs = LayerCosts(Quadratic(1e-3, 1e-7, 1e-11), t, t, Plateau(4e-4, 1e-7), t, t, dense_layers=3, dense=t)
    >>> few = fewer_layers(costs, 4)
    >>> few.layers, round(few.alone(5000, 2.5e7), 9) == round(costs.alone(5000, 2.5e7), 9)
    (7, True)
    """
    count = min(layers, costs.moe_layers)
    factor = costs.moe_layers / count
    a = costs.attention

    def longer(law: Affine) -> Affine:
        return Affine(factor * law.fixed, factor * law.per_token)

    whole = {one.name: getattr(costs, one.name) for one in fields(costs)}
    longer_layers = {
        "attention": Quadratic(factor * a.fixed, factor * a.per_token, factor * a.per_token2),
        "dispatch_send": longer(costs.dispatch_send),
        "dispatch_recv": longer(costs.dispatch_recv),
        "moe": Plateau(factor * costs.moe.floor, factor * costs.moe.per_token),
        "combine_send": longer(costs.combine_send),
        "combine_recv": longer(costs.combine_recv),
        "host_dispatch": factor * costs.host_dispatch,
        "layers": costs.dense_layers + count,
    }
    return FewLayers(**whole | longer_layers, whole_dense_layer=costs.dense_layer)
