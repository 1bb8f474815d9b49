"""What the code of a notebook cell defines, found out without running it.

Learners' cells are read with the standard library's parser, which stops at the
interpreter's limits on hostile input; trees are walked level by level, never
recursively. Cells that do not parse are read line by line.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest

SHORTEST_CUT = 20
"""Characters from which a released text found inside another cell is taken for
a merged cell and not for a line that both happen to have."""

MAX_SOUND_LINES = 300
"""Lines of a cell that is no Python in which definitions are looked for: up to
a parse for each."""

OFTEN_CHARS = 4_000
"""Up to how many characters a cell is remembered that has been read."""

_MAGIC = re.compile(r"[%!?]|.*\?\s*$|[\w, ]+=\s*[%!]")
_PYTHON_CELL_MAGICS = ("time", "timeit", "capture", "prun")
_OPENS_CHUNK = re.compile(
    r"(?P<decorator>@)|(?:async\s+)?(?:def|class)\s+(?P<defined>\w+)"
    r"|(?P<assigned>\w+)\s*(?::[^=]+)?=(?!=)"
)
_AT_MARGIN = re.compile(r"(?!\s|[)\]}]|(?:else|elif|except|finally)\b)")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Chunk:
    """A top-level statement with the comments above it.

    Attributes:
        text: its lines.
        names: what it binds, imports included.
        imports: whether all that it binds are imports.
    """

    text: str
    names: frozenset[str]
    imports: bool = False


@dataclass(frozen=True)
class Code:
    """The code of one cell.

    Attributes:
        source: its text.
        parses: whether it is Python, apart from IPython's magics.
        chunks: its top-level statements; joined, their texts are the source.
    """

    source: str
    parses: bool
    chunks: tuple[Chunk, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """What its top level binds."""
        return frozenset().union(*(chunk.names for chunk in self.chunks))

    @cached_property
    def own_names(self) -> frozenset[str]:
        """What its top level binds other than by import."""
        own = (chunk.names for chunk in self.chunks if not chunk.imports)
        return frozenset().union(*own)

    @cached_property
    def sound(self) -> Code:
        """The code itself if it is Python, otherwise the definitions in it that
        are: what is left when a text or a note was merged into the cell."""
        if self.parses:
            return self
        blocks = map(read_code, _blocks(self.source))
        return read_code(
            "".join(one.source for one in blocks if one.parses and one.names)
        )


def read_code(source: str) -> Code:
    """Reads a cell's code; never raises."""
    return _read_often(source) if len(source) <= OFTEN_CHARS else _read(source)


def _read(source: str) -> Code:
    if source.lstrip().startswith("%%"):
        magic = source.lstrip()[2:].split(None, 1)[:1]
        if magic and magic[0] not in _PYTHON_CELL_MAGICS:
            return Code(source, True, (Chunk(source, frozenset()),))
    tree = parsed_cell(source)
    if tree is None:
        return Code(source, False, tuple(_chunks_by_line(source)))
    return Code(source, True, tuple(_chunks(source, tree)))


# most cells of a class's notebooks are the chapter's own
_read_often = lru_cache(maxsize=1024)(_read)


def parsed_cell(source: str) -> ast.Module | None:
    """A cell as Python reads it, IPython's own lines left out; None if it is no
    Python."""
    return _parsed(source) or _parsed(_without_magics(source))


def same_code(one: str, other: str) -> bool:
    """Whether two cells differ in layout, comments and docstrings at most."""
    if plain(one) == plain(other):
        return True
    trees = _parsed(one), _parsed(other)
    if trees[0] is None or trees[1] is None:
        return False
    shapes = zip_longest(_shape(trees[0]), _shape(trees[1]))
    return all(one == other for one, other in shapes)


def plain(source: str) -> str:
    """A text without trailing blanks and without blank lines around it."""
    lines = [line.rstrip() for line in source.splitlines()]
    return "\n".join(lines).strip("\n")


def without(source: str, texts: Iterable[str]) -> str | None:
    """The source without those texts that it holds whole, line by line; None if
    it holds none of them."""
    rest = plain(source)
    found = False
    for text in map(plain, texts):
        start = rest.find(text)
        end = start + len(text)
        if (
            len(text) >= SHORTEST_CUT
            and start >= 0
            and (start == 0 or rest[start - 1] == "\n")
            and (end == len(rest) or rest[end] == "\n")
        ):
            found = True
            rest = plain(rest[:start]) + "\n\n\n" + plain(rest[end:])
            rest = plain(rest)
    return rest if found else None


def glued(pieces: Sequence[str]) -> str | None:
    """The pieces of a cell that was split, put together; None if they are not
    Python together. Editors drop blank lines where a cell is split; a cell can
    also be split within a line."""
    for joint in ("\n", ""):
        source = joint.join(piece.strip("\n") for piece in pieces)
        if read_code(source).parses:
            return source
    return None


def _parsed(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        # The parser warns of odd escapes in the learner's strings.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            # The last two mean nesting beyond the parser's own limits.
            return None


def _without_magics(source: str) -> str:
    """The source with IPython's own lines replaced by `pass`, line for line."""
    lines = _lines(source)
    for at, line in enumerate(lines):
        code = line.lstrip()
        if _MAGIC.match(code):
            indent = line[: len(line) - len(code)]
            lines[at] = f"{indent}pass\n"
    return "".join(lines)


def _chunks(source: str, tree: ast.Module) -> Iterator[Chunk]:
    if not tree.body:
        yield Chunk(source, frozenset())
    lines = _lines(source)
    done = 0
    held: list[ast.stmt] = []
    for at, node in enumerate(tree.body):
        held.append(node)
        end = node.end_lineno or node.lineno
        if at + 1 == len(tree.body):
            end = len(lines)
        elif tree.body[at + 1].lineno <= end:
            continue  # two statements on one line
        yield Chunk(
            "".join(lines[done:end]),
            frozenset(name for one in held for name in _bound(one)),
            all(isinstance(one, ast.Import | ast.ImportFrom) for one in held),
        )
        done, held = end, []


def _chunks_by_line(source: str) -> Iterator[Chunk]:
    held: list[str] = []
    names: set[str] = set()
    decorated = False
    for line in _lines(source):
        opens = _OPENS_CHUNK.match(line)
        if opens and not decorated and held:
            yield Chunk("".join(held), frozenset(names))
            held, names = [], set()
        if opens:
            decorated = opens["decorator"] is not None
            names |= {opens["defined"] or opens["assigned"] or ""} - {""}
        held.append(line)
    if held:
        yield Chunk("".join(held), frozenset(names))


def _blocks(source: str) -> list[str]:
    """The text, parted where a line begins at the margin."""
    blocks: list[str] = []
    open_decorator = False
    for line in _lines(source)[:MAX_SOUND_LINES]:
        if blocks and (open_decorator or not _AT_MARGIN.match(line)):
            blocks[-1] += line
        else:
            blocks.append(line)
        open_decorator = line.startswith("@")
    return blocks


def _lines(source: str) -> list[str]:
    """Lines as Python's parser counts them: form feeds and the like do not end
    one."""
    return re.findall(r"[^\n]*\n|[^\n]+", source)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement binds, also inside if and try."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.Assign):
            waiting += node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            waiting.append(node.target)
        elif isinstance(node, ast.Tuple | ast.List):
            waiting += node.elts
        elif isinstance(node, ast.Starred):
            waiting.append(node.value)
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.If):
            waiting += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            waiting += [*node.body, *node.orelse, *node.finalbody]
            for handler in node.handlers:
                waiting += handler.body


def _shape(tree: ast.Module) -> Iterator[tuple[object, ...]]:
    """The tree, level by level: two trees are alike if these are."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as docstring):
                # A file in the wrong encoding changes these.
                docstring.value = ""
        yield (type(node).__name__,)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                leaves = [one for one in value if not isinstance(one, ast.AST)]
                yield name, len(value), repr(leaves)
            elif isinstance(value, ast.AST):
                yield name, "node"
            elif isinstance(value, int):
                yield name, type(value), hex(value)  # of any length
            else:
                yield name, repr(value)
