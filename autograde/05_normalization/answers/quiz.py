"""Answers to `quiz` of chapter 05."""

import torch
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def as_a_literal():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@accepted()
def in_capital_letters():
    return dict(
        motive="B",
        shift="C",
        momentum="A",
        tracking="D",
        two_variances="D",
        alone="C",
    )


@accepted()
def from_a_string():
    questions = "motive shift momentum tracking two_variances alone".split()
    return dict(zip(questions, "bcaddc"))


@accepted()
def with_one_answer_worked_out():
    layers = {
        "a": (nn.LayerNorm(8), (1, 8)),
        "b": (nn.BatchNorm2d(8), (1, 8, 4, 4)),
        "c": (nn.BatchNorm1d(8), (1, 8)),
        "d": (nn.GroupNorm(2, 8), (1, 8, 1, 1)),
    }
    raising = []
    for letter, (layer, shape) in layers.items():
        try:
            layer(torch.zeros(shape))
        except ValueError:
            raising.append(letter)
    answers = dict(motive="b", shift="c", momentum="a", tracking="d")
    return {**answers, "two_variances": "d", "alone": raising[0]}


@accepted()
def with_blanks_around():
    letters = {"alone": " c", "two_variances": "d ", "tracking": "D"}
    letters |= {"momentum": "a", "shift": " C ", "motive": "b"}
    return letters


@accepted()
def letter_by_letter():
    answers = {}
    for question, place in [
        ("alone", 2),
        ("motive", 1),
        ("shift", 2),
        ("two_variances", 3),
        ("tracking", 3),
        ("momentum", 0),
    ]:
        answers[question] = "abcd"[place]
    return answers


proving_the_shift = edit(
    SOLUTION,
    {'"motive": "b",': '"motive": "a",'},
    breaks=hidden_tests.why_it_helps,
    tells="Nobody has proved that. The reduction of internal covariate shift "
    "was the motive of the authors; Santurkar and others (2018) added "
    "shift behind the layers on purpose and batch norm helped all the "
    "same.",
)

repairing_the_data = edit(
    SOLUTION,
    {'"motive": "b",': '"motive": "c",'},
    breaks=hidden_tests.why_it_helps,
    tells="Nothing is wrong with the data. The motive concerned what happens "
    "inside the network while it learns.",
)

keeping_weights_small = edit(
    SOLUTION,
    {'"motive": "b",': '"motive": "d",'},
    breaks=hidden_tests.why_it_helps,
    tells="Batch norm puts no pressure on weights: scale them all and the "
    "output stays the same. Weight decay is another tool.",
)

shifting_to_the_test_data = edit(
    SOLUTION,
    {'"shift": "c",': '"shift": "a",'},
    breaks=hidden_tests.what_shifts,
    tells="That is covariate shift in the data, between training and test. "
    "The *internal* one happens inside the network, between steps of "
    "training.",
)

shifting_the_labels = edit(
    SOLUTION,
    {'"shift": "c",': '"shift": "b",'},
    breaks=hidden_tests.what_shifts,
    tells="No labels are involved. The term is about the inputs of a layer in "
    "the middle of the network.",
)

taking_outliers_for_shift = edit(
    SOLUTION,
    {'"shift": "c",': '"shift": "d",'},
    breaks=hidden_tests.what_shifts,
    tells="Outliers are samples, and may be there in a network that does not "
    "learn at all. The term is about distributions that move while "
    "earlier layers learn.",
)

keeping_nine_tenths = edit(
    SOLUTION,
    {'"momentum": "a",': '"momentum": "b",'},
    breaks=hidden_tests.what_momentum_weighs,
    tells="That is the momentum of SGD. In BatchNorm it is the share of the "
    "*new* batch, so 0.9 nearly forgets what was before.",
)

speeding_up_the_optimizer = edit(
    SOLUTION,
    {'"momentum": "a",': '"momentum": "c",'},
    breaks=hidden_tests.what_momentum_weighs,
    tells="The word is shared with the optimizers, nothing else is. In "
    "BatchNorm it says how fast the running statistics follow.",
)

smoothing_the_output = edit(
    SOLUTION,
    {'"momentum": "a",': '"momentum": "d",'},
    breaks=hidden_tests.what_momentum_weighs,
    tells="The output in training does not depend on the running statistics, "
    "so no momentum can smooth it.",
)

passing_the_input_on = edit(
    SOLUTION,
    {'"tracking": "d",': '"tracking": "a",'},
    breaks=hidden_tests.what_tracking_means,
    tells="The layer still normalizes. Without running statistics only the "
    "batch is left to do it by.",
)

tracking_zeros_and_ones = edit(
    SOLUTION,
    {'"tracking": "d",': '"tracking": "b",'},
    breaks=hidden_tests.what_tracking_means,
    tells="There are no such buffers: they are None, and `state_dict` has no "
    "entry for them.",
)

raising_without_tracking = edit(
    SOLUTION,
    {'"tracking": "d",': '"tracking": "c",'},
    breaks=hidden_tests.what_tracking_means,
    tells="It works without error, in training and in eval alike, by the one "
    "thing it has: the batch.",
)

four_and_four = edit(
    SOLUTION,
    {'"two_variances": "d",': '"two_variances": "a",'},
    breaks=hidden_tests.which_variance,
    tells="The output is right, the buffer is not: it estimates the variance "
    "of all data, and for that one divides by n − 1.",
)

three_and_three = edit(
    SOLUTION,
    {'"two_variances": "d",': '"two_variances": "b",'},
    breaks=hidden_tests.which_variance,
    tells="The buffer is right, the output is not: the batch is normalized by "
    "its own variance, divided by n.",
)

three_and_four = edit(
    SOLUTION,
    {'"two_variances": "d",': '"two_variances": "c",'},
    breaks=hidden_tests.which_variance,
    tells="The wrong way round: the batch is normalized with ÷ n, and what is "
    "stored for later is ÷ (n − 1).",
)

layer_norm_alone = edit(
    SOLUTION,
    {'"alone": "c",': '"alone": "a",'},
    breaks=hidden_tests.who_raises_alone,
    tells="Layer norm averages over the 8 features of the one sample: 8 "
    "values, no error.",
)

an_image_alone = edit(
    SOLUTION,
    {'"alone": "c",': '"alone": "b",'},
    breaks=hidden_tests.who_raises_alone,
    tells="A channel of one 4 × 4 image has 16 values: no error. It is "
    "normalized by itself alone, which is another matter.",
)

group_norm_alone = edit(
    SOLUTION,
    {'"alone": "c",': '"alone": "d",'},
    breaks=hidden_tests.who_raises_alone,
    tells="Two groups of four channels have 4 values each: no error. It "
    "raises only where one value is left.",
)


@wrong(
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="Your keys are not those of the questions. Use motive, shift, momentum, "
    "tracking, two_variances and alone.",
)
def with_numbers_for_keys():
    return dict(enumerate("bcaddc", start=1))


@wrong(
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="You return the letters without their questions. `quiz()` returns a"
    " dict with motive, shift, momentum, tracking, two_variances and "
    "alone as keys.",
)
def as_a_list():
    return ["b", "c", "a", "d", "d", "c"]


@wrong(
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="Each answer is one letter, a, b, c or d, and not several of them, "
    "nor a letter in parentheses.",
)
def with_all_letters():
    return dict.fromkeys(
        ("motive", "shift", "momentum", "tracking", "two_variances", "alone"),
        "abcd",
    )
