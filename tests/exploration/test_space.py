"""Space files: what they mean, and every mistake in one line."""

import re
from pathlib import Path

import pytest

import asapmodel as am
from asapmodel.exploration.designs import designs_of
from asapmodel.exploration.objectives import OBJECTIVES
from asapmodel.exploration.ranges import values_of
from asapmodel.exploration.space import Space
from asapmodel.exploration.space_tables import ConfirmTable, ConstraintsTable, SpaceTable
from asapmodel.verbs.explore import explore

BASE = 'scenario = "paper-asap"\n'


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([4, 2, 4], (4, 2)),
        ([1, True], (1, True)),
        ({"from": 1, "to": 7, "step": 2}, (1, 3, 5, 7)),
        ({"from": 1, "to": 8, "step": 3}, (1, 4, 7)),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, (0.1, 0.2, 0.3)),
        ({"from": 1, "to": 100, "factor": 10}, (1, 10, 100)),
        ({"from": 1, "to": 243, "factor": 3}, (1, 3, 9, 27, 81, 243)),
        ({"from": 5, "to": 5, "step": 1}, (5,)),
    ],
)
def test_values(given: object, values: tuple[object, ...]) -> None:
    found = values_of(given, "s.toml", "vary.x")
    assert found == values
    assert [type(one) for one in found] == [type(one) for one in values]


def test_keys_of_tables_may_be_written_in_three_ways() -> None:
    spellings = ['policy.pairing = ["locked"]', '"policy.pairing" = ["locked"]', 'pairing = ["locked"]']
    spaces = [Space.parse(f"{BASE}[vary]\n{line}") for line in spellings]
    assert all(one.vary == {"policy.pairing": ("locked",)} for one in spaces)
    assert len({one.digest for one in spaces}) == 1


def test_digest_tells_spaces_apart() -> None:
    texts = [
        BASE,
        'scenario = "paper-chunked"\n',
        f"{BASE}[vary]\nD = [1]",
        f"{BASE}[vary]\nD = [1, 2]",
        f"{BASE}[constraints]\ndevices = 32",
        f"{BASE}rate = 4.0",
        f"{BASE}objectives = ['devices']",
    ]
    assert len({Space.parse(text).digest for text in texts}) == len(texts)


def test_scenarios_are_relative_to_the_space(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(am.Scenario.load("paper-asap").replace(D=3).to_toml(), encoding="utf-8")
    (tmp_path / "space.toml").write_text('scenario = "own.toml"', encoding="utf-8")
    assert Space.load(tmp_path / "space.toml").scenarios[0].layout.D == 3


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("", "scenario", "is missing"),
        ('scenario = "paper-asp"', "scenario", "nearest is 'paper-asap'"),
        ("scenario = []", "scenario", "at least one entry"),
        (f"{BASE}[varry]\nD = [1]", "varry", "nearest valid key is 'vary'"),
        (f"{BASE}[vary]\nmin_batch_token = [1]", "vary.min_batch_token", "'min_batch_tokens'"),
        (f"{BASE}[vary]\ncluster.devic = ['a']", "vary.cluster.devic", "'device'"),
        (f"{BASE}[vary]\npolicy = ['a']", "vary.policy", "vary its keys"),
        (f"{BASE}[vary]\nD = 4", "vary.D", "give a list"),
        (f"{BASE}[vary]\nD = []", "vary.D", "empty list"),
        (f"{BASE}[vary]\nD = [0]", "vary.D", "at least 1"),
        (f"{BASE}[vary]\npairing = ['open']", "vary.pairing", "'locked' or 'rolling'"),
        (f"{BASE}[vary]\nD = {{ from = 1, to = 4 }}", "vary.D", "step or factor"),
        (f"{BASE}[vary]\nD = {{ from = 4, to = 1, step = 1 }}", "vary.D", "lower end first"),
        (f"{BASE}[vary]\nD = {{ from = 1, to = 4, step = 0 }}", "vary.D", "does not end"),
        (f"{BASE}[vary]\nD = {{ from = 1, to = 4, factor = 1 }}", "vary.D", "does not end"),
        (f"{BASE}[vary]\nD = {{ from = 1, to = 4, stepp = 1 }}", "vary.D.stepp", "nearest valid key is 'step'"),
        (f"{BASE}[vary]\nD = {{ from = 'a', to = 4, step = 1 }}", "vary.D.from", "give a number"),
        (f"{BASE}[vary]\nD = {{ from = 1, to = 1e9, step = 1 }}", "vary.D", "larger pace"),
        (f"{BASE}[constraints]\ndevises = 32", "constraints.devises", "nearest valid key is 'devices'"),
        (f"{BASE}[constraints]\ndevices = 'all'", "constraints.devices", "give a whole number"),
        (f"{BASE}[constraints]\ndevices = {{ min = 9, max = 8 }}", "constraints.devices.min", "more than max"),
        (f"{BASE}[constraints]\nbuffers = '4 G'", "constraints.buffers", "4 G"),
        (f"{BASE}objectives = ['device']", "objectives", "nearest is 'devices'"),
        (f"{BASE}objectives = ['ttft_at_rate']", "rate", "is missing"),
        (f"{BASE}objectives = ['cost_per_million_tokens']", "price", "is missing"),
        (f"{BASE}rate = -1.0", "rate", "greater than 0"),
        (f"{BASE}price = 0", "price", "greater than 0"),
        (f"{BASE}[confirm]\nreplications = 0", "confirm.replications", "at least 1"),
    ],
)
def test_mistakes_in_a_space(text: str, key: str, words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        Space.parse(text, "space.toml")
    error = caught.value
    assert (error.where, error.key.removesuffix(".")) == ("space.toml", key)
    assert words in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (f"{BASE}[vary]\nmodel.use = ['deepseek']", "vary.model.use", "the nearest model is"),
        (f"{BASE}[vary]\nworkload.cv = [2.0]", "vary.workload.cv", "gamma"),
        ('scenario = "paper-chunked"\n[vary]\nsystem.kind = ["asap"]', "vary.E", "is missing"),
        (f"{BASE}price = {{ other = 1.0 }}", "price", "ascend-910c-die"),
        (
            f"{BASE}[vary]\nD = {{ from = 1, to = 9000, step = 1 }}\nE = {{ from = 1, to = 9000, step = 1 }}",
            "vary",
            "81,000,000 combinations",
        ),
    ],
)
def test_mistakes_that_show_when_points_are_listed(text: str, key: str, words: str) -> None:
    with pytest.raises(am.InputError) as caught:
        explore(Space.parse(text, "space.toml"))
    assert (caught.value.where, caught.value.key) == ("space.toml", key)
    assert words in str(caught.value)


def test_bases_of_different_traffic_are_refused(tmp_path: Path) -> None:
    other = am.Scenario.load("paper-chunked").replace(max_prompt_tokens=8192)
    (tmp_path / "other.toml").write_text(other.to_toml(), encoding="utf-8")
    text = 'scenario = ["paper-asap", "other.toml"]'
    with pytest.raises(am.InputError, match="workload: differs"):
        Space.parse(text, "space.toml", tmp_path)


def test_examples_of_the_documentation_are_valid() -> None:
    found = []
    for page in sorted((Path(__file__).resolve().parents[2] / "docs").rglob("*.md")):
        blocks = re.findall(r"^```toml\n(# space.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        found += [Space.parse(block, page.name) for block in blocks]
    assert len(found) >= 2
    assert all(designs_of(one).count for one in found)


def test_every_key_of_a_space_is_described() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "space.md"
    text = page.read_text(encoding="utf-8")
    for table in (SpaceTable, ConstraintsTable, ConfirmTable):
        for key in table.model_fields:
            assert f"| `{key}`" in text or f"## [{key}]" in text, key
    for name in OBJECTIVES:
        assert f"| `{name}`" in text


def test_nothing_feasible_says_what_excluded_how_many() -> None:
    text = (
        f"{BASE}[vary]\nD = [1, 2]\nE = [4, 16, 64]\n[constraints]\ndevices = {{ max = 40 }}\nmemory_reserve = '30 GB'"
    )
    space = Space.parse(text, "space.toml")
    assert designs_of(space).count == 0
    with pytest.raises(am.NoAnswer) as caught:
        explore(space)
    words = str(caught.value)
    assert "none of 6 points is feasible" in words
    for reason in ("constraint devices <= 40 (2)", "memory of an expert device (2)", "memory_reserve 30 GB (2)"):
        assert reason in words


def test_no_point_with_an_objective() -> None:
    space = Space.parse(f"{BASE}[vary]\nslo.ttft = ['1 ms']\n[confirm]\ntop = 0", "space.toml")
    with pytest.raises(am.NoAnswer, match=r"none of 1 feasible points .* no SLO throughput \(1\)"):
        explore(space)
