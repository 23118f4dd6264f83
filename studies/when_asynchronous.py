"""When is asynchronous execution worth it? Against the best synchronous system; `docs/studies/when_asynchronous.md`.

Run as ``python -m asapmodel.studies.when_asynchronous [--output DIR]``, two to three minutes.
"""

import numpy as np

from asapmodel.costing import memory_budget
from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_summary import Point, Row, row_of
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import fill, output_folder, write_page
from asapmodel.studies.when_asynchronous_figure import Panel, factor_figure, map_figure
from asapmodel.studies.when_asynchronous_findings import PAPERS, Findings, computed
from asapmodel.studies.when_asynchronous_laws import limits_ratio
from asapmodel.studies.when_asynchronous_maps import Cell
from asapmodel.studies.when_asynchronous_published import (
    PAPER_RPS,
    RATES,
    best_ratio,
    deployment,
    deployment_cells,
    like_for_like,
    measured_ttft,
    nearest,
    paper_loads,
)
from asapmodel.studies.when_asynchronous_search import System
from asapmodel.studies.when_asynchronous_tables import (
    deployment_table,
    factor_table,
    law_names,
    law_table,
    loads_table,
    run_table,
    size_table,
)
from asapmodel.studies.when_asynchronous_why import STEPS

__all__ = ["main", "page", "panels", "points", "summary"]

_PAPER_ROW, _DIES_ROW = "published: paper (1.36)", "published: 32 dies (0.71)"
_SHIPPED = 2.3
_LADDERS = ("the paper's lengths", "constant lengths")
_KINDS = (("chunks", "chunked"), ("whole", "default"))


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figures."""
    folder = output_folder(arguments, __doc__)
    found = computed()
    figures = folder / "figures"
    save_figure(map_figure(panels(found)), figures / "study-when_asynchronous.svg")
    save_figure(factor_figure(found.ladders), figures / "study-when_asynchronous-why.svg")
    write_page("when_asynchronous", page(found), folder)


def panels(found: Findings) -> list[Panel]:
    """The six maps."""
    words = law_names()
    order = {name: k for k, name in enumerate(words)}
    sync_rps = deployment()["sync"]
    loads = [Cell(nearest(load), _PAPER_ROW, ratio) for load, ratio in paper_loads().values()]
    loads += [Cell(nearest(rate / sync_rps), _DIES_ROW, best_ratio(measured_ttft(), rate)) for rate in RATES]
    spreads = [Cell(spread, name, 1 + pair.gain) for (spread, name), pair in found.spreads.items()]
    spreads.sort(key=lambda one: (order[one.y], float(one.x)))
    by_length = sorted(found.loads, key=lambda one: (order[one.y], float(one.x)))
    own = [Cell(_SHIPPED, "published: paper (1.36)", PAPER_RPS["asap"] / PAPER_RPS["chunked"])]
    own += [Cell(0.0, _DIES_ROW, deployment()["async"] / sync_rps)]
    stated = [Cell("the paper's", f"{kind} 8192 (paper)", PAPER_RPS["asap"] / PAPER_RPS[name]) for kind, name in _KINDS]
    dies = [Cell(cell.x, f"{cell.y} (measured)", cell.ratio) for cell in deployment_cells(measured_ttft())]
    networks = [Cell(latency, f"{width:g}", 1 + pair.gain) for (latency, width), pair in found.networks.items()]
    lengths = "lengths (their CV)"
    return [
        Panel(
            "A  TTFT, synchronous / asynchronous", ("load of the best synchronous", lengths), by_length, loads, words
        ),
        Panel("B  SLO throughput: experts", ("spread of single experts' load", lengths), spreads, own, words),
        Panel(
            "C  SLO throughput: batches", ("asynchronous batches of", "synchronous iteration"), found.budgets, stated
        ),
        Panel("D  SLO throughput: devices (* beyond the memory)", ("share for attention", "devices"), found.splits),
        Panel("E  SLO throughput: network", ("latency, us", "link, GB/s"), networks),
        Panel(
            "F  TTFT of the 32-die deployment",
            ("requests/s", "tokens a step"),
            deployment_cells(found.deployment),
            dies,
        ),
    ]


def _fields(found: Findings) -> dict[str, str]:
    """Numbers of the prose."""
    return {**_gain_fields(found), **_why_fields(found), **_law_fields(found), **_published_fields(found)}


def _percent(ratio: float) -> str:
    return f"{ratio - 1:+.0%}"


def _gain_fields(found: Findings) -> dict[str, str]:
    at = {(one.y, one.x): one.ratio for one in found.loads}
    sizes = {
        name: f"{found.sizes[n].gain:+.0%}" for name, n in (("sixteen", 16), ("twentyfour", 24), ("fortyeight", 48))
    }
    own = [one.ratio for one in found.budgets if one.x == "the paper's"]
    spreads: dict[str, tuple[float, float | str]] = {
        "balanced": (0.0, PAPERS),
        "shipped": (_SHIPPED, PAPERS),
        "uneven": (3.0, PAPERS),
    }
    spreads |= {"balanced_constant": (0.0, 0.0), "shipped_constant": (_SHIPPED, 0.0)}
    paper = found.lengths[PAPERS]
    return {
        **sizes,
        **{name: f"{found.spreads[key].gain:+.0%}" for name, key in spreads.items()},
        "slo_single": _percent(paper.best_asap.slo_rps / paper.single_sync.slo_rps),
        **{name: f"{at[PAPERS, x]:.2f}" for name, x in (("load_low", 0.1), ("load_mid", 0.4), ("load_high", 0.75))},
        "load_low_window": f"{found.windowed[PAPERS]:.2f}",
        "azure_low_window": f"{found.windowed['azure2023_conv']:.2f}",
        "azure_low": f"{at['azure2023_conv', 0.1]:.2f}",
        "copied": f"{found.copied_rps:.1f}",
        "single": f"{paper.single_sync.slo_rps:.1f}",
        "spare": f"{_spare(paper.best_sync.scenario) / 1e9:.0f}",
        "split_of": _percent(paper.best_sync.slo_rps / paper.single_sync.slo_rps),
        "batch_most": _percent(max(own)),
        "batch_least": _percent(min(own)),
        "share_open": _percent(next(one.ratio for one in found.splits if (one.y, one.x) == (32, 0.625))),
        "latency_gain": f"{found.networks[1000.0, 196.0].gain:+.0%}",
        "slow_gain": f"{found.networks[52.0, 25.0].gain:+.0%}",
    }


def _spare(scenario: Scenario) -> float:
    """Bytes that are free on the fullest device."""
    return scenario.device.value.memory_bytes - max(memory_budget(scenario).used.values())


def _why_fields(found: Findings) -> dict[str, str]:
    paper, constant = (dict(zip(STEPS, found.ladders[x].factors, strict=True)) for x in _LADDERS)
    even, uneven = (found.spreads[x, PAPERS].best_asap.slo_rps / found.overlap_rps[x] for x in (0.0, _SHIPPED))
    return {
        "barrier": f"{paper['attention barrier']:.2f}",
        "barrier_constant": f"{constant['attention barrier']:.2f}",
        "hidden": f"{paper['transfers hidden']:.2f}",
        "own": f"{1 - paper['own transfers']:.0%}",
        "overlap_balanced": f"{found.overlap_rps[0.0]:.1f}",
        "overlap_gain_balanced": f"{even:.0%}",
        "overlap_gain": f"{uneven:.0%}",
    }


def _law_fields(found: Findings) -> dict[str, str]:
    balanced = found.laws[0.0, PAPERS]
    apart = [100 * abs(found.laws[key].ratio - limits_ratio(pair)) for key, pair in found.spreads.items()]
    return {
        "law_error": f"{max(apart):.0f}",
        "law_median": f"{np.median(apart):.0f}",
        "limit_single": _percent(limits_ratio(found.lengths[PAPERS])),
        "same_side": str(
            sum((found.laws[key].ratio > 1) == (limits_ratio(one) > 1) for key, one in found.spreads.items())
        ),
        "cells": str(len(apart)),
        "balanced_cv": f"{balanced.batch_cv:.2f}",
        "balanced_even": f"{balanced.break_even_cv:+.2f}",
        "leads": str(sum(one.break_even_cv < 0 for one in found.laws.values())),
    }


def _published_fields(found: Findings) -> dict[str, str]:
    likes, sync = like_for_like(), found.lengths[PAPERS].best_sync.slo_rps
    cells = [one.ratio for one in deployment_cells(measured_ttft())]
    rps = deployment()
    ttft = [likes[f"ttft_{rate:g}"] for rate in paper_loads()]
    own = next(one for one in found.lengths[PAPERS].asap if one.scenario.policy.pairing == "locked" and _is_own(one))
    return {
        "model_chunked": _percent(likes["chunked"].predicted),
        "model_default": f"{likes['default'].predicted:.1f}x",
        "model_own": _percent(own.slo_rps / sync),
        "paper_ttft": ", ".join(f"{one.measured:.2f}" for one in ttft),
        "model_ttft": ", ".join(f"{one.predicted:.2f}" for one in ttft),
        "paper_loads": ", ".join(f"{load:.2f}" for load, _ in paper_loads().values()),
        "dies_low": f"{min(cells):.2f}",
        "dies_high": f"{max(cells):.2f}",
        "dies_slo": _percent(rps["async"] / rps["sync"]),
    }


def _is_own(system: System) -> bool:
    layout = system.scenario.layout
    return (layout.D, layout.T, layout.E) == (4, 4, 16)


def summary() -> list[Row]:
    """The paper's gains against the model's, for `docs/evidence.md`; see `evidence_summary`."""
    likes = like_for_like()
    groups = {
        "gain in SLO throughput": ("chunked", "default"),
        "gain in TTFT at equal load": ("ttft_4", "ttft_8"),
    }
    return [
        row_of(
            "paper",
            name,
            ("scenarios as shipped", "ASAP over the same baseline"),
            [likes[key].predicted / likes[key].measured - 1 for key in keys],
            note="the map compares with the best baseline, not with these",
        )
        for name, keys in groups.items()
    ]


def points() -> list[Point]:
    """Those gains, published and modelled."""
    return [one for key, one in like_for_like().items() if key != "ttft_1"]


def page(found: Findings) -> str:
    """The text of the page."""
    return fill(
        "when_asynchronous",
        loads=loads_table(found),
        factors=factor_table(found),
        laws=law_table(found),
        runs=run_table(found),
        sizes=size_table(found),
        deployment=deployment_table(found),
        **_fields(found),
    )


if __name__ == "__main__":
    main()
