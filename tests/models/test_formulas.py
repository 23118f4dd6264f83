"""Kept code of laws: same numbers as the expressions, SymPy not loaded, nothing stale."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from asapmodel.models import activations, attention, formulas, link, memory, moe
from asapmodel.models.elementwise import Kind
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.symbols import symbols


@pytest.fixture
def kept_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of its own, nothing kept yet."""
    file = tmp_path / "kept" / "formulas.json"
    formulas._kept.cache_clear()
    monkeypatch.setattr(formulas, "_file", lambda: file)
    monkeypatch.setattr(formulas, "_ready", {})
    yield file
    formulas._kept.cache_clear()


def test_numbers_are_those_of_the_expressions(kept_in: Path) -> None:
    given = paper_deployment()
    one = formulas.value(attention.prompt_expression, *given, s=[100, 5000], p=[0, 300])
    assert one.tolist() == evaluate(attention.prompt_expression(), *given, s=[100, 5000], p=[0, 300]).tolist()
    for law in (link.asynchronous_expressions, link.synchronous_expressions):
        found = formulas.values(law, *given, n=700)
        assert found == {name: evaluate(x, *given, n=700) for name, x in law().items()}


def test_kept_code_gives_the_same_again(kept_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = paper_deployment()
    first = formulas.value(moe.time_expression, *given, n=[1, 5000], chi=1.3)
    assert list(json.loads(kept_in.read_text())) == ["asapmodel.models.moe.time_expression"]
    formulas._kept.cache_clear()
    monkeypatch.setattr(formulas, "_ready", {})
    monkeypatch.setattr(formulas, "_made", None)  # would fail if called
    assert formulas.value(moe.time_expression, *given, n=[1, 5000], chi=1.3).tolist() == first.tolist()


def test_arguments_make_another_law(kept_in: Path) -> None:
    given = paper_deployment()
    laws: tuple[tuple[str, Kind], ...] = (("asap", "sparse"), ("asap", "latent"), ("sync", "sparse"))
    for kind, keys in laws:
        law = partial(activations.expressions, kind, keys)
        found = formulas.values(law, *given, n=8192, S=8192, N_s=1, mu_E=1.8)
        assert list(found) == list(activations.expressions(kind, keys))
    assert len(json.loads(kept_in.read_text())) == 3


def test_laws_without_a_name_of_their_own_are_not_kept(kept_in: Path) -> None:
    """Defined elsewhere, or without a name: another of the same name, or a later version, must not be taken for it."""

    def power(exponent: int) -> object:
        (n,) = symbols("n")
        return n**exponent

    assert [float(formulas.value(partial(power, k), n=3)) for k in (2, 3)] == [9.0, 27.0]
    assert [float(formulas.value(partial(power, exponent=k), n=3)) for k in (2, 3)] == [9.0, 27.0]
    assert [float(formulas.value(law, n=3)) for law in (lambda: symbols("n")[0], lambda: 2 * symbols("n")[0])] == [3, 6]
    assert not kept_in.exists()


def test_missing_letters_are_named(kept_in: Path) -> None:
    with pytest.raises(ValueError, match=r"no value for n \(tokens of a batch\)"):
        formulas.value(moe.time_expression, *paper_deployment(), chi=1)


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    formulas._kept.cache_clear()
    monkeypatch.setattr(formulas, "_file", lambda: tmp_path / "file" / "kept.json")
    monkeypatch.setattr(formulas, "_ready", {})
    assert float(formulas.value(moe.floor_expression, *paper_deployment())) > 0
    formulas._kept.cache_clear()


def test_damaged_file_is_made_anew(kept_in: Path) -> None:
    kept_in.parent.mkdir()
    kept_in.write_text("{")
    assert float(formulas.value(moe.floor_expression, *paper_deployment())) > 0
    assert json.loads(kept_in.read_text())


def test_costs_of_a_scenario_do_not_load_sympy() -> None:
    code = (
        "import sys, asapmodel as am; from asapmodel.costing import layer_costs; "
        "[layer_costs(am.Scenario.load(name)) for name in ('paper-asap', 'paper-chunked')]; "
        "print('sympy' in sys.modules)"
    )
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    ]
    assert said[1] == "False\n"


def test_memory_by_role_is_the_budget() -> None:
    architecture, device, _, split = paper_deployment()
    found = memory.fits(architecture, device, split, "sync", 8192, 1)
    whole = memory.budget("sync")
    assert {role: {x: held[x] for x in held if x != "activations"} for role, held in found.items.items()} == {
        role: {name: float(evaluate(x, architecture, device, split, S=8192, N_s=1)) for name, x in held.items()}
        for role, held in whole.items()
    }
