"""Where does D4 T4 E16 stand among all splits of 32 devices? Writes `docs/studies/design_space.md`.

Run as ``python -m asapmodel.studies.design_space [--output DIR]``, two to three minutes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from asapmodel.exploration.result import Exploration
from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.studies.design_space_figure import design_space_figure
from asapmodel.studies.design_space_search import (
    OPEN,
    Bounds,
    best_rows,
    bounds_of,
    chosen,
    explored,
    limits,
    needs_gb,
    own_policy,
    settled,
    with_fit,
)
from asapmodel.studies.design_space_tables import (
    bound_table,
    name_of,
    policy_of,
    rps_of,
    run_table,
    size_table,
    split_table,
    sync_table,
)
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import Ratio, fill, output_folder, ratio_of, slo_rates, write_page
from asapmodel.verbs.capacity import capacity

__all__ = ["Answers", "candidates", "main", "page"]

_SHARP = 1.0
_PAPER = (4, 4, 16)
_MEMORY = 64.0  # GB

Row: TypeAlias = "pd.Series[Any]"


@dataclass(frozen=True, eq=False)
class Answers:
    """Splits, best first: best policy, the paper's, synchronous; without a limit of memory for either objective."""

    best: pd.DataFrame
    own: pd.DataFrame
    sync: pd.DataFrame
    opened: pd.DataFrame
    sharp: pd.DataFrame


def main(arguments: list[str] | None = None) -> None:
    """Explore, confirm, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    found = explored()
    answers = Answers(
        settled(best_rows(found.table)),
        settled(own_policy(found.table)),
        settled(best_rows(found.table, "sync")),
        settled(best_rows(explored(OPEN, sync=False).table), OPEN),
        settled(best_rows(explored(OPEN, _SHARP, sync=False).table), OPEN, _SHARP),
    )
    runs = {
        name: (row, capacity(chosen(row), engine="graph", replications=8)) for name, row in candidates(answers).items()
    }
    rates = [slo_rates(chosen(row)) for row in (_others(answers.own), _of_split(answers.own))]
    bounds = bounds_of(answers.opened)
    sync_rps = float(answers.sync["slo_throughput_rps"].iloc[0])
    figure = design_space_figure(with_fit(answers.opened, answers.best), answers.own, sync_rps, bounds)
    save_figure(figure, folder / "figures" / "study-design_space.svg")
    write_page("design_space", page(found, answers, runs, ratio_of(*rates), bounds), folder)


def candidates(answers: Answers) -> dict[str, Row]:
    """Rows to confirm: the paper's split with its policy, the three best splits, the best synchronous system."""
    rows = {"the paper's split and policy": _of_split(answers.own)}
    rows["best other split, paper's policy"] = _others(answers.own)
    for place, (_, row) in enumerate(answers.best.head(3).iterrows(), 1):
        rows[f"best policy, place {place}"] = row
    rows["synchronous, best"] = answers.sync.iloc[0]
    return rows


def page(
    found: Exploration,
    answers: Answers,
    runs: Mapping[str, tuple[Row, Capacity]],
    other_ratio: Ratio,
    bounds: Bounds,
) -> str:
    """The text of the page; `other_ratio` is of the best other split with the paper's policy over the paper's."""
    table, best, own, sync = found.table, answers.best, answers.own, answers.sync
    return fill(
        "design_space",
        policies=str(table[table["system"] == "asap"].groupby(["D", "T"]).size().max() - 1),
        combinations=f"{found.combinations - found.left_out[0].points:,}",
        left_out=", ".join(f"{one.points:,} are left out by {one.reason}" for one in found.left_out[1:]),
        table=split_table(best, own),
        runs=run_table(runs),
        other=name_of(_others(own)),
        other_ratio=str(other_ratio),
        sync_rps=rps_of(sync.iloc[0]),
        sync_layout=f"D{sync.iloc[0]['D']} T{sync.iloc[0]['T']}, {policy_of(sync.iloc[0])}",
        by_T=size_table(answers.opened, answers.sharp),
        bounds=bound_table(bounds),
        sync=sync_table(sync),
        sharp=f"{_SHARP:g}",
        sharp_layout=name_of(answers.sharp.iloc[0]),
        **_choice_fields(answers),
        **_memory_fields(answers),
    )


def _choice_fields(answers: Answers) -> dict[str, str]:
    """What the paper's choice is worth and what it leaves."""
    best, own, opened = answers.best, answers.own, answers.opened
    top, paper, tuned = best.iloc[0], _of_split(own), _of_split(best)
    open4 = opened[opened["T"] == 4].iloc[0]
    own_star, tuned_star = (limits(chosen(row)).best_groups for row in (paper, tuned))
    return {
        "best_rps": rps_of(top),
        "second": name_of(best.iloc[1]),
        "second_gap": f"{-_gain(best.iloc[1], top):.0%}",
        "own_star": f"{own_star:.2f}",
        "own_round": str(round(own_star)),
        "tuned_star": f"{tuned_star:.2f}",
        "policy_gain": f"{_gain(tuned, paper):+.0%}",
        "best_policy": policy_of(tuned),
        "open_layout": name_of(opened.iloc[0]),
        "open_rps": rps_of(opened.iloc[0]),
        "open_gain": f"{_gain(opened.iloc[0], top):+.0%}",
        "open4_layout": name_of(open4),
        "open4_rps": rps_of(open4),
        "open4_gain": f"{_gain(open4, tuned):+.0%}",
    }


def _memory_fields(answers: Answers) -> dict[str, str]:
    """What splits need, and the best split if dispatched tokens took one byte a value."""
    best, opened = answers.best, answers.opened
    free = Scenario.load("paper-asap").replace(**{"cluster.memory_bytes": OPEN})
    devices = best["D"] * best["T"]
    widest = best[devices == devices.max()]
    found = [limits(chosen(row)) for _, row in best.iterrows()]
    needs = [needs_gb(chosen(row, OPEN), token_bytes=1.0) for _, row in opened.iterrows()]
    fits = opened[[max(one["attention"], one["moe"]) <= _MEMORY for one in needs]].iloc[0]
    return {
        "fitting": str(len(best)),
        "attention_bound": str(sum(one.attention < one.experts for one in found)),
        "fit_devices": str(int(devices.max())),
        "widest": ", ".join(name_of(row) for _, row in widest.iterrows()),
        "paper_gb": f"{needs_gb(free)['moe']:.1f}",
        "more_gb": f"{needs_gb(free.replace(D=5, E=12))['moe']:.1f}",
        "buffer_gb": f"{needs_gb(free)['buffers'] / 4:.2f}",
        "copies": str(free.architecture.value.experts_per_token),
        "byte_layout": name_of(fits),
        "byte_rps": rps_of(fits),
        "byte_gb": f"{needs_gb(chosen(fits, OPEN), 1.0)['moe']:.1f}",
        "byte_gain": f"{_gain(fits, best.iloc[0]):+.0%}",
    }


def _gain(above: Row, below: Row) -> float:
    return float(above["slo_throughput_rps"] / below["slo_throughput_rps"] - 1)


def _of_split(rows: pd.DataFrame) -> Row:
    """The row of the paper's split."""
    D, T, E = _PAPER
    return rows[(rows["D"] == D) & (rows["T"] == T) & (rows["E"] == E)].iloc[0]


def _others(rows: pd.DataFrame) -> Row:
    """The best split that is not the paper's."""
    return rows[(rows["D"] != _PAPER[0]) | (rows["T"] != _PAPER[1])].iloc[0]


if __name__ == "__main__":
    main()
