"""What can be measured, and which uncertain constants one such measurement tells."""

from collections.abc import Sequence
from dataclasses import dataclass

from asapmodel.catalog import FIELDS
from asapmodel.models.parameters import Device

__all__ = ["MEASUREMENTS", "Measurement", "grouped", "measurement_of"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Something to measure: `name` is short, `words` say what to do, `keys` begin the constants it tells."""

    name: str
    words: str
    keys: tuple[str, ...]


_PROFILE = "cluster.profile."

MEASUREMENTS = (
    Measurement(
        "attention kernels",
        "times of attention kernels (calibrate --model attention)",
        (
            *(f"{_PROFILE}{name}" for name in ("gemm", "core", "indexer", "vector")),
            *(f"{_PROFILE}{name}" for name in ("attention_overhead", "token_overhead")),
            "costs.attention",
            "costs.dense",
        ),
    ),
    Measurement(
        "expert kernels",
        "times of expert kernels (calibrate --model moe)",
        (*(f"{_PROFILE}{name}" for name in ("grouped_gemm", "tile_padding", "memory")), "costs.moe"),
    ),
    Measurement(
        "transfers",
        "times of dispatch and combine (calibrate --model link)",
        (
            *(f"{_PROFILE}{name}" for name in ("link", "send_latency", "recv_latency", "collective_latency")),
            *(f"{_PROFILE}{name}" for name in ("collective_link", "copies_sent")),
            *(f"{_PROFILE}{name}" for name in ("dispatch_bytes_per_copy", "combine_bytes_per_copy")),
            "cluster.link_bandwidth",
            *(f"costs.{name}" for name in ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")),
        ),
    ),
    Measurement("blocking transfers", "times of blocking sends (models.link.fit_p2p)", (f"{_PROFILE}p2p_",)),
    Measurement(
        "spread of expert load", "tokens by expert in your own traffic (expert_load_cv)", (f"{_PROFILE}expert_load_cv",)
    ),
    Measurement(
        "host dispatch", "host time of a layer without the super kernel", (f"{_PROFILE}host_dispatch", "costs.host_")
    ),
    Measurement(
        "overhead of a step", "times of steps that hold next to nothing", (f"{_PROFILE}step_", "costs.step_overhead")
    ),
    Measurement(
        "latency outside",
        "TTFT of lone short prompts, less their kernels",
        (f"{_PROFILE}request_", "costs.request_latency"),
    ),
    Measurement(
        "peaks of the device",
        "large matrix products and copies on one device",
        (*(f"cluster.{name}" for name in FIELDS[Device]), f"{_PROFILE}elementwise"),
    ),
)
"""In the order in which a constant looks for its own."""


def measurement_of(key: str) -> Measurement:
    """The measurement that tells a constant.

    Examples
    --------
    >>> measurement_of("cluster.profile.core").name, measurement_of("cluster.int8_flops").name
    ('attention kernels', 'peaks of the device')
    """
    for one in MEASUREMENTS:
        if any(key.startswith(start) for start in one.keys):
            return one
    return Measurement(key, f"measure {key}", (key,))


def grouped(keys: Sequence[str]) -> list[tuple[Measurement, list[int]]]:
    """Measurements that tell something of some constants, with the places of these."""
    out: list[tuple[Measurement, list[int]]] = []
    for place, key in enumerate(keys):
        wanted = measurement_of(key)
        for known, places in out:
            if known == wanted:
                places.append(place)
                break
        else:
            out.append((wanted, [place]))
    return out
