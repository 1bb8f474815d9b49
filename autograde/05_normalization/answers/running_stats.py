"""Answers to `running_stats` of chapter 05."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

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


@accepted()
class with_a_buffer_outside_the_state(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.register_buffer("share", torch.tensor(0.0), persistent=False)

    def forward(self, x):
        if self.training:
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / int(self.num_batches_tracked) if m is None else m
            self.share = torch.tensor(m, dtype=torch.float64)
            axes = [0, *range(2, x.dim())]
            var, mean = torch.var_mean(x.detach(), axes)
            kept = (1 - self.share).to(x.dtype)
            new = self.share.to(x.dtype)
            self.running_mean.mul_(kept).add_(new * mean)
            self.running_var.mul_(kept).add_(new * var)
        return x


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
