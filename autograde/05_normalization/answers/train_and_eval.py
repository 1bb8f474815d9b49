"""Answers to `train_and_eval` of chapter 05."""

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def the_layer_of_the_library():
    BatchNorm = nn.BatchNorm2d


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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
