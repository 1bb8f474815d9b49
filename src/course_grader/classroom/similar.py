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
FEW = 3.0
"""Subtrees that nobody else has: an agreement in so many counts half of one in
very many. What many write alike, or what is short, so stands below what is not."""
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
        return self.likeness**2 * self.rarity / (self.rarity + FEW)


def similar(
    exercise: str,
    answers: Mapping[str, str],
    common: Sequence[str],
    handed_out: str = "",
) -> list[Pair]:
    """The pairs of one exercise that deserve a look, the rarest agreement first.
    An answer stands beside the one that it agrees with most: of three that agree
    there are two pairs.

    Args:
        exercise: its id.
        answers: cell by learner.
        common: cells of which everybody may have parts: the solution, right
            answers of the bank.
        handed_out: the cell as learners got it; what is in it is nobody's own.
    """
    given = set(features(handed_out))
    found = {
        student: own
        for student, cell in answers.items()
        if (own := set(features(cell)) - given)
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
    pairs.sort(key=lambda one: -one.rank)
    paired: set[str] = set()
    nearest = []
    for pair in pairs:
        if not {pair.first, pair.second} <= paired:
            nearest.append(pair)
            paired |= {pair.first, pair.second}
    return nearest


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
        tree = _Bare(tree).visit(tree)
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


def _own_attributes(tree: ast.AST) -> frozenset[str]:
    """Attributes that the answer binds, methods of its own among them."""
    own = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            own |= {
                one.name
                for one in node.body
                if isinstance(one, ast.FunctionDef)
            }
    return frozenset(own)


_RUNS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


class _Bare(ast.NodeTransformer):
    """Takes out what says nothing about how an answer works."""

    def __init__(self, tree: ast.AST) -> None:
        self.own = _own_names(tree)
        self.attributes = _own_attributes(tree)
        self.read = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name)
            and not isinstance(node.ctx, ast.Store)
        }
        self.depth = 0

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.own:
            node.id = "_"
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg, node.annotation = "_", None
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr in self.attributes:
            node.attr = "_"
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        made = ast.Assign(targets=[node.target], value=node.value)
        return self.visit_Assign(made)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        never_read = all(
            isinstance(one, ast.Name) and one.id not in self.read
            for one in node.targets
        )
        runs = any(isinstance(one, _RUNS) for one in ast.walk(node.value))
        if self.depth and never_read and not runs:
            return None  # of a function, and without effect
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        node.name, node.returns = "_", None
        node.body = _without_dead(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.name = "_"
        node.body = _without_dead(node.body)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node


def _without_dead(body: list[ast.stmt]) -> list[ast.stmt]:
    """Without docstrings and other expressions that do nothing, `print`, `pass`, and
    what stands behind a `return`."""
    kept = []
    for one in body:
        if isinstance(one, ast.Pass) or (
            isinstance(one, ast.Expr) and _does_nothing(one.value)
        ):
            continue
        kept.append(one)
        if isinstance(one, (ast.Return, ast.Raise)):
            break
    return kept


def _does_nothing(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id == "print"
    return isinstance(value, (ast.Constant, ast.Name))


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
