import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel import units


@pytest.mark.parametrize(
    ("parse", "text", "si"),
    [
        (units.seconds, 5, 5.0),
        (units.seconds, "5 s", 5.0),
        (units.seconds, "5s", 5.0),
        (units.seconds, "220 us", 220e-6),
        (units.seconds, "220 µs", 220e-6),
        (units.seconds, "220 μs", 220e-6),
        (units.seconds, "1.5 ms", 1.5e-3),
        (units.seconds, "3e2 ns", 3e-7),
        (units.seconds, "14 ps", 14e-12),
        (units.seconds, " 2 min ", 120.0),
        (units.seconds, "1 h", 3600.0),
        (units.bytes_, "64 GB", 64e9),
        (units.bytes_, "64 GiB", 64 * 2**30),
        (units.bytes_, "7.5 KiB", 7680.0),
        (units.bytes_, "14336 B", 14336.0),
        (units.bytes_per_second, "400 GB/s", 400e9),
        (units.bytes_per_second, "1 GiB/s", 2**30),
        (units.bytes_per_second, "200 Gbit/s", 25e9),
        (units.flops_per_second, "376 TFLOPS", 376e12),
        (units.flops_per_second, "376 TFLOP/s", 376e12),
        (units.flops_per_second, "752 TOPS", 752e12),
        (units.per_second, 4, 4.0),
        (units.per_second, "4 req/s", 4.0),
        (units.per_second, "90 req/min", 1.5),
    ],
)
def test_parses(parse: Callable[[object], float], text: object, si: float) -> None:
    assert parse(text) == si


@pytest.mark.parametrize(
    ("parse", "text", "problem"),
    [
        (units.seconds, "5 GB", "'5 GB' is a size, not a time"),
        (units.seconds, "5 GB/s", "is a bandwidth, not a time"),
        (units.bytes_, "5 ms", "is a time, not a size"),
        (units.bytes_per_second, "64 GB", "is a size, not a bandwidth"),
        (units.flops_per_second, "4 req/s", "is a rate, not a computing speed"),
        (units.seconds, "5", "'5' has no unit"),
        (units.seconds, "5 parsec", "'5 parsec' has the unknown unit 'parsec'"),
        (units.seconds, "5 MS", "has the unknown unit 'MS'"),
        (units.bytes_per_second, "400 Gb/s", "has the unknown unit 'Gb/s'"),
        (units.seconds, "soon", "'soon' is not a time"),
        (units.seconds, "", "'' is not a time"),
        (units.seconds, "nan s", "'nan s' is not a time"),
        (units.seconds, math.nan, "is nan, not a finite time"),
        (units.seconds, math.inf, "is inf, not a finite time"),
        (units.seconds, "1e999 s", "not a finite time"),
        (units.bytes_, "1e999999 PB", "not a finite size"),
        (units.seconds, "1e" + 60 * "9" + " s", "has the unknown unit"),
        (units.seconds, 10**400, "not a finite time"),
        (units.seconds, True, "is True, not a time"),
        (units.seconds, [5], "not a time"),
        (units.seconds, None, "not a time"),
    ],
)
def test_refuses(parse: Callable[[object], float], text: object, problem: str) -> None:
    with pytest.raises(ValueError, match=r"give .* as a number, or text with one of") as info:
        parse(text)
    assert problem in str(info.value)
    assert "\n" not in str(info.value)
    assert isinstance(info.value, units.UnitError)


def test_the_remedy_names_valid_units() -> None:
    with pytest.raises(units.UnitError) as info:
        units.seconds("5 GB")
    assert info.value.remedy == "give seconds as a number, or text with one of ns, us, ms, s, min, h"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.si_time(0.0123), "12.3 ms"),
        (units.si_time(2.2e-4), "220 us"),
        (units.si_time(0.99996), "1 s"),
        (units.si_time(0.00099951), "1 ms"),
        (units.si_time(300), "300 s"),
        (units.si_time(1234.5), "1234 s"),
        (units.si_time(0), "0 s"),
        (units.si_time(-0.0123), "-12.3 ms"),
        (units.si_time(math.inf), "inf s"),
        (units.si_time(3e-13), "0.3 ps"),
        (units.si_bytes(64e9), "64 GB"),
        (units.si_bytes(512), "512 B"),
        (units.si_bandwidth(196e9), "196 GB/s"),
        (units.si_bandwidth(1.6e12), "1.6 TB/s"),
        (units.si_flops(376e12), "376 TFLOP/s"),
        (units.si_rate(6.8123), "6.81 req/s"),
        (units.si_number(999.96e-3, "s", digits=5), "999.96 ms"),
    ],
)
def test_formats(text: str, expected: str) -> None:
    assert text == expected


@given(st.floats(1e-11, 999.0))
def test_what_is_formatted_parses_to_the_printed_digits(x: float) -> None:
    assert units.seconds(units.si_time(x)) == pytest.approx(x, rel=5.1e-3)
    assert "e" not in units.si_time(x)
