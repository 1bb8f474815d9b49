"""What each answer of a chapter loses, a right one nothing, and where a wrong one does
what the reference does: `signatures.json`.

`course try` writes it from what it has run anyhow. An entry holds for the texts
that it was made of: the answer, its exercise's checks and probes, the set-up
cells and the solution, each with what it calls; and for one version of torch.
Where one of them has changed, the entry counts for nothing: a wrong answer is
run with every submission that may be like it, and `make test` runs either, until
`course try` has been there.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from course_grader.bank import Answer
from course_grader.chapter.grading import Grading
from course_grader.course import Course

DIGEST_LETTERS = 16


def signatures_file(course: Course, chapter: str) -> Path:
    return course.autograde / chapter / "signatures.json"


def read_signatures(
    file: Path, grading: Grading, exercise_id: str
) -> dict[str, str]:
    """The signatures of an exercise's answers, by their names; only those whose
    entry holds for what they are made of now."""
    entries = _read(file).get(exercise_id, {})
    if not entries:
        return {}
    digests = answer_digests(grading, exercise_id)
    found = {}
    for name, entry in entries.items():
        signature, _, digest = entry.partition(" ")
        if digest == digests.get(name):
            found[name] = signature
    return found


def keep_signatures(
    file: Path,
    grading: Grading,
    exercise_id: str,
    signatures: Iterable[tuple[Answer, str]],
) -> None:
    """Enters signatures of an exercise's answers. Where an entry still holds
    and says otherwise of a check, the seed decides: `?`; but for a check that is
    passed either way, as the reference passes it on one seed alone: `.`. Of an
    entry that no longer holds, `?` stays: a few seeds may not show it, and it costs
    nothing but time."""
    held = read_signatures(file, grading, exercise_id)
    digests = answer_digests(grading, exercise_id)
    entries = _read(file)
    for answer, signature in signatures:
        before = held.get(answer.name, signature)
        held[answer.name] = "".join(
            one if one == other else "." if {one, other} == {".", "="} else "?"
            for one, other in zip(before, signature, strict=True)
        )
    for name, entry in entries.get(exercise_id, {}).items():
        before = entry.partition(" ")[0]
        if len(before) == len(held.get(name, "")):
            held[name] = "".join(
                "?" if one == "?" else other
                for one, other in zip(before, held[name], strict=True)
            )
    entries[exercise_id] = {
        name: f"{held[name]} {digests[name]}" for name in sorted(held)
    }
    ids = [one.id for one in grading.chapter.exercises]
    text = json.dumps(
        {one: entries[one] for one in ids if entries.get(one)}, indent=1
    )
    if not file.exists() or file.read_text(encoding="utf-8") != f"{text}\n":
        file.write_text(f"{text}\n", encoding="utf-8")


def _read(file: Path) -> dict[str, dict[str, str]]:
    if not file.exists():
        return {}
    entries: dict[str, dict[str, str]] = json.loads(
        file.read_text(encoding="utf-8")
    )
    return entries


def answer_digests(grading: Grading, exercise_id: str) -> dict[str, str]:
    """By the names of an exercise's answers: a digest of all texts that decide
    what the answer loses."""
    around = exercise_text(grading, exercise_id)
    return {
        answer.name: hashlib.sha256(
            (around + _essence(grading.answer_cell(answer))).encode()
        ).hexdigest()[:DIGEST_LETTERS]
        for answer in grading.answers_of(exercise_id)
    }


def exercise_text(grading: Grading, exercise_id: str) -> str:
    """All texts that decide what an answer to an exercise loses, but for the
    answer: its checks and probes with what they call, set-up cells, solution;
    and torch's version."""
    checks = grading.checks_of(exercise_id)
    file = inspect.getsourcefile(checks[0].cases)
    assert file is not None
    tests = _reached(
        Path(file).read_text(encoding="utf-8"), [one.name for one in checks]
    )
    of_probes = [
        node.attr
        for node in ast.walk(ast.parse(tests))
        if isinstance(node, ast.Attribute)
    ]
    return "\n".join(
        [
            torch.__version__.rpartition(".")[0],
            *(_essence(text) for _, text in grading.chapter.setup_source),
            _essence(grading.chapter.exercise(exercise_id).source),
            tests,
            _reached(
                grading.probes_source,
                [*(one.probe for one in checks), *of_probes],
            ),
        ]
    )


def _essence(text: str) -> str:
    """A text without its empty lines and those that hold a comment alone."""
    lines = (line.rstrip() for line in text.split("\n"))
    return "\n".join(
        line for line in lines if line and not line.lstrip().startswith("#")
    )


def _reached(text: str, names: Iterable[str]) -> str:
    """Those top-level statements of a module that the definitions of `names`
    use, and theirs in turn; in the order of the module."""
    statements, defines = _parsed(text)
    reached: set[int] = set()
    waiting = list(names)
    while waiting:
        for index in defines.get(waiting.pop(), ()):
            if index not in reached:
                reached.add(index)
                waiting += _names_in(statements[index])
    lines = text.split("\n")
    parts = []
    for index in sorted(reached):
        node = statements[index]
        first = min(
            [node.lineno]
            + [one.lineno for one in getattr(node, "decorator_list", [])]
        )
        parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    return _essence("\n".join(parts))


@functools.lru_cache(maxsize=2)  # of all exercises of a chapter
def _parsed(text: str) -> tuple[list[ast.stmt], Mapping[str, list[int]]]:
    statements = ast.parse(text).body
    return statements, _definitions(statements)


def _definitions(statements: list[ast.stmt]) -> dict[str, list[int]]:
    defines: dict[str, list[int]] = {}
    for index, node in enumerate(statements):
        names = {getattr(node, "name", "")}
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            for one in ast.walk(node):
                if isinstance(one, ast.alias):
                    names.add((one.asname or one.name).partition(".")[0])
                elif isinstance(one, ast.Name):
                    names.add(one.id)  # stored, or changed by being called
        for name in names - {""}:
            defines.setdefault(name, []).append(index)
    return defines


def _names_in(node: ast.AST) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
