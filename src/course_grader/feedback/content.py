"""What of a learner's notebook may be shown, and in which form.

Everything in a submitted notebook may be hostile, its structure included: nbformat
only logs what does not fit the schema. The functions here take any value and
give back something short and harmless, or nothing.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import nh3
from PIL import Image

from course_grader.judge.report import TERMINAL, whole

LONGEST_TEXT = 20_000
"""Characters of one text that are shown."""
LONGEST_HTML = 100_000
"""Characters of one HTML output; longer ones are dropped."""
MOST_TAGS = 4_000
"""Tags of one HTML output; an output with more is dropped. Parsing takes time that
grows with the square of the number of tags left open."""
LARGEST_IMAGE_BYTES = 3_000_000
"""Decoded bytes of one picture; larger ones are dropped."""
LARGEST_IMAGE_SIDE = 8_192
"""Width and height, in pixels, of one picture; larger ones are dropped."""

_HTML_TAGS = (
    "b blockquote br caption code dd div dl dt em h1 h2 h3 h4 h5 h6 hr i kbd li "
    "ol p pre s small span strong sub sup table tbody td tfoot th thead tr u ul"
)

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


@dataclass(frozen=True)
class Picture:
    """A picture whose bytes were looked at.

    Attributes:
        mime: `image/png` or `image/jpeg`.
        data: its bytes in base64, without line breaks.
        width: in pixels.
        height: in pixels.
    """

    mime: str
    data: str
    width: int
    height: int

    @property
    def url(self) -> str:
        return f"data:{self.mime};base64,{self.data}"


@dataclass(frozen=True)
class Output:
    """One output of a cell, ready to be shown.

    Attributes:
        kind: `html` is markup that has been cleaned; the others but `picture`
            are plain text that still has to be escaped.
        text: the text or the markup.
        picture: set where `kind` is `picture`.
    """

    kind: Literal["text", "stderr", "error", "html", "picture"]
    text: str = ""
    picture: Picture | None = None


def text_of(value: Any) -> str:
    """What a notebook holds where it should hold a text: a string, or a list of
    strings that belong together. Empty for anything else."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return whole("".join(value))
    return ""


def plain(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Text without terminal sequences, control characters and characters that
    turn the direction of writing; what a carriage return overwrites is gone.

    Args:
        value: what the notebook holds.
        longest: characters kept; a longer text loses its middle and says so.
    """
    text = text_of(value).replace("\r\n", "\n")
    if len(text) > 20 * longest:
        text = _without_middle(text, 10 * longest)
    lines = TERMINAL.sub("", text).split("\n")
    text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return _without_middle(_CONTROLS.sub("", text), longest)


def code(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Source code with the characters that deceive a reader written out as
    escapes; a longer one loses its middle and says so."""
    text = text_of(value).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub(_escape, _without_middle(text, longest))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head, tail = longest * 3 // 4, longest // 4
    left_out = len(text) - head - tail
    return (
        f"{text[:head]}\n[… {left_out:,} characters left out …]\n"
        f"{text[len(text) - tail :]}"
    )


def picture(value: Any, mime: str) -> Picture | None:
    """The picture that a notebook holds in base64, if it is one.

    Args:
        value: what the notebook holds under `mime`.
        mime: `image/png` or `image/jpeg`.
    Returns:
        None unless the bytes are a PNG or JPEG, as `mime` says, of a size that
        a browser shows without trouble. The pixels are not decoded.
    """
    encoded = "".join(text_of(value).split())
    if not encoded or len(encoded) > LARGEST_IMAGE_BYTES * 4 // 3 + 4:
        return None
    try:
        raw = base64.b64decode(encoded, validate=True)
        with warnings.catch_warnings():
            # Pillow warns of decompression bombs, which the sides tell as well.
            warnings.simplefilter("error")
            with Image.open(io.BytesIO(raw), formats=("PNG", "JPEG")) as image:
                kind, (width, height) = image.format, image.size
    except (binascii.Error, OSError, ValueError, SyntaxError, Warning):
        return None
    except Image.DecompressionBombError:
        return None
    if kind != {"image/png": "PNG", "image/jpeg": "JPEG"}.get(mime):
        return None
    if not 0 < min(width, height) <= max(width, height) <= LARGEST_IMAGE_SIDE:
        return None
    data = base64.b64encode(raw).decode("ascii")
    return Picture(mime, data, width, height)


def clean_html(value: Any) -> str:
    """Tables, lists and plain text formatting out of an HTML output: no links, no
    pictures, no attributes but the spans of table cells. Empty if nothing of it
    can be read."""
    markup = text_of(value)
    if len(markup) > LONGEST_HTML or markup.count("<") > MOST_TAGS:
        return ""
    cleaned = nh3.clean(
        _CONTROLS.sub("", markup),
        tags=set(_HTML_TAGS.split()),
        clean_content_tags={"script", "style"},
        attributes={"td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
        attribute_filter=_only_small_spans,
        url_schemes=set(),
        strip_comments=True,
    )
    return cleaned if nh3.clean(cleaned, tags=set()).strip() else ""


def _only_small_spans(tag: str, attribute: str, value: str) -> str | None:
    return value if re.fullmatch(r"[1-9]\d?", value, re.ASCII) else None


def outputs_of(cell: Mapping[str, Any]) -> Iterator[Output]:
    """The outputs of a code cell that can be shown, in order; of one that comes
    in several forms the best. SVG, scripts and widgets are not among them."""
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, Mapping):
            shown = _shown(output)
            if shown is not None:
                yield shown


def _shown(output: Mapping[str, Any]) -> Output | None:
    kind = output.get("output_type")
    if kind == "stream":
        text = plain(output.get("text")).strip("\n")
        stderr = output.get("name") == "stderr"
        return Output("stderr" if stderr else "text", text) if text else None
    if kind == "error":
        text = error_line(output)
        lines = output.get("traceback")
        if isinstance(lines, list):
            trace = plain("\n".join(text_of(line) for line in lines)).strip()
            text = trace or text
        return Output("error", text)
    data = output.get("data")
    if kind in ("display_data", "execute_result") and isinstance(data, Mapping):
        return _best(data)
    return None


def error_line(output: Mapping[str, Any]) -> str:
    """The last line of an error output: its type and what it says."""
    name = plain(output.get("ename"), 200) or "Error"
    said = plain(output.get("evalue"), 2_000)
    return f"{name}: {said}" if said else name


def _best(data: Mapping[str, Any]) -> Output | None:
    for mime in ("image/png", "image/jpeg"):
        found = picture(data.get(mime), mime)
        if found is not None:
            return Output("picture", picture=found)
    text = plain(data.get("text/plain")).strip("\n")
    markup = clean_html(data.get("text/html"))
    only_a_name = re.fullmatch(r"<[\w.]+ object.*>", text) is not None
    if markup and ("<table>" in markup or not text or only_a_name):
        return Output("html", markup)
    for mime in ("text/latex", "text/markdown"):
        if not text or only_a_name:
            text = plain(data.get(mime)) or text
    return Output("text", text) if text else None
