"""The documentation against the code: examples parse and run, links lead somewhere, nothing to set is missing."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import asapmodel as am
from asapmodel import catalog
from asapmodel.catalog import CHOICES, FIELDS
from asapmodel.catalog._schema import parse_cluster, parse_entry
from asapmodel.cli.app import make_app
from asapmodel.cli.options import load, parse_count, parse_rates
from asapmodel.costs import LayerCosts
from asapmodel.models.parameters import Architecture, Device, Profile
from asapmodel.policy import Policy
from asapmodel.result import Capacity, Result
from asapmodel.scenario_tables import TABLES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINKED = [*PAGES, *(page for page in [ROOT / "README.md"] if page.exists())]
RECORDS = {"model": Architecture, "device": Device, "profile": Profile}


def shown(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    """Line and content of the fenced blocks of a language."""
    content = text(page)
    for found in re.finditer(rf"^```{language}\n(.*?)^```$", content, re.MULTILINE | re.DOTALL):
        yield content.count("\n", 0, found.start()) + 2, found[1]


def section(page: Path, heading: str) -> str:
    """Text between a heading of the second level and the next."""
    parts = re.split(r"^## ", text(page), flags=re.MULTILINE)
    return next(part for part in parts if part.splitlines()[0].strip() == heading)


def commands() -> TyperGroup:
    group = get_command(make_app())
    assert isinstance(group, TyperGroup)
    return group


def all_blocks(language: str) -> list[object]:
    return [
        pytest.param(content, id=f"{shown(page)}:{line}") for page in LINKED for line, content in blocks(page, language)
    ]


@pytest.mark.parametrize("content", all_blocks("toml"))
def test_toml_examples_are_valid(content: str) -> None:
    first = content.splitlines()[0]
    if first.startswith("# scenario"):
        scenario = am.Scenario.parse(content, where="example.toml")
        assert scenario.layout.devices <= scenario.devices.value.devices
    elif first == "# catalogue cluster":
        entry = parse_cluster(content, "example.toml").value
        assert entry.device in catalog.names("devices")
        assert entry.profile in catalog.names("profiles")
    elif first.startswith("# catalogue "):
        kind = first.removeprefix("# catalogue ")
        assert parse_entry(RECORDS[kind], content, "example.toml", kind).assumptions


@pytest.mark.parametrize("page", [page for page in LINKED if any(blocks(page, "python"))], ids=shown)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for line, content in blocks(page, "python"):
        # The line numbers of the page, for the traceback.
        exec(compile("\n" * (line - 1) + content, shown(page), "exec"), names)


def console_lines() -> list[object]:
    """Every `$ asapmodel` line with whether an error follows it."""
    found: list[object] = []
    for page in LINKED:
        for start, content in blocks(page, "console"):
            lines = content.splitlines()
            for k, line in enumerate(lines):
                if line.startswith("$ asapmodel"):
                    fails = k + 1 < len(lines) and lines[k + 1].startswith("asapmodel: error")
                    found.append(pytest.param(line, fails, id=f"{shown(page)}:{start + k}"))
    return found


@pytest.mark.parametrize(("line", "fails"), console_lines())
def test_console_lines_are_valid(line: str, fails: bool) -> None:
    words = shlex.split(line.removeprefix("$ "), comments=True)[1:]
    words = words[: next((k for k, word in enumerate(words) if word in {"|", ">"}), len(words))]
    if words in (["--help"], ["--version"]):
        return
    command = commands().commands[words[0]]
    given = command.make_context(words[0], words[1:]).params
    if fails:
        return
    if given.get("rates"):
        assert parse_rates(str(given["rates"]))
    assert given.get("replications") is None or parse_count(str(given["replications"]))
    for name in [given["scenario"]] if given.get("scenario") else given.get("scenarios", []):
        if not name.endswith(".toml"):
            load(name, given.get("changes"))


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text(page), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=shown)
def test_relative_links_lead_somewhere(page: Path) -> None:
    content = re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", content):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_page_is_in_the_index(page: Path) -> None:
    index = DOCS / "README.md"
    assert page == index or f"({page.relative_to(DOCS).as_posix()})" in text(index)


@pytest.mark.parametrize("name", TABLES)
def test_every_key_of_a_scenario_is_described(name: str) -> None:
    described = section(DOCS / "reference" / "scenario.md", f"[{name}]")
    for key in TABLES[name].model_fields:
        assert f"| `{key}`" in described or (name, key) == ("workload", "lengths"), key
    assert "`lengths`" in described or name != "workload"


def test_every_field_and_default_of_the_policy_is_described() -> None:
    described = section(DOCS / "reference" / "scenario.md", "[policy]")
    for name, field in Policy.__dataclass_fields__.items():
        (row,) = re.findall(rf"^\| `{name}` .*$", described, re.MULTILINE)
        default = {"True": "true", "False": "false", "0.05": "50 ms"}.get(str(field.default), str(field.default))
        assert default in row


def test_every_coefficient_is_described() -> None:
    described = section(DOCS / "reference" / "scenario.md", "[costs]")
    for name in LayerCosts.__dataclass_fields__:
        assert f"| `{name}` |" in described


@pytest.mark.parametrize("record", [Device, Profile])
def test_every_field_of_the_catalogue_is_described(record: type) -> None:
    described = text(DOCS / "reference" / "catalogue.md")
    for name in (*FIELDS[record], *CHOICES[record]):
        assert f"`{name}`" in described, name


def test_every_command_and_option_is_described() -> None:
    page = DOCS / "reference" / "command-line.md"
    described = text(page)
    rows = {row.split()[0]: row for row in re.findall(r"^\| `(.*)$", described, re.MULTILINE)}
    for name, command in commands().commands.items():
        row = next(row for word, row in rows.items() if word.strip("`") == name)
        for parameter in command.params:
            if parameter.param_type_name == "option":
                for option in parameter.opts:
                    assert f"`{option}`" in row, f"{name} {option}"
                    assert re.search(rf"`{option}[ `]", section(page, "Options")), option


@pytest.mark.parametrize("record", [Result, Capacity])
def test_every_field_of_an_answer_is_described(record: type[Result] | type[Capacity]) -> None:
    described = section(DOCS / "reference" / "command-line.md", "JSON")
    for name in record.__dataclass_fields__:
        assert f"`{name}`" in described or name == "records", name


@pytest.mark.parametrize("name", am.__all__)
def test_every_public_name_is_described(name: str) -> None:
    assert re.search(rf"`[^`]*\b{name}\b", text(DOCS / "reference" / "python.md"))


def test_docs_speak_of_the_project_alone() -> None:
    for page in PAGES:
        assert not re.search(r"/work|shared/(?!models)|SEMANTICS|DESIGN\.md", text(page)), shown(page)
