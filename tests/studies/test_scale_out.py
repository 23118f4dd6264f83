"""The study of scaling out: candidates, memory, imbalance, fleets, and the page."""

import math
import re
from pathlib import Path

import pytest

from asapmodel.costing import check_memory
from asapmodel.errors import InputError
from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.studies.pages import save_figure
from asapmodel.studies.scale_out import Size, page
from asapmodel.studies.scale_out_figure import scale_out_figure
from asapmodel.studies.scale_out_fleet import fleet_table, fleets
from asapmodel.studies.scale_out_runs import (
    OPEN,
    Best,
    asynchronous,
    best_of,
    busiest,
    fleet_member,
    synchronous,
)
from asapmodel.verbs.capacity import capacity


@pytest.fixture(scope="module")
def sizes() -> list[Size]:
    found = []
    for devices in (32, 64):
        fits = best_of(devices, asynchronous(devices, batches=(16384,), sizes=(4,)))
        opened = best_of(devices, asynchronous(devices, OPEN, batches=(16384,), sizes=(2,)))
        assert opened is not None
        found.append(Size(devices, fits, opened, best_of(devices, synchronous(devices, sizes=(4,)))))
    return found


def test_candidates_use_all_devices() -> None:
    for devices in (32, 384):
        for one in asynchronous(devices):
            assert one.layout.devices == devices
            assert one.layout.E <= 256 * one.system.replication
        for one in synchronous(devices):
            assert one.layout.D * one.layout.T == devices
            assert one.layout.D <= 64
    assert {one.system.replication for one in synchronous(384)} == {2}
    assert best_of(8, asynchronous(8)) is None  # experts do not fit


def test_memory_bounds_the_groups() -> None:
    most = {one.layout.D for one in asynchronous(384) if _fits(one)}
    assert max(most) == 15  # 3.76 GB a group on every expert device
    assert all(_fits(one) for one in asynchronous(384, OPEN))


def _fits(scenario: Scenario) -> bool:
    try:
        check_memory(scenario)
    except InputError:
        return False
    return True


def test_more_devices_are_less_even() -> None:
    sync = [busiest(next(iter(synchronous(devices, sizes=(8,))))) for devices in (32, 64, 256)]
    assert sync == sorted(sync)
    # 1 + v mu_32 / sqrt(256 / 32), v = 2.3
    assert sync[0] == pytest.approx(1 + 2.3 * 2.06967 / math.sqrt(8), abs=1e-4)
    free = busiest(Scenario.load("paper-asap"))
    assert free == pytest.approx(1 + 2.3 * 1.76599 / math.sqrt(61 * 16), abs=1e-4)


def test_sizes(sizes: list[Size]) -> None:
    small, large = sizes
    assert small.fits is not None
    assert large.fits is not None
    assert small.sync is not None
    assert large.sync is not None
    assert small.fits.layout == "D4 T4 E16"
    assert large.fits.each > 1.1 * small.fits.each  # memory frees attention devices
    assert large.opened.each < small.opened.each
    assert large.sync.each < small.sync.each
    assert small.opened.each > small.fits.each


def test_dealing_in_turn_helps_a_little(sizes: list[Size]) -> None:
    fits = sizes[0].fits
    assert fits is not None
    assert fleet_member(fits, 1) == fits.slo_rps
    assert 1.0 < fleet_member(fits, 24) / fits.slo_rps < 1.02


def test_fleets(sizes: list[Size]) -> None:
    fits = sizes[0].fits
    assert fits is not None
    found = fleets({"some": (fits.scenario,)}, rate=100.0)["some"]
    assert found.instances == math.ceil(100.0 / fleet_member(fits, found.instances))
    assert fleet_table({"some": found}).splitlines()[-1] == f"| some | 5 of 32 | {found.devices} | 1 | 0.0% |"


def test_page_and_figure(sizes: list[Size], tmp_path: Path) -> None:
    fits, sync = sizes[0].fits, sizes[0].sync
    assert fits is not None
    assert sync is not None
    balanced = {(one.devices, lockstep): Best(one.devices, fits.scenario, 32.0, "moe")
                for one in sizes for lockstep in (False, True)}  # fmt: skip
    runs: dict[Best, Capacity] = {fits: capacity(fits.scenario, engine="graph", replications=1)}
    text = page(sizes, runs, fleets({"of 32": (fits.scenario,)}), balanced)
    assert not re.search(r"[{}]|nan", text)
    assert "an instance should have 64 devices" in text
    assert text.count("\n| 32 |") == 2
    save_figure(scale_out_figure(sizes), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
