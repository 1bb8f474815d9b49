"""Answers to `batch_norm` of chapter 05."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def by_the_function_of_the_library(x, weight, bias, eps=1e-5):
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@accepted()
def by_the_layer_of_the_library(x, weight, bias, eps=1e-5):
    kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
    layer = kinds[x.dim()](x.shape[1], eps=eps, dtype=x.dtype)
    parameters = {"weight": weight, "bias": bias}
    return torch.func.functional_call(layer, parameters, (x,))


@accepted()
def by_rows_of_channels(x, weight, bias, eps=1e-5):
    rows = x.transpose(0, 1).reshape(x.shape[1], -1)
    if rows.shape[1] == 1:
        raise ValueError("more than one value per channel, please")
    centred = rows - rows.mean(1, keepdim=True)
    var = (centred**2).mean(1, keepdim=True)
    out = centred / (var + eps) ** 0.5 * weight[:, None] + bias[:, None]
    turned = out.reshape(x.shape[1], x.shape[0], *x.shape[2:])
    return turned.transpose(0, 1)


@accepted()
def by_einsum(x, weight, bias, eps=1e-5):
    z = x.flatten(2) if x.dim() > 2 else x[..., None]
    count = z.shape[0] * z.shape[2]
    if count < 2:
        raise ValueError("one value")
    mean = torch.einsum("ncl->c", z) / count
    centred = z - mean[None, :, None]
    var = torch.einsum("ncl,ncl->c", centred, centred) / count
    scale = weight * torch.rsqrt(var + eps)
    out = centred * scale[None, :, None] + bias[None, :, None]
    return out.reshape(x.shape)


@accepted()
def by_float64_inside(x, weight, bias, eps=1e-5):
    if x.numel() // x.shape[1] < 2:
        raise ValueError("one value per channel")
    dims = [d for d in range(x.dim()) if d != 1]
    wide = x.double()
    mean = wide.mean(dims, keepdim=True)
    var = wide.var(dims, keepdim=True, unbiased=False)
    out = (wide - mean) / torch.sqrt(var + eps)
    out = out.movedim(1, -1) * weight.double() + bias.double()
    return out.movedim(-1, 1).to(x.dtype)


@accepted()
def by_a_loop_over_channels(x, weight, bias, eps=1e-5):
    out = []
    for c in range(x.shape[1]):
        values = x[:, c]
        if values.numel() == 1:
            raise ValueError(f"one value in channel {c}")
        std = (values.var(correction=0) + eps).sqrt()
        out.append((values - values.mean()) / std * weight[c] + bias[c])
    return torch.stack(out, dim=1)


@accepted()
def by_scale_and_shift(x, weight, bias, eps=1e-5):
    if x.shape[0] * x[0, 0].numel() == 1:
        raise ValueError("more values are needed")
    place = (1, x.shape[1]) + (1,) * (x.dim() - 2)
    dims = (0,) + tuple(range(2, x.dim()))
    var, mean = torch.var_mean(x, dims, correction=0)
    scale = weight / (var + eps).sqrt()
    shift = bias - mean * scale
    return x * scale.reshape(place) + shift.reshape(place)


@accepted()
def by_group_norm_of_one_sample(x, weight, bias, eps=1e-5):
    channels = x.shape[1]
    if x.numel() == channels:
        raise ValueError("one value per channel")
    rows = x.transpose(0, 1).reshape(1, channels, -1)
    out = F.group_norm(rows, channels, weight, bias, eps)
    shape = (channels, x.shape[0], *x.shape[2:])
    return out.reshape(shape).transpose(0, 1)


@accepted()
def by_mean_of_squares_in_float64(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value per channel")
    wide, dims = x.double(), [0, *range(2, x.dim())]
    mean = wide.mean(dims, keepdim=True)
    var = (wide * wide).mean(dims, keepdim=True) - mean * mean
    out = (wide - mean) / (var.clamp(min=0) + eps).sqrt()
    s = [1, -1] + [1] * (x.dim() - 2)
    return (out * weight.view(s) + bias.view(s)).to(x.dtype)


@accepted()
def by_a_gradient_of_its_own(x, weight, bias, eps=1e-5):
    class Normalize(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, eps):
            centred = rows - rows.mean(1, keepdim=True)
            scale = (centred.square().mean(1, keepdim=True) + eps).rsqrt()
            ctx.save_for_backward(centred * scale, scale)
            return centred * scale

        @staticmethod
        def backward(ctx, upstream):
            out, scale = ctx.saved_tensors
            along = (upstream * out).mean(1, keepdim=True) * out
            mean = upstream.mean(1, keepdim=True)
            return scale * (upstream - mean - along), None

    rows = x.transpose(0, 1).flatten(1)
    if rows.shape[1] == 1:
        raise ValueError("one value per channel")
    out = Normalize.apply(rows, eps) * weight[:, None] + bias[:, None]
    return out.unflatten(1, (len(x), *x.shape[2:])).transpose(0, 1)


@accepted()
def mended_with_unbiased_variance(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.normalizes_images,
    tells="You average over the batch alone, so each place of an image has "
    "statistics of its own. A channel has one mean and one variance, over "
    "the batch and all places.",
)
def by_position(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    var, mean = torch.var_mean(x, 0, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.normalizes_images,
    tells="You take one mean and one variance for the whole batch, all channels "
    "together. Each channel has its own: leave dimension 1 out of the "
    "average.",
)
def by_one_mean_for_all(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    var, mean = torch.var_mean(x, correction=0)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.normalizes_rows_and_sequences,
    tells="Your dimensions are those of images. Rows (N, C) and sequences "
    "(N, C, L) have fewer: average over `[0, *range(2, x.dim())]`.",
)
def for_images_only(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    var, mean = torch.var_mean(x, (0, 2, 3), correction=0, keepdim=True)
    out = (x - mean) * torch.rsqrt(var + eps)
    return out * weight[:, None, None] + bias[:, None, None]


@wrong(
    breaks=hidden_tests.weighs_by_channel,
    tells="Your weight and bias broadcast along the last dimension, which is the "
    "width of an image. Give them the shape (1, C, 1, 1), with as many 1s "
    "as `x` has dimensions.",
)
def weighed_along_the_width(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * weight + bias


@wrong(
    breaks=hidden_tests.weighs_by_channel,
    tells="Where the width equals the number of channels, your weight and bias go "
    "along the width. Do not tell the cases apart by size: the channels are "
    "always dimension 1.",
)
def weighed_by_matching_size(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    out = (x - mean) / (var + eps).sqrt()
    if x.shape[-1] == len(weight):
        return out * weight + bias
    s = [1, -1] + [1] * (x.dim() - 2)
    return out * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.weighs_by_channel,
    tells="You do not use weight and bias. After normalizing, multiply by the "
    "channel's weight and add its bias.",
)
def without_weight_and_bias(x, weight, bias, eps=1e-5):
    zero = 0 * (weight.sum() + bias.sum())
    ones, zeros = torch.ones_like(weight), torch.zeros_like(bias)
    return F.batch_norm(x, None, None, ones, zeros, True, eps=eps) + zero


@wrong(
    breaks=hidden_tests.large_mean_in_float32,
    tells="You take the variance as the mean of the squares less the square of "
    "the mean. In float32 that subtracts two large, nearly equal numbers "
    "and loses the digits. Clamping it at 0 hides the worst and brings no "
    "digit back. Subtract the mean first, then square.",
)
def by_clamped_mean_of_squares(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    mean = x.mean(dims, keepdim=True)
    square = x.square().mean(dims, keepdim=True)
    var = (square - mean.square()).clamp(min=1e-4)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.gradients_of_batch_norm,
    tells="Mean and variance come without a graph (`no_grad`, `detach` or `.data`), "
    "so the gradient takes them for constants. They depend on x, and "
    "part of its gradient goes through them.",
)
def with_detached_statistics(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x.detach(), dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    scale = torch.rsqrt(var + eps)
    return (x - mean) * scale * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.one_value_raises,
    tells="A channel with a single value passes, and all that comes out is the "
    "bias, whatever went in. PyTorch raises a ValueError there; so should "
    "you.",
)
def accepting_one_value(x, weight, bias, eps=1e-5):
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    breaks=[
        hidden_tests.one_value_raises,
        hidden_tests.normalizes_images,
    ],
    tells="You refuse every batch of one sample. An image has many values per "
    "channel, so one alone can be normalized. Count values per channel, not "
    "samples.",
)
def refusing_one_sample(x, weight, bias, eps=1e-5):
    if x.shape[0] == 1:
        raise ValueError("one sample")
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    breaks=hidden_tests.keeps_the_dtype,
    tells="Your result is float32, whatever came in. Compute in a wider dtype if you "
    "like, but return the dtype of `x`.",
)
def always_in_float32(x, weight, bias, eps=1e-5):
    wide = [one.float() for one in (x, weight, bias)]
    return F.batch_norm(wide[0], None, None, *wide[1:], True, eps=eps)


@wrong(
    breaks=hidden_tests.normalizes_permuted_images,
    tells="You use `view`, which needs contiguous memory and raises on a permuted "
    "tensor. Use `reshape`, or give `mean` and `var` the dimensions and no "
    "new shape at all.",
)
def by_view(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    rows = x.view(x.shape[0], x.shape[1], -1)
    var, mean = torch.var_mean(rows, (0, 2), correction=0, keepdim=True)
    rows = (rows - mean) * torch.rsqrt(var + eps)
    rows = rows * weight[:, None] + bias[:, None]
    return rows.view(x.shape)


@wrong(
    breaks=hidden_tests.normalizes_images,
    tells="You made rows of channels with `reshape` alone. It reads the memory in "
    "order, so samples and channels get mixed. Move the channels to the "
    "front first, with `transpose(0, 1)`.",
)
def by_reshaping_without_transposing(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    rows = x.reshape(x.shape[1], -1)
    var, mean = torch.var_mean(rows, 1, correction=0, keepdim=True)
    out = ((rows - mean) * torch.rsqrt(var + eps)).reshape(x.shape)
    s = [1, -1] + [1] * (x.dim() - 2)
    return out * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.adds_eps_inside_the_root,
    tells="You add the square of eps under the root. eps itself is added to the "
    "variance.",
)
def with_eps_squared(x, weight, bias, eps=1e-5):
    return F.batch_norm(
        x, None, None, weight, bias, training=True, eps=eps * eps
    )


@wrong(
    breaks=hidden_tests.one_value_raises,
    tells="You refuse inputs with one place per sample. In a batch of two or more "
    "each channel still has several values. Count batch and places "
    "together.",
)
def refusing_one_place(x, weight, bias, eps=1e-5):
    if x.dim() > 2 and x[0, 0].numel() == 1:
        raise ValueError("one place")
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    breaks=hidden_tests.weighs_by_channel,
    tells="Where the batch has as many samples as channels, your weight and "
    "bias go along the samples. Do not tell the cases apart by size: "
    "the channels are always dimension 1.",
)
def weighed_along_the_batch_where_square(x, weight, bias, eps=1e-5):
    out = F.batch_norm(x, None, None, training=True, eps=eps)
    along = 0 if x.shape[0] == x.shape[1] else 1
    s = [-1 if d == along else 1 for d in range(x.dim())]
    return out * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You switch on `requires_grad` of the caller's `x`. Whether a "
    "gradient is wanted is the caller's affair, and autograd follows "
    "without being asked.",
)
def asking_for_gradients(x, weight, bias, eps=1e-5):
    if x.is_leaf:
        x.requires_grad_()
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You switch gradients on for the whole program. Under "
    "`torch.no_grad()` they are to stay off: compute in the mode that "
    "you find.",
)
def switching_gradients_on(x, weight, bias, eps=1e-5):
    torch.set_grad_enabled(True)
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You seed the global random generator. Nothing is drawn here, and "
    "the caller's next random numbers change.",
)
def seeding_the_generator(x, weight, bias, eps=1e-5):
    torch.manual_seed(0)
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    breaks=hidden_tests.gradients_of_batch_norm,
    tells="If `x` asks for no gradient your result has no graph at all. The "
    "first batch norm of a network gets data without gradients, and its"
    " weight and bias learn all the same.",
)
def without_a_graph_for_plain_data(x, weight, bias, eps=1e-5):
    out = F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    return out if x.requires_grad else out.detach()


@wrong(
    breaks=hidden_tests.gradients_of_batch_norm,
    tells="No gradient reaches the weight or the bias. You put their values "
    "into a layer, or detached them: compute with the tensors "
    "themselves.",
)
def by_a_layer_with_copied_values(x, weight, bias, eps=1e-5):
    kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
    layer = kinds[x.dim()](x.shape[1], eps=eps, dtype=x.dtype)
    layer.weight.data.copy_(weight)
    layer.bias.data.copy_(bias)
    return layer(x)


@wrong(
    breaks=hidden_tests.shows_outliers_and_nans,
    tells="You turn NaNs into numbers. A NaN in the data is then seen by "
    "nobody: let it show.",
)
def hiding_nans(x, weight, bias, eps=1e-5):
    return torch.nan_to_num(
        F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    )


@wrong(
    breaks=hidden_tests.shows_outliers_and_nans,
    tells="You cut large values off. Batch norm shifts and scales: an outlier"
    " stays one.",
)
def cutting_outliers(x, weight, bias, eps=1e-5):
    out = F.batch_norm(x, None, None, training=True, eps=eps).clamp(-6, 6)
    s = [1, -1] + [1] * (x.dim() - 2)
    return out * weight.view(s) + bias.view(s)


@wrong(
    breaks=hidden_tests.one_value_raises,
    tells="A batch of one value with one channel passes. Count values per "
    "channel, also where there is only one channel.",
)
def accepting_a_single_number(x, weight, bias, eps=1e-5):
    if x.numel() == 1:
        return x * 0 + bias
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    breaks=hidden_tests.normalizes_rows_and_sequences,
    tells="You average over the channels of a single sequence: that is layer norm. "
    "Also where the batch is one sample, each channel has a mean of its own.",
)
def single_sequences_by_layer_norm(x, weight, bias, eps=1e-5):
    if len(x) == 1 and x.dim() == 3 and x.shape[2] > 1:
        out = F.layer_norm(x, x.shape[1:], eps=eps)
        return out * weight[:, None] + bias[:, None]
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
