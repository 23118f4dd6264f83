"""What does dual batching bring, and when does it not pay? Writes `docs/studies/dual_batching.md`.

Run as ``python -m asapmodel.studies.dual_batching [--output DIR]``, one to two minutes.
"""

import argparse
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from asapmodel.result import Capacity
from asapmodel.studies.dp_imbalance_runs import OTHERS
from asapmodel.studies.dual_batching_figures import draw_figure
from asapmodel.studies.dual_batching_runs import MODES, Curve, Mode, Row, curve, gain_of_prompts, measure, system
from asapmodel.studies.pages import markdown_table
from asapmodel.verbs.capacity import capacity

__all__ = ["confirm", "main", "page"]

_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768)
_CURVE = tuple(round(256 * 2 ** (k / 2)) for k in range(15))  # to 32768
_GROUPS = (1, 2, 3, 4, 6, 8, 12)
_EXCLUSIVE = (16384, 32768)  # the paper's, and none: no prompt is longer
_LAWS: tuple[float | str, ...] = (0.0, 0.5, 1.0, 2.0, *OTHERS)
_OWN = 2048
_WORDS: dict[Mode, str] = {"single": "one at a time", "locked": "locked pairs", "rolling": "rolling pairs"}


def main(arguments: list[str] | None = None) -> None:
    """Measure, confirm, and write the page and its figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    folder = parser.parse_args(arguments).output
    sizes = [measure(OTHERS[0], tokens) for tokens in _SIZES]
    groups = [measure(OTHERS[0], groups=D) for D in _GROUPS]
    laws = [measure(name, exclusive=exclusive) for name in _LAWS for exclusive in _EXCLUSIVE]
    curves = [curve(tokens) for tokens in _CURVE]
    draw_figure(sizes, curves, groups, folder / "figures" / "study-dual_batching.svg")
    (folder / "studies").mkdir(parents=True, exist_ok=True)
    text = page(sizes, groups, laws, curves, confirm(8))
    (folder / "studies" / "dual_batching.md").write_text(text, encoding="utf-8")


def confirm(replications: int) -> dict[Mode, Capacity]:
    """The paper's system in its three modes by runs of the graph engine."""
    return {mode: capacity(system(OTHERS[0], mode=mode), "graph", replications) for mode in MODES}


def page(
    sizes: Sequence[Row],
    groups: Sequence[Row],
    laws: Sequence[Row],
    curves: Sequence[Curve],
    runs: Mapping[Mode, Capacity],
) -> str:
    """Fill in the page."""
    template = files("asapmodel.studies").joinpath("data/dual_batching_page.md").read_text(encoding="utf-8")
    by_size = {row.min_batch_tokens: row for row in sizes}
    by_law = {(row.law, row.exclusive_tokens): row for row in laws}
    own, twice, largest = by_size[_OWN], by_size[2 * _OWN], by_size[max(by_size)]
    gains = [row.gain("locked") for row in sizes]
    rolling = [row.slo_rps["rolling"] / row.slo_rps["locked"] - 1 for row in (*sizes, *laws)]
    many = next(row for row in groups if row.limit_gain("locked") < 0.05)
    short, free = by_law[OTHERS[1], 16384], by_law[OTHERS[0], 32768]
    long, long_free = by_law[OTHERS[2], 16384], by_law[OTHERS[2], 32768]
    return template.format(
        sizes=_size_table(sizes),
        groups=_group_table(groups),
        laws=_law_table(laws),
        runs=_run_table(runs),
        own_gain=own.gain("locked"),
        runs_gain=runs["locked"].slo_throughput_rps / runs["single"].slo_throughput_rps - 1,
        light=own.light_ttft_s["locked"] / own.light_ttft_s["single"] - 1,
        low=min(gains),
        high=max(gains),
        best=max(sizes, key=lambda row: row.slo_rps["locked"]).min_batch_tokens,
        twice=own.slo_rps["locked"] / twice.slo_rps["single"] - 1,
        largest=own.slo_rps["locked"] / largest.slo_rps["single"] - 1,
        rolling_low=min(rolling),
        rolling_high=max(rolling),
        least_halving=next(one.tokens for one in curves if one.halving > 0),
        smallest=curves[0],
        form_worst=100 * max(abs(one.form - one.exact) for one in curves),
        over_form=100 * max(row.form - row.pairs for row in sizes),
        one_group=groups[0].limit_gain("rolling"),
        one_group_pairs=groups[0].pairs,
        some_groups=max(groups, key=lambda row: row.limit_gain("rolling")),
        some_groups_gain=max(row.limit_gain("rolling") for row in groups),
        many=many,
        many_gain=many.limit_gain("locked"),
        short=short,
        short_gain=short.gain("locked"),
        free_gain=free.gain("locked"),
        own_exclusive_gain=by_law[OTHERS[0], 16384].gain("locked"),
        free_rps=free.slo_rps["locked"],
        long_gain=long.gain("locked"),
        long_free_gain=long_free.gain("locked"),
        prompts_16k=gain_of_prompts(16384),
        prompts_32k=gain_of_prompts(32768),
    )


def _size_table(sizes: Sequence[Row]) -> str:
    rows = [
        [
            str(row.min_batch_tokens),
            *_rates(row),
            *_limit_gains(row),
            f"{row.pairs:+.1%}",
            f"{row.form:+.1%}",
            _light(row),
        ]
        for row in sizes
    ]
    header = ["batches from", *_WORDS.values(), "gain, locked", "rolling", "limit, locked", "rolling"]
    return markdown_table([*header, "exact pairs", "closed form", "TTFT at 1"], rows, right=range(11))


def _rates(row: Row) -> list[str]:
    rates = [f"{row.slo_rps[mode]:.1f}" for mode in MODES]
    return [*rates, f"{row.gain('locked'):+.1%}", f"{row.gain('rolling'):+.1%}"]


def _limit_gains(row: Row) -> list[str]:
    return [f"{row.limit_gain('locked'):+.1%}", f"{row.limit_gain('rolling'):+.1%}"]


def _light(row: Row) -> str:
    single, locked = row.light_ttft_s["single"], row.light_ttft_s["locked"]
    return f"{1000 * single:.0f} to {1000 * locked:.0f} ms"


def _group_table(groups: Sequence[Row]) -> str:
    rows = [
        [
            str(row.groups),
            *(f"{row.limit_rps[mode]:.1f}" for mode in MODES),
            f"{row.moe_load:.0%}",
            *_limit_gains(row),
        ]
        for row in groups
    ]
    header = ["groups D", *_WORDS.values(), "MoE devices busy, one at a time", "gain, locked", "rolling"]
    return markdown_table(header, rows, right=range(7))


def _law_table(laws: Sequence[Row]) -> str:
    rows = [
        [
            row.law,
            str(row.exclusive_tokens),
            f"{row.exclusive_share:.0%}",
            *_rates(row),
            f"{row.moe_load:.0%}",
            f"{row.pairs:+.1%}",
            _light(row),
        ]
        for row in laws
    ]
    header = ["lengths", "exclusive above", "their time", *_WORDS.values(), "gain, locked", "rolling"]
    return markdown_table([*header, "MoE devices busy", "exact pairs", "TTFT at 1"], rows, right=range(1, 11))


def _run_table(runs: Mapping[Mode, Capacity]) -> str:
    rows = []
    for mode, one in runs.items():
        low, high = one.interval_rps or (one.slo_throughput_rps,) * 2
        rows.append([_WORDS[mode], f"{one.slo_throughput_rps:.1f}", f"{low:.1f} to {high:.1f}"])
    return markdown_table(["batches", "SLO throughput", "95 % interval"], rows, right=[1])


if __name__ == "__main__":
    main()
