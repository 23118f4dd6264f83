"""The queueing engine replaced by one whose answers are known, for tests of what the verbs make of them."""

import pytest

from asapmodel.engines import queueing
from tests.verbs import stand_in


@pytest.fixture
def single_server(monkeypatch: pytest.MonkeyPatch) -> float:
    """Its stability limit, requests/s."""
    monkeypatch.setattr(queueing, "analyse", stand_in.analyse)
    return stand_in.SERVICE
