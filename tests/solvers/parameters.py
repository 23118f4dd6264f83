"""Parameters of the table's rows, written as ``S=[1/.8,1/.6];m=[2,inf];N=3``, as numbers."""

import ast
import math
import re

Value = float | str | list["Value"]
NAMES: dict[str, Value] = {"inf": math.inf}


def read(text: str) -> Value:
    """A number, a quotient or product of numbers, a word, or a (nested) list; spaces may stand for commas."""
    commas = re.sub(r"(?<=[\d.\]])\s+(?=[\d.\[-])", ",", text.strip())
    return _value(ast.parse(commas, mode="eval").body)


def _value(node: ast.expr) -> Value:
    match node:
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=word):
            return NAMES.get(word, word)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -number_of(_value(inner))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return number_of(_value(left)) / number_of(_value(right))
    raise ValueError(f"not a value: {ast.dump(node)}")


def number_of(value: Value) -> float:
    """The value, if it is one number."""
    assert isinstance(value, float)
    return value
