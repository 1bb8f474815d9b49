"""Answers to `one_reshape` of chapter 05."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def the_layers_of_the_library():
    GroupNorm = nn.GroupNorm
    InstanceNorm = nn.InstanceNorm2d
    LayerNorm = nn.LayerNorm


@accepted(body=True)
def by_the_functions_of_the_library():
    class GroupNorm(nn.Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__()
            if num_channels % num_groups != 0:
                raise ValueError("num_channels must be divisible")
            self.num_groups, self.eps = num_groups, eps
            if affine:
                self.weight = nn.Parameter(torch.ones(num_channels))
                self.bias = nn.Parameter(torch.zeros(num_channels))
            else:
                self.register_parameter("weight", None)
                self.register_parameter("bias", None)

        def forward(self, x):
            return F.group_norm(
                x, self.num_groups, self.weight, self.bias, self.eps
            )

    class InstanceNorm(GroupNorm):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, num_features, eps, affine)

        def forward(self, x):
            return F.instance_norm(
                x, weight=self.weight, bias=self.bias, eps=self.eps
            )

    class LayerNorm(nn.Module):
        def __init__(self, normalized_shape, eps=1e-5):
            super().__init__()
            self.normalized_shape, self.eps = tuple(normalized_shape), eps
            self.weight = nn.Parameter(torch.ones(normalized_shape))
            self.bias = nn.Parameter(torch.zeros(normalized_shape))

        def forward(self, x):
            return F.layer_norm(
                x, self.normalized_shape, self.weight, self.bias, self.eps
            )


@accepted(body=True)
def by_one_function_for_all():
    def normalize_rows(rows, eps):
        centred = rows - rows.mean(-1, keepdim=True)
        var = centred.square().mean(-1, keepdim=True)
        return centred / (var + eps).sqrt()

    class GroupNorm(nn.Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__()
            if num_channels % num_groups:
                raise ValueError
            self.groups, self.eps = num_groups, eps
            self.weight = self.bias = None
            if affine:
                self.weight = nn.Parameter(torch.ones(num_channels))
                self.bias = nn.Parameter(torch.zeros(num_channels))

        def forward(self, x):
            rows = x.reshape(len(x), self.groups, -1)
            out = normalize_rows(rows, self.eps).reshape(x.shape)
            if self.weight is not None:
                out = out.movedim(1, -1) * self.weight + self.bias
                out = out.movedim(-1, 1)
            return out

    class InstanceNorm(GroupNorm):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, num_features, eps, affine)

    class LayerNorm(nn.Module):
        def __init__(self, normalized_shape, eps=1e-5):
            super().__init__()
            self.shape, self.eps = list(normalized_shape), eps
            self.weight = nn.Parameter(torch.ones(*self.shape))
            self.bias = nn.Parameter(torch.zeros(*self.shape))

        def forward(self, x):
            first = x.dim() - len(self.shape)
            if list(x.shape[first:]) != self.shape:
                raise RuntimeError("other shape expected")
            rows = x.reshape(*x.shape[:first], -1)
            out = normalize_rows(rows, self.eps).reshape(x.shape)
            return out * self.weight + self.bias


@accepted(body=True)
def by_chunks_and_dimensions():
    class GroupNorm(nn.Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__()
            quotient, rest = divmod(num_channels, num_groups)
            if rest:
                raise ValueError(f"{rest} channels are left over")
            self.size, self.eps, self.affine = quotient, eps, affine
            if affine:
                self.weight = nn.Parameter(torch.ones(num_channels))
                self.bias = nn.Parameter(torch.zeros(num_channels))

        def forward(self, x):
            out = []
            for part in x.split(self.size, dim=1):
                dims = tuple(range(1, part.dim()))
                mean = part.mean(dims, keepdim=True)
                var = part.var(dims, keepdim=True, unbiased=False)
                out.append((part - mean) / torch.sqrt(var + self.eps))
            out = torch.cat(out, dim=1)
            if not self.affine:
                return out
            place = [1, -1] + [1] * (x.dim() - 2)
            return out * self.weight.view(place) + self.bias.view(place)

    class InstanceNorm(nn.Module):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__()
            self.eps = eps
            self.scale = affine
            if affine:
                self.weight = nn.Parameter(torch.ones(num_features))
                self.bias = nn.Parameter(torch.zeros(num_features))

        def forward(self, x):
            mean = x.mean((2, 3), keepdim=True)
            var = ((x - mean) ** 2).mean((2, 3), keepdim=True)
            out = (x - mean) / (var + self.eps) ** 0.5
            if self.scale:
                out = out * self.weight[None, :, None, None]
                out = out + self.bias[None, :, None, None]
            return out

    class LayerNorm(nn.Module):
        def __init__(self, normalized_shape, eps=1e-5):
            super().__init__()
            self.eps = eps
            self.weight = nn.Parameter(torch.ones(torch.Size(normalized_shape)))
            self.bias = nn.Parameter(torch.zeros_like(self.weight))

        def forward(self, x):
            dims = tuple(range(-self.weight.dim(), 0))
            if x.shape[dims[0] :] != self.weight.shape:
                raise ValueError(x.shape)
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            return (x - mean) * (
                var + self.eps
            ).rsqrt() * self.weight + self.bias


@accepted(body=True)
def by_batch_norm_of_one_sample():
    class GroupNorm(nn.Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__()
            if num_channels % num_groups:
                raise ValueError("groups")
            self.g, self.eps = num_groups, eps
            self.weight = self.bias = None
            if affine:
                self.weight = nn.Parameter(torch.ones(num_channels))
                self.bias = nn.Parameter(torch.zeros(num_channels))

        def forward(self, x):
            as_channels = x.reshape(1, x.shape[0] * self.g, -1)
            out = F.batch_norm(
                as_channels, None, None, training=True, eps=self.eps
            ).reshape(x.shape)
            if self.weight is None:
                return out
            per_channel = (-1,) + (1,) * (x.dim() - 2)
            scale = self.weight.reshape(per_channel)
            return torch.addcmul(self.bias.reshape(per_channel), out, scale)

    class InstanceNorm(nn.Module):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__()
            self.inner = [GroupNorm(num_features, num_features, eps, False)]
            self.affine = affine
            if affine:
                self.weight = nn.Parameter(torch.ones(num_features))
                self.bias = nn.Parameter(torch.zeros(num_features))

        def forward(self, x):
            out = self.inner[0](x)
            if self.affine:
                out = self.weight.view(-1, 1, 1) * out
                out = out + self.bias.view(-1, 1, 1)
            return out

    class LayerNorm(nn.LayerNorm):
        pass


@accepted(body=True)
def by_unflatten():
    class GroupNorm(nn.Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__()
            if num_groups <= 0 or num_channels % num_groups:
                raise ValueError("num_groups must divide num_channels")
            self.sizes = num_groups, num_channels // num_groups
            self.eps = eps
            if affine:
                self.weight = nn.Parameter(torch.ones(num_channels))
                self.bias = nn.Parameter(torch.zeros(num_channels))

        def forward(self, x):
            grouped = x.unflatten(1, self.sizes)
            dims = list(range(2, grouped.dim()))
            std, mean = torch.std_mean(
                grouped, dims, correction=0, keepdim=True
            )
            root = torch.hypot(std, torch.full_like(std, self.eps**0.5))
            out = ((grouped - mean) / root).flatten(1, 2)
            if hasattr(self, "weight"):
                ones = [1] * (x.dim() - 2)
                out = out * self.weight.reshape(-1, *ones)
                out = out + self.bias.reshape(-1, *ones)
            return out

    InstanceNorm = nn.InstanceNorm2d

    class LayerNorm(nn.Module):
        def __init__(self, normalized_shape, eps=1e-5):
            super().__init__()
            self.eps = eps
            self.weight = nn.Parameter(torch.ones(normalized_shape))
            self.bias = nn.Parameter(torch.zeros(normalized_shape))

        def forward(self, x):
            k = self.weight.dim()
            if tuple(x.shape[-k:]) != tuple(self.weight.shape):
                raise ValueError("the input ends otherwise")
            flat = x.reshape(-1, self.weight.numel())
            out = torch.stack(
                [
                    (row - row.mean())
                    / (row.var(correction=0) + self.eps) ** 0.5
                    for row in flat
                ]
            )
            return out.view(x.shape) * self.weight + self.bias


@accepted(body=True)
def by_layer_norm_of_rows():
    class LayerNorm(nn.LayerNorm):
        def __init__(self, normalized_shape, eps=1e-5):
            super().__init__(tuple(normalized_shape), eps=eps)

    class GroupNorm(nn.Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__()
            if num_channels / num_groups != num_channels // num_groups:
                raise ValueError("the groups do not come out even")
            self.num_groups, self.eps = num_groups, eps
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
            if affine:
                self.weight = nn.Parameter(torch.full((num_channels,), 1.0))
                self.bias = nn.Parameter(torch.full((num_channels,), 0.0))

        def forward(self, x):
            rows = x.flatten(1).unflatten(1, (self.num_groups, -1))
            rows = F.layer_norm(rows, rows.shape[-1:], eps=self.eps)
            out = rows.flatten(1).reshape(x.shape)
            if self.weight is None:
                return out
            shape = x.shape[1:2] + (1,) * (x.dim() - 2)
            weight, bias = self.weight.view(shape), self.bias.view(shape)
            return torch.addcmul(bias, weight, out)

    class InstanceNorm(nn.Module):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__()
            made = GroupNorm(num_features, num_features, eps, affine)
            self.weight, self.bias = made.weight, made.bias
            self.forward_groups, self.eps = GroupNorm.forward, eps
            self.num_groups = num_features

        def forward(self, x):
            return self.forward_groups(self, x)


@accepted(body=True)
def mended_with_the_leading_dimensions():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            k = len(self.normalized_shape)
            if x.shape[-k:] != torch.Size(self.normalized_shape):
                raise ValueError("shape")
            dims = list(range(-k, 0))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            out = (x - mean) * torch.rsqrt(var + self.eps)
            return out * self.weight + self.bias


@wrong(
    breaks=hidden_tests.groups_of_neighbours,
    tells="Your groups take every G-th channel. A group is a block of neighbouring "
    "channels: `x.reshape(N, G, -1)` makes it, with the groups before the "
    "channels inside a group.",
    body=True,
)
def with_interleaved_groups():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            shape = (len(x), x.shape[1] // self.num_groups, self.num_groups, -1)
            mixed = x.reshape(shape).transpose(1, 2)
            out = F.group_norm(
                mixed.flatten(1, 2), self.num_groups, eps=self.eps
            )
            out = out.reshape(mixed.shape).transpose(1, 2).reshape(x.shape)
            if self.weight is None:
                return out
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.groups_of_neighbours,
    tells="Your groups average over the batch too. Group norm treats each sample by "
    "itself; that is why it works with small batches.",
    body=True,
)
def with_groups_across_the_batch():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            rows = x.reshape(x.shape[0], self.num_groups, -1)
            out = F.batch_norm(rows, None, None, training=True, eps=self.eps)
            out = out.reshape(x.shape)
            if self.weight is None:
                return out
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.groups_of_neighbours,
    tells="You read `num_groups` as the number of channels in a group. It is the "
    "number of groups: G of them, with C / G channels each.",
    body=True,
)
def with_the_size_of_groups():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            groups = x.shape[1] // self.num_groups
            return F.group_norm(x, groups, self.weight, self.bias, self.eps)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=[
        hidden_tests.group_affine_by_channel,
        hidden_tests.parameters_of_all,
    ],
    tells="Your group norm has one weight and one bias per group. Statistics go by "
    "group, parameters by channel: shape (C,), applied after reshaping back.",
    body=True,
)
def with_affine_by_group():
    class GroupNorm(nn.Module):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__()
            if num_channels % num_groups:
                raise ValueError("groups")
            self.num_groups, self.eps, self.affine = num_groups, eps, affine
            if affine:
                self.weight = nn.Parameter(torch.ones(num_groups))
                self.bias = nn.Parameter(torch.zeros(num_groups))

        def forward(self, x):
            rows = x.reshape(x.shape[0], self.num_groups, -1)
            var, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
            rows = (rows - mean) * torch.rsqrt(var + self.eps)
            if self.affine:
                rows = rows * self.weight[:, None] + self.bias[:, None]
            return rows.reshape(x.shape)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.group_affine_by_channel,
    tells="Weight and bias of your group norm broadcast along the width of the "
    "images. Give them as many dimensions as `x` has: the channels are "
    "dimension 1.",
    body=True,
)
def with_group_affine_along_the_width():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            out = F.group_norm(x, self.num_groups, eps=self.eps)
            if self.weight is None:
                return out
            if x.shape[-1] == x.shape[1]:
                return out * self.weight + self.bias
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.groups_must_divide,
    tells="You make layers whose groups do not divide the channels. Their forward pass "
    "raises, or loses or mixes channels. Raise a ValueError in the constructor.",
    body=True,
)
def with_floor_division():
    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__(1, num_channels, eps, affine)
            self.num_groups = num_groups

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.groups_must_divide,
    tells="Your group norm refuses a bad number of groups with `assert`. That raises "
    "an AssertionError, and nothing at all under `python -O`. Raise a "
    "ValueError.",
    body=True,
)
def with_an_assert():
    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            assert num_channels % num_groups == 0
            super().__init__(num_groups, num_channels, eps, affine)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.groups_of_neighbours,
    tells="Your group norm takes the unbiased variance, the default of `var`. All "
    "normalization layers divide by the number of values: `correction=0`.",
    body=True,
)
def with_unbiased_groups():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            rows = x.reshape(x.shape[0], self.num_groups, -1)
            var, mean = torch.var_mean(rows, -1, keepdim=True)
            out = ((rows - mean) * torch.rsqrt(var + self.eps)).reshape(x.shape)
            if self.weight is None:
                return out
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.group_eps,
    tells="Your group norm adds eps outside the root, or not the eps that was "
    "given. Divide by the root of variance + eps.",
    body=True,
)
def with_group_eps_outside():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            rows = x.reshape(x.shape[0], self.num_groups, -1)
            var, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
            out = ((rows - mean) / (var.sqrt() + self.eps)).reshape(x.shape)
            if self.weight is None:
                return out
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.groups_of_any_dimensions,
    tells="Your group norm works for images only. Give weight and bias as many "
    "dimensions as `x` has, and rows and sequences work too.",
    body=True,
)
def with_groups_of_images_only():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            n, c, h, w = x.shape
            return super().forward(x)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    breaks=hidden_tests.parameters_of_all,
    tells="Your instance norm has weight and bias by default. Group norm has them "
    "by default, instance norm only with `affine=True`.",
    body=True,
)
def with_affine_instances_by_default():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=True):
            super().__init__(num_features, eps, affine=affine)


@wrong(
    breaks=hidden_tests.parameters_of_all,
    tells="Your group norm has no weight and bias by default. It has them unless "
    "`affine=False` is given; instance norm is the other way round.",
    body=True,
)
def without_affine_groups_by_default():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=False):
            super().__init__(num_groups, num_channels, eps, affine)


@wrong(
    breaks=hidden_tests.parameters_of_all,
    tells="Your group norm has weight and bias whatever `affine` says. With "
    "`affine=False` there are none, in `state_dict` neither.",
    body=True,
)
def with_affine_whatever_is_said():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__(num_groups, num_channels, eps)


@wrong(
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm averages over the batch: that is batch norm. Leave "
    "dimension 0 out.",
    body=True,
)
def with_batch_norm_for_instances():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            return F.batch_norm(
                x, None, None, self.weight, self.bias, True, 0.0, self.eps
            )


@wrong(
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm averages over the channels of a sample: that is "
    "layer norm. Each channel has its own mean and variance.",
    body=True,
)
def with_layer_norm_for_instances():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            return F.group_norm(x, 1, self.weight, self.bias, self.eps)


@wrong(
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm takes the unbiased variance, the default of `var`. "
    "All normalization layers divide by the number of values: "
    "`correction=0`.",
    body=True,
)
def with_unbiased_instances():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            var, mean = torch.var_mean(x, (2, 3), keepdim=True)
            out = (x - mean) * torch.rsqrt(var + self.eps)
            if self.weight is None:
                return out
            out = out * self.weight[:, None, None]
            return out + self.bias[:, None, None]


@wrong(
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm has weight and bias and does not use them. Multiply "
    "and add after normalizing, channel by channel.",
    body=True,
)
def with_idle_instance_parameters():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            out = F.instance_norm(x, eps=self.eps)
            if self.weight is not None:
                out = out + 0 * (self.weight.sum() + self.bias.sum())
            return out


@wrong(
    breaks=hidden_tests.instance_in_eval,
    tells="Your instance norm keeps running statistics and uses them in eval. "
    "Nothing here depends on the mode.",
    body=True,
)
def with_running_instances():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            if self.training:
                return super().forward(x)
            return x / (1 + self.eps) ** 0.5


@wrong(
    breaks=[
        hidden_tests.layer_over_the_last,
        hidden_tests.parameters_of_all,
    ],
    tells="Your layer norm has fewer weights than elements that it averages. It has one "
    "for each, in the shape `normalized_shape`.",
    body=True,
)
def with_layer_affine_by_channel():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.Module):
        def __init__(self, normalized_shape, eps=1e-5):
            super().__init__()
            self.shape, self.eps = list(normalized_shape), eps
            self.weight = nn.Parameter(torch.ones(self.shape[0]))
            self.bias = nn.Parameter(torch.zeros(self.shape[0]))

        def forward(self, x):
            out = F.layer_norm(x, self.shape, eps=self.eps)
            per_channel = (-1,) + (1,) * (len(self.shape) - 1)
            out = out * self.weight.view(per_channel)
            return out + self.bias.view(per_channel)


@wrong(
    breaks=hidden_tests.layer_refuses_other_shapes,
    tells="Your layer norm does not look at the input's last dimensions. "
    "`[5, 4]` for an input that ends in (4, 10) must raise: compare "
    "`x.shape[-len(normalized_shape):]`.",
    body=True,
)
def with_shapes_accepted_silently():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            shape = x.shape[-len(self.normalized_shape) :]
            out = F.layer_norm(x, shape, eps=self.eps)
            if shape == self.weight.shape:
                return out * self.weight + self.bias
            return out


@wrong(
    breaks=hidden_tests.layer_refuses_other_shapes,
    tells="Your layer norm compares the number of elements, not the shape: "
    "`[10, 4]` passes for (4, 10), and the weights go to other elements. "
    "Compare the sizes one by one.",
    body=True,
)
def with_shapes_compared_by_size():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            shape = x.shape[-len(self.normalized_shape) :]
            if shape.numel() != self.weight.numel():
                raise ValueError("other size")
            weight = self.weight.reshape(shape)
            return F.layer_norm(
                x, shape, weight, self.bias.reshape(shape), self.eps
            )


@wrong(
    breaks=hidden_tests.group_in_eval,
    tells="Your group norm passes its input on in eval mode. It has no running "
    "statistics: the mode changes nothing.",
    body=True,
)
def with_a_mode_in_group_norm():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            if self.training:
                return super().forward(x)
            if self.weight is None:
                return x
            out = x.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)


@wrong(
    breaks=hidden_tests.gradients_of_three,
    tells="Your group norm takes mean and variance without a graph, so part of the "
    "gradient of x is missing. Nothing here belongs under `no_grad`.",
    body=True,
)
def with_detached_groups():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            rows = x.reshape(x.shape[0], self.num_groups, -1)
            var, mean = torch.var_mean(
                rows.detach(), -1, correction=0, keepdim=True
            )
            out = ((rows - mean) * torch.rsqrt(var + self.eps)).reshape(x.shape)
            if self.weight is None:
                return out
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)


@wrong(
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm takes no notice of the argument `eps`, or adds it "
    "outside the root. Divide by the root of variance + eps.",
    body=True,
)
def with_an_instance_eps_of_its_own():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, affine=affine)


@wrong(
    breaks=hidden_tests.groups_of_neighbours,
    tells="You made the groups the last dimension of the reshape: (N, -1, G). Then "
    "every G-th element in memory is a group. The order is (N, G, -1).",
    body=True,
)
def with_the_groups_last():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            rows = x.reshape(len(x), -1, self.num_groups)
            var, mean = torch.var_mean(rows, 1, correction=0, keepdim=True)
            out = ((rows - mean) * torch.rsqrt(var + self.eps)).reshape(x.shape)
            if self.weight is None:
                return out
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)


@wrong(
    breaks=hidden_tests.group_in_eval,
    tells="Your group norm uses `view`, which needs contiguous memory and raises on a "
    "permuted input. Use `reshape`.",
    body=True,
)
def with_groups_by_view():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            rows = x.view(len(x), self.num_groups, -1)
            rows = F.layer_norm(rows, rows.shape[2:], eps=self.eps)
            out = rows.view(x.shape)
            if self.weight is None:
                return out
            out = out.movedim(1, -1) * self.weight + self.bias
            return out.movedim(-1, 1)


@wrong(
    breaks=hidden_tests.layer_refuses_other_shapes,
    tells="Your layer norm compares the last size only. A dimension of size 1"
    " before it is then stretched to the weight, and the result has "
    "another shape than x. Compare all sizes of `normalized_shape`.",
    body=True,
)
def comparing_the_last_size():
    class GroupNorm(nn.GroupNorm):
        pass

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            dims = tuple(range(-len(self.normalized_shape), 0))
            if x.shape[-1] != self.normalized_shape[-1] or x.dim() < len(dims):
                raise ValueError("another last size")
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            out = (x - mean) / (var + self.eps).sqrt()
            return out * self.weight + self.bias


@wrong(
    breaks=hidden_tests.layer_refuses_other_shapes,
    tells="Your layer norm takes an input with fewer dimensions than "
    "`normalized_shape`. The weight stretches it. Compare the number of"
    " dimensions as well.",
    body=True,
)
def accepting_too_few_dimensions():
    class GroupNorm(nn.GroupNorm):
        pass

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            if x.dim() >= len(self.normalized_shape):
                return super().forward(x)
            if x.shape != self.normalized_shape[-x.dim() :]:
                raise ValueError("other sizes")
            out = F.layer_norm(x, x.shape, eps=self.eps)
            return out * self.weight + self.bias


@wrong(
    breaks=hidden_tests.instance_in_eval,
    tells="Your instance norm uses `view`, which needs contiguous memory and "
    "raises on a permuted input. Use `reshape` or `flatten`.",
    body=True,
)
def with_instances_by_view():
    class GroupNorm(nn.GroupNorm):
        pass

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

        def forward(self, x):
            rows = x.view(x.shape[0], x.shape[1], -1, 1)
            return super().forward(rows).view(x.shape)

    class LayerNorm(nn.LayerNorm):
        pass


@wrong(
    breaks=hidden_tests.keeps_digits_of_all,
    tells="You take the variance as the mean of the squares less the square "
    "of the mean. In float32 that subtracts two large, nearly equal "
    "numbers and loses the digits. Subtract the mean first, then "
    "square.",
    body=True,
)
def with_layers_by_mean_of_squares():
    class GroupNorm(nn.GroupNorm):
        pass

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            if x.shape[-len(self.normalized_shape) :] != self.normalized_shape:
                raise ValueError("other sizes")
            rows = x.flatten(-len(self.normalized_shape))
            mean = rows.mean(-1, keepdim=True)
            var = rows.square().mean(-1, keepdim=True) - mean.square()
            out = (rows - mean) / (var.clamp(min=0) + self.eps).sqrt()
            return out.reshape(x.shape) * self.weight + self.bias


@wrong(
    breaks=hidden_tests.leaves_x_alone,
    tells="You change the caller's `x` in place. Compute with new tensors: `x"
    " - mean` and not `x -= mean`.",
    body=True,
)
def with_groups_in_place():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            out = super().forward(x)
            x.data.copy_(out.data)
            return out

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        pass


@wrong(
    breaks=hidden_tests.leaves_x_alone,
    tells="Your layer remembers earlier calls and lets them into the result. "
    "Nothing here depends on other inputs: the same x gives the same "
    "result each time.",
    body=True,
)
def with_groups_that_remember():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            self.calls = getattr(self, "calls", 0) + 1
            out = super().forward(x)
            return out if self.calls < 4 else 0.99 * out

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        pass


@wrong(
    breaks=hidden_tests.leaves_x_alone,
    tells="You return float64 for float32 input. The result has the dtype of "
    "`x`.",
    body=True,
)
def with_wide_instances():
    class GroupNorm(nn.GroupNorm):
        pass

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

        def forward(self, x):
            return super().forward(x).double()

    class LayerNorm(nn.LayerNorm):
        pass


@wrong(
    breaks=hidden_tests.gradients_of_three,
    tells="No gradient reaches weight or bias of your layer norm. Compute "
    "with the parameters themselves, not with `detach()` or `.data`.",
    body=True,
)
def with_detached_layer_weights():
    class GroupNorm(nn.GroupNorm):
        pass

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            values = self.weight.detach(), self.bias.detach()
            return F.layer_norm(x, self.normalized_shape, *values, self.eps)


@wrong(
    breaks=hidden_tests.shows_nans_of_all,
    tells="You replace NaNs by numbers. A NaN has to show in what it is averaged "
    "with, or nobody finds out where it came from.",
    body=True,
)
def with_nans_swept_away():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            return super().forward(x).nan_to_num()

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        pass


@wrong(
    breaks=hidden_tests.shows_nans_of_all,
    tells="You replace NaNs by numbers. A NaN has to show in what it is averaged "
    "with, or nobody finds out where it came from.",
    body=True,
)
def with_nans_swept_out_of_x():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            return super().forward(x.nan_to_num())

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.nan_to_num())


@wrong(
    breaks=hidden_tests.instance_by_instance,
    tells="With `affine=True` your instance norm leaves weight and bias out for a "
    "batch of one. A sample alone is weighed as it is among others.",
    body=True,
)
def with_one_instance_not_weighed():
    class GroupNorm(nn.GroupNorm):
        pass

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, eps=eps, affine=affine)

        def forward(self, x):
            if len(x) == 1:
                return F.instance_norm(x, eps=self.eps)
            return super().forward(x)

    class LayerNorm(nn.LayerNorm):
        pass
