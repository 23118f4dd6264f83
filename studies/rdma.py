"""Does the gain of asynchronous execution survive a slower network? Writes `docs/studies/rdma.md`.

Run as ``python -m asapmodel.studies.rdma [--output DIR]``, about a minute and a half.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from asapmodel.scenario import Scenario
from asapmodel.studies.pages import markdown_table, plain, save_figure
from asapmodel.studies.paired_runs import Ratio, fill, output_folder, ratio_of, slo_rates, write_page
from asapmodel.studies.rdma_figure import rdma_figure
from asapmodel.studies.rdma_laws import Laws, laws_of
from asapmodel.verbs.blame import blame
from asapmodel.verbs.capacity import capacity

__all__ = ["BANDWIDTHS", "LATENCIES", "VARIANTS", "Cell", "barrier_ms", "changed", "main", "measure", "page", "slo"]

LATENCIES = (10.0, 20.0, 52.0, 100.0, 200.0, 300.0, 500.0, 700.0, 1000.0)
"""Of a send or a collective, microseconds; 52 is the supernode's."""

BANDWIDTHS = (25.0, 50.0, 100.0, 196.0)
"""Of a device's link one way, GB/s: 200 and 400 Gbit/s network cards, and the supernode's 196."""

Changes = dict[str, float | bool]

VARIANTS: Mapping[str, tuple[Changes, Changes]] = {
    "both networks slower": ({}, {}),
    "latency of the asynchronous system only": ({}, {"cluster.profile.collective_latency": 52e-6}),
    "receiving as slow as sending": ({}, {}),
    "asynchronous with attention streams": ({"overlap_attention": True}, {}),
    "collectives use 90 % of a link": ({}, {"cluster.profile.collective_link": 0.9}),
}
"""What else is changed in the asynchronous and in the synchronous system."""

_PLAIN, _ONE_SIDED, _RECEIVE, _STREAMS, _EFFICIENT = VARIANTS
_POINTS = ((52.0, 196.0), (200.0, 196.0), (500.0, 196.0), (1000.0, 196.0), (52.0, 50.0), (500.0, 50.0), (500.0, 25.0))
_CONFIRMED = ((52.0, 196.0), (500.0, 196.0), (1000.0, 196.0), (500.0, 50.0))
_RATE = 4.0


@dataclass(frozen=True, slots=True)
class Cell:
    """SLO throughput in requests/s of the three systems at a latency (us) and a bandwidth (GB/s)."""

    latency: float
    bandwidth: float
    asap: float
    chunked: float
    default: float


def changed(name: str, latency: float, bandwidth: float, variant: str = _PLAIN) -> Scenario:
    """A shipped scenario on another network.

    Asynchronous: the latency is that of a send. Synchronous: that of a collective. The latency of a receive stays at
    the catalogue's 10 us (a copy on the device), but for the variant in which it is the network's in all systems.
    """
    asynchronous = name == "paper-asap"
    key = "send_latency" if asynchronous else "collective_latency"
    changes: Changes = {"cluster.link_bandwidth": 1e9 * bandwidth, f"cluster.profile.{key}": 1e-6 * latency}
    if variant == _RECEIVE:
        changes["cluster.profile.recv_latency"] = 1e-6 * latency
    changes |= VARIANTS[variant][0 if asynchronous else 1]
    return Scenario.load(name).replace(**changes)


def slo(name: str, latency: float, bandwidth: float, variant: str = _PLAIN) -> float:
    """SLO throughput by the queueing engine, requests/s."""
    return capacity(changed(name, latency, bandwidth, variant)).slo_throughput_rps


def measure(latency: float, bandwidth: float) -> Cell:
    """Solve the three systems on one network."""
    return Cell(
        latency, bandwidth, *(slo(f"paper-{name}", latency, bandwidth) for name in ("asap", "chunked", "default"))
    )


def barrier_ms() -> tuple[float, float]:
    """Mean time at barriers of a request of Default and of ChunkedPrefill at 4 requests/s, ms."""
    found = []
    for name in ("paper-default", "paper-chunked"):
        parts = blame(Scenario.load(name), _RATE).components
        found.append(1e3 * float(np.mean(parts["barrier_attention"] + parts["barrier_transfers"])))
    return found[0], found[1]


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    cells = [measure(latency, bandwidth) for bandwidth in BANDWIDTHS for latency in LATENCIES]
    variants = {
        name: [slo("paper-asap", *point, name) / slo("paper-chunked", *point, name) for point in _POINTS]
        for name in VARIANTS
    }
    confirmed = {
        point: ratio_of(slo_rates(changed("paper-asap", *point)), slo_rates(changed("paper-chunked", *point)))
        for point in _CONFIRMED
    }
    laws = {bandwidth: laws_of(changed("paper-asap", 0.0, bandwidth)) for bandwidth in BANDWIDTHS}
    save_figure(rdma_figure(cells, laws[BANDWIDTHS[-1]]), folder / "figures" / "study-rdma.svg")
    write_page("rdma", page(cells, variants, confirmed, laws, barrier_ms()), folder)


def page(
    cells: Sequence[Cell],
    variants: Mapping[str, Sequence[float]],
    confirmed: Mapping[tuple[float, float], Ratio],
    laws: Mapping[float, Laws],
    barriers: tuple[float, float],
) -> str:
    """The text of the page."""
    at = {(one.latency, one.bandwidth): one for one in cells}
    home, slow, slowest = (at[x, 196.0] for x in (52.0, 500.0, 1000.0))
    where = {name: dict(zip(_POINTS, values, strict=True)) for name, values in variants.items()}
    least = min(cells, key=lambda one: one.asap / one.chunked)
    return fill(
        "rdma",
        table=_table(cells),
        variants=_variants(variants),
        runs=_runs(at, confirmed),
        laws=_laws(laws),
        home=_gain(home),
        slow=_gain(slow),
        slowest=_gain(slowest),
        default_home=f"{home.asap / home.default - 1:.0%}",
        default_slow=f"{slow.asap / slow.default - 1:.0%}",
        runs_slow=str(confirmed[500.0, 196.0]),
        lost=f"{1 - slow.asap / home.asap:.0%}",
        lost_chunked=f"{1 - slow.chunked / home.chunked:.0%}",
        **_variant_fields(where),
        narrow=_gain(at[52.0, 50.0]),
        narrow_lost=f"{1 - at[52.0, 50.0].asap / home.asap:.0%}",
        least=_gain(least),
        least_latency=plain(least.latency, 4),
        least_bandwidth=plain(least.bandwidth),
        barrier=f"{barriers[0]:.0f}",
        barrier_chunked=f"{barriers[1]:.0f}",
        added=f"{61 * 2 * (500 - 52) / 1000:.0f}",
        **_law_fields(cells, laws[BANDWIDTHS[-1]]),
    )


def _variant_fields(where: Mapping[str, Mapping[tuple[float, float], float]]) -> dict[str, str]:
    slowest = {"one_sided": _ONE_SIDED, "receive": _RECEIVE, "streams": _STREAMS}
    points = {"efficient_home": (52.0, 196.0), "efficient": (52.0, 50.0), "efficient_worst": (500.0, 25.0)}
    values = {field: where[name][1000.0, 196.0] for field, name in slowest.items()}
    values |= {field: where[_EFFICIENT][point] for field, point in points.items()}
    return {field: f"{value - 1:+.0%}" for field, value in values.items()}


def _law_fields(cells: Sequence[Cell], law: Laws) -> dict[str, str]:
    return {
        "off": f"{_off(cells, law):.1%}",
        "delay": plain(1e6 * law.delay_limit(2)),
        "delay_three": plain(1e6 * law.delay_limit(3)),
        "occupied": plain(1e6 * law.send_limit()),
    }


def _off(cells: Sequence[Cell], law: Laws) -> float:
    """Largest difference of the shares left, engine and bound of occupied streams, at the supernode's bandwidth."""
    fast = [one for one in cells if one.bandwidth == BANDWIDTHS[-1]]
    engine = np.array([one.asap for one in fast])
    bound = np.array([law.rate(1e-6 * one.latency, occupied=True) for one in fast])
    return float(np.max(np.abs(engine / engine[0] - bound / bound[0])))


def _gain(cell: Cell) -> str:
    return f"{cell.asap / cell.chunked - 1:+.0%}"


def _table(cells: Sequence[Cell]) -> str:
    shown = [one for one in cells if one.latency in (52.0, 200.0, 500.0, 1000.0)]
    lines = [
        [
            plain(one.bandwidth),
            plain(one.latency, 4),
            f"{one.asap:.2f}",
            f"{one.chunked:.2f}",
            f"{one.default:.2f}",
            _gain(one),
            f"{one.asap / one.default - 1:+.0%}",
        ]
        for one in shown
    ]
    header = ["GB/s", "latency, us", "asap", "chunked", "default", "asap over chunked", "asap over default"]
    return markdown_table(header, lines, range(7))


def _variants(variants: Mapping[str, Sequence[float]]) -> str:
    lines = [[name, *(f"{value - 1:+.0%}" for value in values)] for name, values in variants.items()]
    header = ["gain over chunked", *(f"{latency:g} us, {bandwidth:g} GB/s" for latency, bandwidth in _POINTS)]
    return markdown_table(header, lines, range(1, 8))


def _runs(at: Mapping[tuple[float, float], Cell], confirmed: Mapping[tuple[float, float], Ratio]) -> str:
    lines = [[plain(x, 4), plain(y), _gain(at[x, y]), str(ratio)] for (x, y), ratio in confirmed.items()]
    return markdown_table(["latency, us", "GB/s", "queueing engine", "graph engine (95 % interval)"], lines, range(4))


def _laws(laws: Mapping[float, Laws]) -> str:
    lines = [
        [
            plain(bandwidth),
            f"{1e3 * one.group_s:.2f}",
            f"{1e3 * one.lone_s:.2f}",
            *(_us(value) for value in (one.delay_limit(2), one.delay_limit(3), one.send_limit())),
        ]
        for bandwidth, one in laws.items()
    ]
    header = ["GB/s", "G, ms", "S, ms", "tau of two batches, us", "of three, us", "tau of the pool's sends, us"]
    return markdown_table(header, lines, range(6))


def _us(seconds: float) -> str:
    return plain(1e6 * seconds) if seconds > 0 else "always"


if __name__ == "__main__":
    main()
