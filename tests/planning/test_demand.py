"""Demand files: what they amount to, and what they may not say; each mistake is one line with file, key and remedy."""

from pathlib import Path

import numpy as np
import pytest

from asapmodel import catalog
from asapmodel.errors import InputError
from asapmodel.planning.demand import Demand
from asapmodel.planning.demand_tables import ClassTable, FleetTable, TypeTable
from asapmodel.planning.segments import segments_of
from asapmodel.tables import Table
from tests.planning.texts import DEMAND, SYSTEM

ROOT = Path(__file__).resolve().parent.parent.parent
TABLES: dict[str, type[Table]] = {"fleet": FleetTable, "class": ClassTable, "type": TypeTable}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SYSTEM)
    return tmp_path


@pytest.mark.parametrize("name", catalog.names("demands"))
def test_shipped_demands_load(name: str) -> None:
    demand = Demand.load(name)
    assert demand.name == name
    assert demand.hours == 24
    assert segments_of(demand)


def test_a_file(folder: Path) -> None:
    path = folder / "day.toml"
    path.write_text(DEMAND.replace("rate = [4, 8, 6, 9]", 'rate = "90 req/min"\ngrowth = 2'))
    demand = Demand.load(path)
    assert demand.name == "day"
    assert demand.classes["chat"].rates.tolist() == [20, 60, 80, 50]
    assert demand.classes["code"].rates.tolist() == [3.0] * 4
    assert demand.classes["code"].slo.quantile == 0.95
    assert demand.types["small"].devices == 8
    assert demand.types["small"].weight("cost") == 16.0
    assert demand.types["small"].longest == 16384


def test_changes_of_a_type(folder: Path) -> None:
    text = DEMAND.replace(
        "price = 2.0", 'price = 2.0\nset = { D = 4, "costs.moe.floor" = "1 ms", chunk_tokens = 2048 }'
    )
    kind = Demand.parse(text, "day.toml", folder).types["small"]
    assert kind.devices == 16
    assert kind.scenario.policy.chunk_tokens == 2048


def test_lengths_of_a_trace_with_cached_prefixes(folder: Path) -> None:
    lines = "".join(f"{k},{1000 * k},{100 * k}\n" for k in range(1, 10))
    (folder / "rows.csv").write_text("arrival_s,prompt_tokens,cached_tokens\n" + lines)
    text = DEMAND.replace("values = [2048, 4096, 12000]", 'trace = "rows.csv"').replace(
        "supernode = 24", "split_at = [4000]"
    )
    code = [one for one in segments_of(Demand.parse(text, "day.toml", folder)) if one.origin.name == "code"]
    assert [(one.shortest, one.longest) for one in code] == [(1, 4000), (4001, 16384)]
    assert code[0].rates == pytest.approx(np.array([4, 8, 6, 9]) * 4 / 9)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[fleet]", "[flet]", "flet: unknown table; the nearest valid table is 'fleet'"),
        ("supernode", "supernodes", "fleet.supernodes: unknown key; the nearest valid key is 'supernode'"),
        ("supernode = 24", "reserve = -1", "fleet.reserve: is -1; give a whole number of at least 0"),
        ("supernode = 24", "max_supernodes = 2", "fleet.supernode: is missing; max_supernodes needs the devices of a"),
        ("supernode = 24", 'minimise = "money"', "fleet.minimise: is 'money'; give 'devices', 'cost' or 'power'"),
        (
            "supernode = 24",
            'minimise = "power"',
            "type.small.power: is missing, and fleet.minimise is 'power'; give it",
        ),
        (
            "supernode = 24",
            'routing = "best"',
            "fleet.routing: is 'best'; give 'round_robin', 'random' or 'least_work'",
        ),
        ("supernode = 24", "supernode = 4", "fleet.supernode: is 4, an instance of 'small' has 8 devices; no instance"),
        ("supernode = 24", "forecast_error = -0.1", "fleet.forecast_error: is -0.1; give a number of at least 0"),
        ("supernode = 24", "split_at = [0]", "fleet.split_at.0: is 0; give a whole number of at least 1"),
        ("lengths = { constant = 1024 }\n", "", "class.chat.lengths: is missing; add lengths = ... to class.chat"),
        ("constant = 1024", "constnt = 1024", "class.chat.lengths.constnt: unknown key"),
        ("constant = 1024", "constant = 40000", "class.chat.lengths: no length is within the bounds; give a length"),
        ("rate = [20, 60, 80, 50]\n", "", "class.chat.rate: is missing; add rate = ... to class.chat"),
        (
            "[20, 60, 80, 50]",
            "[20, 60]",
            "class.chat.rate: has 2 hours, another class has 4; give a rate for each hour",
        ),
        ("[20, 60, 80, 50]", "[0, 0, 0, 0]", "class.chat.rate: is 0 at every hour; give a positive rate, or leave"),
        ("[20, 60, 80, 50]", "[-1, 0, 0, 0]", "class.chat.rate.0: is -1.0; give a number of at least 0"),
        ("[20, 60, 80, 50]", "[]", "class.chat.rate: is []; give at least one entry"),
        ("[20, 60, 80, 50]", '"5 s"', "class.chat.rate: '5 s' is a time, not a rate; give requests/s as a number"),
        ("[20, 60, 80, 50]", "[" + "1," * 169 + "]", "class: has rates for 169 hours; give 168 at most, a week"),
        ('ttft = "2 s"', "ttft = 0", "class.chat.slo.ttft: is 0; give a number greater than 0"),
        ('"p95"', '"p100"', "class.code.slo.statistic: is 'p100'; give 'mean', or 'p1' to 'p99.9'"),
        ("small.toml", "smal.toml", "type.small.scenario: 'smal.toml' is no file or shipped scenario; give a file or"),
        ("price = 2.0", "set = { DD = 4 }", "type.small.set.DD: unknown key; the nearest valid key is 'D'"),
        ("price = 2.0", "price = -2", "type.small.price: is -2; give a number greater than 0"),
        ("price = 2.0", "prize = 2", "type.small.prize: unknown key; the nearest valid key is 'price'"),
        ("[type.small]", "[fleet.type]", "fleet.type: unknown key"),
    ],
)
def test_refusals(folder: Path, before: str, after: str, message: str) -> None:
    assert before in DEMAND
    with pytest.raises(InputError) as refusal:
        Demand.parse(DEMAND.replace(before, after), "day.toml", folder)
    assert str(refusal.value).startswith(f"day.toml: {message}")
    assert "\n" not in str(refusal.value)


def test_no_types(folder: Path) -> None:
    with pytest.raises(InputError, match=r"type: is missing or no table; add a table \[type.NAME\] for each type"):
        Demand.parse(DEMAND[: DEMAND.index("[type")], "day.toml", folder)


def test_a_mistake_in_the_scenario_of_a_type_names_that_file(folder: Path) -> None:
    (folder / "small.toml").write_text(SYSTEM.replace("D = 2", "D = 0"))
    with pytest.raises(InputError, match=r"small.toml: system.D: is 0; give a whole number of at least 1"):
        Demand.parse(DEMAND, "day.toml", folder)


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_described(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "demand.md").read_text(encoding="utf-8")
    heading = "[fleet]" if name == "fleet" else f"[{name}.NAME]"
    section = page.split(f"## {heading}")[1].split("\n## ")[0]
    for key, field in TABLES[name].model_fields.items():
        assert f"| `{key}` |" in section, key
        if field.default in (0, 1.0, "devices", "round_robin", 32768):
            assert f"`{field.default}`" in section or f"{field.default:g}" in section
