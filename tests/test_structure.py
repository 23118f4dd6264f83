"""The house rules: imports point one way, the package list is complete, the public surface is what it says."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import asapmodel

ROOT = Path(__file__).resolve().parent.parent
HOMES = {
    "asapmodel": ROOT / "asapmodel",
    "asapmodel.models": ROOT / "models",
    "asapmodel.solvers": ROOT / "solvers",
    "asapmodel.studies": ROOT / "studies",
}
ALLOWED = {  # layer -> layers it may import
    "asapmodel.solvers": {"asapmodel.solvers"},
    "asapmodel.models": {"asapmodel.models"},
    "asapmodel": {"asapmodel", "asapmodel.models", "asapmodel.solvers"},
    "asapmodel.studies": {"asapmodel", "asapmodel.models", "asapmodel.solvers", "asapmodel.studies"},
}


def modules() -> dict[str, Path]:
    """Every module of the package by its import name."""
    found = {}
    for home, folder in HOMES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join([home, *(part for part in parts if part != "__init__")])
            found[name] = path
    return found


MODULES = modules()


def layer(name: str) -> str:
    """The layer a module belongs to."""
    return next((home for home in list(HOMES)[1:] if name == home or name.startswith(home + ".")), "asapmodel")


def imports(path: Path) -> set[str]:
    """Names of modules a file imports, wherever the import stands."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(str(node.module))
            names |= {f"{node.module}.{alias.name}" for alias in node.names if f"{node.module}.{alias.name}" in MODULES}
    return names


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_one_way(name: str) -> None:
    for other in imports(MODULES[name]):
        assert other.split(".")[0] not in {"models", "solvers", "studies", "tests"}, f"bare import of {other}"
        if other.split(".")[0] == "asapmodel" and other != "asapmodel":
            assert layer(other) in ALLOWED[layer(name)], f"{name} imports {other}"


def test_package_list_is_complete() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert set(listed) == there
    assert len(listed) == len(set(listed))


def test_public_names_exist_and_are_sorted() -> None:
    assert list(asapmodel.__all__) == sorted(asapmodel.__all__)
    for name in asapmodel.__all__:
        assert getattr(asapmodel, name) is not None
    assert callable(asapmodel.evaluate)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        asapmodel.evaluat  # noqa: B018


@pytest.mark.parametrize("name", [name for name in MODULES if "__main__" not in name])
def test_every_module_lists_what_exists(name: str) -> None:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public), f"{name}.__all__ lists {public}"


def test_modules_stay_small() -> None:
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    large = {name: count for name, count in lines.items() if count > 400}
    assert not large, f"each probably two rooms: {large}"


def test_importing_the_package_is_cheap() -> None:
    """Neither numpy nor sympy nor numba is loaded until something is computed."""
    heavy = ("numpy", "sympy", "numba", "pandas", "pydantic")
    code = f"import sys, asapmodel; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


def test_verbs_survive_imports_of_their_modules() -> None:
    """A sub-module never takes the place of the verb of the same name."""
    code = "import asapmodel.verbs.compare, asapmodel as am; assert callable(am.evaluate) and callable(am.capacity)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
