"""The answer bank of chapter 05: normalization."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# batch_norm


@accepted("batch_norm")
def by_the_function_of_the_library(x, weight, bias, eps=1e-5):
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@accepted("batch_norm")
def by_the_layer_of_the_library(x, weight, bias, eps=1e-5):
    kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
    layer = kinds[x.dim()](x.shape[1], eps=eps, dtype=x.dtype)
    parameters = {"weight": weight, "bias": bias}
    return torch.func.functional_call(layer, parameters, (x,))


@accepted("batch_norm")
def by_rows_of_channels(x, weight, bias, eps=1e-5):
    rows = x.transpose(0, 1).reshape(x.shape[1], -1)
    if rows.shape[1] == 1:
        raise ValueError("more than one value per channel, please")
    centred = rows - rows.mean(1, keepdim=True)
    var = (centred**2).mean(1, keepdim=True)
    out = centred / (var + eps) ** 0.5 * weight[:, None] + bias[:, None]
    turned = out.reshape(x.shape[1], x.shape[0], *x.shape[2:])
    return turned.transpose(0, 1)


@accepted("batch_norm")
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


@accepted("batch_norm")
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


@accepted("batch_norm")
def by_a_loop_over_channels(x, weight, bias, eps=1e-5):
    out = []
    for c in range(x.shape[1]):
        values = x[:, c]
        if values.numel() == 1:
            raise ValueError(f"one value in channel {c}")
        std = (values.var(correction=0) + eps).sqrt()
        out.append((values - values.mean()) / std * weight[c] + bias[c])
    return torch.stack(out, dim=1)


@accepted("batch_norm")
def by_scale_and_shift(x, weight, bias, eps=1e-5):
    if x.shape[0] * x[0, 0].numel() == 1:
        raise ValueError("more values are needed")
    place = (1, x.shape[1]) + (1,) * (x.dim() - 2)
    dims = (0,) + tuple(range(2, x.dim()))
    var, mean = torch.var_mean(x, dims, correction=0)
    scale = weight / (var + eps).sqrt()
    shift = bias - mean * scale
    return x * scale.reshape(place) + shift.reshape(place)


@accepted("batch_norm")
def by_group_norm_of_one_sample(x, weight, bias, eps=1e-5):
    channels = x.shape[1]
    if x.numel() == channels:
        raise ValueError("one value per channel")
    rows = x.transpose(0, 1).reshape(1, channels, -1)
    out = F.group_norm(rows, channels, weight, bias, eps)
    shape = (channels, x.shape[0], *x.shape[2:])
    return out.reshape(shape).transpose(0, 1)


@accepted("batch_norm")
def by_mean_of_squares_in_float64(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value per channel")
    wide, dims = x.double(), [0, *range(2, x.dim())]
    mean = wide.mean(dims, keepdim=True)
    var = (wide * wide).mean(dims, keepdim=True) - mean * mean
    out = (wide - mean) / (var.clamp(min=0) + eps).sqrt()
    s = [1, -1] + [1] * (x.dim() - 2)
    return (out * weight.view(s) + bias.view(s)).to(x.dtype)


@wrong(
    "batch_norm",
    breaks=hidden_tests.normalizes_images,
    tells="You normalize with the unbiased variance, which `var` and `std` give "
    "by default. Batch norm divides by the number of values: say "
    "`correction=0`. Only the running variance is the unbiased one.",
)
def with_unbiased_variance(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=1, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.normalizes_images,
    tells="You square the variance under the root, as a popular formula has it. "
    "The variance is the square of the standard deviation already: take "
    "the root of var + eps.",
)
def with_squared_variance(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var**2 + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.normalizes_images,
    tells="You divide by the variance plus eps and forgot the root. What comes "
    "out has not the spread 1.",
)
def without_the_root(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps) * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.adds_eps_inside_the_root,
    tells="You add eps to the standard deviation, outside the root. Inside, it "
    "counts for much more where the variance is small: take the root of "
    "var + eps.",
)
def with_eps_outside_the_root(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var.sqrt() + eps) * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=[
        hidden_tests.adds_eps_inside_the_root,
        hidden_tests.constant_channel,
    ],
    tells="You left eps out. A channel without spread is then 0 / 0, and its NaN "
    "spreads through the network. Add eps to the variance, under the root.",
)
def without_eps(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / var.sqrt() * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.adds_eps_inside_the_root,
    tells="You wrote 1e-5 into the function and take no notice of the argument "
    "`eps`. Use the argument.",
)
def with_a_fixed_eps(x, weight, bias, eps=1e-5):
    return F.batch_norm(x, None, None, weight, bias, training=True)


@wrong(
    "batch_norm",
    breaks=hidden_tests.adds_eps_inside_the_root,
    tells="You take eps for a smallest variance, with `clamp` or `maximum`. It is "
    "added to the variance, to large ones too.",
)
def with_clamped_variance(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    root = var.clamp(min=eps).sqrt()
    return (x - mean) / root * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.normalizes_images,
    tells="Each of your samples is normalized by itself: that is instance norm. "
    "Batch norm averages over the batch dimension as well, dimension 0.",
)
def as_instance_norm(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = list(range(2, x.dim())) or [0]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.normalizes_images,
    tells="You average over the channels of each sample: that is layer norm. "
    "Batch norm keeps the channels, dimension 1, apart and averages over "
    "everything else.",
)
def as_layer_norm(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = list(range(1, x.dim()))
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
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
    "batch_norm",
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
    "batch_norm",
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
    "batch_norm",
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
    "batch_norm",
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
    "batch_norm",
    breaks=hidden_tests.weighs_by_channel,
    tells="You do not use weight and bias. After normalizing, multiply by the "
    "channel's weight and add its bias.",
)
def without_weight_and_bias(x, weight, bias, eps=1e-5):
    zero = 0 * (weight.sum() + bias.sum())
    ones, zeros = torch.ones_like(weight), torch.zeros_like(bias)
    return F.batch_norm(x, None, None, ones, zeros, True, eps=eps) + zero


@wrong(
    "batch_norm",
    breaks=hidden_tests.weighs_by_channel,
    tells="You add the bias first and multiply afterwards, so the bias is "
    "multiplied too. Multiply by the weight, then add the bias.",
)
def with_the_bias_first(x, weight, bias, eps=1e-5):
    return F.batch_norm(
        x, None, None, weight, bias * weight, training=True, eps=eps
    )


@wrong(
    "batch_norm",
    breaks=hidden_tests.large_mean_in_float32,
    tells="You take the variance as the mean of the squares less the square of "
    "the mean. In float32 that subtracts two large, nearly equal numbers "
    "and loses the digits. Subtract the mean first, then square.",
)
def by_mean_of_squares(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    mean = x.mean(dims, keepdim=True)
    var = (x * x).mean(dims, keepdim=True) - mean * mean
    s = [1, -1] + [1] * (x.dim() - 2)
    return (x - mean) / (var + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
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
    "batch_norm",
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
    "batch_norm",
    breaks=hidden_tests.gradients_of_batch_norm,
    tells="The variance comes without a graph, while the mean keeps its own. Part "
    "of the gradient of x goes through the variance: do not detach it.",
)
def with_a_detached_variance(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    scale = torch.rsqrt(var.detach() + eps)
    return (x - mean) * scale * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
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
    "batch_norm",
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
    "batch_norm",
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You compute in place and so change the caller's `x`. Write "
    "`x - mean` and not `x -= mean`: the former makes a new tensor.",
)
def in_place(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    x = x.sub_(mean).mul_(torch.rsqrt(var + eps))
    return x.mul_(weight.view(s)).add_(bias.view(s))


@wrong(
    "batch_norm",
    breaks=hidden_tests.keeps_the_dtype,
    tells="Your result is float32, whatever came in. Compute in a wider dtype if you "
    "like, but return the dtype of `x`.",
)
def always_in_float32(x, weight, bias, eps=1e-5):
    wide = [one.float() for one in (x, weight, bias)]
    return F.batch_norm(wide[0], None, None, *wide[1:], True, eps=eps)


@wrong(
    "batch_norm",
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
    "batch_norm",
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
    "batch_norm",
    breaks=hidden_tests.adds_eps_inside_the_root,
    tells="You add the square of eps under the root. eps itself is added to the "
    "variance.",
)
def with_eps_squared(x, weight, bias, eps=1e-5):
    return F.batch_norm(
        x, None, None, weight, bias, training=True, eps=eps * eps
    )


@wrong(
    "batch_norm",
    breaks=hidden_tests.normalizes_images,
    tells="You divide by the root of the mean square and subtract nothing: that is "
    "RMS norm. Batch norm subtracts the mean first.",
)
def without_centring(x, weight, bias, eps=1e-5):
    if x.numel() == x.shape[1]:
        raise ValueError("one value")
    dims = [0, *range(2, x.dim())]
    square = x.square().mean(dims, keepdim=True)
    s = [1, -1] + [1] * (x.dim() - 2)
    return x / (square + eps).sqrt() * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.one_value_raises,
    tells="You refuse inputs with one place per sample. In a batch of two or more "
    "each channel still has several values. Count batch and places "
    "together.",
)
def refusing_one_place(x, weight, bias, eps=1e-5):
    if x.dim() > 2 and x[0, 0].numel() == 1:
        raise ValueError("one place")
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@accepted("batch_norm")
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


@wrong(
    "batch_norm",
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
    "batch_norm",
    breaks=hidden_tests.weighs_by_channel,
    tells="You use the weight without its sign. It is learned and may become "
    "negative: multiply by it as it is.",
)
def with_weights_without_sign(x, weight, bias, eps=1e-5):
    return F.batch_norm(
        x, None, None, weight.abs(), bias, training=True, eps=eps
    )


@wrong(
    "batch_norm",
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
    "batch_norm",
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You switch gradients on for the whole program. Under "
    "`torch.no_grad()` they are to stay off: compute in the mode that "
    "you find.",
)
def switching_gradients_on(x, weight, bias, eps=1e-5):
    torch.set_grad_enabled(True)
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    "batch_norm",
    breaks=hidden_tests.leaves_arguments_alone,
    tells="You seed the global random generator. Nothing is drawn here, and "
    "the caller's next random numbers change.",
)
def seeding_the_generator(x, weight, bias, eps=1e-5):
    torch.manual_seed(0)
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    "batch_norm",
    breaks=hidden_tests.gradients_of_batch_norm,
    tells="If `x` asks for no gradient your result has no graph at all. The "
    "first batch norm of a network gets data without gradients, and its"
    " weight and bias learn all the same.",
)
def without_a_graph_for_plain_data(x, weight, bias, eps=1e-5):
    out = F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    return out if x.requires_grad else out.detach()


@wrong(
    "batch_norm",
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
    "batch_norm",
    breaks=hidden_tests.shows_outliers_and_nans,
    tells="You turn NaNs into numbers. A NaN in the data is then seen by "
    "nobody: let it show.",
)
def hiding_nans(x, weight, bias, eps=1e-5):
    return torch.nan_to_num(
        F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    )


@wrong(
    "batch_norm",
    breaks=hidden_tests.shows_outliers_and_nans,
    tells="You cut large values off. Batch norm shifts and scales: an outlier"
    " stays one.",
)
def cutting_outliers(x, weight, bias, eps=1e-5):
    out = F.batch_norm(x, None, None, training=True, eps=eps).clamp(-6, 6)
    s = [1, -1] + [1] * (x.dim() - 2)
    return out * weight.view(s) + bias.view(s)


@wrong(
    "batch_norm",
    breaks=hidden_tests.one_value_raises,
    tells="A batch of one value with one channel passes. Count values per "
    "channel, also where there is only one channel.",
)
def accepting_a_single_number(x, weight, bias, eps=1e-5):
    if x.numel() == 1:
        return x * 0 + bias
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


@wrong(
    "batch_norm",
    breaks=hidden_tests.normalizes_rows_and_sequences,
    tells="You average over the channels of a single sequence: that is layer norm. "
    "Also where the batch is one sample, each channel has a mean of its own.",
)
def single_sequences_by_layer_norm(x, weight, bias, eps=1e-5):
    if len(x) == 1 and x.dim() == 3 and x.shape[2] > 1:
        out = F.layer_norm(x, x.shape[1:], eps=eps)
        return out * weight[:, None] + bias[:, None]
    return F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)


# running_stats


@accepted("running_stats")
class by_a_layer_of_the_library(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@accepted("running_stats")
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


@accepted("running_stats")
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


@accepted("running_stats")
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


@accepted("running_stats")
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


@accepted("running_stats")
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


@accepted("running_stats")
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


@wrong(
    "running_stats",
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
    ],
    tells="You have the momentum the wrong way round. In BatchNorm it is the share "
    "of the *new* batch: with 0.1 nine tenths of the old value stay.",
)
class with_momentum_for_the_old(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else 1 - m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You stored the variance divided by n. PyTorch normalizes with that one, "
    "but stores the one divided by n − 1: `correction=1`, the default of "
    "`var`.",
)
class with_biased_running_var(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1, correction=0), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You average the standard deviation. The buffer holds the variance, its "
    "square; the root is taken when it is used.",
)
class with_running_std(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.std(1), m)
        return x


@wrong(
    "running_stats",
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


@wrong(
    "running_stats",
    breaks=hidden_tests.keeps_no_graph,
    tells="You return `x` without its graph, so nothing before this layer would "
    "learn. Detach what you measure, and return `x` itself.",
)
class returning_a_detached_x(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        x = x.detach()
        if self.training:
            rows = x.transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.keeps_no_graph,
    tells="You return the normalized input. This module only watches: return `x` "
    "as it came.",
)
class returning_the_normalized(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass


@wrong(
    "running_stats",
    breaks=hidden_tests.averages_with_none,
    tells="You take `momentum=None` for the usual 0.1. It means the plain average: "
    "the k-th batch counts 1 / k.",
)
class with_none_as_a_tenth(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        momentum = 0.1 if momentum is None else momentum
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.averages_with_none,
    tells="You take `momentum=None` for no update. It means the plain average: the "
    "k-th batch counts 1 / k.",
)
class with_none_as_zero(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        momentum = 0.0 if momentum is None else momentum
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.averages_with_none,
    tells="With `momentum=None` you keep the last batch alone. It means the plain "
    "average over all batches: the k-th batch counts 1 / k.",
)
class with_none_as_one(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        momentum = 1.0 if momentum is None else momentum
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.averages_with_none,
    tells="With `momentum=None` you weigh the batches by their size. PyTorch counts "
    "batches, not samples: a small last batch counts as much as a full "
    "one.",
)
class pooling_with_none(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)
        self.seen = 0

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            self.seen += rows.shape[1]
            if m is None:
                m = rows.shape[1] / self.seen
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
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
    "running_stats",
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


@wrong(
    "running_stats",
    breaks=hidden_tests.stays_with_zero,
    tells="A momentum of 0.0 is averaged as None is: `if self.momentum` takes 0.0 "
    "for nothing. Ask `if self.momentum is None`.",
)
class with_zero_as_none(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum or None, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=[hidden_tests.stays_with_zero, hidden_tests.averages_with_none],
    tells="`momentum or 0.1` turns both 0.0 and None into 0.1. They are values of "
    "their own: 0.0 leaves the statistics as they are, None is the plain "
    "average.",
)
class with_zero_and_none_as_a_tenth(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum or 0.1, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.stays_with_zero,
    tells="With a momentum of 0.0 you return early and count nothing. Mean and "
    "variance stay, but PyTorch still counts the batch.",
)
class not_counting_with_zero(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training and self.momentum != 0:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.default_momentum,
    tells="Without an argument your momentum is not 0.1. Keep the default that "
    "the signature gives.",
)
class with_another_default(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=None):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.counts_batches,
    tells="`num_batches_tracked` stays at 0. Add 1 for each training batch, "
    "whatever the momentum is.",
)
class not_counting(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)
        self.calls = 0

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.calls += 1
            m = self.momentum
            m = 1 / self.calls if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.counts_batches,
    tells="You count only where the momentum is None. The count goes on with every "
    "momentum.",
)
class counting_with_none_only(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            m = self.momentum
            if m is None:
                self.num_batches_tracked += 1
                m = 1 / self.num_batches_tracked.item()
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
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


@wrong(
    "running_stats",
    breaks=hidden_tests.counts_batches,
    tells="Your `num_batches_tracked` is not an int64 tensor without dimensions. "
    "Register `torch.tensor(0)`, and add to it in place.",
)
class counting_in_float(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0.0))

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.counts_batches,
    tells="Your `num_batches_tracked` is not an int64 tensor without dimensions. "
    "Register `torch.tensor(0)`, and add to it in place.",
)
class counting_in_a_vector(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer(
            "num_batches_tracked", torch.zeros(1, dtype=torch.int64)
        )

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
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
    "running_stats",
    breaks=hidden_tests.updates_in_training_alone,
    tells="In eval mode mean and variance stay, but your count goes on. Nothing at "
    "all changes there.",
)
class counting_in_eval(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        self.num_batches_tracked += 1
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.updates_in_training_alone,
    tells="You take `torch.no_grad()` for eval mode. They are two switches: the "
    "statistics follow `self.training`, with and without gradients.",
)
class taking_no_grad_for_eval(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training and torch.is_grad_enabled():
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.updates_in_training_alone,
    tells="You update in eval mode and not in training: the question is the wrong "
    "way round. Update where `self.training` is True.",
)
class updating_in_eval_alone(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if not self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
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


@wrong(
    "running_stats",
    breaks=[
        hidden_tests.holds_three_buffers,
        hidden_tests.carries_on_from_a_state,
    ],
    tells="You registered the buffers with `persistent=False`: they move with the "
    "module, but no checkpoint holds them. Leave that argument out.",
)
class with_buffers_that_are_not_saved(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        made = dict(
            running_mean=torch.zeros(num_features),
            running_var=torch.ones(num_features),
            num_batches_tracked=torch.tensor(0),
        )
        for name, value in made.items():
            self.register_buffer(name, value, persistent=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
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


@wrong(
    "running_stats",
    breaks=hidden_tests.carries_on_from_a_state,
    tells="Your plain average goes by a count of calls that is no buffer. After "
    "loading a state it begins anew and the first batch overwrites "
    "everything. Go by `num_batches_tracked`.",
)
class with_a_count_of_its_own(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)
        self.calls = 0

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.calls += 1
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.calls if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
    ],
    tells="You take the first batch as it is and begin to average with the second. "
    "PyTorch averages from the first batch on, with 0 and 1 as the values "
    "before it.",
)
class beginning_with_the_first_batch(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m, count = self.momentum, self.num_batches_tracked.item()
            m = 1 / count if m is None or count == 1 else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=[
        hidden_tests.moves_the_unbiased_variance,
        hidden_tests.holds_three_buffers,
    ],
    tells="Your running variance begins at 0. PyTorch begins at 1, so that a layer "
    "that has seen nothing changes nothing.",
)
class beginning_with_no_variance(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)
        self.running_var.zero_()

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
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


@wrong(
    "running_stats",
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="Your mean and variance are those of the samples' means, or of the samples "
    "one by one and then averaged. Take the variance over all values of a "
    "channel at once, batch and places together.",
)
class with_the_variance_of_each_sample(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            rows = x.detach().transpose(0, 1).flatten(1)
            var = rows.var(1)
            if x.dim() > 2:
                var = x.detach().flatten(2).var(2).mean(0)
            self.running_mean.lerp_(rows.mean(1), m)
            self.running_var.lerp_(var, m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.shows_a_nan,
    tells="You leave NaNs out of the average. A NaN in the data is then never seen, "
    "and the running statistics are those of other data. Let it show.",
)
class filtering_nans(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            mean = rows.nanmean(1)
            square = (rows - mean[:, None]).square().nansum(1)
            count = (~rows.isnan()).sum(1) - 1
            self.running_mean.lerp_(mean, m)
            self.running_var.lerp_(square / count, m)
        return x


@wrong(
    "running_stats",
    breaks=[
        hidden_tests.moves_the_mean,
        hidden_tests.moves_the_unbiased_variance,
    ],
    tells="Your momentum is 0.1, whatever was asked for. Keep the argument and use "
    "it.",
)
class with_momentum_fixed(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        fixed = 0.1 if momentum else momentum
        super().__init__(num_features, momentum=fixed, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.moves_the_unbiased_variance,
    tells="You measure the variance around the running mean. PyTorch takes that of "
    "the batch, around the batch's own mean.",
)
class around_the_running_mean(nn.BatchNorm2d):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def forward(self, x):
        if self.training:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            m = self.momentum
            m = 1 / self.num_batches_tracked.item() if m is None else m
            self.running_mean.lerp_(rows.mean(1), m)
            square = (rows - self.running_mean[:, None]).square().sum(1)
            self.running_var.lerp_(square / (rows.shape[1] - 1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.moves_the_mean,
    tells="You update only where `x` requires a gradient. The first layer of a "
    "network gets data that require none. Ask `self.training` alone.",
)
class only_for_inputs_with_gradient(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        if x.requires_grad:
            super().forward(x.detach())
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.keeps_no_graph,
    tells="In eval mode you return `x` without its graph, so nothing before "
    "this layer could learn there. Return `x` itself in both modes.",
)
class detaching_in_eval(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x if self.training else x.detach()


@wrong(
    "running_stats",
    breaks=hidden_tests.shows_a_nan,
    tells="You leave a batch with an infinite value out. It is then seen by "
    "nobody, and PyTorch averages it in.",
)
class skipping_infinities(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training:
            if x.isinf().any():
                self.num_batches_tracked += 1
                return x
            with torch.no_grad():
                self.num_batches_tracked += 1
                m = self.momentum
                m = 1 / self.num_batches_tracked.item() if m is None else m
                rows = x.transpose(0, 1).flatten(1)
                self.running_mean.lerp_(rows.mean(1), m)
                self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.keeps_modules_apart,
    tells="All your modules write into the same tensors. Make new buffers in "
    "each constructor, not once for all.",
)
class sharing_the_buffers(nn.Module):
    shared = {}

    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        start = torch.zeros(num_features), torch.ones(num_features)
        mean, var = self.shared.setdefault(num_features, start)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
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


@wrong(
    "running_stats",
    breaks=hidden_tests.lets_x_through,
    tells="You return `x` in another dtype. The module only watches: return "
    "`x` as it came.",
)
class returning_float64(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x.double()


@wrong(
    "running_stats",
    breaks=hidden_tests.lets_x_through,
    tells="You change the caller's `x` in place. The module only watches: "
    "compute with new tensors, `x - mean` and not `x -= mean`.",
)
class centring_in_place(nn.Module):
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
                x.data.abs_()
                self.running_mean.lerp_(rows.mean(1), m)
                self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.lets_x_through,
    tells="You switch on `requires_grad` of the caller's `x`. Whether a "
    "gradient is wanted is the caller's affair.",
)
class asking_x_for_gradients(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        super().forward(x.detach())
        return x.requires_grad_() if x.is_leaf else x


@wrong(
    "running_stats",
    breaks=hidden_tests.observes_permuted_images,
    tells="You use `view`, which needs contiguous memory and raises on a "
    "permuted input. Use `reshape` or `flatten`, or give `mean` the "
    "dimensions.",
)
class observing_by_view(nn.modules.batchnorm._BatchNorm):
    def __init__(self, num_features, momentum=0.1):
        super().__init__(num_features, momentum=momentum, affine=False)

    def _check_input_dim(self, x):
        pass

    def forward(self, x):
        rows = x.detach().view(x.shape[0], x.shape[1], -1)
        super().forward(rows)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.moves_the_mean,
    tells="You take a momentum of 1.0 for None. It keeps the last batch "
    "alone; None is the plain average.",
)
class with_one_as_none(nn.Module):
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
                m = (
                    1 / self.num_batches_tracked.item()
                    if m in (None, 1.0)
                    else m
                )
                rows = x.transpose(0, 1).flatten(1)
                self.running_mean.lerp_(rows.mean(1), m)
                self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.observes_a_large_mean,
    tells="You take the variance as the mean of the squares less the square "
    "of the mean. In float32 that subtracts two large, nearly equal "
    "numbers and loses the digits. Subtract the mean first, then "
    "square.",
)
class observing_by_mean_of_squares(nn.Module):
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
                n = rows.shape[1]
                var = rows.square().mean(1) - rows.mean(1).square()
                self.running_var.lerp_(var * n / (n - 1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.updates_in_training_alone,
    tells="You keep a mode of your own beside `self.training`. Code may set "
    "`module.training` directly; ask that attribute and nothing else.",
)
class with_a_mode_of_its_own(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum, self.watching = momentum, True
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def train(self, mode=True):
        self.watching = mode
        return super().train(mode)

    def forward(self, x):
        if self.watching:
            with torch.no_grad():
                self.num_batches_tracked += 1
                m = self.momentum
                m = 1 / self.num_batches_tracked.item() if m is None else m
                rows = x.transpose(0, 1).flatten(1)
                self.running_mean.lerp_(rows.mean(1), m)
                self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.updates_in_training_alone,
    tells="In eval mode, before the first training batch, you take the "
    "statistics of the batch. In eval nothing changes: they stay at 0 "
    "and 1.",
)
class beginning_in_eval(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if not self.training and self.num_batches_tracked == 0:
            rows = x.detach().transpose(0, 1).flatten(1)
            self.running_mean.copy_(rows.mean(1))
            self.running_var.copy_(rows.var(1))
        if self.training:
            with torch.no_grad():
                self.num_batches_tracked += 1
                m = self.momentum
                m = 1 / self.num_batches_tracked.item() if m is None else m
                rows = x.transpose(0, 1).flatten(1)
                self.running_mean.lerp_(rows.mean(1), m)
                self.running_var.lerp_(rows.var(1), m)
        return x


@wrong(
    "running_stats",
    breaks=hidden_tests.observes_rows_and_sequences,
    tells="You leave batches of one sample out. A sequence or an image has "
    "many values per channel, so one sample has a mean and a variance.",
)
class skipping_single_samples(nn.Module):
    def __init__(self, num_features, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        if self.training and len(x) > 1:
            with torch.no_grad():
                self.num_batches_tracked += 1
                m = self.momentum
                m = 1 / self.num_batches_tracked.item() if m is None else m
                rows = x.transpose(0, 1).flatten(1)
                self.running_mean.lerp_(rows.mean(1), m)
                self.running_var.lerp_(rows.var(1), m)
        return x


# train_and_eval


@accepted("train_and_eval", body=True)
def the_layer_of_the_library():
    BatchNorm = nn.BatchNorm2d


@accepted("train_and_eval")
class by_the_function_with_training(nn.Module):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        mean = var = count = None
        if track_running_stats:
            mean, var = torch.zeros(num_features), torch.ones(num_features)
            count = torch.tensor(0, dtype=torch.int64)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)

    def forward(self, x):
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training=self.training or self.running_mean is None,
            momentum=self.momentum,
            eps=self.eps,
        )


@accepted("train_and_eval")
class with_new_buffers_each_time(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            mean, var = self.running_mean, self.running_var
        else:
            rows = x.transpose(0, 1).flatten(1)
            mean = rows.mean(1)
            var = ((rows - mean[:, None]) ** 2).mean(1)
            if self.training and self.running_mean is not None:
                n, m = rows.shape[1], self.momentum
                mean_now, var_now = mean.detach(), var.detach() * n / (n - 1)
                self.running_mean = (1 - m) * self.running_mean + m * mean_now
                self.running_var = (1 - m) * self.running_var + m * var_now
                self.num_batches_tracked = self.num_batches_tracked + 1
        shape = (1, -1, 1, 1)
        out = (x - mean.view(shape)) / (var.view(shape) + self.eps).sqrt()
        return self.weight.view(shape) * out + self.bias.view(shape)


@accepted("train_and_eval")
class with_channels_last(nn.Module):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__()
        self.eps, self.momentum, self.track = eps, momentum, track_running_stats
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        if self.track:
            self.register_buffer("running_mean", torch.zeros(num_features))
            self.register_buffer("running_var", torch.ones(num_features))
            self.register_buffer("num_batches_tracked", torch.tensor(0))
        else:
            self.running_mean = self.running_var = None
            self.num_batches_tracked = None

    def forward(self, x):
        last = x.permute(0, 2, 3, 1)
        if self.track and not self.training:
            out = (last - self.running_mean) / torch.sqrt(
                self.running_var + self.eps
            )
        else:
            rows = last.reshape(-1, last.shape[-1])
            mean = rows.mean(0)
            var = rows.var(0, unbiased=False)
            out = (last - mean) / torch.sqrt(var + self.eps)
            if self.track:
                self._move(rows.detach())
        return (out * self.weight + self.bias).permute(0, 3, 1, 2)

    def _move(self, rows):
        m = self.momentum
        self.num_batches_tracked.add_(1)
        self.running_mean.mul_(1 - m).add_(m * rows.mean(0))
        self.running_var.mul_(1 - m).add_(m * rows.var(0))


@accepted("train_and_eval")
class by_two_layers_of_the_library(nn.modules.batchnorm._BatchNorm):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(
            num_features,
            eps=eps,
            momentum=momentum,
            track_running_stats=track_running_stats,
        )

    def _check_input_dim(self, x):
        if x.dim() != 4:
            raise ValueError("images only")

    def forward(self, x):
        if self.training or self.running_mean is None:
            return super().forward(x)
        scale = self.weight / torch.sqrt(self.running_var + self.eps)
        shift = self.bias - self.running_mean * scale
        return torch.addcmul(
            shift[None, :, None, None], x, scale[None, :, None, None]
        )


@accepted("train_and_eval")
class updating_after_normalizing(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(
            num_features,
            eps=eps,
            momentum=momentum,
            track_running_stats=track_running_stats,
        )
        self.handle = self.register_forward_hook(self.update)

    @staticmethod
    def update(layer, inputs, out):
        if layer.training and layer.running_mean is not None:
            with torch.no_grad():
                x = inputs[0]
                var, mean = torch.var_mean(x, (0, 2, 3))
                layer.running_mean.lerp_(mean, layer.momentum)
                layer.running_var.lerp_(var, layer.momentum)
                layer.num_batches_tracked.add_(1)

    def forward(self, x):
        of_batch = self.training or self.running_mean is None
        mean = None if of_batch else self.running_mean
        var = None if of_batch else self.running_var
        return F.batch_norm(
            x, mean, var, self.weight, self.bias, of_batch, 0.0, self.eps
        )


@accepted("train_and_eval")
class by_the_native_operator(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        tracked = self.running_mean is not None
        if self.training and tracked:
            self.num_batches_tracked.add_(1)
        return torch.native_batch_norm(
            x,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.training or not tracked,
            self.momentum,
            self.eps,
        )[0]


@wrong(
    "train_and_eval",
    breaks=[
        hidden_tests.training_uses_the_batch,
        hidden_tests.eval_uses_the_buffers,
    ],
    tells="You have the modes the wrong way round, as a popular text has. Training "
    "normalizes by the batch and moves the buffers; eval normalizes by the "
    "buffers and moves nothing.",
)
class with_the_modes_reversed(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        tracked = self.running_mean is not None
        of_batch = not self.training or not tracked
        if not self.training and tracked:
            self.num_batches_tracked += 1
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            of_batch,
            self.momentum,
            self.eps,
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.training_uses_the_batch,
    tells="In training you update the buffers and normalize with them. The running "
    "statistics are for eval; in training the batch normalizes itself.",
)
class training_with_the_buffers(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        out = super().forward(x)
        if self.running_mean is None:
            return out
        return F.batch_norm(
            x,
            self.running_mean.clone(),
            self.running_var.clone(),
            self.weight,
            self.bias,
            False,
            0.0,
            self.eps,
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.training_uses_the_batch,
    tells="In training you normalize with the buffers and update them afterwards. "
    "The running statistics are for eval; in training the batch normalizes "
    "itself.",
)
class training_with_the_old_buffers(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.running_mean is None:
            return super().forward(x)
        old = self.running_mean.clone(), self.running_var.clone()
        super().forward(x)
        return F.batch_norm(
            x, *old, self.weight, self.bias, False, 0.0, self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.eval_uses_the_buffers,
    tells="You normalize by the batch in eval mode too, so an answer depends on who "
    "else is in the batch. Where `self.training` is False and there are "
    "buffers, use these.",
)
class always_by_the_batch(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        tracked = self.running_mean is not None
        if not self.training or not tracked:
            return F.batch_norm(
                x, None, None, self.weight, self.bias, True, 0.0, self.eps
            )
        return super().forward(x)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.moves_the_buffers_in_training,
    tells="Eval uses the right statistics and then updates them, so the test data "
    "leak into the model. Update only where `self.training` is True.",
)
class updating_in_eval_too(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or self.running_mean is None:
            return super().forward(x)
        out = self._eval(x)
        with torch.no_grad():
            var, mean = torch.var_mean(x.detach(), (0, 2, 3), correction=0)
            n = x.numel() / x.shape[1]
            self.running_mean.lerp_(mean, self.momentum)
            if n > 1:
                self.running_var.lerp_(var * n / (n - 1), self.momentum)
            self.num_batches_tracked += 1
        return out

    def _eval(self, x):
        scale = self.weight * torch.rsqrt(self.running_var.clone() + self.eps)
        centred = x - self.running_mean.clone()[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]


@wrong(
    "train_and_eval",
    breaks=[
        hidden_tests.training_uses_the_batch,
        hidden_tests.moves_the_buffers_in_training,
    ],
    tells="You read `track_running_stats` as the mode. It says whether there are "
    "buffers; the mode is `self.training`.",
)
class with_tracking_as_the_mode(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        tracked = self.running_mean is not None
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            not tracked,
            self.momentum,
            self.eps,
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.mode_is_not_grad_mode,
    tells="You take `torch.no_grad()` for eval. It only keeps no graph: in training "
    "mode the batch normalizes and the buffers move, with and without it. "
    "Ask `self.training`.",
)
class with_no_grad_as_eval(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        tracked = self.running_mean is not None
        train = self.training and torch.is_grad_enabled()
        if train and tracked:
            self.num_batches_tracked += 1
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            train or not tracked,
            self.momentum,
            self.eps,
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.mode_is_not_grad_mode,
    tells="Under `torch.no_grad()` your buffers stay, though the layer is in "
    "training mode. Whether gradients are kept has no say: ask "
    "`self.training`.",
)
class not_updating_under_no_grad(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if torch.is_grad_enabled() or not self.training:
            return super().forward(x)
        return F.batch_norm(
            x, None, None, self.weight, self.bias, True, 0.0, self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.moves_the_buffers_in_training,
    tells="You store the variance divided by n. That one normalizes the batch; the "
    "running variance takes the one divided by n − 1.",
)
class storing_the_biased_variance(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if not self.training or self.running_mean is None:
            return super().forward(x)
        var, mean = torch.var_mean(x.detach(), (0, 2, 3), correction=0)
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(var, self.momentum)
        return F.batch_norm(
            x, None, None, self.weight, self.bias, True, 0.0, self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.training_uses_the_batch,
    tells="You normalize the batch with the unbiased variance, the one that is "
    "stored. The batch is normalized with the variance divided by n.",
)
class normalizing_with_the_unbiased_variance(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            return super().forward(x)
        if self.training:
            super().forward(x)
        var, mean = torch.var_mean(x, (0, 2, 3), correction=1)
        scale = self.weight * torch.rsqrt(var + self.eps)
        centred = x - mean[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]


@wrong(
    "train_and_eval",
    breaks=hidden_tests.moves_the_buffers_in_training,
    tells="You have the momentum the wrong way round. In BatchNorm it is the share "
    "of the new batch: running = (1 − momentum) · running + momentum · batch.",
)
class keeping_the_share_of_momentum(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(
            num_features, eps, 1 - momentum, True, track_running_stats
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.moves_the_buffers_in_training,
    tells="Your momentum is 0.1, whatever was asked for. Keep the argument in the "
    "constructor and use it in `forward`.",
)
class with_a_fixed_momentum(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, 0.1, True, track_running_stats)


@wrong(
    "train_and_eval",
    breaks=[
        hidden_tests.training_uses_the_batch,
        hidden_tests.eval_uses_the_buffers,
    ],
    tells="Your eps is 1e-5, whatever was asked for. Keep the argument in the "
    "constructor and use it in both modes.",
)
class with_eps_of_its_own(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(
            num_features, 1e-5, momentum, True, track_running_stats
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.eval_uses_the_buffers,
    tells="In eval you add eps outside the root. The formula is the same in both "
    "modes: divide by the root of variance + eps.",
)
class with_eps_outside_in_eval(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or self.running_mean is None:
            return super().forward(x)
        scale = self.weight / (self.running_var.sqrt() + self.eps)
        centred = x - self.running_mean[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]


@wrong(
    "train_and_eval",
    breaks=hidden_tests.eval_uses_the_buffers,
    tells="In eval you leave weight and bias out. They belong to the layer in both "
    "modes; only the statistics change.",
)
class without_weights_in_eval(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or self.running_mean is None:
            return super().forward(x)
        zero = 0 * (self.weight.sum() + self.bias.sum())
        return zero + F.batch_norm(
            x, self.running_mean, self.running_var, eps=self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.moves_the_buffers_in_training,
    tells="You move mean and variance and do not count the batch. Add 1 to "
    "`num_batches_tracked` in training.",
)
class without_counting(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self.momentum,
            self.eps,
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.gradients_in_both_modes,
    tells="The buffers hold on to the graph of the last batch, and in eval gradients "
    "run back into it: memory grows, or backward fails. Update them under "
    "`torch.no_grad()`.",
)
class with_graphs_in_the_buffers(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        if self.running_mean is not None:
            if self.training:
                m, old = self.momentum, (self.running_mean, self.running_var)
                unbiased = x.var((0, 2, 3))
                self.running_mean = (1 - m) * old[0] + m * mean
                self.running_var = (1 - m) * old[1] + m * unbiased
                self.num_batches_tracked += 1
            else:
                mean, var = self.running_mean, self.running_var
        scale = self.weight * torch.rsqrt(var + self.eps)
        centred = x - mean[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]


@wrong(
    "train_and_eval",
    breaks=hidden_tests.gradients_in_both_modes,
    tells="In training the batch's mean and variance come without a graph, so part "
    "of the gradient of x is missing. Only the update of the buffers belongs "
    "under `no_grad`.",
)
class training_with_detached_statistics(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            return super().forward(x)
        if self.training:
            super().forward(x.detach())
        var, mean = torch.var_mean(x.detach(), (0, 2, 3), correction=0)
        scale = self.weight * torch.rsqrt(var + self.eps)
        centred = x - mean[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]


@wrong(
    "train_and_eval",
    breaks=hidden_tests.gradients_in_both_modes,
    tells="In eval you compute under `no_grad`, so nothing below a frozen layer can "
    "learn. Eval changes the statistics, not whether gradients flow.",
)
class without_gradients_in_eval(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training:
            return super().forward(x)
        with torch.no_grad():
            return super().forward(x)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.untracked_uses_the_batch,
    tells="With `track_running_stats=False` your layer still keeps statistics and "
    "uses them in eval. Then there are none: register None for the three "
    "buffers and use the batch in both modes.",
)
class tracking_all_the_same(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, True)


@wrong(
    "train_and_eval",
    breaks=[
        hidden_tests.untracked_uses_the_batch,
        hidden_tests.state_of_the_library,
    ],
    tells="With `track_running_stats=False` your buffers exist and stay at 0 and 1. "
    "Then there are none: register None, and use the batch in both modes.",
)
class untracked_with_zeros_and_ones(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, True)
        self.track = track_running_stats

    def forward(self, x):
        if self.track or not self.training:
            return super().forward(x)
        return F.batch_norm(
            x, None, None, self.weight, self.bias, True, 0.0, self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.untracked_uses_the_batch,
    tells="Without buffers your layer passes its input on in eval. There is nothing "
    "else to go by: it uses the batch in both modes.",
)
class untracked_without_normalizing(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or self.running_mean is not None:
            return super().forward(x)
        out = x * self.weight[:, None, None]
        return out + self.bias[:, None, None]


@wrong(
    "train_and_eval",
    breaks=hidden_tests.state_of_the_library,
    tells="Your weight and bias are buffers: they are saved, but no optimizer finds "
    "them in `parameters()`. Make them `nn.Parameter`.",
)
class with_weights_as_buffers(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)
        del self.weight, self.bias
        ones, zeros = torch.ones(num_features), torch.zeros(num_features)
        self.register_buffer("weight", ones.requires_grad_())
        self.register_buffer("bias", zeros.requires_grad_())


@wrong(
    "train_and_eval",
    breaks=hidden_tests.state_of_the_library,
    tells="Your running statistics are plain attributes: they are not in "
    "`state_dict`, so a saved model forgets them, and they do not move with "
    "the module. Use `register_buffer`.",
)
class with_statistics_as_attributes(nn.Module):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        tracked = track_running_stats
        self.running_mean = torch.zeros(num_features) if tracked else None
        self.running_var = torch.ones(num_features) if tracked else None
        self.num_batches_tracked = torch.tensor(0) if tracked else None

    def forward(self, x):
        if self.training and self.running_mean is not None:
            self.num_batches_tracked += 1
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self.momentum,
            self.eps,
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.state_of_the_library,
    tells="Your layer begins with random or otherwise other parameters. Weights begin "
    "at 1 and biases at 0: at first the layer only normalizes.",
)
class beginning_with_zero_weights(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)
        nn.init.zeros_(self.weight)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.training_uses_the_batch,
    tells="In training each of your samples is normalized by itself. A channel has "
    "one mean and one variance, over dimensions 0, 2 and 3.",
)
class training_by_instance(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            return super().forward(x)
        if self.training:
            super().forward(x.detach())
        return F.instance_norm(
            x, weight=self.weight, bias=self.bias, eps=self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.training_uses_the_batch,
    tells="Your weight and bias broadcast along the width of the images. Give them "
    "the shape (C, 1, 1).",
)
class weighing_along_the_width(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        ones, zeros = torch.ones_like(self.bias), torch.zeros_like(self.bias)
        if self.training and self.running_mean is not None:
            self.num_batches_tracked += 1
        out = F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            ones,
            zeros,
            self.training or self.running_mean is None,
            self.momentum,
            self.eps,
        )
        return out * self.weight + self.bias


@wrong(
    "train_and_eval",
    breaks=hidden_tests.eval_uses_the_buffers,
    tells="In eval you use the running statistics for a batch of one alone, and the "
    "batch otherwise. The answer then depends on the size of the batch. Eval "
    "always uses the running statistics.",
)
class with_buffers_for_one_row(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or len(x) == 1:
            return super().forward(x)
        return F.batch_norm(
            x, None, None, self.weight, self.bias, True, 0.0, self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.eval_uses_the_buffers,
    tells="In eval you take the mean from the buffers and the variance from the "
    "batch. Both come from the buffers.",
)
class with_the_batch_variance_in_eval(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or self.running_mean is None:
            return super().forward(x)
        var = x.var((0, 2, 3), correction=0)
        scale = self.weight * torch.rsqrt(var + self.eps)
        centred = x - self.running_mean[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]


@wrong(
    "train_and_eval",
    breaks=hidden_tests.eval_uses_the_buffers,
    tells="You look at the mode once, in the constructor. `eval()` comes later and "
    "is never noticed. Ask `self.training` in `forward`.",
)
class with_the_mode_of_the_beginning(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)
        self.train_mode = self.training

    def forward(self, x):
        tracked = self.running_mean is not None
        if self.train_mode and tracked:
            self.num_batches_tracked += 1
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.train_mode or not tracked,
            self.momentum,
            self.eps,
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.takes_images_as_they_come,
    tells="You use `view` on the images, which needs contiguous memory and "
    "raises on a permuted input. Use `reshape` or `flatten`.",
)
class normalizing_by_view(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        rows = x.view(x.shape[0], x.shape[1], -1, 1)
        return super().forward(rows).view(x.shape)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.takes_images_as_they_come,
    tells="You return float64 for float32 images. The result has the dtype of"
    " `x`.",
)
class widening_the_result(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        return super().forward(x).double()


@wrong(
    "train_and_eval",
    breaks=hidden_tests.takes_images_as_they_come,
    tells="You change the caller's `x` in place. Compute with new tensors: `x"
    " - mean` and not `x -= mean`.",
)
class centring_the_images_in_place(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        out = super().forward(x)
        x.data.copy_(out.data)
        return out


@wrong(
    "train_and_eval",
    breaks=hidden_tests.trains_on_one_image,
    tells="In training you refuse a batch of one image. Its channels have "
    "many values each: only one value per channel cannot be normalized.",
)
class refusing_one_image(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training and len(x) == 1:
            raise ValueError("a batch of one")
        return super().forward(x)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.trains_on_one_image,
    tells="A batch with a NaN does not move your buffers. It is then seen by "
    "nobody: let the NaN show.",
)
class skipping_nans(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training and x.isnan().any():
            self.num_batches_tracked.add_(1)
            return F.batch_norm(
                x, None, None, self.weight, self.bias, True, 0.0, self.eps
            )
        return super().forward(x)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.uses_a_loaded_state_at_once,
    tells="You copy the buffers when `eval()` is called and use the copy. A "
    "state that is loaded afterwards is not noticed: read the buffers "
    "in each call.",
)
class with_a_copy_for_eval(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def train(self, mode=True):
        if not mode and self.running_mean is not None:
            self.copy = self.running_mean.clone(), self.running_var.clone()
        return super().train(mode)

    def forward(self, x):
        if self.training or self.running_mean is None:
            return super().forward(x)
        return F.batch_norm(x, *self.copy, self.weight, self.bias, eps=self.eps)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.keeps_layers_apart,
    tells="All your layers write into the same tensors. Make new buffers in "
    "each constructor, not once for all.",
)
class sharing_buffers_among_layers(nn.BatchNorm2d):
    shared = {}

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)
        if track_running_stats:
            start = self.running_mean, self.running_var
            mean, var = self.shared.setdefault(num_features, start)
            self.running_mean, self.running_var = mean, var


@wrong(
    "train_and_eval",
    breaks=hidden_tests.begins_as_the_signature_says,
    tells="Without an argument your momentum is not 0.1 or your eps not 1e-5."
    " Keep the defaults of the signature.",
)
class with_other_defaults(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.01, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.begins_as_the_signature_says,
    tells="Your arguments stand in another order. It is num_features, eps, "
    "momentum, track_running_stats.",
)
class with_momentum_before_eps(nn.BatchNorm2d):
    def __init__(
        self, num_features, momentum=0.1, eps=1e-5, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.moves_the_buffers_in_training,
    tells="With a momentum of 0 you count nothing. Mean and variance stay, "
    "but the batch is counted.",
)
class not_counting_without_momentum(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training and self.momentum == 0.0:
            return F.batch_norm(
                x, None, None, self.weight, self.bias, True, 0.0, self.eps
            )
        return super().forward(x)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.trains_on_a_large_mean,
    tells="You take the variance as the mean of the squares less the square "
    "of the mean. In float32 that subtracts two large, nearly equal "
    "numbers and loses the digits. Subtract the mean first, then "
    "square.",
)
class training_by_mean_of_squares(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if not self.training and self.running_mean is not None:
            return super().forward(x)
        if self.training and self.running_mean is not None:
            super().forward(x.detach())
        mean = x.mean((0, 2, 3), keepdim=True)
        var = x.square().mean((0, 2, 3), keepdim=True) - mean.square()
        out = (x - mean) / (var.clamp(min=0) + self.eps).sqrt()
        weight, bias = self.weight[:, None, None], self.bias[:, None, None]
        return out * weight + bias


@wrong(
    "train_and_eval",
    breaks=hidden_tests.eval_rows_stand_alone,
    tells="In eval you trust the batch if it is large. However many rows "
    "there are, eval goes by the running statistics.",
)
class trusting_large_batches(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if not self.training and len(x) > 100:
            return F.batch_norm(
                x, None, None, self.weight, self.bias, True, 0.0, self.eps
            )
        return super().forward(x)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.gradients_in_both_modes,
    tells="No gradient reaches the weight or the bias in one of the modes. "
    "Compute with the parameters themselves, not with `detach()` or "
    "`.data`.",
)
class detaching_the_weight_in_eval(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or self.running_mean is None:
            return super().forward(x)
        statistics = self.running_mean, self.running_var
        weight, bias = self.weight.detach(), self.bias
        return F.batch_norm(x, *statistics, weight, bias, eps=self.eps)


@wrong(
    "train_and_eval",
    breaks=hidden_tests.gradients_in_both_modes,
    tells="Without buffers you detach the batch's mean and variance in eval, so part "
    "of the gradient of x is missing. Both modes do the same there.",
)
class untracked_with_detached_statistics(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)

    def forward(self, x):
        if self.training or self.running_mean is not None:
            return super().forward(x)
        var, mean = torch.var_mean(x.detach(), (0, 2, 3), correction=0)
        return F.batch_norm(
            x, mean, var, self.weight, self.bias, False, 0.0, self.eps
        )


@wrong(
    "train_and_eval",
    breaks=hidden_tests.mode_is_not_grad_mode,
    tells="You keep a mode of your own beside `self.training`. Code may set "
    "`module.training` directly; ask that attribute and nothing else.",
)
class with_a_mode_beside_training(nn.BatchNorm2d):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, track_running_stats=True
    ):
        super().__init__(num_features, eps, momentum, True, track_running_stats)
        self.learning = True

    def train(self, mode=True):
        self.learning = mode
        return super().train(mode)

    def forward(self, x):
        found, self.training = self.training, self.learning
        out = super().forward(x)
        self.training = found
        return out


# one_reshape


@accepted("one_reshape", body=True)
def the_layers_of_the_library():
    GroupNorm = nn.GroupNorm
    InstanceNorm = nn.InstanceNorm2d
    LayerNorm = nn.LayerNorm


@accepted("one_reshape", body=True)
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


@accepted("one_reshape", body=True)
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


@accepted("one_reshape", body=True)
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


@accepted("one_reshape", body=True)
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


@accepted("one_reshape", body=True)
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


@accepted("one_reshape", body=True)
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


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_of_neighbours,
    tells="Your groups take every G-th channel. A group is a block of neighbouring "
    "channels: `x.reshape(N, G, -1)` makes it, with the groups before the "
    "channels inside a group.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_of_neighbours,
    tells="Your groups average over the batch too. Group norm treats each sample by "
    "itself; that is why it works with small batches.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_of_neighbours,
    tells="You read `num_groups` as the number of channels in a group. It is the "
    "number of groups: G of them, with C / G channels each.",
)
def with_the_size_of_groups():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            groups = x.shape[1] // self.num_groups
            return F.group_norm(x, groups, self.weight, self.bias, self.eps)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    "one_reshape",
    body=True,
    breaks=[
        hidden_tests.group_affine_by_channel,
        hidden_tests.parameters_of_all,
    ],
    tells="Your group norm has one weight and one bias per group. Statistics go by "
    "group, parameters by channel: shape (C,), applied after reshaping back.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.group_affine_by_channel,
    tells="Weight and bias of your group norm broadcast along the width of the "
    "images. Give them as many dimensions as `x` has: the channels are "
    "dimension 1.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_must_divide,
    tells="Where the groups do not divide the channels you round down, and channels "
    "are lost or mixed. Raise a ValueError in the constructor.",
)
def with_floor_division():
    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__(1, num_channels, eps, affine)
            self.num_groups = num_groups

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_must_divide,
    tells="Your group norm refuses a bad number of groups with `assert`. That raises "
    "an AssertionError, and nothing at all under `python -O`. Raise a "
    "ValueError.",
)
def with_an_assert():
    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            assert num_channels % num_groups == 0
            super().__init__(num_groups, num_channels, eps, affine)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    "one_reshape",
    body=True,
    breaks=[
        hidden_tests.groups_of_neighbours,
        hidden_tests.groups_must_divide,
    ],
    tells="Your constructor takes the channels first. The order is "
    "`GroupNorm(num_groups, num_channels)`; swapped, every pair with fewer "
    "groups than channels raises.",
)
def with_swapped_arguments():
    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_channels, num_groups, eps=1e-5, affine=True):
            super().__init__(num_groups, num_channels, eps, affine)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_of_neighbours,
    tells="Your group norm takes the unbiased variance, the default of `var`. All "
    "normalization layers divide by the number of values: `correction=0`.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.group_eps,
    tells="Your group norm adds eps outside the root, or not the eps that was "
    "given. Divide by the root of variance + eps.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_of_any_dimensions,
    tells="Your group norm works for images only. Give weight and bias as many "
    "dimensions as `x` has, and rows and sequences work too.",
)
def with_groups_of_images_only():
    class GroupNorm(nn.GroupNorm):
        def forward(self, x):
            n, c, h, w = x.shape
            return super().forward(x)

    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.parameters_of_all,
    tells="Your instance norm has weight and bias by default. Group norm has them "
    "by default, instance norm only with `affine=True`.",
)
def with_affine_instances_by_default():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=True):
            super().__init__(num_features, eps, affine=affine)


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.parameters_of_all,
    tells="Your group norm has no weight and bias by default. It has them unless "
    "`affine=False` is given; instance norm is the other way round.",
)
def without_affine_groups_by_default():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=False):
            super().__init__(num_groups, num_channels, eps, affine)


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.parameters_of_all,
    tells="Your group norm has weight and bias whatever `affine` says. With "
    "`affine=False` there are none, in `state_dict` neither.",
)
def with_affine_whatever_is_said():
    InstanceNorm, LayerNorm = nn.InstanceNorm2d, nn.LayerNorm

    class GroupNorm(nn.GroupNorm):
        def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
            super().__init__(num_groups, num_channels, eps)


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm averages over the batch: that is batch norm. Leave "
    "dimension 0 out.",
)
def with_batch_norm_for_instances():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            return F.batch_norm(
                x, None, None, self.weight, self.bias, True, 0.0, self.eps
            )


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm averages over the channels of a sample: that is "
    "layer norm. Each channel has its own mean and variance.",
)
def with_layer_norm_for_instances():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            return F.group_norm(x, 1, self.weight, self.bias, self.eps)


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm takes the unbiased variance, the default of `var`. "
    "All normalization layers divide by the number of values: "
    "`correction=0`.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm has weight and bias and does not use them. Multiply "
    "and add after normalizing, channel by channel.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.instance_in_eval,
    tells="Your instance norm keeps running statistics and uses them in eval. "
    "Nothing here depends on the mode.",
)
def with_running_instances():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def forward(self, x):
            if self.training:
                return super().forward(x)
            return x / (1 + self.eps) ** 0.5


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_over_the_last,
    tells="Your layer norm averages over the first dimensions behind the batch. "
    "`normalized_shape` names the *last* dimensions of x.",
)
def with_the_leading_dimensions():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            k = len(self.normalized_shape)
            if x.shape[-k:] != torch.Size(self.normalized_shape):
                raise ValueError("shape")
            dims = list(range(1, k + 1)) if x.dim() > k else list(range(k))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            out = (x - mean) * torch.rsqrt(var + self.eps)
            return out * self.weight + self.bias


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_over_the_last,
    tells="Your layer norm averages over the batch as well. It treats each sample "
    "by itself: only the dimensions of `normalized_shape` are averaged.",
)
def with_the_batch_in_layer_norm():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            k = len(self.normalized_shape)
            if x.shape[-k:] != torch.Size(self.normalized_shape):
                raise ValueError("shape")
            dims = [0, *range(-k, 0)]
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            out = (x - mean) * torch.rsqrt(var + self.eps)
            return out * self.weight + self.bias


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_over_the_last,
    tells="Your layer norm always averages over the last dimension alone. "
    "`normalized_shape` may name several: average over all of them together.",
)
def with_the_last_dimension_only():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            k = len(self.normalized_shape)
            if x.shape[-k:] != torch.Size(self.normalized_shape):
                raise ValueError("shape")
            out = F.layer_norm(x, x.shape[-1:], eps=self.eps)
            return out * self.weight + self.bias


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_over_the_last,
    tells="Your layer norm takes the unbiased variance, the default of `var`. All "
    "normalization layers divide by the number of values: `correction=0`.",
)
def with_unbiased_layers():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            k = len(self.normalized_shape)
            if x.shape[-k:] != torch.Size(self.normalized_shape):
                raise ValueError("shape")
            dims = list(range(-k, 0))
            correction = int(self.weight.numel() > 1)
            var, mean = torch.var_mean(
                x, dims, correction=correction, keepdim=True
            )
            out = (x - mean) * torch.rsqrt(var + self.eps)
            return out * self.weight + self.bias


@wrong(
    "one_reshape",
    body=True,
    breaks=[
        hidden_tests.layer_over_the_last,
        hidden_tests.parameters_of_all,
    ],
    tells="Your layer norm has one weight per channel, as batch norm. It has one per "
    "element, in the shape `normalized_shape`.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_refuses_other_shapes,
    tells="Your layer norm does not look at the input's last dimensions. "
    "`[5, 4]` for an input that ends in (4, 10) must raise: compare "
    "`x.shape[-len(normalized_shape):]`.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_refuses_other_shapes,
    tells="Your layer norm compares the number of elements, not the shape: "
    "`[10, 4]` passes for (4, 10), and the weights go to other elements. "
    "Compare the sizes one by one.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_in_eval,
    tells="Your layer norm does something else in eval mode. It has no running "
    "statistics: the mode changes nothing.",
)
def with_a_mode_in_layer_norm():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            if self.training:
                return super().forward(x)
            out = x / (1 + self.eps) ** 0.5
            return out * self.weight + self.bias


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.group_in_eval,
    tells="Your group norm passes its input on in eval mode. It has no running "
    "statistics: the mode changes nothing.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_eps,
    tells="Your layer norm adds eps outside the root, or not the eps that was "
    "given. Divide by the root of variance + eps.",
)
def with_layer_eps_outside():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            k = len(self.normalized_shape)
            if x.shape[-k:] != torch.Size(self.normalized_shape):
                raise ValueError("shape")
            dims = list(range(-k, 0))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            out = (x - mean) / (var.sqrt() + self.eps)
            return out * self.weight + self.bias


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.layer_in_eval,
    tells="Your layer norm uses `view`, which needs contiguous memory and raises on a "
    "permuted input. Use `reshape` or `flatten`.",
)
def with_layers_by_view():
    GroupNorm, InstanceNorm = nn.GroupNorm, nn.InstanceNorm2d

    class LayerNorm(nn.LayerNorm):
        def forward(self, x):
            k = len(self.normalized_shape)
            if x.shape[-k:] != torch.Size(self.normalized_shape):
                raise ValueError("shape")
            rows = x.view(-1, self.weight.numel())
            out = F.layer_norm(rows, rows.shape[1:], eps=self.eps)
            return out.view(x.shape) * self.weight + self.bias


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.gradients_of_three,
    tells="Your group norm takes mean and variance without a graph, so part of the "
    "gradient of x is missing. Nothing here belongs under `no_grad`.",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.instance_by_instance,
    tells="Your instance norm takes no notice of the argument `eps`, or adds it "
    "outside the root. Divide by the root of variance + eps.",
)
def with_an_instance_eps_of_its_own():
    GroupNorm, LayerNorm = nn.GroupNorm, nn.LayerNorm

    class InstanceNorm(nn.InstanceNorm2d):
        def __init__(self, num_features, eps=1e-5, affine=False):
            super().__init__(num_features, affine=affine)


@wrong(
    "one_reshape",
    body=True,
    breaks=hidden_tests.groups_of_neighbours,
    tells="You made the groups the last dimension of the reshape: (N, -1, G). Then "
    "every G-th element in memory is a group. The order is (N, G, -1).",
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
    "one_reshape",
    body=True,
    breaks=hidden_tests.group_in_eval,
    tells="Your group norm uses `view`, which needs contiguous memory and raises on a "
    "permuted input. Use `reshape`.",
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
    "one_reshape",
    breaks=hidden_tests.layer_refuses_other_shapes,
    body=True,
    tells="Your layer norm compares the last size only. A dimension of size 1"
    " before it is then stretched to the weight, and the result has "
    "another shape than x. Compare all sizes of `normalized_shape`.",
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
    "one_reshape",
    breaks=hidden_tests.layer_refuses_other_shapes,
    body=True,
    tells="Your layer norm takes an input with fewer dimensions than "
    "`normalized_shape`. The weight stretches it. Compare the number of"
    " dimensions as well.",
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
    "one_reshape",
    breaks=hidden_tests.instance_in_eval,
    body=True,
    tells="Your instance norm uses `view`, which needs contiguous memory and "
    "raises on a permuted input. Use `reshape` or `flatten`.",
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
    "one_reshape",
    breaks=hidden_tests.keeps_digits_of_all,
    body=True,
    tells="You take the variance as the mean of the squares less the square "
    "of the mean. In float32 that subtracts two large, nearly equal "
    "numbers and loses the digits. Subtract the mean first, then "
    "square.",
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
    "one_reshape",
    breaks=hidden_tests.leaves_x_alone,
    body=True,
    tells="You change the caller's `x` in place. Compute with new tensors: `x"
    " - mean` and not `x -= mean`.",
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
    "one_reshape",
    breaks=hidden_tests.leaves_x_alone,
    body=True,
    tells="Your layer remembers earlier calls and lets them into the result. "
    "Nothing here depends on other inputs: the same x gives the same "
    "result each time.",
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
    "one_reshape",
    breaks=hidden_tests.leaves_x_alone,
    body=True,
    tells="You return float64 for float32 input. The result has the dtype of "
    "`x`.",
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
    "one_reshape",
    breaks=hidden_tests.gradients_of_three,
    body=True,
    tells="No gradient reaches weight or bias of your layer norm. Compute "
    "with the parameters themselves, not with `detach()` or `.data`.",
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
    "one_reshape",
    breaks=hidden_tests.shows_nans_of_all,
    body=True,
    tells="You replace NaNs by numbers. A NaN has to show in what it is averaged "
    "with, or nobody finds out where it came from.",
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
    "one_reshape",
    breaks=hidden_tests.shows_nans_of_all,
    body=True,
    tells="You replace NaNs by numbers. A NaN has to show in what it is averaged "
    "with, or nobody finds out where it came from.",
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
    "one_reshape",
    breaks=hidden_tests.instance_by_instance,
    body=True,
    tells="With `affine=True` your instance norm leaves weight and bias out for a "
    "batch of one. A sample alone is weighed as it is among others.",
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


# predict_one


@accepted("predict_one")
def with_a_deep_copy(model, x):
    import copy

    evaluated = copy.deepcopy(model).eval()
    return evaluated(x[None]).squeeze(0).detach()


@accepted("predict_one")
def in_inference_mode(model, x):
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.inference_mode():
            return model.eval()(x.unsqueeze(0))[0]
    finally:
        for module, mode in modes:
            module.training = mode


@accepted("predict_one")
def with_a_context_manager(model, x):
    import contextlib

    @contextlib.contextmanager
    def evaluating():
        awake = [m for m in model.modules() if m.training]
        for module in awake:
            module.training = False
        try:
            yield
        finally:
            for module in awake:
                module.training = True

    with evaluating(), torch.no_grad():
        return model(x.reshape(1, *x.shape)).flatten(0, 1)


@accepted("predict_one")
def module_by_module(model, x):
    modes = {name: m.training for name, m in model.named_modules()}
    model.train(False)
    error = None
    try:
        out = model(torch.stack([x])).detach()
    except Exception as caught:
        error = caught
    for name, module in model.named_modules():
        module.training = modes[name]
    if error is not None:
        raise error
    return out[0]


@accepted("predict_one")
def in_a_batch_of_two(model, x):
    from contextlib import ExitStack

    with ExitStack() as stack, torch.no_grad():
        for module in model.modules():
            stack.callback(setattr, module, "training", module.training)
        model.eval()
        return model(torch.stack([x, torch.zeros_like(x)]))[0]


@accepted("predict_one")
def by_functional_call(model, x):
    state = {k: v.detach().clone() for k, v in model.state_dict().items()}
    modes = [m.training for m in model.modules()]
    try:
        model.eval()
        given = (x.detach()[None],)
        return torch.func.functional_call(model, state, given)[0]
    finally:
        for module, mode in zip(model.modules(), modes):
            module.training = mode


@accepted("predict_one")
def with_train_of_each_module(model, x):
    modes = []
    model.apply(lambda module: modes.append((module, module.training)))
    try:
        with torch.no_grad():
            return model.train(False)(x.unsqueeze(dim=0)).squeeze(dim=0)
    finally:
        # `apply` goes from the leaves to the root, `train` the other way.
        for module, mode in reversed(modes):
            module.train(mode)


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You ask the model in the mode it is in. In training a batch of one raises, "
    "or it is normalized by itself and moves the running statistics. Switch "
    "to eval first.",
)
def without_eval(model, x):
    with torch.no_grad():
        return model(x[None])[0]


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You repeat the sample so that batch norm does not raise. All rows are then "
    "equal, each minus the mean is 0, and the input no longer matters. Use "
    "eval mode: it needs no batch.",
)
def with_the_sample_repeated(model, x):
    with torch.no_grad():
        return model(torch.stack([x, x]))[0]


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back,
    tells="You leave the model in eval mode. The training that goes on afterwards has "
    "no dropout and running statistics that stand still. Put every module "
    "back into the mode it was in.",
)
def leaving_eval_on(model, x):
    model.eval()
    with torch.no_grad():
        return model(x[None])[0]


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back,
    tells="You end with `model.train()`. That puts a model that was in eval mode into "
    "training, and wakes frozen modules. Note the mode of each module first "
    "and put it back.",
)
def ending_with_train(model, x):
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        model.train()


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back,
    tells="You put the mode of the outermost module back, with `model.train(mode)`: "
    "it goes through all submodules and wakes those that were frozen. Note "
    "the mode of each of `model.modules()`.",
)
def with_the_outermost_mode(model, x):
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        model.train(mode)


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back,
    tells="You set `model.training` alone. The flag of the outermost module says "
    "nothing to its submodules, and these are now in eval for good. Put back "
    "the mode of each of `model.modules()`.",
)
def with_the_outermost_flag(model, x):
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        model.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back_after_an_error,
    tells="If the model raises, your last lines never run and the model stays in "
    "eval. Put the modes back in a `finally`.",
)
def without_finally(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        out = model(x[None])[0]
    for module, mode in modes:
        module.training = mode
    return out


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back_after_an_error,
    tells="You catch the model's exception and keep it to yourself. Put the modes "
    "back and let the exception go on to the caller.",
)
def swallowing_the_error(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            out = model(x[None])[0]
    except Exception:
        out = None
    for module, mode in modes:
        module.training = mode
    return out


@wrong(
    "predict_one",
    breaks=hidden_tests.carries_no_graph,
    tells="Your result carries a graph, and with it all activations of the model. "
    "Eval does not switch gradients off: use `torch.no_grad()` as well.",
)
def with_a_graph_kept(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        return model(x[None])[0]
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.keeps_one_output,
    tells="`squeeze()` takes away every dimension of size 1, so a single output "
    "loses its own. Take away the batch dimension alone: `squeeze(0)`.",
)
def squeezing_everything(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None]).squeeze()
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="Your result still has the batch dimension. Take the first row.",
)
def keeping_the_batch(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None])
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You put only the batch norm layers into eval. Dropout still drops at "
    "random, so the answer changes from call to call. Switch the whole model.",
)
def with_dropout_on(model, x):
    norms = [m for m in model.modules() if hasattr(m, "running_mean")]
    modes = [module.training for module in norms]
    for module in norms:
        module.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module, mode in zip(norms, modes):
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You switch the dropout layers off and leave batch norm in training. It "
    "then normalizes the sample by itself, or raises. Switch the whole model.",
)
def with_batch_norm_on(model, x):
    drops = [m for m in model.modules() if isinstance(m, nn.Dropout)]
    modes = [module.training for module in drops]
    for module in drops:
        module.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module, mode in zip(drops, modes):
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_state,
    tells="You switch off `x.requires_grad`, and whoever gave you `x` asked for its "
    "gradient. `torch.no_grad()` keeps the graph away and leaves `x` as it is.",
)
def with_x_asking_for_nothing(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        x.requires_grad_(False)
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_state,
    tells="You wash the running statistics with a pass in training mode before you "
    "ask in eval. They are then other numbers than training left. One pass "
    "in eval is all it takes.",
)
def with_a_pass_in_training(model, x):
    modes = [(module, module.training) for module in model.modules()]
    with torch.no_grad():
        try:
            if modes[0][1]:
                model(torch.stack([x, x + 1]))
            model.eval()
            return model(x[None])[0]
        finally:
            for module, mode in modes:
                module.training = mode


@wrong(
    "predict_one",
    breaks=[
        hidden_tests.predicts_as_in_evaluation,
        hidden_tests.leaves_the_state,
    ],
    tells="You set `momentum = 0`. That keeps mean and variance as they are, but the "
    "batch still normalizes itself in training mode. Only eval makes the "
    "layer use its running statistics.",
)
def with_momentum_zero(model, x):
    norms = [m for m in model.modules() if hasattr(m, "momentum")]
    others = [m for m in model.modules() if not hasattr(m, "momentum")]
    modes = [(module, module.training) for module in others]
    kept = [module.momentum for module in norms]
    for module in others:
        module.training = False
    for module in norms:
        module.momentum = 0.0
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module, momentum in zip(norms, kept):
            module.momentum = momentum
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You switch `track_running_stats` off. It says whether statistics are kept, "
    "and is not the mode: the batch of one still normalizes itself. Use "
    "eval.",
)
def with_tracking_switched_off(model, x):
    norms = [m for m in model.modules() if hasattr(m, "running_mean")]
    others = [m for m in model.modules() if not hasattr(m, "running_mean")]
    modes = [(module, module.training) for module in others]
    for module in others:
        module.training = False
    for module in norms:
        module.track_running_stats = False
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module in norms:
            module.track_running_stats = True
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You give the model a sample without batch dimension. Linear and "
    "convolution take it, batch norm does not. Add the dimension with "
    "`unsqueeze(0)`.",
)
def without_a_batch_dimension(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model(x)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You copy the model and ask the copy in the mode it is in. The original "
    "is safe, but the answer is that of training. Call `eval()` on the copy.",
)
def asking_a_copy_in_training(model, x):
    import copy

    with torch.no_grad():
        return copy.deepcopy(model)(x[None])[0]


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_state,
    tells="You set the dropout probability to 0 for good. The training that goes on "
    "afterwards has no dropout left. Eval mode switches dropout off without "
    "touching `p`.",
)
def with_dropout_set_to_zero(model, x):
    modes = [(module, module.training) for module in model.modules()]
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_state,
    tells="You switch `requires_grad` of the parameters off and leave it off: the "
    "model will not learn any more. `torch.no_grad()` keeps the graph away and "
    "changes no parameter.",
)
def with_parameters_frozen(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval().requires_grad_(False)
    try:
        return model(x[None])[0]
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back,
    tells="You switch gradients off for the whole program with "
    "`set_grad_enabled(False)` and leave them off. Use `with torch.no_grad():`, "
    "which ends with its block.",
)
def with_gradients_left_off(model, x):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    torch.set_grad_enabled(False)
    try:
        return model(x[None])[0]
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.puts_modes_back,
    tells="You put back the model and its direct submodules. Modules lie in "
    "modules: go through all of `model.modules()`.",
)
def putting_children_back(model, x):
    modes = [(m, m.training) for m in [model, *model.children()]]
    model.eval()
    try:
        with torch.no_grad():
            return model(x.unsqueeze(0)).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.keeps_one_output,
    tells="You take away or merge dimensions of the output itself: it may be "
    "an image, with sizes of 1. Take away the batch dimension alone: "
    "`squeeze(0)` or `[0]`.",
)
def flattening_the_output(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model(x.unsqueeze(0)).flatten()
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.keeps_one_output,
    tells="You take away or merge dimensions of the output itself: it may be "
    "an image, with sizes of 1. Take away the batch dimension alone: "
    "`squeeze(0)` or `[0]`.",
)
def squeezing_all_but_one(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            out = model(x.unsqueeze(0)).squeeze()
            return out if out.dim() else out.reshape(1)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.carries_no_graph,
    tells="Where `x` asks for a gradient your result carries a graph. It "
    "carries none, whatever is handed in: `no_grad` around the call, or"
    " `detach()`.",
)
def with_a_graph_for_x(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.set_grad_enabled(x.requires_grad):
            return model(x.unsqueeze(0)).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_with_any_module,
    tells="You put only batch norm and dropout into eval. Other modules ask "
    "for the mode too: `model.eval()` tells all of them.",
)
def telling_known_layers_only(model, x):
    modes = [(m, m.training) for m in model.modules()]
    known = nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd
    for module, _ in modes:
        if isinstance(module, known):
            module.eval()
    try:
        with torch.no_grad():
            return model(x.unsqueeze(0)).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_with_a_part_awake,
    tells="You call `eval()` only if the outermost module is in training. "
    "Parts of it may be in training all the same: call it in any case.",
)
def trusting_the_outermost_mode(model, x):
    modes = [(m, m.training) for m in model.modules()]
    if model.training:
        model.eval()
    try:
        with torch.no_grad():
            return model(x.unsqueeze(0)).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_grad_mode,
    tells="You switch gradients on at the end. If the caller had them off, "
    "under `no_grad`, they are to stay off: `with torch.no_grad():` "
    "puts back what it found.",
)
def switching_gradients_on_again(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        torch.set_grad_enabled(False)
        return model(x.unsqueeze(0)).squeeze(0)
    finally:
        torch.set_grad_enabled(True)
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_with_any_module,
    tells="You call `model.forward(...)`, which leaves the hooks of the model"
    " out. Call the model itself: `model(...)`.",
)
def calling_forward(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model.forward(x.unsqueeze(0)).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_state,
    tells="You end with `requires_grad_(True)`, so parameters that were "
    "frozen learn again. `torch.no_grad()` keeps the graph away and "
    "changes no parameter.",
)
def unfreezing_parameters(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    model.requires_grad_(False)
    try:
        with torch.no_grad():
            return model(x.unsqueeze(0)).squeeze(0)
    finally:
        model.requires_grad_(True)
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_state,
    tells="You clear the gradients of the parameters. The caller may be "
    "between `backward` and `step`, and loses what was summed up.",
)
def clearing_gradients(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    model.zero_grad()
    try:
        with torch.no_grad():
            return model(x.unsqueeze(0)).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.leaves_the_state,
    tells="You seed or use the global random generator. In eval nothing is "
    "drawn, and the caller's next random numbers change.",
)
def seeding_for_dropout(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            return model(x.unsqueeze(0)).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


@wrong(
    "predict_one",
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You flatten images of one channel. A sample gets a batch dimension"
    " and keeps its own: `x.unsqueeze(0)`.",
)
def flattening_one_channel(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    batch = x.reshape(1, -1) if x.shape[0] == 1 else x[None]
    try:
        with torch.no_grad():
            return model(batch).squeeze(0)
    finally:
        for module, mode in modes:
            module.training = mode


# quiz


@accepted("quiz")
def as_a_literal():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@accepted("quiz")
def in_capital_letters():
    return dict(
        motive="B",
        shift="C",
        momentum="A",
        tracking="D",
        two_variances="D",
        alone="C",
    )


@accepted("quiz")
def from_a_string():
    questions = "motive shift momentum tracking two_variances alone".split()
    return dict(zip(questions, "bcaddc"))


@accepted("quiz")
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


@accepted("quiz")
def with_blanks_around():
    letters = {"alone": " c", "two_variances": "d ", "tracking": "D"}
    letters |= {"momentum": "a", "shift": " C ", "motive": "b"}
    return letters


@accepted("quiz")
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


@wrong(
    "quiz",
    breaks=hidden_tests.why_it_helps,
    tells="Nobody has proved that. The reduction of internal covariate shift "
    "was the motive of the authors; Santurkar and others (2018) added "
    "shift behind the layers on purpose and batch norm helped all the "
    "same.",
)
def proving_the_shift():
    return {
        "motive": "a",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.why_it_helps,
    tells="Nothing is wrong with the data. The motive concerned what happens "
    "inside the network while it learns.",
)
def repairing_the_data():
    return {
        "motive": "c",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.why_it_helps,
    tells="Batch norm puts no pressure on weights: scale them all and the "
    "output stays the same. Weight decay is another tool.",
)
def keeping_weights_small():
    return {
        "motive": "d",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_shifts,
    tells="That is covariate shift in the data, between training and test. "
    "The *internal* one happens inside the network, between steps of "
    "training.",
)
def shifting_to_the_test_data():
    return {
        "motive": "b",
        "shift": "a",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_shifts,
    tells="No labels are involved. The term is about the inputs of a layer in "
    "the middle of the network.",
)
def shifting_the_labels():
    return {
        "motive": "b",
        "shift": "b",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_shifts,
    tells="Outliers are samples, and may be there in a network that does not "
    "learn at all. The term is about distributions that move while "
    "earlier layers learn.",
)
def taking_outliers_for_shift():
    return {
        "motive": "b",
        "shift": "d",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_momentum_weighs,
    tells="That is the momentum of SGD. In BatchNorm it is the share of the "
    "*new* batch, so 0.9 nearly forgets what was before.",
)
def keeping_nine_tenths():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "b",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_momentum_weighs,
    tells="The word is shared with the optimizers, nothing else is. In "
    "BatchNorm it says how fast the running statistics follow.",
)
def speeding_up_the_optimizer():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "c",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_momentum_weighs,
    tells="The output in training does not depend on the running statistics, "
    "so no momentum can smooth it.",
)
def smoothing_the_output():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "d",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_tracking_means,
    tells="The layer still normalizes. Without running statistics only the "
    "batch is left to do it by.",
)
def passing_the_input_on():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "a",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_tracking_means,
    tells="There are no such buffers: they are None, and `state_dict` has no "
    "entry for them.",
)
def tracking_zeros_and_ones():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "b",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_tracking_means,
    tells="It works without error, in training and in eval alike, by the one "
    "thing it has: the batch.",
)
def raising_without_tracking():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "c",
        "two_variances": "d",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_variance,
    tells="The output is right, the buffer is not: it estimates the variance "
    "of all data, and for that one divides by n − 1.",
)
def four_and_four():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "a",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_variance,
    tells="The buffer is right, the output is not: the batch is normalized by "
    "its own variance, divided by n.",
)
def three_and_three():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "b",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_variance,
    tells="The wrong way round: the batch is normalized with ÷ n, and what is "
    "stored for later is ÷ (n − 1).",
)
def three_and_four():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "c",
        "alone": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.who_raises_alone,
    tells="Layer norm averages over the 8 features of the one sample: 8 "
    "values, no error.",
)
def layer_norm_alone():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "a",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.who_raises_alone,
    tells="A channel of one 4 × 4 image has 16 values: no error. It is "
    "normalized by itself alone, which is another matter.",
)
def an_image_alone():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.who_raises_alone,
    tells="Two groups of four channels have 4 values each: no error. It "
    "raises only where one value is left.",
)
def group_norm_alone():
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "d",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="Your keys are not those of the questions. Use motive, shift, momentum, "
    "tracking, two_variances and alone.",
)
def with_numbers_for_keys():
    return dict(enumerate("bcaddc", start=1))


@wrong(
    "quiz",
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="You return the letters without their questions. `quiz()` returns a"
    " dict with motive, shift, momentum, tracking, two_variances and "
    "alone as keys.",
)
def as_a_list():
    return ["b", "c", "a", "d", "d", "c"]


@wrong(
    "quiz",
    breaks=[hidden_tests.why_it_helps, hidden_tests.who_raises_alone],
    tells="Each answer is one letter, a, b, c or d, and not several of them, "
    "nor a letter in parentheses.",
)
def with_all_letters():
    return dict.fromkeys(
        ("motive", "shift", "momentum", "tracking", "two_variances", "alone"),
        "abcd",
    )
