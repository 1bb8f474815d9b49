"""Makes mutants of a right answer: one small change each.

The operators of the field are mutmut's (numbers, strings, names, assignments,
arguments, comparison, arithmetic and boolean operators, `break` and
`continue`, ternaries), on LibCST. Those of PyTorch are ours: contexts,
decorators and calls taken away, in place against out of place, a dtype, a
reduction or a function exchanged for its neighbour; and, from the mutation
testers' common set, statements deleted, conditions decided, loops cut short,
arguments swapped.

Nothing is changed in docstrings, annotations, imports and in what an exception
says: no exercise asks for these.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import (
    mutation_operators,
    operator_string,
)

Operator = Callable[[Any], Iterable[cst.CSTNode]]


@dataclass(frozen=True)
class Mutant:
    """A right answer with one change.

    Attributes:
        operator: the name of what changed it.
        line: of the change, from 1.
        source: the whole code.
    """

    operator: str
    line: int
    source: str


def mutants_of(source: str) -> list[Mutant]:
    """All mutants of a piece of code that Python can read, each syntax tree
    once, in the order of their places.

    Args:
        source: an exercise cell.
    """
    wrapper = MetadataWrapper(cst.parse_module(source))
    places = wrapper.resolve(PositionProvider)
    module = wrapper.module
    found: dict[str, Mutant] = {}
    known = {ast.dump(ast.parse(source))}
    for node in _mutable(module):
        for kind, name, operator in OPERATORS:
            if not isinstance(node, kind):
                continue
            for changed in operator(node):
                code = cst.ensure_type(
                    module.deep_replace(node, changed), cst.Module
                ).code
                try:
                    tree = ast.dump(ast.parse(code))
                except SyntaxError:
                    continue
                if tree not in known:
                    known.add(tree)
                    line = places[node].start.line
                    found[tree] = Mutant(name, line, code)
    return sorted(found.values(), key=lambda one: one.line)


def _mutable(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and those below it, less what no exercise asks for."""
    if isinstance(
        node, cst.Annotation | cst.Import | cst.ImportFrom | cst.Assert
    ):
        return
    yield node
    if isinstance(node, cst.Raise):
        return
    for child in node.children:
        if not m.matches(child, _TEXT):
            yield from _mutable(child)


_TEXT = m.SimpleStatementLine(
    [m.Expr(m.SimpleString() | m.ConcatenatedString())]
)
"""A docstring, or a string that nobody uses."""


def _deleted(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    for statement in node.body:
        if isinstance(
            statement, cst.Pass | cst.Import | cst.ImportFrom | cst.Break
        ):
            return
    yield node.with_changes(body=[cst.Pass()])


def _decided(node: cst.If) -> Iterator[cst.CSTNode]:
    for value in ("True", "False"):
        yield node.with_changes(
            test=cst.Name(value),
            whitespace_before_test=cst.SimpleWhitespace(" "),
        )


def _cut_short(node: cst.For) -> Iterator[cst.CSTNode]:
    if isinstance(node.body, cst.IndentedBlock) and not m.matches(
        node.body.body[-1],
        m.SimpleStatementLine([m.Raise() | m.Return() | m.Break()]),
    ):
        end = cst.SimpleStatementLine([cst.Break()])
        body = node.body.with_changes(body=[*node.body.body, end])
        yield node.with_changes(body=body)
    yield node.with_changes(iter=cst.Tuple([]))


def _returns_early(node: cst.If | cst.For | cst.With) -> Iterator[cst.CSTNode]:
    """As if the author had ended the function with the block."""
    leaves = m.SimpleStatementLine(
        [m.Raise() | m.Return() | m.Continue() | m.Break()]
    )
    if isinstance(node.body, cst.IndentedBlock) and not m.matches(
        node.body.body[-1], leaves
    ):
        end = cst.SimpleStatementLine([cst.Return()])
        body = node.body.with_changes(body=[*node.body.body, end])
        yield node.with_changes(body=body)


def _context_removed(node: cst.With) -> Iterator[cst.CSTNode]:
    if not any(item.asname for item in node.items):
        yield cst.If(test=cst.Name("True"), body=node.body)


def _finally_removed(node: cst.Try) -> Iterator[cst.CSTNode]:
    if node.finalbody is not None and node.handlers:
        yield node.with_changes(finalbody=None)
    if node.finalbody is not None:
        # what is done after an error is done after success alone
        after = [*node.body.body, *node.finalbody.body.body]
        if not node.handlers:
            yield cst.If(
                test=cst.Name("True"), body=cst.IndentedBlock(body=after)
            )


def _decorator_removed(
    node: cst.FunctionDef | cst.ClassDef,
) -> Iterator[cst.CSTNode]:
    for one in node.decorators:
        rest = [other for other in node.decorators if other is not one]
        yield node.with_changes(decorators=rest)


_UNDONE = frozenset(
    [
        "detach",
        "clone",
        "contiguous",
        "float",
        "double",
        "half",
        "long",
        "int",
        "bool",
        "cpu",
        "to",
        "item",
        "tolist",
        "copy_",
        "requires_grad_",
        "zero_grad",
        "synchronize",
        "flush",
        "fsync",
    ]
)
_UNDONE_FUNCTIONS = frozenset(
    [
        "float",
        "int",
        "bool",
        "str",
        "list",
        "tuple",
        "set",
        "dict",
        "sorted",
        "reversed",
        "abs",
        "len",
        "sum",
        "deepcopy",
        "copy",
        "iter",
        "enumerate",
        "max",
        "min",
        "round",
    ]
)


def _call_removed(node: cst.Call) -> Iterator[cst.CSTNode]:
    """`x.detach()` becomes `x`, `sorted(x)` becomes `x`."""
    match node.func:
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            if name in _UNDONE:
                yield value
            elif name in _UNDONE_FUNCTIONS and len(node.args) == 1:
                yield node.args[0].value
        case cst.Name(value=name):
            if name in _UNDONE_FUNCTIONS and len(node.args) == 1:
                yield node.args[0].value


def _arguments_swapped(node: cst.Call) -> Iterator[cst.CSTNode]:
    given = [one for one in node.args if one.keyword is None and not one.star]
    if len(given) >= 2:
        first, second = given[:2]
        swapped = [
            one.with_changes(
                value=second.value
                if one is first
                else first.value
                if one is second
                else one.value
            )
            for one in node.args
        ]
        yield node.with_changes(args=swapped)


_IN_PLACE = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "clamp",
        "neg",
        "exp",
        "sqrt",
        "abs",
        "unsqueeze",
        "squeeze",
        "scatter",
        "masked_fill",
        "addcmul",
        "lerp",
        "copysign",
        "relu",
        "sigmoid",
        "tanh",
    ]
)


def _in_or_out_of_place(node: cst.Attribute) -> Iterator[cst.CSTNode]:
    name = node.attr.value
    if name.endswith("_") and not name.endswith("__") and len(name) > 2:
        yield node.with_changes(attr=cst.Name(name[:-1]))
    elif name in _IN_PLACE and not m.matches(
        node.value, m.Name("torch") | m.Name("F") | m.Name("math")
    ):
        yield node.with_changes(attr=cst.Name(f"{name}_"))


def _neighbours(*groups: str) -> dict[str, list[str]]:
    return {
        one: [other for other in group.split() if other != one]
        for group in groups
        for one in group.split()
    }


_NEIGHBOURS = _neighbours(
    "float32 float64",
    "bfloat16 float16",
    "int64 int32",
    "long int",
    "eval train",
    "argmax argmin",
    "amax amin",
    "maximum minimum",
    "mean sum",
    "any all",
    "floor ceil",
    "zeros ones",
    "zeros_like ones_like",
    "log_softmax softmax",
    "var std",
    "log log1p",
    "exp expm1",
    "numel size",
    "append insert",
    "isnan isinf isfinite",
    "no_grad enable_grad inference_mode",
    "parameters buffers",
    "named_parameters named_buffers",
    "modules children",
    "named_modules named_children",
    "keys values items",
    "logical_and logical_or",
    "view reshape",
    "squeeze unsqueeze",
)


def _neighbour(node: cst.Attribute) -> Iterator[cst.CSTNode]:
    for other in _NEIGHBOURS.get(node.attr.value, ()):
        yield node.with_changes(attr=cst.Name(other))


_FUNCTIONS = _neighbours("min max", "any all", "sum max")


def _function(node: cst.Call) -> Iterator[cst.CSTNode]:
    if isinstance(node.func, cst.Name):
        for other in _FUNCTIONS.get(node.func.value, ()):
            yield node.with_changes(func=cst.Name(other))


_REDUCTIONS = _neighbours("mean sum none")


def _reduction(node: cst.SimpleString) -> Iterator[cst.CSTNode]:
    for other in _REDUCTIONS.get(str(node.evaluated_value), ()):
        yield node.with_changes(value=f'"{other}"')


def _negative(node: cst.Arg) -> Iterator[cst.CSTNode]:
    """`dim=0` and `dim=1` become `dim=-1`, `dim=-1` becomes `dim=0`."""
    if node.keyword is None or node.keyword.value not in ("dim", "axis"):
        return
    last = m.UnaryOperation(operator=m.Minus(), expression=m.Integer("1"))
    if m.matches(node.value, last):
        yield node.with_changes(value=cst.Integer("0"))
    elif isinstance(node.value, cst.Integer):
        yield node.with_changes(
            value=cst.UnaryOperation(cst.Minus(), cst.Integer("1"))
        )


def _string(node: cst.SimpleString) -> Iterator[cst.CSTNode]:
    """mutmut's first: its others change the case, which few answers spell."""
    yield from list(operator_string(node))[:1]


def _handler_narrowed(node: cst.ExceptHandler) -> Iterator[cst.CSTNode]:
    """Catches what never comes."""
    yield node.with_changes(
        type=cst.Name("GeneratorExit"),
        whitespace_after_except=cst.SimpleWhitespace(" "),
    )


_OURS: Sequence[tuple[type[cst.CSTNode] | Any, str, Operator]] = (
    (cst.SimpleStatementLine, "statement deleted", _deleted),
    (cst.If, "condition decided", _decided),
    (cst.For, "loop cut short", _cut_short),
    (cst.If | cst.For | cst.With, "early return", _returns_early),
    (cst.With, "context removed", _context_removed),
    (cst.Try, "finally removed", _finally_removed),
    (cst.FunctionDef | cst.ClassDef, "decorator removed", _decorator_removed),
    (cst.Call, "call removed", _call_removed),
    (cst.Call, "arguments swapped", _arguments_swapped),
    (cst.Attribute, "in or out of place", _in_or_out_of_place),
    (cst.Attribute, "neighbour", _neighbour),
    (cst.Call, "neighbour", _function),
    (cst.SimpleString, "reduction", _reduction),
    (cst.Arg, "dimension", _negative),
    (cst.SimpleString, "string", _string),
    (cst.ExceptHandler, "handler narrowed", _handler_narrowed),
)

OPERATORS: Sequence[tuple[type[cst.CSTNode] | Any, str, Operator]] = (
    *_OURS,
    *(
        (kind, function.__name__.removeprefix("operator_"), function)
        for kind, function in mutation_operators
        if function is not operator_string
    ),
)
"""(what it changes, its name, what makes the changed nodes)."""
