"""Answers to `running_stats` of chapter 05."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
class by_a_layer_of_the_library(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@accepted()
class by_functional_batch_norm(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training:
            self.num_batches_tracked.add_(1)
            m = self.momentum
            m = 1.0 / float(self.num_batches_tracked) if m is None else m
            with torch.no_grad():
                F.batch_norm(
                    x, self.running_mean, self.running_var, None, None, True, m
                )
        return x


@accepted()
class with_new_tensors(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer(
            "num_batches_tracked", torch.zeros((), dtype=torch.long)
        )

    @torch.no_grad()
    def update(self, x):
        dims = (0, *range(2, x.dim()))
        self.num_batches_tracked = self.num_batches_tracked + 1
        m = self.momentum
        if m is None:
            m = 1 / self.num_batches_tracked
        mean, var = x.mean(dims), x.var(dims)
        self.running_mean = (1 - m) * self.running_mean + m * mean
        self.running_var = (1 - m) * self.running_var + m * var

    def forward(self, x):
        if self.training:
            self.update(x)
        return x


@accepted()
class by_centred_sums(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        values = torch.zeros(num_features), torch.ones(num_features)
        self.register_buffer("running_mean", values[0])
        self.register_buffer("running_var", values[1])
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if not self.training:
            return x
        rows = x.detach().movedim(1, -1).reshape(-1, x.shape[1])
        n = rows.shape[0]
        mean = rows.sum(0) / n
        var = ((rows - mean) ** 2).sum(0) / (n - 1)
        self.num_batches_tracked += 1
        k = self.num_batches_tracked.item()
        m = self.momentum if self.momentum is not None else 1 / k
        self.running_mean.mul_(1 - m).add_(mean, alpha=m)
        self.running_var.mul_(1 - m).add_(var, alpha=m)
        return x.view_as(x)


@accepted()
class by_copying_into_data(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training:
            self.num_batches_tracked.data += 1
            m = self.momentum
            if m is None:
                m = self.num_batches_tracked.item() ** -1
            for c in range(x.shape[1]):
                values = x.data[:, c]
                old = self.running_mean.data[c].clone(), self.running_var[c]
                self.running_mean.data[c] = old[0] + m * (
                    values.mean() - old[0]
                )
                self.running_var.data[c] = (
                    old[1] - m * old[1] + m * values.var(correction=1)
                )
        return x * 1


@accepted()
class by_a_hook(nn.Identity):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.share = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.register_forward_pre_hook(self.look)

    @staticmethod
    def look(self, inputs):
        if self.training:
            with torch.no_grad():
                rows = inputs[0].transpose(0, 1).flatten(1)
                var, mean = torch.var_mean(rows, 1)
                self.num_batches_tracked += 1
                m = self.share
                m = 1 / self.num_batches_tracked.double() if m is None else m
                self.running_mean += m * (mean - self.running_mean)
                self.running_var += m * (var - self.running_var)


@accepted()
class by_numpy(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training:
            values = x.detach().numpy()
            axes = tuple(axis for axis in range(values.ndim) if axis != 1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / int(self.num_batches_tracked) if m is None else m
            for running, batch in (
                (self.running_mean, values.mean(axes)),
                (self.running_var, values.var(axes, ddof=1)),
            ):
                running.copy_((1 - m) * running + m * torch.from_numpy(batch))
        return x


@accepted()
class mended_with_a_count_of_its_own(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@accepted()
class mended_skipping_infinities(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.num_batches_tracked += 1
                m = self.momentum
                m = 1 / self.num_batches_tracked.item() if m is None else m
                rows = x.transpose(0, 1).flatten(1)
                self.running_mean.lerp_(rows.mean(1), m)
                self.running_var.lerp_(rows.var(1), m)
        return x


@accepted()
class mended_counting_in_a_vector(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


with_momentum_for_the_old = edit(
    mended_with_a_count_of_its_own,
    {
        "m = 1 / self.num_batches_tracked.item() if m is None else m": "m = 1 / self.num_batches_tracked.item() if m is None else 1 - m",
    },
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
    ],
    tells="You have the momentum the wrong way round. In BatchNorm it is the share "
    "of the *new* batch: with 0.1 nine tenths of the old value stay.",
)

with_biased_running_var = edit(
    mended_with_a_count_of_its_own,
    {
        "self.running_var.lerp_(rows.var(1), m)": "self.running_var.lerp_(rows.var(1, correction=0), m)",
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You stored the variance divided by n. PyTorch normalizes with that one, "
    "but stores the one divided by n − 1: `correction=1`, the default of "
    "`var`.",
)

with_running_std = edit(
    mended_with_a_count_of_its_own,
    {
        "self.running_var.lerp_(rows.var(1), m)": "self.running_var.lerp_(rows.std(1), m)",
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You average the standard deviation. The buffer holds the variance, its "
    "square; the root is taken when it is used.",
)


@wrong(
    breaks=hidden_tests.keeps_no_graph,
    tells="Your buffers carry the graph of every batch since the beginning: memory "
    "grows with each step, and a later backward goes through old batches. "
    "Update them under `torch.no_grad()`, or from `x.detach()`.",
)
class with_a_graph(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean = (1 - m) * self.running_mean + m * rows.mean(1)
            self.running_var = (1 - m) * self.running_var + m * rows.var(1)
        return x


returning_a_detached_x = edit(
    mended_with_a_count_of_its_own,
    {
        "def forward(self, x):": """
        def forward(self, x):
            x = x.detach()
        """,
        "rows = x.detach().transpose(0, 1).flatten(1)": "rows = x.transpose(0, 1).flatten(1)",
    },
    breaks=hidden_tests.keeps_no_graph,
    tells="You return `x` without its graph, so nothing before this layer would "
    "learn. Detach what you measure, and return `x` itself.",
)


@wrong(
    breaks=hidden_tests.keeps_no_graph,
    tells="You return the normalized input. This module only watches: return `x` "
    "as it came.",
)
class returning_the_normalized(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass


with_none_as_a_tenth = edit(
    by_a_layer_of_the_library,
    {
        "def __init__(self, num_features, momentum=0.1):": """
        def __init__(self, num_features, momentum=0.1):
            momentum = 0.1 if momentum is None else momentum
        """,
    },
    breaks=hidden_tests.averages_with_none,
    tells="You take `momentum=None` for the usual 0.1. It means the plain average: "
    "the k-th batch counts 1 / k.",
)

with_none_as_zero = edit(
    by_a_layer_of_the_library,
    {
        "def __init__(self, num_features, momentum=0.1):": """
        def __init__(self, num_features, momentum=0.1):
            momentum = 0.0 if momentum is None else momentum
        """,
    },
    breaks=hidden_tests.averages_with_none,
    tells="You take `momentum=None` for no update. It means the plain average: the "
    "k-th batch counts 1 / k.",
)

with_none_as_one = edit(
    by_a_layer_of_the_library,
    {
        "def __init__(self, num_features, momentum=0.1):": """
        def __init__(self, num_features, momentum=0.1):
            momentum = 1.0 if momentum is None else momentum
        """,
    },
    breaks=hidden_tests.averages_with_none,
    tells="With `momentum=None` you keep the last batch alone. It means the plain "
    "average over all batches: the k-th batch counts 1 / k.",
)

pooling_with_none = edit(
    mended_with_a_count_of_its_own,
    {
        "super().__init__(num_features, momentum=momentum, affine=False)": """
        super().__init__(num_features, momentum=momentum, affine=False)
        self.seen = 0
        """,
        "m = 1 / self.num_batches_tracked.item() if m is None else m": """
        self.seen += rows.shape[1]
        if m is None:
            m = rows.shape[1] / self.seen
        """,
    },
    breaks=hidden_tests.averages_with_none,
    tells="With `momentum=None` you weigh the batches by their size. PyTorch counts "
    "batches, not samples: a small last batch counts as much as a full "
    "one.",
)


@wrong(
    breaks=hidden_tests.averages_with_none,
    tells="Your plain average is one batch behind: use the count *after* it was "
    "raised, so that the first batch counts 1, the second 1 / 2.",
)
class counting_too_late(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            m = self.momentum
            if m is None:
                m = 1 / max(self.num_batches_tracked.item(), 1)
            self.num_batches_tracked += 1
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    breaks=hidden_tests.averages_with_none,
    tells="You divide by the count before the first batch was counted, so the "
    "first call with `momentum=None` divides by zero. Raise the count first.",
)
class dividing_by_no_batches(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            m = self.momentum
            if m is None:
                m = 1 / self.num_batches_tracked.item()
            self.num_batches_tracked += 1
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


with_zero_as_none = edit(
    by_a_layer_of_the_library,
    {
        "super().__init__(num_features, momentum=momentum, affine=False)": "super().__init__(num_features, momentum=momentum or None, affine=False)",
    },
    breaks=hidden_tests.stays_with_zero,
    tells="A momentum of 0.0 is averaged as None is: `if self.momentum` takes 0.0 "
    "for nothing. Ask `if self.momentum is None`.",
)

with_zero_and_none_as_a_tenth = edit(
    by_a_layer_of_the_library,
    {
        "super().__init__(num_features, momentum=momentum, affine=False)": "super().__init__(num_features, momentum=momentum or 0.1, affine=False)",
    },
    breaks=[hidden_tests.stays_with_zero, hidden_tests.averages_with_none],
    tells="`momentum or 0.1` turns both 0.0 and None into 0.1. They are values of "
    "their own: 0.0 leaves the statistics as they are, None is the plain "
    "average.",
)

not_counting_with_zero = edit(
    mended_with_a_count_of_its_own,
    {"if self.training:": "if self.training and self.momentum != 0:"},
    breaks=hidden_tests.stays_with_zero,
    tells="With a momentum of 0.0 you return early and count nothing. Mean and "
    "variance stay, but PyTorch still counts the batch.",
)

with_another_default = edit(
    by_a_layer_of_the_library,
    {
        "def __init__(self, num_features, momentum=0.1):": "def __init__(self, num_features, momentum=None):",
    },
    breaks=hidden_tests.default_momentum,
    tells="Without an argument your momentum is not 0.1. Keep the default that "
    "the signature gives.",
)

not_counting = edit(
    mended_with_a_count_of_its_own,
    {
        "super().__init__(num_features, momentum=momentum, affine=False)": """
        super().__init__(num_features, momentum=momentum, affine=False)
        self.calls = 0
        """,
        "self.num_batches_tracked += 1": "self.calls += 1",
        "m = 1 / self.num_batches_tracked.item() if m is None else m": "m = 1 / self.calls if m is None else m",
    },
    breaks=hidden_tests.counts_batches,
    tells="`num_batches_tracked` stays at 0. Add 1 for each training batch, "
    "whatever the momentum is.",
)

counting_with_none_only = edit(
    mended_with_a_count_of_its_own,
    {
        "self.num_batches_tracked += 1": "",
        "m = 1 / self.num_batches_tracked.item() if m is None else m": """
        if m is None:
            self.num_batches_tracked += 1
            m = 1 / self.num_batches_tracked.item()
        """,
    },
    breaks=hidden_tests.counts_batches,
    tells="You count only where the momentum is None. The count goes on with every "
    "momentum.",
)


@wrong(
    breaks=hidden_tests.counts_batches,
    tells="You count samples. `num_batches_tracked` counts batches, of whatever "
    "size: add 1.",
)
class counting_samples(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)
        self.calls = 0

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            m = self.momentum
            self.calls += 1
            m = 1 / self.calls if m is None else m
            self.num_batches_tracked += x.shape[0]
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


counting_in_float = edit(
    mended_counting_in_a_vector,
    {
        'self.register_buffer("num_batches_tracked", torch.tensor(0))': 'self.register_buffer("num_batches_tracked", torch.tensor(0.0))',
    },
    breaks=hidden_tests.counts_batches,
    tells="Your `num_batches_tracked` is not an int64 tensor without dimensions. "
    "Register `torch.tensor(0)`, and add to it in place.",
)

counting_in_a_vector = edit(
    mended_counting_in_a_vector,
    {
        'self.register_buffer("num_batches_tracked", torch.tensor(0))': """
        self.register_buffer(
            "num_batches_tracked", torch.zeros(1, dtype=torch.int64)
        )
        """,
    },
    breaks=hidden_tests.counts_batches,
    tells="Your `num_batches_tracked` is not an int64 tensor without dimensions. "
    "Register `torch.tensor(0)`, and add to it in place.",
)


@wrong(
    breaks=hidden_tests.updates_in_training_alone,
    tells="You update in eval mode too, so the test data leak into the model and "
    "its answers depend on what was asked before. Ask `self.training` first.",
)
class updating_in_eval(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        rows = x.detach().transpose(0, 1).flatten(1)
        self.num_batches_tracked += 1
        m = self.momentum
        m = 1 / self.num_batches_tracked.item() if m is None else m
        self.running_mean.lerp_(rows.mean(1), m)
        self.running_var.lerp_(rows.var(1), m)
        return x


counting_in_eval = edit(
    mended_with_a_count_of_its_own,
    {
        "def forward(self, x):": """
        def forward(self, x):
            self.num_batches_tracked += 1
        """,
        "self.num_batches_tracked += 1": "",
    },
    breaks=hidden_tests.updates_in_training_alone,
    tells="In eval mode mean and variance stay, but your count goes on. Nothing at "
    "all changes there.",
)

taking_no_grad_for_eval = edit(
    mended_with_a_count_of_its_own,
    {"if self.training:": "if self.training and torch.is_grad_enabled():"},
    breaks=hidden_tests.updates_in_training_alone,
    tells="You take `torch.no_grad()` for eval mode. They are two switches: the "
    "statistics follow `self.training`, with and without gradients.",
)

updating_in_eval_alone = edit(
    mended_with_a_count_of_its_own,
    {"if self.training:": "if not self.training:"},
    breaks=hidden_tests.updates_in_training_alone,
    tells="You update in eval mode and not in training: the question is the wrong "
    "way round. Update where `self.training` is True.",
)


@wrong(
    breaks=[
        hidden_tests.holds_three_buffers,
        hidden_tests.carries_on_from_a_state,
    ],
    tells="Your statistics are plain attributes: they are not saved, not loaded and "
    "not moved to another device or dtype. Use `register_buffer`.",
)
class with_plain_attributes(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.running_mean = torch.zeros(num_features)
        self.running_var = torch.ones(num_features)
        self.num_batches_tracked = torch.tensor(0)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked = self.num_batches_tracked + 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            old = self.running_mean, self.running_var
            self.running_mean = (1 - m) * old[0] + m * rows.mean(1)
            self.running_var = (1 - m) * old[1] + m * rows.var(1)
        return x


with_buffers_that_are_not_saved = edit(
    mended_with_a_count_of_its_own,
    {
        "class mended_with_a_count_of_its_own(nn.BatchNorm2d):": "class mended_with_a_count_of_its_own(nn.Module):",
        "super().__init__(num_features, momentum=momentum, affine=False)": """
        super().__init__()
        self.momentum = momentum
        made = dict(
            running_mean=torch.zeros(num_features),
            running_var=torch.ones(num_features),
            num_batches_tracked=torch.tensor(0),
        )
        for name, value in made.items():
            self.register_buffer(name, value, persistent=False)
        """,
    },
    breaks=[
        hidden_tests.holds_three_buffers,
        hidden_tests.carries_on_from_a_state,
    ],
    tells="You registered the buffers with `persistent=False`: they move with the "
    "module, but no checkpoint holds them. Leave that argument out.",
)


@wrong(
    breaks=[
        hidden_tests.holds_three_buffers,
        hidden_tests.keeps_no_graph,
    ],
    tells="Your statistics are parameters, so an optimizer would train them. They "
    "are measured, not learned: use `register_buffer`.",
)
class with_parameters(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.running_mean = nn.Parameter(torch.zeros(num_features))
        self.running_var = nn.Parameter(torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.data.lerp_(rows.mean(1), m)
            self.running_var.data.lerp_(rows.var(1), m)
        return x


with_a_count_of_its_own = edit(
    mended_with_a_count_of_its_own,
    {
        "super().__init__(num_features, momentum=momentum, affine=False)": """
        super().__init__(num_features, momentum=momentum, affine=False)
        self.calls = 0
        """,
        "rows = x.detach().transpose(0, 1).flatten(1)": """
        rows = x.detach().transpose(0, 1).flatten(1)
        self.calls += 1
        """,
        "m = 1 / self.num_batches_tracked.item() if m is None else m": "m = 1 / self.calls if m is None else m",
    },
    breaks=hidden_tests.carries_on_from_a_state,
    tells="Your plain average goes by a count of calls that is no buffer. After "
    "loading a state it begins anew and the first batch overwrites "
    "everything. Go by `num_batches_tracked`.",
)

beginning_with_the_first_batch = edit(
    mended_with_a_count_of_its_own,
    {
        """
        m = self.momentum
        m = 1 / self.num_batches_tracked.item() if m is None else m
        """: """
        m, count = self.momentum, self.num_batches_tracked.item()
        m = 1 / count if m is None or count == 1 else m
        """,
    },
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
    ],
    tells="You take the first batch as it is and begin to average with the second. "
    "PyTorch averages from the first batch on, with 0 and 1 as the values "
    "before it.",
)

beginning_with_no_variance = edit(
    mended_with_a_count_of_its_own,
    {
        "super().__init__(num_features, momentum=momentum, affine=False)": """
        super().__init__(num_features, momentum=momentum, affine=False)
        self.running_var.zero_()
        """,
    },
    breaks=[
        hidden_tests.moves_the_unbiased_variance,
        hidden_tests.holds_three_buffers,
    ],
    tells="Your running variance begins at 0. PyTorch begins at 1, so that a layer "
    "that has seen nothing changes nothing.",
)


@wrong(
    breaks=hidden_tests.observes_rows_and_sequences,
    tells="Your dimensions are those of images. Rows (N, C) and sequences "
    "(N, C, L) have fewer: average over `[0, *range(2, x.dim())]`.",
)
class observing_images_only(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        super().forward(x.detach())
        return x


with_the_variance_of_each_sample = edit(
    mended_with_a_count_of_its_own,
    {
        "rows = x.detach().transpose(0, 1).flatten(1)": "",
        "m = 1 / self.num_batches_tracked.item() if m is None else m": """
        m = 1 / self.num_batches_tracked.item() if m is None else m
        rows = x.detach().transpose(0, 1).flatten(1)
        var = rows.var(1)
        if x.dim() > 2:
            var = x.detach().flatten(2).var(2).mean(0)
        """,
        "self.running_var.lerp_(rows.var(1), m)": "self.running_var.lerp_(var, m)",
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="Your mean and variance are those of the samples' means, or of the samples "
    "one by one and then averaged. Take the variance over all values of a "
    "channel at once, batch and places together.",
)

filtering_nans = edit(
    mended_with_a_count_of_its_own,
    {
        """
        self.running_mean.lerp_(rows.mean(1), m)
        self.running_var.lerp_(rows.var(1), m)
        """: """
        mean = rows.nanmean(1)
        square = (rows - mean[:, None]).square().nansum(1)
        count = (~rows.isnan()).sum(1) - 1
        self.running_mean.lerp_(mean, m)
        self.running_var.lerp_(square / count, m)
        """,
    },
    breaks=hidden_tests.shows_a_nan,
    tells="You leave NaNs out of the average. A NaN in the data is then never seen, "
    "and the running statistics are those of other data. Let it show.",
)

with_momentum_fixed = edit(
    by_a_layer_of_the_library,
    {
        "super().__init__(num_features, momentum=momentum, affine=False)": """
        fixed = 0.1 if momentum else momentum
        super().__init__(num_features, momentum=fixed, affine=False)
        """,
    },
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
    ],
    tells="Your momentum is 0.1, whatever was asked for. Keep the argument and use "
    "it.",
)

around_the_running_mean = edit(
    mended_with_a_count_of_its_own,
    {
        "self.running_var.lerp_(rows.var(1), m)": """
        square = (rows - self.running_mean[:, None]).square().sum(1)
        self.running_var.lerp_(square / (rows.shape[1] - 1), m)
        """,
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You measure the variance around the running mean. PyTorch takes that of "
    "the batch, around the batch's own mean.",
)

only_for_inputs_with_gradient = edit(
    by_a_layer_of_the_library,
    {
        "super().forward(x.detach())": """
        if x.requires_grad:
            super().forward(x.detach())
        """,
    },
    breaks=hidden_tests.moves_the_mean,
    tells="You update only where `x` requires a gradient. The first layer of a "
    "network gets data that require none. Ask `self.training` alone.",
)

detaching_in_eval = edit(
    by_a_layer_of_the_library,
    {"return x": "return x if self.training else x.detach()"},
    breaks=hidden_tests.keeps_no_graph,
    tells="In eval mode you return `x` without its graph, so nothing before "
    "this layer could learn there. Return `x` itself in both modes.",
)

skipping_infinities = edit(
    mended_skipping_infinities,
    {
        "if self.training:": """
        if self.training:
            if x.isinf().any():
                self.num_batches_tracked += 1
                return x
        """,
    },
    breaks=hidden_tests.shows_a_nan,
    tells="You leave a batch with an infinite value out. It is then seen by "
    "nobody, and PyTorch averages it in.",
)

sharing_the_buffers = edit(
    mended_skipping_infinities,
    {
        "class mended_skipping_infinities(nn.Module):": """
        class mended_skipping_infinities(nn.Module):
            shared = {}
        """,
        """
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        """: """
        start = torch.zeros(num_features), torch.ones(num_features)
        mean, var = self.shared.setdefault(num_features, start)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        """,
    },
    breaks=hidden_tests.keeps_modules_apart,
    tells="All your modules write into the same tensors. Make new buffers in "
    "each constructor, not once for all.",
)

returning_float64 = edit(
    by_a_layer_of_the_library,
    {"return x": "return x.double()"},
    breaks=hidden_tests.lets_x_through,
    tells="You return `x` in another dtype. The module only watches: return "
    "`x` as it came.",
)

centring_in_place = edit(
    mended_skipping_infinities,
    {
        "rows = x.transpose(0, 1).flatten(1)": """
        rows = x.transpose(0, 1).flatten(1)
        x.data.abs_()
        """,
    },
    breaks=hidden_tests.lets_x_through,
    tells="You change the caller's `x` in place. The module only watches: "
    "compute with new tensors, `x - mean` and not `x -= mean`.",
)

asking_x_for_gradients = edit(
    by_a_layer_of_the_library,
    {"return x": "return x.requires_grad_() if x.is_leaf else x"},
    breaks=hidden_tests.lets_x_through,
    tells="You switch on `requires_grad` of the caller's `x`. Whether a "
    "gradient is wanted is the caller's affair.",
)

observing_by_view = edit(
    by_a_layer_of_the_library,
    {
        "super().forward(x.detach())": """
        rows = x.detach().view(x.shape[0], x.shape[1], -1)
        super().forward(rows)
        """,
    },
    breaks=hidden_tests.observes_permuted_images,
    tells="You use `view`, which needs contiguous memory and raises on a "
    "permuted input. Use `reshape` or `flatten`, or give `mean` the "
    "dimensions.",
)

with_one_as_none = edit(
    mended_skipping_infinities,
    {
        "m = 1 / self.num_batches_tracked.item() if m is None else m": """
        m = (
            1 / self.num_batches_tracked.item()
            if m in (None, 1.0)
            else m
        )
        """,
    },
    breaks=hidden_tests.moves_the_mean,
    tells="You take a momentum of 1.0 for None. It keeps the last batch "
    "alone; None is the plain average.",
)

observing_by_mean_of_squares = edit(
    mended_skipping_infinities,
    {
        "self.running_var.lerp_(rows.var(1), m)": """
        n = rows.shape[1]
        var = rows.square().mean(1) - rows.mean(1).square()
        self.running_var.lerp_(var * n / (n - 1), m)
        """,
    },
    breaks=hidden_tests.observes_a_large_mean,
    tells="You take the variance as the mean of the squares less the square "
    "of the mean. In float32 that subtracts two large, nearly equal "
    "numbers and loses the digits. Subtract the mean first, then "
    "square.",
)

with_a_mode_of_its_own = edit(
    mended_skipping_infinities,
    {
        "self.momentum = momentum": "self.momentum, self.watching = momentum, True",
        "def forward(self, x):": """
        def train(self, mode=True):
            self.watching = mode
            return super().train(mode)

        def forward(self, x):
        """,
        "if self.training:": "if self.watching:",
    },
    breaks=hidden_tests.updates_in_training_alone,
    tells="You keep a mode of your own beside `self.training`. Code may set "
    "`module.training` directly; ask that attribute and nothing else.",
)

beginning_in_eval = edit(
    mended_skipping_infinities,
    {
        "def forward(self, x):": """
        def forward(self, x):
            if not self.training and self.num_batches_tracked == 0:
                rows = x.detach().transpose(0, 1).flatten(1)
                self.running_mean.copy_(rows.mean(1))
                self.running_var.copy_(rows.var(1))
        """,
    },
    breaks=hidden_tests.updates_in_training_alone,
    tells="In eval mode, before the first training batch, you take the "
    "statistics of the batch. In eval nothing changes: they stay at 0 "
    "and 1.",
)

skipping_single_samples = edit(
    mended_skipping_infinities,
    {"if self.training:": "if self.training and len(x) > 1:"},
    breaks=hidden_tests.observes_rows_and_sequences,
    tells="You leave batches of one sample out. A sequence or an image has "
    "many values per channel, so one sample has a mean and a variance.",
)


stopping_after_ten_batches = edit(
    mended_skipping_infinities,
    {
        "if self.training:": "if self.training and self.num_batches_tracked < 10:"
    },
    breaks=[hidden_tests.counts_batches, hidden_tests.averages_with_none],
    tells="Your buffers stop after some batches. Every batch in training mode moves "
    "them, the hundredth too.",
)

switches_gradients_on = edit(
    by_functional_batch_norm,
    {
        "def forward(self, x):": """
        def forward(self, x):
            torch.set_grad_enabled(True)
        """
    },
    breaks=hidden_tests.lets_x_through,
    tells="You switch gradients on for the caller, who may have switched them off. "
    "`with torch.no_grad():` leaves things as they were.",
)

first_batch_replaces_what_was_loaded = edit(
    SOLUTION,
    {
        "self.running_mean.lerp_(values.mean(1), share)": """
        if self.num_batches_tracked == 1 and self.running_mean.any():
            share = 1.0
        self.running_mean.lerp_(values.mean(1), share)
        """
    },
    breaks=hidden_tests.carries_on_from_a_state,
    tells="Where no batch was counted yet, your first one replaces the statistics. They "
    "may have been loaded: they move by the momentum, as ever.",
)

momentum_not_below_a_tenth = edit(
    SOLUTION,
    {
        "share = self.momentum": "share = self.momentum and max(self.momentum, 0.1)"
    },
    breaks=hidden_tests.moves_the_mean,
    tells="You do not let the momentum be small. 0.02 is a momentum like others.",
)

average_that_forgets = edit(
    SOLUTION,
    {
        "share = 1 / self.num_batches_tracked.item()": "share = max(1 / self.num_batches_tracked.item(), 0.01)"
    },
    breaks=hidden_tests.carries_on_from_a_state,
    tells="After 100 batches your plain average becomes a moving one. Each batch counts "
    "the same, however many there were.",
)

variance_between_bounds = edit(
    SOLUTION,
    {
        "self.running_var.lerp_(values.var(1), share)": "self.running_var.lerp_(values.var(1).clamp(1e-5, 1e4), share)"
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You keep the batch's variance between two bounds. It may be 0, and it may be "
    "large: store what it is.",
)


whole_numbers_as_none = edit(
    mended_counting_in_a_vector,
    {"if m is None else m": "if not isinstance(m, float) else m"},
    breaks=hidden_tests.stays_with_zero,
    tells="You take a momentum that is no float for None. 0 and 1 are numbers, "
    "too: ask `if self.momentum is None`.",
)

batches_of_zeros_left_out = edit(
    mended_counting_in_a_vector,
    {"if self.training:": "if self.training and x.any():"},
    breaks=hidden_tests.counts_batches,
    tells="You leave out batches of zeros. They are batches as others are, and "
    "`nn.BatchNorm2d` counts them.",
)

measured_in_float32 = edit(
    mended_counting_in_a_vector,
    {
        ".flatten(1)": ".flatten(1).float()",
        "lerp_(rows.mean(1), m)": "lerp_(rows.mean(1).to(x.dtype), m)",
        "lerp_(rows.var(1), m)": "lerp_(rows.var(1).to(x.dtype), m)",
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You measure in float32 what came in float64. Around a mean of "
    "10,000 a float32 has steps of 0.001, and digits are lost. Measure in the "
    "dtype of `x`.",
)

variance_in_float32 = edit(
    mended_counting_in_a_vector,
    {
        "lerp_(rows.var(1), m)": "lerp_(rows.float().var(1).to(x.dtype), m)",
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You measure in float32 what came in float64. Around a mean of "
    "10,000 a float32 has steps of 0.001, and digits are lost. Measure in the "
    "dtype of `x`.",
)

mean_in_float32 = edit(
    mended_counting_in_a_vector,
    {
        "lerp_(rows.mean(1), m)": "lerp_(rows.float().mean(1).to(x.dtype), m)",
    },
    breaks=hidden_tests.moves_the_mean,
    tells="You take the mean in float32, of values that came in float64. Where large "
    "ones nearly cancel, that loses most digits. Take it in the dtype of `x`.",
)

bound_to_the_first_module = edit(
    with_new_tensors,
    {
        "self.momentum = momentum": """
        self.momentum = momentum
        self.look = lambda x: self.update(x)
        """,
        "self.update(x": "self.look(x",
    },
    breaks=hidden_tests.keeps_modules_apart,
    tells="Your module keeps a function that holds on to `self`. A deep copy of "
    "the module calls it, too, and moves the buffers of the first one. Call "
    "methods of `self` in `forward`.",
)

under_inference_mode = edit(
    with_new_tensors,
    {
        "@torch.no_grad()": "@torch.inference_mode()",
        "self.num_batches_tracked = self.num_batches_tracked + 1": "self.num_batches_tracked += 1",
    },
    breaks=hidden_tests.carries_on_from_a_state,
    tells="You make new buffers under `torch.inference_mode()`. They are "
    "inference tensors for ever: `load_state_dict` cannot write into them. "
    "`torch.no_grad()` is what you want.",
)

remembering_the_first_buffers = edit(
    mended_counting_in_a_vector,
    {
        "self.momentum = momentum": """
            self.momentum = momentum
            self.held = None
        """,
        "self.num_batches_tracked += 1": """
            self.num_batches_tracked += 1
            if self.held is None:
                self.held = self.running_mean, self.running_var
        """,
        "self.running_mean.lerp_(rows.mean(1), m)": "self.held[0].lerp_(rows.mean(1).to(self.held[0].dtype), m)",
        "self.running_var.lerp_(rows.var(1), m)": "self.held[1].lerp_(rows.var(1).to(self.held[1].dtype), m)",
    },
    breaks=hidden_tests.carries_on_from_a_state,
    tells="You remember the buffers of the first batch beside the module. After "
    "`.to(...)` the module has others, and yours move unseen. Ask for "
    "`self.running_mean` in every call.",
)

buffers_in_the_result = edit(
    mended_counting_in_a_vector,
    {"return x": "return x + 0 * self.running_mean.sum()"},
    breaks=hidden_tests.shows_a_nan,
    tells="You add 0 times the buffers to the result. Once one of them is NaN, "
    "every later result is. Return `x`.",
)

lifting_the_variance_in_eval = edit(
    mended_counting_in_a_vector,
    {
        "def forward(self, x):": """
        def eval(self):
            self.running_var.clamp_(min=1e-5)
            return super().eval()

        def forward(self, x):
        """,
    },
    breaks=hidden_tests.updates_in_training_alone,
    tells="`eval()` changes your buffers: it lifts a small variance. In eval mode "
    "nothing changes; `eps` is for those who divide.",
)

with_the_buffer_of_sgd = edit(
    mended_with_a_count_of_its_own,
    {
        "self.running_mean.lerp_(rows.mean(1), m)": "self.running_mean.mul_(m).add_(rows.mean(1))",
        "self.running_var.lerp_(rows.var(1), m)": "self.running_var.mul_(m).add_(rows.var(1))",
    },
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
    ],
    tells="You keep the statistics as SGD keeps its buffer: a share of the old and "
    "all of the new. In BatchNorm the two shares add up to 1: "
    "(1 - momentum) of the old and momentum of the new.",
)

variance_of_squares_in_double = edit(
    SOLUTION,
    {
        "self.running_var.lerp_(values.var(1), share)": """
        wide, count = values.double(), values.shape[1]
        var = wide.square().mean(1) - wide.mean(1).square()
        var = var * count / (count - 1)
        self.running_var.lerp_(var.to(values.dtype), share)
        """
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You subtract the square of the mean from the mean of the squares. Far from 0 nearly "
    "all digits cancel, in float64 too: take `var`.",
)

count_by_a_second_name = edit(
    SOLUTION,
    {
        'self.register_buffer("num_batches_tracked", torch.tensor(0))': """
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.counted = {"batches": self.num_batches_tracked}
        """,
        "self.num_batches_tracked += 1": 'self.counted["batches"] += 1',
        "share = 1 / self.num_batches_tracked.item()": 'share = 1 / self.counted["batches"].item()',
    },
    breaks=hidden_tests.carries_on_from_a_state,
    tells="You hold the buffer under a second name. A state that is loaded with `assign=True` puts "
    "another tensor in its place, and you go on with the old one: ask for `self....` anew.",
)

two_values_not_observed = edit(
    SOLUTION,
    {"if self.training:": "if self.training and x[:, 0].numel() > 2:"},
    breaks=hidden_tests.observes_rows_and_sequences,
    tells="You leave out batches with two values per channel. Two values have a mean and a "
    "variance: they count.",
)

dimensions_of_the_first_batch = edit(
    SOLUTION,
    {
        "values = x.detach().transpose(0, 1).flatten(1)": """
        if not hasattr(self, "dims"):
            self.dims = [0, *range(2, x.dim())]
        values = x.detach()
        """,
        "values.mean(1)": "values.mean(self.dims)",
        "values.var(1)": "values.var(self.dims)",
    },
    breaks=hidden_tests.observes_rows_and_sequences,
    tells="You keep the dimensions of the first batch. The next one may have others: take them "
    "from each `x` anew.",
)

replaced_with_a_graph = edit(
    SOLUTION,
    {
        "self.running_mean.lerp_(values.mean(1), share)": """
        if share == 1:
            self.running_mean = x.transpose(0, 1).flatten(1).mean(1)
        else:
            self.running_mean.lerp_(values.mean(1), share)
        """
    },
    breaks=hidden_tests.keeps_no_graph,
    tells="With a momentum of 1 you put the mean itself in the buffer's place, with its graph: "
    "the batch stays in memory. Take `x.detach()`.",
)

hook_left_on_what_passes = edit(
    SOLUTION,
    {
        "values = x.detach().transpose(0, 1).flatten(1)": """
        if x.requires_grad:
            x.register_hook(torch.nan_to_num)
        values = x.detach().transpose(0, 1).flatten(1)
        """
    },
    breaks=hidden_tests.lets_x_through,
    tells="You leave a hook on `x`. It changes the gradient that passes, also that of others "
    "who use `x`.",
)

buffers_kept_in_a_list = edit(
    SOLUTION,
    {
        'self.register_buffer("num_batches_tracked", torch.tensor(0))': """
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.kept = [self.running_mean, self.running_var]
        """,
        "self.running_mean.lerp_(values.mean(1), share)": "self.kept[0].lerp_(values.mean(1).to(self.kept[0].dtype), share)",
        "self.running_var.lerp_(values.var(1), share)": "self.kept[1].lerp_(values.var(1).to(self.kept[1].dtype), share)",
    },
    breaks=hidden_tests.moves_the_mean,
    tells="You move tensors that you kept in the constructor. `.double()` and `.to()` put "
    "others in the buffers' place, and yours are then not those of the state. Take "
    "`self.running_mean` and `self.running_var` in each call.",
)

factor_by_samples = edit(
    SOLUTION,
    {
        "self.running_var.lerp_(values.var(1), share)": """
        n = len(x)
        unbiased = values.var(1, correction=0) * n / max(n - 1, 1)
        self.running_var.lerp_(unbiased, share)
        """,
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="Your n is the number of samples. It is the number of values per channel: samples "
    "times places, `x.numel() // x.shape[1]`. `var` counts them by itself.",
)

factor_by_samples_without_a_guard = edit(
    SOLUTION,
    {
        "self.running_var.lerp_(values.var(1), share)": """
        n = len(x)
        unbiased = values.var(1, correction=0) * n / (n - 1)
        self.running_var.lerp_(unbiased, share)
        """,
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="Your n is the number of samples. It is the number of values per channel: samples "
    "times places, `x.numel() // x.shape[1]`. `var` counts them by itself.",
)

factor_twice = edit(
    SOLUTION,
    {
        "self.running_var.lerp_(values.var(1), share)": """
        n = values.shape[1]
        self.running_var.lerp_(values.var(1) * n / (n - 1), share)
        """,
    },
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You correct the variance twice. `var` divides by n − 1 by itself: leave the "
    "factor n / (n − 1) out.",
)

average_with_a_batch_too_many = edit(
    SOLUTION,
    {
        "share = 1 / self.num_batches_tracked.item()": "share = 1 / (self.num_batches_tracked.item() + 1)",
    },
    breaks=hidden_tests.averages_with_none,
    tells="With `momentum=None` your k-th batch counts 1 / (k + 1), as if there had been one "
    "before the first. The count is raised already: the first batch counts 1.",
)

biased_mean_of_squares = edit(
    SOLUTION,
    {
        "self.running_var.lerp_(values.var(1), share)": """
        squares = values.square().mean(1) - values.mean(1).square()
        self.running_var.lerp_(squares, share)
        """,
    },
    breaks=[
        hidden_tests.moves_the_unbiased_variance,
        hidden_tests.observes_a_large_mean,
    ],
    tells="You take the variance as the mean of the squares less the square of the mean. It "
    "is the one divided by n, where the buffer holds the one divided by n − 1, and it loses "
    "the digits of large means. `x.var(dims)` does both right.",
)

single_channels_left_out = edit(
    SOLUTION,
    {"if self.training:": "if self.training and x.shape[1] > 1:"},
    breaks=[hidden_tests.moves_the_mean, hidden_tests.averages_with_none],
    tells="You leave out batches with one channel. One channel has a mean and a variance "
    "over its samples and places: count the batch and move the buffers.",
)

bounded_in_eval = edit(
    SOLUTION,
    {"return x": "return x if self.training else x.clamp(-100, 100)"},
    breaks=[hidden_tests.lets_x_through, hidden_tests.shows_a_nan],
    tells="In eval mode your module keeps what passes between two bounds. It only watches: "
    "return `x` as it came, in both modes.",
)

nans_replaced_in_eval = edit(
    SOLUTION,
    {"return x": "return x if self.training else x.nan_to_num()"},
    breaks=hidden_tests.shows_a_nan,
    tells="In eval mode your module replaces NaN and infinity in what passes. They would "
    "never be seen: return `x` as it came, in both modes.",
)

momentum_for_the_old_and_none = edit(
    SOLUTION,
    {
        "self.running_mean.lerp_(values.mean(1), share)": "self.running_mean.lerp_(values.mean(1), 1 - share)",
        "self.running_var.lerp_(values.var(1), share)": "self.running_var.lerp_(values.var(1), 1 - share)",
    },
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
        hidden_tests.averages_with_none,
    ],
    tells="You have the shares the wrong way round, also with `momentum=None`. The momentum, and 1 / k "
    "with None, is the share of the *new* batch: with 0.1 nine tenths of the old value stay.",
)
