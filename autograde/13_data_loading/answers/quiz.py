"""Answers to `quiz` of chapter 13."""

from torch.utils.data import (
    DataLoader,
)

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def as_a_literal():
    return {
        "message": "c",
        "cure": "d",
        "lone": "a",
        "dropped": "b",
        "pinned": "c",
        "started": "b",
    }


@accepted()
def in_capital_letters():
    return dict(
        message="C", cure="D", lone="A", dropped="B", pinned="C", started="B"
    )


@accepted()
def from_a_string():
    questions = "message cure lone dropped pinned started".split()
    return dict(zip(questions, "cdabcb"))


@accepted()
def with_one_answer_worked_out():
    letters = {"message": "c", "cure": "d", "lone": "a", "pinned": "c"}
    loader = DataLoader(range(30), batch_size=32, drop_last=True)
    letters["dropped"] = "b" if len(list(loader)) == 0 else "a"
    return {**letters, "started": "b"}


@accepted()
def with_blanks_around():
    letters = {"started": " b", "pinned": "c ", "dropped": " B "}
    return letters | {"lone": "a", "cure": "d", "message": "C"}


blaming_the_gpu = edit(
    SOLUTION,
    {'"message": "c",': '"message": "a",'},
    breaks=[hidden_tests.what_is_full],
    tells="The GPU has no part in this: the worker is a process on the CPU, "
    "and `shm` in the message is shared memory, `/dev/shm`.",
)

blaming_the_disk = edit(
    SOLUTION,
    {'"message": "c",': '"message": "b",'},
    breaks=[hidden_tests.what_is_full],
    tells='"No space left on device" sounds like a disk, but the device here '
    "is `/dev/shm`, a file system in memory. The message says `shm`.",
)

blaming_open_files = edit(
    SOLUTION,
    {'"message": "c",': '"message": "d",'},
    breaks=[hidden_tests.what_is_full],
    tells="Too many open files give another message (`Too many open files`). "
    "Here space is lacking, in `/dev/shm`.",
)

curing_by_strategy = edit(
    SOLUTION,
    {'"cure": "d",': '"cure": "a",'},
    breaks=[hidden_tests.which_cure],
    tells="The strategy `file_system` uses the same shared memory, only under "
    "names, and fails in the same way. It cures too many open files.",
)

curing_by_no_workers = edit(
    SOLUTION,
    {'"cure": "d",': '"cure": "b",'},
    breaks=[hidden_tests.which_cure],
    tells="`num_workers=0` ends the message, and with it all loading beside "
    "the model: the workers were to be kept.",
)

curing_by_pinning = edit(
    SOLUTION,
    {'"cure": "d",': '"cure": "c",'},
    breaks=[hidden_tests.which_cure],
    tells="Pinned memory is another one, in the main process. The workers' "
    "batches still go through `/dev/shm` first.",
)

failing_for_every_rest = edit(
    SOLUTION,
    {'"lone": "a",': '"lone": "b",'},
    breaks=[hidden_tests.when_it_fails],
    tells="A rest of two or more trains. Only a batch of a single sample has "
    "one value per channel.",
)

failing_for_a_rest_of_one = edit(
    SOLUTION,
    {'"lone": "a",': '"lone": "c",'},
    breaks=[hidden_tests.when_it_fails],
    tells="Nearly. With batches of one sample N % B is 0, and every batch "
    "fails.",
)

failing_for_few = edit(
    SOLUTION,
    {'"lone": "a",': '"lone": "d",'},
    breaks=[hidden_tests.when_it_fails],
    tells="Fewer samples than a batch are one smaller batch, and that trains "
    "unless it is a single sample.",
)

dropping_nothing = edit(
    SOLUTION,
    {'"dropped": "b",': '"dropped": "a",'},
    breaks=[hidden_tests.what_is_dropped],
    tells="`drop_last=True` drops every incomplete batch, also if it is the "
    "only one.",
)

dropping_with_an_error = edit(
    SOLUTION,
    {'"dropped": "b",': '"dropped": "c",'},
    breaks=[hidden_tests.what_is_dropped],
    tells="An error would be better, but there is none: the loop runs over "
    "nothing, and training seems to work.",
)

dropping_and_filling = edit(
    SOLUTION,
    {'"dropped": "b",': '"dropped": "d",'},
    breaks=[hidden_tests.what_is_dropped],
    tells="A DataLoader never fills a batch up. (`DistributedSampler` does, "
    "to give each process as many samples.)",
)

pinning_for_the_disk = edit(
    SOLUTION,
    {'"pinned": "c",': '"pinned": "a",'},
    breaks=[hidden_tests.what_pinning_is_for],
    tells="Pinning happens after reading: it is about the way from the CPU's "
    "memory to the GPU.",
)

pinning_for_shared_memory = edit(
    SOLUTION,
    {'"pinned": "c",': '"pinned": "b",'},
    breaks=[hidden_tests.what_pinning_is_for],
    tells="Pinned memory is page-locked memory of the main process. What the "
    "workers put into `/dev/shm` stays as large.",
)

pinning_on_the_gpu = edit(
    SOLUTION,
    {'"pinned": "c",': '"pinned": "d",'},
    breaks=[hidden_tests.what_pinning_is_for],
    tells="Pinned memory is on the CPU's side. Nothing stays on the GPU "
    "unless you put it there.",
)

lambdas_are_slow = edit(
    SOLUTION,
    {'"started": "b",': '"started": "a",'},
    breaks=[hidden_tests.how_workers_start],
    tells="A lambda is a function like others. It cannot be pickled, and that "
    "is what a worker started afresh needs.",
)

no_shared_memory_there = edit(
    SOLUTION,
    {'"started": "b",': '"started": "c",'},
    breaks=[hidden_tests.how_workers_start],
    tells="They have shared memory as well. The loader fails before anything "
    "is loaded: the lambda cannot be pickled.",
)

one_process_only = edit(
    SOLUTION,
    {'"started": "b",': '"started": "d",'},
    breaks=[hidden_tests.how_workers_start],
    tells="They run as many processes as you like. Started afresh, a worker "
    "gets its things pickled, and a lambda cannot be.",
)


@wrong(
    breaks=[
        hidden_tests.what_is_full,
        hidden_tests.which_cure,
        hidden_tests.when_it_fails,
        hidden_tests.what_is_dropped,
        hidden_tests.what_pinning_is_for,
        hidden_tests.how_workers_start,
    ],
    tells="You return the letters without their questions. Return a dict with "
    "the names of the questions as keys.",
)
def quiz_as_a_list():
    return ["c", "d", "a", "b", "c", "b"]


@wrong(
    breaks=[
        hidden_tests.what_is_full,
        hidden_tests.which_cure,
        hidden_tests.when_it_fails,
        hidden_tests.what_is_dropped,
        hidden_tests.what_pinning_is_for,
        hidden_tests.how_workers_start,
    ],
    tells="Your answers are more than a letter. One letter for each question, "
    'such as "a".',
)
def quiz_in_words():
    return {
        "message": "(c) /dev/shm",
        "cure": "(d) --shm-size",
        "lone": "(a)",
        "dropped": "(b) none",
        "pinned": "(c) non_blocking",
        "started": "(b) pickle",
    }
