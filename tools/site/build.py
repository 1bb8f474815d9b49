"""`make site`: the course as a static site, with figures and outputs.

Runs the learners' notebooks, as many at a time as there are processors, and keeps
the results in build/site/runs until a notebook, `course_utils` or torch changes.
Solutions and hidden tests are not among what it reads. Then Sphinx makes pages of
them; nothing is downloaded, and no page needs the network.

    .venv/bin/python tools/site/build.py [--to DIR] [--course DIR]
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from traitlets.config import Config

from course_grader.chapter.claims import Claim, read_claims
from course_grader.chapter.links import titles_of
from course_grader.chapter.notebook import (
    END_CELL_ID,
    INSTALL_CELL_ID,
    grade_cell_id,
)
from course_grader.chapter.readme import table_of_chapters
from course_grader.chapter.source import Chapter, Role, read_chapter
from course_grader.chapter.statements import (
    Place,
    Statement,
    in_reading_order,
    read_statements,
)
from course_grader.course import Course, find_course
from course_utils.widgets import FRAMES

HERE = Path(__file__).resolve().parent

_INDEX = """\
# PyTorch training tricks

Each chapter takes one trick, shows what goes wrong without it, why it works, and
what it costs. Popular claims are run against PyTorch itself ([the list](claims.md)),
and so is what the chapters say themselves ([the list](statements.md)). Then you write the trick yourself, in a notebook that checks you as you go.

These pages were made by running the notebooks with PyTorch {torch} on {device}.
To work on a chapter, open its notebook: [how](learners.md).

{pictures}

## The chapters

```{{container}} stacked chapters
{chapters}
```

```{{toctree}}
:hidden:
:caption: Chapters
{names}
```

```{{toctree}}
:hidden:
:caption: More
claims
statements
learners
```
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--course", type=Path, default=HERE.parent.parent)
    parser.add_argument("--to", type=Path, help="build/site/html if not given")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    started = time.perf_counter()
    course = find_course(args.course)
    build = course.root / "build" / "site"
    ran = run_chapters(course, build / "runs", args.workers)
    pages = build / "pages"
    write_pages(course, ran, pages)
    to = (args.to or build / "html").resolve()
    shutil.rmtree(to, ignore_errors=True)
    made = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning"),
            *("--jobs", str(args.workers), "--conf-dir", str(HERE)),
            f"--define=html_static_path={pages / '_static'}",
            *("--doctree-dir", str(build / "doctrees"), str(pages), str(to)),
        ]
    )
    if made.returncode:
        sys.exit("The site is not made: Sphinx's message above says why.")
    seconds = time.perf_counter() - started
    print(f"The site is in {to} ({seconds:.0f} s): open index.html.")


# Running the notebooks.


def run_chapters(
    course: Course, kept: Path, workers: int
) -> dict[str, NotebookNode]:
    """Every chapter's notebook with its outputs; only what changed is run."""
    kept.mkdir(parents=True, exist_ok=True)
    shared = hashlib.sha256(inspect.getsource(_run).encode())
    package = course.root / "src" / "course_utils"
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".json"):
            shared.update(path.read_bytes())
    for name in ("torch", "matplotlib", "numpy", "scikit-learn", "torchinfo"):
        shared.update(f"{name} {version(name)}".encode())
    paths = {}
    for name in course.chapters():
        notebook = course.notebook_of(name).read_bytes()
        digest = hashlib.sha256(shared.digest() + notebook).hexdigest()[:16]
        paths[name] = kept / f"{name}-{digest}.ipynb"
    for old in set(kept.iterdir()) - set(paths.values()):
        old.unlink()
    missing = [name for name in paths if not paths[name].exists()]
    with ProcessPoolExecutor(workers) as pool:
        running = [
            pool.submit(_run, str(course.notebook_of(name)), str(paths[name]))
            for name in missing
        ]
        for name, one in zip(missing, running, strict=True):
            why = one.result()
            if why:
                sys.exit(f"{name} does not run: {why}")
            print(f"{name}: run", flush=True)
    return {
        name: nbformat.read(path, as_version=4) for name, path in paths.items()
    }


def _run(source: str, target: str) -> str | None:
    """Runs one notebook; what was wrong, if anything was."""
    os.environ["COURSE_UTILS_FRAMES"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(source, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        sockets = {"transport": "ipc", "ip": f"{folder}/kernel"}
        client = NotebookClient(
            notebook,
            timeout=None,
            kernel_name="python3",
            config=Config({"KernelManager": sockets}),
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            return str(error)
    part = Path(target).with_suffix(".part")
    nbformat.write(notebook, part)
    part.rename(target)
    return None


# Pages for Sphinx.


def write_pages(
    course: Course, ran: dict[str, NotebookNode], pages: Path
) -> None:
    """The pages' sources: notebooks, start page, claims, statements,
    pictures."""
    shutil.rmtree(pages, ignore_errors=True)
    static = pages / "_static"
    static.mkdir(parents=True)
    for name in ("site.css", "site.js"):
        shutil.copyfile(HERE / name, static / name)
    pictures = Pictures(static)
    chapters = {name: read_chapter(course.source_of(name)) for name in ran}
    stated = {
        name: in_reading_order(read_statements(course, name), chapters[name])
        for name in ran
    }
    teasers = []
    for name, notebook in ran.items():
        saying = {place.cell_id for place, _ in stated[name]}
        page = chapter_page(chapters[name], notebook, pictures, saying)
        nbformat.write(page, pages / f"{name}.ipynb")
        if pictures.latest:
            source, alt = pictures.latest
            teasers.append((name, source, alt))
            pictures.latest = None
    titles = titles_of(course)
    shown = "\n".join(
        f'<a href="{name}.html"><img class="figure dark-light" src="{source}" '
        f'alt="{html.escape(titles[name])}: {html.escape(alt)}"></a>'
        for name, source, alt in teasers[3:7] or teasers
    )
    table = table_of_chapters(course).replace("notebooks/", "")
    (pages / "index.md").write_text(
        _INDEX.format(
            torch=version("torch").partition("+")[0],
            device="a CPU",
            pictures=f'<div class="figures">\n{shown}\n</div>' if shown else "",
            chapters=re.sub(r"\((\w+)/\1\.ipynb\)", r"(\1.ipynb)", table),
            names="\n".join(ran),
        ),
        encoding="utf-8",
    )
    (pages / "claims.md").write_text(
        claims_page(read_claims(course), titles), encoding="utf-8"
    )
    (pages / "statements.md").write_text(
        statements_page(stated, titles), encoding="utf-8"
    )
    learners = HERE.parent.parent / "docs" / "learners.md"
    shutil.copyfile(learners, pages / "learners.md")


class Pictures:
    """Writes pictures of outputs as files, each once.

    Attributes:
        latest: source and words of the last one, as a page shows it.
    """

    def __init__(self, static: Path) -> None:
        self.folder = static / "figures"
        self.folder.mkdir()
        self.latest: tuple[str, str] | None = None

    def source(self, png: str) -> str:
        """Where a page finds a PNG that comes in base64."""
        content = base64.b64decode(png)
        name = hashlib.sha256(content).hexdigest()[:16] + ".png"
        (self.folder / name).write_bytes(content)
        return f"_static/figures/{name}"

    def img(self, png: str, alt: str) -> str:
        source = self.source(png)
        self.latest = source, alt
        words = html.escape(alt)
        return f'<img class="figure dark-light" src="{source}" alt="{words}">'

    def frames(self, frames: dict[str, object], img: str) -> str:
        """A figure whose controls choose among precomputed pictures."""
        rows = [
            _control(**one)
            for one in frames["controls"]  # type: ignore[attr-defined]
        ]
        shown = [
            {"src": self.source(one["png"]), "alt": one["alt"]}
            for one in frames["frames"]  # type: ignore[attr-defined]
        ]
        text = json.dumps(shown).replace("<", "\\u003c")
        return (
            '<figure class="frames"><div class="controls" hidden>'
            + "".join(rows)
            + f'</div>{img}<script type="application/json">{text}</script>'
            "</figure>"
        )


def _control(name: str, kind: str, positions: list[str], start: int) -> str:
    """A control of a figure: its value is the place of a position."""
    if kind == "switch":
        state = " checked" if start else ""
        given = f'<input type="checkbox" data-positions="2"{state}>'
    elif kind == "menu":
        options = "".join(
            f"<option{' selected' if place == start else ''}>"
            f"{html.escape(words)}</option>"
            for place, words in enumerate(positions)
        )
        given = f'<select data-positions="{len(positions)}">{options}</select>'
    else:
        shown = html.escape(positions[start])
        words = html.escape(json.dumps(positions))
        given = (
            f'<input type="range" min="0" max="{len(positions) - 1}" '
            f'value="{start}" data-positions="{len(positions)}" '
            f'data-words="{words}" aria-valuetext="{shown}">'
            f"<output>{shown}</output>"
        )
    return f"<label><span>{html.escape(name)}</span> {given}</label>"


def chapter_page(
    chapter: Chapter,
    notebook: NotebookNode,
    pictures: Pictures,
    saying: Collection[str],
) -> NotebookNode:
    """A chapter as a page: pictures as files, names of cells as anchors, and
    without what only a notebook needs.

    Args:
        chapter: the chapter.
        notebook: it, run.
        pictures: takes its pictures.
        saying: ids of cells that the list of statements leads to.
    """
    names = {
        cell.id: cell.name
        for cell in chapter.cells
        if cell.name and cell.role is Role.READING
    }
    graded = {grade_cell_id(one.id) for one in chapter.exercises}
    page = nbformat.v4.new_notebook(metadata=notebook.metadata)
    page.metadata.pop("widgets", None)
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.id in (INSTALL_CELL_ID, END_CELL_ID) or grade_id in graded:
            continue
        if cell.cell_type == "markdown":
            cell.source = _between_pages(cell.source)
        else:
            if cell.metadata.pop("jupyter", {}).get("source_hidden"):
                cell.metadata["tags"] = ["hide-input"]
                cell.source = cell.source.partition("\n")[2]
            cell.outputs = [_output(one, pictures) for one in cell.outputs]
        cell.metadata.pop("nbgrader", None)
        anchors = [f"cell-{names[cell.id]}"] if cell.id in names else []
        if cell.id in saying:
            anchors.append(f"says-{cell.id}")
        if anchors:
            spans = "".join(f'<span id="{one}"></span>' for one in anchors)
            page.cells.append(nbformat.v4.new_markdown_cell(spans))
        page.cells.append(cell)
    return page


def _between_pages(text: str) -> str:
    """Without the line that leads to other chapters, which the theme has."""
    text = re.sub(
        r"\n\n\[[^\n]*(?:←|→)[^\n]*\.ipynb\)(?=\n)", "", text, count=1
    )
    return re.sub(r"\(\.\./(\w+)/\1\.ipynb\)", r"(\1.ipynb)", text)


def _output(output: NotebookNode, pictures: Pictures) -> NotebookNode:
    data = output.get("data", {})
    if "image/png" not in data:
        data.pop("application/vnd.jupyter.widget-view+json", None)
        return output
    of_png = output.metadata.get("image/png", {})
    shown = pictures.img(data["image/png"], of_png.get("alt", "Figure"))
    if FRAMES in data:
        shown = pictures.frames(data[FRAMES], shown)
    return nbformat.v4.new_output("display_data", {"text/html": shown})


def claims_page(claims: list[Claim], titles: dict[str, str]) -> str:
    """The claims with links to the cells that show them."""
    lines = [
        "# Popular claims, and what torch says",
        "",
        "Each claim stands in widely read posts on training tricks. The cell it "
        "leads to runs it and ends in an assertion. *Correct* holds as it "
        "stands; *incomplete* only with a condition that the claim leaves out; "
        "*outdated* held once.",
    ]
    for name, title in titles.items():
        here = sorted(
            (one for one in claims if one.chapter == name), key=lambda c: c.id
        )
        if not here:
            continue
        lines += ["", f"## {title}", "", "```{container} stacked"]
        lines += ["| claim | what holds |", "|---|---|"]
        for one in here:
            cells = ", ".join(
                f'<a href="{name}.html#cell-{cell}">{cell}</a>'
                for cell in one.cells
            )
            shown = cells if one.runs_on_cpu else f"{cells} (not run)"
            verdict = f"**{one.verdict.capitalize()}.** {one.note}"
            lines.append(f"| {one.claim} | {verdict} Shown by {shown}. |")
        lines.append("```")
    return "\n".join(lines) + "\n"


def statements_page(
    stated: dict[str, list[tuple[Place, Statement]]], titles: dict[str, str]
) -> str:
    """What the chapters state, with links to where it stands and to the cells
    that show it."""
    lines = [
        "# What the chapters state, and what shows it",
        "",
        "Sentences of the chapters, word for word. A *cell* leads to the one that "
        "asserts it when the chapter is run; a *test* is one of the course's own, "
        "in `tests/statements/`; a *source* stands where no CPU can show it.",
    ]
    for name, here in stated.items():
        if not here:
            continue
        lines += ["", f"## {titles[name]}"]
        heading = ""
        for place, one in here:
            if place.heading != heading:
                heading = place.heading
                lines += ["", f"**{heading}**", ""]
            # a row of a chapter's table is told without its bars
            says = one.says.strip("| ").replace(" | ", " · ")
            stands = (
                f'<a href="{name}.html#says-{place.cell_id}">stands here</a>'
            )
            shown = {
                "cell": f'cell <a href="{name}.html#cell-{one.where}">'
                f"{one.where}</a>",
                "test": f"test `{one.where}`",
                "source": f"[source]({one.where})",
            }[one.shown_by]
            lines.append(f"- {_inline(says)}\n  ({stands}; {shown})")
    return "\n".join(lines) + "\n"


def _inline(text: str) -> str:
    """Words that begin nothing but a paragraph: "−9 is", "1. Then", "# more"."""
    return re.sub(r"^(\d+(?=[.)]\s)|(?=[#>+*-]\s))", r"\1\\", text)


if __name__ == "__main__":
    main()
