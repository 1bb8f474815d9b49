"""Graded notebooks that are safe to open.

What is written to `autograded/` is rendered by formgrader on the instructor's own
origin, with raw HTML, scripts and widgets left as they are, and opened in
JupyterLab. `sanitise` makes such a notebook harmless: it builds a new one and takes
over only what it knows.

Text in Markdown is made harmless without parsing Markdown, since formgrader,
JupyterLab and others parse it differently: an invisible word joiner (U+2060)
after the character that would start a tag, a link or an image keeps every parser
from seeing one, and the text reads as before.
"""

from __future__ import annotations

import functools
import html
import math
import re
from collections.abc import Collection, Mapping
from html.parser import HTMLParser
from itertools import chain, count
from typing import Any

from nbformat import NotebookNode, from_dict

from course_grader.feedback import content
from course_grader.judge.report import SubmissionReport

LONGEST_OUTPUT = 100_000
"""Characters of one text output that are kept."""
LONGEST_MARKDOWN = 15_000
"""Characters of one Markdown text that are kept."""
MOST_MARKUP = 300_000
"""Characters of Markdown and HTML in one notebook; what comes after is not looked
at and not shown. Honest chapters have a tenth."""
MOST_MARKS = 2_000
"""Characters of one Markdown text that may start something. What renderers do with
those that start nothing grows with the square of their number."""
MOST_OUTPUTS = 200
"""Outputs of one cell that are kept."""

UNSHOWN = "(This text could not be made safe to show; see it as submitted.)"

_JOINER = "\u2060"
_PLAIN_TAGS = (
    "b|br|dd|details|dl|dt|em|i|kbd|li|ol|p|strong|sub|summary|sup|u|ul"
)
# A tag, unless it is a plain one without attributes; a comment; an autolink.
_TAG = re.compile(rf"<(?=[a-z/!?])(?!/?(?:{_PLAIN_TAGS}) ?/?>)", re.I)
# A link, or the definition of one, to anything but a page, a mail address, a
# heading.
_LINK = re.compile(
    r"\](?=\()(?!\((?:https?://|mailto:|#|attachment:))"
    r"|\](?=:)(?!:\s*(?:https?://|mailto:|#))",
    re.I,
)
# An image; of one that may be an attachment, its name.
_IMAGE = re.compile(r"!(?=\[(?:[^\[\]\\`<>&]*\]\(attachment:([\w.-]+)\))?)")
# TeX that makes links, loads extensions, sets styles, classes and ids.
_MACRO = re.compile(
    r"\\(?=href|url|require|class|cssId|style|html[a-z]|data|include)", re.I
)
_FENCE = re.compile(r"`{3,}|~{3,}")
_NAME = re.compile(r"[\w.-]{1,200}", re.ASCII)
_GRADE_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
_CHECKSUM = re.compile(r"[0-9a-f]{32}")
_CELL_TYPE = re.compile(r"code|markdown|raw")
_CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)

_METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


def sanitise(notebook: NotebookNode) -> NotebookNode:
    """A notebook of format 4.5 that is safe to open in formgrader and JupyterLab.

    Kept: the cells in their order, the source of code cells to the byte (a lone
    surrogate, which no file can hold, excepted), what nbgrader's cell metadata
    may hold, ids that are valid, a report in the notebook's metadata, and of the
    outputs text, PNG, JPEG and the tables and plain formatting of HTML.
    Everything else is dropped: other metadata, tags, attachments that are no
    pictures, SVG, scripts, widgets and their state.

    Args:
        notebook: a graded notebook, hostile until shown otherwise; not changed.
            A report in it has to be the grader's: it is not checked against
            anything.
    """
    cells = notebook.get("cells")
    made = []
    taken: set[str] = set()
    budget = _Budget(MOST_MARKUP)
    for index, cell in enumerate(cells if isinstance(cells, list) else ()):
        if isinstance(cell, Mapping):
            made.append(
                {"id": _cell_id(cell, index, taken), **_cell(cell, budget)}
            )
    return from_dict(
        {
            "cells": made,
            "metadata": _METADATA | _report(notebook.get("metadata")),
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


class _Budget:
    """How much markup may still be looked at."""

    def __init__(self, characters: int) -> None:
        self.left = characters

    def allows(self, value: Any) -> bool:
        self.left -= len(content.text_of(value))
        return self.left >= 0


def _cell_id(cell: Mapping[str, Any], index: int, taken: set[str]) -> str:
    found = cell.get("id")
    usable = isinstance(found, str) and _CELL_ID.fullmatch(found)
    new = (f"cell-{index}-{n}" for n in count())
    candidates = chain([str(found)] if usable else [], new)
    chosen = next(one for one in candidates if one not in taken)
    taken.add(chosen)
    return chosen


def _cell(cell: Mapping[str, Any], budget: _Budget) -> dict[str, Any]:
    source = content.text_of(cell.get("source"))
    metadata = _cell_metadata(cell.get("metadata"))
    if cell.get("cell_type") == "code":
        return {
            "cell_type": "code",
            "execution_count": _count(cell.get("execution_count")),
            "metadata": metadata,
            "outputs": _outputs(cell.get("outputs"), budget),
            "source": source,
        }
    if cell.get("cell_type") == "markdown":
        pictures = _attachments(cell.get("attachments"))
        made: dict[str, Any] = {
            "cell_type": "markdown",
            "metadata": metadata,
            "source": harmless_markdown(source, frozenset(pictures))
            if budget.allows(source)
            else UNSHOWN,
        }
        return made | ({"attachments": pictures} if pictures else {})
    return {
        "cell_type": "raw",
        "metadata": metadata,
        "source": _TAG.sub(_join, source),
    }


# Metadata.


def _report(metadata: Any) -> dict[str, Any]:
    """The notebook's metadata that holds the report; empty if it holds none."""
    try:
        report = SubmissionReport.from_json(metadata["course"]["report"])
        return {"course": {"report": report.to_json()}}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _cell_metadata(metadata: Any) -> dict[str, Any]:
    found = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    if not isinstance(found, Mapping) or not _is_grade_id(
        found.get("grade_id")
    ):
        return {}
    kept: dict[str, Any] = {"grade_id": found["grade_id"], "schema_version": 3}
    for key in ("grade", "solution", "locked", "task"):
        kept[key] = found.get(key) is True
    if kept["grade"] or kept["task"]:
        # Without points formgrader's page does not open.
        kept["points"] = _points(found.get("points"))
    for key, kind in (("checksum", _CHECKSUM), ("cell_type", _CELL_TYPE)):
        if isinstance(found.get(key), str) and kind.fullmatch(found[key]):
            kept[key] = found[key]
    return {"nbgrader": kept}


def _is_grade_id(value: Any) -> bool:
    return isinstance(value, str) and _GRADE_ID.fullmatch(value) is not None


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _points(value: Any) -> float:
    if type(value) in (int, float) and math.isfinite(value) and value >= 0:
        points: float = value
        return points
    return 0


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 10**9 else None


def _attachments(attachments: Any) -> dict[str, dict[str, str]]:
    kept: dict[str, dict[str, str]] = {}
    if isinstance(attachments, Mapping):
        for name, bundle in attachments.items():
            if _is_name(name) and isinstance(bundle, Mapping):
                pictures = _pictures(bundle)
                if pictures:
                    kept[name] = pictures
    return kept


def _pictures(bundle: Mapping[str, Any]) -> dict[str, str]:
    found = {
        mime: content.picture(bundle.get(mime), mime)
        for mime in ("image/png", "image/jpeg")
    }
    return {mime: one.data for mime, one in found.items() if one is not None}


# Outputs.


def _outputs(outputs: Any, budget: _Budget) -> list[dict[str, Any]]:
    made = []
    for output in outputs[:MOST_OUTPUTS] if isinstance(outputs, list) else ():
        if isinstance(output, Mapping):
            kept = _output(output, budget)
            if kept:
                made.append(kept)
    return made


def _output(output: Mapping[str, Any], budget: _Budget) -> dict[str, Any]:
    kind = output.get("output_type")
    if kind == "stream":
        return {
            "output_type": "stream",
            "name": "stderr" if output.get("name") == "stderr" else "stdout",
            "text": content.plain(output.get("text"), LONGEST_OUTPUT),
        }
    if kind == "error":
        lines = output.get("traceback")
        trace = (
            "\n".join(map(content.text_of, lines))
            if isinstance(lines, list)
            else ""
        )
        return {
            "output_type": "error",
            "ename": content.plain(output.get("ename"), 200),
            "evalue": content.plain(output.get("evalue"), 2_000),
            "traceback": content.plain(trace, LONGEST_OUTPUT).split("\n"),
        }
    data = output.get("data")
    if kind not in ("display_data", "execute_result") or not isinstance(
        data, Mapping
    ):
        return {}
    made: dict[str, Any] = {
        "output_type": kind,
        "data": _bundle(data, budget),
        "metadata": _sizes(output.get("metadata")),
    }
    if kind == "execute_result":
        made["execution_count"] = _count(output.get("execution_count"))
    return made


def _bundle(data: Mapping[str, Any], budget: _Budget) -> dict[str, str]:
    kept = _pictures(data)
    if "text/html" in data and budget.allows(data["text/html"]):
        markup = content.clean_html(data["text/html"])
        if markup:
            kept["text/html"] = _MACRO.sub(_join, markup)
    if "text/markdown" in data and budget.allows(data["text/markdown"]):
        text = content.text_of(data["text/markdown"])
        kept["text/markdown"] = harmless_markdown(text, frozenset())
    if "text/latex" in data:
        text = content.plain(data["text/latex"], LONGEST_MARKDOWN)
        kept["text/latex"] = _MACRO.sub(_join, text)
    if "text/plain" in data:
        kept["text/plain"] = content.plain(data["text/plain"], LONGEST_OUTPUT)
    if not kept:
        kinds = ", ".join(sorted(filter(_is_mime, data)))
        kept["text/plain"] = f"[not shown: {kinds}]"
    return kept


def _is_mime(value: Any) -> bool:
    return isinstance(value, str) and bool(
        re.fullmatch(r"[\w.+-]{1,60}/[\w.+-]{1,60}", value, re.ASCII)
    )


def _sizes(metadata: Any) -> dict[str, dict[str, int]]:
    """The sizes in pixels at which pictures are meant to be shown."""
    kept = {}
    for mime in ("image/png", "image/jpeg"):
        found = metadata.get(mime) if isinstance(metadata, Mapping) else None
        if isinstance(found, Mapping):
            size = {
                key: found[key]
                for key in ("width", "height")
                if type(found.get(key)) is int and 0 < found[key] < 10_000
            }
            if size:
                kept[mime] = size
    return kept


# Markdown.


@functools.lru_cache(maxsize=256)  # most cells of a class are the course's own
def harmless_markdown(source: str, pictures: frozenset[str]) -> str:
    """Markdown that no renderer turns into anything but text, formatting, links to
    pages and the given pictures. Mathematics is left alone.

    Args:
        source: what the learner wrote.
        pictures: names of the attachments that exist and are pictures.
    """
    lines = source.replace("\r\n", "\n").replace("\r", "\n")
    text = content.plain(lines, LONGEST_MARKDOWN)
    text = "\n".join(map(_without_diagram, text.split("\n")))
    text = _IMAGE.sub(
        lambda found: found[0] if found[1] in pictures else _join(found), text
    )
    for pattern in (_TAG, _LINK, _MACRO):
        text = pattern.sub(_join, text)
    if sum(map(text.count, "*_\\$`[]<&|~")) > MOST_MARKS:
        return UNSHOWN
    return text if _renders_harmless(text, pictures) else UNSHOWN


def _join(found: re.Match[str]) -> str:
    return found[0] + _JOINER


def _without_diagram(line: str) -> str:
    """nbconvert hands a fenced mermaid diagram to a script, unescaped."""
    words = html.unescape(line).replace("\\", "").lower()
    return _FENCE.sub(_join, line) if "mermaid" in words else line


_SAFE_TAG = re.compile(
    r"a|b|blockquote|br|code|d[dlt]|del|details|div|em|h[1-6r]|i|img|input|kbd"
    r"|li|ol|p|pre|span|strong|su[bp]|summary|t[dhr]|table|tbody|thead|ul?"
)
_SAFE_ATTRIBUTES = {
    "href": r"(?i:https?://|mailto:|#|attachment:).*",
    "src": r"data:image/(?:png|jpeg);base64,[A-Za-z0-9+/=]+",
    "class": r"(?!.*(?:mermaid|tex2jax)).*",
    "style": r"text-align: ?(?:left|right|center);?",
    "type": "checkbox",
    **dict.fromkeys(
        ("align", "alt", "checked", "disabled", "id", "start", "title"), ".*"
    ),
}


class _Harmless(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = True

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        self.found &= bool(_SAFE_TAG.fullmatch(tag)) and all(
            name in _SAFE_ATTRIBUTES
            and re.fullmatch(_SAFE_ATTRIBUTES[name], value or "", re.S)
            for name, value in attrs
        )


def _renders_harmless(text: str, pictures: Collection[str]) -> bool:
    """Whether formgrader's own renderer makes harmless HTML of it, and does not
    stop. A second look: the breaks above should leave it nothing to find."""
    # Imported here: nbconvert takes a second, and most of this room needs none.
    from nbconvert.filters.markdown_mistune import (
        IPythonRenderer,
        MarkdownWithMath,
    )

    # The smallest picture there is: only its place matters here.
    stand_in = {name: {"image/png": "AAAA"} for name in pictures}
    renderer = IPythonRenderer(escape=False, attachments=stand_in)
    try:
        rendered = MarkdownWithMath(renderer=renderer).render(text)
    except Exception:  # formgrader would answer with an error page
        return False
    parser = _Harmless()
    parser.feed(rendered)
    parser.close()
    return parser.found and not re.search(r"<[!?]", rendered)
