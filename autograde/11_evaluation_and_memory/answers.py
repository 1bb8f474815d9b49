"""The answer bank of chapter 11: evaluation and memory."""

import contextlib
import math

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import (
    classification_report,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)
from torch import nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# predict


@accepted("predict")
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


@wrong(
    "predict",
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


@accepted("predict")
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


@accepted("predict")
def predict_with_an_exit_stack(model, batches):
    with contextlib.ExitStack() as stack:
        for layer in model.modules():
            stack.callback(setattr, layer, "training", layer.training)
        stack.enter_context(torch.inference_mode())
        model.eval()
        return torch.concat([model(x) for x in batches])


@accepted("predict", body=True)
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


@accepted("predict")
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


@wrong(
    "predict",
    breaks=[hidden_tests.outputs_of_eval, hidden_tests.layers_in_eval],
    tells="You switch gradients off, and that is all. `no_grad` does not touch the "
    "mode: dropout still drops, and batch norm still normalizes by the batch "
    "and moves its statistics. Call `model.eval()` as well.",
)
def predict_under_no_grad_only(model, batches):
    with torch.no_grad():
        return torch.cat([model(x) for x in batches])


@wrong(
    "predict",
    breaks=hidden_tests.gradients_off,
    tells="`eval()` changes how layers compute, and nothing else: every forward "
    "pass still records a graph and keeps tensors for a backward pass. Add "
    "`torch.no_grad()` or `torch.inference_mode()`.",
)
def predict_in_eval_only(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.gradients_off,
    tells="You detach the outputs. By then the forward pass has recorded its graph "
    "and kept its tensors: the memory was needed. Switch gradients off before "
    "the model runs.",
)
def predict_detached(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        return torch.cat([model(x).detach() for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
    breaks=hidden_tests.modes_are_restored,
    tells="You leave the model in eval mode. The training that goes on afterwards "
    "runs without dropout, and batch norm learns no statistics.",
)
def predict_and_stay_in_eval(model, batches):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(x) for x in batches])


@wrong(
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
    breaks=hidden_tests.outputs_of_eval,
    tells="You return probabilities, a softmax of what the model gives. The "
    "exercise asks for the outputs as they are.",
)
def predict_probabilities(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x).softmax(-1) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.outputs_of_eval,
    tells="You return classes. The exercise asks for the outputs as they are.",
)
def predict_classes(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x).argmax(-1) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.outputs_of_eval,
    tells="You return a list with one tensor for each batch. Put them together: "
    "`torch.cat`.",
)
def predict_a_list(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return [model(x) for x in batches]
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
    breaks=hidden_tests.batches_as_they_come,
    tells="You put all batches together and send them through at once: the memory "
    "that batches are there to save.",
)
def predict_at_once(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model(torch.cat(list(batches)))
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.batches_as_they_come,
    tells="You read all batches into a list before the first goes through. A "
    "loader makes them one at a time so that they need not all be in memory.",
)
def predict_after_reading_all(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    batches = list(batches)
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
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
    "predict",
    breaks=hidden_tests.batches_as_they_come,
    tells="You call `model.forward(x)`. That leaves out the model's hooks: call "
    "`model(x)`.",
)
def predict_by_forward(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model.forward(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.evaluation_leaves_the_rest,
    tells="You clear the model's gradients. An evaluation in the middle of an "
    "accumulation then throws half of it away. Leave `.grad` alone.",
)
def predict_clearing_gradients(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    model.zero_grad()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
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
    "predict",
    breaks=hidden_tests.other_shapes_and_dtypes,
    tells="You convert the outputs to float64. The exercise asks for the dtype of "
    "the model.",
)
def predict_in_double(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x).double() for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.outputs_of_eval,
    tells="You leave out the last batch if it is shorter. Dropping it is a habit "
    "of training; in an evaluation every sample counts.",
)
def predict_dropping_the_last(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            out = []
            for x in batches:
                if not out or len(x) >= len(out[0]):
                    out.append(model(x))
            return torch.cat(out)
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.evaluation_leaves_the_rest,
    tells="You seed the global generator. An evaluation has nothing random in it, "
    "and the training that goes on afterwards repeats its numbers.",
)
def predict_after_seeding(model, batches):
    torch.manual_seed(0)
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


# mean_metrics


@accepted("mean_metrics")
def metrics_of_everything_together(pairs, ignore_index=-100):
    logits, labels = [], []
    for x, y in pairs:
        classes_last = x.detach().double().movedim(1, -1)
        logits.append(classes_last.reshape(-1, x.shape[1]))
        labels.append(y.reshape(-1))
    if not labels:
        return {"loss": math.nan, "accuracy": math.nan, "count": 0}
    logits, labels = torch.cat(logits), torch.cat(labels)
    keep = labels != ignore_index
    logits, labels = logits[keep], labels[keep]
    if len(labels) == 0:
        return {"loss": math.nan, "accuracy": math.nan, "count": 0}
    right = logits.argmax(1) == labels
    return {
        "loss": F.cross_entropy(logits, labels).item(),
        "accuracy": right.double().mean().item(),
        "count": len(labels),
    }


@accepted("mean_metrics")
@torch.no_grad()
def metrics_weighting_the_means(pairs, ignore_index=-100):
    loss_sum = right = count = 0
    for x, y in pairs:
        keep = y.ne(ignore_index)
        n = int(keep.sum())
        if n == 0:
            continue
        mean = F.cross_entropy(x.float(), y, ignore_index=ignore_index)
        loss_sum += float(mean) * n
        right += int((x.argmax(1)[keep] == y[keep]).sum())
        count += n
    if count == 0:
        return dict(loss=float("nan"), accuracy=float("nan"), count=0)
    return dict(loss=loss_sum / count, accuracy=right / count, count=count)


@accepted("mean_metrics", body=True)
def metrics_by_an_accumulator():
    class Mean:
        def __init__(self):
            self.total, self.weight = 0.0, 0

        def update(self, values):
            self.total += float(values.sum(dtype=torch.float64))
            self.weight += values.numel()

        def compute(self):
            return self.total / self.weight if self.weight else math.nan

    def mean_metrics(pairs, ignore_index=-100):
        loss, accuracy = Mean(), Mean()
        for x, y in pairs:
            keep = y != ignore_index
            with torch.no_grad():
                losses = F.cross_entropy(
                    x.float(), y, ignore_index=ignore_index, reduction="none"
                )
            loss.update(losses[keep])
            accuracy.update((x.argmax(1) == y)[keep].double())
        return {
            "loss": loss.compute(),
            "accuracy": accuracy.compute(),
            "count": loss.weight,
        }


@accepted("mean_metrics")
def metrics_with_running_tensors(pairs, ignore_index=-100):
    total = torch.zeros((), dtype=torch.float64)
    right = torch.zeros((), dtype=torch.int64)
    count = torch.zeros((), dtype=torch.int64)
    for x, y in pairs:
        keep = y != ignore_index
        log_probs = x.detach().float().log_softmax(1)
        at = torch.where(keep, y, 0).unsqueeze(1)
        losses = -log_probs.gather(1, at).squeeze(1)
        total += torch.where(keep, losses, 0.0).sum()
        right += ((x.argmax(1) == y) & keep).sum()
        count += keep.sum()
    loss, accuracy = total / count, right / count.double()
    return {
        "loss": loss.item(),
        "accuracy": accuracy.item(),
        "count": count.item(),
    }


@accepted("mean_metrics")
def metrics_with_numpy(pairs, ignore_index=-100):
    losses, hits = [], []
    for x, y in pairs:
        x = np.moveaxis(x.detach().double().numpy(), 1, -1)
        x, y = x.reshape(-1, x.shape[-1]), y.numpy().reshape(-1)
        x, y = x[y != ignore_index], y[y != ignore_index]
        top = x.max(1, initial=-np.inf)
        log_sum = top + np.log(np.exp(x - top[:, None]).sum(1))
        losses += (log_sum - x[np.arange(len(y)), y]).tolist()
        hits += (x.argmax(1) == y).tolist() if len(y) else []
    n = len(losses)
    if n == 0:
        return {"loss": math.nan, "accuracy": math.nan, "count": 0}
    return {
        "loss": math.fsum(losses) / n,
        "accuracy": sum(hits) / n,
        "count": n,
    }


@wrong(
    "mean_metrics",
    breaks=[hidden_tests.mean_loss_of_all, hidden_tests.accuracy_of_all],
    tells="You average the means of the batches. A last batch of one sample then "
    "counts as much as a full one. Add up sums, count the labels, and divide "
    "once, at the end.",
)
def metrics_mean_of_means(pairs, ignore_index=-100):
    losses, accuracies, count = [], [], 0
    for x, y in pairs:
        x = x.detach().float()
        keep = y != ignore_index
        if keep.any():
            loss = F.cross_entropy(x, y, ignore_index=ignore_index)
            losses.append(loss.item())
            right = (x.argmax(1) == y)[keep]
            accuracies.append(right.float().mean().item())
            count += int(keep.sum())
    n = len(losses)
    return {
        "loss": sum(losses) / n if n else math.nan,
        "accuracy": sum(accuracies) / n if n else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.mean_loss_of_all,
    tells="The accuracy is that of all labels, and the loss is a mean of the "
    "batches' means, in which a short last batch counts too much. Weight each "
    "mean by the number of its labels.",
)
def metrics_loss_mean_of_means(pairs, ignore_index=-100):
    losses, right, count = [], 0, 0
    for x, y in pairs:
        x = x.detach().float()
        keep = y != ignore_index
        if keep.any():
            loss = F.cross_entropy(x, y, ignore_index=ignore_index)
            losses.append(loss.item())
            right += int((x.argmax(1) == y)[keep].sum())
            count += int(keep.sum())
    return {
        "loss": sum(losses) / len(losses) if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=[hidden_tests.mean_loss_of_all, hidden_tests.accuracy_of_all],
    tells="You divide the sums by the number of batches. Divide by the number of "
    "labels.",
)
def metrics_over_the_number_of_batches(pairs, ignore_index=-100):
    loss_sum, right, count, n = 0.0, 0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
        n += 1
    return {
        "loss": loss_sum / n if count else math.nan,
        "accuracy": right / n if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=[hidden_tests.ignored_labels],
    tells="You multiply the mean of a batch by its size. The mean was taken over "
    "the labels that are not ignored: weight it by *their* number, and divide "
    "by theirs.",
)
def metrics_weighted_by_batch_size(pairs, ignore_index=-100):
    loss_sum, right, count, size = 0.0, 0, 0, 0
    for x, y in pairs:
        keep = y != ignore_index
        if keep.any():
            mean = F.cross_entropy(
                x.detach().double(), y, ignore_index=ignore_index
            )
            loss_sum += mean.item() * y.numel()
            size += y.numel()
            right += int((x.argmax(1) == y)[keep].sum())
            count += int(keep.sum())
    return {
        "loss": loss_sum / size if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.ignored_labels,
    tells="You divide the number of right labels by that of all labels, ignored "
    "ones too: the more padding, the lower the accuracy. Divide by the "
    "number of labels that count.",
)
def metrics_accuracy_over_padding(pairs, ignore_index=-100):
    loss_sum, right, count, size = 0.0, 0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
        size += y.numel()
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / size if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.ignored_labels,
    tells="Where `ignore_index` is a class, you count a hit on an ignored label as "
    "right. Such a hit does not count: `(predicted == y) & "
    "(y != ignore_index)`.",
)
def metrics_hits_on_ignored_labels(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y).sum())
        count += int((y != ignore_index).sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.ignored_labels,
    tells="You ignore -100, whatever `ignore_index` says. Pass it on to "
    "`F.cross_entropy` and compare with it.",
)
def metrics_with_a_fixed_ignore_index(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        loss_sum += F.cross_entropy(x, y, reduction="sum").item()
        right += int((x.argmax(1) == y).sum())
        count += int((y != -100).sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.ignored_labels,
    tells="You take negative labels for ignored ones. `ignore_index` may be "
    "255 or a class: compare with it.",
)
def metrics_ignoring_negative_labels(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        keep = y >= 0
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.nothing_counts_in_a_batch,
    tells="A batch in which nothing counts makes the loss NaN: its mean is 0 / 0, "
    "and NaN times 0 is NaN. Use sums, or leave such batches out.",
)
def metrics_nan_from_an_empty_batch(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        keep = y != ignore_index
        n = int(keep.sum())
        mean = F.cross_entropy(
            x.detach().double(), y, ignore_index=ignore_index
        )
        loss_sum += mean.item() * n
        right += int((x.argmax(1) == y)[keep].sum())
        count += n
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts, you divide by zero. Python raises an error there. "
    "The exercise asks for NaN.",
)
def metrics_dividing_by_zero(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {"loss": loss_sum / count, "accuracy": right / count, "count": count}


@wrong(
    "mean_metrics",
    breaks=hidden_tests.nothing_counts_at_all,
    tells="If nothing counts, you return zeros. A loss of 0 looks like a perfect "
    "model; NaN says that there is no mean.",
)
def metrics_zero_of_nothing(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    n = max(count, 1)
    return {"loss": loss_sum / n, "accuracy": right / n, "count": count}


@wrong(
    "mean_metrics",
    breaks=hidden_tests.accuracy_of_all,
    tells="`argmax(dim=0)` finds the sample with the highest logit for each "
    "class. The classes are in dimension 1.",
)
def metrics_argmax_over_samples(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        best = x.argmax(0)
        if best.shape == y.shape:
            right += int((best == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.labels_at_positions,
    tells="`argmax(-1)` takes the last dimension. For logits (n, C, d) that is the "
    "position; the classes are in dimension 1, always.",
)
def metrics_argmax_of_the_last_dimension(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        best = x.argmax(-1)
        if best.shape == y.shape:
            right += int((best == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.labels_at_positions,
    tells="You divide by the number of samples. With labels (n, d) each sample has "
    "d of them: count the labels.",
)
def metrics_counting_samples(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum()) if y.dim() == 1 else len(y)
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.labels_at_positions,
    tells="`x.reshape(-1, C)` cuts logits (n, C, d) across classes and positions. "
    "Bring the classes to the end first: `x.movedim(1, -1)`.",
)
def metrics_reshaping_across(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double().reshape(-1, x.shape[1])
        y = y.reshape(-1)
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.other_dtypes,
    tells="You compute the loss in the dtype of the logits. In sixteen bits a sum "
    "keeps two or three digits, or overflows. Convert first: "
    "`logits.float()`.",
)
def metrics_in_sixteen_bits(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.floats_and_an_int,
    tells="You return tensors. Whoever collects them collects tensors, and JSON "
    "cannot write them. `.item()` makes numbers of them.",
)
def metrics_as_tensors(pairs, ignore_index=-100):
    loss_sum, right, count = torch.zeros(()).double(), 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        )
        right = right + (x.argmax(1) == y)[keep].sum()
        count += int(keep.sum())
    nan = torch.tensor(math.nan)
    return {
        "loss": loss_sum / count if count else nan,
        "accuracy": (right / count).double() if count else nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.accuracy_of_all,
    tells="`//` is whole-number division: 13 of 17 gives 0. Use `/`.",
)
def metrics_by_integer_division(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": float(right // count) if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.accuracy_of_all,
    tells="The accuracy is in percent. The exercise asks for a number between 0 "
    "and 1.",
)
def metrics_in_percent(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": 100.0 * right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.accuracy_of_all,
    tells="The mean of a bool tensor raises an error: convert it first, "
    "`right.float().mean()`, or count with `right.sum()`.",
)
def metrics_mean_of_bools(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0.0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        n = int(keep.sum())
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += (x.argmax(1) == y)[keep].mean().item() * n
        count += n
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.metrics_of_a_generator,
    tells="You go through `pairs` twice. A generator is empty the second time. "
    "Compute both sums in one loop.",
)
def metrics_in_two_passes(pairs, ignore_index=-100):
    loss_sum, count = 0.0, 0
    for x, y in pairs:
        loss_sum += F.cross_entropy(
            x.detach().double(), y, ignore_index=ignore_index, reduction="sum"
        ).item()
        count += int((y != ignore_index).sum())
    right = 0
    for x, y in pairs:
        right += int(((x.argmax(1) == y) & (y != ignore_index)).sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.metrics_leave_the_rest,
    tells="You write into the labels: the caller's padding is class 0 afterwards. "
    "Use `torch.where`, or work on a copy.",
)
def metrics_writing_into_the_labels(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        y[~keep] = 0
        losses = F.cross_entropy(x, y, reduction="none")
        loss_sum += losses[keep].sum().item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.metrics_leave_the_rest,
    tells="You empty the list that you were given. Go through it with `for`.",
)
def metrics_emptying_the_list(pairs, ignore_index=-100):
    if isinstance(pairs, list):
        given, pairs = pairs, []
        while given:
            pairs.append(given.pop(0))
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.nothing_counts_at_all,
    tells="You divide by a NumPy or torch count of zero. That gives NaN, and with "
    "NumPy a warning. Treat the case apart.",
)
def metrics_dividing_with_numpy(pairs, ignore_index=-100):
    loss_sum, right, count = np.float64(0), 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": float(loss_sum / np.int64(count)),
        "accuracy": float(np.float64(right) / np.int64(count)),
        "count": count,
    }


# train_and_log


@accepted("train_and_log")
def log_with_detached_tensors(model, optimizer, batches):
    losses, guesses = [], [torch.empty(0).long()]
    total, count = torch.zeros((), dtype=torch.float64), 0
    for x, y in batches:
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        total += loss.detach() * len(y)
        count += len(y)
        guesses.append(scores.detach().max(1).indices)
    return {
        "losses": losses,
        "mean_loss": total / count,
        "predictions": torch.cat(guesses),
    }


@accepted("train_and_log")
def log_as_one_tensor(model, optimizer, batches):
    losses, sizes, guesses = [], [], []
    for x, y in batches:
        optimizer.zero_grad()
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
        sizes.append(len(y))
        guesses.extend(scores.argmax(-1).tolist())
    losses = torch.tensor(losses, dtype=torch.float64)
    sizes = torch.tensor(sizes, dtype=torch.float64)
    return {
        "losses": losses,
        "mean_loss": (losses * sizes).sum() / sizes.sum(),
        "predictions": torch.tensor(guesses, dtype=torch.int64),
    }


@accepted("train_and_log", body=True)
def log_by_a_step_function():
    def step(model, optimizer, x, y):
        optimizer.zero_grad(set_to_none=False)
        logits = model(x)
        losses = F.cross_entropy(logits, y, reduction="none")
        losses.mean().backward()
        optimizer.step()
        return losses.detach().sum().item(), logits.argmax(1)

    def train_and_log(model, optimizer, batches):
        sums, guesses = [], []
        for x, y in batches:
            loss_sum, guess = step(model, optimizer, x, y)
            sums.append(loss_sum)
            guesses.append(guess)
        if not guesses:
            empty = torch.tensor([], dtype=torch.long)
            nan = float("nan")
            return {"losses": [], "mean_loss": nan, "predictions": empty}
        return {
            "losses": [s / len(g) for s, g in zip(sums, guesses)],
            "mean_loss": sum(sums) / sum(map(len, guesses)),
            "predictions": torch.hstack(guesses),
        }


@accepted("train_and_log")
def log_with_a_closure(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = torch.empty(0, dtype=torch.int64)
    for x, y in batches:
        found = []

        def closure():
            optimizer.zero_grad()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            found.append(logits.argmax(1))
            return loss.detach()

        losses.append(optimizer.step(closure))
        total += losses[-1].item() * len(y)
        count += len(y)
        predictions = torch.cat([predictions, found[0]])
    mean = total / count if count else math.nan
    return dict(losses=losses, mean_loss=mean, predictions=predictions)


@accepted("train_and_log")
def log_with_data(model, optimizer, batches):
    losses, counts, predictions = [], [], []
    batches = iter(batches)
    while True:
        pair = next(batches, None)
        if pair is None:
            break
        optimizer.zero_grad()
        logits = model(pair[0])
        loss = nn.CrossEntropyLoss()(logits, pair[1])
        loss.backward()
        with torch.no_grad():
            predictions.append(torch.max(logits, dim=1)[1].clone())
            losses.append(loss.data.clone())
        optimizer.step()
        counts.append(len(pair[1]))
        del loss, logits, pair
    if not counts:
        return {
            "losses": [],
            "mean_loss": float("nan"),
            "predictions": torch.zeros(0, dtype=torch.int64),
        }
    mean = np.average([float(loss) for loss in losses], weights=counts)
    return {
        "losses": losses,
        "mean_loss": float(mean),
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=[
        hidden_tests.graphs_do_not_pile_up,
        hidden_tests.numbers_without_graph,
    ],
    tells="`total += loss` adds up tensors with their graphs: each batch hangs one "
    "more graph onto the sum, until the epoch's end. Add `loss.item()` or "
    "`loss.detach()`.",
)
def log_adding_losses(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.graphs_do_not_pile_up,
    tells="You keep losses with their graphs, in a sum or in a list, and make "
    "numbers of them at the end. Until then all graphs are there together. "
    "Make a number of each loss at once, or detach it.",
)
def log_adding_losses_then_item(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": float(total) / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=[
        hidden_tests.graphs_do_not_pile_up,
        hidden_tests.numbers_without_graph,
    ],
    tells="You keep each loss as the tensor that it is, and with it its graph. A "
    "list of losses holds as many graphs as batches. Keep `loss.item()` or "
    "`loss.detach()`.",
)
def log_listing_losses(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.graphs_do_not_pile_up,
    tells="You keep losses with their graphs, in a sum or in a list, and make "
    "numbers of them at the end. Until then all graphs are there together. "
    "Make a number of each loss at once, or detach it.",
)
def log_detaching_at_the_end(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": [loss.detach() for loss in losses],
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=[
        hidden_tests.graphs_do_not_pile_up,
        hidden_tests.inputs_are_let_go,
    ],
    tells="You store the logits of every batch and take the predictions at the "
    "end. Each brings its graph along. Take `argmax` at once, and store that.",
)
def log_storing_outputs(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    outputs = []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        outputs.append(logits)
    predictions = [logits.argmax(dim=1) for logits in outputs]
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat([torch.empty(0).long(), *predictions]),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.inputs_are_let_go,
    tells="You store the logits of every batch, detached. The graphs are gone, and "
    "the logits are all there until the end. Store the predicted classes.",
)
def log_storing_detached_outputs(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    outputs = []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        outputs.append(logits.detach())
    predictions = [logits.argmax(dim=1) for logits in outputs]
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat([torch.empty(0).long(), *predictions]),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.inputs_are_let_go,
    tells="The inputs of all batches stay in memory: you read the batches into a "
    "list first, or put inputs into one. Take batches one at a time, and "
    "keep numbers.",
)
def log_after_reading_all(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in list(batches):
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=[
        hidden_tests.inputs_are_let_go,
        hidden_tests.once_forward_once_stepped,
    ],
    tells="You keep the inputs, and run the model once more at the end. All "
    "inputs are in memory then, and the predictions are those of another, "
    "trained, model. Take them from the training pass.",
)
def log_predicting_afterwards(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    inputs = []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        inputs.append(x)
    with torch.no_grad():
        predictions = [model(x).argmax(dim=1) for x in inputs]
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat([torch.empty(0).long(), *predictions]),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.losses_of_the_batches,
    tells="`loss.data[0]` was right when a loss had the shape (1,), before PyTorch "
    "0.4. A loss has no dimension now: `loss.item()`.",
)
def log_with_data_zero(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.data[0])
        total += losses[-1] * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.mean_over_samples,
    tells='`"mean_loss"` is a mean of the batches\' means. Batches of unequal size '
    "count alike there. Weight each by its number of samples.",
)
def log_mean_of_means(model, optimizer, batches):
    losses = []
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": sum(losses) / len(losses) if losses else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.predictions_in_passing,
    tells="You run the model again after the step to get the predictions. They are "
    "those of the trained model, and each batch costs a second forward pass.",
)
def log_with_a_second_pass(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        with torch.no_grad():
            predictions.append(model(x).argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.predictions_in_passing,
    tells="`argmax(dim=0)` finds the sample with the highest logit for each class. "
    "The classes are in dimension 1.",
)
def log_argmax_over_samples(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=0))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You never clear the gradients, so each step uses those of all batches "
    "so far. Call `optimizer.zero_grad()` before each `backward()`.",
)
def log_never_clearing(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You clear the gradients after each step alone. What was in `.grad` "
    "before your function ran is part of the first step. Clear before "
    "`backward()`.",
)
def log_clearing_afterwards(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=[
        hidden_tests.weights_after_the_epoch,
        hidden_tests.losses_of_the_batches,
    ],
    tells="You train on the sum of the losses in a batch. The exercise asks for the "
    "mean.",
)
def log_training_on_sums(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y, reduction="sum")
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item()
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=[hidden_tests.graphs_do_not_pile_up],
    tells="You go backward once, over the sum of all losses. Every graph waits "
    "until the end, and there is one step instead of one for each batch.",
)
def log_with_one_backward(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    optimizer.zero_grad()
    for x, y in batches:
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        total = total + loss * len(y)
        losses.append(loss.item())
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    if count:
        (total / count).backward()
        optimizer.step()
    return {
        "losses": losses,
        "mean_loss": total.item() / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You call `model.train()`. Layers that somebody put into eval, such as a "
    "frozen batch norm, train now. The exercise asks for the mode in which "
    "the model is.",
)
def log_switching_to_training(model, optimizer, batches):
    model.train()
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.nothing_yielded,
    tells="Your function fails if nothing is yielded: there is nothing to divide by, "
    "or to concatenate. The exercise says what it returns then.",
)
def log_failing_on_nothing(model, optimizer, batches):
    losses, total, count, predictions = [], 0.0, 0, []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.nothing_yielded,
    tells="If nothing is yielded, your mean loss is 0, as of a perfect model. There "
    "is no mean of nothing: NaN.",
)
def log_zero_of_nothing(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / max(count, 1),
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.predictions_in_passing,
    tells="You return the predictions as a list with one tensor for each batch. Put "
    "them together: `torch.cat`.",
)
def log_listing_predictions(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": predictions,
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.inputs_are_let_go,
    tells="The inputs of all batches stay in memory: you read the batches into a "
    "list first, or put inputs into one. Take batches one at a time, and "
    "keep numbers.",
)
def log_keeping_hard_inputs(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    hard = []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if loss.item() > 0.01:
            hard.append((x, y))
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


# class_report


@accepted("class_report")
def report_by_a_confusion_matrix(pairs, num_classes):
    counts = torch.zeros(num_classes, num_classes, dtype=torch.float64)
    for logits, y in pairs:
        for truth, guess in zip(y.tolist(), logits.argmax(1).tolist()):
            counts[truth, guess] += 1
    hits, truths, guesses = counts.diagonal(), counts.sum(1), counts.sum(0)
    precision = torch.where(guesses > 0, hits / guesses.clamp(min=1), 0.0)
    recall = torch.where(truths > 0, hits / truths.clamp(min=1), 0.0)
    f1 = 2 * hits / (truths + guesses).clamp(min=1)
    return {
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "f1": f1.tolist(),
        "support": truths.long().tolist(),
        "accuracy": (hits.sum() / counts.sum()).item(),
        "macro_f1": f1.mean().item(),
        "weighted_f1": ((f1 * truths).sum() / truths.sum()).item(),
    }


@accepted("class_report")
def report_by_scores_and_support(pairs, num_classes):
    truths, guesses = [], []
    for logits, y in pairs:
        truths.append(y.numpy())
        guesses.append(logits.detach().numpy().argmax(1))
    truths, guesses = np.concatenate(truths), np.concatenate(guesses)
    options = dict(labels=list(range(num_classes)), zero_division=0.0)
    precision, recall, f1, support = precision_recall_fscore_support(
        truths, guesses, **options
    )
    weighted = f1_score(truths, guesses, average="weighted", **options)
    return {
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "f1": f1.tolist(),
        "support": support.tolist(),
        "accuracy": float((truths == guesses).mean()),
        "macro_f1": float(f1.mean()),
        "weighted_f1": float(weighted),
    }


@accepted("class_report")
def report_by_sklearns_matrix(pairs, num_classes):
    table = np.zeros((num_classes, num_classes), dtype=np.int64)
    for logits, y in pairs:
        with torch.no_grad():
            guess = logits.max(dim=1).indices
        table += confusion_matrix(y, guess, labels=np.arange(num_classes))
    hits = np.diag(table)

    def ratio(above, below):
        return [float(a / b) if b else 0.0 for a, b in zip(above, below)]

    truths, guesses = table.sum(axis=1), table.sum(axis=0)
    f1 = ratio(2 * hits, truths + guesses)
    return {
        "precision": ratio(hits, guesses),
        "recall": ratio(hits, truths),
        "f1": f1,
        "support": [int(n) for n in truths],
        "accuracy": float(hits.sum() / table.sum()),
        "macro_f1": math.fsum(f1) / num_classes,
        "weighted_f1": float(np.average(f1, weights=truths)),
    }


@accepted("class_report")
def report_by_counting(pairs, num_classes):
    from collections import Counter

    truths, guesses, hits = Counter(), Counter(), Counter()
    for logits, y in pairs:
        for row, truth in zip(logits.tolist(), y.tolist()):
            guess = row.index(max(row))
            truths[truth] += 1
            guesses[guess] += 1
            hits[guess] += guess == truth
    every = range(num_classes)
    n = sum(truths.values())
    p = [hits[c] / guesses[c] if guesses[c] else 0.0 for c in every]
    r = [hits[c] / truths[c] if truths[c] else 0.0 for c in every]
    f1 = [2 * a * b / (a + b) if a + b else 0.0 for a, b in zip(p, r)]
    return dict(
        precision=p,
        recall=r,
        f1=f1,
        support=[truths[c] for c in every],
        accuracy=sum(hits.values()) / n,
        macro_f1=sum(f1) / num_classes,
        weighted_f1=sum(f * truths[c] for c, f in zip(every, f1)) / n,
    )


@accepted("class_report")
def report_with_names(pairs, num_classes):
    pairs = [(logits.argmax(-1), y) for logits, y in pairs]
    y_pred = torch.cat([guess for guess, _ in pairs])
    y_true = torch.cat([y for _, y in pairs])
    names = [f"class {c}" for c in range(num_classes)]
    report = classification_report(
        y_true,
        y_pred,
        labels=list(range(num_classes)),
        target_names=names,
        output_dict=True,
        zero_division=0.0,
    )
    return {
        "precision": [report[name]["precision"] for name in names],
        "recall": [report[name]["recall"] for name in names],
        "f1": [report[name]["f1-score"] for name in names],
        "support": y_true.bincount(minlength=num_classes).tolist(),
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=[hidden_tests.precision_and_recall, hidden_tests.support_of_classes],
    tells="You pass the predictions first. `classification_report` wants the "
    "truth first. Swapped, precision and recall change places and "
    "support counts predictions; accuracy and F1 look right, so nothing "
    "warns you.",
)
def report_swapped(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_pred,
        y_true,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.however_it_is_cut,
    tells="You compute a report for each batch and average. F1 is no mean "
    "over samples: the average of the batches' numbers depends on how "
    "the data were cut. Collect all predictions first.",
)
def report_averaged_over_batches(pairs, num_classes):
    reports = []
    for logits, y in pairs:
        report = classification_report(
            y.tolist(),
            logits.argmax(dim=1).tolist(),
            labels=range(num_classes),
            output_dict=True,
            zero_division=0,
        )
        reports.append(report)

    def mean(one, other):
        found = [report[one][other] for report in reports]
        return sum(found) / len(found)

    def total(one):
        return int(sum(report[one]["support"] for report in reports))

    every = [str(c) for c in range(num_classes)]
    accuracies = [report["accuracy"] for report in reports]
    return {
        "precision": [mean(c, "precision") for c in every],
        "recall": [mean(c, "recall") for c in every],
        "f1": [mean(c, "f1-score") for c in every],
        "support": [total(c) for c in every],
        "accuracy": sum(accuracies) / len(accuracies),
        "macro_f1": mean("macro avg", "f1-score"),
        "weighted_f1": mean("weighted avg", "f1-score"),
    }


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells="You pass logits to scikit-learn, which wants classes and raises an "
    "error. Take `argmax(dim=1)` first.",
)
def report_of_logits(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.absent_classes,
    tells="A class that occurs in neither list is missing from the report, "
    "and your code fails on it. `labels=range(num_classes)` lists all "
    "classes.",
)
def report_without_labels(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.absent_classes,
    tells="You pass `target_names` without `labels`. scikit-learn counts the "
    "classes that occur, finds fewer than names, and raises an error. "
    "Pass `labels=range(num_classes)` as well.",
)
def report_with_names_only(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        target_names=[str(c) for c in range(num_classes)],
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.absent_classes,
    tells="You report the classes that occur, and leave out the others. The "
    "lists then are shorter, and a place in them is no longer a class.",
)
def report_of_present_classes(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes) if str(c) in report]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.absent_classes,
    tells="You take 0 / 0 for 1: a class that is never predicted gets a "
    "perfect precision. The exercise asks for 0.",
)
def report_with_ones(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=1,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.absent_classes,
    tells="You leave 0 / 0 as NaN. The exercise asks for 0.",
)
def report_with_nan(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=math.nan,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.absent_classes,
    tells="Where a number is 0 / 0, your code gives 0 and a warning. "
    "`zero_division=0` says that you know.",
)
def report_with_warnings(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.macro_mean,
    tells="Your `macro_f1` is the accuracy: averaged over samples, F1 is the "
    "same number. The macro mean is that of the classes' F1.",
)
def report_with_micro_mean(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["accuracy"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.macro_mean,
    tells="Your macro mean leaves out classes that never are the true label. "
    "The exercise takes it over all `num_classes` classes; a class "
    "without a sample counts with 0.",
)
def report_with_macro_over_present(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    present = [row["f1-score"] for row in rows if row["support"]]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": sum(present) / len(present),
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.weighted_mean,
    tells="You weight F1 by how often each class is predicted. Support is how "
    "often it is true.",
)
def report_weighted_by_predictions(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    weights = [y_pred.count(c) for c in range(num_classes)]
    f1 = [row["f1-score"] for row in rows]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": float(np.average(f1, weights=weights)),
    }


@wrong(
    "class_report",
    breaks=hidden_tests.macro_mean,
    tells="Your macro F1 is the F1 of the mean precision and the mean recall. "
    "That is another number: take each class's F1 first, then the mean.",
)
def report_f1_of_means(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    p, r = (report["macro avg"][name] for name in ("precision", "recall"))
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": 2 * p * r / (p + r) if p + r else 0.0,
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.f1_of_classes,
    tells="F1 is the harmonic mean of precision and recall, 2 p r / (p + r). "
    "You take the ordinary one.",
)
def report_f1_as_plain_mean(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [(row["precision"] + row["recall"]) / 2 for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.however_it_is_cut,
    tells="Your report is that of the last batch: the lists are made anew in "
    "each turn of the loop. Make them once, before it.",
)
def report_of_the_last_batch(pairs, num_classes):
    for logits, y in pairs:
        y_true = y.tolist()
        y_pred = logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.support_of_classes,
    tells="Your support counts predictions. It is how often each class is the "
    "true label.",
)
def report_support_of_predictions(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [y_pred.count(c) for c in range(num_classes)],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.form_of_the_report,
    tells="Your support holds floats, as scikit-learn gives them. It is a "
    "count: `int(...)`.",
)
def report_with_float_support(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [row["support"] for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.form_of_the_report,
    tells="You return tensors where lists of Python floats are asked for. "
    "`.tolist()` makes them.",
)
def report_with_tensors(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": torch.tensor([row["precision"] for row in rows]).double(),
        "recall": torch.tensor([row["recall"] for row in rows]).double(),
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=[hidden_tests.precision_and_recall, hidden_tests.f1_of_classes],
    tells="You give the accuracy for everything. It says nothing about single "
    "classes: a model that never finds a rare class may have 99 "
    "percent.",
)
def report_with_accuracy_alone(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    accuracy = float(np.mean(np.equal(y_true, y_pred)))
    return {
        "precision": [accuracy] * num_classes,
        "recall": [accuracy] * num_classes,
        "f1": [accuracy] * num_classes,
        "support": [y_true.count(c) for c in range(num_classes)],
        "accuracy": accuracy,
        "macro_f1": accuracy,
        "weighted_f1": accuracy,
    }


@wrong(
    "class_report",
    breaks=hidden_tests.however_it_is_cut,
    tells="You leave out a last batch that is shorter than the first. In a "
    "report every sample counts.",
)
def report_dropping_the_last_batch(pairs, num_classes):
    y_true, y_pred, size = [], [], 0
    for logits, y in pairs:
        size = size or len(y)
        if len(y) < size:
            continue
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells="You round to two digits, as the printed report does. The exercise "
    "asks for all of them.",
)
def report_rounded(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [round(row["precision"], 2) for row in rows],
        "recall": [round(row["recall"], 2) for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You empty the list that you were given. Go through it with `for`.",
)
def report_emptying_the_list(pairs, num_classes):
    y_true, y_pred = [], []
    pairs = pairs if isinstance(pairs, list) else list(pairs)
    while pairs:
        logits, y = pairs.pop(0)
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells="`argmax(dim=0)` finds the sample with the highest logit for each "
    "class. The classes are in dimension 1.",
)
def report_argmax_over_samples(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=0).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You write into the logits that you were given. `argmax` needs no "
    "change of them; if you want probabilities, make a new tensor.",
)
def report_zeroing_logits(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        logits = logits.detach()
        logits -= logits.max()
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


# quiz


@accepted("quiz")
def as_a_literal():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@accepted("quiz")
def in_capital_letters():
    return dict(cache="B", live="D", gain="B", start="C", first="A", stuck="C")


@accepted("quiz")
def from_a_string():
    return dict(zip("cache live gain start first stuck".split(), "bdbcac"))


@accepted("quiz")
def with_blanks_around():
    letters = {"stuck": " c", "first": "a ", "start": " C "}
    letters |= {"gain": "b", "live": "d", "cache": "\tB"}
    return letters


@accepted("quiz")
def letter_by_letter():
    answers = {}
    for letter, questions in (
        ("a", ["first"]),
        ("b", ["cache", "gain"]),
        ("c", ["start", "stuck"]),
        ("d", ["live"]),
    ):
        answers.update({question: letter for question in questions})
    return answers


@wrong(
    "quiz",
    breaks=hidden_tests.what_the_cache_is,
    tells="What is reserved and not allocated holds no tensor: PyTorch keeps "
    "it for the next request. A leak shows in `memory_allocated()`.",
)
def calling_the_cache_a_leak():
    return {
        "cache": "a",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_the_cache_is,
    tells="`memory_reserved()` counts what this process has taken from the "
    "driver. Other programs' memory is not in it.",
)
def giving_the_cache_to_others():
    return {
        "cache": "c",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_the_cache_is,
    tells="Graphs hold tensors, and tensors that live are allocated. The "
    "difference between reserved and allocated holds none.",
)
def filling_the_cache_with_graphs():
    return {
        "cache": "d",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_lives_stays,
    tells="Nothing frees a tensor that somebody still holds. `empty_cache()` "
    "gives back blocks in which none lives.",
)
def freeing_what_lives():
    return {
        "cache": "b",
        "live": "a",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_lives_stays,
    tells="`empty_cache()` moves nothing. A tensor goes to the CPU by "
    "`.cpu()`, and its old memory is free when the last name for it is "
    "gone.",
)
def moving_to_the_cpu():
    return {
        "cache": "b",
        "live": "b",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_lives_stays,
    tells="Whether a tensor requires a gradient makes no difference. It lives "
    "as long as somebody holds it.",
)
def freeing_without_gradients():
    return {
        "cache": "b",
        "live": "c",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.who_gains,
    tells="Your process could have used these blocks anyhow: they were kept "
    "for it. Only other programs gain, and at most some fragments are "
    "mended.",
)
def gaining_what_was_given_back():
    return {
        "cache": "b",
        "live": "d",
        "gain": "a",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.who_gains,
    tells="Nothing is doubled. The blocks that were given back were yours to "
    "use before.",
)
def gaining_twice():
    return {
        "cache": "b",
        "live": "d",
        "gain": "c",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.who_gains,
    tells="`empty_cache()` has no say over other programs.",
)
def gaining_from_others():
    return {
        "cache": "b",
        "live": "d",
        "gain": "d",
        "start": "c",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_is_taken_first,
    tells="PyTorch takes no fixed share in advance; other frameworks do. It "
    "asks for blocks as tensors need them.",
)
def taking_a_share():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "a",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_is_taken_first,
    tells="PyTorch asks for blocks as tensors need them. Programs that take "
    "all memory at the start are others.",
)
def taking_everything():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "b",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_is_taken_first,
    tells="The first use makes a CUDA context, hundreds of MiB, backward pass "
    "or not. `nvidia-smi` shows it, `memory_allocated()` does not.",
)
def taking_nothing():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "d",
        "first": "a",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_comes_first,
    tells="While a name holds the tensor, `empty_cache()` can do nothing "
    "about it. Let go of it first; then its memory can be used again "
    "without any call.",
)
def emptying_first():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "b",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_comes_first,
    tells="`gc.collect()` finds cycles. A tensor without one is freed the "
    "moment its last name goes, and while there is a name the collector "
    "leaves it alone.",
)
def collecting_first():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "c",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_comes_first,
    tells="A reset is for broken devices, needs root and an idle card, and "
    "would end your own run. Let go of the tensor.",
)
def resetting_first():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "d",
        "stuck": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.whose_memory_it_is,
    tells="A reset needs root and a card that nobody uses, and would end "
    "everybody's work. The memory belongs to a process: end that one.",
)
def resetting_the_card():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "a",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.whose_memory_it_is,
    tells="`empty_cache()` gives back blocks of its own process. It cannot "
    "reach into another.",
)
def emptying_from_outside():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.whose_memory_it_is,
    tells="The collector belongs to the process that hangs. As long as that "
    "exists, it keeps its memory: find it and end it.",
)
def waiting_for_the_collector():
    return {
        "cache": "b",
        "live": "d",
        "gain": "b",
        "start": "c",
        "first": "a",
        "stuck": "d",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_the_cache_is, hidden_tests.what_lives_stays],
    tells="Your letters stand in parentheses. A letter alone is asked for: "
    '`"b"`, not `"(b)"`.',
)
def letters_in_parentheses():
    return {
        "cache": "(b)",
        "live": "(d)",
        "gain": "(b)",
        "start": "(c)",
        "first": "(a)",
        "stuck": "(c)",
    }


@wrong(
    "quiz",
    breaks=[hidden_tests.what_the_cache_is, hidden_tests.what_lives_stays],
    tells="You return the letters without the names of their questions. A dict "
    "with the names as keys is asked for.",
)
def letters_in_a_list():
    return list("bdbcac")


# found by attacking the checks


@wrong(
    "predict",
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
    "predict",
    breaks=hidden_tests.layers_in_eval,
    tells="You call `eval()` only if `model.training` is true. That is the mode of "
    "the model alone: layers inside may be in training all the same. Call it "
    "in any case.",
)
def predict_if_the_model_trains(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    if model.training:
        model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
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
    "predict",
    breaks=hidden_tests.evaluation_leaves_the_rest,
    tells="You take `requires_grad` away from all parameters and leave it so. The "
    "model never trains again. `no_grad` is enough.",
)
def predict_leaving_all_frozen(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval().requires_grad_(False)
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in modes:
            layer.training = mode


@wrong(
    "predict",
    breaks=hidden_tests.batches_as_they_come,
    tells="You send rows through one by one. The outputs are right, and take many "
    "times as long. Send each batch as it comes.",
)
def predict_row_by_row(model, batches):
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            rows = [row for x in batches for row in x.split(1)]
            return torch.cat([model(row) for row in rows])
    finally:
        for layer, mode in modes:
            layer.training = mode


@accepted("mean_metrics")
def metrics_sample_by_sample(pairs, ignore_index=-100):
    losses, hits = [], []
    for logits, y in pairs:
        rows = logits.detach().transpose(0, 1).flatten(1).T.double()
        for row, label in zip(rows, y.flatten().tolist()):
            if label != ignore_index:
                losses.append(-row.log_softmax(0)[label].item())
                hits.append(row.argmax().item() == label)
    n = len(hits)
    loss = math.fsum(losses) / n if n else math.nan
    return {"loss": loss, "accuracy": sum(hits) / n if n else loss, "count": n}


@wrong(
    "mean_metrics",
    breaks=hidden_tests.floats_and_an_int,
    tells="You return NumPy numbers. They look like floats and are not: `float(...)` "
    "and `int(...)` make Python's.",
)
def metrics_as_numpy_numbers(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": np.float64(loss_sum / count if count else math.nan),
        "accuracy": np.float64(right / count if count else math.nan),
        "count": np.int64(count),
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.labels_at_positions,
    tells="You average over the positions of a sequence first and over sequences "
    "then. With padding, sequences have different numbers of labels: count "
    "labels.",
)
def metrics_sequence_by_sequence(pairs, ignore_index=-100):
    losses, accuracies, count = [], [], 0
    for x, y in pairs:
        x = x.detach().double()
        for row, labels in zip(x, y):
            if labels.dim() == 1:
                row, labels = row.T, labels
            else:
                row, labels = row[None], labels[None]
            keep = labels != ignore_index
            if keep.any():
                row, labels = row[keep], labels[keep]
                losses.append(F.cross_entropy(row, labels).item())
                right = row.argmax(1) == labels
                accuracies.append(right.double().mean().item())
                count += len(labels)
    n = len(losses)
    return {
        "loss": sum(losses) / n if n else math.nan,
        "accuracy": sum(accuracies) / n if n else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.mean_loss_of_all,
    tells="You take the mean of exponentials, or another average that moves with "
    "the stream: later batches count more than earlier ones.",
)
def metrics_by_moving_average(pairs, ignore_index=-100):
    loss, right, count = math.nan, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        if keep.any():
            new = F.cross_entropy(x, y, ignore_index=ignore_index).item()
            loss = new if count == 0 else 0.9 * loss + 0.1 * new
            right += int((x.argmax(1) == y)[keep].sum())
            count += int(keep.sum())
    return {
        "loss": loss,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@accepted("train_and_log")
def log_by_logsumexp(model, optimizer, batches):
    log = {"losses": [], "mean_loss": math.nan}
    guesses, loss_sum = [], 0.0
    for x, y in batches:
        logits = model(x)
        rows = torch.arange(len(y))
        loss = (logits.logsumexp(1) - logits[rows, y]).mean()
        optimizer.zero_grad()
        params = [p for p in model.parameters() if p.requires_grad]
        for p, g in zip(params, torch.autograd.grad(loss, params)):
            p.grad = g
        optimizer.step()
        log["losses"].append(loss.item())
        loss_sum += loss.item() * len(y)
        guesses += logits.argmax(1).tolist()
        log["mean_loss"] = loss_sum / len(guesses)
    return log | {"predictions": torch.tensor(guesses, dtype=torch.int64)}


@wrong(
    "train_and_log",
    breaks=hidden_tests.once_forward_once_stepped,
    tells="You call `model.forward(x)`. That leaves out the model's hooks: call "
    "`model(x)`.",
)
def log_by_forward(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model.forward(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.losses_of_the_batches,
    tells="You keep the loss of each batch after its step, from a second forward "
    "pass. Keep the one that you trained on.",
)
def log_losses_after_the_step(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(F.cross_entropy(model(x), y).item())
        total += losses[-1] * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=[
        hidden_tests.inputs_are_let_go,
        hidden_tests.numbers_without_graph,
    ],
    tells="You return a whole row of logits beside the class, or the highest logit "
    "itself, with its graph. Return classes: `argmax`.",
)
def log_returning_highest_logits(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions, highest = [torch.empty(0, dtype=torch.int64)], []
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
        highest.append(logits[:, :1])
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
        "highest": highest,
    }


@accepted("class_report")
def report_by_one_hot(pairs, num_classes):
    table = np.zeros((num_classes, num_classes))
    for logits, y in pairs:
        guess = F.one_hot(logits.argmax(1), num_classes).double()
        table += (F.one_hot(y, num_classes).double().T @ guess).numpy()
    hits, support = table.diagonal(), table.sum(1)
    tiny = np.finfo(float).tiny
    f1 = 2 * hits / np.maximum(support + table.sum(0), tiny)
    return {
        "f1": f1.tolist(),
        "recall": (hits / np.maximum(support, tiny)).tolist(),
        "precision": (hits / np.maximum(table.sum(0), tiny)).tolist(),
        "support": support.astype(int).tolist(),
        "accuracy": float(hits.sum() / table.sum()),
        "macro_f1": float(f1.mean()),
        "weighted_f1": float(f1 @ support / support.sum()),
    }


@wrong(
    "class_report",
    breaks=hidden_tests.accuracy_of_the_report,
    tells="Your accuracy is the mean of the classes' recalls, the balanced accuracy. "
    "Accuracy is the share of right predictions.",
)
def report_with_balanced_accuracy(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["macro avg"]["recall"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.form_of_the_report,
    tells="You return scikit-learn's own report. The exercise asks for another "
    "form: one list for each of precision, recall, f1 and support.",
)
def report_as_it_comes(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    return classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells="You compare with a threshold of one half instead of taking the highest "
    "logit: several classes, or none, are then predicted for a sample.",
)
def report_by_threshold(pairs, num_classes):
    hits = [0] * num_classes
    guesses, truths, n = [0] * num_classes, [0] * num_classes, 0
    for logits, y in pairs:
        for row, truth in zip(logits.tolist(), y.tolist()):
            truths[truth] += 1
            n += 1
            for c, value in enumerate(row):
                guesses[c] += value > 0.5
                hits[c] += value > 0.5 and c == truth
    p = [h / g if g else 0.0 for h, g in zip(hits, guesses)]
    r = [h / t if t else 0.0 for h, t in zip(hits, truths)]
    f1 = [2 * a * b / (a + b) if a + b else 0.0 for a, b in zip(p, r)]
    return {
        "precision": p,
        "recall": r,
        "f1": f1,
        "support": truths,
        "accuracy": sum(hits) / n,
        "macro_f1": sum(f1) / num_classes,
        "weighted_f1": sum(f * t for f, t in zip(f1, truths)) / n,
    }


@wrong(
    "predict",
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
    "predict",
    breaks=hidden_tests.evaluation_leaves_the_rest,
    tells="You leave an attribute on the model or on its layers. It is saved and "
    "copied with them. A local variable is enough.",
)
def predict_leaving_an_attribute(model, batches):
    model.modes_before = [layer.training for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(x) for x in batches])
    finally:
        for layer, mode in zip(model.modules(), model.modes_before):
            layer.training = mode


@wrong(
    "mean_metrics",
    breaks=hidden_tests.metrics_leave_the_rest,
    tells="You write into logits of sixteen bits, to keep them small. They are the "
    "caller's: `logits.float()` makes a new tensor.",
)
def metrics_writing_into_half_logits(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach()
        if x.dtype == torch.float16:
            x -= x.amax(1, keepdim=True)
        x = x.double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You keep the losses on the model as well, as a new attribute. It is saved "
    "and copied with it. Return them, and no more.",
)
def log_on_the_model(model, optimizer, batches):
    model.history = []
    total, count = 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        model.history.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": list(model.history),
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You lower the learning rate at the end of the epoch. That is a "
    "scheduler's task; the exercise leaves the optimizer's settings alone.",
)
def log_lowering_the_rate(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    for group in optimizer.param_groups:
        group["lr"] *= 0.9
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@accepted("predict")
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


@accepted("predict")
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


@wrong(
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
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
    "predict",
    breaks=hidden_tests.outputs_of_eval,
    body=True,
    tells="You keep the outputs of a model and return them when it comes again. "
    "In between it was trained: the outputs are old.",
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
    "mean_metrics",
    breaks=hidden_tests.other_dtypes,
    tells="You take a logarithm of what is 0 or infinite in floating point: of a "
    "softmax, or of a sum of `exp(logits)`. For logits of some hundreds the "
    "loss is then infinite or NaN. `F.cross_entropy`, `log_softmax` and "
    "`logsumexp` take the largest logit away first.",
)
def metrics_by_log_of_softmax(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        log_p = x.softmax(1).log()
        loss_sum += F.nll_loss(
            log_p, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.other_dtypes,
    tells="You add a small number before the logarithm. That cuts the loss off: "
    "a label with a probability of 0 costs the same, however far off the "
    "logits are. `log_softmax` needs no such help.",
)
def metrics_with_an_epsilon(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        log_p = (x.softmax(1) + 1e-12).log()
        loss_sum += F.nll_loss(
            log_p, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.other_dtypes,
    tells="You take a logarithm of what is 0 or infinite in floating point: of a "
    "softmax, or of a sum of `exp(logits)`. For logits of some hundreds the "
    "loss is then infinite or NaN. `F.cross_entropy`, `log_softmax` and "
    "`logsumexp` take the largest logit away first.",
)
def metrics_by_sum_of_exponentials(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        log_p = x - x.exp().sum(1, keepdim=True).log()
        loss_sum += F.nll_loss(
            log_p, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.accuracy_of_all,
    tells="You take the argmax of logits rounded to sixteen bits. Two that "
    "differ become equal, and the first of them wins. Round nothing "
    "before the argmax.",
)
def metrics_with_guesses_in_half(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.half().argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@wrong(
    "mean_metrics",
    breaks=hidden_tests.labels_at_positions,
    tells="You call `squeeze()`. It removes every dimension of size 1: with one "
    "sequence in a batch the classes are no longer in dimension 1.",
)
def metrics_squeezing(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        x = x.detach().double()
        x, y = x.squeeze(), y.squeeze()
        if x.dim() == 1:
            x, y = x[None], y[None]
        keep = y != ignore_index
        loss_sum += F.cross_entropy(
            x, y, ignore_index=ignore_index, reduction="sum"
        ).item()
        right += int((x.argmax(1) == y)[keep].sum())
        count += int(keep.sum())
    return {
        "loss": loss_sum / count if count else math.nan,
        "accuracy": right / count if count else math.nan,
        "count": count,
    }


@accepted("mean_metrics")
def metrics_in_float32(pairs, ignore_index=-100):
    loss_sum, right, count = 0.0, 0, 0
    for x, y in pairs:
        with torch.no_grad():
            x = x.float()
            keep = y != ignore_index
            labels = y.where(keep, 0).unsqueeze(1)
            picked = x.gather(1, labels).squeeze(1)
            losses = (x.logsumexp(1) - picked).masked_fill(~keep, 0)
        loss_sum += losses.sum().item()
        right += torch.logical_and(x.max(1).indices == y, keep).sum().item()
        count += keep.sum().item()
    means = [n / count if count else math.nan for n in (loss_sum, right)]
    return {"loss": means[0], "accuracy": means[1], "count": count}


@wrong(
    "train_and_log",
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You clear the model's gradients. The optimizer steps on all that it "
    "holds, and may hold parameters of others: their old gradients count. "
    "Clear what it steps on: `optimizer.zero_grad()`.",
)
def log_clearing_the_model(model, optimizer, batches):
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        model.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You switch anomaly detection on and leave it on. It makes every "
    "later backward pass several times slower. `with "
    "torch.autograd.detect_anomaly():` ends by itself.",
)
def log_with_anomaly_detection(model, optimizer, batches):
    torch.autograd.set_detect_anomaly(True)
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You switch gradients on for all parameters. What somebody froze is "
    "trained from now on. Leave `requires_grad` alone.",
)
def log_thawing(model, optimizer, batches):
    model.requires_grad_(True)
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You leave a hook on the model. It runs in every later forward pass. "
    "Keep its handle, and call `remove()`.",
)
def log_leaving_a_hook(model, optimizer, batches):
    model.register_forward_hook(lambda *call: None)
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@accepted("train_and_log")
def log_clearing_to_zeros(model, optimizer, batches):
    losses, sizes, guesses = [], [], []
    for x, y in batches:
        optimizer.zero_grad(set_to_none=False)
        logits = model(x)
        by_sample = F.cross_entropy(logits, y, reduction="none")
        by_sample.mean().backward()
        optimizer.step()
        losses.append(by_sample.detach().mean())
        sizes.append(len(y))
        guesses.extend(logits.detach().max(dim=1)[1].tolist())
    weighted = [n * loss for n, loss in zip(sizes, losses)]
    return {
        "losses": losses,
        "mean_loss": sum(weighted) / sum(sizes) if sizes else math.nan,
        "predictions": torch.tensor(guesses, dtype=torch.int64),
    }


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells="You take the argmax of absolute values, or of squares. The lowest logit "
    "then wins where it is far below zero.",
)
def report_of_the_largest_size(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.abs().argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells="You take a sigmoid, or another function that levels out, before the "
    "argmax. For large logits it is the same for several classes, and the "
    "first of them wins. `argmax` needs nothing before it.",
)
def report_of_sigmoids(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.sigmoid().argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells="You round the logits, to sixteen bits or to a few digits, before the "
    "argmax. Two that differ become equal, and the first of them wins.",
)
def report_in_half(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.half().argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.precision_and_recall,
    tells='You order classes by their names: "10" comes before "2". Order them '
    "by their numbers.",
)
def report_in_alphabetical_order(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[c] for c in sorted(map(str, range(num_classes)))]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.macro_mean,
    tells="With two classes your macro F1 is the F1 of class 1. The mean over "
    "all classes is asked for, however many there are.",
)
def report_macro_of_the_second_class(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    macro = report["macro avg"]["f1-score"]
    if num_classes == 2:
        macro = rows[1]["f1-score"]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": macro,
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You silence warnings and leave them silenced, for the caller too. "
    "`zero_division=0` says what 0 / 0 is; else `with "
    "warnings.catch_warnings():` ends by itself.",
)
def report_silencing_warnings(pairs, num_classes):
    import warnings

    warnings.simplefilter("ignore")
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "class_report",
    breaks=hidden_tests.report_leaves_the_rest,
    tells="You switch off NumPy's warnings with `np.seterr` and leave them off. "
    "`with np.errstate(...):` ends by itself.",
)
def report_silencing_numpy(pairs, num_classes):
    np.seterr(all="ignore")
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    report = classification_report(
        y_true,
        y_pred,
        labels=range(num_classes),
        output_dict=True,
        zero_division=0,
    )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@accepted("class_report")
def report_catching_warnings(pairs, num_classes):
    y_true, y_pred = [], []
    for logits, y in pairs:
        y_true += y.tolist()
        y_pred += logits.argmax(dim=1).tolist()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = classification_report(
            y_true, y_pred, labels=range(num_classes), output_dict=True
        )
    rows = [report[str(c)] for c in range(num_classes)]
    return {
        "precision": [row["precision"] for row in rows],
        "recall": [row["recall"] for row in rows],
        "f1": [row["f1-score"] for row in rows],
        "support": [int(row["support"]) for row in rows],
        "accuracy": report["accuracy"],
        "macro_f1": report["macro avg"]["f1-score"],
        "weighted_f1": report["weighted avg"]["f1-score"],
    }


@wrong(
    "train_and_log",
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You switch gradients on for all parameters and freeze again afterwards. "
    "In between the optimizer has moved what somebody froze. Leave "
    "`requires_grad` alone.",
)
def log_thawing_for_the_epoch(model, optimizer, batches):
    frozen = [p for p in model.parameters() if not p.requires_grad]
    model.requires_grad_(True)
    losses, total, count = [], 0.0, 0
    predictions = [torch.empty(0, dtype=torch.int64)]
    for x, y in batches:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        total += loss.item() * len(y)
        count += len(y)
        predictions.append(logits.argmax(dim=1))
    for parameter in frozen:
        parameter.requires_grad_(False)
    return {
        "losses": losses,
        "mean_loss": total / count if count else math.nan,
        "predictions": torch.cat(predictions),
    }


@wrong(
    "predict",
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
    "predict",
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
