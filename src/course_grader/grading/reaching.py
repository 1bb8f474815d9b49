"""Lines of a submission that reach for the grader, found without running them.

What is measured in a learner's process (calls, modes, graphs, warnings) is that
process's word, and code that gets at the measuring can change the word. No honest
answer needs that. So the lines are shown to a human; nobody loses a point by them.
A text in another cell, or one put together as the code runs, is not looked through:
running what was put together is itself such a line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_grader.grading.definitions import parsed_cell

LONGEST_LINE = 200
"""Characters of a line that are shown."""
MOST_SHOWN = 8
"""Lines of a submission that are shown."""

MOST_STEPS = 5
"""From a name to those that are made of it, how often."""

_GRADER = ("course_grader", "ctypes")
_ATTRIBUTES = frozenset(
    (
        *("meta_path", "path_hooks", "settrace", "setprofile", "addaudithook"),
        *("_getframe", "_current_frames", "_current_exceptions"),
        *("get_objects", "get_referrers", "get_referents"),
        *("currentframe", "getouterframes", "getinnerframes"),
        *("f_back", "f_globals", "f_locals", "f_builtins"),
        *("tb_frame", "gi_frame", "cr_frame", "ag_frame"),
        *("__globals__", "__closure__", "__builtins__", "cell_contents"),
        *("__subclasses__", "__loader__", "set_custom_exc"),
        *("ast_transformers", "input_transformers_cleanup"),
        "input_transformers_post",
    )
)
_CODE = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
_RUNS_TEXT = frozenset(
    ("exec", "eval", "compile", "__import__", "import_module")
)
_MODULES = frozenset(("torch", "np", "nn", "F", "builtins", "sys"))
"""Names of modules that a cell need not import itself."""
_SETTINGS = frozenset(("backends", "rcParams", "stdout", "stderr"))


@dataclass(frozen=True)
class Reach:
    """One line that reaches for the grader.

    Attributes:
        number: of the line in its cell, from 1.
        line: its text, cut.
    """

    number: int
    line: str


def reaches(source: str) -> list[Reach]:
    """The lines of a cell that reach for the grader, in order."""
    tree = parsed_cell(source)
    lines = source.split("\n")
    if tree is None:
        found = {
            number
            for number, line in enumerate(lines, start=1)
            if "course_grader" in line
        }
    else:
        found = {_line_of(node) for node in _reaching(tree)}
    return [
        Reach(number, lines[number - 1].strip()[:LONGEST_LINE])
        for number in sorted(found)
        if 0 < number <= len(lines)
    ]


def without_reaching(source: str) -> str:
    """A cell without the statements that reach for the grader, and without those
    that speak of what these bind."""
    tree = parsed_cell(source)
    if tree is None:
        return source
    marked = set(map(id, _reaching(tree)))
    if not marked:
        return source
    bound: set[str] = set()
    for _ in range(MOST_STEPS):
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and _speaks(node, marked, bound):
                bound |= set(_binds(node))
    try:
        cut = _Cut(marked, bound).visit(tree)
        return ast.unparse(ast.fix_missing_locations(cut))
    except RecursionError:
        return source


class _Cut(ast.NodeTransformer):
    def __init__(self, marked: set[int], bound: set[str]) -> None:
        self.marked, self.bound = marked, bound

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.stmt) and _speaks(
            node, self.marked, self.bound
        ):
            return ast.Pass()
        self.generic_visit(node)
        return node


def _speaks(statement: ast.stmt, marked: set[int], bound: set[str]) -> bool:
    """Whether a statement itself, not one within it, is marked or speaks of one of
    the names."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if id(node) in marked:
            return True
        if isinstance(node, ast.Name) and node.id in bound:
            return True
        todo += [
            one
            for one in ast.iter_child_nodes(node)
            if not isinstance(one, ast.stmt | ast.excepthandler)
        ]
    return False


def _binds(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for name in names:
                yield (name.asname or name.name).partition(".")[0]
        case ast.Assign(targets=targets):
            yield from (one.id for one in targets if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _reaching(tree: ast.AST) -> Iterator[ast.AST]:
    imported = {
        name for node in ast.walk(tree) for name in _imported_names(node)
    }
    modules = imported | _MODULES
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                if _of_grader(one.name for one in names):
                    yield node
            case ast.ImportFrom(module=str(module), names=names):
                if _of_grader([module]) or any(
                    one.name in _ATTRIBUTES | {"modules"} for one in names
                ):
                    yield node
            case ast.Constant(value=str(text)):
                if text.startswith(("course_grader", "probes.py")):
                    yield node
            case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
                yield node
            case ast.Attribute(attr=attr):
                if attr in _ATTRIBUTES or (
                    attr in _CODE and isinstance(node.ctx, ast.Store)
                ):
                    yield node
            case ast.Assign(targets=targets, value=value):
                if not isinstance(value, ast.Constant) and any(
                    _patches(one, modules) for one in targets
                ):
                    yield node
            case ast.Call(func=ast.Name(id="setattr"), args=[target, *_]):
                if _root(target) in modules:
                    yield node
            case ast.Call(func=function, args=[argument, *_]):
                if _name(function) in _RUNS_TEXT and not isinstance(
                    argument, ast.Constant
                ):
                    yield node


def _imported_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for name in node.names:
            yield (name.asname or name.name).partition(".")[0]


def _of_grader(names: Iterable[str]) -> bool:
    return any(one.partition(".")[0] in _GRADER for one in names)


def _patches(target: ast.expr, modules: set[str]) -> bool:
    """Whether something of a module is replaced; its settings may be."""
    parts: list[str] = []
    node = target
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (
        bool(parts)
        and isinstance(node, ast.Name)
        and node.id in modules
        and not _SETTINGS & set(parts)
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _name(function: ast.expr) -> str:
    """`exec`, `importlib.import_module`; but `re.compile`, `torch.compile` and a
    model's `eval` are others."""
    match function:
        case ast.Name(id=name):
            return name
        case ast.Attribute(
            value=ast.Name(id="builtins" | "importlib"), attr=name
        ):
            return name
    return ""
