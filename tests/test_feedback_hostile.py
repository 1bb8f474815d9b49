"""What a learner hands in never does anything in a browser: neither on the
feedback page, nor in the class report, nor where formgrader, nbconvert or JupyterLab
renders the autograded notebook.
"""

from __future__ import annotations

import base64
import copy
import http.server
import random
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from feedback_samples import (
    check,
    code_cell,
    display,
    exercise,
    exercise_cells,
    image,
    in_formgrader,
    locked,
    notebook,
    read,
    solution,
    stream,
)
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode

from course_grader.feedback import (
    Mark,
    class_report,
    page,
    page_without_report,
    sanitise,
)
from course_grader.judge.report import SubmissionReport, Verdict

# Asks the page's own server for "pwned", without a quote or a bracket that
# Markdown or HTML would trip over.
X = "fetch(/pwned/.source)"
IN_BASE64 = base64.b64encode(f"<script>{X}</script>".encode()).decode()

PAYLOADS = {
    "script": f"<script>{X}</script>",
    "script in capitals": f"<ScRiPt >{X}</sCrIpT >",
    "script with slash": f"<script/x>{X}</script>",
    "script doubled": f"<<script>{X}//<</script>",
    "script by source": "<script src=/pwned.js></script>",
    "img onerror": f"<img src=x onerror={X}>",
    "img quoted": f'<img src="x" onerror="{X}">',
    "img slashes": f"<img/src=x/onerror={X}>",
    "img newline": f"<img src=x\nonerror={X}>",
    "img remote": "<img src=/pwned.png>",
    "svg onload": f"<svg onload={X}>",
    "svg script": f"<svg><script>{X}</script></svg>",
    "svg animate": f"<svg><animate onbegin={X} attributeName=x dur=1s>",
    "svg foreign": f"<svg><foreignObject><img src=x onerror={X}>",
    "svg style": f"<svg></p><style><a id='</style><img src=x onerror={X}>'>",
    "math": f"<math><mtext><table><mglyph><style><img src=x onerror={X}>",
    "math href": f"<math><a xlink:href='javascript:{X}'>x</a></math>",
    "iframe": f'<iframe src="javascript:{X}"></iframe>',
    "iframe srcdoc": f"<iframe srcdoc='&lt;script&gt;{X}&lt;/script&gt;'>",
    "iframe data": f"<iframe src=data:text/html;base64,{IN_BASE64}></iframe>",
    "object": f"<object data='javascript:{X}'></object>",
    "embed": f"<embed src='data:text/html;base64,{IN_BASE64}'>",
    "form": f"<form action='javascript:{X}'><button>go</button></form>",
    "formaction": f"<button formaction='javascript:{X}'>go</button>",
    "a javascript": f'<a href="javascript:{X}">x</a>',
    "a entity": f'<a href="&#106;avascript:{X}">x</a>',
    "a newline": f'<a href="java&#10;script:{X}">x</a>',
    "a control": f'<a href="\x01javascript:{X}">x</a>',
    "a data": f'<a href="data:text/html;base64,{IN_BASE64}">x</a>',
    "a ping": '<a href="https://example.org" ping="/pwned">x</a>',
    "area": f"<map><area href='javascript:{X}'></map>",
    "meta refresh": f'<meta http-equiv=refresh content="0;url=javascript:{X}">',
    "meta to": '<meta http-equiv="refresh" content="0;url=/pwned">',
    "link": "<link rel=stylesheet href=/pwned.css>",
    "link preload": "<link rel=preload as=image href=/pwned.png>",
    "base": '<base href="/pwned/">',
    "style import": "<style>@import '/pwned.css';</style>",
    "style url": "<style>*{background:url(/pwned.png)}</style>",
    "style attribute": "<p style='background:url(/pwned.png)'>x</p>",
    "details": f"<details open ontoggle={X}>x</details>",
    "summary": f"<details><summary onclick={X}>x</summary></details>",
    "video": f"<video><source onerror={X}></video>",
    "audio": f"<audio src=x onerror={X}>",
    "input": f"<input autofocus onfocus={X}>",
    "select": f"<select autofocus onfocus={X}>",
    "textarea": f"<textarea autofocus onfocus={X}>",
    "body": f"<body onload={X}>",
    "marquee": f"<marquee onstart={X}>",
    "background": "<table background=/pwned.png><td>x</table>",
    "any tag": f"<x onpointerover={X} tabindex=0 onfocus={X} autofocus>",
    "b": f"<b/onmouseover={X}>x</b>",
    "template": f"<template><script>{X}</script></template>",
    "noscript": f"<noscript><p title='</noscript><img src=x onerror={X}>'>",
    "comment": f"<!--><script>{X}</script>-->",
    "comment of IE": f"<!--[if true]><script>{X}</script><![endif]-->",
    "cdata": f"<![CDATA[<script>{X}</script>]]>",
    "instruction": f"<?xml version='1.0'?><script>{X}</script>",
    "declaration": f"<!DOCTYPE x [<!ENTITY a '<script>{X}</script>'>]>&a;",
    "out of an attribute": f'"><script>{X}</script>',
    "out of an attribute 2": f"'><img src=x onerror={X}>",
    "into an attribute": f'" onmouseover="{X}" autofocus onfocus="{X}" x="',
    "out of pre": f"</code></pre></div><script>{X}</script>",
    "out of anything": (
        f"</title></textarea></style></script></noscript><script>{X}</script>"
    ),
    "entities": f"&lt;script&gt;{X}&lt;/script&gt;",
    "escapes": f"\\u003cscript\\u003e{X}\\u003c/script\\u003e",
    "template language": "{{ [].__class__.__base__ }}{% raw %}<script>{% x",
    "md javascript": f"[x](javascript:{X})",
    "md capitals": f"[x](JaVaScRiPt:{X})",
    "md entity": f"[x](&#106;avascript:{X})",
    "md colon": f"[x](javascript&colon;{X})",
    "md tab": f"[x](java&Tab;script:{X})",
    "md newline": f"[x](java\nscript:{X})",
    "md escape": f"[x](javascript\\:{X})",
    "md space": f"[x]( \t javascript:{X} )",
    "md brackets": f"[x](<javascript:{X}>)",
    "md brackets newline": f"[x](<java\nscript:{X}>)",
    "md title": f"[x](https://e.org '\" onmouseover=\"{X}')",
    "md quote": f'[x](https://e.org" onmouseover="{X})',
    "md data": f"[x](data:text/html;base64,{IN_BASE64})",
    "md vbscript": f"[x](vbscript:{X})",
    "md nested": f"[![x](javascript:{X})](javascript:{X})",
    "md relative": "[x](/logout)",
    "md reference": f"[x][r]\n\n[r]: javascript:{X}",
    "md reference below": f"[r]\n\n[r]:\n  javascript:{X}",
    "md reference brackets": f"[r]\n\n[r]: <javascript:{X}> 'title'",
    "md reference quoted": f"[r]\n\n> [r]:\n> javascript:{X}",
    "md reference entity": f"[r]\n\n[r]: &#x6A;avascript:{X}",
    "md autolink": f"<javascript:{X}>",
    "md image": f"![x](javascript:{X})",
    "md image remote": "![x](/pwned.png)",
    "md image reference": "![x][i]\n\n[i]: https://e.org/pwned.png",
    "md image shortcut": "![i]\n\n[i]: /pwned.png",
    "md image svg": f"![x](data:image/svg+xml;base64,{IN_BASE64})",
    "md image alt": f'![a" onerror="{X}](attachment:good.png)',
    "md attachment": "![x](attachment:good.png)",
    "md attachment missing": "![x](attachment:missing.png)",
    "md attachment svg": "![x](attachment:bad.svg)",
    "md mermaid": f"```mermaid\n<img src=x onerror={X}>\n```",
    "md mermaid tildes": f"~~~ mermaid\n<img src=x onerror={X}>\n~~~",
    "md mermaid escaped": f"```\\mermaid\n<img src=x onerror={X}>\n```",
    "md mermaid long": f"```{' ' * 300}mermaid-x\n<svg onload={X}>\n```",
    "md mermaid click": f'```mermaid\nclick A "javascript:{X}"\n```',
    "md code": f"`<script>{X}</script>` ```<img src=x onerror={X}>```",
    "md code open": f"`<script>{X}</script>",
    "md fence": f"```html\n<script>{X}</script>\n```",
    "md fence info": f'```x"><script>{X}</script>\ny\n```',
    "md fence class": "```python tex2jax_process\n$\\href{x}{y}$\n```",
    "md math": f"$<img src=x onerror={X}>$ $$<script>{X}</script>$$",
    "md math href": f"$\\href{{javascript:{X}}}{{x}}$",
    "md math html": "$$\\require{html}\\class{a}{b}\\cssId{c}{d}$$",
    "md environment": f"\\begin{{a}}<script>{X}</script>\\end{{a}}",
    "md table": f"| a |\n|---|\n| <script>{X}</script> |",
    "md quote block": f"> <script>{X}</script>",
    "md heading": f"# <script>{X}</script> [x](javascript:{X})",
    "md list": f"- <img src=x onerror={X}>\n  <script>{X}</script>",
    "md old line ends": f"x\r<script>{X}</script>\r[x](javascript:{X})",
    "md deep": "> " * 400 + "x",
    "ansi": f"\x1b[31m<script>{X}</script>\x1b[0m",
    "ansi split": f"<scr\x1b[0mipt>{X}</scr\x1b[1mipt>",
    "ansi link": f"\x1b]8;;javascript:{X}\x07x\x1b]8;;\x07",
    "nul": f"<scr\x00ipt>{X}</scr\x00ipt>",
    "surrogate": f"\ud800<script>{X}</script>\udfff",
    "bidi": f"\u202e<script>{X}</script>\u2066",
    "wide": f"\uff1cscript\uff1e{X}\uff1c/script\uff1e",
}


TEXT_KINDS = (
    *("text/html", "text/plain", "text/latex", "text/markdown"),
    *("text/vnd.mermaid", "image/svg+xml", "image/gif", "application/pdf"),
    *("application/javascript", "application/json"),
    "application/vnd.jupyter.widget-view+json",
    "application/vnd.bokehjs_exec.v0+json",
)
PICTURES = ("image/png", "image/jpeg")
EXERCISES = 6


def hostile_outputs(payload: str) -> list[Any]:
    """The payload in every place of every kind of output."""
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'>{payload}</svg>"
    in_base64 = base64.b64encode(svg.encode(errors="replace")).decode()
    metadata = {
        "isolated": True,
        "filenames": dict.fromkeys((*TEXT_KINDS, *PICTURES), payload),
        "filename": payload,
    }
    outputs: list[Any] = [
        stream(payload),
        stream(payload, payload),
        stream([payload, payload], "stderr"),
        stream({"text": payload}),
        {
            "output_type": "error",
            "ename": payload,
            "evalue": payload,
            "traceback": [payload, payload, {payload: payload}],
        },
        {
            "output_type": "execute_result",
            "execution_count": payload,
            "data": {"text/plain": payload},
            "metadata": {payload: payload},
        },
        {"output_type": payload, "data": {"text/html": payload}},
        display({"text/html": payload}, **{"text/html": {"isolated": True}}),
        display(payload),
        payload,
        {},
    ]
    for kind in TEXT_KINDS:
        outputs += [
            display({kind: value}, **metadata)
            for value in (payload, {"model_id": payload})
        ]
    for kind in PICTURES:
        sizes = {kind: {"width": payload, "height": payload, "alt": payload}}
        outputs += [
            display({kind: value}, **metadata, **sizes)
            for value in (
                payload,
                [payload],
                {"a": payload},
                in_base64,
                image() + payload,
                f'{image()}" onload="{X}',
                image("PNG"),
                image("JPEG"),
            )
        ]
    return outputs


def hostile_cells(payload: str) -> list[Any]:
    """Cells with the payload in every place that a learner can fill. The
    outputs are shared among exercises `e0`, `e1`, ... so that a page, which
    limits them for each exercise, shows all."""
    metadata = {
        "tags": [payload],
        "name": payload,
        "magics_language": payload,
        "format": "text/html",
        "raw_mimetype": "text/html",
        payload: payload,
    }
    text = {
        "source": payload,
        "metadata": metadata,
        "attachments": {
            "good.png": {"image/png": image()},
            "bad.svg": {"image/svg+xml": image(), "image/png": payload},
            payload: {"text/html": payload, "image/png": image()},
        },
    }
    outputs = hostile_outputs(payload)
    cells: list[Any] = [
        {"cell_type": "markdown", "id": payload, **text},
        {"cell_type": "raw", "id": "twice", **text},
        {"cell_type": payload, "id": "twice", **text},
        code_cell(payload, outputs[:3], execution_count=payload),
        code_cell([payload], nbgrader=locked(payload, 3)),
        code_cell(payload, payload, nbgrader=solution("mean_loss")),
        code_cell(
            payload,
            nbgrader=locked("points_hidden", 3)
            | {"points": payload, "comment": payload, payload: payload},
        ),
        payload,
    ]
    cells += exercise_cells("e0", payload, outputs[:10])
    cells += [
        code_cell("1", outputs[10 * n :][:10], nbgrader=solution(f"e{n}"))
        for n in range(1, EXERCISES)
    ]
    assert len(outputs) <= 10 * EXERCISES
    cells = copy.deepcopy(cells)
    for cell in cells:
        if isinstance(cell, dict):
            cell["metadata"] = {**metadata, **cell["metadata"]}
    return cells


def attacked(*payloads: str) -> NotebookNode:
    """A notebook with the payloads in its cells, and the first one in its
    metadata."""
    first = payloads[0]
    metadata = {
        "title": first,
        "authors": [{"name": first}],
        "language": first,
        "kernelspec": {"name": first, "display_name": first},
        "language_info": {"name": first, "pygments_lexer": first},
        "widgets": {
            "application/vnd.jupyter.widget-state+json": {
                "state": {first: {"model_name": first}}
            }
        },
        "course": {"report": first},
        first: first,
    }
    cells = [cell for one in payloads for cell in hostile_cells(one)]
    return notebook(cells, metadata)


def hostile_report(payload: str) -> SubmissionReport:
    """Words of the judge that come from nowhere near the judge."""
    checks = [
        replace(check("x", verdict), says=payload, message=payload)
        for verdict in Verdict
    ]
    exercises = [
        replace(exercise(f"e{n}", checks[n:][:2], payload), title=payload)
        for n in range(EXERCISES)
    ]
    return SubmissionReport(
        payload, 1, tuple(exercises), (payload,), "", (payload,)
    )


# What is dangerous in HTML, wherever it comes from.

ACTIVE_TAGS = re.compile(
    "script|i?frame|frameset|object|embed|applet|portal|form|button|select|"
    "textarea|base|link|meta|template|audio|video|source|math|svg|noscript|"
    "marquee|map|area|style|body|html|title|x"
)


def dangers(html: str) -> Counter[str]:
    """Everything on a page that runs, loads, sends or restyles."""
    found: Counter[str] = Counter()
    seen = read(html)
    for comment in seen.others:  # browsers do not agree on where they end
        found[f"<!{comment}"] += 1
    for tag, attributes in seen.tags:
        if ACTIVE_TAGS.fullmatch(tag):
            found[f"<{tag} {sorted(attributes.items())}>"] += 1
        if tag == "input" and attributes.get("type") != "checkbox":
            found[f"<input {attributes}>"] += 1
        for name, value in attributes.items():
            url = re.sub(r"[\x00-\x20]", "", value).lower()
            if name.startswith("on") or name in ("srcdoc", "ping", "xmlns"):
                found[f"{tag} {name}={value}"] += 1
            if name in (
                "src",
                "data",
                "background",
                "poster",
                "srcset",
            ) and not (
                re.fullmatch(r"data:image/(png|jpeg);base64,[\w+/=]+", url)
            ):
                found[f"{tag} {name}={value[:80]}"] += 1
            if name in ("href", "action", "formaction", "xlink:href") and not (
                re.match(r"https?://|mailto:|#|attachment:", url)
            ):
                found[f"{tag} {name}={value[:80]}"] += 1
            if name == "style" and re.search(r"url|expression|position", url):
                found[f"{tag} style={value}"] += 1
            if name == "class" and re.search(r"mermaid|tex2jax", url):
                found[f"{tag} class={value}"] += 1
    return found


def in_nbconvert(notebook: NotebookNode) -> str:
    """What `jupyter nbconvert --to html` makes of it."""
    html, _ = HTMLExporter().from_notebook_node(notebook)
    return html


RENDERERS = {"formgrader": in_formgrader, "nbconvert": in_nbconvert}


@pytest.fixture(params=RENDERERS)
def render(request: pytest.FixtureRequest) -> Callable[[NotebookNode], str]:
    return RENDERERS[request.param]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("first", range(0, len(PAYLOADS), 12))
def test_an_autograded_notebook_renders_to_nothing_active(
    first: int, render: Callable[[NotebookNode], str]
) -> None:
    payloads = list(PAYLOADS.values())[first : first + 12]
    clean = sanitise(attacked(*payloads))
    nbformat.validate(clean)
    found = dangers(render(clean)) - dangers(render(sanitise(notebook([]))))
    # formgrader asks for points and comments in fields of its own
    fields = ("<input", "<textarea", "<button")
    assert [one for one in found if not one.startswith(fields)] == []


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.slow
def test_the_same_notebook_is_dangerous_unless_sanitised() -> None:
    """The test above can fail: nbconvert alone lets most payloads through."""
    empty = dangers(in_nbconvert(notebook([])))
    caught = {}
    for name, payload in PAYLOADS.items():
        cells = [
            {
                "cell_type": "markdown",
                "id": "a",
                "metadata": {},
                "source": payload,
                "attachments": {
                    "bad.svg": {"image/svg+xml": image()},
                    "good.png": {"image/png": image()},
                },
            },
            code_cell("1", [display({"text/html": payload})]),
        ]
        try:
            html = in_nbconvert(notebook(cells))
        except Exception:
            caught[name] = True  # formgrader shows an error page for this one
        else:
            caught[name] = bool(dangers(html) - empty)
    harmless = {name for name, found in caught.items() if not found}
    assert harmless <= {
        "entities",
        "escapes",
        "template language",
        "declaration",
        "into an attribute",
        "ansi split",
        "nul",
        "md title",
        "md quote",
        "md newline",
        "md brackets newline",
        "md image alt",
        "md attachment",
        "md mermaid escaped",
        "md mermaid long",
        "md code",
        "md fence",
        "md fence info",
        "md fence class",
        "md math",
        "md math href",
        "md math html",
        "md environment",
        "md deep",
        "ansi link",
        "wide",
    }


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_feedback_page_holds_no_more_than_its_own_elements(name: str) -> None:
    payload = PAYLOADS[name]
    report = hostile_report(payload)
    marks = [Mark("e0", 1, 4, payload), Mark(payload, 1, 2, payload)]
    words = {"student": payload, "submitted": payload}
    hostile = attacked(payload)
    pages = [
        page(report, hostile, manual=marks, **words),
        page(replace(report, refused=payload), hostile, **words),
        page_without_report(payload, hostile, marks=marks, **words),
        class_report(
            payload,
            {payload: report, f"{payload}2": replace(report, refused=payload)},
        ),
    ]
    for html in pages:
        html.encode()  # every page can be written
        only_our_own(html)


OUR_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header"),
    *("section", "nav", "div", "span", "p", "b", "h1", "h2", "h3", "bdi", "br"),
    *("ul", "ol", "li", "a", "details", "summary", "pre", "code", "figure"),
    *("img", "svg", "circle", "path", "rect", "line", "text", "table"),
    *("caption", "thead", "tbody", "tr", "th", "td"),
    # of a learner's HTML output
    *("blockquote", "dd", "dl", "dt", "em", "h4", "h5", "h6", "hr", "i", "kbd"),
    *("s", "small", "strong", "sub", "sup", "tfoot", "u"),
}
OUR_ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id"),
    *("href", "src", "alt", "width", "height", "role", "scope", "colspan"),
    *("rowspan", "tabindex", "open", "aria-label", "aria-labelledby"),
    *("aria-hidden", "focusable", "viewbox", "preserveaspectratio", "d"),
    *("data-exercise", "data-points"),
    *("cx", "cy", "r", "x", "y", "rx", "x1", "x2", "y1", "y2", "text-anchor"),
}


def only_our_own(html: str) -> None:
    seen = read(html)
    assert {tag for tag, _ in seen.tags} <= OUR_TAGS
    assert {a for _, names in seen.tags for a in names} <= OUR_ATTRIBUTES
    assert seen.others == []
    assert len(seen.styles) == 1
    assert "url(" not in seen.styles[0]
    assert "@import" not in seen.styles[0]
    metas = {
        m.get("http-equiv") or m.get("name") or "charset"
        for m in seen.all("meta")
    }
    assert metas == {
        "charset",
        "Content-Security-Policy",
        "viewport",
        "referrer",
        "color-scheme",
    }
    for a in seen.all("a"):
        assert re.fullmatch(r"#exercise-\d+", a["href"])
    for img in seen.all("img"):
        assert re.fullmatch(
            r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+", img["src"]
        )


def test_markdown_put_together_at_random_stays_harmless(
    render: Callable[[NotebookNode], str],
) -> None:
    """Pieces that are harmless alone must not add up to something active."""
    pieces = [
        *(
            "[",
            "]",
            "(",
            ")",
            "!",
            "<",
            ">",
            "`",
            "```",
            "~~~",
            "$",
            "$$",
            "\\",
        ),
        *(
            "\n",
            "\n\n",
            "    ",
            "> ",
            "- ",
            "|",
            "&#106;",
            "&lt;",
            ":",
            '"',
            "'",
        ),
        *("javascript:", X, "https://e.org", "attachment:good.png", "mermaid"),
        *("<script>", "</script>", "<img src=x onerror=", "<b>", "<details>"),
        *("[r]", "[r]: ", "](", "]:", "\\begin{a}", "\\end{a}", "\r", "a", "*"),
    ]
    drawn = random.Random(20)
    cells = []
    for number in range(200):
        source = "".join(drawn.choices(pieces, k=drawn.randrange(2, 30)))
        cells.append(
            {
                "cell_type": "markdown",
                "id": f"cell-{number}",
                "metadata": {},
                "source": source,
                "attachments": {"good.png": {"image/png": image()}},
            }
        )
    made = sanitise(notebook(cells))
    assert dangers(render(made)) - dangers(render(notebook([]))) == Counter()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="needs the browser chromium"
)
def test_a_browser_runs_and_loads_nothing(tmp_path: Path) -> None:
    """All payloads at once in a real browser, each page in a frame of its own; a
    page without sanitising shows that the browser would have told."""
    hits: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, directory=str(tmp_path), **kwargs)

        def do_GET(self) -> None:
            hits.append(self.path)
            super().do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    def visit(names: list[str]) -> list[str]:
        """What the pages asked for besides themselves."""
        frames = "".join(f"<iframe src='{name}'></iframe>" for name in names)
        (tmp_path / "index.html").write_text(f"<!DOCTYPE html>{frames}")
        hits.clear()
        port = server.server_address[1]
        subprocess.run(
            [
                *("chromium", "--headless", "--no-sandbox", "--disable-gpu"),
                f"--user-data-dir={tmp_path / 'profile'}",
                *("--virtual-time-budget=20000", "--dump-dom"),
                f"http://127.0.0.1:{port}/index.html",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        assert "/index.html" in hits
        assert {f"/{name}" for name in names} <= set(hits)
        return [hit for hit in hits if "pwned" in hit]

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    payloads = list(PAYLOADS.values())
    pages = {
        f"graded-{n}.html": in_nbconvert(
            sanitise(attacked(*payloads[n : n + 12]))
        )
        for n in range(0, len(payloads), 12)
    } | {
        f"page-{n}.html": page(hostile_report(one), attacked(one), student=one)
        for n, one in enumerate(payloads)
    }
    for name, html in pages.items():
        (tmp_path / name).write_text(html, encoding="utf-8")
    names = list(pages)
    raw = notebook(
        [code_cell("1", [display({"text/html": PAYLOADS["img onerror"]})])]
    )
    (tmp_path / "raw.html").write_text(in_nbconvert(raw), encoding="utf-8")
    try:
        assert visit(["raw.html"]) != []
        for first in range(0, len(names), 20):
            assert visit(names[first : first + 20]) == []
    finally:
        server.shutdown()
        server.server_close()
