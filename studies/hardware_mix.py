"""Do attention and experts want different hardware? Writes `docs/studies/hardware_mix.md`.

Run as ``python -m asapmodel.studies.hardware_mix [--output DIR]``, about a minute.
"""

from collections.abc import Mapping, Sequence

from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.studies.hardware_mix_devices import KINDS, Point, best_value, break_even, measure, paying, speeds, splits
from asapmodel.studies.hardware_mix_figure import hardware_mix_figure
from asapmodel.studies.pages import markdown_table, save_figure
from asapmodel.studies.paired_runs import fill, output_folder, write_page
from asapmodel.verbs.capacity import capacity

__all__ = ["Pairs", "fitting", "main", "measured", "page"]

_PLAIN, _FAST, _BAND = (kind.name for kind in KINDS)
_REPLICATIONS = 4

Pairs = Mapping[tuple[str, str], Sequence[Point]]


def measured(scenarios: Sequence[Scenario] | None = None) -> dict[tuple[str, str], list[Point]]:
    """Every pairing of kinds on every split: attention first."""
    chosen = list(splits()) if scenarios is None else scenarios
    return {(a.name, e.name): measure(a, e, chosen) for a in KINDS for e in KINDS}


def fitting(found: Pairs) -> dict[tuple[str, str], list[Point]]:
    """Only splits that fit 64 GB."""
    return {pair: [one for one in points if one.fits] for pair, points in found.items()}


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    found = measured()
    fits = fitting(found)
    confirmed = [(_PLAIN, _PLAIN), (_FAST, _PLAIN), (_PLAIN, _FAST), (_FAST, _FAST)]
    runs = {
        pair: capacity(best_value(fits[pair], 1, 1).scenario, engine="graph", replications=_REPLICATIONS)
        for pair in confirmed
    }
    fast = {size: speeds(KINDS[1], size) for size in (2048, 16384)}
    save_figure(hardware_mix_figure(fits, found), folder / "figures" / "study-hardware_mix.svg")
    write_page("hardware_mix", page(found, runs, fast), folder)


def page(found: Pairs, runs: Mapping[tuple[str, str], Capacity], fast: Mapping[int, tuple[float, float]]) -> str:
    """The text of the page; `fast` are the speeds of the compute-rich kind by batch size."""
    fits = fitting(found)
    plain, plain_open = _each(fits, _PLAIN, _PLAIN), _each(found, _PLAIN, _PLAIN)
    return fill(
        "hardware_mix",
        splits=str(len({(one.attention, one.experts) for one in found[_PLAIN, _PLAIN]})),
        table=_table(fits, found),
        replications=str(_REPLICATIONS),
        runs=_run_table(fits, runs),
        group_small=f"{fast[2048][0]:.2f}",
        group_large=f"{fast[16384][0]:.2f}",
        expert_small=f"{fast[2048][1]:.2f}",
        expert_large=f"{fast[16384][1]:.2f}",
        pay_attention=f"{break_even(fits[_FAST, _PLAIN], plain, 'attention'):.2f}",
        pay_experts=f"{break_even(fits[_PLAIN, _FAST], plain, 'experts'):.2f}",
        pay_all=f"{_each(fits, _FAST, _FAST) / plain:.2f}",
        mix_fits=_mixes(fits),
        mix_open=_mixes(found),
        expert_gain=f"{_each(fits, _PLAIN, _FAST) / plain - 1:+.0%}",
        attention_gain=f"{_each(fits, _FAST, _PLAIN) / plain - 1:+.0%}",
        expert_gain_open=f"{_each(found, _PLAIN, _FAST) / plain_open - 1:+.0%}",
        band_experts=f"{break_even(fits[_PLAIN, _BAND], plain, 'experts'):.2f}",
        band_all=f"{_each(fits, _BAND, _BAND) / plain:.2f}",
        prices=_price_table({"64 GB": fits, "any memory": found}),
    )


def _each(found: Pairs, attention: str, experts: str) -> float:
    return best_value(found[attention, experts], 1, 1).value(1, 1)


def _words(span: tuple[float, float] | None) -> str:
    return "none" if span is None else f"{span[0]:.2f} to {span[1]:.2f}"


def _mixes(found: Pairs) -> str:
    """Every mix that pays, with its prices."""
    words = []
    for kind in (_FAST, _BAND):
        for stage in ("attention", "experts"):
            span = paying(found, kind, stage)
            if span is not None:
                words.append(f"{stage} on {kind} devices at {_words(span)}")
    return ", ".join(words) or "none"


def _table(fits: Pairs, found: Pairs) -> str:
    lines = []
    for (attention, experts), points in fits.items():
        line = [attention, experts]
        for some in (points, found[attention, experts]):
            best = best_value(some, 1, 1)
            degrees = f"D{best.scenario.layout.D} T4 E{best.experts}, from {best.scenario.policy.min_batch_tokens}"
            line += [degrees, f"{best.slo_rps:.1f}", f"{best.value(1, 1):.3f}"]
        lines.append(line)
    header = ["attention", "experts", "64 GB", "rps", "per device", "any memory", "rps", "per device"]
    return markdown_table(header, lines, (3, 4, 6, 7))


def _run_table(fits: Pairs, runs: Mapping[tuple[str, str], Capacity]) -> str:
    lines = []
    for pair, one in runs.items():
        low, high = one.interval_rps or (one.slo_throughput_rps,) * 2
        queueing = f"{best_value(fits[pair], 1, 1).slo_rps:.1f}"
        lines.append([*pair, queueing, f"{one.slo_throughput_rps:.1f}", f"{low:.1f} to {high:.1f}"])
    return markdown_table(["attention", "experts", "queueing engine", "runs", "95 % interval"], lines, (2, 3))


def _price_table(both: Mapping[str, Pairs]) -> str:
    lines = []
    for memory, found in both.items():
        plain = _each(found, _PLAIN, _PLAIN)
        for kind in (_FAST, _BAND):
            for stage in ("attention", "experts"):
                pair = (kind, _PLAIN) if stage == "attention" else (_PLAIN, kind)
                price = break_even(found[pair], plain, stage)
                lines.append([memory, kind, stage, f"{price:.2f}", _words(paying(found, kind, stage))])
            lines.append([memory, kind, "both", f"{_each(found, kind, kind) / plain:.2f}", ""])
    return markdown_table(["memory", "kind", "in", "pays up to", "best of all at"], lines, (3,))


if __name__ == "__main__":
    main()
