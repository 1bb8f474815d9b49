"""Answers to `train_and_log` of chapter 11."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
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


@accepted()
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


@accepted(body=True)
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
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


@accepted()
def mended_log_switching_to_training(model, optimizer, batches):
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


log_adding_losses = edit(
    mended_log_switching_to_training,
    {"total += loss.item() * len(y)": "total += loss * len(y)"},
    breaks=[
        hidden_tests.graphs_do_not_pile_up,
        hidden_tests.numbers_without_graph,
    ],
    tells="`total += loss` adds up tensors with their graphs: each batch hangs one "
    "more graph onto the sum, until the epoch's end. Add `loss.item()` or "
    "`loss.detach()`.",
)

log_adding_losses_then_item = edit(
    mended_log_switching_to_training,
    {
        "total += loss.item() * len(y)": "total += loss * len(y)",
        '"mean_loss": total / count': '"mean_loss": float(total) / count',
    },
    breaks=hidden_tests.graphs_do_not_pile_up,
    tells="You keep losses with their graphs, in a sum or in a list, and make "
    "numbers of them at the end. Until then all graphs are there together. "
    "Make a number of each loss at once, or detach it.",
)

log_listing_losses = edit(
    mended_log_switching_to_training,
    {"losses.append(loss.item())": "losses.append(loss)"},
    breaks=[
        hidden_tests.graphs_do_not_pile_up,
        hidden_tests.numbers_without_graph,
    ],
    tells="You keep each loss as the tensor that it is, and with it its graph. A "
    "list of losses holds as many graphs as batches. Keep `loss.item()` or "
    "`loss.detach()`.",
)

log_detaching_at_the_end = edit(
    mended_log_switching_to_training,
    {
        "losses.append(loss.item())": "losses.append(loss)",
        '"losses": losses,': '"losses": [loss.detach() for loss in losses],',
    },
    breaks=hidden_tests.graphs_do_not_pile_up,
    tells="You keep losses with their graphs, in a sum or in a list, and make "
    "numbers of them at the end. Until then all graphs are there together. "
    "Make a number of each loss at once, or detach it.",
)


@wrong(
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


log_after_reading_all = edit(
    mended_log_switching_to_training,
    {"for x, y in batches:": "for x, y in list(batches):"},
    breaks=hidden_tests.inputs_are_let_go,
    tells="The inputs of all batches stay in memory: you read the batches into a "
    "list first, or put inputs into one. Take batches one at a time, and "
    "keep numbers.",
)


@wrong(
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


log_with_data_zero = edit(
    mended_log_switching_to_training,
    {
        """
        losses.append(loss.item())
        total += loss.item() * len(y)
        """: """
        losses.append(loss.data[0])
        total += losses[-1] * len(y)
        """,
    },
    breaks=hidden_tests.losses_of_the_batches,
    tells="`loss.data[0]` was right when a loss had the shape (1,), before PyTorch "
    "0.4. A loss has no dimension now: `loss.item()`.",
)

log_mean_of_means = edit(
    SOLUTION,
    {
        "losses, loss_sum, num_samples = [], 0.0, 0": "losses = []",
        """
        loss_sum += losses[-1] * len(y)
        num_samples += len(y)
        """: "",
        "loss_sum / num_samples if num_samples": "sum(losses) / len(losses) if losses",
    },
    breaks=hidden_tests.mean_over_samples,
    tells='`"mean_loss"` is a mean of the batches\' means. Batches of unequal size '
    "count alike there. Weight each by its number of samples.",
)

log_with_a_second_pass = edit(
    mended_log_switching_to_training,
    {
        """
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        """: "loss = F.cross_entropy(model(x), y)",
        "predictions.append(logits.argmax(dim=1))": """
        with torch.no_grad():
            predictions.append(model(x).argmax(dim=1))
        """,
    },
    breaks=hidden_tests.predictions_in_passing,
    tells="You run the model again after the step to get the predictions. They are "
    "those of the trained model, and each batch costs a second forward pass.",
)

log_argmax_over_samples = edit(
    mended_log_switching_to_training,
    {
        "predictions.append(logits.argmax(dim=1))": "predictions.append(logits.argmax(dim=0))",
    },
    breaks=hidden_tests.predictions_in_passing,
    tells="`argmax(dim=0)` finds the sample with the highest logit for each class. "
    "The classes are in dimension 1.",
)

log_never_clearing = edit(
    mended_log_switching_to_training,
    {"optimizer.zero_grad()": ""},
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You never clear the gradients, so each step uses those of all batches "
    "so far. Call `optimizer.zero_grad()` before each `backward()`.",
)

log_clearing_afterwards = edit(
    mended_log_switching_to_training,
    {
        "optimizer.zero_grad()": "",
        "optimizer.step()": """
        optimizer.step()
        optimizer.zero_grad()
        """,
    },
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You clear the gradients after each step alone. What was in `.grad` "
    "before your function ran is part of the first step. Clear before "
    "`backward()`.",
)

log_training_on_sums = edit(
    mended_log_switching_to_training,
    {
        "loss = F.cross_entropy(logits, y)": 'loss = F.cross_entropy(logits, y, reduction="sum")',
        "total += loss.item() * len(y)": "total += loss.item()",
    },
    breaks=[
        hidden_tests.weights_after_the_epoch,
        hidden_tests.losses_of_the_batches,
    ],
    tells="You train on the sum of the losses in a batch. The exercise asks for the "
    "mean.",
)


@wrong(
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


log_switching_to_training = edit(
    mended_log_switching_to_training,
    {
        "def mended_log_switching_to_training(model, optimizer, batches):": """
        def mended_log_switching_to_training(model, optimizer, batches):
            model.train()
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You call `model.train()`. Layers that somebody put into eval, such as a "
    "frozen batch norm, train now. The exercise asks for the mode in which "
    "the model is.",
)

log_failing_on_nothing = edit(
    mended_log_switching_to_training,
    {
        """
        losses, total, count = [], 0.0, 0
        predictions = [torch.empty(0, dtype=torch.int64)]
        """: "losses, total, count, predictions = [], 0.0, 0, []",
        "count if count else math.nan,": "count,",
    },
    breaks=hidden_tests.nothing_yielded,
    tells="Your function fails if nothing is yielded: there is nothing to divide by, "
    "or to concatenate. The exercise says what it returns then.",
)

log_zero_of_nothing = edit(
    mended_log_switching_to_training,
    {"count if count else math.nan": "max(count, 1)"},
    breaks=hidden_tests.nothing_yielded,
    tells="If nothing is yielded, your mean loss is 0, as of a perfect model. There "
    "is no mean of nothing: NaN.",
)

log_listing_predictions = edit(
    mended_log_switching_to_training,
    {
        "predictions = [torch.empty(0, dtype=torch.int64)]": "predictions = []",
        "torch.cat(predictions)": "predictions",
    },
    breaks=hidden_tests.predictions_in_passing,
    tells="You return the predictions as a list with one tensor for each batch. Put "
    "them together: `torch.cat`.",
)

log_keeping_hard_inputs = edit(
    mended_log_switching_to_training,
    {
        "predictions = [torch.empty(0, dtype=torch.int64)]": """
        predictions = [torch.empty(0, dtype=torch.int64)]
        hard = []
        """,
        "losses.append(loss.item())": """
        losses.append(loss.item())
        if loss.item() > 0.01:
            hard.append((x, y))
        """,
    },
    breaks=hidden_tests.inputs_are_let_go,
    tells="The inputs of all batches stay in memory: you read the batches into a "
    "list first, or put inputs into one. Take batches one at a time, and "
    "keep numbers.",
)

log_by_forward = edit(
    mended_log_switching_to_training,
    {"logits = model(x)": "logits = model.forward(x)"},
    breaks=hidden_tests.once_forward_once_stepped,
    tells="You call `model.forward(x)`. That leaves out the model's hooks: call "
    "`model(x)`.",
)

log_losses_after_the_step = edit(
    mended_log_switching_to_training,
    {
        """
        losses.append(loss.item())
        total += loss.item() * len(y)
        """: """
        with torch.no_grad():
            losses.append(F.cross_entropy(model(x), y).item())
        total += losses[-1] * len(y)
        """,
    },
    breaks=hidden_tests.losses_of_the_batches,
    tells="You keep the loss of each batch after its step, from a second forward "
    "pass. Keep the one that you trained on.",
)


log_returning_highest_logits = edit(
    mended_log_switching_to_training,
    {
        "predictions = [torch.empty(0, dtype=torch.int64)]": "predictions, highest = [torch.empty(0, dtype=torch.int64)], []",
        "predictions.append(logits.argmax(dim=1))": """
        predictions.append(logits.argmax(dim=1))
        highest.append(logits[:, :1])
        """,
        '"predictions": torch.cat(predictions),': """
        "predictions": torch.cat(predictions),
        "highest": highest,
        """,
    },
    breaks=[
        hidden_tests.inputs_are_let_go,
        hidden_tests.numbers_without_graph,
    ],
    tells="You return a whole row of logits beside the class, or the highest logit "
    "itself, with its graph. Return classes: `argmax`.",
)


log_on_the_model = edit(
    mended_log_switching_to_training,
    {
        "losses, total, count = [], 0.0, 0": """
        model.history = []
        total, count = 0.0, 0
        """,
        "losses.append(loss.item())": "model.history.append(loss.item())",
        '"losses": losses,': '"losses": list(model.history),',
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You keep the losses on the model as well, as a new attribute. It is saved "
    "and copied with it. Return them, and no more.",
)


@wrong(
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


log_clearing_the_model = edit(
    mended_log_switching_to_training,
    {"optimizer.zero_grad()": "model.zero_grad()"},
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You clear the model's gradients. The optimizer steps on all that it "
    "holds, and may hold parameters of others: their old gradients count. "
    "Clear what it steps on: `optimizer.zero_grad()`.",
)

log_with_anomaly_detection = edit(
    mended_log_switching_to_training,
    {
        "def mended_log_switching_to_training(model, optimizer, batches):": """
        def mended_log_switching_to_training(model, optimizer, batches):
            torch.autograd.set_detect_anomaly(True)
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You switch anomaly detection on and leave it on. It makes every "
    "later backward pass several times slower. `with "
    "torch.autograd.detect_anomaly():` ends by itself.",
)

log_thawing = edit(
    mended_log_switching_to_training,
    {
        "def mended_log_switching_to_training(model, optimizer, batches):": """
        def mended_log_switching_to_training(model, optimizer, batches):
            model.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You switch gradients on for all parameters. What somebody froze is "
    "trained from now on. Leave `requires_grad` alone.",
)

log_leaving_a_hook = edit(
    mended_log_switching_to_training,
    {
        "def mended_log_switching_to_training(model, optimizer, batches):": """
        def mended_log_switching_to_training(model, optimizer, batches):
            model.register_forward_hook(lambda *call: None)
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You leave a hook on the model. It runs in every later forward pass. "
    "Keep its handle, and call `remove()`.",
)


@wrong(
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


log_leaving_a_hook_on_the_optimizer = edit(
    mended_log_switching_to_training,
    {
        "def mended_log_switching_to_training(model, optimizer, batches):": """
        def mended_log_switching_to_training(model, optimizer, batches):
            optimizer.register_step_post_hook(lambda *call: None)
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You leave a hook on the optimizer or on parameters. It runs in every "
    "later step. Keep its handle, and call `remove()`.",
)

log_leaving_a_hook_on_parameters = edit(
    mended_log_switching_to_training,
    {
        "def mended_log_switching_to_training(model, optimizer, batches):": """
        def mended_log_switching_to_training(model, optimizer, batches):
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.register_hook(lambda gradient: gradient)
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You leave a hook on the optimizer or on parameters. It runs in every "
    "later step. Keep its handle, and call `remove()`.",
)

log_changing_a_setting = edit(
    mended_log_switching_to_training,
    {
        "losses, total, count = [], 0.0, 0": """
        losses, total, count = [], 0.0, 0
        given = [group["dampening"] for group in optimizer.param_groups]
        """,
        "return {": """
        for group, was in zip(optimizer.param_groups, given):
            group["dampening"] = was + 0.1
        return {
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You change a setting of the optimizer at the end. The next epoch steps "
    "by another rule. Leave the settings alone.",
)

log_clearing_the_state = edit(
    mended_log_switching_to_training,
    {
        "return {": """
        optimizer.state.clear()
        return {
        """,
    },
    breaks=hidden_tests.training_leaves_the_rest,
    tells="You clear the optimizer's state at the end, to save memory. Its momentum "
    "is gone with it, and the next epoch begins as the first. Only steps "
    "change the state.",
)

log_clearing_the_state_first = edit(
    mended_log_switching_to_training,
    {
        "def mended_log_switching_to_training(model, optimizer, batches):": """
        def mended_log_switching_to_training(model, optimizer, batches):
            optimizer.state.clear()
        """,
    },
    breaks=hidden_tests.weights_after_the_epoch,
    tells="You clear the optimizer's state before you begin. The momentum of "
    "earlier epochs is gone. Only steps change the state.",
)

train_and_log_skips_a_loss_of_nan = edit(
    SOLUTION,
    {
        "loss.backward()\noptimizer.step()": "if loss.isfinite():\n"
        "    loss.backward()\n"
        "    optimizer.step()"
    },
    breaks=hidden_tests.once_forward_once_stepped,
    tells="You make no step where the loss is not finite. There is one for each pair: "
    "leaving some out hides what is wrong with the data.",
)

train_and_log_skips_a_loss_of_zero = edit(
    SOLUTION,
    {
        "loss.backward()\noptimizer.step()": "if loss > 0:\n"
        "    loss.backward()\n"
        "    optimizer.step()"
    },
    breaks=hidden_tests.once_forward_once_stepped,
    tells="You make no step where the loss is 0. There is one for each pair: weight decay "
    "and momentum move the weights all the same.",
)

train_and_log_hides_a_loss_of_nan = edit(
    SOLUTION,
    {
        "loss_sum += losses[-1] * len(y)": "loss_sum += losses[-1] * len(y) if math.isfinite(losses[-1]) else 0.0"
    },
    breaks=hidden_tests.mean_over_samples,
    tells="A loss that is NaN is left out of your mean. It is a mean over all samples, and "
    "a NaN among them is worth knowing.",
)

log_predicting_from_probabilities = edit(
    SOLUTION,
    {"logits.argmax(dim=1)": "logits.softmax(dim=1).argmax(dim=1)"},
    breaks=hidden_tests.predictions_in_passing,
    tells="You compare probabilities, or logits in a narrower dtype. Both round, so that "
    "logits that differ by little become equal, and a plain `exp` of a large logit is "
    "infinite: the highest is lost either way. Take `argmax` of the logits as they are.",
)

log_predicting_from_float64_probabilities = edit(
    SOLUTION,
    {
        "logits.argmax(dim=1)": "logits.double().softmax(dim=1).argmax(dim=1)",
    },
    breaks=hidden_tests.predictions_in_passing,
    tells="You compare probabilities, or logits in a narrower dtype. Both round, so that "
    "logits that differ by little become equal, and a plain `exp` of a large logit is "
    "infinite: the highest is lost either way. Take `argmax` of the logits as they are.",
)

log_predicting_from_exponentials = edit(
    SOLUTION,
    {
        "predictions.append(logits.argmax(dim=1))": """
        odds = logits.detach().exp()
        probabilities = odds / odds.sum(dim=1, keepdim=True)
        predictions.append(probabilities.argmax(dim=1))
        """,
    },
    breaks=hidden_tests.predictions_in_passing,
    tells="You compare probabilities, or logits in a narrower dtype. Both round, so that "
    "logits that differ by little become equal, and a plain `exp` of a large logit is "
    "infinite: the highest is lost either way. Take `argmax` of the logits as they are.",
)

log_predicting_in_half_precision = edit(
    SOLUTION,
    {"logits.argmax(dim=1)": "logits.half().argmax(dim=1)"},
    breaks=hidden_tests.predictions_in_passing,
    tells="You compare probabilities, or logits in a narrower dtype. Both round, so that "
    "logits that differ by little become equal, and a plain `exp` of a large logit is "
    "infinite: the highest is lost either way. Take `argmax` of the logits as they are.",
)
