"""Does the interval hold what it promises? True profile, synthetic table, calibration, interval: is the truth in it?

The whole chain but for reading files: the true profile is drawn, a table of attention times is made with 5 % noise, the
constants are fitted with their covariance, and the SLO throughput gets its 90 % interval. Of 40 independent trials at
least 32 should hold the truth: of intervals that keep their promise fewer do so in 1.5 of 100 studies.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import asapmodel as am
from asapmodel import catalog
from asapmodel.calibration.laws import law_of
from asapmodel.calibration.tables import read_tables
from asapmodel.models import attention
from asapmodel.models.parameters import Profile, Split
from asapmodel.solvers.robust_fit import robust_fit
from asapmodel.uncertainties.answer import interval_of
from asapmodel.uncertainties.drawing import draw
from asapmodel.verbs.prepared import prepare
from tests.calibration.test_calibrate import DIE

NAMES = ("gemm", "core", "indexer", "attention_overhead")
LENGTHS = [128, 512, 1024, 2048, 4096, 8192, 16384, 32768]
BATCHES = (1, 2, 4, 8)
NOISE, TRIALS, SAMPLES = 0.05, 40, 64
SCENARIO = """
[cluster]
use = "cloudmatrix384"
[cluster.profile]
expert_load_cv = 0.0
[system]
kind = "sync"
D = 8
T = 4
[policy]
chunk_tokens = 8192
[uncertainty]
cluster.profile.collective_link = "exact"
"""


def times(profile: Profile) -> NDArray[np.float64]:
    model, device = catalog.load_architecture("deepseek-v3.2").value, catalog.load_device(DIE).value
    rows = [([length] * batch) for length in LENGTHS for batch in BATCHES]
    return np.array([max(attention.batch_time(model, device, profile, Split(1, 4, 1), row), 6e-4) for row in rows])


def fitted(scenario: am.Scenario, seconds: NDArray[np.float64], folder: Path) -> am.Scenario:
    """The scenario with fitted constants and their covariance, as a user would state them."""
    rows = [(length, batch, 4) for length in LENGTHS for batch in BATCHES]
    table = pd.DataFrame(rows, columns=["length", "batch", "T"]).assign(seconds=seconds)
    table.to_csv(folder / "a.csv", index=False)
    data = read_tables([str(folder / "a.csv")], "attention", DIE)
    law = law_of(data, "attention", scenario.profile.value)
    every = np.arange(len(data))
    fit = robust_fit(lambda p: law.predict(p, every), data.seconds, law.parameters, NOISE, bootstrap=False)
    values = fit.values[:4]
    matrix = fit.covariance[:4, :4] * np.outer(values, values)
    keys = [f"cluster.profile.{name}" for name in NAMES]
    return scenario.replace(
        **dict(zip(keys, values.tolist(), strict=True)),
        **{"uncertainty.covariance": {"keys": keys, "matrix": matrix.tolist()}},
    )


@pytest.mark.slow
def test_ninety_per_cent_hold_the_truth(tmp_path: Path) -> None:
    scenario = am.Scenario.parse(SCENARIO)
    generator = np.random.default_rng(20261130)
    held, narrower = 0, []
    for _ in range(TRIALS):
        drawn = generator.uniform((0.5, 0.4, 0.3, 1e-4), (0.8, 0.8, 0.7, 4e-4)).tolist()
        true = replace(scenario.profile.value, **dict(zip(NAMES, drawn, strict=True)))
        exact = times(true)
        seconds = exact * np.exp(NOISE * generator.standard_normal(exact.size))
        (found,) = draw([prepare(fitted(scenario, seconds, tmp_path))], None, SAMPLES, 0, None)
        interval = interval_of(found.estimate.throughput, found.answers.throughput, 0.9)
        truth = am.capacity(
            scenario.replace(**{f"cluster.profile.{k}": v for k, v in zip(NAMES, drawn, strict=True)})
        ).slo_throughput_rps
        held += interval.low <= truth <= interval.high
        narrower.append(interval.width / interval.value)
    assert 32 <= held <= TRIALS, held
    assert 0.01 < np.median(narrower) < 0.1  # the interval says something
