"""Are measured deployments predicted that were not calibrated on? Writes `docs/evidence-deployments.md`.

Run as ``python -m asapmodel.studies.evidence_deployments [--output DIR]``, half a minute. The constants come from
`evidence_deployments_fit` and are shipped with the scenarios `afd-async` and `afd-sync`.
"""

from collections.abc import Sequence

import numpy as np

from asapmodel.studies.evidence_deployments_ahead import rules_table, together_table
from asapmodel.studies.evidence_deployments_blind import other_budgets
from asapmodel.studies.evidence_deployments_data import (
    ASYNC,
    BUDGETS,
    RATES,
    SYNC,
    Cell,
    Statistics,
    calibrated,
    cells,
    replays,
    statistics,
)
from asapmodel.studies.evidence_deployments_figure import figure
from asapmodel.studies.evidence_deployments_lone import lone_numbers
from asapmodel.studies.evidence_deployments_mechanisms import (
    agreement,
    constants,
    hypotheses,
    lone_count,
    repeats,
    split,
    steps_waited,
)
from asapmodel.studies.evidence_deployments_steps import step_errors, step_table
from asapmodel.studies.evidence_summary import Point, Row, row_of
from asapmodel.studies.pages import markdown_table, save_figure
from asapmodel.studies.paired_runs import fill, output_folder

__all__ = ["TARGETS", "main", "page", "points", "predictions", "summary"]

TARGETS = {ASYNC: (0.08, 0.10), SYNC: (0.10, 0.15)}
"""Median error of mean and 99th percentile to reach."""

_NAMES = {ASYNC: "asynchronous", SYNC: "synchronous"}
_SOURCE = "measured deployment, 32 Ascend dies"

Pair = tuple[Cell, Statistics]


def predictions() -> list[Pair]:
    """All measured cells without a cached prefix, each with what the model says."""
    return [(one, statistics(replays(one.system, one.budget, one.rate))) for one in cells() if one.prefix == 0.0]


def _errors(pairs: Sequence[Pair], system: str, statistic: str) -> list[float]:
    return [
        getattr(found, statistic) / getattr(one, statistic) - 1.0
        for one, found in pairs
        if one.system == system and not calibrated(one)
    ]


def summary() -> list[Row]:
    """Rows of the summary page."""
    pairs, rows = predictions(), []
    for system, targets in TARGETS.items():
        for (statistic, name), target in zip((("mean_s", "mean"), ("p99_s", "p99")), targets, strict=True):
            what = ("8 cells of 4 and 6 requests/s", "8, 10 and 12 requests/s, two budgets")
            note = "near capacity a few per cent of a step are tens of per cent of TTFT"
            errors = _errors(pairs, system, statistic)
            rows.append(row_of(_SOURCE, f"{name} TTFT, {_NAMES[system]}", what, errors, (target, None), note))
    return rows


def points() -> list[Point]:
    """Predicted beside measured, for the overview figure."""
    return [
        Point(f"TTFT, {_NAMES[one.system]}", getattr(one, name), getattr(found, name))
        for one, found in predictions()
        if not calibrated(one)
        for name in ("mean_s", "p99_s")
    ]


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    pairs = predictions()
    save_figure(figure(pairs), folder / "figures" / "evidence-deployments.svg")
    text = page(pairs)
    (folder / "evidence-deployments.md").write_text(text, encoding="utf-8")
    print(text)


def page(pairs: Sequence[Pair]) -> str:
    """The text of the page."""
    signs, differing, wrong = _signs(pairs)
    lone = lone_count()
    return fill(
        "evidence_deployments",
        results=_results(pairs),
        verdicts=_verdicts(pairs),
        signs=str(signs),
        differing=str(differing),
        wrong=wrong,
        other=other_budgets(),
        prefix=_prefix(),
        constants=constants(),
        hypotheses=hypotheses(),
        together=together_table(),
        rules=rules_table(),
        waited=steps_waited(),
        steps=step_table(),
        **step_errors(),
        agreement=agreement(),
        repeats=repeats(),
        alone=lone[0],
        logged=lone[1],
        **lone_numbers(),
        **split(),
    )


def _percent(value: float) -> str:
    return f"{value:+.0%}"


def _results(pairs: Sequence[Pair]) -> str:
    rows = []
    for one, found in pairs:
        errors = [_percent(getattr(found, x) / getattr(one, x) - 1.0) for x in ("mean_s", "p99_s")]
        use = "calibrated" if calibrated(one) else "**predicted**"
        times = [
            f"{one.mean_s:.2f}",
            f"{found.mean_s:.2f}",
            errors[0],
            f"{one.p99_s:.2f}",
            f"{found.p99_s:.2f}",
            errors[1],
        ]
        rows.append([_NAMES[one.system], str(one.budget), str(one.rate), use, *times])
    header = ["system", "budget", "requests/s", "", "mean (s)", "model", "error", "p99 (s)", "model", "error"]
    return markdown_table(header, rows, right=[1, 2, 4, 5, 6, 7, 8, 9])


def _verdicts(pairs: Sequence[Pair]) -> str:
    rows = []
    for system, targets in TARGETS.items():
        for (statistic, name), target in zip((("mean_s", "mean"), ("p99_s", "p99")), targets, strict=True):
            errors = np.array(_errors(pairs, system, statistic))
            median = float(np.median(np.abs(errors)))
            met = "met" if median <= target else "missed"
            worst = _percent(float(errors[np.argmax(np.abs(errors))]))
            rows.append([f"{name}, {_NAMES[system]}", f"{median:.1%}", f"{target:.0%}", met, worst])
    return markdown_table(["predicted TTFT", "median error", "target", "", "worst"], rows, right=[1, 2, 4])


def _signs(pairs: Sequence[Pair]) -> tuple[int, int, str]:
    """Cells where the systems differ by more than 10 %, those with the right sign, and the others in words."""
    at = {(one.system, one.budget, one.rate): (one, found) for one, found in pairs}
    right, differing, wrong = 0, 0, []
    for budget in BUDGETS:
        for rate in RATES:
            (own, model), (shared, other) = at[ASYNC, budget, rate], at[SYNC, budget, rate]
            gain = own.mean_s / shared.mean_s - 1.0
            if abs(gain) <= 0.1:
                continue
            differing += 1
            if (model.mean_s < other.mean_s) == (gain < 0):
                right += 1
            else:
                wrong.append(f"budget {budget} at {rate}")
    return right, differing, ", ".join(wrong) or "none"


def _prefix() -> str:
    rows = []
    for one in cells():
        if one.prefix > 0:
            found = statistics(replays(one.system, one.budget, one.rate, prefix=one.prefix))
            errors = [getattr(found, x) / getattr(one, x) - 1.0 for x in ("mean_s", "p99_s")]
            rows.append([_NAMES[one.system], str(one.rate), f"{one.mean_s:.2f}", *map(_percent, errors)])
    return markdown_table(["system", "requests/s", "mean (s)", "error", "error of p99"], rows, right=[1, 2, 3, 4])


if __name__ == "__main__":
    main()
