"""Outputs: an interrupted exploration goes on and ends the same, and results of another space are never mixed in."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import asapmodel as am
from asapmodel.exploration import explorer, store
from asapmodel.exploration.evaluation import Task, evaluate
from asapmodel.exploration.space import Space
from asapmodel.verbs.explore import explore
from tests.exploration.spaces import SMALL

SPACE = Space.parse(SMALL.replace("top = 0", "top = 1\nreplications = 1"))
OTHER = Space.parse(SMALL.replace("max = 40", "max = 39"))


class Stopped(BaseException):
    """As abrupt as an interrupt."""


def after(reports: int) -> Callable[[str, int, int], None]:
    """A progress that stops everything at its n-th report."""
    seen: list[str] = []

    def report(title: str, done: int, total: int) -> None:
        seen.append(title)
        if len(seen) == reports:
            raise Stopped

    return report


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Bytes of the output of an exploration without interruption."""
    path = tmp_path_factory.mktemp("whole") / "out.parquet"
    explore(SPACE, path)
    return path.read_bytes()


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Tasks of 3 points; what is computed is listed as effort and point."""
    computed: list[tuple[str, int]] = []

    def counted(task: Task) -> pd.DataFrame:
        table = evaluate(task)
        computed.extend((task.effort, point) for point in table["point"])
        return table

    monkeypatch.setattr(explorer, "PIECE", 3)
    monkeypatch.setattr("asapmodel.exploration.explorer.evaluate", counted)
    return computed


def test_interrupted_anywhere_it_goes_on_and_ends_the_same(
    whole: bytes, small_pieces: list[tuple[str, int]], tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    for reports in (3, 3, 4, 4):  # twice while screening, before and while settling
        with pytest.raises(Stopped):
            explore(SPACE, out, progress=after(reports))
        assert not out.exists()
    found = explore(SPACE, out)
    assert out.read_bytes() == whole
    assert not found.reused
    assert len(small_pieces) == len(set(small_pieces))  # nothing was computed twice
    assert len([1 for effort, _ in small_pieces if effort == "quick"]) == 15
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_finished_output_is_read_and_nothing_computed(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.parquet"
    out.write_bytes(whole)
    fresh = explore(SPACE)
    monkeypatch.setattr(explorer, "designs_of", None)
    found = explore(SPACE, out)
    assert found.reused
    assert not fresh.reused
    assert {**found.to_dict(), "reused": False} == fresh.to_dict()
    pd.testing.assert_frame_equal(found.table, fresh.table)


def test_metadata_says_of_which_space_and_version(whole: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_bytes(whole)
    metadata = json.loads(pq.read_schema(out).metadata[b"asapmodel"])
    assert metadata["space"] == SPACE.digest
    assert metadata["version"] == am.__version__
    assert metadata["combinations"] == 24
    assert sum(points for _, points, _ in metadata["left_out"]) == 9


def test_another_space_is_refused_unless_forced(whole: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_bytes(whole)
    with pytest.raises(am.InputError, match="results of another space; give --force"):
        explore(OTHER, out)
    assert out.read_bytes() == whole
    found = explore(OTHER, out, force=True)
    assert len(found.table) == len(pd.read_parquet(out))


def test_parts_of_another_space_or_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.parquet"
    with pytest.raises(Stopped):
        explore(SPACE, out, progress=after(2))
    with pytest.raises(am.InputError, match=r"out.parquet.parts: holds results of another space"):
        explore(OTHER, out)
    monkeypatch.setattr(store, "__version__", "0.0.9")
    with pytest.raises(am.InputError, match=r"was made by asapmodel 0.1.0, this is 0.0.9"):
        explore(SPACE, out)
    monkeypatch.undo()
    explore(OTHER, out, force=True)


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing of it", "table"])
def test_what_is_no_result_is_not_replaced(tmp_path: Path, content: bytes | str) -> None:
    out = tmp_path / "out.parquet"
    if isinstance(content, bytes):
        out.write_bytes(content)
    else:
        pd.DataFrame({"a": [1]}).to_parquet(out)
    before = out.read_bytes()
    with pytest.raises(am.InputError, match="is no result of an exploration"):
        explore(SPACE, out)
    assert out.read_bytes() == before


@pytest.mark.parametrize("force", [False, True])
def test_output_that_is_a_folder(force: bool, tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="is a folder; give the name of a file"):
        explore(SPACE, tmp_path, force=force)


def test_force_keeps_the_old_output_until_there_is_something_to_compute(whole: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_bytes(whole)
    with pytest.raises(am.NoAnswer, match="is feasible"):
        explore(Space.parse(SMALL.replace("max = 40", "max = 2")), out, force=True)
    assert out.read_bytes() == whole


def test_output_without_a_folder(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="there is no folder"):
        explore(SPACE, tmp_path / "none" / "out.parquet")
    (tmp_path / "out.parquet.parts").write_text("a file", encoding="utf-8")
    with pytest.raises(am.InputError, match=r"out\.parquet\.parts: cannot be used"):
        explore(SPACE, tmp_path / "out.parquet")
