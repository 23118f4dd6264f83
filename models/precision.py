"""Precision of the products with weights: at which peak they run, and how many bytes a weight and an input have.

A deployment chooses the format of its weights and of what is multiplied by them: projections, experts and the scores of
the indexer. The attention core, its key-value cache and what experts send back stay in 16 bit in all of them, as
in the deployments that the catalogue's sources describe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["PRECISIONS", "Format", "Precision"]

Precision = Literal["fp8", "int8", "bf16", "w8a16"]


@dataclass(frozen=True, slots=True)
class Format:
    """A precision.

    Attributes
    ----------
    peak : str
        Number format in which the device multiplies: ``"bf16"``, ``"int8"`` or ``"fp8"``.
    weight_bytes : float
        Of a weight, b_w.
    value_bytes : float
        Of a value that goes into a product, b_a: of a dispatched token, of an indexer key.
    scales : str
        What goes with a dispatched copy: ``"none"``, one scale a ``"token"`` and padding, or one a ``"block"`` of 128.
    """

    peak: str
    weight_bytes: float
    value_bytes: float
    scales: str = "none"


PRECISIONS: Mapping[str, Format] = MappingProxyType(
    {
        "fp8": Format("fp8", 1.0, 1.0, scales="block"),
        "int8": Format("int8", 1.0, 1.0, scales="token"),
        "bf16": Format("bf16", 2.0, 2.0),
        "w8a16": Format("bf16", 1.0, 2.0),
    }
)
"""Known precisions.

``fp8`` has DeepSeek's blocks of 128 values, ``int8`` one scale a token (CloudMatrix384, padded to 512 bytes), ``bf16``
no quantisation, ``w8a16`` 8-bit weights that are widened before they are multiplied: they save memory, not arithmetic.
"""
