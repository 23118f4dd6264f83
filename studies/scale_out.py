"""One instance of growing size, or many small ones? Writes `docs/studies/scale_out.md`.

Run as ``python -m asapmodel.studies.scale_out [--output DIR]``, about two minutes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asapmodel.planning.answer import Plan
from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.studies.design_space_search import needs_gb
from asapmodel.studies.pages import markdown_table, save_figure
from asapmodel.studies.paired_runs import fill, output_folder, write_page
from asapmodel.studies.scale_out_figure import scale_out_figure
from asapmodel.studies.scale_out_fleet import DEMAND, SUPERNODE, fleet_table, fleets
from asapmodel.studies.scale_out_runs import (
    OPEN,
    SIZES,
    Best,
    asynchronous,
    best_of,
    busiest,
    fleet_member,
    synchronous,
    transfer_margin,
)
from asapmodel.verbs.capacity import capacity

__all__ = ["Size", "even", "main", "measure", "page"]

_EVEN = {"cluster.profile.expert_load_cv": 0.0}
_REPLICATIONS = 4


@dataclass(frozen=True, slots=True)
class Size:
    """The best instances of a size: with 64 GB, with any memory, synchronous (None: none fits)."""

    devices: int
    fits: Best | None
    opened: Best
    sync: Best | None


def measure(devices: int) -> Size:
    """Search one size."""
    opened = best_of(devices, asynchronous(devices, OPEN))
    if opened is None:
        raise ValueError(f"{devices} devices have no asynchronous instance: give at least 32")
    return Size(devices, best_of(devices, asynchronous(devices)), opened, best_of(devices, synchronous(devices)))


def even(devices: int, sync: bool) -> Best:
    """The best instance of a size with any memory, or synchronous, if all experts were equally busy."""
    scenarios = synchronous(devices) if sync else asynchronous(devices, OPEN)
    found = best_of(devices, (one.replace(**_EVEN) for one in scenarios))
    if found is None:
        raise ValueError(f"{devices} devices have no instance: give at least 32")
    return found


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    sizes = [measure(devices) for devices in SIZES]
    best = _best(sizes)
    small = _fits(sizes[0])
    runs = {one: capacity(one.scenario, engine="graph", replications=_REPLICATIONS) for one in {small, best}}
    choices: dict[str, tuple[Scenario, ...]] = {
        "of 32, the paper's policy": (Scenario.load("paper-asap"),),
        "of 32, best policy": (small.scenario,),
    }
    choices |= {f"of {best.devices} and 32, best policy": (best.scenario, small.scenario)}
    lockstep = sizes[0].sync
    if lockstep is not None:
        choices["synchronous of 32, best chunks"] = (lockstep.scenario,)
    save_figure(scale_out_figure(sizes), folder / "figures" / "study-scale_out.svg")
    balanced = {(n, sync): even(n, sync) for n in (SIZES[0], SIZES[-1]) for sync in (False, True)}
    write_page("scale_out", page(sizes, runs, fleets(choices), balanced), folder)


def _fits(size: Size) -> Best:
    if size.fits is None:
        raise ValueError(f"no instance of {size.devices} devices fits its memory: give larger ones")
    return size.fits


def _best(sizes: Sequence[Size]) -> Best:
    return max((one.fits for one in sizes if one.fits is not None), key=lambda one: one.each)


def page(
    sizes: Sequence[Size],
    runs: Mapping[Best, Capacity],
    plans: Mapping[str, Plan],
    balanced: Mapping[tuple[int, bool], Best],
) -> str:
    """The text of the page; `balanced` has the first and the last size with equally busy experts."""
    best, small, last = _best(sizes), _fits(sizes[0]), sizes[-1]
    largest = max((one.fits for one in sizes if one.fits is not None), key=lambda one: one.devices)
    count, paper_count = SUPERNODE // best.devices, SUPERNODE // small.devices
    turn = fleet_member(best, count)
    most = max(one.fits.scenario.layout.D for one in sizes if one.fits is not None)
    buffers = needs_gb(small.scenario)["buffers"] / small.scenario.layout.D
    return fill(
        "scale_out",
        smallest=str(sizes[0].devices),
        largest=str(last.devices),
        spread=f"{small.scenario.profile.value.expert_load_cv:g}",
        table=_table(sizes),
        replications=str(_REPLICATIONS),
        runs=_run_table(runs),
        best_devices=str(best.devices),
        best_layout=best.layout,
        best_each=f"{best.each:.3f}",
        best_gain=f"{best.each / small.each - 1:+.0%}",
        share_small=_share(small),
        share_best=_share(best),
        buffer_gb=f"{buffers:.2f}",
        most_groups=str(most),
        end_each=f"{largest.each:.3f}",
        end_loss=f"{1 - largest.each / best.each:.0%}",
        open_small=f"{sizes[0].opened.each:.3f}",
        open_end=f"{last.opened.each:.3f}",
        busy_small=f"{busiest(sizes[0].opened.scenario):.2f}",
        busy_end=f"{busiest(last.opened.scenario):.2f}",
        even_small=f"{balanced[small.devices, False].each:.3f}",
        even_end=f"{balanced[last.devices, False].each:.3f}",
        fleet_count=str(count),
        fleet_rps=f"{count * turn:.0f}",
        fleet_paper=f"{paper_count * fleet_member(small, paper_count):.0f}",
        turn=f"{turn / best.slo_rps - 1:+.1%}",
        demand_rate=f"{DEMAND:g}",
        fleets=fleet_table(plans),
        transfer_margin=f"{transfer_margin(last.opened):.1f}",
        **_sync_fields(sizes, balanced),
    )


def _sync_fields(sizes: Sequence[Size], balanced: Mapping[tuple[int, bool], Best]) -> dict[str, str]:
    """The synchronous system, small and large, and the gain over it by size."""
    pairs = [(one.fits, one.sync) for one in sizes if one.fits is not None and one.sync is not None]
    (fits_small, small), (fits_end, end) = pairs[0], pairs[-1]
    top, size = max((one.each / two.each, one.devices) for one, two in pairs)
    return {
        "sync_small": f"{small.each:.3f}",
        "sync_end": f"{end.each:.3f}",
        "sync_largest": str(end.devices),
        "sync_busy_small": f"{busiest(small.scenario):.2f}",
        "sync_busy_end": f"{busiest(end.scenario):.2f}",
        "sync_even_small": f"{balanced[small.devices, True].each:.3f}",
        "sync_even_end": f"{balanced[end.devices, True].each:.3f}",
        "gain_small": f"{fits_small.each / small.each - 1:+.0%}",
        "gain_top": f"{top - 1:+.0%}",
        "gain_size": str(size),
        "gain_same": f"{fits_end.each / end.each - 1:+.0%}",
    }


def _share(best: Best) -> str:
    one = best.scenario.layout
    return f"{one.D * one.T / one.devices:.0%}"


def _table(sizes: Sequence[Size]) -> str:
    lines = []
    for one in sizes:
        line = [str(one.devices)]
        for best in (one.fits, one.opened, one.sync):
            line += ["-"] * 4 if best is None else [
                f"{best.layout}, {best.unit}", f"{best.slo_rps:.1f}", f"{best.each:.3f}",
                f"{busiest(best.scenario):.2f}",
            ]  # fmt: skip
        lines.append(line)
    header = ["devices"]
    for name in ("64 GB", "any memory", "synchronous"):
        header += [name, "rps", "each", "busiest"]
    return markdown_table(header, lines, [0, 2, 3, 4, 6, 7, 8, 10, 11, 12])


def _run_table(runs: Mapping[Best, Capacity]) -> str:
    lines = []
    for best, one in sorted(runs.items(), key=lambda item: item[0].devices):
        low, high = one.interval_rps or (one.slo_throughput_rps,) * 2
        interval = f"{low:.1f} to {high:.1f}"
        each = f"{one.slo_throughput_rps / best.devices:.3f}"
        what = f"{best.layout}, {best.unit}"
        lines.append([str(best.devices), what, f"{best.slo_rps:.1f}", f"{one.slo_throughput_rps:.1f}", interval, each])
    header = ["devices", "which", "queueing engine", "runs", "95 % interval", "runs, each"]
    return markdown_table(header, lines, (0, 2, 3, 5))


if __name__ == "__main__":
    main()
