"""Answers to `predict_one` of chapter 05."""

import torch
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def with_a_deep_copy(model, x):
    import copy

    evaluated = copy.deepcopy(model).eval()
    return evaluated(x[None]).squeeze(0).detach()


@accepted()
def in_inference_mode(model, x):
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.inference_mode():
            return model.eval()(x.unsqueeze(0))[0]
    finally:
        for module, mode in modes:
            module.training = mode


@accepted()
def with_a_context_manager(model, x):
    import contextlib

    @contextlib.contextmanager
    def evaluating():
        modes = [(m, m.training) for m in model.modules()]
        for module, _ in modes:
            module.training = False
        try:
            yield
        finally:
            for module, mode in modes:
                module.training = mode

    with evaluating(), torch.no_grad():
        out = model(x.reshape(1, *x.shape))
        return out.reshape(out.shape[1:])


@accepted()
def module_by_module(model, x):
    modes = {name: m.training for name, m in model.named_modules()}
    model.train(False)
    error = None
    try:
        out = model(torch.stack([x])).detach()
    except BaseException as caught:
        error = caught
    for name, module in model.named_modules():
        module.training = modes[name]
    if error is not None:
        raise error
    return out[0]


@accepted()
def with_an_exit_stack(model, x):
    from contextlib import ExitStack

    with ExitStack() as stack, torch.no_grad():
        for module in model.modules():
            stack.callback(setattr, module, "training", module.training)
        model.eval()
        return model(torch.stack([x]))[0]


@accepted()
def by_functional_call(model, x):
    # named once each: a layer that stands in two places has two names
    named = [*model.named_parameters(), *model.named_buffers()]
    state = {name: value.detach().clone() for name, value in named}
    modes = [m.training for m in model.modules()]
    try:
        model.eval()
        given = (x.detach()[None],)
        return torch.func.functional_call(model, state, given)[0]
    finally:
        for module, mode in zip(model.modules(), modes):
            module.training = mode


@accepted()
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
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You ask the model in the mode it is in. In training a batch of one raises, "
    "or it is normalized by itself and moves the running statistics. Switch "
    "to eval first.",
)
def without_eval(model, x):
    with torch.no_grad():
        return model(x[None])[0]


@wrong(
    breaks=hidden_tests.predicts_as_in_evaluation,
    tells="You repeat the sample so that batch norm does not raise. All rows are then "
    "equal, each minus the mean is 0, and the input no longer matters. Use "
    "eval mode: it needs no batch.",
)
def with_the_sample_repeated(model, x):
    with torch.no_grad():
        return model(torch.stack([x, x]))[0]


@wrong(
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
    breaks=hidden_tests.puts_modes_back,
    tells="Afterwards all modules are in the mode of the outermost one. "
    "`train(mode)` of a module goes through all modules within it: called last, "
    "that of the outermost wakes those that were frozen. Note the mode of each of "
    "`model.modules()`, and put back its attribute `training`.",
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
