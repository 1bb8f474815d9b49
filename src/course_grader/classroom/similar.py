"""Answers of two learners that agree in what hardly anybody else writes.

Each answer becomes its syntax tree without what a copyist changes: names of the
learner's own, comments, docstrings, annotations, layout, the order of statements. Its
features are all subtrees, and a subtree counts the less the more people have it, in
the class, in the chapter's own text or in the right answers of the bank: what the
exercise forces weighs little. Two answers are compared by the weight that they share.

It finds what deserves a look. Nobody's marks depend on it, and it never says who
copied: two people who learn together write alike, too.

Sources: Baxter et al., "Clone detection using abstract syntax trees" (1998), for
subtrees as features; Spärck Jones (1972) for the weight of rarity. Python's own
parser does the reading: it knows its grammar better than any other.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST = 0.3
"""Likeness below which a pair is not worth a look."""
FEWEST = 8
"""Subtrees of an answer that can tell anything about its writer."""
MOST_NODES = 20_000
"""Of an answer that is looked at; a longer one is no answer to an exercise."""
_KNOWN = frozenset(dir(builtins)) | {"torch", "nn", "self", "F", "np", "math"}


@dataclass(frozen=True)
class Pair:
    """Two answers to one exercise that agree.

    Attributes:
        exercise: its id.
        first, second: the learners.
        likeness: the share of both answers' weight that both have, from 0 to 1.
        rarity: the weight that both have: how much there is to agree in.
        cells: both answers.
    """

    exercise: str
    first: str
    second: str
    likeness: float
    rarity: float
    cells: tuple[str, str]

    @property
    def rank(self) -> float:
        """The rarest agreement first; likeness before the length of answers."""
        return self.likeness**2 * self.rarity**0.25


def similar(
    exercise: str, answers: Mapping[str, str], common: Sequence[str]
) -> list[Pair]:
    """The pairs of one exercise that deserve a look, the rarest agreement first.

    Args:
        exercise: its id.
        answers: cell by learner.
        common: cells of which everybody may have parts: what was handed out, the
            solution, right answers of the bank.
    """
    found = {
        student: set(counts)
        for student, cell in answers.items()
        if (counts := features(cell)).total() >= FEWEST
    }
    people = Counter(one for counts in found.values() for one in counts)
    known = Counter(one for cell in common for one in features(cell))
    # one with whom it is shared weighs 1, two 1/2, and so on
    weight = {
        one: 1 / max(number + known[one] - 1, 1)
        for one, number in people.items()
    }
    pairs = []
    for first, second in itertools.combinations(sorted(found), 2):
        both = sum(weight[one] for one in found[first] & found[second])
        either = sum(weight[one] for one in found[first] | found[second])
        if both / either >= LEAST:
            cells = answers[first], answers[second]
            pairs.append(
                Pair(exercise, first, second, both / either, both, cells)
            )
    return sorted(pairs, key=lambda one: -one.rank)


def features(cell: str) -> Counter[str]:
    """The subtrees of an answer, as digests; none where it is no Python."""
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Counter()
    nodes = sum(1 for _ in ast.walk(tree))
    if nodes > MOST_NODES:
        return Counter()
    found: Counter[str] = Counter()
    try:
        tree = _Bare(_own_names(tree)).visit(tree)
        for statement in tree.body:
            _digest(statement, found)
    except (RecursionError, ValueError):
        return Counter()  # deeper, or longer numbers, than Python writes down
    return found


def _own_names(tree: ast.AST) -> frozenset[str]:
    """Names that the answer binds: a copyist changes these without effect."""
    own: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ) or (isinstance(node, ast.ExceptHandler) and node.name):
            own.add(node.name)
    return frozenset(name for name in own if name and name not in _KNOWN)


class _Bare(ast.NodeTransformer):
    """Takes out what says nothing about how an answer works."""

    def __init__(self, own: frozenset[str]) -> None:
        self.own = own

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.own:
            node.id = "_"
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg, node.annotation = "_", None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.Assign(targets=[node.target], value=node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.name, node.returns = "_", None
        node.body = _without_dead(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.name = "_"
        node.body = _without_dead(node.body)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant) and not node.test.value:
            return None  # never runs
        return node


def _without_dead(body: list[ast.stmt]) -> list[ast.stmt]:
    """Without docstrings and other bare constants, `pass`, and what stands behind
    a `return`."""
    kept = []
    for one in body:
        if isinstance(one, ast.Pass) or (
            isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        ):
            continue
        kept.append(one)
        if isinstance(one, (ast.Return, ast.Raise)):
            break
    return kept


def _digest(node: ast.AST, found: Counter[str]) -> str:
    """The digest of a subtree; counts it, and those below it.

    Statements of a body go in without their order, and so do the two sides of an
    operation that may be swapped.
    """
    parts = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name in ("ctx", "type_comment", "kind", "lineno", "type_params"):
            continue
        if isinstance(value, list):
            made = [_value(one, found) for one in value]
            if value and isinstance(value[0], (ast.stmt, ast.keyword)):
                made.sort()
            parts.append(f"{name}=[{','.join(made)}]")
        else:
            parts.append(f"{name}={_value(value, found)}")
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
    ):
        parts[1:] = sorted(part.partition("=")[2] for part in parts[1:])
    text = hashlib.blake2b(" ".join(parts).encode(), digest_size=8).hexdigest()
    if not isinstance(node, (ast.Name, ast.Constant, ast.operator, ast.cmpop)):
        found[text] += 1
    return text


def _value(value: object, found: Counter[str]) -> str:
    if isinstance(value, ast.AST):
        return _digest(value, found)
    return repr(value)


def answers_of(
    notebooks: Mapping[str, dict[str, Any]], exercise: str
) -> dict[str, str]:
    """The cell of each learner's notebook, by learner.

    Args:
        notebooks: graded notebooks as JSON trees, by learner.
        exercise: its id, which its cell's nbgrader mark bears.
    """
    found = {}
    for student, tree in notebooks.items():
        for cell in tree["cells"]:
            marks = cell.get("metadata", {}).get("nbgrader", {})
            if marks.get("grade_id") == exercise:
                source = cell["source"]
                found[student] = (
                    source if isinstance(source, str) else "".join(source)
                )
    return found
