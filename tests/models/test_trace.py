"""Traces: reading, refusing, changing, and the numbers of the shipped ones."""

import gzip
import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asapmodel
from asapmodel.models.arrivals import counts_index_of_dispersion
from asapmodel.models.trace import Trace, TraceError, read_trace, write_trace

SHIPPED = Path(asapmodel.__file__).parent / "catalog" / "traces"
HEAD = "arrival_s,prompt_tokens,cached_tokens\n"


def example() -> Trace:
    return Trace(np.array([0.0, 0.5, 0.5, 2.0, 4.0]), np.array([31, 4096, 7, 512, 9]), np.zeros(5, int), "example")


def written(folder: Path, text: str, name: str = "t.csv") -> Path:
    file = folder / name
    data = text.encode()
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return file


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_reads_columns_by_name_and_ignores_the_rest(tmp_path: Path, name: str) -> None:
    text = "output_tokens, prompt_tokens ,cached_tokens,arrival_s\n\n5,31,,0.25\n,4096,512,1.5\n   \n9,7.0, ,1.5\n\n"
    trace = read_trace(written(tmp_path, text, name))
    assert trace.arrival_s.tolist() == [0.25, 1.5, 1.5]
    assert trace.prompt_tokens.tolist() == [31, 4096, 7]
    assert trace.cached_tokens.tolist() == [0, 512, 0]
    assert trace.prompt_tokens.dtype == trace.cached_tokens.dtype == np.dtype(np.int64)
    assert trace.source == name


def test_cached_column_may_be_absent_and_line_ends_may_be_windows_ones(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "\ufeffarrival_s,prompt_tokens\r\n0,31\r\n1,32\r\n"))
    assert trace.cached_tokens.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("", "header", "the file is empty"),
        ("\n\n", "header", "the file is empty"),
        (HEAD, "", "has a header but no rows"),
        ("arrival_s,tokens\n0,1\n", "header", "has no column prompt_tokens"),
        ("time,prompt_tokens\n0,1\n", "header", "has no column arrival_s"),
        ("0.0,31\n1.0,32\n", "header", "has no column arrival_s"),
        ("arrival_s,prompt_tokens,arrival_s\n0,1,0\n", "header", "names arrival_s twice"),
        (HEAD + "0,31,0\n\nsoon,31,0\n", "row 4", "arrival_s 'soon' is not a number"),
        (HEAD + "0,31,0\n1,,0\n", "row 3", "prompt_tokens '' is not a number"),
        (HEAD + "0,31,none\n", "row 2", "cached_tokens 'none' is not a number"),
        (HEAD + "0,31,0\n1,31\n", "row 3", "has 2 cells, the header 3"),
        (HEAD + "0,31,0\n1,31,0,5\n", "row 3", "has 4 cells, the header 3"),
        (HEAD + "nan,31,0\n", "row 2", "arrival_s nan is not a finite number"),
        (HEAD + "0,31,0\n\n\ninf,31,0\n", "row 5", "arrival_s inf is not a finite number"),
        (HEAD + "-1,31,0\n", "row 2", "arrival_s -1 is negative"),
        (HEAD + "0,31,0\n2,31,0\n1.5,31,0\n", "row 4", "arrival_s 1.5 is earlier than the row before"),
        (HEAD + "0,31,0\n1,0,0\n", "row 3", "prompt_tokens 0 is not a whole number of at least 1"),
        (HEAD + "0,31.5,0\n", "row 2", "prompt_tokens 31.5 is not a whole number of at least 1"),
        (HEAD + "0,nan,0\n", "row 2", "prompt_tokens nan is not a whole number of at least 1"),
        (HEAD + "0,1e300,0\n", "row 2", "prompt_tokens 1e+300 is not a whole number of at least 1"),
        (HEAD + "0,31,-1\n", "row 2", "cached_tokens -1 is not a whole number of at least 0"),
        (HEAD + "0,31,0.5\n", "row 2", "cached_tokens 0.5 is not a whole number of at least 0"),
        (HEAD + "0,31,30\n1,31,31\n", "row 3", "cached_tokens 31 is not below prompt_tokens"),
        (HEAD + '0,"31"x,0\n', "row 2", "is not CSV"),
    ],
)
def test_a_bad_file_is_refused_by_place_and_reason(tmp_path: Path, text: str, key: str, problem: str) -> None:
    with pytest.raises(TraceError) as error:
        read_trace(written(tmp_path, text))
    caught = error.value
    assert (caught.where, caught.key) == ("t.csv", key)
    assert caught.problem.startswith(problem)
    assert caught.remedy
    assert str(caught) == f"t.csv: {key}: {caught.problem}; {caught.remedy}".replace(": : ", ": ")


def test_an_unusable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"gone\.csv: does not exist in .*; check the path"):
        read_trace(tmp_path / "gone.csv")
    with pytest.raises(TraceError, match=r"t\.json: is neither \.csv nor \.csv\.gz"):
        read_trace(written(tmp_path, HEAD, "t.json"))
    (tmp_path / "plain.csv.gz").write_text(HEAD + "0,31,0\n")
    with pytest.raises(TraceError, match="is not a whole gzip file"):
        read_trace(tmp_path / "plain.csv.gz")
    whole = gzip.compress((HEAD + "0,31,0\n" * 100).encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-12])
    with pytest.raises(TraceError, match="is not a whole gzip file"):
        read_trace(tmp_path / "cut.csv.gz")
    (tmp_path / "zipped.csv").write_bytes(whole)
    with pytest.raises(TraceError, match="is not UTF-8 text"):
        read_trace(tmp_path / "zipped.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(tmp_path / "folder.csv")


def test_a_fault_in_a_later_block_has_the_right_line(tmp_path: Path) -> None:
    rows = [f"{i},31,0\n" for i in range(70_000)]
    rows[69_000] = "69000,x,0\n"
    with pytest.raises(TraceError) as error:
        read_trace(written(tmp_path, HEAD + "".join(rows)))
    assert error.value.key == "row 69002"


@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.integers(1, 2**40), st.floats(0, 1, exclude_max=True)), min_size=1, max_size=20
    )
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_round_trip_restores_every_bit(
    tmp_path_factory: pytest.TempPathFactory, name: str, rows: list[tuple[float, int, float]]
) -> None:
    arrival = np.sort([a for a, _, _ in rows])
    prompt = np.array([p for _, p, _ in rows])
    cached = np.array([int(share * (p - 1)) for _, p, share in rows])
    trace = Trace(arrival, prompt, cached, "made")
    file = tmp_path_factory.mktemp("trip") / name
    write_trace(file, trace)
    first = file.read_bytes()
    again = read_trace(file)
    write_trace(file, again)
    assert file.read_bytes() == first
    for field in ("arrival_s", "prompt_tokens", "cached_tokens"):
        np.testing.assert_array_equal(getattr(again, field), getattr(trace, field))


def test_a_hundred_thousand_rows_are_read_in_seconds(tmp_path: Path) -> None:
    count = 100_000
    write_trace(tmp_path / "t.csv.gz", Trace(np.arange(count) / 7, np.full(count, 512), np.zeros(count, int), "made"))
    start = time.process_time()
    assert len(read_trace(tmp_path / "t.csv.gz")) == count
    assert time.process_time() - start < 4


def test_natural_rate_is_one_over_the_mean_gap() -> None:
    assert example().rate == 1.0
    assert Trace(np.arange(4) / 2, np.ones(4, int), np.zeros(4, int), "x").rate == 2.0
    with pytest.raises(TraceError, match="x: all requests arrive at one instant"):
        _ = Trace(np.ones(2), np.ones(2, int), np.zeros(2, int), "x").rate


@given(st.floats(1e-3, 1e3))
def test_rescaling_moves_times_only(rate: float) -> None:
    scaled = example().rescaled(rate)
    assert scaled.rate == pytest.approx(rate)
    np.testing.assert_allclose(scaled.arrival_s * rate, example().arrival_s)
    np.testing.assert_array_equal(scaled.prompt_tokens, example().prompt_tokens)


def test_window_is_contiguous_half_open_and_starts_at_zero() -> None:
    part = example().window(0.5, 3.5)
    assert part.arrival_s.tolist() == [0.0, 0.0, 1.5]
    assert part.prompt_tokens.tolist() == [4096, 7, 512]
    with pytest.raises(TraceError, match=r"example: no request arrives in \[5"):
        example().window(5.0, 10.0)


def test_kept_drops_prompts_and_keeps_times() -> None:
    part = example().kept(9, 512)
    assert part.arrival_s.tolist() == [0.0, 2.0, 4.0]
    assert part.prompt_tokens.tolist() == [31, 512, 9]
    with pytest.raises(TraceError, match="no prompt has between 10000 and inf tokens"):
        example().kept(10_000, math.inf)


@given(st.floats(0, 10), st.integers(0, 2**32 - 1))
def test_spread_keeps_order_and_leaves_each_arrival_in_its_tick(tick: float, seed: int) -> None:
    before = example()
    after = before.spread(tick, np.random.default_rng(seed))
    np.testing.assert_array_equal(after.prompt_tokens, before.prompt_tokens)
    assert (after.arrival_s >= before.arrival_s).all()
    assert (after.arrival_s <= before.arrival_s + tick).all()


def test_a_trace_is_checked_copied_and_read_only() -> None:
    times = np.array([0.0, 1.0])
    trace = Trace(times, np.array([2, 3]), np.array([0, 0]), "made")
    times[0] = 0.5
    assert trace.arrival_s[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        trace.prompt_tokens[0] = 9
    with pytest.raises(TraceError, match="made: row 3: cached_tokens 3 is not below"):
        Trace(times, np.array([2, 3]), np.array([0, 3]), "made")
    with pytest.raises(TraceError, match="columns differ in length"):
        Trace(times, np.array([2]), np.array([0, 0]), "made")
    with pytest.raises(TraceError, match="holds no request"):
        Trace(times[:0], times[:0].astype(int), times[:0].astype(int), "made")
    with pytest.raises(ValueError, match="rate must be positive"):
        trace.rescaled(0.0)
    with pytest.raises(ValueError, match="tick_s must be at least 0"):
        trace.spread(-1.0, np.random.default_rng(1))


@pytest.mark.parametrize("name", ["mooncake_conversation", "azure2023_conv", "afd_prefill"])
def test_shipped_trace_has_the_numbers_of_its_readme(name: str) -> None:
    table = (SHIPPED / "README.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith(f"| `{name}.csv.gz`"))
    cells = [cell.strip().replace(",", "") for cell in row.strip("|").split("|")][1:]
    trace = read_trace(SHIPPED / f"{name}.csv.gz")
    law = trace.lengths()
    cached = trace.cached_tokens.sum() / trace.prompt_tokens.sum()
    assert cells == [
        f"{len(trace)}",
        f"{trace.arrival_s[-1]:.1f}",
        f"{trace.rate:.3f}",
        f"{law.mean:.1f}",
        f"{law.support[0]:.0f}",
        f"{law.support[1]:.0f}",
        f"{math.sqrt(law.scv):.3f}",
        f"{100 * cached:.2f} %" if name != "azure2023_conv" else "unknown",
    ]


@pytest.mark.parametrize(
    ("name", "share_over", "share_under", "mean", "square"),
    [("mooncake_conversation", 6.88, 0.0, 8667, 1.36e8), ("azure2023_conv", 0.0, 1.05, 1167, 2.59e6)],
)
def test_shipped_trace_after_the_cut_agrees_with_the_research_table(
    name: str, share_over: float, share_under: float, mean: float, square: float
) -> None:
    trace = read_trace(SHIPPED / f"{name}.csv.gz")
    below = 100 * trace.lengths().cdf([30, 32768])
    assert [100 - below[1], below[0]] == pytest.approx([share_over, share_under], abs=0.005)
    law = trace.kept(31, 32768).lengths()
    assert law.mean == pytest.approx(mean, abs=0.5)
    assert law.moment(2) == pytest.approx(square, rel=0.004)


def test_shipped_arrivals_have_the_dispersion_of_the_research_table() -> None:
    azure = read_trace(SHIPPED / "azure2023_conv.csv.gz").arrival_s
    assert [counts_index_of_dispersion(azure, w) for w in (1, 10, 60)] == pytest.approx([1.39, 3.9, 16.1], rel=0.015)
    mooncake = read_trace(SHIPPED / "mooncake_conversation.csv.gz")
    spread = mooncake.spread(3.0, np.random.default_rng(20260)).arrival_s
    assert [counts_index_of_dispersion(spread, w) for w in (1, 60)] == pytest.approx([1.08, 2.9], rel=0.05)
    gaps = np.diff(spread)
    assert gaps.std() / gaps.mean() == pytest.approx(1.02, abs=0.02)


def test_in_shipped_mooncake_the_fully_cached_prompts_compute_one_token() -> None:
    trace = read_trace(SHIPPED / "mooncake_conversation.csv.gz")
    assert np.count_nonzero(trace.cached_tokens == trace.prompt_tokens - 1) >= 118
