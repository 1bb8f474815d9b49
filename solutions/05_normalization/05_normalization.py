# %% [markdown]
r"""
# 05 · Normalization

x
"""

# %% setup="imports"
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import expect, visible_check

# %% [markdown]
r"""
## 6 · Exercises

Write your answer where it says `YOUR CODE HERE`, then run the cell below it: it says *not
attempted*, *try again* or *looks right*. These visible checks are few. After you submit,
others look at everything that the text asks for, so read it to the end.

Each exercise is graded by itself, with the imports of the set-up cell and nothing else:
an answer cannot use functions of another cell. Keep the names and the order of the
arguments. Where you know a layer or function of PyTorch that does it all, you may call it
for full marks; you learn more by hand.
"""

# %% [markdown] task="batch_norm" title="Batch norm, forward" minutes=15 builds_on="sections 1 to 3, broadcasting (chapter 02)"
r"""
Write `batch_norm(x, weight, bias, eps)`: what `nn.BatchNorm1d` and `nn.BatchNorm2d` return in
training, as a function.

- `x` is floating point of shape (N, C), (N, C, L) or (N, C, H, W), not always contiguous.
  `weight` and `bias` have shape (C,) and the dtype of `x`. The result has the shape and the
  dtype of `x`.
- Channel by channel, subtract the mean and divide by $\sqrt{\text{var} + \varepsilon}$, where
  var is the *biased* variance (divided by the number of values). Then multiply by the
  channel's weight and add its bias.
- It must hold in float32 for a mean of 1000 and a standard deviation of 1, to 0.001.
- The gradients reach `x`, also through mean and variance, and `weight` and `bias`.
- If a channel has only one value in the whole batch, raise a `ValueError`, as PyTorch does.
  One *sample* alone is no reason to raise.
- `x`, `weight` and `bias` stay as they were.

<details><summary>Hint 1: which dimensions</summary>

All but dimension 1: `[0, *range(2, x.dim())]` for any number of dimensions.
`keepdim=True` leaves mean and variance in a shape that broadcasts against `x`.
</details>
<details><summary>Hint 2: weight and bias</summary>

A weight of shape (C,) broadcasts against the *last* dimension. Give it as many dimensions
as `x` has: C at place 1, and 1 everywhere else.
</details>
<details><summary>Hint 3: the variance</summary>

`x.var(...)` divides by n − 1 unless you say `correction=0`. The mean of the squares less the
square of the mean is the same number on paper. In float32 it subtracts two large numbers.
</details>
<details><summary>Help: my gradient with respect to x is too large</summary>

Mean and variance depend on `x`. Taken under `no_grad`, or detached, they count as constants
and part of the gradient is missing.
</details>
"""


# %% exercise="batch_norm"
def batch_norm(
    x: Tensor,  # (N, C), (N, C, L) or (N, C, H, W)
    weight: Tensor,  # (C,)
    bias: Tensor,  # (C,)
    eps: float = 1e-5,
) -> Tensor:  # the shape of x
    """Each channel normalized by its mean and variance in this batch.

    Raises:
        ValueError: a channel has only one value.
    """
    ### BEGIN SOLUTION
    if x.numel() == x.shape[1]:
        raise ValueError("a single value per channel has no variance")
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    shape = [1, -1] + [1] * (x.dim() - 2)
    normalized = (x - mean) * torch.rsqrt(var + eps)
    return normalized * weight.view(shape) + bias.view(shape)
    ### END SOLUTION


# %% check="batch_norm"
with visible_check("batch_norm"):
    x = torch.tensor([[0.0, 5.0], [2.0, 5.0], [4.0, 8.0]])
    got = batch_norm(x, torch.tensor([1.0, 2.0]), torch.tensor([0.0, 3.0]))
    expect("the shape", tuple(got.shape), (3, 2))
    expect("channel 0", got[:, 0], torch.tensor([-1.2247, 0, 1.2247]), atol=1e-3)
    expect("the mean of channel 1", got[:, 1].mean().item(), 3.0, atol=1e-4)

# %% grade="batch_norm" points=5

# %% [markdown] task="running_stats" title="Running statistics as PyTorch keeps them" minutes=20 builds_on="section 3, exercise 1"
r"""
Write a module `RunningStats(num_features, momentum)` that lets its input through unchanged
and keeps the running statistics that `nn.BatchNorm2d` would keep.

- Three **buffers**, and nothing else, in its `state_dict`: `running_mean` (zeros, shape (C,)),
  `running_var` (ones, shape (C,)) and `num_batches_tracked` (0, an int64 tensor without
  dimensions).
- Called in training mode with `x` of shape (N, C), (N, C, L) or (N, C, H, W), it counts the
  batch and moves the buffers:
  `running = (1 - momentum) * running + momentum * batch`. For the variance that is the
  *unbiased* one of the batch (divided by n − 1).
- `momentum=None` means the plain average over all batches so far, each counting the same.
  `momentum=0.0` leaves mean and variance as they are, and still counts.
- In eval mode nothing changes. The grad mode has no say: in training mode the buffers
  move under `torch.no_grad()` too.
- The buffers never carry a graph, also when `x` requires a gradient. The result is `x`
  itself, or equal to it, and gradients pass through it.
- A state loaded with `load_state_dict` is carried on from. NaNs are not filtered out.

Every channel has at least two values per batch.

<details><summary>Hint 1: making buffers</summary>

`self.register_buffer("running_mean", torch.zeros(num_features))`. A plain attribute would be
neither saved nor moved to the GPU, a parameter would be trained.
</details>
<details><summary>Hint 2: the plain average</summary>

After k batches with average a, the average of k + 1 batches is a + (b − a) / (k + 1). That is
the same update with another momentum.
</details>
<details><summary>Hint 3: no graph</summary>

`with torch.no_grad():` around the update, or `x.detach()`. Detach what you measure, not
what you return.
</details>
<details><summary>Help: momentum 0.0 behaves like None</summary>

`if self.momentum:` and `self.momentum or ...` take 0.0 for nothing. Ask
`if self.momentum is None`.
</details>
"""


# %% exercise="running_stats"
class RunningStats(nn.Module):
    """Lets x through and keeps its mean and variance per channel."""

    def __init__(self, num_features: int, momentum: float | None = 0.1):
        super().__init__()
        ### BEGIN SOLUTION
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        if self.training:
            values = x.detach().transpose(0, 1).flatten(1)
            self.num_batches_tracked += 1
            share = self.momentum
            if share is None:
                share = 1 / self.num_batches_tracked.item()
            self.running_mean.lerp_(values.mean(1), share)
            self.running_var.lerp_(values.var(1), share)
        return x
        ### END SOLUTION


# %% check="running_stats"
with visible_check("running_stats"):
    stats = RunningStats(1, momentum=0.5)
    stats(torch.tensor([[1.0], [2.0], [6.0]]))
    expect("the running mean", stats.running_mean, torch.tensor([1.5]))
    expect("the running variance", stats.running_var, torch.tensor([4.0]))
    expect("the count", stats.num_batches_tracked, torch.tensor(1))

# %% grade="running_stats" points=6

# %% [markdown] task="train_and_eval" title="Train against eval" minutes=20 builds_on="sections 3 and 5, exercises 1 and 2"
r"""
Put both together: a module `BatchNorm(num_features, eps, momentum, track_running_stats)` for
inputs of shape (N, C, H, W), with the state and the behaviour of `nn.BatchNorm2d`.

- Parameters `weight` (ones) and `bias` (zeros), buffers `running_mean`, `running_var` and
  `num_batches_tracked` as in exercise 2. With `track_running_stats=False` the three are
  None and `state_dict` holds `weight` and `bias` alone.
- In training mode each channel is normalized by the mean and the biased variance of *this batch*,
  whatever stands in the buffers. The buffers are updated as in exercise 2 (`momentum` is a
  number here, not None), also under `torch.no_grad()`.
- In eval mode it is normalized by the running mean and variance, so that no row depends on
  the other rows, and no buffer changes.
- Without buffers both modes use the batch.
- Gradients reach `x`, `weight` and `bias` in both modes, several times in a row.

The mode is `self.training`, which `train()` and `eval()` set. In training, a channel has
at least two values per batch.

<details><summary>Hint 1: two questions</summary>

*Which statistics normalize?* and *are the buffers updated?* Answer each by itself. For the first:
the batch's, if `self.training` or if there are no buffers.
</details>
<details><summary>Hint 2: no buffers</summary>

`self.register_buffer("running_mean", None)` makes an attribute that is None and does not show up
in `state_dict`.
</details>
<details><summary>Hint 3: two variances</summary>

The batch is normalized with the variance divided by n, and stored with the one divided by n − 1:
`correction=0` and `correction=1`.
</details>
<details><summary>Help: "trying to backward through the graph a second time"</summary>

The buffers hold on to the graph of the last batch. Update them under `torch.no_grad()`.
</details>
"""


# %% exercise="train_and_eval"
class BatchNorm(nn.Module):
    """Batch norm of images (N, C, H, W), with the state of nn.BatchNorm2d."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        track_running_stats: bool = True,
    ):
        super().__init__()
        ### BEGIN SOLUTION
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        tracked = {
            "running_mean": torch.zeros(num_features),
            "running_var": torch.ones(num_features),
            "num_batches_tracked": torch.tensor(0),
        }
        for name, value in tracked.items():
            self.register_buffer(name, value if track_running_stats else None)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        has_buffers = self.running_mean is not None
        if self.training or not has_buffers:
            var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        else:
            mean, var = self.running_mean, self.running_var
        if self.training and has_buffers:
            with torch.no_grad():
                self.num_batches_tracked += 1
                unbiased = x.var((0, 2, 3), correction=1)
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(unbiased, self.momentum)
        scale = self.weight * torch.rsqrt(var + self.eps)
        centred = x - mean[:, None, None]
        return centred * scale[:, None, None] + self.bias[:, None, None]
        ### END SOLUTION


# %% check="train_and_eval"
with visible_check("train_and_eval"):
    layer = BatchNorm(2)
    x = torch.arange(8.0).reshape(2, 2, 2, 1)
    expect("a mean in training", layer(x)[:, 0].mean().item(), 0.0, atol=1e-5)
    expect("the count", layer.num_batches_tracked.item(), 1)
    layer.eval()
    expect("one row in eval", layer(x[:1]), layer(x)[:1])

# %% grade="train_and_eval" points=6

# %% [markdown] task="one_reshape" title="Layer, instance and group norm from one reshape" minutes=25 builds_on="sections 2 to 4, exercise 1"
r"""
Write three modules. They normalize as `batch_norm` does, with the biased variance and $\varepsilon$
inside the root, and differ only in which elements are averaged together.

- `GroupNorm(num_groups, num_channels, eps, affine)` for `x` of shape (N, C), (N, C, L) or
  (N, C, H, W): for each sample, each group of C / G *neighbouring* channels has one mean and
  variance. The constructor raises a `ValueError` if G does not divide C.
- `InstanceNorm(num_features, eps, affine)` for `x` of shape (N, C, H, W): for each sample, each
  channel has its own.
- `LayerNorm(normalized_shape, eps)`: `normalized_shape` is a list of sizes, those of the *last*
  dimensions of `x`. All elements in these are averaged together. If the last dimensions of `x`
  have other sizes, the call raises a `ValueError` or a `RuntimeError`.

The first two have, with `affine=True`, parameters `weight` and `bias` of shape (C,), one per
channel. Without, `state_dict()` is empty. `GroupNorm` has them by default and
`InstanceNorm` has not. `LayerNorm` has them always, in the shape `normalized_shape`, one per
element. All begin with ones and zeros.

Nothing depends on the mode or on other samples. Inputs need not be contiguous, and the
result has the shape of `x`.

No case has a single value per channel or group, except that a last dimension of size 1 may be
layer-normalized: it gives the bias.

<details><summary>Hint 1: the one reshape</summary>

`x.reshape(N, G, -1)`, normalize the last dimension, reshape back to `x.shape`. `reshape` reads in
order, so a group gets neighbouring channels. G = C is instance norm.
</details>
<details><summary>Hint 2: layer norm by the same reshape</summary>

`x.flatten(-len(normalized_shape))` makes one dimension of the last ones. Compare
`x.shape[-len(normalized_shape):]` with `normalized_shape` first: the reshape would not mind.
</details>
<details><summary>Hint 3: weight and bias</summary>

After reshaping *back*. Per channel they need the shape (C, 1, 1) for images, for layer norm they
broadcast as they are.
</details>
<details><summary>Help: a parameter that may be missing</summary>

`self.register_parameter("weight", None)` makes an attribute that is None and does not show up in
`state_dict`.
</details>
"""


# %% exercise="one_reshape"
class GroupNorm(nn.Module):
    """Normalizes groups of neighbouring channels, sample by sample."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
    ):
        super().__init__()
        ### BEGIN SOLUTION
        if num_channels % num_groups:
            raise ValueError(f"{num_groups} groups of {num_channels} channels")
        self.num_groups, self.eps = num_groups, eps
        ones, zeros = torch.ones(num_channels), torch.zeros(num_channels)
        self.weight = nn.Parameter(ones) if affine else None
        self.bias = nn.Parameter(zeros) if affine else None
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        grouped = x.reshape(x.shape[0], self.num_groups, -1)
        var, mean = torch.var_mean(grouped, 2, correction=0, keepdim=True)
        grouped = (grouped - mean) * torch.rsqrt(var + self.eps)
        out = grouped.reshape(x.shape)
        if self.weight is None:
            return out
        shape = (-1, *[1] * (x.dim() - 2))
        return out * self.weight.view(shape) + self.bias.view(shape)
        ### END SOLUTION


class InstanceNorm(nn.Module):
    """Normalizes each channel of each sample."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, affine: bool = False
    ):
        super().__init__()
        ### BEGIN SOLUTION
        self.eps = eps
        made = torch.ones(num_features), torch.zeros(num_features)
        self.weight = nn.Parameter(made[0]) if affine else None
        self.bias = nn.Parameter(made[1]) if affine else None
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        flat = x.flatten(2)
        var, mean = torch.var_mean(flat, -1, correction=0, keepdim=True)
        flat = (flat - mean) * torch.rsqrt(var + self.eps)
        if self.weight is not None:
            flat = flat * self.weight[:, None] + self.bias[:, None]
        return flat.reshape(x.shape)
        ### END SOLUTION


class LayerNorm(nn.Module):
    """Normalizes over the last dimensions."""

    def __init__(self, normalized_shape: list[int], eps: float = 1e-5):
        super().__init__()
        ### BEGIN SOLUTION
        self.shape, self.eps = torch.Size(normalized_shape), eps
        self.weight = nn.Parameter(torch.ones(self.shape))
        self.bias = nn.Parameter(torch.zeros(self.shape))
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        ### BEGIN SOLUTION
        if x.shape[-len(self.shape) :] != self.shape:
            raise ValueError(f"{tuple(x.shape)} ends in another shape")
        rows = x.flatten(-len(self.shape))
        var, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
        rows = (rows - mean) * torch.rsqrt(var + self.eps)
        return rows.reshape(x.shape) * self.weight + self.bias
        ### END SOLUTION


# %% check="one_reshape"
with visible_check("one_reshape"):
    x = torch.tensor([[0.0, 2.0, 5.0, 9.0]]).reshape(1, 4, 1, 1)
    signs = GroupNorm(2, 4)(x).flatten()
    expect("two groups", signs, torch.tensor([-1.0, 1, -1, 1]), atol=1e-4)
    flat = LayerNorm([2])(torch.tensor([[1.0, 3.0], [5.0, 5.0]]))
    expect("layer norm", flat, torch.tensor([[-1.0, 1], [0, 0]]), atol=1e-4)
    expect("keys of InstanceNorm", list(InstanceNorm(3).state_dict()), [])

# %% grade="one_reshape" points=8

# %% [markdown] task="predict_one" title="A batch of one" minutes=15 builds_on="sections 1 and 5, exercise 3"
r"""
A trained model is to answer for one sample. Write `predict_one(model, x)`.

- `model` is any module that takes batches, with batch norm and dropout inside. It may be in training
  mode, in eval mode, or partly in each. `x` is one sample without batch dimension, of shape
  (features,) or (C, H, W).
- The result is the model's output for this sample, without batch dimension, as evaluation
  gives it: by running statistics, without dropout. It carries no graph. If the model has one
  output, the result has shape (1,).
- Afterwards `model` is as it was: every module in the mode it was in, each by itself (a frozen batch
  norm stays frozen), all parameters and buffers the same. That also holds if the
  model raises, and its exception reaches the caller.

<details><summary>Hint 1: the mode of every module</summary>

`model.eval()` goes through all submodules, and so does `model.train()`: it would also wake those that
were frozen. Note `module.training` for each of `model.modules()` first.
</details>
<details><summary>Hint 2: whatever happens</summary>

`try: ... finally: ...` runs the last part also when the first raises.
</details>
<details><summary>Hint 3: the batch dimension</summary>

`x.unsqueeze(0)` adds it. `squeeze()` without a number takes away every dimension of size 1:
`squeeze(0)` or `[0]`.
</details>
"""


# %% exercise="predict_one"
def predict_one(
    model: nn.Module,
    x: Tensor,  # (features,) or (C, H, W)
) -> Tensor:  # the output for x alone
    """The model's output for one sample in evaluation."""
    ### BEGIN SOLUTION
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            return model(x[None])[0]
    finally:
        for module, mode in modes.items():
            module.training = mode
    ### END SOLUTION


# %% check="predict_one"
with visible_check("predict_one"):
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    got = predict_one(model, torch.tensor([1.0, -2.0]))
    expect("the output", got, torch.tensor([1.0, -2.0]), atol=1e-4)
    expect("the mode afterwards", model.training, True)

# %% grade="predict_one" points=5

# %% [markdown] task="quiz" title="Fine distinctions" minutes=5 builds_on="sections 3 to 5"
r"""
Write `quiz()`, which returns a dict with one letter for each question, such as
`{"motive": "a", "shift": "a", ...}`. Capital letters are fine. Each question counts by itself.

**`motive`** Why does batch norm help?
(a) It has been proved that it removes internal covariate shift. (b) Its authors wanted to reduce
internal covariate shift; later experiments point to a smoother loss surface instead. (c) It repairs
abnormal training data. (d) It keeps the weights small.

**`shift`** What does the batch norm paper call internal covariate shift?
(a) The training data differ from the test data. (b) The labels of a batch drift over time. (c) The inputs
of a layer change their distribution because earlier layers learn. (d) Single samples are outliers.

**`momentum`** A BatchNorm layer with `momentum=0.9`
(a) takes nine tenths of each new running value from the new batch. (b) keeps nine tenths of the old
one, as SGD keeps its buffer. (c) speeds up the optimizer. (d) smooths the output in training.

**`tracking`** `nn.BatchNorm2d(8, track_running_stats=False)` in eval mode
(a) returns its input unchanged. (b) uses running statistics that stay at 0 and 1. (c) raises an error.
(d) normalizes by the batch it is given.

**`two_variances`** Training, 4 values per channel. Which variances does the layer take?
(a) ÷ 4 for the output and ÷ 4 for the buffer. (b) ÷ 3 for both. (c) ÷ 3 for the output, ÷ 4 for the
buffer. (d) ÷ 4 for the output, ÷ 3 for the buffer.

**`alone`** Which of these raises an error in training mode?
(a) `nn.LayerNorm(8)` on shape (1, 8). (b) `nn.BatchNorm2d(8)` on (1, 8, 4, 4). (c) `nn.BatchNorm1d(8)` on
(1, 8). (d) `nn.GroupNorm(2, 8)` on (1, 8, 1, 1).

<details><summary>Hint 1: momentum</summary>

Section 3 has a figure in which you can move it.
</details>
<details><summary>Hint 2: alone</summary>

Try them. Count how many values each mean is taken over.
</details>
"""


# %% exercise="quiz"
def quiz() -> dict[str, str]:
    """One letter for each of motive, shift, momentum, tracking,
    two_variances and alone."""
    ### BEGIN SOLUTION
    return {
        "motive": "b",
        "shift": "c",
        "momentum": "a",
        "tracking": "d",
        "two_variances": "d",
        "alone": "c",
    }
    ### END SOLUTION


# %% check="quiz"
with visible_check("quiz"):
    given = quiz()
    expect("the number of answers", len(given), 6)
    letters = [str(letter).strip().lower() for letter in given.values()]
    expect("letters from a to d", set(letters) <= set("abcd"), True)

# %% grade="quiz" points=3
