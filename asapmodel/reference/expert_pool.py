"""The experts of all layers that live on one MoE device, in one array with a table of addresses.

The weights are there anyway; the table is what lets one kernel reach any layer (paper, section 3.4.2).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.weights import Config, Weights

__all__ = ["ExpertPool", "expert_range"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def expert_range(config: Config, device: int, devices: int) -> range:
    """The experts of one of E MoE devices: contiguous equal ranges of the E_total experts.

    Raises
    ------
    ValueError
        If E does not divide E_total or there is no such device.

    Examples
    --------
    >>> expert_range(Config(experts=8), device=1, devices=4)
    range(2, 4)
    """
    if devices < 1 or config.experts % devices:
        raise ValueError(f"devices is {devices}: choose a divisor of the {config.experts} experts")
    if not 0 <= device < devices:
        raise ValueError(f"device is {device}: choose 0 to {devices - 1}")
    share = config.experts // devices
    return range(device * share, (device + 1) * share)


@dataclass(frozen=True, slots=True, eq=False)
class ExpertPool:
    """The experts of all layers that live on one device, in one flat array.

    At an address stand the `H * 2 F` values of an expert's gate and up matrices, then the `F * H` of its down matrix.
    """

    values: Floats
    """All weights, flat."""
    addresses: Ints
    """Start of an expert in `values`, `[layer, local expert]`; -1 in dense layers."""
    hidden: int
    expert_size: int

    @classmethod
    def load(cls, weights: Weights, config: Config, device: int, devices: int) -> "ExpertPool":
        """Copy the experts of one device out of the model's weights.

        Raises
        ------
        ValueError
            If E does not divide E_total or there is no such device.
        """
        local = expert_range(config, device, devices)
        size = 3 * config.hidden * config.expert_size
        routed = range(config.dense_layers, config.layers)
        values = np.empty(len(routed) * len(local) * size)
        addresses = np.full((config.layers, len(local)), -1, dtype=np.int64)
        address = 0
        for layer in routed:
            for index, expert in enumerate(local):
                one = weights.expert(layer, expert)
                values[address : address + size] = np.concatenate([one.gate_up.ravel(), one.down.ravel()])
                addresses[layer, index] = address
                address += size
        return cls(values, addresses, config.hidden, config.expert_size)

    def at(self, address: int) -> tuple[Floats, Floats]:
        """Views of the gate-up `(H, 2 F)` and down `(F, H)` matrices of the expert that starts at an address."""
        middle = address + 2 * self.hidden * self.expert_size
        end = middle + self.hidden * self.expert_size
        gate_up = self.values[address:middle].reshape(self.hidden, 2 * self.expert_size)
        return gate_up, self.values[middle:end].reshape(self.expert_size, self.hidden)

    def row(self, layer: int) -> Ints:
        """Addresses of the local experts of a layer.

        Raises
        ------
        ValueError
            If the layer does not exist or is dense.
        """
        if not 0 <= layer < len(self.addresses) or self.addresses[layer, 0] < 0:
            raise ValueError(f"layer is {layer}: choose one of the layers with experts")
        row: Ints = self.addresses[layer]
        return row
