"""Ratios of SLO throughputs over the same drawn traffic, and how every design study writes its page.

Two systems that are given the same requests scatter together, so the ratio of their SLO throughputs is known better
than either of them.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from asapmodel.scenario import Scenario
from asapmodel.verbs.capacity import capacity

__all__ = ["SEEDS", "Ratio", "fill", "output_folder", "ratio_of", "slo_rates", "write_page"]

SEEDS = range(6, 14)
"""Eight runs of the graph engine; those of `capacity` of the shipped scenarios."""

_TOLERANCE = 2e-3  # of the search: below what runs differ by


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """As a change in per cent, with the interval."""
        return f"{self.value - 1:+.1%} ({self.low - 1:+.1%} to {self.high - 1:+.1%})"


def slo_rates(scenario: Scenario, seeds: Sequence[int] = SEEDS) -> NDArray[np.float64]:
    """SLO throughput of single runs of the graph engine, requests/s, one for each seed."""
    runs = [capacity(scenario.replace(seed=seed), "graph", 1, _TOLERANCE) for seed in seeds]
    return np.array([one.slo_throughput_rps for one in runs])


def ratio_of(above: NDArray[np.float64], below: NDArray[np.float64]) -> Ratio:
    """Geometric mean of the ratios of paired runs, with Student's interval of their logarithms.

    Raises
    ------
    ValueError
        Fewer than two pairs, or runs that are not paired.

    Examples
    --------
    >>> print(ratio_of(np.array([2.0, 4.2]), np.array([1.0, 2.0])))
    +104.9% (+50.3% to +179.4%)
    """
    if above.shape != below.shape or above.size < 2:
        raise ValueError(f"{above.size} and {below.size} runs are no pairs: give the same seeds, at least two")
    logs = np.log(above / below)
    half = float(stats.t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / np.sqrt(logs.size))
    middle = float(logs.mean())
    return Ratio(float(np.exp(middle)), float(np.exp(middle - half)), float(np.exp(middle + half)))


def output_folder(arguments: list[str] | None, description: str | None) -> Path:
    """The folder of ``--output``, by default the documentation's."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("docs"))
    folder: Path = parser.parse_args(arguments).output
    return folder


def write_page(name: str, text: str, folder: Path) -> None:
    """Write and print the page of a study."""
    path = folder / "studies" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(text)


def fill(name: str, **fields: str) -> str:
    """The template of a study's page with its fields filled in."""
    template = files("asapmodel.studies").joinpath(f"data/{name}_page.md").read_text(encoding="utf-8")
    return template.format(**fields)
