"""What chapter 05 states about normalization, run."""

import copy
import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

BY_CELL = {
    "batch_of_one": [
        "Batch norm and instance norm refuse that. Group norm refuses it for a single sample only",
        "The image passes: its channels have 16 values each.",
    ],
    "claim_001_03": ["The variance is a square already."],
    "claim_001_04_05": [
        "They also differ in the shape of their parameters, in what they keep, and in whether the mode matters.",
    ],
    "claim_001_06": [
        "For layer norm nothing changes: each step stands alone. Batch norm averages over the padding too.",
    ],
    "claim_001_07_10": [
        "they have the shape that is normalized.",
        "*Correct*, and not to groups.",
    ],
    "claim_001_08": [
        "Twice as much contrast and an offset of 3 change nothing, as long as the variance is large against ε.",
    ],
    "claim_001_09": ["The groups are blocks of *neighbouring* channels."],
    "claim_001_12": [
        "None means the plain average, and 0.0 keeps the buffers without freezing the layer: batches are still normalized by themselves, and counted. A NaN or an infinity in a batch reaches the buffers all the same, since 0 · NaN is NaN.",
    ],
    "claim_001_14": [
        "With False in the constructor there are no buffers, and eval has only the batch to go by. Set as an attribute *afterwards*, False changes nothing in eval: the buffers are there and are used.",
    ],
    "claim_001_15": [
        "Training does not notice. Eval uses it, row by row. And `no_grad` is not eval: in training mode it still moves the buffers.",
    ],
    "claim_001_16_17": [
        "It is the unbiased variance, while the batch was normalized with the biased one.",
    ],
    "claim_001_18": [
        "SGD's 0.9 keeps nine tenths of the old buffer and adds all of the new gradient. BatchNorm's 0.9 takes nine tenths of the *new* batch.",
    ],
    "claim_001_19_20": ["The constructor takes it; only the call raises."],
    "claim_001_21": [
        "with `affine=False` a wrong `num_features` only warns, a single place per channel raises, and with tracking `num_batches_tracked` stays at 0.",
    ],
    "claim_001_22": [
        "It raises for swapped arguments too, as soon as there are fewer groups than channels.",
    ],
    "rms_norm": [
        "`nn.RMSNorm` divides by the root of the mean square",
        "in float32 it is float32's machine epsilon, 1.2e-7.",
    ],
}

BY_SOURCE = {
    "https://arxiv.org/abs/1502.03167": [
        "Ioffe and Szegedy (2015) meant that the *inputs of a layer* change their distribution all through training, because the layers before it learn.",
    ],
    "https://arxiv.org/abs/1805.11604": [
        "They added noise *behind* the batch norm layers, so that the shift was there again and larger: training went as well as with plain batch norm. What they found instead is a smoother loss surface, with gradients that can be trusted over longer steps.",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html": [
        "On several GPUs `nn.SyncBatchNorm` averages over all of them (chapter 14).",
    ],
}

BATCH_NORMS = [
    (nn.BatchNorm1d, (5, 4)),
    (nn.BatchNorm1d, (5, 4, 3)),
    (nn.BatchNorm2d, (5, 4, 3, 2)),
    (nn.BatchNorm3d, (5, 4, 3, 2, 2)),
]


def off_channels(x):
    return [0, *range(2, x.dim())]


def normalized(x, dims, eps=1e-5):
    mean, var = x.mean(dims, keepdim=True), x.var(dims, False, keepdim=True)
    return (x - mean) / (var + eps).sqrt()


def test_two_values_fewer_is_nothing():
    """With one value the mean *is* the value, and nothing is left.

    for two it returns zeros, or rounding errors around zero, without a word.

    Batch norm with one value per channel raises. One image does not, and in training it is normalized by itself.
    """
    for eps in (1e-5, 1e-3):
        out = nn.GroupNorm(4, 4, eps=eps)(torch.randn(2, 4) * 100)
        assert out.abs().max() < 1e-2
    assert not nn.LayerNorm(1)(torch.randn(3, 1)).any()
    for layer, shape in BATCH_NORMS:
        one = (1, 4) + (1,) * (len(shape) - 2)
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            layer(4)(torch.randn(one))
        layer(4).eval()(torch.randn(one))
    image = torch.randn(1, 4, 3, 2)
    torch.testing.assert_close(
        nn.BatchNorm2d(4)(image), normalized(image, (2, 3))
    )


@pytest.mark.parametrize(("layer", "shape"), BATCH_NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_formula(dtype, layer, shape):
    r"""$$y = \gamma\, \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta , \qquad \sigma^2 = \frac{1}{n} \sum (x - \mu)^2 .$$

    $\sigma^2$ is the *biased* variance, divided by $n$.

    y = γ (x − mean) / √(var + ε) + β, with the biased variance.
    """
    x = 3 * torch.randn(shape, dtype=dtype) + 2
    for eps in (1e-5, 0.5):
        one = layer(4, eps=eps, dtype=dtype)
        nn.init.normal_(one.weight)
        nn.init.normal_(one.bias)
        view = (4,) + (1,) * (x.dim() - 2)
        wanted = normalized(x, off_channels(x), eps)
        wanted = one.weight.view(view) * wanted + one.bias.view(view)
        torch.testing.assert_close(one(x), wanted)


def test_which_elements_are_averaged():
    """| batch norm | channel | N, H, W | (C,) | yes |

    | layer norm | sample | the last ones, here C, H, W | their shape | no |

    | instance norm | sample and channel | H, W | none by default | no by default |

    | group norm | sample and group of channels | C / G, H, W | (C,) | no |

    One group: group norm is layer norm over C, H and W. As many groups as channels: it is instance norm.

    A batch of one: batch norm is instance norm.

    The layers differ in what is averaged together; only batch norm reaches across samples.
    """
    x = (2 * torch.randn(4, 6, 5, 3) + 1).double()
    layers = {
        "batch": (nn.BatchNorm2d(6), normalized(x, (0, 2, 3)), (6,), True),
        "layer": (
            nn.LayerNorm([6, 5, 3]),
            normalized(x, (1, 2, 3)),
            (6, 5, 3),
            False,
        ),
        "instance": (nn.InstanceNorm2d(6), normalized(x, (2, 3)), None, False),
        "group": (
            nn.GroupNorm(3, 6),
            normalized(x.unflatten(1, (3, 2)), (2, 3, 4)).flatten(1, 2),
            (6,),
            False,
        ),
    }
    for name, (layer, wanted, weight, running) in layers.items():
        layer.double()
        torch.testing.assert_close(layer(x), wanted)
        found = getattr(layer, "weight", None)
        assert (None if found is None else found.shape) == weight
        assert bool(list(layer.buffers())) == running
        others = torch.cat([x[:1], 9 * x[1:]])
        alone = torch.equal(layer(x)[:1], layer(others)[:1])
        assert alone == (name != "batch")
    one_group, each = nn.GroupNorm(1, 6).double(), nn.GroupNorm(6, 6).double()
    torch.testing.assert_close(one_group(x), layers["layer"][1])
    torch.testing.assert_close(each(x), layers["instance"][1])
    alone = nn.BatchNorm2d(6).double()(x[:1])
    torch.testing.assert_close(alone, nn.InstanceNorm2d(6).double()(x[:1]))


def test_instance_norm_with_two_modes():
    """(Instance norm can be told to keep running statistics too, with `track_running_stats=True`. It has two modes then.)"""
    x = torch.randn(3, 4, 5, 5) + 2
    for tracks in (False, True):
        layer = nn.InstanceNorm2d(4, track_running_stats=tracks)
        assert torch.equal(layer.train()(x), layer.eval()(x)) == (not tracks)


@pytest.mark.parametrize(("layer", "shape"), BATCH_NORMS)
@pytest.mark.parametrize("momentum", [0.1, 0.9, None])
def test_running_statistics(momentum, layer, shape):
    r"""$$\text{running} \leftarrow (1 - m)\, \text{running} + m\, \text{batch} .$$

    `momentum` $m$ is the share of the **new** batch. The mean is the batch's mean; the variance stored is the **unbiased** one, divided by $n - 1$, though the batch itself was normalized with the one divided by $n$. And `momentum=None` stands for the plain average: $m = 1/k$ at the $k$-th batch, which `num_batches_tracked` counts.

    running = (1 − m) · running + m · batch.

    Training normalizes by the batch and moves the buffers. Eval normalizes by the buffers and moves nothing. `no_grad` is neither.
    """
    one = layer(4, momentum=momentum, dtype=torch.float64)
    mean, var = torch.zeros(4).double(), torch.ones(4).double()
    for k in range(1, 4):
        x = k * torch.randn(shape).double() + k
        m = 1 / k if momentum is None else momentum
        dims = off_channels(x)
        mean = (1 - m) * mean + m * x.mean(dims)
        var = (1 - m) * var + m * x.var(dims, correction=1)
        with torch.set_grad_enabled(k != 2):
            out = one(x)
        torch.testing.assert_close(out, normalized(x, dims))
        torch.testing.assert_close(one.running_mean, mean)
        torch.testing.assert_close(one.running_var, var)
        assert one.num_batches_tracked == k
    one.eval()
    view = (4,) + (1,) * (x.dim() - 2)
    wanted = (x - mean.view(view)) / (var.view(view) + 1e-5).sqrt()
    torch.testing.assert_close(one(x), wanted)
    assert one.num_batches_tracked == 3
    assert torch.equal(one.running_mean, mean) or momentum is not None
    torch.testing.assert_close(one.running_mean, mean)


def test_none_never_forgets():
    """Small momentum is slow, large momentum is noisy, and None never forgets"""
    found = {}
    for momentum in (0.01, 0.1, 0.9, None):
        torch.manual_seed(0)
        layer, late = nn.BatchNorm1d(1, momentum=momentum), []
        for step in range(120):
            layer(torch.randn(8, 1) + (2.0 if step < 60 else 4.0))
            if step >= 90:
                late.append(layer.running_mean.item())
        late = torch.tensor(late)
        found[momentum] = late[-1].item(), late.diff().abs().mean().item()
    assert found[0.01][0] < 3.5
    assert abs(found[0.1][0] - 4) < 0.4
    assert found[0.9][1] > 5 * found[0.1][1]
    assert abs(found[None][0] - 3) < 0.2  # the mean of all


@pytest.mark.parametrize("bias", [True, False])
def test_folding(bias):
    """In eval batch norm measures nothing: it is a fixed scale and shift and can be folded into the convolution before it, as `torch.nn.utils.fusion.fuse_conv_bn_eval` does. Layer norm and group norm cannot, nor can an instance norm without running statistics, which is the usual one."""
    conv, norm = nn.Conv2d(3, 4, 3, bias=bias), nn.BatchNorm2d(4)
    for _ in range(3):
        norm(conv(torch.randn(5, 3, 6, 6) + 1))
    x = torch.randn(2, 3, 6, 6)
    both = nn.Sequential(conv, norm).eval()
    fused = fuse_conv_bn_eval(conv.eval(), norm.eval())
    assert type(fused) is nn.Conv2d
    torch.testing.assert_close(fused(x), both(x), rtol=1e-4, atol=1e-5)
    y = torch.randn(2, 4, 5, 5)

    def is_fixed_scale_and_shift(layer):
        middle = layer((y + 3 * y.flip(0)) / 2)
        ends = (layer(y) + layer(3 * y.flip(0))) / 2
        return torch.allclose(middle, ends, atol=1e-5)

    assert is_fixed_scale_and_shift(norm)
    for other in (
        nn.LayerNorm([4, 5, 5]),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm2d(4),
    ):
        assert not is_fixed_scale_and_shift(other.eval())


def test_in_training_each_batch_is_its_own_measure():
    """In training mode each batch is normalized by its own mean. If all of it is sevens, what sevens have in common is subtracted.

    Besides, every test batch moved the running statistics.
    """
    layer = nn.BatchNorm1d(3)
    common = torch.tensor([5.0, -2.0, 9.0])
    x = torch.randn(8, 3)
    torch.testing.assert_close(
        layer(x + common), layer(x), rtol=1e-4, atol=1e-4
    )
    assert layer.num_batches_tracked == 2
    assert layer.running_mean.any()


@pytest.mark.parametrize("spread", [1.0, 5.0])
def test_how_a_mean_strays(spread):
    r"""The mean of n independent numbers strays by $1/\sqrt{n}$ of their standard deviation."""
    for draw in (torch.randn, torch.rand):
        for n in (2, 8, 64):
            numbers = spread * draw(4000, n)
            stray = numbers.mean(1).std() / numbers.std()
            assert abs(stray * n**0.5 - 1) < 0.1


def test_newer_arguments():
    """Newer versions add `bias=`."""
    for layer in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
        if "bias" not in inspect.signature(layer).parameters:
            pytest.skip("this torch is older")
        assert next(iter(layer(3, bias=False).state_dict())) == "weight"
        assert "bias" not in layer(3, bias=False).state_dict()


@pytest.mark.parametrize(("layer", "shape"), BATCH_NORMS)
def test_track_running_stats_set_later(layer, shape):
    """In training it stops their updates and the count, while each batch is still normalized by itself.

    It says whether running buffers exist. The mode is `layer.training`.

    `track_running_stats` decides whether there are buffers; set to False later, it stops their updates. `layer.training` is the mode.
    """
    one, x = layer(4), torch.randn(shape) + 2
    one.track_running_stats = False
    torch.testing.assert_close(
        one(x), normalized(x, off_channels(x)), rtol=1e-4, atol=1e-5
    )
    assert one.num_batches_tracked == 0
    assert not one.running_mean.any()
    assert one.training
    assert list(layer(4, track_running_stats=False).buffers()) == []
    assert len(list(layer(4).buffers())) == 3


def test_layer_norm_of_a_square():
    """Where two dimensions have the same size, nothing can warn you, and the last is used."""
    x = torch.randn(2, 4, 4)
    out = nn.LayerNorm(4)(x)
    torch.testing.assert_close(out, normalized(x, -1))
    assert not torch.allclose(out, normalized(x, 1))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.InstanceNorm1d, (2, 6, 3)),
        (nn.InstanceNorm2d, (2, 6, 3, 3)),
        (nn.InstanceNorm3d, (2, 6, 3, 3, 3)),
    ],
)
def test_instance_norm_with_a_wrong_number(layer, shape):
    """Not said: with `affine=False` a wrong `num_features` only warns"""
    with pytest.warns(UserWarning, match="does not match"):
        layer(4)(torch.randn(shape))
    with pytest.raises(ValueError, match="size"):
        layer(4, affine=True)(torch.randn(shape))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_epsilon_of_rms_norm(dtype):
    """and has no bias. Its default ε is not 1e-5

    In bfloat16 and float16 it is the same 1.2e-7 here, though the documentation promises the epsilon of the dtype, which would be 0.0078 and 0.00098.
    """
    assert list(nn.RMSNorm(4).state_dict()) == ["weight"]
    eps = torch.finfo(torch.float32).eps
    small = torch.full((1, 4), 1e-3)
    wanted = small / (small.square().mean() + eps).sqrt()
    for given in (torch.float32, dtype):
        got = nn.RMSNorm(4, dtype=given)(small.to(given))
        torch.testing.assert_close(got.float(), wanted, rtol=0.01, atol=0)
    assert round(torch.finfo(torch.bfloat16).eps, 4) == 0.0078
    assert round(torch.finfo(torch.float16).eps, 5) == 0.00098


def test_hints_of_the_exercises():
    """`x.var(...)` divides by n − 1 unless you say `correction=0`. The mean of the squares less the square of the mean is the same number on paper. In float32 it subtracts two large numbers.

    A weight of shape (C,) broadcasts against the *last* dimension.

    A plain attribute would be neither saved nor moved to the GPU, a parameter would be trained.

    After k batches with average a, the average of k + 1 batches is a + (b − a) / (k + 1).

    `self.register_buffer("running_mean", None)` makes an attribute that is None and does not show up in `state_dict`.

    `self.register_parameter("weight", None)` makes an attribute that is None and does not show up in `state_dict`.

    `reshape` reads in order, so a group gets neighbouring channels. G = C is instance norm.

    `model.eval()` goes through all submodules, and so does `model.train()`: it would also wake those that were frozen.
    """
    x = torch.tensor([1.0, 2.0, 4.0, 9.0])
    assert x.var() == ((x - 4) ** 2).sum() / 3
    assert x.var(correction=0) == ((x - 4) ** 2).sum() / 4
    far = 1000 + torch.randn(100_000)
    on_paper = (far * far).mean() - far.mean() ** 2
    exact = far.double().var(correction=0)
    assert abs(on_paper - exact) > 0.01
    assert abs(far.var(correction=0) - exact) < 1e-3
    with pytest.raises(RuntimeError, match="must match"):
        torch.ones(2, 3, 4, 5) * torch.ones(3)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = torch.zeros(1)
            self.register_buffer("buffer", torch.zeros(1))
            self.register_buffer("empty", None)
            self.register_parameter("none", None)
            self.trained = nn.Parameter(torch.zeros(1))

    layer = Layer()
    assert set(layer.state_dict()) == {"buffer", "trained"}
    assert layer.empty is layer.none is None
    assert [name for name, _ in layer.named_parameters()] == ["trained"]
    layer.to("meta")
    assert layer.buffer.is_meta
    assert not layer.plain.is_meta
    batches = torch.randn(5)
    a = batches[0]
    for k in range(1, 5):
        a = a + (batches[k] - a) / (k + 1)
        torch.testing.assert_close(a, batches[: k + 1].mean())
    y = torch.randn(2, 6, 3, 3)
    for groups in (3, 6):
        own = normalized(y.reshape(2, groups, -1), -1).reshape(y.shape)
        torch.testing.assert_close(own, F.group_norm(y, groups))
    torch.testing.assert_close(own, F.instance_norm(y))
    net = nn.Sequential(nn.Sequential(nn.BatchNorm1d(2)), nn.Dropout())
    net[0].eval()
    net.train()
    assert net[0][0].training
    net.eval()
    assert not any(one.training for one in net.modules())


def test_buffers_that_hold_a_graph():
    """The buffers hold on to the graph of the last batch. Update them under `torch.no_grad()`."""
    running, weight = torch.zeros(()), nn.Parameter(torch.ones(()))
    for turn in range(2):
        out = weight * torch.randn(4)
        running = 0.9 * running + 0.1 * out.mean()
        loss = ((out - running) ** 2).sum()
        if turn == 1:
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
        else:
            loss.backward()
    assert running.requires_grad


def test_momentum_and_zero():
    """`if self.momentum:` and `self.momentum or ...` take 0.0 for nothing."""
    momentum = 0.0
    assert not momentum
    assert (momentum or "other") == "other"
    layer = nn.BatchNorm1d(2, momentum=0.0)
    layer(torch.randn(4, 2))
    plain = copy.deepcopy(layer)
    plain.momentum = None
    plain(torch.randn(4, 2))
    assert not layer.running_mean.any()
    assert plain.running_mean.any()
