# nbgrader's settings for this course: one machine, one user, embedded defaults.
# `JUPYTER_CONFIG_PATH=autograde` makes the nbgrader command line, formgrader,
# Assignment List and Validate use them.
import os
from pathlib import Path

autograde = Path(__file__).resolve().parent
work = Path(os.environ.get("COURSE_WORK", autograde.parent / "work"))

c = get_config()  # noqa: F821  (traitlets provides it)

c.CourseDirectory.course_id = "pytorch_training_tricks"
c.CourseDirectory.root = str(autograde)
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "course.sha256",  # what `course grade` notes beside a graded notebook
]

# An exchange for one machine and one user: everybody on it runs as you.
c.Exchange.root = str(autograde / "exchange")
c.Exchange.assignment_dir = str(work)
c.ExchangeFactory.collect = "course_grader.classroom.collect.SafeCollect"

# Submissions are repaired, run and judged outside of nbgrader's process.
c.Autograde.exporter_class = (
    "course_grader.grading.nbgrader_route.RepairingExporter"
)
c.Autograde.autograde_preprocessors = [
    "course_grader.grading.nbgrader_route.ExecuteOutOfProcess",
    "nbgrader.preprocessors.IgnorePattern",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

c.GenerateFeedback.exporter_class = "course_grader.feedback.FeedbackExporter"
