"""The paper study: every claim is dealt with, what is called calibrated is, and the shapes come out."""

import pytest

from asapmodel import catalog
from asapmodel.studies.paper import CALIBRATED, claims, judge
from asapmodel.studies.paper_model import ROWS, Paper

CLAIMS = {claim.id: claim for claim in claims()}
QUICK = [
    name
    for name, claim in CLAIMS.items()
    if claim.role in ("shape", "claim", "given")
    and name not in ("comm-share", "eaas-512", "ttft-8-default", "ttft-1-overlap")
]


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper(replications=2)


def test_every_claim_has_a_row_or_is_of_another_system() -> None:
    assert set(CLAIMS) - set(ROWS) == {"eaas-512"}
    assert set(ROWS) <= set(CLAIMS)


def test_fitted_constants_name_the_rows_they_were_fitted_to() -> None:
    text = catalog.entry_path("profiles", "cloudmatrix384-paper").read_text(encoding="utf-8")
    fitted = [line for line in text.splitlines() if 'kind = "fitted"' in line]
    assert len(fitted) == 7
    named = set()
    for line in fitted:
        target = line.split('fitted_to = "')[1].split('"')[0].partition(" (")[0]
        rows = {row.strip() for row in target.split(",")}
        assert rows <= set(CLAIMS), line
        assert rows <= set(CALIBRATED), line
        named |= rows
    assert named | {"ttft-1-asap"} == set(CALIBRATED)  # that one is the window of the scenario


@pytest.mark.parametrize("name", QUICK)
def test_characterisation_comes_out(paper: Paper, name: str) -> None:
    """Shapes and claims of the cost models hold, within 10 % or as inequality; the order of growth within 25 %."""
    verdict = judge(CLAIMS[name], paper)
    assert verdict.verdict in ({"holds", "off"} if name == "attn-quadratic" else {"holds"}), verdict


def test_misses_are_called_misses(paper: Paper) -> None:
    assert judge(CLAIMS["comm-share"], paper).verdict == "miss"
    assert judge(CLAIMS["eaas-512"], paper).standing == "not modelled"


def test_super_kernel_saves_the_host_dispatch(paper: Paper) -> None:
    """61 times 220 us for a lone prompt; a little more where it delays others."""
    assert judge(CLAIMS["host-dispatch-ttft"], paper).verdict == "holds"
