# nbgrader's settings in a learner's server.
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

c = get_config()  # noqa: F821  (traitlets provides it)

c.CourseDirectory.course_id = "pytorch_training_tricks"
# the name of the login; on a server with an account per learner the exchange
# believes the account that a file belongs to, and nothing else
c.CourseDirectory.student_id = os.environ["JUPYTERHUB_USER"]
c.Exchange.root = os.environ["COURSE_EXCHANGE"]
c.Exchange.assignment_dir = str(Path.home() / "work")
c.ExchangeFactory.submit = "handing_in.Submit"
