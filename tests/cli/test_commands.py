import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import asapmodel as am
from asapmodel.cli import main
from asapmodel.cli.output import print_json
from asapmodel.engines import queueing
from tests.cli.helpers import SCENARIO, ask, process
from tests.verbs import stand_in

Captured = pytest.CaptureFixture[str]
GRAPH = ("--engine", "graph")
COMMANDS = ("evaluate", "capacity", "compare", "sweep", "report", "list", "show")


@pytest.fixture(autouse=True)
def single_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process the queueing engine is an M/M/1 queue that serves 10 requests/s."""
    monkeypatch.setattr(queueing, "analyse", stand_in.analyse)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(SCENARIO)
    return str(path)


KEYS = "engine rate_rps law requests stable ttft slo parts utilisation bottleneck by_length"


@pytest.mark.parametrize("engine", ["queueing", "graph", None])
def test_evaluate_json_as_a_process_prints_one_object_and_nothing_else(engine: str | None) -> None:
    chosen = () if engine is None else ("--engine", engine)
    answer = process(["evaluate", "paper-asap", "--rate", "4", *chosen, "--json"])
    assert (answer.status, answer.err) == (0, "")
    result = json.loads(answer.out)
    assert set(KEYS.split()) <= result.keys()
    assert result["ttft"].keys() >= {"mean_s", "std_s", "p50_s", "p90_s", "p95_s", "p99_s"}
    assert result["slo"].keys() >= {"ttft_s", "statistic", "met", "attainment"}
    assert result["parts"].keys() == {"queueing_s", "kernel_s", "waiting_s"}
    assert result["utilisation"].keys() >= {"attention", "moe"}
    assert (result["engine"], result["rate_rps"], result["stable"]) == (engine or "queueing", 4.0, True)
    assert result["law"] == ("run of 300 s" if engine == "graph" else "stationary")
    assert (result["requests"] is None) == (engine != "graph")
    assert {one["kind"] for one in result["assumptions"]} >= {"stated", "measured", "assumed"}


def test_the_installed_script_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("asapmodel")
    if not script.exists():
        pytest.skip("not installed")
    for name in ("--version", "list"):
        done = subprocess.run([str(script), name], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == process([name]).out
    assert am.__version__ in process(["--version"]).out


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; from asapmodel.cli import main; main(sys.argv[1:]); "
        "print([m for m in ('numpy', 'scipy', 'pandas', 'sympy', 'numba', 'asapmodel.tables') if m in sys.modules])"
    )
    for arguments in (["--help"], ["evaluate", "--help"], ["--version"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(capsys: Captured, command: str) -> None:
    answer = ask(capsys, *command.split(), "--help")
    assert answer.status == 0
    assert "Usage: asapmodel" in answer.out
    assert "completion" not in answer.out
    if not command:
        assert all(name in answer.out for name in COMMANDS)


def test_the_answer_is_the_verb_s(capsys: Captured, scenario: str) -> None:
    changes = ("--set", "D=3", "--set", 'policy.batch_window="0.1 s"', "--json")
    variant = am.Scenario.load(scenario).replace(D=3, batch_window=0.1)
    for engine in ("queueing", "graph"):
        answer = ask(capsys, "evaluate", scenario, *changes, "--engine", engine)
        assert json.loads(answer.out) == json.loads(json.dumps(am.evaluate(variant, engine=engine).to_dict()))


def test_the_distribution_is_there_when_asked(capsys: Captured, scenario: str) -> None:
    found = json.loads(ask(capsys, "evaluate", scenario, "--json", "--distribution").out)["distribution"]
    assert found["cdf"][-1] == 1.0
    assert len(found["time_s"]) == len(found["cdf"])
    assert "distribution" not in json.loads(ask(capsys, "evaluate", scenario, "--json").out)


@pytest.mark.parametrize("text", ["policy.batch_window=0.1 s", "batch_window=0.1", "policy.batch_window = '100 ms'"])
def test_set_reads_toml_or_plain_text(capsys: Captured, scenario: str, text: str) -> None:
    assert re.search(r"batch_window +0\.1\b", ask(capsys, "show", scenario, "--set", text).out)


@pytest.mark.parametrize("engine", ["queueing", "graph"])
def test_evaluate_in_words(capsys: Captured, scenario: str, engine: str) -> None:
    answer = ask(capsys, "evaluate", scenario, "--engine", engine)
    assert (answer.status, answer.err) == (0, "")
    for text in ("TTFT (s)", "p99", "own batches alone", "busy (%)", "Bottleneck:", "stated", f"engine {engine}"):
        assert text in answer.out
    assert ("95 % interval" in answer.out) == (engine == "graph")
    assert ("stationary law" in answer.out) == (engine == "queueing")
    assert "above what the system can serve" not in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "run"),
    [(GRAPH, "a 30 s run"), (("--horizon", "2 min"), "a 120 s run"), (("--horizon", "9"), "a 9 s")],
)
def test_a_finite_run_beyond_capacity_is_said_in_words(
    capsys: Captured, scenario: str, arguments: tuple[str, ...], run: str
) -> None:
    answer = ask(capsys, "evaluate", scenario, "--rate", "200", *arguments)
    assert answer.status == 0
    words = " ".join(answer.out.split())
    assert "Rate 200 is above what the system can serve (" in words
    assert f"requests/s): the queue grows for as long as the run lasts; TTFT of {run}" in words
    assert not json.loads(ask(capsys, "evaluate", scenario, "--rate", "200", *arguments, "--json").out)["stable"]


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_stationary_law_beyond_capacity_is_no_answer(
    capsys: Captured, scenario: str, as_json: tuple[str, ...]
) -> None:
    answer = ask(capsys, "evaluate", scenario, "--rate", "10", *as_json)
    assert answer.status == 1
    assert "10 requests/s is not below the stability limit, 10 requests/s, set by attention" in answer.error


def test_capacity_of_runs(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "capacity", scenario, *GRAPH, "--replications", "2", "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    low, high = found["bracket_rps"]
    assert low <= found["slo_throughput_rps"] <= high
    assert found["limited_by"]
    assert found["replications"] == 2
    words = ask(capsys, "capacity", scenario, *GRAPH, "--replications", "2").out
    for text in ("SLO throughput", "95 % interval", "bracket", "per device", "Stability limit", "Limited by:"):
        assert text in words


def test_capacity_of_the_law(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "capacity", scenario, "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["slo_throughput_rps"] == pytest.approx(9.8, rel=1e-3)
    assert (found["engine"], found["law"], found["interval_rps"]) == ("queueing", "stationary", None)
    words = ask(capsys, "capacity", scenario).out
    for text in ("stationary law", "SLO throughput", "per device", "Stability limit", "Limited by: attention."):
        assert text in words
    for text in ("interval", "bracket", "replication"):
        assert text not in words
    words = " ".join(ask(capsys, "capacity", scenario, "--set", "ttft=1 h").out.split())
    assert "Limited by: stability, which attention sets. The objective is still met at 99.9 % of the limit." in words


@pytest.mark.parametrize("arguments", [(), (*GRAPH, "--set", "duration=600 s", "--replications", "1")])
def test_no_answer_is_status_1_and_one_line(capsys: Captured, scenario: str, arguments: tuple[str, ...]) -> None:
    answer = ask(capsys, "capacity", scenario, "--set", "slo.ttft=1 ms", *arguments)
    assert answer.status == 1
    assert "is missed at every rate" in answer.error


@pytest.mark.parametrize(
    ("engine", "texts"),
    [
        (("--engine", "queueing"), ("stable below", "-*", "* at or above the stability limit: no stationary TTFT")),
        (("--horizon", "60s"), ("stable below", "* above what the system can serve")),
        ((*GRAPH, "--replications", "1"), ("95 % interval", "* above what the system can serve")),
    ],
)
def test_compare(
    capsys: Captured, scenario: str, tmp_path: Path, engine: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(SCENARIO.replace("D = 2", "D = 3"))
    arguments = ("compare", scenario, str(other), "--rates", "1,200", *engine)
    found = json.loads(ask(capsys, *arguments, "--json").out)
    assert [one["scenario"] for one in found["capacity"]] == ["mine", "other"]
    assert [[one["rate_rps"] for one in row] for row in found["evaluate"]] == [[1.0, 1.0], [200.0, 200.0]]
    words = ask(capsys, *arguments).out
    assert max(map(len, words.splitlines())) <= 80
    words = " ".join(words.split())
    for text in ("mine", "other", "D2 T4 E16", "gain", "Mean TTFT (s)", *texts):
        assert text in words


def test_sweep(capsys: Captured, scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "sweep.csv"
    answer = ask(capsys, "sweep", scenario, "--rates", "1:2:0.5", "-o", str(out), "--json")
    assert answer.status == 0
    assert answer.err == f"asapmodel: wrote {out}\n"
    found = json.loads(answer.out)
    assert [one["rate_rps"] for one in found["results"]] == [1.0, 1.5, 2.0]
    assert {"engine", "scenario", "system", "assumptions"} <= found.keys()
    lines = out.read_text().splitlines()
    assert lines[0].startswith("scenario,system,rate_rps,requests,stable,ttft_mean_s")
    assert lines[0].endswith(",engine,law")
    assert [line.split(",")[2] for line in lines[1:]] == ["1.0", "1.5", "2.0"]
    assert len(ask(capsys, "sweep", scenario, "--rates", "1,200", *GRAPH).out.splitlines()) >= 5


def test_a_sweep_beyond_the_limit_has_rows_without_numbers(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "sweep", scenario, "--rates", "1,10,200")
    assert answer.status == 0
    assert "* at or above the stability limit: no stationary TTFT" in answer.out
    assert re.search(r"^200\* +- +- +- +- +missed +- +attention", answer.out, re.MULTILINE)
    found = json.loads(ask(capsys, "sweep", scenario, "--rates", "1,200", "--json").out)["results"]
    assert [one["stable"] for one in found] == [True, False]
    assert found[1]["ttft"]["mean_s"] is None


def test_report(capsys: Captured, scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("an older one")
    answer = ask(capsys, "report", scenario, "-o", str(out), "--force")
    assert (answer.status, answer.out, answer.err) == (0, "", f"asapmodel: wrote {out}\n")
    assert "<html" in out.read_text()


def test_list(capsys: Captured) -> None:
    everything = ask(capsys, "list").out
    for name in ("deepseek-v3.2", "ascend-910c-die", "cloudmatrix384", "paper-asap", "mooncake_conversation"):
        assert name in everything
    scenarios = ask(capsys, "list", "scenarios").out
    assert "paper-asap" in scenarios
    assert "deepseek" not in scenarios
    assert "12,031 requests at 3.401/s" in ask(capsys, "list", "traces").out


def test_show(capsys: Captured) -> None:
    shown = ask(capsys, "show", "paper-asap")
    assert shown.status == 0
    for text in ("[policy]", "max_batch_tokens", "Memory of a device", "experts weights", "dispatch send"):
        assert text in shown.out
    for text in ("model.routed_experts = 256", "stated", "assumed", "profile.host_dispatch = 220 us", "section 5.5.3"):
        assert text in shown.out


def test_show_of_what_does_not_fit_prints_the_memory_and_then_the_error(capsys: Captured) -> None:
    shown = ask(capsys, "show", "paper-asap", "--set", "E=2")
    assert shown.status == 2
    assert "experts weights" in shown.out
    assert "needs 3" in shown.err
    assert shown.err.count("\n") == 1


def test_nan_and_infinities_become_null(capsys: Captured) -> None:
    print_json({"a": math.nan, "b": [1.0, math.inf], "c": {"d": (-math.inf, "x", None, True, 3)}})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1.0, None], "c": {"d": [None, "x", None, True, 3]}}


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_unexpected_error_is_one_line_unless_debugging(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, debug: str
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("on\npurpose")

    monkeypatch.setattr("asapmodel.cli.showing.catalogue_tables", broken)
    monkeypatch.setenv("ASAPMODEL_DEBUG", debug)
    assert main(["list"]) == 1
    err = capsys.readouterr().err
    assert err.endswith("report (ZeroDivisionError: on purpose); set ASAPMODEL_DEBUG=1 for the traceback\n")
    assert ("Traceback" in err) == bool(debug)
    assert (err.count("\n") == 1) == (not debug)


def test_a_reader_that_stops_early_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "asapmodel", "show", "paper-asap"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == b""
