"""Entry of a loop in the intermediate language of LLVM: from a block of slots to numba's arguments, and results back.

Slots of the block: two for what describes an error, one for each result, addresses of the classes by which arrays are
known (`kept_arrays`), arguments. The entry returns `DONE`, `FAILED`, or `REFUSED` where an array is not the one the
loop was compiled for; the loop is not called then.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.np.arrayobj import populate_array

from asapmodel.solvers import kept_arrays as layout
from asapmodel.solvers.kept_arguments import ELEMENTS
from asapmodel.solvers.kept_code import DONE, FAILED, FRONT, REFUSED

__all__ = ["entry_of"]

_WORD, _HALF, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_CLASSES = {types.int64: "int", types.float64: "float", types.boolean: "bool"}


def entry_of(compiled: Any, name: str, arguments: Sequence[Any], results: Sequence[str]) -> ir.Module:
    """Module with the entry `name` of a compiled loop.

    Parameters
    ----------
    compiled
        What numba made of the loop.
    name : str
        Of the entry.
    arguments
        Types of numba.
    results : sequence of str
        Kinds of the numbers that the loop returns, one or a tuple of them.
    """
    module = compiled.library._codegen._create_empty_module(name)
    function = ir.Function(module, ir.FunctionType(_HALF, [_WORD.as_pointer()]), name)
    return _Entry(compiled, function, len(results)).build(arguments, results)


def _is_tuple(numba: Any) -> bool:
    return isinstance(numba, types.BaseTuple)


class _Entry:
    """The function while it is built."""

    def __init__(self, compiled: Any, function: ir.Function, results: int) -> None:
        self.compiled, self.context = compiled, compiled.target_context
        self.function, self.builder = function, ir.IRBuilder(function.append_basic_block())
        self.number = itertools.count(FRONT + results)  # of the slot that is read next

    def build(self, arguments: Sequence[Any], results: Sequence[str]) -> ir.Module:
        builder, loop = self.builder, self.compiled.fndesc
        classes = dict(zip(["array", *ELEMENTS], [self.next_slot() for _ in range(1 + len(ELEMENTS))], strict=True))
        words = [self.words(one) for one in arguments]
        arrays = [(word, one) for part in words for word, one in part if isinstance(one, types.Array)]
        self.demand([self.is_array(word, classes["array"]) for word, _ in arrays])
        self.demand([test for word, one in arrays for test in self.tests(word, one, classes)])
        values = [self.value(one, iter(part)) for one, part in zip(arguments, words, strict=True)]
        callee = self.context.declare_function(builder.module, loop)
        status, value = self.context.call_conv.call_function(builder, callee, loop.restype, loop.argtypes, values)
        with builder.if_then(status.is_error, likely=False):
            told = builder.load(status.excinfoptr)
            self.store(builder.ptrtoint(builder.extract_value(told, 0), _WORD), 0)
            self.store(builder.sext(builder.extract_value(told, 1), _WORD), 1)
            builder.ret(_HALF(FAILED))
        for i, kind in enumerate(results):
            part = builder.extract_value(value, i) if _is_tuple(loop.restype) else value
            self.store(builder.zext(part, _WORD) if kind == "bool" else builder.bitcast(part, _WORD), FRONT + i)
        builder.ret(_HALF(DONE))
        return builder.module

    def next_slot(self) -> ir.Value:
        return self.builder.load(self.builder.gep(self.function.args[0], [_WORD(next(self.number))]))

    def store(self, word: ir.Value, slot: int) -> None:
        self.builder.store(word, self.builder.gep(self.function.args[0], [_WORD(slot)]))

    def words(self, numba: Any) -> list[tuple[ir.Value, Any]]:
        """Slots of an argument, and what is in them."""
        if _is_tuple(numba):
            return [pair for part in numba.types for pair in self.words(part)]
        return [(self.next_slot(), numba)]

    def demand(self, tests: Sequence[ir.Value]) -> None:
        """Return where not all tests hold."""
        if tests:
            passed = tests[0]
            for one in tests[1:]:
                passed = self.builder.and_(passed, one)
            with self.builder.if_then(self.builder.not_(passed), likely=False):
                self.builder.ret(_HALF(REFUSED))

    def read(self, address: ir.Value, offset: int, size: ir.Type = _WORD) -> ir.Value:
        return self.builder.load(
            self.builder.inttoptr(self.builder.add(address, _WORD(offset)), size.as_pointer()), typ=size
        )

    def is_array(self, word: ir.Value, array: ir.Value) -> ir.Value:
        return self.builder.icmp_unsigned("==", self.read(word, layout.TYPE), array)

    def tests(self, word: ir.Value, numba: Any, classes: dict[str, ir.Value]) -> list[ir.Value]:
        """Whether an array has the dimensions, elements and access that the loop was compiled for."""
        same, other = partial(self.builder.icmp_unsigned, "=="), partial(self.builder.icmp_unsigned, "!=")
        wanted = layout.NEEDED | (layout.WRITABLE if numba.mutable else 0)
        flags = self.builder.and_(self.read(word, layout.FLAGS, _HALF), _HALF(layout.NEEDED | layout.WRITABLE))
        described = self.read(word, layout.ELEMENT)
        return [
            same(self.read(word, layout.DIMENSIONS, _HALF), _HALF(numba.ndim)),
            same(flags, _HALF(wanted)),
            same(self.read(described, layout.SCALAR), classes[_CLASSES[numba.dtype]]),
            other(self.read(described, layout.BYTE_ORDER, _BYTE), _BYTE(ord(">"))),
        ]

    def value(self, numba: Any, words: Any) -> ir.Value:
        """An argument as numba's code holds it."""
        if _is_tuple(numba):
            return self.context.make_tuple(self.builder, numba, [self.value(one, words) for one in numba.types])
        word, _ = next(words)
        if numba == types.float64:
            return self.builder.bitcast(word, ir.DoubleType())
        if numba == types.boolean:
            return self.builder.icmp_unsigned("!=", word, _WORD(0))
        return word if numba == types.int64 else self.array(word, numba)

    def array(self, word: ir.Value, numba: Any) -> ir.Value:
        builder, context = self.builder, self.context
        shapes = self.read(word, layout.SHAPE)
        shape = [self.read(shapes, 8 * i) for i in range(numba.ndim)]
        element = context.get_data_type(numba.dtype)
        size = _WORD(context.get_abi_sizeof(element))
        strides = [size]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        data = builder.inttoptr(self.read(word, layout.DATA), element.as_pointer())
        array = context.make_array(numba)(context, builder)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()
