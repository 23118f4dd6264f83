"""Small scenario texts, and how a refusal is checked; shared by the tests of scenarios."""

from pathlib import Path

import pytest

from asapmodel.errors import InputError
from asapmodel.scenario import Scenario

ASAP = '[system]\nkind = "asap"\nD = 4\nT = 4\nE = 16\n'
SYNC = '[system]\nkind = "sync"\nD = 8\nT = 4\n'
TIMES = "give seconds as a number, or text with one of ns, us, ms, s, min, h"
TRACE_CSV = "arrival_s,prompt_tokens,cached_tokens,output_tokens\n0.0,100,,\n"


def refused(text: str, where: str = "s.toml", **kw: Path) -> str:
    with pytest.raises(InputError) as info:
        Scenario.parse(text, where=where, **kw)
    assert info.value.exit_status == 2
    assert "\n" not in str(info.value)
    return str(info.value)
