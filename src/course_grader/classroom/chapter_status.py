"""Where each chapter of a class stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from course_grader.classroom import attempts, gradebook, term
from course_grader.classroom.nbgrader_api import Classroom


@dataclass(frozen=True)
class ChapterStatus:
    """One chapter.

    Attributes:
        chapter: its name.
        due: when, in UTC; None if never.
        released: learners can fetch it from the exchange.
        handed_in: how many learners' work is collected.
        late: how many of them came late; those of unknown time only if their
            system says so.
        missing: how many of the roster handed nothing in, once it is due.
        graded: how many are graded as they were handed in; where the best attempt
            counts, all attempts of theirs.
        look: how many somebody should look at.
        feedback: how many pages are written.
    """

    chapter: str
    due: datetime | None
    released: bool
    handed_in: int
    late: int
    missing: int | None
    graded: int
    look: int
    feedback: int


def chapters_status(classroom: Classroom) -> list[ChapterStatus]:
    """Every chapter of the course."""
    released = classroom.api.get_released_assignments()
    made = []
    chapters = classroom.course.chapters()
    every = gradebook.marks(classroom, chapters)
    for chapter in chapters:
        found = list(gradebook.submissions(classroom, chapter))
        marks = [one for one in every if one.chapter == chapter]
        due = term.due(classroom, chapter)
        pages = classroom.folder("feedback", "*", chapter).parent.parent
        made.append(
            ChapterStatus(
                chapter=chapter,
                due=due,
                released=chapter in released,
                handed_in=len(found),
                late=sum(
                    one.days_late > 0 or one.said_late
                    for one in marks
                    if one.submitted
                ),
                missing=sum(not one.submitted for one in marks)
                if due is not None and due < datetime.now(UTC)
                else None,
                graded=sum(
                    one.graded
                    and not any(
                        not older.graded
                        for older in attempts.to_grade(
                            classroom.coursedir, chapter, [one.student]
                        )
                        if classroom.course.best_attempt_counts
                    )
                    for one in found
                ),
                look=sum(bool(one.look) for one in marks),
                feedback=len(list(pages.glob(f"*/{chapter}/{chapter}.html"))),
            )
        )
    return made
