"""What folds open in a text, and the solution that stands behind an exercise."""

from __future__ import annotations

_SOLUTION = "Solution"


def fold(summary: str, text: str) -> str:
    """Markdown that folds open."""
    # the blank line lets Jupyter render what is inside as markdown
    return (
        f"<details><summary>{summary}</summary>\n\n{text.strip()}\n</details>"
    )


def with_solution(text: str, solution: str) -> str:
    """The text of an exercise with its solution folded behind it, for somebody
    who learns alone."""
    code = "\n".join(["```python", *solution.splitlines(), "```"])
    return f"{text}\n{fold(_SOLUTION, code)}"


def without_solution(text: str) -> str:
    """A text before the solution that `with_solution` put behind it."""
    begin = fold(_SOLUTION, "```python").removesuffix("</details>")
    return text.partition(f"\n{begin}")[0]
