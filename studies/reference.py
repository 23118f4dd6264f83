"""What does running the reference system show? Writes `docs/reference.md` and its figures.

Run as ``python -m asapmodel.studies.reference [--output DIR]``; about ten minutes. Runs in processes are measured, so
the machine should have nothing else to do.
"""

import argparse
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import run_asynchronous
from asapmodel.reference.check_list import CHECKS
from asapmodel.reference.checks import Check, Outcome, agreement, out_of_order
from asapmodel.reference.devices import make_model
from asapmodel.reference.prediction import Law, Prediction, RunPair, predict
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.super_kernel import LayerKernels, SuperKernel
from asapmodel.reference.synchronous import run_synchronous
from asapmodel.reference.timeline_picture import comparison_figure
from asapmodel.reference.weights import Config
from asapmodel.studies.pages import markdown_table, plain, save_figure
from asapmodel.studies.reference_figures import draw_figures
from asapmodel.studies.reference_protocol import broken_table, protocol_table, story

__all__ = ["main", "page"]

_SEEDS = (1, 2, 3, 4, 5)  # of measured runs
_LONGER = (
    Check("asynchronous, 100 systems", lambda: agreement("asap", range(1000, 1100), 30)),
    Check("synchronous and chunked, 100 systems", lambda: agreement("sync", range(1000, 1100), 30)),
    Check("layers out of order, 50 systems", lambda: out_of_order(range(1000, 1050), 30)),
)


def main(arguments: list[str] | None = None) -> None:
    """Run, explore, measure, and write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    folder = parser.parse_args(arguments).output
    prediction = predict(requests=15, seeds=_SEEDS)  # first, on a quiet machine
    draw_figures(prediction, folder / "figures")
    draw_timeline(folder / "figures" / "reference-timeline.svg")
    outcomes = [check.run() for check in (*CHECKS, *_LONGER)]
    (folder / "reference.md").write_text(page(prediction, outcomes), encoding="utf-8")


def page(prediction: Prediction, outcomes: Sequence[Outcome]) -> str:
    """Fill in the page."""
    text = (files("asapmodel.studies") / "data" / "reference_page.md").read_text(encoding="utf-8")
    config = prediction.config
    return text.format(
        machine=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        checks=_checks(outcomes),
        protocol=protocol_table(),
        broken=broken_table(),
        deadlock=story("hasty dispatch"),
        flag_first=story("dispatch flag before payload"),
        kernels=_kernels(),
        H=config["hidden"],
        experts=config["experts"],
        top=config["top"],
        laws=_laws(prediction),
        processors=prediction.processors,
        runs=_runs(prediction.runs),
        verdict=_verdict(prediction.runs),
    )


def _checks(outcomes: Sequence[Outcome]) -> str:
    rows = [[one.name, "passed" if one.passed else "**FAILED**", one.found, f"{one.seconds:.1f}"] for one in outcomes]
    return markdown_table(["check", "result", "found", "s"], rows, right=[3])


def _kernels() -> str:
    """Dispatches and exposed host time of the same run with either kernel."""
    config = Config(layers=12, dense_layers=0, experts=16, top=4)
    random = np.random.default_rng(4)
    prompts = [Prompt(k, 0.0, int(s)) for k, s in enumerate(random.integers(20, 100, 24))]
    model = make_model(config, prompts, 4)
    some = Affine(1e-4, 1e-6)
    costs = LayerCosts(Quadratic(1e-3, 1e-5, 1e-7), some, some, Plateau(1e-3, 1e-5), some, some, layers=12)
    policy = Policy(min_batch_tokens=64, max_batch_tokens=256, exclusive_tokens=256)
    rows = []
    for super_kernel in (True, False):
        found = run_asynchronous(
            model, Layout("asap", 3, 1, 2), replace(policy, super_kernel=super_kernel), costs, prompts
        )
        expert = found.experts[0]
        kind = "super kernel" if isinstance(expert.kernel, SuperKernel) else "a kernel a layer"
        host = expert.kernel.dispatches.host_s if isinstance(expert.kernel, LayerKernels) else 0.0
        rows.append([kind, str(len(expert.order)), str(expert.kernel.dispatches.count), plain(1e3 * host)])
    table = markdown_table(["", "layers of batches", "dispatches", "exposed host time, ms"], rows, right=[1, 2, 3])
    return (
        "One MoE device of the same run with either. The super kernel's one dispatch comes before any batch. Host and "
        f"device are one processor here: the times say what is exposed, not what an NPU's host takes.\n\n{table}"
    )


def _laws(prediction: Prediction) -> str:
    rows = []
    for name, law in (("attention", prediction.attention), ("experts", prediction.experts)):
        text = ", ".join(f"{key} {value:.3g}" for key, value in law.coefficients.items())
        residuals = _residuals(law)
        rows.append([name, text, f"{law.r2:.3f}", f"{np.median(residuals):.1%}", f"{residuals.max():.1%}"])
    return markdown_table(["law", "seconds a layer", "R^2", "median residual", "largest"], rows, right=[2, 3, 4])


def _residuals(law: Law) -> NDArray[np.float64]:
    points = np.array(law.points)
    found: NDArray[np.float64] = np.abs(points[:, 3] / points[:, 2] - 1.0)
    return found


def _runs(runs: Sequence[RunPair]) -> str:
    rows = [
        [
            run.system,
            f"{run.makespan:.2f}",
            f"{run.makespan_error:+.1%}",
            plain(float(np.mean(run.ttft))),
            f"{run.mean_error:+.1%}",
            f"{run.median_error:.1%}",
        ]
        for run in sorted(runs, key=lambda one: one.system)
    ]
    header = [
        "system",
        "makespan, s",
        "predicted",
        "mean TTFT, s",
        "predicted",
        "median absolute error of single TTFTs",
    ]
    return markdown_table(header, rows, right=[1, 2, 3, 4, 5])


def _verdict(runs: Sequence[RunPair]) -> str:
    lines = []
    for system in ("synchronous", "asynchronous"):
        some = [run for run in runs if run.system == system]
        makespan = float(np.mean([run.makespan_error for run in some]))
        mean = float(np.mean([run.mean_error for run in some]))
        lines.append(f"{system} makespan {makespan:+.1%}, mean TTFT {mean:+.1%}")
    return f"Mean error over the runs: {'; '.join(lines)}."


def draw_timeline(path: Path) -> None:
    """The same prompts in both systems on the same number of devices."""
    lengths = [20, 12, 9, 30, 14, 8, 16, 11, 26, 9, 13, 7, 18, 10]
    prompts = tuple(Prompt(k, 0.0008 * k, n) for k, n in enumerate(lengths))
    config = Config(layers=4, dense_layers=0)
    model = make_model(config, prompts, 1)
    transfer = Affine(5e-5, 4e-6)
    costs = LayerCosts(
        Quadratic(2e-4, 1.5e-5, 4e-6), transfer, transfer, Plateau(3e-4, 1e-5), transfer, transfer, layers=4
    )
    policy = Policy(min_batch_tokens=12, max_batch_tokens=32, exclusive_tokens=28, batch_window=0.004)
    both = {
        "Synchronous: 4 devices, each attention and experts": run_synchronous(
            model, Layout("sync", 4, 1, 4), replace(policy, batch_window=0.0), costs, prompts
        ).log,
        "Asynchronous: 3 attention devices, 1 MoE device": run_asynchronous(
            model, Layout("asap", 3, 1, 1), policy, costs, prompts
        ).log,
    }
    last = max(busy.end for log in both.values() for busy in log)
    save_figure(comparison_figure(both, 0.0, last * 1.01), path)


if __name__ == "__main__":
    main()
