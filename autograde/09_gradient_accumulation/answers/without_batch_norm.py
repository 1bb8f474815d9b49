"""Answers to `without_batch_norm` of chapter 09."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def repair_by_names(model):
    model = copy.deepcopy(model)
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)

    def group_norm(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    if isinstance(model, kinds):
        return group_norm(model)
    for name, layer in list(model.named_modules()):
        if isinstance(layer, kinds):
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, group_norm(layer))
    return model


@accepted()
def repair_with_two_groups_if_they_fit(model):
    if isinstance(model, nn.modules.batchnorm._BatchNorm):
        groups = 2 if model.num_features % 2 == 0 else 1
        new = nn.GroupNorm(groups, model.num_features, model.eps, model.affine)
        if model.affine:
            new = new.to(model.weight)
            with torch.no_grad():
                new.weight.copy_(model.weight)
                new.bias.copy_(model.bias)
            new.weight.requires_grad = model.weight.requires_grad
            new.bias.requires_grad = model.bias.requires_grad
        return new
    model = copy.deepcopy(model)
    for name, child in model.named_children():
        model._modules[name] = repair_with_two_groups_if_they_fit(child)
    return model


@accepted(body=True)
def repair_with_a_layer_of_its_own():
    class SampleNorm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.eps = bn.eps
            self.weight = copy.deepcopy(bn.weight)
            self.bias = copy.deepcopy(bn.bias)

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            x = (x - mean) / (var + self.eps).sqrt()
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def without_batch_norm(model):
        kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
        if isinstance(model, kinds):
            return SampleNorm(model)
        model = copy.deepcopy(model)
        for name, child in list(model.named_children()):
            setattr(model, name, without_batch_norm(child))
        return model


@accepted(body=True)
def repair_with_layer_norm_for_rows():
    def new_layer(bn):
        if isinstance(bn, nn.BatchNorm1d):
            new = nn.LayerNorm(bn.num_features, bn.eps, bn.affine)
        else:
            new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.to(bn.weight.dtype).load_state_dict(
                {
                    k: v
                    for k, v in bn.state_dict().items()
                    if k in ("weight", "bias")
                }
            )
            new.weight.requires_grad_(bn.weight.requires_grad)
            new.bias.requires_grad_(bn.bias.requires_grad)
        return new

    def without_batch_norm(model):
        wrapped = nn.Sequential(copy.deepcopy(model))
        for parent in list(wrapped.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, nn.modules.batchnorm._BatchNorm):
                    setattr(parent, name, new_layer(child))
        return wrapped[0]


@accepted()
def repair_with_apply(model):
    new = nn.ModuleList([copy.deepcopy(model)])

    def visit(parent):
        for name, child in parent.named_children():
            if type(child).__name__ in (
                "BatchNorm1d",
                "BatchNorm2d",
                "BatchNorm3d",
            ):
                c = child.num_features
                layer = nn.GroupNorm(
                    num_groups=1,
                    num_channels=c,
                    eps=child.eps,
                    affine=child.affine,
                )
                if child.affine:
                    layer.weight = copy.deepcopy(child.weight)
                    layer.bias = copy.deepcopy(child.bias)
                setattr(parent, name, layer)

    new.apply(visit)
    return new[0]


@accepted()
def repair_with_groups_that_divide(model):
    new = copy.deepcopy(nn.Sequential(model))
    for name, layer in list(new.named_modules()):
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
            groups = (
                1 if layer.num_features < 5 else math.gcd(4, layer.num_features)
            )
            norm = nn.GroupNorm(
                groups, layer.num_features, layer.eps, layer.affine
            )
            norm.weight, norm.bias = layer.weight, layer.bias
            parent, _, child = name.rpartition(".")
            setattr(new.get_submodule(parent), child, norm)
    return new[0]


@accepted()
def repair_with_channels_at_each_position(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    class Norm(nn.Module):
        def __init__(self, bn):
            super().__init__()
            self.weight, self.bias, self.eps = bn.weight, bn.bias, bn.eps

        def forward(self, x):
            dims = tuple(range(1, x.dim()))
            x = F.layer_norm(x.movedim(1, -1), x.shape[1:2], eps=self.eps)
            x = x.movedim(-1, 1)
            if self.weight is None:
                return x
            shape = [1, -1] + [1] * (x.dim() - 2)
            return x * self.weight.view(shape) + self.bias.view(shape)

    def visit(layer):
        if isinstance(layer, kinds):
            return Norm(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    return visit(copy.deepcopy(model))


@accepted()
def mended_repair_renews_layer_norms(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replaced(layer):
        if isinstance(layer, kinds):
            new = nn.GroupNorm(
                1, layer.num_features, eps=layer.eps, affine=layer.affine
            )
            if layer.affine:
                new.to(layer.weight.dtype)
                with torch.no_grad():
                    new.weight.copy_(layer.weight)
                    new.bias.copy_(layer.bias)
                new.weight.requires_grad_(layer.weight.requires_grad)
                new.bias.requires_grad_(layer.bias.requires_grad)
            return new
        for name, child in layer.named_children():
            setattr(layer, name, replaced(child))
        return layer

    return replaced(copy.deepcopy(model))


@wrong(
    breaks=[hidden_tests.still_normalizes, hidden_tests.equality_holds],
    tells="You replaced batch norm by nothing. The gradients agree, and the "
    "normalization that made the model trainable is gone. Replace it by "
    "one that looks at each sample alone, such as `nn.GroupNorm(1, C)`.",
)
def repair_by_identity(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        return nn.Identity()

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.still_normalizes,
    tells="You took the batch norms out. The layers behind them have moved up "
    "and got other names, and nothing normalizes any more. Put a "
    "per-sample normalization in each one's place.",
)
def repair_by_deleting(model):
    model = copy.deepcopy(model)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.modules.batchnorm._BatchNorm):
                if isinstance(parent, nn.Sequential):
                    kept = [c for c in parent if c is not child]
                    parent._modules.clear()
                    for i, one in enumerate(kept):
                        parent.add_module(str(i), one)
                else:
                    setattr(parent, name, nn.Identity())
    return model


@wrong(
    breaks=[hidden_tests.still_normalizes, hidden_tests.equality_holds],
    tells="You put the batch norms into eval. The next `model.train()` undoes "
    "it, and until then the statistics of a new model, 0 and 1, "
    "normalize nothing. Replace the layers.",
)
def repair_by_eval(model):
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.eval()
    return model


@wrong(
    breaks=hidden_tests.still_normalizes,
    tells="You froze the running statistics for good. Those of a new model "
    "are 0 and 1: gradients agree because nothing is normalized. "
    "Compute mean and variance from each sample.",
)
def repair_by_frozen_statistics(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        class Frozen(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = bn.weight, bn.bias

            def forward(self, x):
                return F.batch_norm(
                    x, bn.running_mean, bn.running_var, self.weight, self.bias
                )

        return Frozen()

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.equality_holds,
    tells="You switched off the running statistics. In training batch norm "
    "never used them: it normalizes by the mean and variance of the "
    "micro-batch, as before. Replace the layer.",
)
def repair_without_tracking(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = copy.deepcopy(bn)
        new.track_running_stats = False
        new.running_mean = new.running_var = new.num_batches_tracked = None
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.equality_holds,
    tells="You set the momentum of the running statistics. In training batch "
    "norm does not use them: it normalizes by the mean and variance of "
    "the micro-batch, as before. Replace the layer.",
)
def repair_without_momentum(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        bn.momentum = 0.0
        return bn

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.equality_holds,
    tells="You return a copy with its batch norms in it. In training each "
    "normalizes by its micro-batch, and no weighting of the losses "
    "repairs that. Replace them.",
)
def repair_nothing(model):
    return copy.deepcopy(model)


@wrong(
    breaks=hidden_tests.still_normalizes,
    tells="You gave each channel a group of its own. After a linear layer "
    "such a group is one number, and one number minus its mean is 0: "
    "your layer wipes out its input. Use one group, or few.",
)
def repair_one_group_per_channel(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(bn.num_features, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.any_number_of_channels,
    tells="Your groups do not divide every number of channels: "
    "`nn.GroupNorm(4, 7)` raises. With one group it always fits.",
)
def repair_with_four_groups(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(4, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.still_normalizes,
    tells="`nn.GroupNorm(32, C)` wants a multiple of 32 channels and raises "
    "for any other. One group always fits.",
)
def repair_with_the_usual_32_groups(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(32, bn.num_features, affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.dtype_is_kept,
    tells="Your new layers are float32, whatever the model is. Give them the "
    "dtype of the weight that they replace, or copy the parameters "
    "themselves.",
)
def repair_in_float32(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            with torch.no_grad():
                new.weight.copy_(bn.weight)
                new.bias.copy_(bn.bias)
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.weight_and_bias,
    tells="Your new layers start with weight 1 and bias 0. The batch norms "
    "had values of their own, which a fresh layer forgets: copy them.",
)
def repair_with_fresh_weights(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        return new.to(bn.weight.dtype) if bn.affine else new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.weight_and_bias,
    tells="Your new layers have no weight and no bias. The batch norms had, "
    "and could learn a scale for each channel: keep them, unless the "
    "batch norm has `affine=False`.",
)
def repair_without_weights(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        return nn.GroupNorm(1, bn.num_features, affine=False)

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.weight_and_bias,
    tells="Your new layers have a weight and a bias also where the batch norm "
    "had none (`affine=False`). Pass `affine` on.",
)
def repair_always_affine(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.weight_and_bias,
    tells="A batch norm with `affine=False` has no weight to copy: its "
    "`weight` is `None`, and your code does not expect it.",
)
def repair_forgets_affine(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features).to(bn.weight.dtype)
        with torch.no_grad():
            new.weight.copy_(bn.weight)
            new.bias.copy_(bn.bias)
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.weight_and_bias,
    tells="The weights you copied cannot be trained: they are buffers, or do "
    "not require a gradient. Make them `nn.Parameter`s.",
)
def repair_freezes_weights(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight = nn.Parameter(
                bn.weight.detach().clone(), requires_grad=False
            )
            new.bias = nn.Parameter(
                bn.bias.detach().clone(), requires_grad=False
            )
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.original_left_alone,
    tells="You replaced the layers in the model you were given. Whoever still "
    "holds it has lost the batch norms. Work on `copy.deepcopy(model)`.",
)
def repair_in_place(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(model)


@wrong(
    breaks=hidden_tests.original_left_alone,
    tells="`copy.copy` copies the outermost module only; what is in it "
    "belongs to both models. Use `copy.deepcopy`.",
)
def repair_in_a_shallow_copy(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = copy.copy(model)
    new._modules = dict(model._modules)
    return visit(new)


@wrong(
    breaks=hidden_tests.equality_holds,
    tells="You do not reach every depth. Batch norms inside a "
    "block of its own class, or below it, stay as they are. Go through the children of children too.",
)
def repair_top_level_only(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = copy.deepcopy(model)
    if isinstance(new, kinds):
        return repaired(new)
    for name, child in new.named_children():
        if isinstance(child, kinds):
            setattr(new, name, repaired(child))
    return new


@wrong(
    breaks=hidden_tests.equality_holds,
    tells="You replace `BatchNorm2d` and leave the others. `BatchNorm1d` and "
    "`BatchNorm3d` mix samples in just the same way.",
)
def repair_images_only(model):
    kinds = nn.BatchNorm2d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.model_is_a_batch_norm,
    tells="If the model is itself a batch norm you return it as it was: it is "
    "no child of anything. Look at the model before its children.",
)
def repair_not_the_root(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = copy.deepcopy(model)
    for name, child in new.named_children():
        setattr(new, name, visit(child))
    return new


@wrong(
    breaks=hidden_tests.others_are_kept,
    tells="You replace other normalizations too. Instance norm looks at each "
    "sample alone already. Replace the batch norms and nothing else.",
)
def repair_replaces_every_norm(model):
    kinds = nn.modules.batchnorm._NormBase

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.others_are_kept,
    tells="You reset the parameters of the other layers. The copy is to "
    "differ from the model in its batch norms alone.",
)
def repair_resets_the_model(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.GroupNorm(1, bn.num_features, bn.eps, bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    new = visit(copy.deepcopy(model))
    for layer in new.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.Conv3d):
            layer.reset_parameters()
    return new


@wrong(
    breaks=hidden_tests.still_normalizes,
    tells="`nn.LayerNorm(C)` normalizes the *last* dimension. In images that "
    "is the width, not the channels. `nn.GroupNorm(1, C)` takes "
    "channels and positions of any input.",
)
def repair_last_dimension(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        new = nn.LayerNorm(bn.num_features, elementwise_affine=bn.affine)
        if bn.affine:
            new.weight, new.bias = bn.weight, bn.bias
        return new

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.equality_holds,
    tells="Your layer takes mean and variance over the batch as well. What a "
    "sample becomes then still depends on what is beside it. Leave "
    "dimension 0 out of the mean.",
)
def repair_per_micro_batch(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def visit(layer):
        if isinstance(layer, kinds):
            return repaired(layer)
        for name, child in layer.named_children():
            setattr(layer, name, visit(child))
        return layer

    def repaired(bn):
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.bias = bn.weight, bn.bias

            def forward(self, x):
                x = (x - x.mean()) / (x.var(correction=0) + bn.eps).sqrt()
                if self.weight is None:
                    return x
                shape = [1, -1] + [1] * (x.dim() - 2)
                return x * self.weight.view(shape) + self.bias.view(shape)

        return Norm()

    return visit(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.original_left_alone,
    tells="The copy's weights and biases are those of the given model, or look "
    "at their memory: training one trains the other. "
    "Clone the values, or use `copy_`.",
)
def repair_shares_memory(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def new_layer(bn):
        new = nn.GroupNorm(1, bn.num_features, eps=bn.eps, affine=bn.affine)
        if bn.affine:
            new.weight.data, new.bias.data = bn.weight.data, bn.bias.data
        return new

    twin = nn.ModuleList([copy.deepcopy(model)])
    for name, layer in nn.ModuleList([model]).named_modules():
        if isinstance(layer, kinds):
            path, _, last = name.rpartition(".")
            setattr(twin.get_submodule(path), last, new_layer(layer))
    return twin[0]


@wrong(
    breaks=[hidden_tests.equality_holds, hidden_tests.still_normalizes],
    tells="You made `SyncBatchNorm`s of the batch norms. They share statistics "
    "between processes at one moment, not between micro-batches one after "
    "another. Replace them by a normalization that looks at each sample alone.",
)
def repair_by_sync_batch_norm(model):
    return nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))


@accepted()
def children_in_turn(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d

    def replacement(old):
        new = nn.GroupNorm(1, old.num_features, old.eps, old.affine)
        if old.affine:
            new.weight, new.bias = old.weight, old.bias
        return new.train(old.training)

    def replace(module):
        for name, child in module.named_children():
            if isinstance(child, kinds):
                setattr(module, name, replacement(child))
            else:
                replace(child)
        return module

    if isinstance(model, kinds):
        return replacement(copy.deepcopy(model))
    return replace(copy.deepcopy(model))


@wrong(
    breaks=hidden_tests.original_left_alone,
    tells="`copy.copy(layer)` shares the dicts of the layer, those of its hooks among them: a hook "
    "on the copy runs on the original. Take `copy.deepcopy`.",
)
def shallow_copies(model):
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
    if isinstance(model, kinds):
        new = nn.GroupNorm(1, model.num_features, model.eps, model.affine)
        if model.affine:
            new.weight = copy.deepcopy(model.weight)
            new.bias = copy.deepcopy(model.bias)
        return new.train(model.training)
    new = copy.copy(model)
    new._parameters = copy.deepcopy(model._parameters)
    new._buffers = copy.deepcopy(model._buffers)
    new._modules = {n: shallow_copies(c) for n, c in model._modules.items()}
    return new
