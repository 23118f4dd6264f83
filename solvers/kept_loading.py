"""Kept machine code as functions: loaded by llvmlite into the process, called by ctypes without the GIL."""

import ctypes
import pickle
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import binding

from asapmodel.solvers.kept_arguments import Kind, Unkept, flat, parts_of, slot_of
from asapmodel.solvers.kept_arrays import readable_arrays, types_to_see
from asapmodel.solvers.kept_code import FAILED, FRONT, REFUSED, Code

__all__ = ["Loaded"]

_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Loaded:
    """A loop for one sequence of argument kinds.

    Parameters
    ----------
    code : Code
        Of the loop.
    kinds : sequence of Kind
        Of its arguments.

    Raises
    ------
    Unkept
        If this process lacks a symbol that the code needs, or its arrays are laid out otherwise.
    """

    __slots__ = ("_code", "_engine", "_front", "_function", "_parts", "_results", "_size", "_slots")

    def __init__(self, code: Code, kinds: Sequence[Kind]) -> None:
        _start()
        missing = [name for name in code.symbols if not binding.address_of_symbol(name)]
        if missing or not readable_arrays():
            raise Unkept(f"{code.entry} in a process without {', '.join(missing) or 'the arrays it expects'}")
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)  # it owns the memory
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code.binary))
        self._engine.finalize_object()
        self._function = _CALL(self._engine.get_function_address(code.entry))
        self._code, self._parts = code, list(parts_of(iter(kinds)))
        seen = types_to_see()
        self._front = struct.Struct(f"{8 * (FRONT + len(code.results))}x{len(seen)}q").pack(*seen)
        self._slots = struct.Struct("".join(map(slot_of, kinds)))
        self._size = len(self._front) + self._slots.size
        self._results = struct.Struct("".join(map(slot_of, code.results)))

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Call the loop.

        Raises
        ------
        Unkept
            If it was compiled for other kinds of arguments; it has not run then.
        """
        if len(arguments) != len(self._parts):
            raise Unkept("another number of arguments")
        slots = flat(arguments, self._parts)
        block = ctypes.create_string_buffer(self._front, self._size)
        self._slots.pack_into(block, len(self._front), *slots)
        status = self._function(ctypes.addressof(block))
        if status == REFUSED:
            raise Unkept("other arrays")
        if status == FAILED:
            raise _error(block)
        if not self._code.results:
            return None
        kinds, numbers = self._code.results, self._results.unpack_from(block, 8 * FRONT)
        if "bool" in kinds:
            numbers = tuple(bool(n) if kind == "bool" else n for n, kind in zip(numbers, kinds, strict=True))
        return numbers if self._code.is_tuple else numbers[0]


@cache
def _start() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _error(block: Any) -> Exception:
    """What the loop raised: numba keeps class and arguments, pickled, in the code."""
    address, size = struct.unpack_from("qq", block)
    try:
        raised, arguments, *_ = pickle.loads(ctypes.string_at(address, size))
        error: Exception = raised(*(arguments or ()))
    except Exception as unknown:
        return RuntimeError(f"a compiled loop failed ({unknown})")
    return error
