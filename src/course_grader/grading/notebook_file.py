"""Reads what a learner submitted, whatever state the file is in.

`read_submitted` turns bytes into a flat list of cells, each with text of plain
characters and the few marks by which `repair` recognises it. Nothing else of
the file is kept: no outputs, no attachments, no metadata. Nothing here recurses
over the file's content: the fast reader is Python's JSON parser, which stops at
the interpreter's limit, and the tolerant one keeps its own stack.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from course_grader.chapter.folds import without_solution

MAX_FILE_BYTES = 64 * 2**20
"""JupyterLab hardly opens a notebook of this size, and parsing one needs about
ten times as much memory in the grader."""

MAX_CONTAINERS = 1_000_000
"""Brackets in a file up to which Python's parser is used. Every bracket can
cost it 100 bytes and more; an honest notebook has some thousands."""

MAX_TOKENS = 3_000_000
"""Where the tolerant reader stops: some seconds of work. A million printed
lines still fit."""

MAX_DEPTH = 60
"""Nesting that the tolerant reader keeps; a cell's source stands at depth 4."""

MAX_CELLS = 2_000
"""Cells read. A chapter has about 60, and matching costs time per cell."""

MAX_SOURCE_CHARS = 200_000
"""Characters of one cell: fifty pages, while parsing code takes about 300 bytes
of memory per character."""

MAX_CODE_CHARS = 1_000_000
"""Characters of all cells together, so that reading them stays within seconds.
A chapter has about 50,000."""

_TYPES = {
    "code": "code",
    "python": "code",
    "markdown": "markdown",
    "text": "markdown",
    "heading": "markdown",
    "html": "markdown",
    "raw": "raw",
    "plaintext": "raw",
}
_SOURCE_KEYS = ("source", "input", "code", "text")
_MARKS = ("grade", "solution", "locked", "points")


@dataclass(frozen=True)
class SubmittedCell:
    """One cell as the learner's file has it.

    Attributes:
        number: its place in the file, counted from 1 as a reader counts.
        cell_type: code, markdown or raw.
        source: its text: no NUL, no lone surrogate, lines ended by a newline.
        cell_id: its id; empty if it has none. Colab keeps it in the metadata.
        grade_id: its nbgrader id; empty if it has none.
        marks: those of nbgrader's grade, solution, locked and points that its
            metadata give, of whatever type they are.
    """

    number: int
    cell_type: str
    source: str
    cell_id: str = ""
    grade_id: str = ""
    marks: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Submitted:
    """What a submitted file holds.

    Attributes:
        cells: its cells in order.
        notes: sentences for the learner about what was wrong with the file.
        refused: one sentence if it is no notebook at all; otherwise empty.
        cut: the file breaks off before its end.
    """

    cells: tuple[SubmittedCell, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str = ""
    cut: bool = False


def read_submitted(data: bytes) -> Submitted:
    """The cells of a submitted file.

    Reads every notebook format from 1 on, later ones as format 4, in UTF-8,
    UTF-16, UTF-32 or a Windows encoding, and what is left of a damaged file.
    """
    if len(data) > MAX_FILE_BYTES:
        return Submitted(
            refused=f"The file has {len(data) / 2**20:.0f} MiB, more than the "
            f"{MAX_FILE_BYTES // 2**20} MiB that are read: clear the outputs, "
            "save the notebook and submit it again."
        )
    if not data.strip(b"\0\t\r\n "):
        return Submitted(
            refused="The file is empty: save the notebook and submit it again."
        )
    known = _other_kind_of_file(data)
    if known:
        return Submitted(refused=known)
    text, encoding_note = _decoded(data)
    tree, whole = _tree(text)
    raw_cells = _raw_cells(tree)
    if raw_cells is None:
        return Submitted(refused=_no_notebook(text), cut=not whole)
    notes = [note for note in (encoding_note, _format_note(tree)) if note]
    cells = _cells(raw_cells, whole, notes)
    return Submitted(cells=cells, notes=tuple(notes), cut=not whole)


def _other_kind_of_file(data: bytes) -> str:
    kinds = (
        (b"PK\x03\x04", "a zip archive: unpack it and submit the .ipynb file"),
        (b"\x1f\x8b", "a gzip archive: unpack it and submit the .ipynb file"),
        (b"%PDF", "a PDF: submit the .ipynb file itself"),
    )
    for start, what in kinds:
        if data.startswith(start):
            return f"The file is no notebook but {what}."
    return ""


def _no_notebook(text: str) -> str:
    if text.lstrip().startswith("<"):
        return (
            "The file is no notebook but a web page: use File > Download > "
            "Download .ipynb (in Colab) or File > Download (in JupyterLab) and "
            "submit that file."
        )
    return (
        "The file is no notebook (no list of cells was found in it): download "
        "the notebook again as .ipynb and submit that file."
    )


def _decoded(data: bytes) -> tuple[str, str]:
    """(text, a note if the file was not sound UTF-8)."""
    guess = json.detect_encoding(data)
    if guess.startswith(("utf-16", "utf-32")):
        text = data.decode(guess, "replace")
        # NUL bytes in front of an UTF-8 file look like UTF-32 too.
        if "{" in text:
            return _plain_text(text), f"The file was read as {guess.upper()}."
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return _plain_text(data.decode("utf-8")), ""
    except UnicodeDecodeError as broken:
        if broken.reason == "unexpected end of data":
            return _plain_text(data[: broken.start].decode("utf-8")), ""
    replaced = data.decode("utf-8", "replace")
    wrong = replaced.count("\ufffd")
    if sum(not one.isascii() for one in replaced) - wrong > wrong:
        return _plain_text(replaced), (
            f"{wrong} characters of the file were not readable as UTF-8."
        )
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return _plain_text(text), "The file was not UTF-8; it was read as Latin-1."


def _plain_text(text: str) -> str:
    return text.replace("\0", "").lstrip("\ufeff \t\r\n")


def _tree(text: str) -> tuple[object, bool]:
    """(the JSON tree, whether the file ended where it should)."""
    if text.count("[") + text.count("{") <= MAX_CONTAINERS:
        try:
            return json.loads(text, strict=False), True
        except (ValueError, RecursionError):
            pass
    return _Salvage(text).read()


_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]++|\\.)*+(?P<ended>")?)
      | (?P<open>[\[{]) | (?P<close>[\]}]) | (?P<comma>,) | :
      | (?P<word>[^\s\[\]{},:"]++)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"]": list, "}": dict}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_INTEGER = re.compile(r"-?[0-9]{1,18}")


class _Salvage:
    """Reads the JSON tree that a damaged text still holds.

    Where Python's parser gives up (a file cut off, a number of a million
    digits, nesting without end, text after the end, an editor's or git's marks
    in between) this one goes on: what is no JSON is passed over, what is not
    closed counts as closed at the end. The source of a cell that was not read
    to its end is dropped: half a cell is not what the learner wrote.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.root: object = None
        self.open: list[dict[str, object] | list[object]] = []
        self.open_under: list[str] = []
        self.key: str | None = None
        self.too_deep = 0

    def read(self) -> tuple[object, bool]:
        """(the tree, whether its outermost bracket was closed)."""
        start = 0 if self.text.startswith("[") else self.text.find("{")
        if start < 0:
            return None, False
        for count, token in enumerate(_TOKEN.finditer(self.text, start)):
            self._take(token)
            if not self.open:
                return self.root, True
            if count >= MAX_TOKENS:
                break
        unfinished = self.open[-1]
        if isinstance(unfinished, list) and self.open_under[-1] in _SOURCE_KEYS:
            holder = self.open[-2] if len(self.open) > 1 else None
            if isinstance(holder, dict):
                holder.pop(self.open_under[-1], None)
        return self.root, False

    def _take(self, token: re.Match[str]) -> None:
        text = token.group()
        if token["open"]:
            self._enter(text)
        elif token["close"]:
            self._leave(_CLOSES[text])
        elif self.too_deep:
            return
        elif token["comma"]:
            self.key = None
        elif token["string"]:
            if not token["ended"]:
                return
            string = _string(text)
            if isinstance(self.open[-1], dict) and self.key is None:
                self.key = string
            else:
                self._put(string)
        elif token["word"]:
            known, value = _word(text)
            if known:
                self._put(value)

    def _enter(self, bracket: str) -> None:
        if self.too_deep or len(self.open) >= MAX_DEPTH:
            self.too_deep += 1
            return
        container: dict[str, object] | list[object]
        container = {} if bracket == "{" else []
        under = self.key or ""
        if self.open:
            self._put(container)
        else:
            self.root = container
        self.open.append(container)
        self.open_under.append(under)
        self.key = None

    def _leave(self, kind: type) -> None:
        if self.too_deep:
            self.too_deep -= 1
            return
        if not any(isinstance(one, kind) for one in self.open):
            return
        while self.open:
            self.open_under.pop()
            if isinstance(self.open.pop(), kind):
                break
        self.key = None

    def _put(self, value: object) -> None:
        holder = self.open[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif self.key is not None:
            holder[self.key] = value
            self.key = None


def _string(token: str) -> str:
    try:
        value = json.loads(token, strict=False)
    except ValueError:
        value = json.loads(_ESCAPE.sub(_sound_escape, token), strict=False)
    assert isinstance(value, str)
    return value


def _sound_escape(escape: re.Match[str]) -> str:
    """The escape, or a backslash as itself if JSON knows no such escape."""
    if len(escape[1]) > 1 or escape[1] in '"\\/bfnrt':
        return escape[0]
    return "\\" + escape[0]


def _word(token: str) -> tuple[bool, object]:
    """(whether a word outside quotes is a value, the value)."""
    if token in ("true", "false", "null"):
        return True, {"true": True, "false": False, "null": None}[token]
    if _INTEGER.fullmatch(token):
        return True, int(token)
    try:
        return True, float(token)
    except ValueError:
        return False, None


def _raw_cells(tree: object) -> list[object] | None:
    """The list of cells, wherever a notebook of any format keeps it."""
    if isinstance(tree, list):
        looks_right = any(
            isinstance(one, dict) and "cell_type" in one for one in tree
        )
        return tree if looks_right else None
    if not isinstance(tree, dict):
        return None
    found: list[object] = []
    known = False
    sheets = tree.get("worksheets")
    holders = [tree, *(sheets if isinstance(sheets, list) else [])]
    for holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        if isinstance(cells, dict):
            cells = list(cells.values())
        if isinstance(cells, list):
            known = True
            found += cells
    return found if known else None


def _format_note(tree: object) -> str:
    version = tree.get("nbformat") if isinstance(tree, dict) else None
    if type(version) is int and version in (1, 2, 3):
        return (
            f"The notebook was saved in the old format {version}; it was read "
            "all the same."
        )
    if type(version) is int and 4 < version < 1000:
        return (
            f"The notebook was saved in format {version}, which is newer than "
            "this grader; it was read as format 4."
        )
    return ""


def _cells(
    raw_cells: list[object], whole: bool, notes: list[str]
) -> tuple[SubmittedCell, ...]:
    cells: list[SubmittedCell] = []
    unreadable: list[int] = []
    left_out: list[int] = []
    chars = 0
    for number, raw in enumerate(raw_cells[:MAX_CELLS], start=1):
        source = _source(raw) if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or source is None:
            unreadable.append(number)
            continue
        cell = _cell(number, raw, _clean(source))
        if cell.source:
            chars += len(cell.source)
            if len(cell.source) > MAX_SOURCE_CHARS or chars > MAX_CODE_CHARS:
                chars -= len(cell.source)
                left_out.append(number)
                cell = _cell(number, raw, "")
        cells.append(cell)
    last = len(raw_cells)
    if not whole:
        inside = bool(unreadable) and unreadable[-1] == last
        place = f"inside cell {last}" if inside else f"after cell {last}"
        notes.append(
            f"The file breaks off {place}; what comes before was read. If work "
            "of yours stood behind that, download the notebook again and "
            "submit it again."
        )
        if inside:
            unreadable.pop()
    if unreadable:
        notes.append(
            f"{_numbered(unreadable)} could not be read and "
            f"{_was(unreadable)} left out."
        )
    if left_out:
        notes.append(
            f"{_numbered(left_out)} {_was(left_out)} left out: a cell may hold "
            f"{MAX_SOURCE_CHARS:,} characters and a notebook "
            f"{MAX_CODE_CHARS:,}. Delete what is no code of yours, as pasted "
            "data or pictures."
        )
    if last > MAX_CELLS:
        notes.append(
            f"The notebook has {last:,} cells; the first {MAX_CELLS:,} were "
            "read."
        )
    return tuple(cells)


def _numbered(numbers: list[int]) -> str:
    shown = ", ".join(str(one) for one in numbers[:5])
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"Cell{'s' if len(numbers) > 1 else ''} {shown}{more}"


def _was(numbers: list[int]) -> str:
    return "were" if len(numbers) > 1 else "was"


def _source(raw: dict[str, object]) -> str | None:
    """A cell's text; None if it has none that can be read."""
    for key in _SOURCE_KEYS:
        value = raw.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            lines = [one for one in value if isinstance(one, str)]
            if value and not lines:
                return None
            # Some tools split lines and lose their ends.
            ended = any(one.endswith(("\n", "\r")) for one in lines)
            return ("" if ended else "\n").join(lines)
    return None


_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _clean(source: str) -> str:
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATE.sub("\ufffd", source.replace("\0", ""))


def _cell(number: int, raw: dict[str, object], source: str) -> SubmittedCell:
    metadata = _mapping(raw.get("metadata"))
    nbgrader = _mapping(metadata.get("nbgrader"))
    cell_type = _cell_type(raw)
    if cell_type == "markdown":
        # ours, not an answer that was written into a text
        source = without_solution(source)
    return SubmittedCell(
        number=number,
        cell_type=cell_type,
        source=source,
        cell_id=_text(raw.get("id")) or _text(metadata.get("id")),
        grade_id=_text(nbgrader.get("grade_id")),
        marks={key: nbgrader[key] for key in _MARKS if key in nbgrader},
    )


def _cell_type(raw: dict[str, object]) -> str:
    given = _text(raw.get("cell_type")).strip().lower()
    if given in _TYPES:
        return _TYPES[given]
    has_run = any(key in raw for key in ("outputs", "execution_count", "input"))
    return "code" if has_run else "raw"


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
