"""Real processes, interrupted and killed: what is done is kept, and nothing stays behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from asapmodel.verbs.explore import explore
from tests.exploration.spaces import LONG, write

pytestmark = pytest.mark.slow


def test_killed_in_the_middle_a_second_run_goes_on(tmp_path: Path) -> None:
    write(tmp_path, LONG)
    command = [sys.executable, "-m", "asapmodel", "explore", "space.toml", "-o", "out.parquet", "--workers", "1"]
    first = tmp_path / "out.parquet.parts" / "quick-0000000.parquet"
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as running:
        while not first.exists():
            assert running.poll() is None, "ended before its first part"
            time.sleep(0.02)
        os.kill(running.pid, signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    assert not (tmp_path / "out.parquet").exists()
    mark = pd.read_parquet(first)
    mark.loc[0, "batch_tokens_mean"] = -1.0  # if it were computed again this would be lost
    mark.to_parquet(first, index=False)
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert table.loc[0, "batch_tokens_mean"] == -1.0
    whole = explore(tmp_path / "space.toml").table
    pd.testing.assert_frame_equal(table.iloc[1:], whole.iloc[1:])


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_or_killed_with_its_workers(sent: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group, ends it quietly and keeps what is done; no worker outlives a killed parent."""
    write(tmp_path, LONG.replace("step = 128", "step = 32"))
    command = [sys.executable, "-m", "asapmodel", "explore", "space.toml", "-o", "out.parquet", "--workers", "2"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    parts = tmp_path / "out.parquet.parts"
    while not list(parts.glob("rough-*.parquet")):
        assert running.poll() is None, "ended before its first part"
        time.sleep(0.05)
    if sent == signal.SIGINT:
        os.killpg(running.pid, sent)
    else:
        os.kill(running.pid, sent)
    _, errors = running.communicate(timeout=30)
    if sent == signal.SIGINT:
        assert (running.returncode, errors) == (130, "asapmodel: interrupted\n")
    assert list(parts.glob("rough-*.parquet"))
    assert not (tmp_path / "out.parquet").exists()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a worker is left")
