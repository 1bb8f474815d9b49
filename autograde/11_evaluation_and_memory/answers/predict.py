"""Answers to `predict` of chapter 11."""

import contextlib

import torch
from torch import nn

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
@torch.no_grad()
def predict_with_a_decorator(model, batches):
    was = {layer: layer.training for layer in model.modules()}
    try:
        model.eval()
        outputs = []
        for x in batches:
            outputs.append(model(x))
        return torch.cat(outputs, dim=0)
    finally:
        for layer in was:
            layer.training = was[layer]


@accepted()
def predict_with_grad_mode_by_hand(model, batches):
    before = torch.is_grad_enabled()
    modes = [(layer, layer.training) for layer in model.modules()]
    try:
        torch.set_grad_enabled(False)
        for layer, _ in modes:
            layer.training = False
        out = []
        for x in batches:
            out.extend(model(x))
        return torch.stack(out)
    finally:
        torch.set_grad_enabled(before)
        for layer, mode in modes:
            layer.training = mode


@accepted()
def predict_with_an_exit_stack(model, batches):
    with contextlib.ExitStack() as stack:
        for layer in model.modules():
            stack.callback(setattr, layer, "training", layer.training)
        stack.enter_context(torch.inference_mode())
        model.eval()
        return torch.concat([model(x) for x in batches])


@accepted(body=True)
def predict_with_a_context_manager():
    @contextlib.contextmanager
    def evaluating(model):
        training = [m for m in model.modules() if m.training]
        model.eval()
        try:
            yield
        finally:
            for m in training:
                m.training = True

    def predict(model, batches):
        with evaluating(model), torch.no_grad():
            return torch.cat([model(x) for x in batches])


@accepted()
def predict_into_a_growing_tensor(model, batches):
    modes = [layer.training for layer in model.modules()]
    out = None
    try:
        for x in batches:
            with torch.no_grad():
                y = model.eval()(x)
                out = y if out is None else torch.cat((out, y))
    except BaseException:
        raise
    finally:
        for layer, mode in zip(model.modules(), modes):
            object.__setattr__(layer, "training", mode)
    return out


@accepted()
def predict_reading_one_ahead(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    outputs = []
    try:
        model.eval()
        with torch.no_grad():
            ahead = iter(batches)
            x = next(ahead, None)
            while x is not None:
                following = next(ahead, None)
                outputs.append(model(x))
                x = following
    finally:
        for layer, mode in modes:
            layer.training = mode
    return torch.cat(outputs)


@accepted()
def predict_by_a_hook(model, batches):
    outputs = []
    modes = [(layer, layer.training) for layer in model.modules()]
    hook = model.register_forward_hook(lambda *call: outputs.append(call[2]))
    try:
        model.eval()
        with torch.no_grad():
            for x in batches:
                model(x)
    finally:
        hook.remove()
        for layer, mode in modes:
            layer.training = mode
    return torch.cat(outputs)


@accepted()
def mended_predict_probabilities(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.modes_are_restored,
    tells="You set the modes back by `layer.train(mode)`, from the outside in. That "
    "works in a tree. Where one layer stands in two places, the second parent "
    "overwrites its mode. `layer.training = mode` sets one layer and no other.",
)
def predict_restoring_by_train(model, batches):
    was = [layer.training for layer in model.modules()]
    model.train(False)
    try:
        with torch.no_grad():
            return torch.cat(tuple(model(x) for x in batches))
    finally:
        for layer, mode in zip(model.modules(), was):
            layer.train(mode)


@wrong(
    breaks=[hidden_tests.outputs_of_eval, hidden_tests.layers_in_eval],
    tells="You switch gradients off, and that is all. `no_grad` does not touch the "
    "mode: dropout still drops, and batch norm still normalizes by the batch "
    "and moves its statistics. Call `model.eval()` as well.",
)
def predict_under_no_grad_only(model, batches):
    with torch.no_grad():
        return torch.cat([model(x) for x in batches])


@wrong(
    breaks=hidden_tests.modes_are_restored,
    tells="You call `model.train()` at the end, whatever was before. A model that "
    "was in eval, and layers that somebody froze in eval, are in training "
    "now. Note each layer's `training`, and set it back.",
)
def predict_then_train(model, batches):
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        model.train()


@wrong(
    breaks=hidden_tests.modes_are_restored,
    tells="In the end all layers are in the mode of the model itself: `train(mode)` "
    "goes down to every layer inside and overwrites what it had. Layers may "
    "be in different modes. Note each layer's own, and set the attribute "
    "`training`.",
)
def predict_then_train_as_the_root(model, batches):
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        model.train(was_training)


@wrong(
    breaks=hidden_tests.modes_are_restored,
    tells="You set back the modes of the model's direct children only. "
    "`children()` stops there; `modules()` reaches every depth.",
)
def predict_restoring_children(model, batches):
    root = model.training
    modes = [(layer, layer.training) for layer in model.children()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        model.training = root
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.modes_are_restored,
    tells="In the end all layers are in the mode of the model itself: `train(mode)` "
    "goes down to every layer inside and overwrites what it had. Layers may "
    "be in different modes. Note each layer's own, and set the attribute "
    "`training`.",
)
def predict_restoring_inside_out(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in reversed(modes):
            layer.train(mode)


@wrong(
    breaks=hidden_tests.modes_are_restored,
    tells="You leave the model in eval mode. The training that goes on afterwards "
    "runs without dropout, and batch norm learns no statistics.",
)
def predict_and_stay_in_eval(model, batches):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(x) for x in batches])


@wrong(
    breaks=hidden_tests.after_an_error,
    tells="You set the modes back after the loop. If a batch raises an error, that "
    "line is never reached, and the model stays in eval. Put it into "
    "`finally:`.",
)
def predict_restoring_without_finally(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    with torch.no_grad():
        out = torch.cat([model(x) for x in batches])
    for layer, mode in modes:
        layer.training = mode
    return out


@wrong(
    breaks=hidden_tests.grad_mode_is_restored,
    tells="You switch gradients on at the end. The caller may have had them off. "
    "Note `torch.is_grad_enabled()` first, or use `with torch.no_grad()`, "
    "which does that for you.",
)
def predict_switching_gradients_on(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    torch.set_grad_enabled(False)
    try:
        return torch.cat([model(x) for x in batches])
    finally:
        torch.set_grad_enabled(True)
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.after_an_error,
    tells="You set the modes back in `finally:`, but switch gradients on again "
    "only when all went well. After an error they stay off, and the next "
    "training step fails. `with torch.no_grad()` ends in any case.",
)
def predict_with_gradients_left_off_by_an_error(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    before = torch.is_grad_enabled()
    model.eval()
    torch.set_grad_enabled(False)
    try:
        out = torch.cat([model(x) for x in batches])
        torch.set_grad_enabled(before)
        return out
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.grad_mode_is_restored,
    tells="You switch gradients off by `torch.set_grad_enabled(False)` and leave "
    "them off. Training afterwards fails. Use `with torch.no_grad()`.",
)
def predict_leaving_gradients_off(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    torch.set_grad_enabled(False)
    try:
        return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.gradients_off,
    tells="You take `requires_grad` away from all parameters, and give it to all "
    "of them afterwards. Gradients are still switched on, and what was "
    "frozen trains from now on. `no_grad` needs none of that.",
)
def predict_by_freezing(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval().requires_grad_(False)
    try:
        return torch.cat([model(x) for x in batches])
    finally:
        model.requires_grad_(True)
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.layers_in_eval,
    tells="You put only the dropouts and batch norms that you know into eval. "
    "Other layers have a mode too, also those that people write themselves. "
    "`model.eval()` reaches all.",
)
def predict_with_known_layers_in_eval(model, batches):
    kinds = nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d
    layers = [m for m in model.modules() if isinstance(m, kinds)]
    modes = [layer.training for layer in layers]
    for layer in layers:
        layer.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in zip(layers, modes):
            layer.training = mode


@wrong(
    breaks=hidden_tests.layers_in_eval,
    tells="`model.training = False` sets one attribute of one module. The layers "
    "inside keep theirs. `model.eval()` goes through all of them.",
)
def predict_with_the_root_in_eval(model, batches):
    was = model.training
    model.training = False
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        model.training = was


@wrong(
    breaks=hidden_tests.batches_as_they_come,
    tells="You evaluate a copy of the model. It leaves the model alone, and costs "
    "the memory of all its weights once more. Put the modes back instead.",
)
def predict_with_a_copy(model, batches):
    import copy

    twin = copy.deepcopy(model).eval()
    with torch.no_grad():
        return torch.cat([twin(x) for x in batches])


@wrong(
    breaks=hidden_tests.after_an_error,
    tells="You catch the error and return what there is. The caller takes a part "
    "of the predictions for all. Use `finally:`, without `except`.",
)
def predict_swallowing_errors(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    out = []
    try:
        with torch.no_grad():
            for x in batches:
                out.append(model(x))
    except Exception:
        pass
    finally:
        for layer, mode in modes:
            layer.training = mode
    return torch.cat(out)


@wrong(
    breaks=[
        hidden_tests.batches_as_they_come,
        hidden_tests.evaluation_leaves_the_rest,
    ],
    tells="You send each batch through in training mode first. That moves the "
    "running statistics towards the data you evaluate on. Evaluation uses "
    "those of training.",
)
def predict_after_warming_up(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    out = []
    try:
        with torch.no_grad():
            for x in batches:
                if len(x) > 1:
                    model.train()
                    model(x)
                model.eval()
                out.append(model(x))
        return torch.cat(out)
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.modes_are_restored,
    tells="You go down from layer to layer and note each mode as you come to it. A "
    "layer that stands in two places is noted twice, the second time after "
    "you have changed it. Note all modes first, each layer once: `modules()`.",
)
def predict_layer_by_layer(model, batches):
    def switch(layer, modes=None):
        old = [layer.training]
        layer.training = False if modes is None else modes.pop(0)
        for child in layer._modules.values():
            old += switch(child, modes)
        return old

    modes = switch(model)
    try:
        outputs = []
        with torch.inference_mode():
            for x in iter(batches):
                outputs.append(model(x).clone())
        return torch.cat(outputs)
    finally:
        switch(model, modes)


@wrong(
    breaks=hidden_tests.layers_in_eval,
    tells="You put only those layers into eval that have no layers inside. A "
    "module with children may look at its own mode as well. `model.eval()` "
    "reaches all.",
)
def predict_with_leaves_in_eval(model, batches):
    leaves = [m for m in model.modules() if not list(m.children())]
    modes = [layer.training for layer in leaves]
    for layer in leaves:
        layer.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in zip(leaves, modes):
            layer.training = mode


@wrong(
    breaks=hidden_tests.after_an_error,
    tells="You set the modes back if the model raises an error, and not if the "
    "loader does: that happens in the `for` line, outside your `try`. Put the "
    "loop inside.",
)
def predict_guarding_the_model_only(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    outputs = []

    def restore():
        for layer, mode in modes:
            layer.training = mode

    for x in batches:
        try:
            with torch.no_grad():
                outputs.append(model(x))
        except Exception:
            restore()
            raise
    restore()
    return torch.cat(outputs)


@wrong(
    breaks=hidden_tests.after_an_error,
    tells="You set the modes back in `except Exception:`. Somebody who stops "
    "the cell raises a KeyboardInterrupt, which is no Exception: the "
    "model stays in eval. `finally:` runs in every case.",
)
def predict_restoring_but_not_when_stopped(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]

    def restore():
        for layer, mode in modes:
            layer.training = mode

    try:
        model.eval()
        with torch.no_grad():
            out = torch.cat([model(x) for x in batches])
    except Exception:
        restore()
        raise
    restore()
    return out


@wrong(
    breaks=hidden_tests.other_shapes_and_dtypes,
    tells="`torch.vstack` makes one row of an output of shape (n,). Put batches "
    "one below the other by `torch.cat`.",
)
def predict_stacking_rows(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            return torch.vstack([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.evaluation_leaves_the_rest,
    tells="You call `requires_grad_(False)` on the inputs. They are the "
    "caller's, who may want their gradients later. Under `no_grad` there "
    "is no need.",
)
def predict_taking_gradients_from_inputs(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            return torch.cat([model(x.requires_grad_(False)) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.evaluation_leaves_the_rest,
    tells="You leave an attribute on the model or on its layers. It is saved and "
    "copied with them. A local variable is enough.",
)
def predict_leaving_attributes_in_layers(model, batches):
    layers = [m for m in model.modules() if m is not model]
    root = model.training
    for layer in layers:
        layer.mode_before = layer.training
    try:
        model.eval()
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        model.training = root
        for layer in layers:
            layer.training = layer.mode_before


@wrong(
    breaks=hidden_tests.outputs_of_eval,
    tells="You keep the outputs of a model and return them when it comes again. "
    "In between it was trained: the outputs are old.",
    body=True,
)
def predict_from_a_cache():
    import weakref

    known = weakref.WeakKeyDictionary()

    def predict(model, batches):
        if model in known:
            return known[model].clone()
        modes = [(layer, layer.training) for layer in model.modules()]
        try:
            model.eval()
            with torch.no_grad():
                known[model] = torch.cat([model(x) for x in batches])
        finally:
            for layer, mode in modes:
                layer.training = mode
        return known[model].clone()


@wrong(
    breaks=hidden_tests.other_shapes_and_dtypes,
    tells="You call `squeeze()`. It removes every dimension of size 1: of a single "
    "row nothing is left but its numbers. `torch.cat` gives the right shape.",
)
def predict_squeezed(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            return torch.cat([model(x) for x in batches]).squeeze()
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.evaluation_leaves_the_rest,
    tells="You change a setting of layers, as dropout's `p` or batch norm's "
    "`momentum`, and do not set it back. `eval()` is enough.",
)
def predict_without_dropout_for_good(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    for layer, _ in modes:
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    try:
        model.eval()
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    breaks=hidden_tests.after_an_error,
    tells="You remove your hook behind the loop. An error in between leaves it on "
    "the model, and every later forward pass runs it. `handle.remove()` "
    "belongs into `finally`.",
)
def predict_by_a_hook_left_by_an_error(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    outputs = []
    handle = model.register_forward_hook(
        lambda layer, inputs, output: outputs.append(output)
    )
    model.eval()
    try:
        with torch.no_grad():
            for x in batches:
                model(x)
    finally:
        for layer, mode in modes:
            layer.training = mode
    handle.remove()
    return torch.cat(outputs)
