"""Lines of a submission that reach for the grader, found without running them.

What is measured in a learner's process (calls, modes, graphs, warnings) is that
process's word, and code that gets at the measuring can change the word. No honest
answer needs that. So the lines are shown to a human; nobody loses a point by them.
A text in another cell, or one put together as the code runs, is not looked through:
running what was put together is itself such a line. What a function replaces that is
given a module as an argument is not seen here; `kernel.replaced` tells.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_grader.grading.definitions import parsed_cell
from course_grader.judge.written import one_line

LONGEST_LINE = 200
"""Characters of a line that are shown."""
MOST_SHOWN = 8
"""Lines of a submission that are shown."""

MOST_STEPS = 5
"""From a name to those that are made of it, how often."""

_GRADER = ("course_grader", "ctypes", "_ctypes", "cffi")
_ATTRIBUTES = frozenset(
    (
        *("meta_path", "path_hooks", "settrace", "setprofile", "addaudithook"),
        *("_getframe", "_current_frames", "_current_exceptions"),
        *("get_objects", "get_referrers", "get_referents"),
        *("currentframe", "getouterframes", "getinnerframes", "walk_stack"),
        *("f_back", "f_globals", "f_locals", "f_builtins"),
        *("tb_frame", "gi_frame", "cr_frame", "ag_frame"),
        *("__globals__", "__closure__", "__builtins__", "cell_contents"),
        *("__subclasses__", "__loader__", "__spec__", "set_custom_exc"),
        *("ast_transformers", "input_transformers_cleanup"),
        *("input_transformers_post", "__import__", "resolve_name"),
    )
)
_CODE = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
_RUNS_TEXT = frozenset(
    ("exec", "eval", "compile", "__import__", "import_module")
)
_RUNS_FILES = frozenset(("runpy", "codeop", "code", "marshal"))
"""Modules that run text or files."""
_SHELL = frozenset(
    (
        "run_cell",
        "run_cell_magic",
        "run_line_magic",
        "ex",
        "ev",
        "safe_execfile",
    )
)
"""What of IPython's shell runs a text."""
_MAGICS = ("%run", "%load", "%%writefile", "%%file", "%%python", "%%script")
_OF_NAMES = ("builtins", "sys", "importlib")
"""Modules of which no honest line asks for a name that is put together."""
_ASKED = frozenset(("modules", *_ATTRIBUTES))
"""Keys of a module's dictionary that no honest line asks for."""
_CHANGES = frozenset(
    ("update", "setdefault", "pop", "clear", "__setitem__", "__delitem__")
)
_SETS = frozenset(("setattr", "delattr", "__setattr__", "__delattr__"))
_MODULES = frozenset(
    ("torch", "np", "nn", "F", "builtins", "sys", "Tensor", "DataLoader")
)
"""Names of modules and classes that a cell need not import itself."""
_SETTINGS = frozenset(("backends", "rcParams", "stdout", "stderr", "cudnn"))


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
    tree = _as_run(source)
    lines = source.split("\n")
    found = {
        number
        for number, line in enumerate(lines, start=1)
        if line.lstrip().startswith(_MAGICS)
        or (tree is None and "course_grader" in line)
    }
    if tree is not None:
        found |= {_line_of(node) for node in _reaching(tree)}
    return [
        Reach(number, one_line(lines[number - 1], LONGEST_LINE))
        for number in sorted(found)
        if 0 < number <= len(lines)
    ]


def _as_run(source: str) -> ast.Module | None:
    """A cell as IPython runs it; None if it does not run. Only what Python's own
    parser does not take needs IPython, which is slow to import."""
    tree = parsed_cell(source)
    if tree is not None:
        return tree
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        return parsed_cell(TransformerManager().transform_cell(source))
    except (SyntaxError, ValueError, RecursionError):
        return None


def without_reaching(source: str) -> str:
    """A cell without the statements that reach for the grader, and without those
    that speak of what these bind."""
    tree = _as_run(source)
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
    known = _Names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                if _of_grader(one.name for one in names) or any(
                    one.name in _RUNS_FILES for one in names
                ):
                    yield node
            case ast.ImportFrom(module=str(module), names=names):
                if (
                    _of_grader([module])
                    or module in _RUNS_FILES
                    or any(
                        one.name in _ATTRIBUTES | {"modules"} for one in names
                    )
                ):
                    yield node
            case ast.Constant(value=str(text)):
                if text.startswith(("course_grader", "probes.py")):
                    yield node
            case ast.Attribute(value=ast.Name(id=name), attr="modules"):
                if name in known.of("sys"):
                    yield node
            case ast.Attribute(value=ast.Name(id=name), attr="stack" | "trace"):
                if name in known.of("inspect"):
                    yield node
            case ast.Subscript(value=table, slice=key, ctx=context):
                if known.is_table(table) and (
                    not isinstance(context, ast.Load)
                    or (isinstance(key, ast.Constant) and key.value in _ASKED)
                ):
                    yield node
            case ast.Attribute(value=table, attr=attr) if attr in _CHANGES:
                if known.is_table(table):
                    yield node
            case ast.Attribute(attr=attr, ctx=context):
                if (
                    attr in _ATTRIBUTES
                    or (attr in _CODE and isinstance(context, ast.Store))
                    or (
                        not isinstance(context, ast.Load)
                        and id(node) not in known.set_to_constants
                        and known.patches(node)
                    )
                ):
                    yield node
            case ast.Call(func=function, args=[argument, *rest]):
                if _calls(function, argument, rest, known):
                    yield node


def _calls(
    function: ast.expr,
    argument: ast.expr,
    rest: list[ast.expr],
    known: _Names,
) -> bool:
    """Whether a call reaches for the grader, by what it calls."""
    name = known.text_runner(function)
    if name in _RUNS_TEXT:
        return not isinstance(argument, ast.Constant)
    match function:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"))):
            return function.attr in _SHELL
        case ast.Attribute(attr=attr) | ast.Name(id=attr):
            pass
        case _:
            return False
    if attr in _SETS:
        return known.is_module(argument)
    if attr in ("getattr", "attrgetter", "__getattribute__"):
        asked = rest[0] if rest else argument
        if isinstance(asked, ast.Constant):
            return asked.value in _ATTRIBUTES or (
                asked.value in _ASKED and _root(argument) in known.of("sys")
            )
        return any(_root(argument) in known.of(one) for one in _OF_NAMES)
    return False


class _Names:
    """What the names of a cell stand for, as far as reading tells.

    Attributes:
        set_to_constants: ids of the targets to which a constant is assigned:
            settings are.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.modules = set(_MODULES)
        self.kinds: dict[str, str] = {one: one for one in _MODULES}
        self.runners: dict[str, str] = {one: one for one in _RUNS_TEXT}
        self.set_to_constants: set[int] = set()
        assigned: list[tuple[ast.expr, ast.expr]] = []
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    for one in names:
                        bound = one.asname or one.name.partition(".")[0]
                        self.modules.add(bound)
                        self.kinds[bound] = one.name
                case ast.ImportFrom(module=str(module), names=names):
                    for one in names:
                        bound = one.asname or one.name
                        if not _SETTINGS & {*module.split("."), one.name}:
                            self.modules.add(bound)
                        self.kinds[bound] = f"{module}.{one.name}"
                        if one.name in _RUNS_TEXT and module in _OF_NAMES:
                            self.runners[bound] = one.name
                case ast.Assign(targets=targets, value=value):
                    assigned += [(one, value) for one in targets]
                case (
                    ast.AnnAssign(target=target, value=ast.expr() as value)
                    | ast.NamedExpr(target=target, value=value)
                    | ast.For(target=target, iter=value)
                ):
                    assigned.append((target, value))
        for target, value in assigned:
            if isinstance(value, ast.Constant):
                self.set_to_constants.add(id(target))
        for _ in range(MOST_STEPS):
            for target, value in assigned:
                if isinstance(target, ast.Name):
                    self._bind(target.id, value)

    def _bind(self, name: str, value: ast.expr) -> None:
        values = (
            value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        )
        for one in values:
            if isinstance(one, ast.Name) and one.id in self.runners:
                self.runners.setdefault(name, self.runners[one.id])
            if self.is_module(one):
                self.modules.add(name)
                if isinstance(one, ast.Name):
                    self.kinds.setdefault(name, self.kinds.get(one.id, ""))

    def of(self, module: str) -> set[str]:
        """The names of a module in this cell."""
        return {module} | {
            name for name, kind in self.kinds.items() if kind == module
        }

    def is_module(self, node: ast.expr) -> bool:
        """Whether an expression is a module, or something in one."""
        return _root(node) in self.modules and not _SETTINGS & set(_parts(node))

    def is_table(self, node: ast.expr) -> bool:
        """Whether an expression is the dictionary of a module or a class."""
        match node:
            case ast.Attribute(value=owner, attr="__dict__"):
                return self.is_module(owner)
            case ast.Call(func=ast.Name(id="vars"), args=[owner]):
                return self.is_module(owner)
        return False

    def patches(self, target: ast.Attribute) -> bool:
        """Whether something of a module is replaced; its settings may be."""
        return self.is_module(target)

    def text_runner(self, function: ast.expr) -> str:
        """`exec`, `importlib.import_module`, by any name; but `re.compile`,
        `torch.compile` and a model's `eval` are others."""
        match function:
            case ast.Name(id=name):
                return self.runners.get(name, "")
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                if self.kinds.get(owner, owner) in ("builtins", "importlib"):
                    return name
        return ""


def _parts(node: ast.expr) -> Iterator[str]:
    """The attributes of a chain, and the name at its root."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _root(node: ast.expr) -> str:
    """The name that a chain of attributes begins with, or what `getattr` and
    `vars` are asked about."""
    while True:
        match node:
            case ast.Attribute(value=value):
                node = value
            case ast.Call(
                func=ast.Name(id="getattr" | "vars"), args=[argument, *_]
            ):
                node = argument
            case ast.Name(id=name):
                return name
            case _:
                return ""


def _of_grader(names: Iterable[str]) -> bool:
    return any(one.partition(".")[0] in _GRADER for one in names)
