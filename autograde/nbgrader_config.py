# nbgrader's settings for this course: one machine, one user, embedded defaults.
# `JUPYTER_CONFIG_PATH=autograde` makes the nbgrader command line, formgrader,
# Assignment List and Validate use them.
# What is one instructor's own stands in course.toml, which no newer edition
# touches: docs/instructors.md.
import os
import tomllib
from pathlib import Path

root = Path(__file__).resolve().parent.parent
people = root / "class"
work = Path(os.environ.get("COURSE_WORK", root / "work"))
course_toml = root / "course.toml"
settings = (
    tomllib.loads(course_toml.read_text(encoding="utf-8"))
    if course_toml.exists()
    else {}
)

c = get_config()  # noqa: F821  (traitlets provides it)

c.CourseDirectory.course_id = "pytorch_training_tricks"
c.CourseDirectory.root = str(people)
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "course.sha256",  # what `course grade` notes beside a graded notebook
    "receipt.json",  # what `course collect --zip` notes beside a notebook
]

# An exchange for one machine and one user: everybody on it runs as you.
c.Exchange.root = str(people / "exchange")
c.Exchange.assignment_dir = str(work)
c.ExchangeFactory.collect = "course_grader.classroom.collect.SafeCollect"
c.ExchangeFactory.release_feedback = (
    "course_grader.classroom.release_feedback.ReleaseFeedback"
)
hub = settings.get("hub", {})
if hub.get("exchange") == "ngshare":
    over_http = "course_grader.classroom.over_http"
    c.ExchangeFactory.collect = f"{over_http}.Collect"
    c.ExchangeFactory.release_assignment = f"{over_http}.ReleaseAssignment"
    c.ExchangeFactory.release_feedback = f"{over_http}.ReleaseFeedback"
    c.OverHTTP.share_file = str(
        root / hub.get("folder", "hub") / "grader" / "share.json"
    )
elif hub:
    # the class server gives every learner an account of that name
    c.SafeCollect.account = "{student}"

# Submissions are repaired, run and judged outside of nbgrader's process.
c.Autograde.exporter_class = (
    "course_grader.grading.nbgrader_route.RepairingExporter"
)
c.Autograde.autograde_preprocessors = [
    "course_grader.grading.nbgrader_route.ExecuteOutOfProcess",
    "nbgrader.preprocessors.IgnorePattern",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "course_grader.classroom.term.LatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

c.GenerateFeedback.exporter_class = "course_grader.feedback.FeedbackExporter"
# formgrader's pages of submissions come from this exporter
c.HTMLExporter.preprocessors = [
    "course_grader.feedback.answers_first.AnswersFirst"
]
c.FeedbackExporter.preprocessors = []

# One time zone, in formgrader and in everything that `course` prints.
this_machines = "/etc/localtime" if Path("/etc/localtime").exists() else "UTC"
c.NbGraderAPI.timezone = (
    settings.get("timezone") or os.environ.get("TZ") or this_machines
)

if settings.get("attempts") == "best":
    c.SafeCollect.every_attempt = True
    c.FeedbackExporter.best_of = str(root)

late = settings.get("late", {})
if "percent_per_day" in late:
    c.LatePenalties.plugin_class = "course_grader.classroom.term.PenaltyPerDay"
    c.PenaltyPerDay.percent = late["percent_per_day"]
    c.PenaltyPerDay.at_most_percent = late.get("at_most_percent", 100)

for name, traits in settings.get("nbgrader", {}).items():
    for trait, value in traits.items():
        setattr(c[name], trait, value)

# Every change of a mark, whoever makes it, leaves a line.
from course_grader.classroom.audit import keep_trail  # noqa: E402

keep_trail(people)
