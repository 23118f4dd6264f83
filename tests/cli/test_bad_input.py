"""Every mistake is exit status 2 and one line that names place, key and remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from asapmodel.cli.options import parse_rates
from asapmodel.errors import InputError
from tests.cli.helpers import SCENARIO, ask

Captured = pytest.CaptureFixture[str]
Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def to_file(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return name

    return to_file


EVALUATE = ("evaluate", "paper-asap")
RATE = (*EVALUATE, "--rate", "4")
NO_ENGINE = "--engine: no engine 'x'; give one of: queueing, graph"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing command; see 'asapmodel --help'"),
        (("evalute",), "no command 'evalute'; the nearest is 'evaluate' of"),
        (("--verison",), "no option '--verison'; the nearest is '--version'"),
        (("evaluate",), "missing argument 'SCENARIO'; see 'asapmodel evaluate --help'"),
        (("compare",), "missing argument 'SCENARIO...'; see 'asapmodel compare --help'"),
        ((*EVALUATE, "extra"), "got unexpected extra argument(s) (extra); see 'asapmodel evaluate --help'"),
        ((*EVALUATE, "--rte", "4"), "no option '--rte'; the nearest is '--rate'"),
        ((*EVALUATE, "--rate"), "option '--rate' requires an argument; see 'asapmodel evaluate --help'"),
        ((*EVALUATE, "--json=1"), "option '--json' does not take a value; see 'asapmodel evaluate --help'"),
        (("sweep", "paper-asap"), "missing option '--rates'; see 'asapmodel sweep --help'"),
        (("report", "paper-asap"), "missing option '-o' / '--output'; see 'asapmodel report --help'"),
        (EVALUATE, "<paper-asap>: workload.rate: is missing; give it, or --rate"),
        (("evaluate", "paper-asp", "--rate", "4"), "paper-asp: no such file or shipped scenario; give a file or"),
        (("list", "model"), "list: no kind 'model' in the catalogue; give one of models, devices,"),
        (("compare", "paper-asap", "trace-asap"), "<trace-asap>: workload: differs from that of <paper-asap>; give"),
        ((*RATE, "--engine", "x"), NO_ENGINE),
        ((*RATE, "--engine", "x", "--requests", "r.csv"), NO_ENGINE),
        (("capacity", "paper-asap", "--engine", "x"), NO_ENGINE),
        (("compare", "paper-asap", "--engine", "x"), NO_ENGINE),
        (("sweep", "paper-asap", "--rates", "1", "--engine", "x"), NO_ENGINE),
        (("report", "paper-asap", "-o", "r.html", "--engine", "x"), NO_ENGINE),
        ((*RATE, "--requests", "r.csv"), "--requests: engine 'queueing' has no requests; its answer is a law: give"),
        (("capacity", "paper-asap", "--replications", "2"), "--replications: are not for engine 'queueing'; it draws"),
        (("compare", "paper-asap", "--replications", "2"), "--replications: are not for engine 'queueing'; it draws"),
        ((*RATE, "--engine", "graph", "--horizon", "9s"), "--horizon: is not for engine 'graph'; a run of the graph"),
        (
            ("report", "paper-asap", "-o", "r.html", "--engine", "graph", "--graph-points"),
            "--graph-points: are there with engine 'graph'; leave out one of the two",
        ),
    ],
)
def test_usage(capsys: Captured, arguments: tuple[str, ...], message: str) -> None:
    answer = ask(capsys, *arguments)
    assert answer.status == 2
    assert answer.error.startswith(message)


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "four", "", "1e999"])
def test_rate(capsys: Captured, rate: str) -> None:
    answer = ask(capsys, *EVALUATE, "--rate", rate)
    assert answer.status == 2
    assert answer.error == f"--rate: is '{rate}'; give a positive number of requests per second"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-3", "is -3.0; give a time greater than 0"),
        ("0s", "is 0.0; give a time greater than 0"),
        ("nan", "is nan, not a finite time; give seconds"),
        ("inf", "is inf, not a finite time; give seconds"),
        ("", "'' is not a time; give seconds"),
        ("long", "'long' is not a time; give seconds"),
        ("3 parsec", "'3 parsec' has the unknown unit 'parsec'; give seconds"),
        ("5 GB", "'5 GB' is a size, not a time; give seconds"),
    ],
)
def test_horizon(capsys: Captured, tmp_path: Path, text: str, message: str) -> None:
    out = str(tmp_path / "r.html")
    for command in (RATE, ("capacity", "paper-asap"), ("compare", "paper-asap"), ("report", "paper-asap", "-o", out)):
        answer = ask(capsys, *command, f"--horizon={text}")
        assert answer.status == 2
        assert answer.error.startswith(f"--horizon: {message}")
    answer = ask(capsys, "sweep", "paper-asap", "--rates", "1", f"--horizon={text}")
    assert answer.error.startswith(f"--horizon: {message}")


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "many", "", "9" * 5000])
def test_replications(capsys: Captured, count: str) -> None:
    answer = ask(capsys, "capacity", "paper-asap", "--replications", count)
    assert answer.status == 2
    assert answer.error == f"--replications: is '{count[:40]}'; give a whole number from 1 to 1000"


@pytest.mark.parametrize("text", ["", "1,", "x", "0", "1,-2", "1:2", "1:2:3:4", "1:2:0", "1:2:-1", "2:1:1", "1:nan:1"])
def test_rates(capsys: Captured, text: str) -> None:
    answer = ask(capsys, "sweep", "paper-asap", "--rates", text)
    assert answer.status == 2
    assert answer.error.startswith("--rates: ")


def test_rates_are_inclusive_and_plain() -> None:
    assert parse_rates("1:24:1") == [float(k) for k in range(1, 25)]
    assert parse_rates("0.1:0.5:0.1") == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert parse_rates("1:2:0.4") == [1.0, 1.4, 1.8]
    assert parse_rates("3:3:1") == [3.0]
    assert parse_rates("8, 4,1") == [8.0, 4.0, 1.0]
    with pytest.raises(InputError, match="more than 10000 rates"):
        parse_rates("1:1e9:0.001")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("D", "--set: D: is not KEY=VALUE; write, say, D=8"),
        ("=8", "--set: =8: is not KEY=VALUE"),
        ("D=", "--set: D=: is not KEY=VALUE"),
        ("policy.batch_windw=1", "--set: policy.batch_windw: unknown key; the nearest valid key is 'batch_window'"),
        ("F=8", "--set: F: unknown key; the nearest valid key is"),
        ("D=0", "--set: system.D: is 0; give a whole number of at least 1"),
        ("D=nan", "--set: system.D: is nan; give a whole number"),
        ("D=eight", "--set: system.D: is 'eight'; give a whole number"),
        ("batch_window=1 GB", "--set: policy.batch_window: '1 GB' is a size, not a time; give seconds"),
        ("horizon=-5 s", "--set: workload.horizon: is '-5 s'; give a number greater than 0"),
        ("horizon=5 m", "--set: workload.horizon: '5 m' has the unknown unit 'm'; give seconds"),
        ("slo.ttft=nan", "--set: slo.ttft: is nan, not a finite time; give seconds"),
        ("D=400", "--set: system: needs 1616 devices, the cluster has 768; lower D, T or E"),
        ("E=2", "<paper-asap>: system: D4 T4 E2 needs "),
        ("model.use=gpt", "--set: model.use: no model 'gpt' in the catalogue; the nearest model is"),
        ("D=1\nT=1", "--set: system.D: is '1\\nT=1'; give a whole number"),
    ],
)
def test_set(capsys: Captured, change: str, message: str) -> None:
    answer = ask(capsys, *RATE, "--set", change)
    assert answer.status == 2
    assert answer.error.startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("E = 16", "E = 16\nF = 1", "s.toml: system.F: unknown key; the nearest valid key is"),
        ("[workload]", "[wokload]", "s.toml: wokload: unknown table; the nearest valid table is 'workload'"),
        ('"30 s"', '"30 GB"', "s.toml: workload.duration: '30 GB' is a size, not a time; give seconds"),
        ('"30 s"', '"-1 s"', "s.toml: workload.duration: is '-1 s'; give a number greater than 0"),
        ('"30 s"', "nan", "s.toml: workload.duration: is nan, not a finite time; give seconds"),
        ("constant = 4096", "constant = -5", "s.toml: workload.lengths.constant: is -5; give a whole number of at"),
        ("rate = 3.0", "rate = nan", "s.toml: workload.rate: is nan, not a finite rate; give requests/s"),
        ("D = 2", "D = 300", "s.toml: system: needs 1216 devices, the cluster has 768; lower D, T or E"),
        ("E = 16", "E = 1", "s.toml: system: D2 T4 E1 needs "),
        ("D = 2", "D =", "s.toml: line 4: not valid TOML: "),
    ],
)
def test_scenario_file(capsys: Captured, write: Write, old: str, new: str, message: str) -> None:
    answer = ask(capsys, "evaluate", write("s.toml", SCENARIO.replace(old, new)))
    assert answer.status == 2
    assert answer.error.startswith(message)
    assert "; " in answer.error


HEADER = "arrival_s,prompt_tokens,cached_tokens\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("arrival_s,tokens\n0,5\n", "t.csv: header: has no column prompt_tokens; name the columns"),
        (HEADER + "0,50,\n2,50,\n1,50,\n", "t.csv: row 4: arrival_s 1 is earlier than the row before; sort"),
        (HEADER + "-1,50,\n2,50,\n", "t.csv: row 2: arrival_s -1 is negative; give seconds since the start"),
        (HEADER + "0,50,0\n1,50,50\n", "t.csv: row 3: cached_tokens 50 is not below prompt_tokens; cap it"),
        (HEADER + "0,nan,\n1,50,\n", "t.csv: row 2: prompt_tokens nan is not a whole number of at least 1; drop"),
        (HEADER + "nan,50,\n1,50,\n", "t.csv: row 2: arrival_s nan is not a finite number; give seconds"),
        (HEADER + "0,-50,\n1,50,\n", "t.csv: row 2: prompt_tokens -50 is not a whole number of at least 1"),
        (HEADER + "0,50,\n1,50\n", "t.csv: row 3: has 2 cells, the header 3; give one cell per column"),
        (HEADER, "t.csv: has a header but no rows; give at least one request"),
        ("", "t.csv: header: the file is empty; name the columns"),
        (HEADER + "0,50000,\n1,60000,\n", "t.csv: no prompt has between 1 and 32768 tokens; choose wider limits"),
    ],
)
def test_trace(capsys: Captured, write: Write, rows: str, message: str) -> None:
    write("t.csv", rows)
    text = SCENARIO.partition("[workload]")[0] + '[workload]\ntrace = "t.csv"\n'
    answer = ask(capsys, "evaluate", write("s.toml", text))
    assert answer.status == 2
    assert answer.error.startswith(message)
