"""Answers to `partly_frozen` of chapter 07."""

from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
class ByNamesOfModules(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        for prefix in prefixes:
            for p in model.get_submodule(prefix).parameters():
                p.requires_grad = False
        self.model, self.prefixes = model, tuple(prefixes)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for prefix in self.prefixes:
            self.model.get_submodule(prefix).train(False)
        return self


@accepted()
class ByPatchedTrain(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix)
            part.requires_grad_(False)
            part.eval()
            part.train = lambda mode=True, part=part: part

    def forward(self, x):
        return self.model(x)


@accepted()
class ByHooks(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix).requires_grad_(False)
            part.register_forward_pre_hook(
                lambda part, given: part.eval() and None
            )

    def forward(self, x):
        return self.model(x)


@accepted()
class ByPatchedForward(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            for layer in model.get_submodule(prefix).modules():
                layer.requires_grad_(False)
                layer.forward = self.in_eval_mode(layer)

    @staticmethod
    def in_eval_mode(layer):
        usual = layer.forward

        def forward(x):
            layer.training = False
            return usual(x)

        return forward

    def forward(self, x):
        return self.model(x)


@accepted()
class ByFrozenClasses(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix)
            part.requires_grad_(False)
            for layer in part.modules():
                usual = type(layer)
                stays = {
                    "train": lambda self, mode=True, t=usual: t.train(
                        self, False
                    )
                }
                layer.__class__ = type(
                    "Frozen" + usual.__name__, (usual,), stays
                )
            part.eval()

    def forward(self, *inputs):
        return self.model(*inputs)


@accepted()
class ByEvalInForward(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = {name: model.get_submodule(name) for name in prefixes}
        for part in self.parts.values():
            part.requires_grad_(False)

    def forward(self, x):
        for part in self.parts.values():
            part.eval()
        return self.model(x)


@accepted()
class ByEvalForTheTimeOfForward(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self._parts = tuple(map(model.get_submodule, prefixes))
        for part in self._parts:
            part.requires_grad_(False)

    def forward(self, *inputs, **options):
        layers = [one for part in self._parts for one in part.modules()]
        for layer in layers:
            layer.training = False
        out = self.model(*inputs, **options)
        for layer in layers:
            layer.training = self.training
        return out


@accepted()
class mended_NotFromTheBeginning(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@accepted()
class mended_NamesakesToo(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
            part.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self


@wrong(
    breaks=hidden_tests.statistics_stay,
    tells="The frozen parts are in training mode in the forward pass. Freezing "
    "parameters is not enough, for running statistics are buffers; and an "
    "`eval()` of the parts before `super().train(mode)` is undone by it. Put them "
    "back afterwards.",
)
class FlagsOnly(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            model.get_submodule(prefix).requires_grad_(False)

    def forward(self, x):
        return self.model(x)


@wrong(
    breaks=hidden_tests.the_rest_is_trained,
    tells="Your whole model stays in eval mode. Only the frozen parts do; the rest goes "
    "into training mode with `net.train()`, its normalizations and its dropout too.",
)
class EverythingInEval(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            model.get_submodule(prefix).requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        return super().train(False)


@wrong(
    breaks=hidden_tests.dropout_of_the_part_is_off,
    tells="You put the kinds of layers into eval mode that you thought of. A part may "
    "hold others, layers of one's own too, that look at `training`: call `eval()` "
    "of the whole part.",
)
class LayersOfAList(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        self.kinds = (
            nn.BatchNorm1d,
            nn.BatchNorm2d,
            nn.InstanceNorm2d,
            nn.Dropout,
        )
        self.parts = [model.get_submodule(one) for one in prefixes]
        for part in self.parts:
            part.requires_grad_(False)
            for layer in part.modules():
                if isinstance(layer, self.kinds):
                    layer.eval()

    def forward(self, x):
        return self.model(x)

    def train(self, mode=True):
        super().train(mode)
        for part in self.parts:
            for layer in part.modules():
                if isinstance(layer, self.kinds):
                    layer.eval()
        return self
