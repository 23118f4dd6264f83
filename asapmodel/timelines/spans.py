"""What traces and pictures are made of: tracks from top to bottom, and spans on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Span", "Track"]


class Track(NamedTuple):
    """A stream of a device; on a `shared` one spans say which group they are of."""

    device: str
    stream: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A phase on a track, from `start` to `end`, seconds.

    Attributes
    ----------
    track : Track
        Where.
    phase : str
        As the six phases are called in `asapmodel.costs.LayerCosts`, or ``"step"`` or ``"dense"``.
    layer : int
        Counted from 0.
    group : int
        Whose batch; -1: all groups together.
    shade : int
        0 or 1; batches of a group that follow each other or are active at once differ.
    start, end : float
        Seconds.
    args : mapping
        What a trace viewer is to show besides.
    """

    track: Track
    phase: str
    layer: int
    group: int
    shade: int
    start: float
    end: float
    args: Mapping[str, float]
