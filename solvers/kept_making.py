"""Object code of a loop that numba has compiled, with an entry that takes a block of slots (`kept_entry`).

Everything the entry does not reach is dropped, among it what makes the loop callable from Python, so that what is left
needs only the mathematical functions of the process. Loads numba: import it where it is needed.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from llvmlite import binding
from numba import types
from numba.core.compiler_lock import global_compiler_lock

from asapmodel.solvers.kept_arguments import Group, Kind, Unkept, parts_of
from asapmodel.solvers.kept_code import Code
from asapmodel.solvers.kept_entry import entry_of

__all__ = ["make_code"]

_NUMBERS = {"int": types.int64, "float": types.float64, "bool": types.boolean}


def _numba_type(part: str | Group) -> Any:
    if isinstance(part, Group):
        return types.BaseTuple.from_types(tuple(_numba_type(one) for one in part.parts), part.kind)
    if part in _NUMBERS:
        return _NUMBERS[part]
    element, dimensions, access = part.split()
    return types.Array(_NUMBERS[element], int(dimensions), "C", readonly=access == "r", aligned=True)


@global_compiler_lock  # type: ignore[untyped-decorator]
def make_code(dispatcher: Any, name: str, kinds: Sequence[Kind]) -> Code:
    """Compile a loop for arguments of these kinds.

    Raises
    ------
    Unkept
        If the code would need numba's run-time library, as that of loops that make arrays does, or holds addresses of
        this process.
    """
    arguments = tuple(map(_numba_type, parts_of(iter(kinds))))
    dispatcher.compile(arguments)
    compiled = dispatcher.overloads[arguments]
    if compiled.library.has_dynamic_globals:
        raise Unkept(f"{name}, whose code holds addresses")
    returned = compiled.signature.return_type
    is_tuple = isinstance(returned, types.BaseAnonymousTuple)
    parts = returned.types if is_tuple else (returned,)
    results = [_result(name, part) for part in parts if part is not types.none]
    entry = f"entry_{name}"
    module = compiled.library._get_module_for_linking().clone()
    module.link_in(binding.parse_assembly(str(entry_of(compiled, entry, arguments, results))))
    symbols = _strip(module, entry)
    machine = compiled.target_context.codegen()._tm
    return Code(entry, symbols, results, is_tuple, machine.emit_object(module))


def _result(name: str, numba: Any) -> str:
    for kind, known in _NUMBERS.items():
        if numba == known:
            return kind
    raise Unkept(f"{name}, which returns {numba}")


def _strip(module: Any, entry: str) -> list[str]:
    """Drop what the entry does not reach; return the symbols that are left for the process to provide."""
    for one in itertools.chain(module.functions, module.global_variables):
        if not one.is_declaration and one.name != entry:
            one.linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    machine = binding.Target.from_default_triple().create_target_machine()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    declared = [one.name for one in itertools.chain(module.functions, module.global_variables) if one.is_declaration]
    symbols = [name for name in declared if not name.startswith("llvm.")]
    foreign = [name for name in symbols if name.startswith(("NRT_", "numba_", "Py", "_Py"))]
    if foreign:
        raise Unkept(f"{entry}, whose code needs {', '.join(foreign)}")
    return symbols
