"""Answers to `predict` of chapter 11."""

import contextlib

import torch

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
    breaks=hidden_tests.after_an_error,
    tells="You remove your hook behind the loop. An error in between leaves it on "
    "the model, and every later forward pass runs it. `handle.remove()` "
    "belongs in `finally`.",
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
