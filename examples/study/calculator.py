"""Computes terms of numbers, + - * / and parentheses."""

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from systole_sdk import listener, named, payload, run

STUDY = "urn:example:study:v1"
OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}


@payload(STUDY)
@dataclass
class Calculate:
    term: str = named("$text")


@payload(STUDY)
@dataclass
class Result:
    term: str = named("@term")
    value: str = named("$text")


def value(node: ast.expr) -> Decimal:
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](value(left), value(right))
        case ast.UnaryOp(ast.USub(), operand):
            return -value(operand)
        case ast.Constant(int() | float() as number):
            return Decimal(str(number))
    raise ValueError("write numbers, + - * / and parentheses")


@listener
def calculate(request: Calculate) -> Result:
    found = value(ast.parse(request.term.strip(), mode="eval").body)
    return Result(request.term, format(found, "f"))


run()
