"""The tables of the page on when asynchronous execution is worth it."""

from asapmodel.studies.pages import markdown_table
from asapmodel.studies.when_asynchronous_findings import PAPERS, Findings
from asapmodel.studies.when_asynchronous_laws import limits_ratio
from asapmodel.studies.when_asynchronous_maps import length_cv
from asapmodel.studies.when_asynchronous_published import RATES, best_ratio, deployment_cells, measured_ttft
from asapmodel.studies.when_asynchronous_search import label
from asapmodel.studies.when_asynchronous_why import STEPS

__all__ = ["deployment_table", "factor_table", "law_names", "law_table", "loads_table", "run_table", "size_table"]


def law_names() -> dict[float | str, str]:
    """Names of the laws of length with their variation."""
    names: dict[float | str, str] = {0.0: "constant", PAPERS: "the paper's"}
    names |= {"azure2023_conv": "Azure, short", "mooncake_conversation": "Mooncake, long"}
    names |= {sigma: f"log-normal, sigma {sigma:g}" for sigma in (0.5, 0.75, 1.0, 1.5)}
    order = sorted(names, key=length_cv)
    return {name: f"{names[name]} ({length_cv(name):.2f})" for name in order}


def loads_table(found: Findings) -> str:
    """The best systems by lengths, with gains and TTFT ratios."""
    names = law_names()
    at = {(one.y, one.x): one.ratio for one in found.loads}
    rows = [
        [
            names[name],
            label(pair.best_sync.scenario, pair.best_sync.instances),
            f"{pair.best_sync.slo_rps:.1f}",
            f"{pair.single_sync.slo_rps:.1f}",
            label(pair.best_asap.scenario, pair.best_asap.instances),
            f"{pair.best_asap.slo_rps:.1f}",
            f"{pair.gain:+.0%}",
            f"{pair.best_asap.slo_rps / pair.single_sync.slo_rps - 1:+.0%}",
            *(f"{at[name, load]:.2f}" for load in (0.1, 0.4, 0.75)),
        ]
        for name, pair in found.lengths.items()
    ]
    header = ["lengths (CV)", "best synchronous", "rps", "of one instance", "best asynchronous", "rps", "gain"]
    header += ["over one instance", "TTFT ratio at 10 %", "40 %", "75 %"]
    return markdown_table(header, rows, (2, 3, 5, 6, 7, 8, 9, 10))


def factor_table(found: Findings) -> str:
    """What the gains are made of."""
    rows = [
        [name, *(f"{factor:.2f}" for factor in one.factors), f"{one.gain:+.0%}"] for name, one in found.ladders.items()
    ]
    return markdown_table(["workload", *STEPS, "gain"], rows, range(1, 10))


def law_table(found: Findings) -> str:
    """Engine and closed forms."""
    names = law_names()
    rows = [
        [
            f"{spread:g}",
            names[name],
            f"{limits_ratio(pair) - 1:+.0%}",
            f"{found.laws[spread, name].ratio - 1:+.0%}",
            f"{found.laws[spread, name].batch_cv:.2f}",
            f"{found.laws[spread, name].break_even_cv:+.2f}",
        ]
        for (spread, name), pair in sorted(found.spreads.items(), key=lambda item: (item[0][0], str(item[0][1])))
    ]
    header = ["spread of experts", "lengths (CV)", "engine", "closed forms", "c_B", "break-even c_B"]
    return markdown_table(header, rows, (0, 2, 3, 4, 5))


def run_table(found: Findings) -> str:
    """Gains by runs of the graph engine."""
    rows = [[name, f"{gain:+.1%}", str(ratio)] for name, (gain, ratio) in found.runs.items()]
    return markdown_table(["point", "queueing engine, quick", "graph engine (95 % interval)"], rows, (1, 2))


def size_table(found: Findings) -> str:
    """The best systems by number of devices."""
    rows = [
        [
            str(devices),
            label(pair.best_sync.scenario, pair.best_sync.instances),
            f"{pair.best_sync.slo_rps:.1f}",
            label(pair.best_asap.scenario, pair.best_asap.instances),
            f"{pair.best_asap.slo_rps:.1f}",
            f"{pair.gain:+.0%}",
        ]
        for devices, pair in found.sizes.items()
    ]
    header = ["devices", "best synchronous", "rps", "best asynchronous", "rps", "gain"]
    return markdown_table(header, rows, (0, 2, 4, 5))


def deployment_table(found: Findings) -> str:
    """TTFT ratios of the measured deployment and the model's."""
    measured = measured_ttft()
    ratios = {(one.y, one.x): one.ratio for one in deployment_cells(measured)}
    model = {(one.y, one.x): one.ratio for one in deployment_cells(found.deployment)}
    rows = [
        [
            f"{rate:g}",
            *(f"{table[budget, rate]:.2f}" for budget in (16384, 65536) for table in (ratios, model)),
            *(f"{best_ratio(means, rate):.2f}" for means in (measured, found.deployment)),
        ]
        for rate in RATES
    ]
    header = ["rate", "16384, measured", "model", "65536, measured", "model", "better budget each, measured", "model"]
    return markdown_table(header, rows, range(7))
