"""What every page of the course shares: style, drawings, and a policy that lets a
browser run nothing and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

_ROOM = Path(__file__).parent
_CODE = re.compile(r"`([^`\n]+)`")


def render(template: Path, **values: Any) -> str:
    """The page that a template makes, fit to be written as UTF-8.

    Args:
        template: its file; it may import the macros of this room.
        values: escaped unless they are `Markup`.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = _environment(template.parent)
    page = environment.get_template(template.name).render(
        style=Markup(style), policy=policy, **values
    )
    # what a learner's process prints may hold lone surrogates, which no file can
    return page.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "replace"
    )


def chapter_name(chapter: str) -> str:
    """`03_one_hot_and_losses` as people write it: "03 · One hot and losses"."""
    number, _, words = chapter.partition("_")
    if not (number.isdigit() and words):
        return chapter
    words = words.replace("_", " ")
    return f"{number} · {words[0].upper()}{words[1:]}"


def number(value: float) -> str:
    """Points as people write them: at most two decimals, and none in vain."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def counted(count: int, noun: str) -> str:
    """ "1 exercise", "3 exercises"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sentence(text: str) -> Markup:
    """Words of the course or of the instructor: `code` between backticks is set
    as code, everything else is plain text."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def paragraphs(text: str) -> list[Markup]:
    """The same, one for each part between empty lines."""
    parts = re.split(r"\n\s*\n", text.strip())
    return [sentence(part) for part in parts if part]


@cache
def _style() -> str:
    return (_ROOM / "style.css").read_text(encoding="utf-8")


@cache
def _environment(room: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([room, _ROOM]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "sentence": sentence,
        "paragraphs": paragraphs,
        "chapter_name": chapter_name,
    }
    environment.globals["counted"] = counted
    return environment
