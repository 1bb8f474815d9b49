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
        "What counts is not the number of samples but the number of values behind each mean.",
        "The image passes: its channels have 16 values each.",
    ],
    "claim_001_03": ["The variance is a square already."],
    "claim_001_04_05": [
        "They also differ in the shape of their parameters, in what they keep, and in whether the mode matters.",
        "*Correct*, over the places too, and in training.",
    ],
    "claim_001_06": [
        "For layer norm nothing changes: each step stands alone. Batch norm averages over the padding too.",
    ],
    "claim_001_07_10": [
        "they have the shape that is normalized.",
        "*Correct*, and not to groups.",
    ],
    "claim_001_08": [
        "*Correct.* It takes brightness and contrast out of every picture.",
        "For pictures that are almost flat it is not.",
        "Twice as much contrast and an offset of 3 change nothing, as long as the variance is large against ε.",
    ],
    "claim_001_09": ["The groups are blocks of *neighbouring* channels."],
    "claim_001_12": [
        "None means the plain average, and 0.0 keeps the buffers without freezing the layer: batches are still normalized by themselves, and counted. A NaN or an infinity in a batch, or a variance that overflows, reaches the buffers all the same, since 0 · NaN and 0 · ∞ are NaN.",
    ],
    "claim_001_14": [
        "With False in the constructor there are no buffers, and eval has only the batch to go by. Set as an attribute *afterwards*, False changes nothing in eval: the buffers are there and are used.",
    ],
    "claim_001_15": [
        "*Wrong*, it is the other way round.",
        "Training does not notice. Eval uses it, row by row. And `no_grad` is not eval: in training mode it still moves the buffers.",
    ],
    "claim_001_16_17": [
        "It is the unbiased variance, while the batch was normalized with the biased one.",
    ],
    "claim_001_19_20": ["The constructor takes it; only the call raises."],
    "claim_001_21": [
        "with them a wrong `num_features` only warns and a single place per channel raises; with tracking `num_batches_tracked` stays at 0",
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
        "Ioffe and Szegedy (2015) meant that the *inputs of a layer* change their distribution all through training, because the layers before it learn. Nothing is abnormal about the data. They hoped that batch norm would reduce that.",
    ],
    "https://arxiv.org/abs/1805.11604": [
        "They added noise *behind* the batch norm layers, so that the shift was there again and larger: training went as well as with plain batch norm. What they found instead is a smoother loss surface, with gradients that can be trusted over longer steps.",
    ],
    "https://arxiv.org/abs/1803.08494": [
        "The other three layers had motives of their own: recurrent networks and small batches (layer norm), the style of images (instance norm), small batches in detection (group norm).",
    ],
    "https://arxiv.org/abs/2302.13971": [
        "Large language models often leave the mean out.",
    ],
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html": [
        "Under DDP `nn.SyncBatchNorm` averages over all processes (chapter 14).",
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


@pytest.mark.filterwarnings("ignore:input's size at dim=0:UserWarning")
@pytest.mark.parametrize("samples", [3, 4])
def test_features_for_an_instance_norm(samples):
    """And `InstanceNorm1d` takes features of shape (N, C) for one sample with N channels."""
    features = torch.randn(samples, 4)
    layer = nn.InstanceNorm1d(4)
    torch.testing.assert_close(layer(features), normalized(features, (1,)))
    torch.testing.assert_close(layer(features), nn.LayerNorm(4)(features))
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        layer(features[:, :, None])


def test_two_values_fewer_is_nothing():
    """With one value the mean *is* the value, and nothing is left.

    for two it returns zeros, or what rounding leaves of them, without a word. (With inputs around a million that can be more than 1.)

    It is then normalized by itself alone, which is not what the network learned with.

    In training, batch norm with one value per channel raises. One image does not: it is normalized by itself.
    """
    for eps in (1e-5, 1e-3):
        out = nn.GroupNorm(4, 4, eps=eps)(torch.randn(2, 4) * 100)
        assert out.abs().max() < 1e-2
        large = [
            nn.GroupNorm(4, 4, eps=eps)(torch.randn(2, 4) * 1e6)
            for _ in range(9)
        ]
        assert max(one.abs().max() for one in large) > 1
    assert not nn.LayerNorm(1)(torch.randn(3, 1)).any()
    for layer, shape in BATCH_NORMS:
        one = (1, 4) + (1,) * (len(shape) - 2)
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            layer(4)(torch.randn(one))
        assert layer(4).eval()(torch.randn(one)).shape == one
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

    **Batch norm alone reaches across samples** of a batch.
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


@pytest.mark.parametrize("momentum", [0.1, None])
def test_instance_norm_without_a_momentum(momentum):
    """and with `momentum=None` the buffers never move, except to NaN."""
    options = {"momentum": momentum, "track_running_stats": True}
    for layer, shape in (
        (nn.InstanceNorm1d(4, **options), (3, 4, 5)),
        (nn.InstanceNorm2d(4, **options), (3, 4, 5, 5)),
        (nn.InstanceNorm3d(4, **options), (3, 4, 2, 2, 2)),
    ):
        for _ in range(2):
            layer(torch.randn(shape) + 2)
        assert layer.running_mean.any() == (momentum is not None)
        assert layer.running_var.ne(1).any() == (momentum is not None)
        for wrong in (float("nan"), float("inf"), 1e30):
            layer.reset_running_stats()
            layer(x := torch.ones(shape).index_fill(-1, torch.tensor(0), wrong))
            assert x.isfinite().all() == (wrong == 1e30)
            assert layer.running_var.isnan().all() or momentum is not None


@pytest.mark.parametrize("training", [True, False])
def test_tracking_of_an_instance_norm_switched_off_later(training):
    """(An instance norm then uses the sample in both modes, and its buffers move in both.)"""
    x = torch.randn(3, 4, 5, 5) + 2
    layer = nn.InstanceNorm2d(4, track_running_stats=True).train(training)
    layer.track_running_stats = False
    torch.testing.assert_close(layer(x), nn.InstanceNorm2d(4)(x))
    assert layer.running_mean.all()  # they began at 0


@pytest.mark.parametrize(("layer", "shape"), BATCH_NORMS)
@pytest.mark.parametrize("momentum", [0.1, 0.9, None])
def test_running_statistics(momentum, layer, shape):
    r"""$$\text{running} \leftarrow (1 - m)\, \text{running} + m\, \text{batch} .$$

    `momentum` $m$ is the share of the **new** batch. The mean is the batch's mean; the variance stored is the **unbiased** one, divided by $n - 1$, though the batch itself was normalized with the one divided by $n$. And `momentum=None` stands for the plain average: $m = 1/k$ at the $k$-th batch, which `num_batches_tracked` counts (also one that was refused for its single value).

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


def test_a_refused_batch_counts():
    """And `momentum=None` stands for the plain average"""
    one = nn.BatchNorm1d(2, momentum=None)
    with pytest.raises(ValueError, match="more than 1 value"):
        one(torch.ones(1, 2))
    with pytest.raises(ValueError, match="2D or 3D"):
        one(torch.ones(1, 2, 3, 4))  # which is not counted
    one(torch.tensor([[9.0], [11.0]]).expand(2, 2))
    assert one.num_batches_tracked == 2
    assert one.running_mean.tolist() == [5, 5]


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
    """In eval a batch norm with running statistics measures nothing: it is a fixed scale and shift and can be folded into the convolution before it, as `torch.nn.utils.fusion.fuse_conv_bn_eval` does (a `ConvTranspose2d` of one group needs `transpose=True`; with several, fuse by hand). Layer norm and group norm cannot, nor can an instance norm without running statistics, which is the usual one."""
    conv, norm = nn.Conv2d(3, 4, 3, bias=bias), nn.BatchNorm2d(4)
    for _ in range(3):
        norm(conv(torch.randn(5, 3, 6, 6) + 1))
    x = torch.randn(2, 3, 6, 6)
    both = nn.Sequential(conv, norm).eval()
    fused = fuse_conv_bn_eval(conv.eval(), norm.eval())
    assert type(fused) is nn.Conv2d
    torch.testing.assert_close(fused(x), both(x), rtol=1e-4, atol=1e-5)
    up = nn.ConvTranspose2d(4, 4, 3, bias=bias).eval()
    after = norm(up(x := torch.randn(2, 4, 5, 5)))
    right = fuse_conv_bn_eval(up, norm, transpose=True)(x)
    torch.testing.assert_close(right, after, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(fuse_conv_bn_eval(up, norm)(x), after, 0.01)
    groups = nn.ConvTranspose2d(4, 4, 3, groups=2).eval()
    wrong = fuse_conv_bn_eval(groups, norm)(x)
    assert not torch.allclose(wrong, norm(groups(x)), 0.01)
    with pytest.raises(RuntimeError):
        fuse_conv_bn_eval(groups, norm, transpose=True)
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
        nn.BatchNorm2d(4, track_running_stats=False),
    ):
        assert not is_fixed_scale_and_shift(other.eval())
    with pytest.raises(AssertionError, match="running_mean"):
        fuse_conv_bn_eval(conv, other)


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

    `track_running_stats` decides whether there are buffers; set to False later, it stops a batch norm's updates. `layer.training` is the mode.
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


@pytest.mark.parametrize(
    "how", ["as it is", "contiguous", "float64", "compiled"]
)
def test_group_norm_of_channels_last(how):
    """on a CPU, for float32 images in `channels_last` order (chapter 02; volumes too), PyTorch 2.13 computes `nn.GroupNorm` with too few digits: with a mean of 1000 and a spread of 1 its result may be off by more than 0.1.

    Call it with `x.contiguous()`, or in float64. A compiled layer keeps its digits.
    """
    x = 1000 + torch.randn(4, 64, 8, 8)
    exact = F.group_norm(x.double(), 8)
    x = x.contiguous(memory_format=torch.channels_last)
    layer = nn.GroupNorm(8, 64)
    if how == "contiguous":
        x = x.contiguous()
    if how == "float64":
        x, layer = x.double(), layer.double()
    if how == "compiled":
        layer = torch.compile(layer, backend="inductor")
    off = (layer(x) - exact).abs().max().item()
    assert (off > 0.1) == (how == "as it is")
    assert off < 1e-3 or how == "as it is"
    volumes = 1000 + torch.randn(4, 16, 4, 8, 8)
    exact = F.group_norm(volumes.double(), 8)
    volumes = volumes.contiguous(memory_format=torch.channels_last_3d)
    assert (F.group_norm(volumes, 8) - exact).abs().max() > 0.1


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
    """Not said: with them a wrong `num_features` only warns and a single place per channel raises"""
    with pytest.warns(UserWarning, match="does not match"):
        layer(4)(torch.randn(shape))
    with pytest.raises(ValueError, match="size"):
        layer(4, affine=True)(torch.randn(shape))
    with (
        pytest.warns(UserWarning, match="does not match"),
        pytest.raises(RuntimeError, match="running_mean"),
    ):
        layer(4, track_running_stats=True)(torch.randn(shape))
    one_place = torch.randn(2, 4, *[1] * (len(shape) - 2))
    for training in (True, False):
        with pytest.raises(ValueError, match="more than 1 spatial"):
            layer(4).train(training)(one_place)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_epsilon_of_rms_norm(dtype):
    """and has no bias. Its default ε is not 1e-5

    In bfloat16 and float16 it is the same 1.2e-7, since the layer computes in float32 there. (Older documentation promised the epsilon of the dtype, 0.0078 and 0.00098.)
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
    """`if self.momentum:` and `self.momentum or ...` take 0.0 for nothing. Ask `if self.momentum is None`."""
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


@pytest.mark.parametrize("sort", [True, False])
def test_sorted_and_shuffled(sort):
    """On shuffled data the damage is small, and that is worse: nobody notices.

    The test data have leaked into the model.
    """
    classes = torch.arange(4).repeat_interleave(16)
    x = 3.0 * F.one_hot(classes, 4) + 0.1 * torch.randn(64, 4)
    layer = nn.BatchNorm1d(4, momentum=None)
    layer(x)
    order = torch.arange(64) if sort else torch.randperm(64)
    right = layer.eval()(x[order]).argmax(1) == classes[order]
    assert right.all()
    before = layer.running_mean.clone()
    layer.train()
    with torch.no_grad():
        hits = [
            layer(x[rows]).argmax(1) == classes[rows]
            for rows in order.split(16)
        ]
    right = torch.cat(hits).float().mean()
    assert right < 0.5 if sort else right > 0.9
    assert layer.num_batches_tracked == 5
    assert not torch.equal(layer.running_mean, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_network_can_undo_it(dtype):
    r"""Subtract a mean, divide by a standard deviation, then let the network undo it if it wants:

    $\varepsilon$ keeps the root away from 0. $\gamma$ (`weight`) and $\beta$ (`bias`) are learned.
    """
    x = 3 * torch.randn(50, 4, dtype=dtype) + 2
    layer = nn.BatchNorm1d(4, dtype=dtype)
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]
    with torch.no_grad():
        layer.weight.copy_((x.var(0, correction=0) + layer.eps).sqrt())
        layer.bias.copy_(x.mean(0))
    torch.testing.assert_close(layer(x), x)
    flat = torch.full((5, 4), 7.0, dtype=dtype)
    assert (layer(flat) - layer.bias).abs().max() < 0.01
    assert F.layer_norm(flat, [4], eps=0.0).isnan().all()


@pytest.mark.parametrize("training", [True, False])
def test_one_value_in_both_modes(training):
    """With `track_running_stats=False` the three are None and `state_dict` holds `weight` and `bias` alone.

    Without buffers both modes use the batch.

    If a channel has only one value in the whole batch, raise a `ValueError`, as PyTorch does. One *sample* alone is no reason to raise.
    """
    layer = nn.BatchNorm2d(3, track_running_stats=False).train(training)
    assert list(layer.state_dict()) == ["weight", "bias"]
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert getattr(layer, name) is None
    x = torch.randn(4, 3, 2, 2) + 5
    torch.testing.assert_close(layer(x), normalized(x, (0, 2, 3)))
    layer(x[:1])
    with pytest.raises(ValueError, match="more than 1 value"):
        layer(x[:1, :, :1, :1])


@pytest.mark.parametrize("momentum", [None, 0.01])
def test_a_pass_that_renews_the_statistics(momentum):
    """right where the data stay the same, as in a pass that only renews the statistics (`reset_running_stats()` first, or the old count goes on), and wrong at the start of a training, when the network before the layer is still changing."""
    layer = nn.BatchNorm1d(1, momentum=momentum)
    for _ in range(100):
        layer(torch.randn(8, 1) + 2)
    assert (abs(layer.running_mean - 2) < 0.2) == (momentum is None)
    layer.reset_running_stats()
    for step in range(40):
        layer(torch.randn(8, 1) + (0 if step < 20 else 2))
    assert abs(layer.running_mean - 2) > 0.5
    if momentum is not None:
        return
    for reset in (False, True):
        layer = nn.BatchNorm1d(1)
        for _ in range(200):
            layer(torch.randn(8, 1))
        if reset:
            layer.reset_running_stats()
        layer.momentum = None
        batches = [torch.randn(8, 1) + 5 for _ in range(20)]
        for batch in batches:
            layer(batch)
        wanted = torch.stack(batches).mean().item()
        assert (abs(layer.running_mean.item() - wanted) < 1e-4) == reset
        assert (layer.running_mean.item() > 2) == reset


def test_as_many_numbers():
    """All four read the same maps and write as many numbers, a few operations each."""
    maps = torch.randn(3, 8, 4, 4)
    for layer in (
        nn.BatchNorm2d(8),
        nn.LayerNorm([8, 4, 4]),
        nn.InstanceNorm2d(8),
        nn.GroupNorm(4, 8),
    ):
        out = layer(maps)
        assert out.shape == maps.shape
        assert out.nbytes == maps.nbytes


@pytest.mark.parametrize("dampening", [0.0, 0.9])
def test_what_the_momentum_of_sgd_keeps(dampening):
    """Both carry the past along, but SGD's 0.9 keeps nine tenths of the old buffer and adds all of the new gradient. BatchNorm's 0.9 takes nine tenths of the *new* batch."""
    weight = nn.Parameter(torch.zeros(1))
    sgd = torch.optim.SGD([weight], lr=1.0, momentum=0.9, dampening=dampening)
    for _ in range(200):
        weight.grad = torch.ones(1)
        sgd.step()
    buffer = sgd.state[weight]["momentum_buffer"].item()
    # a sum by default; an average only if dampened
    assert buffer == pytest.approx(10 if dampening == 0 else 1, rel=1e-4)
    layer = nn.BatchNorm1d(1, momentum=0.9)
    layer(torch.tensor([[0.0], [20.0]]))
    assert layer.running_mean.item() == pytest.approx(9)


@pytest.mark.parametrize("correction", [0, 1])
def test_the_two_variances_of_the_quiz(correction):
    """(d) ÷ 4 for the output, ÷ 3 for the buffer.

    The batch is normalized with the variance divided by n, and stored with the one divided by n − 1: `correction=0` and `correction=1`.
    """
    x = torch.tensor([[1.0], [2.0], [4.0], [9.0]])
    layer = nn.BatchNorm1d(1, momentum=1.0)
    out = layer(x)
    var = x.var(0, correction=correction)
    by_hand = (x - x.mean(0)) / (var + 1e-5).sqrt()
    assert torch.allclose(out, by_hand) == (correction == 0)
    assert torch.allclose(layer.running_var, var) == (correction == 1)


@pytest.mark.parametrize("case", ["a", "b", "c", "d"])
def test_alone_in_the_quiz(case):
    """(a) `nn.LayerNorm(8)` on shape (1, 8). (b) `nn.BatchNorm2d(8)` on (1, 8, 4, 4). (c) `nn.BatchNorm1d(8)` on (1, 8). (d) `nn.GroupNorm(2, 8)` on (1, 8, 1, 1)."""
    layer, shape = {
        "a": (nn.LayerNorm(8), (1, 8)),
        "b": (nn.BatchNorm2d(8), (1, 8, 4, 4)),
        "c": (nn.BatchNorm1d(8), (1, 8)),
        "d": (nn.GroupNorm(2, 8), (1, 8, 1, 1)),
    }[case]
    if case == "c":
        with pytest.raises(ValueError, match="more than 1 value"):
            layer(torch.randn(shape))
    else:
        assert layer(torch.randn(shape)).shape == shape


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3), (5, 4, 3, 2)])
def test_which_dimensions(shape):
    """All but dimension 1: `[0, *range(2, x.dim())]` for any number of dimensions. `keepdim=True` leaves mean and variance in a shape that broadcasts against `x`.

    A weight of shape (C,) broadcasts against the *last* dimension. Give it as many dimensions as `x` has: C at place 1, and 1 everywhere else.
    """
    x, weight = torch.randn(shape) + 1, torch.arange(1.0, 5)
    dims = [0, *range(2, x.dim())]
    mean = x.mean(dims, keepdim=True)
    assert mean.shape == (1, 4) + (1,) * (x.dim() - 2)
    scaled = (x - mean) * weight.view(mean.shape)
    for c in range(4):
        own = x[:, c]
        wanted = (own - own.mean()) * weight[c]
        torch.testing.assert_close(scaled[:, c], wanted)


@pytest.mark.parametrize("how", ["as it is", "detached", "no_grad"])
def test_part_of_the_gradient(how):
    """Mean and variance depend on `x`. Taken under `no_grad`, or detached, they count as constants and part of the gradient is missing."""
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    with torch.set_grad_enabled(how != "no_grad"):
        var, mean = torch.var_mean(x, 0, correction=0)
    if how == "detached":
        var, mean = var.detach(), mean.detach()
    push = torch.randn(6, 2).double()
    out = (x - mean) / (var + 1e-5).sqrt()
    (mine,) = torch.autograd.grad((out * push).sum(), x)
    library = F.batch_norm(x, None, None, training=True)
    (right,) = torch.autograd.grad((library * push).sum(), x)
    assert torch.allclose(mine, right) == (how == "as it is")
    # the missing part would take away what all samples share
    assert mine.norm() >= right.norm() * (1 - 1e-9)


def test_detach_what_you_measure():
    """`with torch.no_grad():` around the update, or `x.detach()`. Detach what you measure, not what you return."""
    x = torch.randn(4, 2, requires_grad=True)
    for way in ("no_grad", "detach"):
        running = torch.zeros(2)
        if way == "no_grad":
            with torch.no_grad():
                running.lerp_(x.mean(0), 0.1)
        else:
            running.lerp_(x.detach().mean(0), 0.1)
        assert not running.requires_grad
        assert running.any()
    running = torch.zeros(2).lerp_(x.mean(0), 0.1)
    assert running.requires_grad
    assert not x.detach().requires_grad


@pytest.mark.parametrize("sizes", [[3], [2, 3], [5, 2, 3]])
def test_layer_norm_by_one_reshape(sizes):
    """`x.flatten(-len(normalized_shape))` makes one dimension of the last ones. Compare `x.shape[-len(normalized_shape):]` with `tuple(normalized_shape)` first, as a shape equals no list: the reshape would not mind.

    After reshaping *back*. Per channel they need the shape (C, 1, 1) for images, for layer norm they broadcast as they are.
    """
    x = torch.randn(4, 5, 2, 3)
    rows = x.flatten(-len(sizes))
    assert rows.shape == (*x.shape[: 4 - len(sizes)], torch.Size(sizes).numel())
    assert x.shape[-len(sizes) :] == tuple(sizes)
    assert x.shape[-len(sizes) :] != sizes
    other = x.permute(0, 3, 1, 2)  # ends in other sizes
    assert other.flatten(-len(sizes)).dim() == rows.dim()
    weight = torch.rand(sizes)
    torch.testing.assert_close(
        normalized(rows, -1).reshape(x.shape) * weight,
        F.layer_norm(x, sizes, weight),
    )
    per_channel = torch.rand(5)
    torch.testing.assert_close(
        F.group_norm(x, 1, per_channel),
        F.group_norm(x, 1) * per_channel.view(5, 1, 1),
    )


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_modes_that_come_back(error):
    """`try: ... finally: ...` runs the last part also when the first raises.

    Note `module.training` for each of `model.modules()` first.
    """
    net = nn.Sequential(nn.Sequential(nn.BatchNorm1d(2)), nn.Dropout())
    net[0].eval()
    modes = {module: module.training for module in net.modules()}
    assert list(modes.values()) == [True, False, False, True]

    def evaluate():
        net.eval()
        try:
            raise error
        finally:
            for module, mode in modes.items():
                module.training = mode

    with pytest.raises(error):
        evaluate()
    assert [m.training for m in net.modules()] == [True, False, False, True]


@pytest.mark.parametrize("shape", [(1,), (3, 1, 2)])
def test_only_the_batch_dimension(shape):
    """`x.unsqueeze(0)` adds it. `squeeze()` without a number takes away every dimension of size 1: `squeeze(0)` or `[0]`."""
    out = torch.randn(shape).unsqueeze(0)
    assert out.shape == (1, *shape)
    assert out.squeeze(0).shape == out[0].shape == shape
    assert out.squeeze().shape == tuple(n for n in shape if n != 1)


@pytest.mark.parametrize("finite", [True, False])
def test_zero_keeps_the_buffers_of_finite_batches(finite):
    """In batch norm `momentum=None` is the plain average (bfloat16 buffers round it), 0.0 keeps the buffers, where mean and variance of the batch are finite, and does not freeze the layer."""
    layer = nn.BatchNorm1d(2, momentum=0.0)
    x = torch.randn(6, 2) + 3
    if not finite:
        x[0] = torch.nan
    out = layer(x)
    assert layer.running_mean.eq(0).all() == finite
    assert layer.num_batches_tracked == 1
    assert (out.mean().abs() < 1e-5) == finite
    average = {}
    for dtype in (torch.float32, torch.bfloat16):
        mean = nn.BatchNorm1d(1, momentum=None).to(dtype)
        for _ in range(300):
            mean((torch.randn(512, 1) + 100).to(dtype))
        average[dtype] = mean.running_mean.item()
    assert abs(average[torch.float32] - 100) < 0.1
    assert abs(average[torch.bfloat16] - 100) > 1
    wide = nn.BatchNorm1d(1, momentum=0.0)
    wide(torch.tensor([[1e20], [-1e20]]))
    assert wide.running_var.isnan()


@pytest.mark.parametrize("groups", range(1, 9))
def test_groups_that_do_not_divide(groups):
    """*Correct*: the constructor raises."""
    if 6 % groups:
        with pytest.raises(ValueError, match="divisible"):
            nn.GroupNorm(groups, 6)
    else:
        assert nn.GroupNorm(groups, 6).bias.shape == (6,)
        if groups < 6:
            with pytest.raises(ValueError, match="divisible"):
                nn.GroupNorm(6, groups)
