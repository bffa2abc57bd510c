"""Arithmetic over one recorded call, as formulas of a table spell it: `2 * d[0][0] * prod(d[1])`.

A grammar of numbers, + - * / // % **, comparisons (1 or 0), a few names and functions, and nothing
else: a table comes from a user's file and is never run as Python. Lists appear where `d[i]` or
`c[i]` is one; a part of a list is taken as in Python (`d[0][:-1]`). The names are documented in
docs/formulas.md#expressions.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profharness.analysis.operators.calls import Call, Plain, Tensor, TensorList

Value = float | Sequence[float]
Term = Callable[["Names"], Value]

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(//|\*\*|[<>=!]=|\S))")
_DEEPEST = 60
_LARGEST = 1e60


class ExpressionError(ValueError):
    """The text is no expression; the message says where."""


class Unknown(Exception):  # noqa: N818  it is no error of the table
    """The call does not hold what the expression asks for."""


@dataclass(frozen=True)
class Names:
    """What an expression may ask: inputs of the call, and the numbers that groups of the entry's
    regular expression found in its name.
    """

    call: Call
    groups: tuple[float, ...] = ()

    def extents(self, position: int) -> Sequence[float]:
        """`d[i]`: the extents of a tensor."""
        return self._tensor(position).dims

    def concrete(self, position: int) -> Value:
        """`c[i]`: the number, truth value or list of numbers at a position."""
        found = self.call.at(position)
        value = found.value if isinstance(found, Plain) else None
        if value is None:
            raise Unknown(f"c[{position}] is not recorded")
        return value

    def item_bytes(self, position: int) -> float:
        """`e[i]`: bytes of an element."""
        kind = self._tensor(position).kind
        if kind is None:
            raise Unknown(f"the type of input {position} is not known")
        return kind.item_bytes

    def group(self, position: int) -> float:
        """`g[i]`: the number in a group of the regular expression, from 0."""
        if not 0 <= position < len(self.groups):
            raise Unknown(f"the name holds no number {position}")
        return self.groups[position]

    def size(self, position: int) -> float:
        """`size(i)`: bytes that it takes to read a tensor once."""
        return self._tensor(position).distinct * self.item_bytes(position)

    def products(self, position: int) -> float:
        """`total(i)`: the elements of all tensors in a list."""
        found = self.call.at(position)
        if not isinstance(found, TensorList) or not found.members:
            raise Unknown(f"input {position} is no recorded list of tensors")
        return sum(math.prod(member) for member in found.members)

    def _tensor(self, position: int) -> Tensor:
        found = self.call.at(position)
        if not isinstance(found, Tensor):
            raise Unknown(f"input {position} is no tensor")
        return found


@dataclass(frozen=True)
class Expression:
    """One compiled text."""

    text: str
    term: Term

    def value(self, names: Names) -> float:
        """Its number for a call, at least 0. Raises Unknown where the call does not hold it."""
        try:
            value = self.term(names)
        except (ArithmeticError, IndexError, ValueError) as error:
            raise Unknown(f"{self.text}: {error}") from error
        number = _number(value)
        if not 0 <= number <= _LARGEST:
            raise Unknown(f"{self.text} is {number}")
        return number


def compiled(text: str) -> Expression:
    """Raises ExpressionError."""
    parser = _Parser(text)
    term = parser.comparison()
    if parser.ahead:
        raise parser.error("an operator or the end")
    return Expression(text, term)


def _number(value: Value) -> float:
    if isinstance(value, bool | int | float):
        return value
    raise Unknown("a list where a number is needed")


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent)  # of floats: no product of whole numbers without end


_SUMS = {"+": operator.add, "-": operator.sub}
_PRODUCTS = {"*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod}
_ORDER = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _flat(values: Sequence[Value]) -> list[float]:
    flat: list[float] = []
    for value in values:
        flat.extend([value] if isinstance(value, bool | int | float) else value)
    return flat


_FUNCTIONS: dict[str, Callable[[Sequence[Value]], float]] = {
    "prod": lambda values: math.prod(_flat(values)),
    "sum": lambda values: sum(_flat(values)),
    "min": lambda values: min(_flat(values)),
    "max": lambda values: max(_flat(values)),
    "len": lambda values: len(_flat(values)),
    "ceil": lambda values: math.ceil(_only(values)),
    "floor": lambda values: math.floor(_only(values)),
}
_OF_INPUTS: dict[str, Callable[[Names, int], Value]] = {
    "d": Names.extents,
    "c": Names.concrete,
    "e": Names.item_bytes,
    "g": Names.group,
}
_OF_POSITIONS: dict[str, Callable[[Names, int], float]] = {
    "size": Names.size,
    "total": Names.products,
}


def _only(values: Sequence[Value]) -> float:
    if len(values) != 1:
        raise Unknown("one number is needed")
    return _number(values[0])


class _Parser:
    """Recursive descent; `ahead` is the next token, empty at the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0
        self.depth = 0
        self.ahead = ""
        self.number: int | float | None = None
        self.step()

    def step(self) -> str:
        """The token that was next; moves to the one after it."""
        last, self.start = self.ahead, self.at
        found = _TOKEN.match(self.text, self.at)
        self.number = None
        if found is None:
            self.ahead = ""
            return last
        digits, word, sign = found.groups()
        if digits:
            self.number = float(digits) if set(digits) & set(".eE") else int(digits)
        self.ahead = digits or word or sign
        self.at = found.end()
        return last

    def error(self, needed: str) -> ExpressionError:
        """What was met where something else is needed."""
        met = f"{self.ahead!r}" if self.ahead else "the end"
        return ExpressionError(
            f"{self.text!r}, character {self.start + 1}: {met} instead of {needed}"
        )

    def take(self, token: str) -> None:
        """Step over this token, which must come next."""
        if self.ahead != token:
            raise self.error(repr(token))
        self.step()

    def comparison(self) -> Term:
        """Two sums compared, or one."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError(f"{self.text!r} is nested too deeply")
        left = self.chain(_SUMS, self.product)
        if self.ahead in _ORDER:
            left = _both(_ORDER[self.step()], left, self.chain(_SUMS, self.product))
        self.depth -= 1
        return left

    def chain(self, signs: dict[str, Callable[..., float]], part: Callable[[], Term]) -> Term:
        """Parts joined by these signs, from the left."""
        left = part()
        while self.ahead in signs:
            left = _both(signs[self.step()], left, part())
        return left

    def product(self) -> Term:
        """Factors multiplied or divided."""
        return self.chain(_PRODUCTS, self.factor)

    def factor(self) -> Term:
        """A number with its sign and its power."""
        if self.ahead == "-":
            self.step()
            negative = self.factor()
            return lambda names: -_number(negative(names))
        base = self.atom()
        if self.ahead == "**":
            self.step()
            return _both(_power, base, self.factor())
        return base

    def atom(self) -> Term:
        """A number, a name with its index, a function, or brackets."""
        if self.number is not None:
            constant = self.number
            self.step()
            return lambda _: constant
        if self.ahead == "(":
            self.step()
            inner = self.comparison()
            self.take(")")
            return inner
        word = self.ahead
        if word in _OF_INPUTS:
            self.step()
            return self.indexed(word)
        if word in _FUNCTIONS or word in _OF_POSITIONS:
            self.step()
            return self.called(word)
        names = ", ".join((*_OF_INPUTS, *_FUNCTIONS, *_OF_POSITIONS))
        raise self.error(f"a number, a bracket or one of {names}")

    def indexed(self, word: str) -> Term:
        """`d[i]`, then perhaps an element or a part of it."""
        self.take("[")
        position = self.whole()
        self.take("]")
        ask = _OF_INPUTS[word]
        if self.ahead != "[":
            return lambda names: ask(names, position)
        self.step()
        first = None if self.ahead == ":" else self.whole()
        if self.ahead != ":":
            assert first is not None
            element = first
            self.take("]")
            return lambda names: _listed(ask(names, position))[element]
        self.step()
        last = None if self.ahead == "]" else self.whole()
        self.take("]")
        part = slice(first, last)
        return lambda names: _listed(ask(names, position))[part]

    def called(self, word: str) -> Term:
        """A function of numbers and lists, or of the position of an input."""
        self.take("(")
        if word in _OF_POSITIONS:
            position, ask = self.whole(), _OF_POSITIONS[word]
            self.take(")")
            return lambda names: ask(names, position)
        terms = [self.comparison()]
        while self.ahead == ",":
            self.step()
            terms.append(self.comparison())
        self.take(")")
        function = _FUNCTIONS[word]
        return lambda names: function([term(names) for term in terms])

    def whole(self) -> int:
        """A whole number with its sign."""
        sign = -1 if self.ahead == "-" else 1
        if sign < 0:
            self.step()
        if not isinstance(self.number, int):
            raise self.error("a whole number")
        value = sign * self.number
        self.step()
        return value


def _listed(value: Value) -> Sequence[float]:
    if isinstance(value, bool | int | float):
        raise Unknown("a number where a list is needed")
    return value


def _both(join: Callable[..., float], left: Term, right: Term) -> Term:
    return lambda names: join(_number(left(names)), _number(right(names)))
