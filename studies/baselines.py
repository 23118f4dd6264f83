"""How much of ASAP's gain is left against better synchronous systems? Writes `docs/studies/baselines.md`.

Run as ``python -m asapmodel.studies.baselines [--output DIR]``, a minute or two.
"""

import argparse
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from asapmodel.result import Capacity
from asapmodel.studies.baselines_figures import draw_figure
from asapmodel.studies.baselines_systems import RATES, Best, families
from asapmodel.studies.pages import markdown_table
from asapmodel.verbs.capacity import capacity

__all__ = ["SPREADS", "confirm", "main", "page"]

SPREADS = (0.0, 1.3, 2.3, 3.2)
"""`expert_load_cv`: perfect balance, and the range that measurements allow with the shipped value in it."""

_SHIPPED = 2.3
_KEY = "cluster.profile.expert_load_cv"
_CONFIRMED = 3  # synchronous systems whose numbers the graph engine confirms
_BEST, _BOUND = "chunks and split, best", "two-batch overlap, bound"
_TUNED, _LARGER, _PLAIN = "ASAP, switches tuned", "ASAP, batches too", "ASAP, tuned, one stream"

Families = Mapping[str, Best]


def main(arguments: list[str] | None = None) -> None:
    """Search, confirm, and write the page and its figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    folder = parser.parse_args(arguments).output
    found = {spread: families({_KEY: spread}, everything=spread == _SHIPPED) for spread in SPREADS}
    runs = confirm(found[_SHIPPED], 8)
    draw_figure(found[_SHIPPED], found, folder / "figures" / "study-baselines.svg")
    (folder / "studies").mkdir(parents=True, exist_ok=True)
    (folder / "studies" / "baselines.md").write_text(page(found, runs), encoding="utf-8")


def confirm(found: Families, replications: int) -> dict[str, Capacity]:
    """SLO throughput by runs of the graph engine: Default, the best synchronous systems, the bound, all of ASAP."""
    real = [one for one in found.values() if one.scenario.layout.kind == "sync" and not one.bound]
    distinct = {one.layout: one for one in sorted(real, key=lambda one: one.slo_rps)}  # families overlap
    top = list(distinct.values())[: -_CONFIRMED - 1 : -1]
    others = [found[name] for name in (_BOUND, "ASAP", _TUNED, _LARGER, _PLAIN)]
    return {
        f"{one.family} ({one.layout})": capacity(one.scenario, engine="graph", replications=replications)
        for one in (found["Default"], *top, *others)
    }


def page(found: Mapping[float, Families], runs: Mapping[str, Capacity]) -> str:
    """Fill in the page."""
    template = files("asapmodel.studies").joinpath("data/baselines_page.md").read_text(encoding="utf-8")
    own, even = found[_SHIPPED], found[0.0]
    return template.format(
        systems=_system_table(own),
        runs=_run_table(runs),
        spreads=_spread_table(found),
        default_rps=own["Default"].slo_rps,
        chunked_rps=own["ChunkedPrefill"].slo_rps,
        asap_rps=own["ASAP"].slo_rps,
        default=_gain(own, "Default"),
        chunked=_gain(own, "ChunkedPrefill"),
        budget=_gain(own, "Default, any budget"),
        best=_gain(own, _BEST),
        bound=_gain(own, _BOUND),
        best_rps=own[_BEST].slo_rps,
        best_layout=own[_BEST].layout,
        best_over_chunked=own[_BEST].slo_rps / own["ChunkedPrefill"].slo_rps - 1,
        work=own["ChunkedPrefill, by work"].slo_rps / own["ChunkedPrefill"].slo_rps - 1,
        tuned=own[_TUNED].slo_rps,
        tuned_layout=own[_TUNED].layout,
        tuned_best=_gain(own, _BEST, _TUNED),
        tuned_bound=_gain(own, _BOUND, _TUNED),
        larger=own[_LARGER].slo_rps,
        larger_best=_gain(own, _BEST, _LARGER),
        larger_bound=_gain(own, _BOUND, _LARGER),
        plain=own[_PLAIN].slo_rps,
        plain_layout=own[_PLAIN].layout,
        plain_best=_gain(own, _BEST, _PLAIN),
        plain_bound=_gain(own, _BOUND, _PLAIN),
        larger_ttft=1000 * own[_LARGER].ttft_s[0],
        asap_ttft=1000 * own["ASAP"].ttft_s[0],
        even_chunked_rps=even["ChunkedPrefill"].slo_rps,
        even_chunked=_gain(even, "ChunkedPrefill"),
        even_best=_gain(even, _BEST),
        even_bound=_gain(even, _BOUND),
        even_tuned=_gain(even, _BEST, _TUNED),
        even_larger=_gain(even, _BEST, _LARGER),
        even_larger_bound=_gain(even, _BOUND, _LARGER),
        low_chunked=_gain(found[SPREADS[1]], "ChunkedPrefill"),
        high_chunked=_gain(found[SPREADS[-1]], "ChunkedPrefill"),
        ttft_best=_least_ttft(own, sync=True),
        ttft_asap=_least_ttft(own, sync=False),
    )


def _gain(found: Families, over: str, of: str = "ASAP") -> float:
    return found[of].slo_rps / found[over].slo_rps - 1


def _least_ttft(found: Families, sync: bool) -> str:
    """Least mean TTFT of the searched systems at the paper's rates, as words."""
    some = [one for one in found.values() if (one.scenario.layout.kind == "sync") == sync and not one.bound]
    least = [min(one.ttft_s[k] for one in some if one.ttft_s[k] == one.ttft_s[k]) for k in range(len(RATES))]
    return ", ".join(f"{value:.2f}" for value in least)


def _system_table(own: Families) -> str:
    rows = []
    for one in own.values():
        ttft = [f"{value:.2f}" if value == value else "-" for value in one.ttft_s]
        gains = [f"{own[name].slo_rps / one.slo_rps - 1:+.0%}" for name in ("ASAP", _TUNED, _PLAIN, _LARGER)]
        if one.scenario.layout.kind == "asap":
            gains = [""] * 4
        rows.append([one.family, one.layout, str(one.tried), f"{one.slo_rps:.1f}", *ttft, *gains])
    header = ["system", "which", "of", "SLO throughput", *(f"TTFT at {rate:g}" for rate in RATES)]
    return markdown_table(
        [*header, "ASAP over it", "switches tuned", "tuned, one stream", "batches too"], rows, right=range(2, 11)
    )


def _run_table(runs: Mapping[str, Capacity]) -> str:
    rows = []
    for name, one in runs.items():
        low, high = one.interval_rps or (one.slo_throughput_rps,) * 2
        rows.append(
            [name, f"{one.slo_throughput_rps:.1f}", f"{low:.1f} to {high:.1f}", f"{one.stability_limit_rps:.1f}"]
        )
    return markdown_table(["system", "SLO throughput", "95 % interval", "saturation"], rows, right=[1, 3])


def _spread_table(found: Mapping[float, Families]) -> str:
    names = ["Default", "ChunkedPrefill", _BEST, _BOUND, "ASAP", _TUNED, _LARGER]
    rows = [
        [
            f"{spread:g}" + (" (shipped)" if spread == _SHIPPED else ""),
            *(f"{some[name].slo_rps:.1f}" for name in names),
            *(f"{_gain(some, over):+.0%}" for over in ("ChunkedPrefill", _BEST, _BOUND)),
            f"{_gain(some, _BEST, _LARGER):+.0%}",
        ]
        for spread, some in found.items()
    ]
    header = ["spread of experts", *names, "ASAP over Chunked", "over best", "over bound", "batches too over best"]
    return markdown_table(header, rows, right=range(1, 12))


if __name__ == "__main__":
    main()
