"""Has an exercise's last checks answered while the judge works on its first ones.

Who waits for a single exercise has a core to spare. No check waits for what another
one gave, so two processes, each in a room of its own, can share the checks; a case of
several checks may run in both.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

from course_grader.checks import Case, Check
from course_grader.judge.judging import Answered, Prober, answers


class Beside:
    """A thread that has checks answered, from the last one on, until it meets the
    judge, who comes from the first one. Started on construction."""

    def __init__(
        self,
        prober: AbstractContextManager[Prober | None],
        checks: Sequence[Check],
        cases: Mapping[str, Sequence[Case]],
    ) -> None:
        """Starts it.

        Args:
            prober: is entered and left in the thread; None if there is none.
            checks: of one exercise, in the judge's order.
            cases: by check name.
        """
        self.cases = cases
        self.left = deque(checks)
        self.found: dict[str, Future[Answered | None]] = {}
        self.lock = threading.Lock()
        self.thread = ThreadPoolExecutor(1)
        self.thread.submit(self._work, prober)

    def answered(self, check: Check) -> Answered | None:
        """What a check's cases gave; None if the judge is to ask. Waits for it, if
        it has been begun."""
        with self.lock:
            if self.left and self.left[0] is check:
                self.left.popleft()
            found = self.found.get(check.name)
        return None if found is None else found.result()

    def close(self) -> None:
        """Waits for what has been begun; nothing more is."""
        with self.lock:
            self.left.clear()
        self.thread.shutdown()

    def _work(self, prober: AbstractContextManager[Prober | None]) -> None:
        with prober as one:
            while one is not None and (check := self._next()) is not None:
                found = self.found[check.name]
                given = None
                try:
                    given = answers(one, check, self.cases[check.name])
                finally:
                    # None if it broke: the judge asks, and sees why
                    found.set_result(given)
                if given[1] is not None:
                    return

    def _next(self) -> Check | None:
        with self.lock:
            if not self.left:
                return None
            check = self.left.pop()
            self.found[check.name] = Future()
            return check
