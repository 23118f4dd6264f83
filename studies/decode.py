"""Does asynchronous execution pay in decode? Writes `docs/studies/decode.md`.

Run as ``python -m asapmodel.studies.decode [--output DIR]``, some seconds.
"""

from collections.abc import Sequence

import numpy as np

from asapmodel.models.imbalance import expected_maximum
from asapmodel.studies.decode_cases import MOST, Case, best_split, crossover, draw_case, prefill_variation, within
from asapmodel.studies.decode_figure import decode_figure
from asapmodel.studies.decode_layers import Layer, asynchronous_layer, followed, lockstep_layer, merged_layer
from asapmodel.studies.pages import markdown_table, plain, save_figure
from asapmodel.studies.paired_runs import fill, output_folder, write_page

__all__ = ["CASES", "main", "page"]

CASES = ((4, 1.0), (4, 8.0), (1, 1.0), (1, 8.0))
"""Devices of a group, and contexts as multiples of the paper's prompt lengths."""

_LONGEST = 32.0
_OBJECTIVES = (0.05, 0.1)  # s a token


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    cases = [draw_case(*one) for one in CASES]
    save_figure(decode_figure(cases), folder / "figures" / "study-decode.svg")
    write_page("decode", page(cases), folder)


def page(cases: Sequence[Case]) -> str:
    """The text of the page."""
    first, short = cases[0], cases[2]
    both = [(_lockstep(case), _free(case)) for case in cases]
    slower = [free.cycle_s / lockstep.cycle_s for lockstep, free in both]
    merged = [merged_layer(case.free, case.sequences, case.contexts).cycle_s for case in cases]
    gains = [lockstep.cycle_s / one for (lockstep, _), one in zip(both, merged, strict=True)]
    barriers = [lockstep.limits["barrier"] / lockstep.cycle_s for lockstep, _ in both]
    longest = _long(first, _LONGEST)[2]
    return fill(
        "decode",
        table=_table(cases, both),
        objectives=_objectives(cases),
        variations=_variations(first),
        experts=_experts(first),
        slower=f"{min(slower):.1f} to {max(slower):.1f}",
        lockstep_ms=f"{1e3 * _layers(first) * both[0][0].cycle_s:.0f}",
        free_ms=f"{1e3 * _layers(first) * both[0][1].cycle_s:.0f}",
        sequences=str(first.sequences),
        batch=str(_batch(first)),
        limits=", ".join(dict.fromkeys(free.limit for _, free in both)),
        calls=str(2 * first.free.layout.D),
        calls_short=str(2 * short.free.layout.D),
        merged=f"{min(gains) - 1:+.0%} to {max(gains) - 1:+.0%}",
        barrier=f"{min(barriers):.1%} to {max(barriers):.1%}",
        barrier_longest=f"{longest.limits['barrier'] / longest.cycle_s:.0%}",
        longest=plain(_LONGEST * float(first.contexts.mean()) / 1024),
        split=_splits(cases),
        variation=f"{_variation(first, _batch(first)):.3f}",
        prefill=f"{prefill_variation():.2f}",
        needed=f"{2 * first.free.layout.D * 2048:,}",
        fits=f"{first.fits:,.0f}",
        crossovers=_crossovers(cases),
        errors=f"{_error(cases, both):.1%}",
    )


def _splits(cases: Sequence[Case]) -> str:
    """What the best split serves of what the synchronous system serves, over cases and objectives."""
    shares = [
        best_split(case, objective)[0] / within(case.lockstep, lockstep_layer, case.contexts, objective)
        for case in cases
        for objective in _OBJECTIVES
    ]
    return f"{min(shares):.0%} to {max(shares):.0%}"


def _error(cases: Sequence[Case], both: Sequence[tuple[Layer, Layer]]) -> float:
    """Largest relative difference of the closed forms from the graph engine."""
    return max(
        abs(_graph(case, kind) / one.cycle_s - 1)
        for case, pair in zip(cases, both, strict=True)
        for kind, one in zip(("sync", "asap"), pair, strict=True)
    )


def _lockstep(case: Case) -> Layer:
    return lockstep_layer(case.lockstep, case.sequences, case.contexts)


def _free(case: Case) -> Layer:
    return asynchronous_layer(case.free, case.sequences, case.contexts)


def _layers(case: Case) -> int:
    return case.free.architecture.layers


def _graph(case: Case, kind: str) -> float:
    return followed(case.lockstep if kind == "sync" else case.free, case.sequences, case.contexts)


def _batch(case: Case) -> int:
    return case.sequences // (2 * case.free.layout.D)


def _variation(case: Case, batch: int, factor: float = 1.0) -> float:
    """Coefficient of variation of the attention of a batch of decode."""
    each = case.free.context_s(factor * case.contexts)
    mean = case.free.attention_s(batch, batch * float(each.mean()))
    return float(np.sqrt(batch) * each.std()) / mean


def _table(cases: Sequence[Case], both: Sequence[tuple[Layer, Layer]]) -> str:
    lines = []
    for case, pair in zip(cases, both, strict=True):
        for kind, word, one in zip(("sync", "asap"), ("synchronous", "asynchronous"), pair, strict=True):
            times = (one.attention_s, one.transfers_s, one.experts_s, one.cycle_s, _graph(case, kind))
            lines.append(
                [
                    case.name,
                    word,
                    f"{one.sequences:.0f}",
                    *(f"{1e3 * value:.2f}" for value in times),
                    f"{1e3 * _layers(case) * one.cycle_s:.0f}",
                    one.limit,
                ]
            )
    header = ["", "system", "sequences a batch", "attention", "transfers", "experts, a call", "cycle", "graph engine"]
    return markdown_table([*header, "ms a token", "largest term"], lines, range(2, 9))


def _objectives(cases: Sequence[Case]) -> str:
    lines = []
    for case in cases:
        for objective in _OBJECTIVES:
            best, groups, batches = best_split(case, objective)
            systems = (
                (case.lockstep, lockstep_layer),
                (case.free, asynchronous_layer),
                (case.free, merged_layer),
            )
            cells = [f"{within(costs, law, case.contexts, objective):,.0f}" for costs, law in systems]
            experts = case.free.layout.devices - groups * case.free.layout.T
            shown = f"{best:,.0f} (D{groups} E{experts}, {('one batch', 'two')[batches - 1]})"
            lines.append([case.name, f"{1e3 * objective:.0f}", *cells[:2], shown if best else "0", cells[2]])
    header = ["", "ms a token", "synchronous", "asynchronous", "asynchronous, best split", "merged (bound)"]
    return markdown_table(header, lines, range(1, 6))


def _long(case: Case, factor: float) -> tuple[int, float, Layer]:
    """Sequences a group, variation of attention and layer of the synchronous system with contexts that much longer."""
    groups = case.lockstep.layout.D
    batch = max(int(case.sequences / factor) // groups, 1)
    layer = lockstep_layer(case.lockstep, batch * groups, factor * case.contexts)
    return batch, _variation(case, batch, factor), layer


def _variations(case: Case) -> str:
    lines = []
    kappa = expected_maximum(case.lockstep.layout.D)
    for factor in (1.0, 8.0, _LONGEST):
        batch, cv, layer = _long(case, factor)
        share = layer.limits["barrier"] / layer.cycle_s
        mean = f"{factor * case.contexts.mean() / 1024:.0f}k"
        lines.append([mean, str(batch), f"{cv:.3f}", f"{cv * kappa:.1%}", f"{share:.1%}"])
    header = ["mean context", "sequences a group", "CV of attention", "slowest of D above the mean", "of the layer"]
    return markdown_table(header, lines, range(5))


def _experts(case: Case) -> str:
    sizes = (16, 64, 256, 1024, 4096, 16384)
    lines = [
        [
            f"{size:,}",
            f"{1e3 * case.free.experts_s(size):.2f}",
            f"{1e9 * case.free.experts_s(size) / size:,.0f}",
            f"{1e3 * case.lockstep.experts_s(size):.2f}",
            f"{1e9 * case.lockstep.experts_s(size) / size:,.0f}",
        ]
        for size in sizes
    ]
    header = ["tokens of a call", "E = 16, ms", "ns a token", "E = 32, ms", "ns a token"]
    return markdown_table(header, lines, range(5))


def _crossovers(cases: Sequence[Case]) -> str:
    """Where the asynchronous system becomes faster, case by case, and in how many it never does."""
    lines = []
    for case in cases:
        first = crossover(case)
        if np.isfinite(first):
            token = _layers(case) * asynchronous_layer(case.free, first, case.contexts).cycle_s
            sequences = float(f"{first:.2g}")
            lines.append(f"from {sequences:,.0f} sequences on, at {plain(token, 2)} s a token ({case.name})")
    never = len(cases) - len(lines)
    lines.append(f"never up to {MOST:,.0f} sequences in {never} of {len(cases)} cases")
    return "; ".join(lines)


if __name__ == "__main__":
    main()
