"""The scores of all exercises: `docs/mutation.json`, and the page made of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from course_grader.course import Course
from course_grader.mutation.score import SEEDS, Score

_HEAD = """\
# Mutants: how much a grader sees

A mutant is a right answer with one small change: a statement gone, a condition
decided, a number off by one, an argument dropped or swapped, `.detach()` or
`no_grad` taken away, another `dim`, dtype or reduction. `course mutate` makes
them of each exercise's solution and right answers and has them graded on {seeds}
seeds. *Killed* lost a mark each time; *never ended* was stopped. *Equivalent*
kept all its marks, and somebody who tried to tell it from a right answer by the
exercise's text wrote down why not, in `autograde/NN_name/equivalents.toml`.
*Open* kept all its marks, and nobody has said why: a hole, or an equivalent to
be.

The score is the share of mutants, equivalent ones left out, that lost a mark.

"""


def read_scores(course: Course) -> dict[str, dict[str, Score]]:
    """By chapter and exercise."""
    file = course.root / "docs" / "mutation.json"
    if not file.exists():
        return {}
    given = json.loads(file.read_text(encoding="utf-8"))
    return {
        chapter: {
            name: Score.from_json({"exercise": name, **one})
            for name, one in scores.items()
        }
        for chapter, scores in given.items()
    }


def keep_score(course: Course, chapter: str, score: Score) -> None:
    """Enters a score, and writes the page."""
    scores = read_scores(course)
    scores.setdefault(chapter, {})[score.exercise] = score
    scores = {
        name: dict(sorted(of_chapter.items()))
        for name, of_chapter in sorted(scores.items())
    }
    kept = {
        chapter: {
            name: {
                key: value
                for key, value in one.to_json().items()
                if key != "exercise"
            }
            for name, one in of_chapter.items()
        }
        for chapter, of_chapter in scores.items()
    }
    folder = course.root / "docs"
    folder.mkdir(exist_ok=True)
    (folder / "mutation.json").write_text(
        json.dumps(kept, indent=1) + "\n", encoding="utf-8"
    )
    (folder / "mutation.md").write_text(page(scores), encoding="utf-8")


def page(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """The table as Markdown."""
    lines = [
        "| chapter | exercise | mutants | killed | never ended | equivalent |"
        " open | score | date | torch |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    operators: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for chapter, of_chapter in scores.items():
        for one in of_chapter.values():
            lines.append(
                f"| {chapter[:2]} | {one.exercise} | {one.mutants} | "
                f"{one.killed} | {one.timed_out} | {one.equivalent} | "
                f"{len(one.survivors)} | {_share(one.score)} | {one.date} | "
                f"{one.torch} |"
            )
            operators.update(one.operators)
            sums.update(
                mutants=one.mutants,
                killed=one.killed,
                timed_out=one.timed_out,
                equivalent=one.equivalent,
                open=len(one.survivors),
            )
    lost = sums["killed"] + sums["timed_out"]
    whole = lost / max(1, sums["mutants"] - sums["equivalent"])
    lines.append(
        f"| all | | {sums['mutants']} | {sums['killed']} | "
        f"{sums['timed_out']} | {sums['equivalent']} | {sums['open']} | "
        f"{_share(whole)} | | |"
    )
    lines += ["", "| operator | mutants |", "|---|---|"]
    lines += [f"| {name} | {n} |" for name, n in operators.most_common()]
    return _HEAD.format(seeds=len(SEEDS)) + "\n".join(lines) + "\n"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"
