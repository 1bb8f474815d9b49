"""Answers to `partly_frozen` of chapter 07."""

from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

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
    breaks=hidden_tests.statistics_stay,
    tells="You put the part into eval mode once, and the next `net.train()` undid it: that "
    "sets every module. Override `train`, so that it puts the part back each time.",
)
class UndoneByTrain(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            model.get_submodule(prefix).requires_grad_(False).eval()

    def forward(self, x):
        return self.model(x)


EvalOnly = edit(
    mended_NotFromTheBeginning,
    {
        """
        for part in self.parts:
            part.requires_grad_(False)
        """: "",
    },
    breaks=hidden_tests.weights_stay,
    tells="Your part is in eval mode and still trained: eval says how a layer computes, not "
    "whether it learns. Set `requires_grad` of its parameters to `False` too.",
)


@wrong(
    breaks=hidden_tests.independent_of_the_batch,
    tells="With momentum 0 mean and variance stay, but in training mode the layer still "
    "normalizes by the batch, and counts. Put it into eval mode: then it normalizes by its "
    "statistics.",
)
class MomentumZero(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix).requires_grad_(False)
            for layer in part.modules():
                if hasattr(layer, "momentum"):
                    layer.momentum = 0.0

    def forward(self, x):
        return self.model(x)


@wrong(
    breaks=hidden_tests.independent_of_the_batch,
    tells="You stopped the tracking. The statistics stay, but in training mode the layer "
    "still normalizes by the batch. Put it into eval mode.",
)
class TrackingOff(nn.Module):
    def __init__(self, model, prefixes):
        super().__init__()
        self.model = model
        for prefix in prefixes:
            part = model.get_submodule(prefix).requires_grad_(False)
            for layer in part.modules():
                if hasattr(layer, "track_running_stats"):
                    layer.track_running_stats = False

    def forward(self, x):
        return self.model(x)


NotFromTheBeginning = edit(
    mended_NotFromTheBeginning,
    {"self.train()": ""},
    breaks=hidden_tests.frozen_from_the_beginning,
    tells="Your `train` does it right, but nobody has called it when the class has just "
    "been made: a new module is in training mode. Call `self.train()` at the end of "
    "`__init__`.",
)

TrainReturnsNothing = edit(
    mended_NotFromTheBeginning,
    {
        """
        for part in self.parts:
            part.eval()
        return self
        """: """
        for part in self.parts:
            part.eval()
        """,
    },
    breaks=hidden_tests.follows_the_modes,
    tells="Your `train` does not return the net. `nn.Module.train` does, and "
    "`net = net.train()` is usual. Return `self`.",
)

ModeForgotten = edit(
    mended_NotFromTheBeginning,
    {"super().train(mode)": "super().train()"},
    breaks=hidden_tests.follows_the_modes,
    tells="Your `train` takes no notice of `mode` for the rest: `net.eval()`, which calls "
    "`train(False)`, leaves it in training mode. Call `super().train(mode)` first, with "
    "the mode, and then put the parts back.",
)

RestForgotten = edit(
    mended_NotFromTheBeginning,
    {"super().train(mode)": ""},
    breaks=hidden_tests.follows_the_modes,
    tells="Your `train` takes no notice of `mode` for the rest: `net.eval()`, which calls "
    "`train(False)`, leaves it in training mode. Call `super().train(mode)` first, with "
    "the mode, and then put the parts back.",
)

BatchNorm2dAlone = edit(
    mended_NotFromTheBeginning,
    {
        "part.eval()": """
        for layer in part.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eval()
        """,
    },
    breaks=hidden_tests.statistics_stay,
    tells="You look for `BatchNorm2d` alone. There are other layers with running "
    "statistics: put the whole part into eval mode, whatever is in it.",
)

ChildrenAlone = edit(
    mended_NotFromTheBeginning,
    {
        "part.eval()": """
        for child in part.children():
            child.training = False
        """,
    },
    breaks=hidden_tests.parts_of_any_kind,
    tells="You go through the children of a part. A part may be a single layer, without "
    "children, and its children may have children. Call `eval()` on the part itself.",
)

NormsAlone = edit(
    mended_NotFromTheBeginning,
    {
        "part.eval()": """
        for layer in part.modules():
            if hasattr(layer, "running_mean"):
                layer.eval()
        """,
    },
    breaks=hidden_tests.dropout_of_the_part_is_off,
    tells="You put the normalizations into eval mode and left the part's dropout on. The "
    "whole part computes as in eval mode: call `eval()` on the part.",
)

PartsUnderNoGrad = edit(
    mended_NotFromTheBeginning,
    {
        "part.requires_grad_(False)": """
        part.requires_grad_(False)
        part.forward = torch.no_grad()(part.forward)
        """,
    },
    breaks=hidden_tests.gradients_pass_through,
    tells="You run the part without a graph. Then no gradient reaches what lies before it. "
    "`requires_grad=False` on its parameters is enough, and lets gradients through.",
)

PartsTwice = edit(
    mended_NotFromTheBeginning,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": """
        parts = [model.get_submodule(prefix) for prefix in prefixes]
        self.parts = nn.ModuleList(parts)
        """,
    },
    breaks=hidden_tests.made_of_the_model,
    tells="You keep the parts in an `nn.ModuleList` or as attributes: they are children of "
    "the net a second time, and its state dict has every frozen tensor twice. A plain list "
    "does not register them.",
)

WrapsACopy = edit(
    mended_NotFromTheBeginning,
    {
        """
        self.model = model
        self.parts = [model.get_submodule(prefix) for prefix in prefixes]
        """: """
        self.model = copy.deepcopy(model)
        self.parts = [self.model.get_submodule(prefix) for prefix in prefixes]
        """,
    },
    breaks=hidden_tests.made_of_the_model,
    tells="You wrapped a copy. `net.model` is to be the model that was given: its caller "
    "has it in hand, and trains it through the net.",
)

PrefixWithoutADot = edit(
    mended_NotFromTheBeginning,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": """
        for prefix in prefixes:
            model.get_submodule(prefix)
        self.parts = [
            layer
            for name, layer in model.named_modules()
            if name.startswith(tuple(prefixes))
        ]
        """,
    },
    breaks=hidden_tests.the_rest_is_trained,
    tells="You froze every layer whose name begins with a prefix, `block10` with `block1`. "
    "`get_submodule` finds the one that was asked for.",
)


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


UnknownNamesIgnored = edit(
    mended_NotFromTheBeginning,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": "self.parts = [m for n, m in model.named_modules() if n in prefixes]",
    },
    breaks=hidden_tests.refuses_unknown_names,
    tells="A name that the model does not have passes in silence: a typing mistake, and "
    "nothing is frozen. `get_submodule` raises by itself.",
)

FirstPartAlone = edit(
    mended_NotFromTheBeginning,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": "self.parts = [model.get_submodule(prefix) for prefix in prefixes][:1]",
    },
    breaks=hidden_tests.statistics_stay,
    tells="You froze the first of the parts. `prefixes` is a list, and all of its parts are "
    "to stay.",
)


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


NamesakesToo = edit(
    mended_NamesakesToo,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": """
        self.parts = [
            part
            for name, part in model.named_modules()
            if f".{name}".endswith(tuple(f".{one}" for one in prefixes))
        ]
        for one in prefixes:
            model.get_submodule(one)
        """,
    },
    breaks=hidden_tests.the_rest_is_trained,
    tells="You look for the name anywhere in the model, so that `norm` also catches "
    "`body.norm`, another part. A dotted name is counted from the model itself: "
    "`get_submodule`.",
)

FlagOfTheNetForgotten = edit(
    mended_NamesakesToo,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": "self.parts = [model.get_submodule(one) for one in prefixes]",
        "super().train(mode)": "self.model.train(mode)",
    },
    breaks=hidden_tests.follows_the_modes,
    tells="`net.training` does not follow `train` and `eval`. `was = net.training; "
    "net.eval(); ...; net.train(was)` is usual, and then goes wrong. Call "
    "`super().train(mode)`, which sets the net's own flag too.",
)

THAWED = (
    "You set `requires_grad` of the rest to `True`, when the class is made or in a mode. "
    "What somebody had frozen there stays frozen: touch the flags of the frozen parts "
    "alone."
)

RestThawed = edit(
    mended_NamesakesToo,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": """
        self.parts = [model.get_submodule(one) for one in prefixes]
        model.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.the_rest_is_trained,
    tells=THAWED,
)

AttributesFollowed = edit(
    mended_NamesakesToo,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": """
        self.parts = []
        for one in prefixes:
            part = model
            for name in one.split("."):
                part = getattr(part, name)
            part.requires_grad_(False)
            if isinstance(part, nn.Module):
                self.parts.append(part)
        """,
    },
    breaks=hidden_tests.refuses_unknown_names,
    tells="You follow the attributes, and a parameter is one too: `head.weight` passes, "
    "and is no part. `get_submodule` refuses it.",
)

InnermostLayersOnly = edit(
    mended_NamesakesToo,
    {
        "self.parts = [model.get_submodule(prefix) for prefix in prefixes]": "self.parts = [model.get_submodule(one) for one in prefixes]",
        "super().train(mode)": """
        self.training = mode
        for layer in self.model.modules():
            if not list(layer.children()):
                layer.training = mode
        """,
    },
    breaks=hidden_tests.follows_the_modes,
    tells="You set `training` of the innermost layers alone. Containers have the flag "
    "too, and a layer of one's own may look at it: let `super().train(mode)` set "
    "the rest.",
)


WeightsAndBiasesAlone = edit(
    mended_NotFromTheBeginning,
    {
        "part.requires_grad_(False)": """
        for name, p in part.named_parameters():
            if name.split(".")[-1] in ("weight", "bias"):
                p.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.weights_stay,
    tells="You freeze what is called `weight` or `bias`. An LSTM has `weight_ih_l0`, "
    "attention has `in_proj_weight`, and a layer of one's own any name. "
    "`part.requires_grad_(False)` takes them all.",
)

EvalBeforeTrain = edit(
    mended_NotFromTheBeginning,
    {
        """
        super().train(mode)
        for part in self.parts:
            part.eval()
        return self
        """: """
        for part in self.parts:
            part.eval()
        return super().train(mode)
        """,
    },
    breaks=hidden_tests.statistics_stay,
    tells="The frozen parts are in training mode in the forward pass. Freezing "
    "parameters is not enough, for running statistics are buffers; and an "
    "`eval()` of the parts before `super().train(mode)` is undone by it. Put them "
    "back afterwards.",
)

BatchNormAlone = edit(
    mended_NotFromTheBeginning,
    {
        "part.eval()": """
        for layer in part.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                layer.eval()
        """,
    },
    breaks=[
        hidden_tests.dropout_of_the_part_is_off,
        hidden_tests.parts_of_any_kind,
    ],
    tells="You put the batch norms of a part into eval mode and nothing else. Dropout "
    "stays on, and so does instance norm with statistics. `part.eval()` reaches "
    "every layer.",
)

frozen_by_first_names = edit(
    SOLUTION,
    {
        """
        for part in self.frozen_parts:
            part.requires_grad_(False)
        """: """
        for name, parameter in model.named_parameters():
            if any(name.startswith(one + ".") for one in prefixes):
                parameter.requires_grad_(False)
        """
    },
    breaks=hidden_tests.weights_stay,
    tells="You go by the names of `named_parameters()`, which gives a shared weight by its "
    "first name alone. Ask the part for its own: `part.requires_grad_(False)`.",
)

parts_by_first_names = edit(
    SOLUTION,
    {
        "self.frozen_parts = [model.get_submodule(one) for one in prefixes]": """
        for one in prefixes:
            model.get_submodule(one)
        named = model.named_modules()
        self.frozen_parts = [part for name, part in named if name in prefixes]
        """
    },
    breaks=hidden_tests.parts_of_any_kind,
    tells="You go by the names of `named_modules()`, which gives a layer that stands in two "
    "places by its first name alone. `get_submodule` finds it by each.",
)

layers_without_parts_in_eval = edit(
    SOLUTION,
    {
        "part.eval()": """
        for layer in part.modules():
            if not list(layer.children()):
                layer.eval()
        """
    },
    breaks=hidden_tests.dropout_of_the_part_is_off,
    tells="You put the kinds of layers into eval mode that you thought of. A part may "
    "hold others, layers of one's own too, that look at `training`: call `eval()` "
    "of the whole part.",
)

without_a_graph_in_eval = edit(
    SOLUTION,
    {
        "return self.model(x)": """
        learns = any(p.requires_grad for p in self.parameters())
        with torch.set_grad_enabled(self.training and learns):
            return self.model(x)
        """
    },
    breaks=hidden_tests.gradients_pass_through,
    tells="You record no graph in eval, or where everything is frozen. A gradient passes "
    "through all the same, to what lies before.",
)

forward_called_directly = edit(
    SOLUTION,
    {"return self.model(x)": "return self.model.forward(x)"},
    breaks=hidden_tests.follows_the_modes,
    tells="You call `model.forward(x)`, so the model's hooks do not run. Call `model(x)`.",
)

frozen_norms_without_momentum = edit(
    SOLUTION,
    {
        "part.requires_grad_(False)": """
        part.requires_grad_(False)
        for layer in part.modules():
            if hasattr(layer, "running_mean"):
                layer.momentum = 0.0
        """
    },
    breaks=hidden_tests.follows_the_modes,
    tells="You change what a frozen layer was made with. Who unfreezes it later has a norm "
    "that is dead: `eval()` is enough.",
)

modes_that_seem_right = edit(
    SOLUTION,
    {
        "super().train(mode)": """
        if self.training == mode and all(
            not part.training for part in self.frozen_parts
        ):
            return self
        super().train(mode)
        """
    },
    breaks=hidden_tests.follows_the_modes,
    tells="You return at once where the net is in that mode already. A layer of the rest may "
    "have been put into another by hand: `train` sets all.",
)

a_setting_left_by_partly_frozen = edit(
    SOLUTION,
    {
        "super().__init__()": """
        torch.set_num_threads(2)
        super().__init__()
        """,
    },
    breaks=hidden_tests.weights_stay,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

modes_written_into_the_layers = edit(
    SOLUTION,
    {
        "super().train(mode)": """
        for layer in self.modules():
            layer.training = mode
        """
    },
    breaks=hidden_tests.follows_the_modes,
    tells="You set `training` of every layer. One of the rest may have a `train` of its own, "
    "as this class has, and you go around it: call `super().train(mode)`.",
)

prefix_without_a_dot_by_first_names = edit(
    SOLUTION,
    {
        "self.frozen_parts = [model.get_submodule(one) for one in prefixes]": """
        begins = tuple(prefixes)
        for one in prefixes:
            model.get_submodule(one)
        named = model.named_modules()
        self.frozen_parts = [m for name, m in named if name.startswith(begins)]
        """,
        """
        for part in self.frozen_parts:
            part.requires_grad_(False)
        """: """
        for name, parameter in model.named_parameters():
            if name.startswith(begins):
                parameter.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.the_rest_is_trained,
    tells="You froze every layer whose name begins with a prefix, `block10` with `block1`. "
    "`get_submodule` finds the one that was asked for.",
)

prefix_without_a_dot_by_all_names = edit(
    SOLUTION,
    {
        "self.frozen_parts = [model.get_submodule(one) for one in prefixes]": """
        begins = tuple(prefixes)
        for one in prefixes:
            model.get_submodule(one)
        named = model.named_modules(remove_duplicate=False)
        self.frozen_parts = [m for name, m in named if name.startswith(begins)]
        """,
    },
    breaks=hidden_tests.the_rest_is_trained,
    tells="You froze every layer whose name begins with a prefix, `block10` with `block1`. "
    "`get_submodule` finds the one that was asked for.",
)

flag_of_the_part_alone = edit(
    SOLUTION,
    {"part.eval()": "part.training = False"},
    breaks=hidden_tests.statistics_stay,
    tells="You set `training = False` of the part alone. Each module has a flag of its own, "
    "and the layers within the part keep theirs. `part.eval()` sets them all.",
)

parts_looked_up_by_first_names = edit(
    SOLUTION,
    {
        "self.frozen_parts = [model.get_submodule(one) for one in prefixes]": """
        modules = dict(model.named_modules())
        self.frozen_parts = [modules[one] for one in prefixes]
        """,
    },
    breaks=hidden_tests.parts_of_any_kind,
    tells="You go by the names of `named_modules()`, which gives a layer that stands in two "
    "places by its first name alone. `get_submodule` finds it by each.",
)

frozen_in_training_alone = edit(
    SOLUTION,
    {"part.eval()": "part.eval().requires_grad_(not mode)"},
    breaks=hidden_tests.weights_stay,
    tells="In eval mode you give the frozen parts `requires_grad=True` again, and they get "
    "gradients. They are frozen in both modes: set the flag once, when the class is made.",
)

frozen_when_a_mode_is_asked_for = edit(
    SOLUTION,
    {
        """
        for part in self.frozen_parts:
            part.requires_grad_(False)
        self.train()
        """: """
        for part in self.frozen_parts:
            part.eval()
        """,
        """
        for part in self.frozen_parts:
            part.eval()
        return self
        """: """
        for part in self.frozen_parts:
            part.eval().requires_grad_(False)
        return self
        """,
    },
    breaks=hidden_tests.weights_stay,
    tells="You set `requires_grad` of the frozen parts in `train` alone. Until it is called "
    "they get gradients. Set the flag when the class is made.",
)

rest_thawed_in_eval = edit(
    SOLUTION,
    {
        "super().train(mode)": """
        super().train(mode)
        if not mode:
            self.model.requires_grad_(True)
            for part in self.frozen_parts:
                part.requires_grad_(False)
        """,
    },
    breaks=hidden_tests.the_rest_is_trained,
    tells=THAWED,
)
