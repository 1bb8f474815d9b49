"""Has an exercise's last cases answered while the judge works on its first ones.

Who waits for a single exercise has a core to spare. No case waits for what another
one gave, so two processes, each in a room of its own, can share them; a case of
several checks may run in both.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import zip_longest

from course_grader.checks import Case, Check
from course_grader.judge.judging import Answered, Prober, answers
from course_grader.judge.kernels import Died, ProbeRun

SHARE = 6
"""A process takes this part of the cases that are left, so that they take one each
near the end, when the two of them meet; and several at once before that, since one
is sent while another is worked on."""


@dataclass
class _Part:
    """A case of a check, and what it gave in the second process; None where the
    judge has taken it, who may have to judge twice."""

    check: Check
    case: Case
    given: Future[ProbeRun | Died | None] = field(default_factory=Future)


class Beside:
    """A thread that has cases answered, from the last one on, until it meets the
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
        self.parts = {
            check.name: [_Part(check, case) for case in cases[check.name]]
            for check in checks
        }
        self.left = deque(
            part for parts in self.parts.values() for part in parts
        )
        self.lock = threading.Lock()
        self.thread = ThreadPoolExecutor(1)
        self.thread.submit(self._work, prober)

    def answered(
        self, check: Check, ask: Callable[[Sequence[Case]], Answered]
    ) -> Answered | None:
        """What a check's cases gave. Asks for those that are left, and waits for
        those that have been begun.

        Args:
            check: the next one, in the judge's order.
            ask: has some of its cases answered.

        Returns:
            As `answers` does; None if the judge is to ask for all of them.
        """
        runs: list[ProbeRun] = []
        died: Died | None = None
        while died is None and (mine := self._take(check)):
            some, died = ask([part.case for part in mine])
            runs += some
        if died is not None:
            self._leave_out(check)
            return runs, died
        for part in self.parts[check.name][len(runs) :]:
            given = part.given.result()
            if given is None:
                return None
            if isinstance(given, Died):
                return runs, given
            runs.append(given)
        return runs, None

    def close(self) -> None:
        """Waits for what has been begun; nothing more is."""
        with self.lock:
            self.left.clear()
        self.thread.shutdown()

    def _work(self, prober: AbstractContextManager[Prober | None]) -> None:
        with prober as one:
            while one is not None and (parts := self._take()):
                given: Answered | None = None
                try:
                    cases = [part.case for part in parts]
                    given = answers(one, parts[0].check, cases)
                finally:
                    # None if it broke: the judge asks, and sees why
                    runs, died = given or ([], None)
                    for part, run in zip_longest(parts, runs):
                        part.given.set_result(run or died)
                if died is not None:
                    return

    def _take(self, check: Check | None = None) -> list[_Part]:
        """Some cases of one check that nobody has begun: the first ones of this
        check, if any are left, or the last ones of all."""
        with self.lock:
            parts: deque[_Part] = deque()
            of = check or (self.left[-1].check if self.left else None)
            for _ in range(max(1, len(self.left) // SHARE)):
                if (
                    not self.left
                    or self.left[0 if check else -1].check is not of
                ):
                    break
                if check:
                    parts.append(self.left.popleft())
                    parts[-1].given.set_result(None)
                else:
                    parts.appendleft(self.left.pop())
            return list(parts)

    def _leave_out(self, check: Check) -> None:
        with self.lock:
            while self.left and self.left[0].check is check:
                self.left.popleft().given.set_result(None)
