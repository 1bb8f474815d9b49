"""Answers to `quiz` of chapter 00."""

import torch

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


@accepted()
def as_a_literal():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@accepted()
def in_capital_letters():
    return dict(
        current="B",
        numbers="C",
        assigned="B",
        left_behind="D",
        busy="C",
        versions="B",
    )


@accepted()
def from_a_string():
    names = "current numbers assigned left_behind busy versions".split()
    return dict(zip(names, "bcbdcb"))


@accepted()
def with_answers_worked_out():
    index = torch.device("cuda").index
    current = "b" if index is None else "a"
    numbers = "abc"[2 - [3, 1].index(3)]
    x = torch.ones(1)
    x.to("meta")
    assigned = "b" if x.device.type == "cpu" else "d"
    letters = {"current": current, "numbers": numbers, "assigned": assigned}
    return {**letters, "left_behind": "d", "busy": "c", "versions": "b"}


@accepted()
def with_blanks_around():
    letters = {"versions": " b", "busy": "C ", "left_behind": "d"}
    letters |= {"assigned": "B", "numbers": " c ", "current": "b"}
    return letters


index_zero = edit(
    SOLUTION,
    {'"current": "b",': '"current": "a",'},
    breaks=hidden_tests.which_index,
    tells='You took "cuda" for "cuda:0". Without a number it means the '
    "current device, which `torch.cuda.set_device` may have changed: "
    "its index is None.",
)

index_an_error = edit(
    SOLUTION,
    {'"current": "b",': '"current": "c",'},
    breaks=hidden_tests.which_index,
    tells="A `torch.device` is a name. It can be made and asked without any "
    "GPU; only moving something to it needs one.",
)

index_a_count = edit(
    SOLUTION,
    {'"current": "b",': '"current": "d",'},
    breaks=hidden_tests.which_index,
    tells="The index says which device is meant, not how many there are. "
    "Without a number it is None.",
)

old_number = edit(
    SOLUTION,
    {'"numbers": "c",': '"numbers": "a",'},
    breaks=hidden_tests.which_number,
    tells="Inside the program the cards are counted anew, from 0. With two "
    "visible GPUs there is no `cuda:3`.",
)

sorted_numbers = edit(
    SOLUTION,
    {'"numbers": "c",': '"numbers": "b",'},
    breaks=hidden_tests.which_number,
    tells="The list is not sorted: its order counts. The first entry is "
    "`cuda:0`.",
)

hidden_number = edit(
    SOLUTION,
    {'"numbers": "c",': '"numbers": "d",'},
    breaks=hidden_tests.which_number,
    tells="GPU 3 is in the list, so it is visible. What is not in the list is "
    "hidden.",
)

keeping_the_model = edit(
    SOLUTION,
    {'"assigned": "b",': '"assigned": "a",'},
    breaks=hidden_tests.what_to_keep,
    tells="It is the other way round: a module moves in place, a tensor's "
    "`.to` returns another tensor.",
)

keeping_both = edit(
    SOLUTION,
    {'"assigned": "b",': '"assigned": "c",'},
    breaks=hidden_tests.what_to_keep,
    tells="Assigning `model.to(device)` does no harm, but has no effect of "
    "its own: a module moves in place. Only the tensor's result must be "
    "kept.",
)

keeping_neither = edit(
    SOLUTION,
    {'"assigned": "b",': '"assigned": "d",'},
    breaks=hidden_tests.what_to_keep,
    tells="A tensor's `.to` leaves the tensor where it is and returns "
    "another. Without an assignment that one is lost.",
)

buffers_stay = edit(
    SOLUTION,
    {'"left_behind": "d",': '"left_behind": "a",'},
    breaks=hidden_tests.what_stays,
    tells="Buffers move: they are registered with the module. A tensor that "
    "is only an attribute does not.",
)

frozen_stay = edit(
    SOLUTION,
    {'"left_behind": "d",': '"left_behind": "b",'},
    breaks=hidden_tests.what_stays,
    tells="Freezing (`requires_grad=False`) keeps a weight from being "
    "trained. It is a parameter all the same and moves.",
)

module_list_stays = edit(
    SOLUTION,
    {'"left_behind": "d",': '"left_behind": "c",'},
    breaks=hidden_tests.what_stays,
    tells="An `nn.ModuleList` is there for that: its layers are registered "
    "and move. Those in a Python list do not.",
)

memory_full = edit(
    SOLUTION,
    {'"busy": "c",': '"busy": "a",'},
    breaks=hidden_tests.what_utilisation_is,
    tells="Memory in use stands in another column. Utilisation is about time: "
    "the share of it in which some kernel ran.",
)

whole_chip_busy = edit(
    SOLUTION,
    {'"busy": "c",': '"busy": "b",'},
    breaks=hidden_tests.what_utilisation_is,
    tells="One small kernel that runs all the time gives 100 %, on a chip "
    "that is nearly empty. Utilisation is a share of time, not of the "
    "chip.",
)

no_other_process = edit(
    SOLUTION,
    {'"busy": "c",': '"busy": "d",'},
    breaks=hidden_tests.what_utilisation_is,
    tells="Other processes can start and will share the time. Utilisation is "
    "the share of time in which some kernel ran.",
)

of_the_driver = edit(
    SOLUTION,
    {'"versions": "b",': '"versions": "a",'},
    breaks=hidden_tests.whose_version,
    tells="What the driver supports at most stands in the head of `nvidia-"
    "smi`. `torch.version.cuda` was written down when PyTorch was "
    "built.",
)

of_the_toolkit = edit(
    SOLUTION,
    {'"versions": "b",': '"versions": "c",'},
    breaks=hidden_tests.whose_version,
    tells="A toolkit on the disk (`nvcc --version`) can be another, or none. "
    "`torch.version.cuda` was written down when PyTorch was built.",
)

of_the_card = edit(
    SOLUTION,
    {'"versions": "b",': '"versions": "d",'},
    breaks=hidden_tests.whose_version,
    tells="The card is not asked: the number is there on machines without "
    "one. It was written down when PyTorch was built.",
)
