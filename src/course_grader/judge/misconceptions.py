"""Which wrong answer of the bank a submission behaves like.

Only those wrong answers run whose signature is the submission's: the checks that
they lose, which hardly depend on the seed and are known beforehand. So is on which
checks they do what the reference does: there the submission is compared with the
reference, and nothing runs. Each stops at the first case on which it behaves
otherwise. A check on which both pass, and neither does what the reference does, counts
only where answers with different texts have to be told apart. If none of them is
alike, those run that differ in one check: now and then the seed decides of it,
unforeseen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.checks import Check, Result
from course_grader.judge.judging import (
    Behaviour,
    alike,
    as_reference,
    left_to_run,
    that_tell,
)

Steps = Generator[tuple[tuple[str, int], Result | None]]
"""What an answer gives, a case at a time; None where its process ends."""
RunAnswer = Callable[[Answer, Sequence[Check]], Steps]
"""Runs an answer of the bank on the cases of some checks."""
OpenBank = Callable[[], AbstractContextManager[RunAnswer]]
"""Lends what runs answers of the bank."""


@dataclass(frozen=True)
class _Known:
    """How a wrong answer behaves, as far as it has been run."""

    behaviour: Behaviour
    ended: bool


class Misconceptions:
    """The wrong answers' behaviour on the cases of a seed, worked out on need.

    Args:
        grading: the chapter's grading.
        signatures: of an exercise's wrong answers by their names, as
            `judging.signature` writes them, `?` where the seed decides; an answer
            without one is always tried.
        bank: runs answers.
        reference: what the reference gives on the cases.
    """

    def __init__(
        self,
        grading: Grading,
        signatures: Callable[[str], Mapping[str, str]],
        bank: OpenBank,
        reference: Mapping[tuple[str, int], Result],
    ) -> None:
        self.grading, self.signatures, self.bank = grading, signatures, bank
        self.reference = reference
        self.checks = {one.name: one for one in grading.checks}
        self.known: dict[str, _Known] = {}

    def recognise(self, exercise_id: str, seen: Behaviour, losses: str) -> str:
        """What the one wrong answer that behaves like `seen` tells; empty if
        none does or several with different texts do.

        Args:
            exercise_id: the exercise.
            seen: what the submission gave on every case.
            losses: of the submission, as `judging.losses` writes them.
        """
        signatures = self.signatures(exercise_id)
        checks = self.grading.checks_of(exercise_id)

        plain = [
            one for one in checks if as_reference(one, seen, self.reference)
        ]
        rounds: list[list[tuple[Answer, str]]] = [[], []]
        for answer in self.grading.answers_of(exercise_id):
            if answer.right or answer.ends_process:
                continue
            signature = signatures.get(answer.name, "")
            if len(signature) != len(losses):
                signature = "?" * len(losses)
            missed = _missed(signature, losses)
            if missed < len(rounds):
                left = left_to_run(checks, signature)
                if all(one in plain or one in left for one in checks):
                    rounds[missed].append((answer, signature))
        for candidates in rounds:
            tells = self._told(
                [
                    (answer, that_tell(checks, signature, losses, plain))
                    for answer, signature in candidates
                ],
                seen,
            )
            if len(tells) > 1:
                tells = self._told(
                    [
                        (answer, left_to_run(checks, signature))
                        for answer, signature in candidates
                    ],
                    seen,
                )
            if tells:
                return tells.pop() if len(tells) == 1 else ""
        return ""

    def _told(
        self,
        candidates: Sequence[tuple[Answer, Sequence[Check]]],
        seen: Behaviour,
    ) -> set[str]:
        """What those of the answers tell that behave like `seen` on these checks;
        two texts are enough."""
        tells: set[str] = set()
        with contextlib.ExitStack() as stack:
            run: RunAnswer | None = None
            for answer, checks in candidates:
                if answer.tells in tells:
                    continue
                alike = self._alike_so_far(answer, checks, seen)
                if alike is None:
                    run = run or stack.enter_context(self.bank())
                    alike = self._run(run, answer, checks, seen)
                if alike:
                    tells.add(answer.tells)
                if len(tells) > 1:
                    break
        return tells

    def _alike_so_far(
        self, answer: Answer, checks: Sequence[Check], seen: Behaviour
    ) -> bool | None:
        """Whether it behaves like `seen`; None if it has to run for that."""
        known = self.known.get(answer.name)
        if known is None:
            return None
        names = {one.name for one in checks}
        for key, result in known.behaviour.items():
            if key[0] in names and not self._alike(key, seen, result):
                return False
        if all(key in known.behaviour for key in seen if key[0] in names):
            return True
        return False if known.ended else None

    def _run(
        self,
        run: RunAnswer,
        answer: Answer,
        checks: Sequence[Check],
        seen: Behaviour,
    ) -> bool:
        behaviour: Behaviour = {}
        ended = False
        with contextlib.closing(run(answer, checks)) as steps:
            for key, result in steps:
                if result is None:
                    ended = True
                    break
                behaviour[key] = result
                if not self._alike(key, seen, result):
                    break
        self.known[answer.name] = _Known(behaviour, ended)
        return self._alike_so_far(answer, checks, seen) is True

    def _alike(
        self, key: tuple[str, int], seen: Behaviour, result: Result
    ) -> bool:
        check = self.checks[key[0]]
        return key in seen and alike(
            check, seen[key], result, self.reference[key]
        )


def _missed(signature: str, losses: str) -> int:
    """In how many checks a signature is not the submission's."""
    plain = signature.replace("=", ".")
    return sum(
        one not in ("?", other)
        for one, other in zip(plain, losses, strict=True)
    )
