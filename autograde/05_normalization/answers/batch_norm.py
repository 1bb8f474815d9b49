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
    tells="You do not use weight and bias. After normalizing, multiply by the "
    "channel's weight and add its bias.",
)
def without_weight_and_bias(x, weight, bias, eps=1e-5):
    zero = 0 * (weight.sum() + bias.sum())
    ones, zeros = torch.ones_like(weight), torch.zeros_like(bias)
    return F.batch_norm(x, None, None, ones, zeros, True, eps=eps) + zero


@wrong(
    breaks=hidden_tests.keeps_the_dtype,
    tells="Your result is float32, whatever came in. Compute in a wider dtype if you "
    "like, but return the dtype of `x`.",
)
def always_in_float32(x, weight, bias, eps=1e-5):
    wide = [one.float() for one in (x, weight, bias)]
    return F.batch_norm(wide[0], None, None, *wide[1:], True, eps=eps)
