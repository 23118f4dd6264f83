"""How tight are the bounds of the throughput, and does a pair of batches depend on how it started? `docs/bounds.md`.

Run as ``python -m asapmodel.studies.bounds [--output DIR] [--cases N]``, a minute or two. Every case is followed to its
end by the graph engine with all prompts waiting from the beginning.
"""

import argparse
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from asapmodel.studies.bounds_figures import SYSTEMS, draw_figure
from asapmodel.studies.bounds_pairs import STREAMS, PairRow, drawn_pairs, follow_pairs, pairs_of_cases
from asapmodel.studies.bounds_runs import Row, measure
from asapmodel.studies.engines_cases import DEVELOPMENT_SEED, EARLIER_SEED, Case, draw
from asapmodel.studies.pages import markdown_table

__all__ = ["main", "page"]

SEEDS = (DEVELOPMENT_SEED, EARLIER_SEED)

_PAIRS, _PAIR_SEED, _EACH = 2000, 7, 8  # pairs drawn; pairs of a case
_SAME = 1e-9


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the page and its figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    parser.add_argument("--cases", type=int, default=250, help="of each seed")
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    cases = [case for seed in SEEDS for case in draw(seed, given.cases)]
    rows = [measure(case) for case in cases]
    pairs = _pairs(cases)
    draw_figure(rows, given.output / "figures")
    text = page(rows, pairs)
    (given.output / "bounds.md").write_text(text, encoding="utf-8")
    print(text)
    print(f"{time.perf_counter() - began:.0f} s")


def _pairs(cases: list[Case]) -> dict[tuple[str, bool, bool], list[PairRow]]:
    """Pairs by where they come from and by streams."""
    systems = [case for case in cases if case.system == "asap"]
    found = {}
    for attention, moe in STREAMS:
        found["drawn", attention, moe] = follow_pairs(drawn_pairs(_PAIRS, _PAIR_SEED), attention, moe)
        found["of the systems", attention, moe] = follow_pairs(pairs_of_cases(systems, _EACH), attention, moe)
    return found


def page(rows: Sequence[Row], pairs: dict[tuple[str, bool, bool], list[PairRow]]) -> str:
    """The text of `docs/bounds.md`."""
    template = files("asapmodel.studies").joinpath("data/bounds_page.md").read_text(encoding="utf-8")
    synchronous = np.array([row.independent / row.truth for row in rows if row.system == "sync"])
    low, middle, high = np.quantile(synchronous, [0.05, 0.5, 0.95])
    return template.format(
        cases=len(rows),
        seeds=" and ".join(map(str, SEEDS)),
        above=sum(not row.high_holds for row in rows),
        below=sum(not row.low_holds for row in rows),
        regimes=_table(rows, ("attention-bound", "MoE-bound", "transfer-bound", "latency-bound")),
        policies=_policies(rows),
        blocked=_blocked(rows),
        shortest=f"{_shortest(rows).blocked:.0%}",
        independent=f"{middle - 1:+.1%} in the median, 90 % of the cases between {low - 1:+.1%} and {high - 1:+.1%}",
        pairs=_pair_table(pairs),
        followed=sum(len(some) for some in pairs.values()),
        turns=max(row.turns for some in pairs.values() for row in some),
    )


def _line(some: Sequence[Row]) -> list[str]:
    reached = np.array([row.truth / row.upper for row in some])
    lower = np.array([row.lower / row.truth for row in some])
    margin = np.median([row.regime.margin for row in some])
    numbers = [
        np.median(reached),
        np.quantile(reached, 0.05),
        reached.min(),
        np.median(lower),
        np.quantile(lower, 0.05),
    ]
    return [str(len(some)), *(f"{value:.1%}" for value in numbers), f"{margin:.2f}"]


_HEADER = ["cases", "reached: median", "5th percentile", "least", "lower bound: median", "5th percentile", "margin"]


def _table(rows: Sequence[Row], regimes: Sequence[str]) -> str:
    """By system and regime."""
    lines = []
    for system, word in SYSTEMS.items():
        own = [row for row in rows if row.system == system]
        table = {name: [row for row in own if row.regime.name == name] for name in regimes} | {"all": own}
        lines += [[word, name, *_line(some)] for name, some in table.items() if some]
    return markdown_table(["system", "regime", *_HEADER], lines, range(2, 9))


def _policies(rows: Sequence[Row]) -> str:
    """By how batches meet."""
    lines = []
    for system, word in SYSTEMS.items():
        own = [row for row in rows if row.system == system]
        for name in sorted({row.pairing for row in own}):
            lines.append([word, name, *_line([row for row in own if row.pairing == name])])
    return markdown_table(["system", "batches", *_HEADER], lines, range(2, 9))


def _blocked(rows: Sequence[Row]) -> str:
    """What asynchronous systems reach, by whether the MoE devices wait for a group to receive."""
    own = [row for row in rows if row.system == "asap"]
    lines = []
    for name, low, high in (("0", -1.0, 0.0), ("up to 10 %", 0.0, 0.1), ("10 to 30 %", 0.1, 0.3), ("above", 0.3, 1.0)):
        some = [row for row in own if low < row.blocked <= high]
        if some:
            lines.append([name, *_line(some)])
    return markdown_table(["blocked", *_HEADER], lines, range(1, 8))


def _shortest(rows: Sequence[Row]) -> Row:
    """The asynchronous system that reaches the least of its upper bound."""
    return min((row for row in rows if row.system == "asap"), key=lambda row: row.truth / row.upper)


def _pair_table(pairs: dict[tuple[str, bool, bool], list[PairRow]]) -> str:
    lines = []
    for (source, attention, moe), some in pairs.items():
        spread = np.array([row.spread for row in some])
        several = spread > _SAME
        excess = np.array([row.excess for row in some])
        slower = np.array([row.layer_s[0] / min(row.layer_s) - 1 for row in some])
        lines.append(
            [
                source,
                f"{3 if attention else 1} / {3 if moe else 1}",
                str(len(some)),
                f"{np.mean(several):.1%}",
                f"{np.median(spread[several]):.1%} / {spread.max():.1%}" if several.any() else "",
                f"{np.mean(slower > _SAME):.1%}",
                f"{np.mean(excess > _SAME):.0%}",
                f"{np.quantile(excess, 0.95):.1%} / {excess.max():.1%}",
            ]
        )
    header = ["pairs", "streams: group / MoE", "number", "several steady states", "spread: median / largest"]
    header += ["together is slower", "above the floor", "excess: 95th percentile / largest"]
    return markdown_table(header, lines, range(2, 8))


if __name__ == "__main__":
    main()
