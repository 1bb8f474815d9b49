"""Answers to `know_your_gpus` of chapter 00."""

import re

import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def with_splits():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@accepted(body=True)
def with_properties_and_a_pattern():
    def machine_report():
        report = {"torch": str(torch.__version__), "cuda": torch.version.cuda}
        try:
            report["cudnn"] = torch.backends.cudnn.version()
        except Exception:
            report["cudnn"] = None
        gpus = range(torch.cuda.device_count() * torch.cuda.is_available())
        report["gpus"] = [
            torch.cuda.get_device_properties(i).name for i in gpus
        ]
        return report

    def list_gpus(listing):
        lines = re.findall(
            r"^GPU (\d+): (.*) \(UUID: ([^)]*)\)[^\S\n]*$",
            listing,
            re.MULTILINE,
        )
        return [(int(index), name, uuid) for index, name, uuid in lines]


@accepted(body=True)
def with_everything_guarded():
    def machine_report():
        def ask(question, otherwise):
            try:
                return question()
            except Exception:
                return otherwise

        def names():
            count = torch.cuda.device_count()
            return [
                torch.cuda.get_device_name(f"cuda:{i}") for i in range(count)
            ]

        return dict(
            gpus=ask(names, []),
            cudnn=ask(lambda: torch.backends.cudnn.version(), None),
            cuda=torch.version.cuda,
            torch=f"{torch.__version__}",
        )

    def list_gpus(listing):
        def take(line):
            head, _, rest = line.partition(": ")
            name, _, tail = rest.rpartition(" (UUID: ")
            return int(head[4:]), name, tail.split(")")[0]

        return [take(one) for one in listing.split("\n") if one[:4] == "GPU "]


@accepted(body=True)
def with_the_courses_report():
    def machine_report():
        from course_utils import describe_machine

        machine = describe_machine()
        report = {key: machine[key] for key in ("torch", "cuda", "cudnn")}
        return {**report, "gpus": machine["devices"]}

    def list_gpus(listing):
        gpus = []
        for line in listing.splitlines():
            match = re.fullmatch(
                r"GPU\s(\d+):\s(.+)\s\(UUID:\s(.+)\)", line.rstrip()
            )
            if match:
                gpus.append((int(match[1]), *match.groups()[1:]))
        return gpus


@accepted(body=True)
def with_slices_of_the_text():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        gpus = []
        for line in listing.split("\n"):
            line = line.rstrip()
            if not line.startswith("GPU "):
                continue
            colon = line.index(":")
            paren = line.rindex(" (UUID: ")
            uuid = line[paren + len(" (UUID: ") : -1]
            gpus.append((int(line[4:colon]), line[colon + 2 : paren], uuid))
        return gpus


@accepted(body=True)
def with_rows_that_have_names():
    from contextlib import suppress
    from typing import NamedTuple

    class Gpu(NamedTuple):
        index: int
        name: str
        uuid: str

    def machine_report():
        report = {"torch": torch.version.__version__, "cudnn": None, "gpus": []}
        report["cuda"] = torch.version.cuda
        with suppress(RuntimeError):
            report["cudnn"] = torch.backends.cudnn.version()
        if torch.cuda.is_available():
            for i in range(torch.cuda.device_count()):
                card = torch.cuda.get_device_properties(torch.device("cuda", i))
                report["gpus"] += [card.name]
        return report

    def list_gpus(listing):
        rows = re.findall(
            r"^GPU (\d+): (.*) \(UUID: ([^)\s]+)\)[ \r]*$",
            listing,
            re.MULTILINE,
        )
        return [Gpu(int(index), name, uuid) for index, name, uuid in rows]


@wrong(
    breaks=hidden_tests.cudnn_that_raises,
    tells="One `try` around everything: where cuDNN raises you lose the names "
    "of the GPUs too. Guard each question by itself.",
    body=True,
)
def all_or_nothing():
    def machine_report():
        report = {"torch": torch.__version__, "cuda": torch.version.cuda}
        try:
            count = torch.cuda.device_count() * torch.cuda.is_available()
            version = torch.backends.cudnn.version()
            names = [torch.cuda.get_device_name(i) for i in range(count)]
        except RuntimeError:
            version, names = None, []
        return {**report, "cudnn": version, "gpus": names}

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    breaks=hidden_tests.looks_anew,
    tells="You keep the first report and return it again. Things change: "
    "every call looks anew.",
    body=True,
)
def remembered():
    kept = {}

    def machine_report():
        if kept:
            return kept
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        kept.update(
            {
                "torch": torch.__version__,
                "cuda": torch.version.cuda,
                "cudnn": cudnn,
                "gpus": names,
            }
        )
        return kept

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    breaks=[hidden_tests.this_machine, hidden_tests.machines_with_gpus],
    tells="You asked when the cell was run and return that answer. Every call "
    "looks anew.",
    body=True,
)
def asked_at_the_start():
    REPORT = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": None,
        "gpus": [],
    }

    def machine_report():
        return REPORT

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You look for a GPU anywhere in a line. Only lines that begin "
    "with `GPU ` count: a warning may name one, and an indented "
    "line is none.",
    body=True,
)
def gpus_anywhere_in_a_line():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        pattern = r"GPU (\d+): (.*) \(UUID: (\S+)\)\s*$"
        found = [re.search(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]


@wrong(
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You strip the lines on both sides, and an indented one then "
    "begins with `GPU `. Strip the end alone: `rstrip`.",
    body=True,
)
def indented_lines_too():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in map(str.strip, listing.splitlines()):
            if line.startswith("GPU "):
                head, rest = line.split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                gpus.append((int(head[4:]), name, uuid[:-1]))
        return gpus


@wrong(
    breaks=hidden_tests.names_of_all_kinds,
    tells="You split the name at its blanks and joined it with single "
    "ones. A name stays as it is.",
    body=True,
)
def name_of_words():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                words = line.split()
                name = " ".join(words[2:-2])
                gpus.append((int(words[1][:-1]), name, words[-1][:-1]))
        return gpus


@wrong(
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You ask for lines that begin with `GPU`, without the blank "
    "behind it. Other words begin so too.",
    body=True,
)
def words_that_begin_like_it():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in map(str.rstrip, listing.splitlines()):
            if line.startswith("GPU"):
                head, rest = line.split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                gpus.append((int(head[4:]), name, uuid[:-1]))
        return gpus


@wrong(
    breaks=hidden_tests.looks_anew,
    tells="You keep the answer to one of the questions from the first "
    "report. Every call asks all of them.",
    body=True,
)
def versions_remembered():
    from functools import cache

    @cache
    def built_with():
        try:
            return torch.version.cuda, torch.backends.cudnn.version()
        except RuntimeError:
            return torch.version.cuda, None

    def machine_report():
        cuda, cudnn = built_with()
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        names = [torch.cuda.get_device_name(i) for i in range(count)]
        version = torch.__version__
        return dict(torch=version, cuda=cuda, cudnn=cudnn, gpus=names)

    def list_gpus(listing):
        pattern = r"GPU (\d+): (.*) \(UUID: (\S+)\)\s*$"
        found = [re.match(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]


@wrong(
    breaks=hidden_tests.looks_anew,
    tells="You keep the answer to one of the questions from the first "
    "report. Every call asks all of them.",
    body=True,
)
def usability_remembered():
    known = []

    def machine_report():
        if not known:
            known.append(torch.cuda.is_available())
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        count = torch.cuda.device_count() if known[0] else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        pattern = r"GPU (\d+): (.*) \(UUID: (\S+)\)\s*$"
        found = [re.match(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]


@wrong(
    breaks=hidden_tests.ends_of_lines,
    tells="You strip the blanks first and the `\\r` then: the blanks "
    "before a `\\r` stay. `rstrip()` takes both, in any order.",
    body=True,
)
def blanks_before_the_return_kept():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in listing.split("\n"):
            line = line.rstrip(" ").rstrip("\r")
            if line.startswith("GPU "):
                head, rest = line.split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                gpus.append((int(head[4:]), name, uuid[:-1]))
        return gpus
