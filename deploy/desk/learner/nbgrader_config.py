# nbgrader's settings in a learner's server.
import os
from pathlib import Path

c = get_config()  # noqa: F821  (traitlets provides it)

c.CourseDirectory.course_id = "pytorch_training_tricks"
# the name of the login; on a server with an account per learner the exchange
# believes the account that a file belongs to, and nothing else
c.CourseDirectory.student_id = os.environ["JUPYTERHUB_USER"]
c.Exchange.root = os.environ["COURSE_EXCHANGE"]
c.Exchange.assignment_dir = str(Path.home() / "work")
if "COURSE_SHARE" in os.environ:
    # no folder is shared: ~/.course/exchange is this server's own copy
    for step in ("fetch_assignment", "fetch_feedback", "list", "submit"):
        name = "".join(word.capitalize() for word in step.split("_"))
        setattr(c.ExchangeFactory, step, f"course_exchange.learner.{name}")
else:
    c.ExchangeFactory.submit = "course_exchange.folder.Submit"
