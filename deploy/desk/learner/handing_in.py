"""nbgrader's Submit, less what it gives to everybody: it leaves a submission open to
whoever knows its name. Here its learner and the exchange's group alone, which is the
grading account's, may read it and take it away."""

import os

from nbgrader.exchange.default import ExchangeSubmit


class Submit(ExchangeSubmit):
    """Hands in for the grader's eyes alone."""

    def copy_files(self):
        """Copies, and shuts the folder: what lies in it may stay as it is."""
        super().copy_files()
        os.chmod(
            os.path.join(self.inbound_path, self.assignment_filename), 0o770
        )
