"""Quantities at the edge of the package: text with a unit in, plain SI numbers inside, text out.

A number is taken to be SI already; a string needs a unit (``"5 s"``, ``"220 us"``, ``"64 GiB"``, ``"400 GB/s"``,
``"376 TFLOPS"``). Decimal (GB) and binary (GiB) prefixes are different things. Bits are spelled ``Gbit/s``.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

__all__ = [
    "UnitError",
    "bytes_",
    "bytes_per_second",
    "flops_per_second",
    "per_second",
    "seconds",
    "si_bandwidth",
    "si_bytes",
    "si_flops",
    "si_number",
    "si_rate",
    "si_time",
]

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,6})?)\s*(.*?)\s*", re.DOTALL)


class UnitError(ValueError):
    """Text that is no quantity of the wanted kind; `problem` says why, `remedy` names the valid units."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem, self.remedy = problem, remedy
        super().__init__(f"{problem}; {remedy}")


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A kind of quantity: how it is called, its SI unit in words, its units, and which of them to advertise."""

    noun: str
    si: str
    units: Mapping[str, Decimal]
    shown: str


# Decimal, so that "220 us" is the same float as 220e-6.
_DECIMAL = {p: Decimal(f"1e{3 * i}") for i, p in enumerate(("", "k", "M", "G", "T", "P"))}
_BINARY = {f"{p}i": Decimal(2 ** (10 * i)) for i, p in enumerate("KMGTP", start=1)}
_TIMES = {f"{p}s": Decimal(f"1e-{3 * i}") for i, p in enumerate(("", "m", "u", "n", "p"))}
_TIMES |= {"min": Decimal(60), "h": Decimal(3600)}
_TIMES |= {"µs": _TIMES["us"], "μs": _TIMES["us"]}  # micro sign and Greek mu look alike and are both typed
_SIZES = {f"{p}B": f for p, f in (_DECIMAL | _BINARY).items()} | {"KB": Decimal(1000)}
_BANDWIDTHS = {f"{unit}/s": f for unit, f in _SIZES.items()} | {f"{p}bit/s": f / 8 for p, f in _DECIMAL.items()}
_COMPUTE = {f"{p}{op}": f for p, f in _DECIMAL.items() for op in ("FLOPS", "FLOP/s", "OPS", "OP/s")}
_RATES = dict.fromkeys(("/s", "1/s", "req/s", "requests/s", "rps"), Decimal(1)) | {"req/min": 1 / Decimal(60)}

_TIME = _Dimension("time", "seconds", _TIMES, "ns, us, ms, s, min, h")
_SIZE = _Dimension("size", "bytes", _SIZES, "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB")
_BANDWIDTH = _Dimension("bandwidth", "bytes/s", _BANDWIDTHS, "B/s, MB/s, GB/s, TB/s, MiB/s, GiB/s, Gbit/s")
_SPEED = _Dimension("computing speed", "flop/s", _COMPUTE, "GFLOPS, TFLOPS, TFLOP/s, PFLOPS, TOPS")
_RATE = _Dimension("rate", "requests/s", _RATES, "req/s, rps, 1/s, req/min")
_DIMENSIONS = (_TIME, _SIZE, _BANDWIDTH, _SPEED, _RATE)


def seconds(value: object) -> float:
    """Return a time in seconds.

    Parameters
    ----------
    value : int, float or str
        Seconds, or text such as ``"5 s"``, ``"220 us"``, ``"2 min"``.

    Raises
    ------
    UnitError
        For a wrong, unknown or missing unit, NaN, an infinity, or anything that is no number. It is a `ValueError`.

    Examples
    --------
    >>> seconds("1.5 ms")
    0.0015
    >>> seconds("5 GB")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    asapmodel.units.UnitError: '5 GB' is a size, not a time; give seconds as a number, or text with one of ...
    """
    return _parse(value, _TIME)


def bytes_(value: object) -> float:
    """Return a size in bytes; see `seconds`.

    Examples
    --------
    >>> bytes_("64 GB"), bytes_("64 GiB")
    (64000000000.0, 68719476736.0)
    """
    return _parse(value, _SIZE)


def bytes_per_second(value: object) -> float:
    """Return a bandwidth in bytes/s; see `seconds`.

    Examples
    --------
    >>> bytes_per_second("400 GB/s"), bytes_per_second("200 Gbit/s")
    (400000000000.0, 25000000000.0)
    """
    return _parse(value, _BANDWIDTH)


def flops_per_second(value: object) -> float:
    """Return a computing speed in flop/s (integer operations count alike); see `seconds`.

    Examples
    --------
    >>> flops_per_second("376 TFLOPS") == flops_per_second("376 TFLOP/s") == 376e12
    True
    """
    return _parse(value, _SPEED)


def per_second(value: object) -> float:
    """Return a rate in requests/s; see `seconds`.

    Examples
    --------
    >>> per_second(4), per_second("90 req/min")
    (4.0, 1.5)
    """
    return _parse(value, _RATE)


def _parse(value: object, dimension: _Dimension) -> float:
    remedy = f"give {dimension.si} as a number, or text with one of {dimension.shown}"
    number: Decimal | float
    if isinstance(value, str):
        number, unit = _split(value, dimension, remedy)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number, unit = value, Decimal(1)
    else:
        raise UnitError(f"is {value!r}, not a {dimension.noun}", remedy)
    try:
        result = float(number if isinstance(number, float) else number * unit)
    except ArithmeticError:  # beyond the range of a float, or of a Decimal
        result = math.inf
    if not math.isfinite(result):
        raise UnitError(f"is {str(value)[:40]}, not a finite {dimension.noun}", remedy)
    return result


def _split(text: str, dimension: _Dimension, remedy: str) -> tuple[Decimal, Decimal]:
    """Return the number in `text` and the factor of its unit."""
    shown = repr(text if len(text) <= 40 else f"{text[:37]}...")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnitError(f"{shown} is not a {dimension.noun}", remedy)
    number, unit = Decimal(match[1]), match[2]
    if unit in dimension.units:
        return number, dimension.units[unit]
    if not unit:
        raise UnitError(f"{shown} has no unit", remedy)
    for other in _DIMENSIONS:
        if unit in other.units:
            raise UnitError(f"{shown} is a {other.noun}, not a {dimension.noun}", remedy)
    raise UnitError(f"{shown} has the unknown unit {unit[:20]!r}", remedy)


def si_number(x: float, unit: str, digits: int = 3) -> str:
    """Format `x` with a decimal prefix from nano to peta.

    Examples
    --------
    >>> si_number(0.0123, "s"), si_number(0.99996, "s"), si_number(376e12, "FLOP/s")
    ('12.3 ms', '1 s', '376 TFLOP/s')
    """
    if not math.isfinite(x) or x == 0:
        return f"{x:g} {unit}"
    # Rounding first: 999.96 ms must become 1 s, not 1e+03 ms.
    rounded = float(f"{x:.{digits}g}")
    power = min(max(math.floor(math.log10(abs(rounded)) / 3), -4), 5)
    return f"{float(f'{rounded / 1000.0**power:.{digits}g}'):.15g} {'pnum kMGTP'[power + 4].strip()}{unit}"


def si_time(x: float, digits: int = 3) -> str:
    """Format seconds; above one second without prefix.

    Examples
    --------
    >>> si_time(0.0123), si_time(2.2e-4), si_time(1234.5)
    ('12.3 ms', '220 us', '1234 s')
    """
    if math.isfinite(x) and abs(x) >= 1000:
        return f"{x:.0f} s"
    return si_number(x, "s", digits)


def si_bytes(x: float, digits: int = 3) -> str:
    """Format bytes with a decimal prefix: ``si_bytes(64e9)`` is ``"64 GB"``."""
    return si_number(x, "B", digits)


def si_bandwidth(x: float, digits: int = 3) -> str:
    """Format bytes/s with a decimal prefix: ``si_bandwidth(196e9)`` is ``"196 GB/s"``."""
    return si_number(x, "B/s", digits)


def si_flops(x: float, digits: int = 3) -> str:
    """Format flop/s with a decimal prefix: ``si_flops(376e12)`` is ``"376 TFLOP/s"``."""
    return si_number(x, "FLOP/s", digits)


def si_rate(x: float, digits: int = 3) -> str:
    """Format requests/s without prefix: ``si_rate(6.8)`` is ``"6.8 req/s"``."""
    return f"{float(f'{x:.{digits}g}'):.15g} req/s"
