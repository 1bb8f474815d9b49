"""Answers to `know_your_gpus` of chapter 00."""

import re

import torch

from course_grader.bank import accepted, edit, wrong

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


with_the_current_device = edit(
    with_splits,
    {
        "names.append(torch.cuda.get_device_name(index))": """
        with torch.cuda.device(index):
            names.append(torch.cuda.get_device_name())
        """,
    },
)

counted_by_the_variable = edit(
    with_splits,
    {
        "for index in range(torch.cuda.device_count()):": """
        import os

        listed = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
        for index in range(len(listed)):
        """,
    },
    breaks=hidden_tests.machines_with_gpus,
    tells="You count the GPUs by `CUDA_VISIBLE_DEVICES`. It need not be set, "
    "and its list may go on behind an entry that ends it. "
    "`torch.cuda.device_count()` knows.",
)


name_of_gpu_0_unguarded = edit(
    with_splits,
    {
        """
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        """: "names.append(torch.cuda.get_device_name(0))",
    },
    breaks=[hidden_tests.this_machine, hidden_tests.machines_with_gpus],
    tells="You asked for the name of GPU 0 without asking whether there is "
    "one. On a machine without it that raises. `is_available()` first, "
    "then `range(device_count())`.",
)

only_gpu_0 = edit(
    with_splits,
    {
        """
        for index in range(torch.cuda.device_count()):
            names.append(torch.cuda.get_device_name(index))
        """: "names.append(torch.cuda.get_device_name(0))",
    },
    breaks=hidden_tests.machines_with_gpus,
    tells="You report GPU 0 only. Go through "
    "`range(torch.cuda.device_count())`.",
)

eight_gpus_at_most = edit(
    with_splits,
    {
        "for index in range(torch.cuda.device_count()):": "for index in range(min(torch.cuda.device_count(), 8)):",
    },
    breaks=hidden_tests.machines_with_gpus,
    tells="You report eight GPUs at most. A machine may have sixteen: go through "
    "all of `range(torch.cuda.device_count())`.",
)

none_without_a_version_of_cuda = edit(
    with_splits,
    {
        "if torch.cuda.is_available():": "if torch.cuda.is_available() and torch.version.cuda:",
    },
    breaks=hidden_tests.machines_with_gpus,
    tells="You report no GPU where `torch.version.cuda` is None. It is None under "
    "AMD's ROCm, too, and `torch.cuda` works there. Ask `is_available()` alone.",
)

current_gpu_each_time = edit(
    with_splits,
    {
        "names.append(torch.cuda.get_device_name(index))": "names.append(torch.cuda.get_device_name())",
    },
    breaks=hidden_tests.machines_with_gpus,
    tells="You asked for the name of the current device each time. Give the "
    "number: `get_device_name(index)`.",
)

names_sorted = edit(
    with_splits,
    {'"gpus": names,': '"gpus": sorted(names),'},
    breaks=hidden_tests.machines_with_gpus,
    tells="You sorted the names. Their order is that of the numbers: the "
    "first is `cuda:0`.",
)

names_once = edit(
    with_splits,
    {'"gpus": names,': '"gpus": list(dict.fromkeys(names)),'},
    breaks=hidden_tests.machines_with_gpus,
    tells="You list each name once. Two cards of the same kind are two GPUs: "
    "keep both.",
)

devices_for_names = edit(
    with_splits,
    {
        "names.append(torch.cuda.get_device_name(index))": 'names.append(f"cuda:{index}")',
    },
    breaks=hidden_tests.machines_with_gpus,
    tells="You listed devices such as cuda:0. The names of the cards are "
    "asked for: `torch.cuda.get_device_name(index)`.",
)

counted_without_asking = edit(
    with_splits,
    {
        """
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        """: """
        for index in range(torch.cuda.device_count()):
            names.append(torch.cuda.get_device_name(index))
        """,
    },
    breaks=hidden_tests.nothing_usable,
    tells="You trusted `device_count()`. With a driver that is too old it "
    "counts cards that cannot be used, and asking for a name raises. "
    "Ask `is_available()` first.",
)


unknown_names = edit(
    with_splits,
    {
        """
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        """: """
        for index in range(torch.cuda.device_count()):
            try:
                names.append(torch.cuda.get_device_name(index))
            except Exception:
                names.append("unknown")
        """,
    },
    breaks=hidden_tests.nothing_usable,
    tells="Where no GPU is usable you list placeholders. The list is empty "
    "there: ask `is_available()` first.",
)


none_without_a_gpu = edit(
    with_splits,
    {'"gpus": names,': '"gpus": names or None,'},
    breaks=hidden_tests.this_machine,
    tells="Without a GPU your `gpus` is None. It is a list always, an empty "
    "one there: whoever goes through it need not ask.",
)

cuda_as_text = edit(
    with_splits,
    {"torch.version.cuda": "str(torch.version.cuda)"},
    breaks=hidden_tests.this_machine,
    tells='Without CUDA your report says "None", a text. It is to be None.',
)

cudnn_as_text = edit(
    with_splits,
    {'"cudnn": cudnn,': '"cudnn": str(cudnn),'},
    breaks=[hidden_tests.this_machine, hidden_tests.machines_with_gpus],
    tells="The version of cuDNN became a text. Report what "
    "`torch.backends.cudnn.version()` returns: a number, or None.",
)

cudnn_zero = edit(
    with_splits,
    {'"cudnn": cudnn,': '"cudnn": cudnn or 0,'},
    breaks=hidden_tests.this_machine,
    tells="Without cuDNN your report says 0. It is to be None.",
)

cudnn_unguarded = edit(
    with_splits,
    {
        """
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        """: "cudnn = torch.backends.cudnn.version()",
    },
    breaks=hidden_tests.cudnn_that_raises,
    tells="`torch.backends.cudnn.version()` raises a `RuntimeError` where "
    "cuDNN does not fit this PyTorch, and your report with it. Catch "
    "that, and report None.",
)


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


with_further_keys = edit(
    with_splits,
    {
        '"gpus": names,': """
        "gpus": names,
        "count": len(names),
        """,
    },
    breaks=hidden_tests.this_machine,
    tells="Your report has other keys than torch, cuda, cudnn and gpus. Just "
    "these four are asked for.",
)

first_digit = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': 'found.append((int(index[0]), name, uuid.rstrip().rstrip(")")))',
    },
    breaks=hidden_tests.indices_of_several_digits,
    tells="You took one character for the index: GPU 10 becomes 1. Read up to "
    "the colon.",
)

place_for_index = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': 'found.append((len(found), name, uuid.rstrip().rstrip(")")))',
    },
    breaks=hidden_tests.indices_of_several_digits,
    tells="You counted the lines. The index stands in the line, and some may "
    "be missing: read it.",
)

sorted_by_index = edit(
    with_splits,
    {"return found": "return sorted(found)"},
    breaks=hidden_tests.indices_of_several_digits,
    tells="You sorted the GPUs. They stay in the order of the lines.",
)

index_as_text = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': 'found.append((index, name, uuid.rstrip().rstrip(")")))',
    },
    breaks=hidden_tests.lists_gpus,
    tells="The index came back as text. It is to be an int.",
)

lists_for_tuples = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': 'found.append([int(index), name, uuid.rstrip().rstrip(")")])',
    },
    breaks=hidden_tests.lists_gpus,
    tells="Each GPU came back as a list. A tuple (index, name, uuid) is asked "
    "for.",
)

uuid_with_parenthesis = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': "found.append((int(index), name, uuid.rstrip()))",
    },
    breaks=hidden_tests.lists_gpus,
    tells="The closing parenthesis is still at the end of your UUID.",
)

uuid_without_its_prefix = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': """
        found.append(
            (
                int(index),
                name,
                uuid.rstrip().rstrip(")").removeprefix("GPU-"),
            )
        )
        """,
    },
    breaks=hidden_tests.lists_gpus,
    tells="You cut off the `GPU-` of the UUID. It belongs to it: "
    "`CUDA_VISIBLE_DEVICES` wants it so.",
)

name_of_one_word = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': """
        found.append(
            (int(index), name.split()[0], uuid.rstrip().rstrip(")"))
        )
        """,
    },
    breaks=[hidden_tests.names_of_all_kinds, hidden_tests.lists_gpus],
    tells="You took one word of the name. A name may hold blanks: take all up "
    "to ` (UUID: `.",
)

name_up_to_a_colon = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': """
        found.append(
            (int(index), name.split(":")[0], uuid.rstrip().rstrip(")"))
        )
        """,
    },
    breaks=hidden_tests.names_of_all_kinds,
    tells="You split the line at every colon. A name may hold some: split "
    "once from the left and once from the right.",
)

name_up_to_a_parenthesis = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': """
        found.append(
            (int(index), name.split(" (")[0], uuid.rstrip().rstrip(")"))
        )
        """,
    },
    breaks=hidden_tests.names_of_all_kinds,
    tells="Your name ends at the first parenthesis. A name may hold some: "
    "look for the last ` (UUID: `.",
)

every_line_a_gpu = edit(
    with_splits,
    {
        """
        if line.startswith("GPU "):
            index, rest = line.removeprefix("GPU ").split(": ", 1)
            name, uuid = rest.rsplit(" (UUID: ", 1)
            found.append((int(index), name, uuid.rstrip().rstrip(")")))
        """: """
        index, rest = line.removeprefix("GPU ").split(": ", 1)
        name, uuid = rest.rsplit(" (UUID: ", 1)
        found.append((int(index), name, uuid.rstrip().rstrip(")")))
        """,
    },
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You expect every line to be a GPU and fail at the first that is "
    "none. Leave out what does not begin with `GPU `.",
)

first_line_asked = edit(
    with_splits,
    {
        "found = []": """
        found = []
        if not listing.splitlines()[0].startswith(("GPU", "No", "WARN")):
            return found
        """,
    },
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You look at the first line of a text that may have none.",
)

slices_taken_for_gpus = edit(
    with_splits,
    {
        """
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found
        """: r"""
        pattern = r"^.*?(\d+): (.*?) ?\(UUID: (\S+)\)\s*$"
        found = [re.match(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]
        """,
    },
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You took the slices of a divided card for GPUs. Only lines that "
    "begin with `GPU ` count; theirs are indented.",
)

ends_of_windows_kept = edit(
    with_splits,
    {
        'found.append((int(index), name, uuid.rstrip().rstrip(")")))': "found.append((int(index), name, uuid[:-1]))",
    },
    breaks=hidden_tests.ends_of_lines,
    tells="Blanks or a `\\r` at the end of a line spoil your UUID. Strip the "
    "line before you take it apart.",
)


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


uuids_of_eight_digits = edit(
    with_properties_and_a_pattern,
    {"\\(UUID: ([^)]*)\\)": "\\(UUID: (GPU-[0-9a-f]{8}[^)]*)\\)"},
    breaks=hidden_tests.lists_gpus,
    tells="You take UUIDs with eight digits in front only. Take whatever "
    "stands between `(UUID: ` and the last parenthesis.",
)

version_of_rocm_for_cuda = edit(
    with_splits,
    {
        '"cuda": torch.version.cuda,': '"cuda": torch.version.cuda or torch.version.hip,',
    },
    breaks=hidden_tests.machines_with_gpus,
    tells="Where there is no version of CUDA you report that of ROCm. They are "
    "two things: without CUDA the entry is None.",
)

cudnn_asked_for_first = edit(
    with_splits,
    {
        "cudnn = torch.backends.cudnn.version()": """
        cudnn = None
        if torch.backends.cudnn.is_available():
            cudnn = torch.backends.cudnn.version()
        """,
    },
)

cudnn_asked_for_and_unguarded = edit(
    with_splits,
    {
        """
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        """: """
        cudnn = None
        if torch.backends.cudnn.is_available():
            cudnn = torch.backends.cudnn.version()
        """,
    },
    breaks=hidden_tests.cudnn_that_raises,
    tells="`torch.backends.cudnn.version()` raises a `RuntimeError` where "
    "cuDNN does not fit this PyTorch, and your report with it. Catch "
    "that, and report None.",
)
