"""The data and the small networks of the chapters."""

import pytest
import torch

from course_utils import digit_convnet, digit_mlp, digits, gaussian_clusters


def test_digits_are_images_in_their_shapes_and_ranges():
    split = digits()
    assert split.X_train.shape == (1437, 1, 8, 8)
    assert split.X_test.shape == (360, 1, 8, 8)
    assert split.X_train.dtype == torch.float32
    assert split.y_train.dtype == torch.int64
    assert (split.X_train.min(), split.X_train.max()) == (0, 1)
    # Every digit has about a tenth of the test set.
    counts = split.y_test.bincount(minlength=10)
    assert counts.min() >= 34
    assert counts.max() <= 38


def test_digits_of_a_seed_are_the_same_and_of_another_are_not():
    before = torch.get_rng_state()
    assert torch.equal(digits(seed=1).X_test, digits(seed=1).X_test)
    assert not torch.equal(digits(seed=1).X_test, digits(seed=2).X_test)
    assert torch.equal(torch.get_rng_state(), before)


def test_clusters_have_the_size_asked_for():
    before = torch.get_rng_state()
    X, y = gaussian_clusters(500, (3, 4, 4), 5, seed=1)
    assert X.shape == (500, 3, 4, 4)
    assert X.dtype == torch.float32
    assert set(y.tolist()) == set(range(5))
    again, _ = gaussian_clusters(500, (3, 4, 4), 5, seed=1)
    other, _ = gaussian_clusters(500, (3, 4, 4), 5, seed=2)
    assert torch.equal(X, again)
    assert not torch.equal(X, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("distance", [3.0, 12.0])
def test_cluster_centres_are_as_far_apart_as_asked(distance, seed):
    X, y = gaussian_clusters(20_000, (64,), 10, distance=distance, seed=seed)
    centres = torch.stack([X[y == label].mean(0) for label in range(10)])
    assert torch.pdist(centres).mean().item() == pytest.approx(
        distance, rel=0.1
    )


@pytest.mark.parametrize("make", [digit_mlp, digit_convnet])
@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        ("none", None),
        ("batch", ("BatchNorm1d", "BatchNorm2d")),
        ("layer", ("LayerNorm", "GroupNorm")),
        ("group", ("GroupNorm",)),
    ],
)
def test_models_learn_the_digits_with_every_norm(make, norm, kind):
    torch.manual_seed(0)
    model = make(norm=norm)
    found = {type(m).__name__ for m in model if "Norm" in type(m).__name__}
    assert found <= set(kind or ())
    assert bool(found) == (kind is not None)
    split = digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            model(split.X_train[::3]), split.y_train[::3]
        )
        loss.backward()
        optimizer.step()
    model.eval()
    hits = model(split.X_test).argmax(1) == split.y_test
    assert hits.float().mean() > 0.85


def test_layer_norm_of_images_does_not_look_at_other_images():
    torch.manual_seed(0)
    images = torch.rand(4, 1, 8, 8)
    for norm, alone in (("layer", True), ("group", True), ("batch", False)):
        model = digit_convnet(norm=norm)
        with torch.no_grad():
            same = torch.allclose(
                model(images)[:2], model(images[:2]), atol=1e-6
            )
        assert same == alone


def test_layers_have_names():
    names = [name for name, _ in digit_convnet(norm="batch").named_children()]
    assert names[:4] == ["conv1", "norm1", "relu1", "pool1"]
    assert names[-1] == "head"


@pytest.mark.parametrize("make", [digit_mlp, digit_convnet])
def test_what_a_model_cannot_be(make):
    with pytest.raises(ValueError, match="multiple of 4, not 6"):
        make(width=6, norm="group")
    with pytest.raises(ValueError, match="not 'instance'"):
        make(norm="instance")
