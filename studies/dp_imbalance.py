"""How much device time is lost at barriers, and what does it cost? Writes `docs/studies/dp_imbalance.md`.

Run as ``python -m asapmodel.studies.dp_imbalance [--output DIR]``, a minute or so.
"""

import argparse
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from asapmodel.costing import length_grid
from asapmodel.studies.dp_imbalance_figures import draw_figure
from asapmodel.studies.dp_imbalance_idle import Shares, scenarios, shares_of
from asapmodel.studies.dp_imbalance_runs import CHUNK, OTHERS, SIGMAS, Row, measure, system
from asapmodel.studies.pages import markdown_table
from asapmodel.verbs.capacity import capacity

__all__ = ["main", "page"]

_GROUPS = (2, 4, 8, 16)
_PAPER_GROUPS = 8
_IDLE_LAWS: tuple[float | str, ...] = (0.0, *OTHERS[:1], *OTHERS[2:])


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the page and its figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    folder = parser.parse_args(arguments).output
    sweep = [measure(sigma, D, chunk) for chunk in (0, CHUNK) for sigma in SIGMAS for D in _GROUPS]
    laws = (*SIGMAS, *OTHERS)
    paper = [measure(name, _PAPER_GROUPS, chunk, runs=True) for chunk in (0, CHUNK) for name in laws]
    work = [measure(name, _PAPER_GROUPS, chunk, "work") for chunk in (0, CHUNK) for name in laws]
    idle = {str(name): [one for s in scenarios(name).values() for one in shares_of(s)] for name in _IDLE_LAWS}
    draw_figure(sweep, folder / "figures" / "study-dp_imbalance.svg")
    (folder / "studies").mkdir(parents=True, exist_ok=True)
    (folder / "studies" / "dp_imbalance.md").write_text(page(sweep, paper, work, idle), encoding="utf-8")


def page(sweep: Sequence[Row], paper: Sequence[Row], work: Sequence[Row], idle: dict[str, list[Shares]]) -> str:
    """Fill in the page."""
    template = files("asapmodel.studies").joinpath("data/dp_imbalance_page.md").read_text(encoding="utf-8")
    own = {chunk: next(row for row in paper if row.chunk == chunk and row.law == OTHERS[0]) for chunk in (0, CHUNK)}
    even = {chunk: next(row for row in paper if row.chunk == chunk and row.sigma == 0) for chunk in (0, CHUNK)}
    errors = [abs(row.predicted_waste - row.waste_waiting) for row in sweep if row.sigma > 0]
    trace = next(row for row in paper if row.chunk == 0 and row.law == OTHERS[1])
    normal = [abs(row.normal_waste - row.waste_waiting) for row in sweep if row.sigma > 0]
    runs = [abs(row.waste_of_runs - row.waste) for row in paper]
    gains = [other.slo_rps / row.slo_rps - 1 for row, other in zip(paper, work, strict=True)]
    asap, chunked = (capacity(scenarios(OTHERS[0])[name]) for name in ("ASAP", "ChunkedPrefill"))
    shares = {(one.system, one.place.startswith("all")): one for one in idle[OTHERS[0]]}
    return template.format(
        laws=_law_table(paper, work),
        groups=_group_table(sweep),
        idle=_idle_table(idle),
        means=[float(length_grid(system(name, 8, 0)).mean()) for name in OTHERS],
        whole=own[0],
        chunks=own[CHUNK],
        whole_even=even[0],
        chunks_even=even[CHUNK],
        even_fall=1 - own[CHUNK].slo_rps / even[CHUNK].slo_rps,
        form_median=100 * float(np.median(errors)),
        form_worst=100 * max(errors),
        normal_worst=100 * max(normal),
        runs_worst=100 * max(runs),
        work_low=min(gains),
        work_high=max(gains),
        trace=trace,
        asap=asap.slo_throughput_rps,
        asap_gain=asap.slo_throughput_rps / own[CHUNK].slo_rps - 1,
        asap_left=asap.slo_throughput_rps / own[CHUNK].perfect_rps - 1,
        limits=asap.stability_limit_rps / chunked.stability_limit_rps - 1,
        more_compute=_computing(shares) - 1,
        less_work=1 - _computing(shares) / (asap.stability_limit_rps / chunked.stability_limit_rps),
        asap_idle=shares["ASAP", False].idle,
        asap_idle_waiting=shares["ASAP", True].idle,
        chunked_idle=shares["ChunkedPrefill", False].idle,
        chunked_idle_waiting=shares["ChunkedPrefill", True].idle,
        chunked_transfers=shares["ChunkedPrefill", True].transfers,
        asap_transfers=shares["ASAP", True].transfers,
    )


def _computing(shares: dict[tuple[str, bool], Shares]) -> float:
    """Share of time in which devices compute, ASAP over ChunkedPrefill, all prompts waiting."""
    return shares["ASAP", True].compute / shares["ChunkedPrefill", True].compute


def _batching(row: Row) -> str:
    return "chunks" if row.chunk else "whole"


def _law_table(paper: Sequence[Row], work: Sequence[Row]) -> str:
    rows = [
        [
            row.law,
            _batching(row),
            f"{row.length_cv:.2f}",
            f"{row.waste:.0%}",
            f"{row.waste_of_runs:.0%}",
            f"{other.waste:.0%}",
            f"{row.waste_waiting:.0%}",
            f"{row.predicted_waste:.0%}",
            f"{row.slo_rps:.2f}",
            f"{other.slo_rps:.2f}",
            f"{row.perfect_rps:.2f}",
            f"{row.loss:.0%}",
            f"{1 / (1 - row.barrier_share) - 1:.0%}",
        ]
        for row, other in zip(paper, work, strict=True)
    ]
    header = ["lengths", "prompts", "CV", "waste", "of runs", "by work", "waste, all waiting", "closed form"]
    header += ["SLO throughput", "by work", "perfect balance", "loss", "same iterations"]
    return markdown_table(header, rows, right=range(2, 13))


def _group_table(sweep: Sequence[Row]) -> str:
    rows = [
        [
            str(row.groups),
            _batching(row),
            f"{row.waste:.0%}",
            f"{row.waste_waiting:.0%}",
            f"{row.predicted_waste:.0%}",
            f"{row.slo_rps:.2f}",
            f"{row.perfect_rps:.2f}",
            f"{row.loss:.0%}",
        ]
        for row in sweep
        if row.sigma == 1.5
    ]
    header = ["groups D", "prompts", "waste", "waste, all waiting", "closed form"]
    header += ["SLO throughput", "perfect balance", "loss"]
    return markdown_table(header, rows, right=[0, *range(2, 8)])


def _idle_table(idle: dict[str, list[Shares]]) -> str:
    rows = [
        ["constant" if name == "0.0" else name, one.system, one.place]
        + [f"{value:.0%}" for value in (one.compute, one.transfers, one.idle)]
        for name, some in idle.items()
        for one in some
    ]
    return markdown_table(["lengths", "system", "when", "computing", "transfers", "idle"], rows, right=[3, 4, 5])


if __name__ == "__main__":
    main()
