"""Answers to `guarded_epoch` of chapter 08."""

import copy
import math

import torch
from torch import nn

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
def epoch_with_a_snapshot(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        model.zero_grad()
        before = {k: b.detach().clone() for k, b in model.named_buffers()}
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        inputs = torch.isfinite(x).all() and torch.isfinite(y).all()
        if inputs and loss.isfinite() and norm.isfinite():
            optimizer.step()
            norms.append(float(norm))
            losses.append(float(loss.detach()))
        else:
            skipped.append(i)
            for k, b in model.named_buffers():
                b.data.copy_(before[k])
    optimizer.zero_grad()
    model.zero_grad()
    return dict(norms=norms, losses=losses, skipped=skipped)


@accepted()
def epoch_with_copied_buffers(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"losses": [], "skipped": [], "norms": []}
    parameters = list(model.parameters())
    for p in parameters:
        p.grad = None
    position = -1
    for x, y in loader:
        position += 1
        if not math.isfinite(float((x * 0.0).sum() + (y * 0.0).sum())):
            report["skipped"].append(position)
            continue
        saved = copy.deepcopy(dict(model.named_buffers()))
        loss = loss_function(model(x), y)
        good = bool(torch.isfinite(loss))
        if good:
            loss.backward()
            grads = [p.grad for p in parameters if p.grad is not None]
            norm = nn.utils.get_total_norm(grads)
            good = bool(torch.isfinite(norm))
        if good:
            nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
            optimizer.step()
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            for name, value in saved.items():
                model.get_buffer(name).set_(value)
            report["skipped"].append(position)
        for p in parameters:
            p.grad = None
    return report


@accepted()
def epoch_by_autograd_grad(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    wanted = [p for p in model.parameters() if p.requires_grad]
    model.zero_grad()
    for i, (x, y) in enumerate(loader):
        finite = bool(x.isfinite().all()) and bool(y.isfinite().all())
        kept = [b.clone() for b in model.buffers()]
        norm = torch.tensor(math.nan)
        if finite:
            loss = loss_function(model(x), y)
            finite = math.isfinite(loss.item())
        if finite:
            grads = torch.autograd.grad(loss, wanted, allow_unused=True)
            # two parameters that are added up get one tensor
            grads = [None if g is None else g.clone() for g in grads]
            for p, g in zip(wanted, grads):
                p.grad = g
            norm = torch.cat([g.flatten() for g in grads if g is not None])
            norm = torch.linalg.vector_norm(norm)
        if finite and math.isfinite(norm.item()):
            if norm > max_norm:
                for g in grads:
                    if g is not None:
                        g.mul_(max_norm / (norm + 1e-6))
            optimizer.step()
            norms.append(norm.item())
            losses.append(loss.item())
        else:
            skipped.append(i)
            with torch.no_grad():
                for b, old in zip(model.buffers(), kept):
                    b.copy_(old)
        for p in wanted:
            p.grad = None
    return {"norms": norms, "losses": losses, "skipped": skipped}


@accepted()
def epoch_with_errors(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    class NotFinite(Exception):
        pass

    def must_be_finite(tensor):
        if not torch.isfinite(tensor).all():
            raise NotFinite

    for i, (x, y) in enumerate(loader):
        model.zero_grad(set_to_none=True)
        kept = [buffer.clone() for buffer in model.buffers()]
        try:
            must_be_finite(x)
            must_be_finite(y)
            loss = loss_function(model(x), y)
            must_be_finite(loss)
            loss.backward()
            try:
                norm = nn.utils.clip_grad_norm_(
                    model.parameters(), max_norm, error_if_nonfinite=True
                )
            except RuntimeError as not_finite:
                raise NotFinite from not_finite
        except NotFinite:
            for buffer, old in zip(model.buffers(), kept):
                buffer.copy_(old)
            report["skipped"] += [i]
        else:
            optimizer.step()
            report["norms"] += [norm.item()]
            report["losses"] += [loss.item()]
    model.zero_grad(set_to_none=True)
    return report


@accepted()
def epoch_filling_zeros(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for i, (x, y) in enumerate(loader):
        state = {k: v.clone() for k, v in model.named_buffers()}
        good = all(bool(t.isfinite().all()) for t in (x, y))
        if good:
            loss = loss_function(model(x), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            good = bool(loss.isfinite() & norm.isfinite())
        if good:
            optimizer.step()
            report["norms"].append(norm.detach().item())
            report["losses"].append(loss.detach().item())
        else:
            with torch.no_grad():
                for k, v in model.named_buffers():
                    v.copy_(state[k])
            report["skipped"].append(i)
        model.zero_grad()
    return report


@accepted()
def epoch_on_buffers_by_name(model, optimizer, loss_function, loader, max_norm):
    norms, losses, skipped = [], [], []
    names = [name for name, _ in model.named_buffers()]
    number = 0
    model.zero_grad()
    for x, y in loader:
        everything = torch.stack([(t.double() * 0).sum() for t in (x, y)])
        fine = not everything.isnan().any()
        if fine:
            old = [model.get_buffer(name).clone() for name in names]
            loss = loss_function(model(x), y)
            loss.backward()
            total = nn.utils.clip_grad_norm_(
                model.parameters(), max_norm, foreach=False
            )
            fine = math.isfinite(loss.item()) and math.isfinite(total.item())
            if fine:
                optimizer.step()
                norms.append(total.item())
                losses.append(loss.item())
            else:
                for name, value in zip(names, old):
                    model.get_buffer(name).copy_(value)
            model.zero_grad()
        if not fine:
            skipped.append(number)
        number += 1
    return {"skipped": skipped, "losses": losses, "norms": norms}


epoch_clips_before_backward = edit(
    SOLUTION,
    {
        "loss.backward()": """
        clipped = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        loss.backward()
        """,
        """
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
        """: """
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not nn.utils.get_total_norm(grads).isfinite():
        """,
        'report["norms"].append(norm.item())': 'report["norms"].append(clipped.item())',
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=[hidden_tests.clipped_updates, hidden_tests.reported_norms],
    tells="You clip before the backward pass. At that moment there is no gradient "
    "of this batch: the step is made unclipped, and the norm is 0. The order is "
    "backward, clip, step.",
)

epoch_clips_after_the_step = edit(
    SOLUTION,
    {
        """
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
        """: """
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not nn.utils.get_total_norm(grads).isfinite():
        """,
        "optimizer.step()": """
        optimizer.step()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.clipped_updates,
    tells="You clip after the step, when the gradient has done its work. The "
    "norms look right and nothing is clipped. The order is backward, clip, step.",
)

epoch_clips_by_value = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(grads)
        """,
        "optimizer.step()": """
        nn.utils.clip_grad_value_(model.parameters(), max_norm)
        optimizer.step()
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.clipped_updates,
    tells="You clip by value, entry by entry, and the direction of the step "
    "changes. Clip the total norm: `clip_grad_norm_`.",
)

epoch_clips_each_parameter = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(grads)
        """,
        "optimizer.step()": """
        for p in model.parameters():
            nn.utils.clip_grad_norm_([p], max_norm)
        optimizer.step()
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.clipped_updates,
    tells="You clip each parameter by itself. The total norm is that of all "
    "gradients together: give `clip_grad_norm_` all parameters at once.",
)

epoch_without_a_look_at_gradients = edit(
    SOLUTION,
    {
        """
        if not norm.isfinite():
            return False
        """: "",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.bad_gradients,
    tells="You test inputs and loss, and not the gradient. A finite loss can have "
    "a gradient of NaN (the root of 0), and one step with it spoils every weight. "
    "Test the norm that `clip_grad_norm_` returns.",
)

NORM_UNSEEN = (
    "You step where each gradient is finite and their total norm is not: you "
    "test the gradients, or the norm for NaN alone. The norm can be infinite although "
    "each entry is finite; the clipped gradient is then 0, and weight decay makes a "
    "step of its own. Test the norm: `norm.isfinite()`."
)

epoch_testing_each_gradient = edit(
    SOLUTION,
    {
        "loss.backward()": """
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if not all(g.isfinite().all() for g in grads):
            return False
        """,
        """
        if not norm.isfinite():
            return False
        """: "",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.overflowing_norms,
    tells=NORM_UNSEEN,
)

epoch_testing_the_norm_for_nan = edit(
    SOLUTION,
    {
        "if not norm.isfinite():": "if norm.isnan():",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.overflowing_norms,
    tells=NORM_UNSEEN,
)

epoch_testing_isnan = edit(
    SOLUTION,
    {
        "if not (x.isfinite().all() and y.isfinite().all()):": "if x.isnan().any() or y.isnan().any():",
        "if not loss.isfinite():": "if loss.isnan():",
        "if not norm.isfinite():": "if norm.isnan():",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.overflowing_norms,
    tells="You look for NaN alone, by `isnan`. An infinite loss or norm is as bad, "
    "and `isnan(inf)` is False. Use `isfinite`.",
)


@wrong(
    breaks=hidden_tests.buffers_as_before,
    tells="The step is skipped, but the forward pass of the bad batch has already "
    "written its statistics into batch norm. One NaN there stays for good, and "
    "the model fails in eval. Put the buffers back.",
)
def epoch_with_poisoned_buffers(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}
    for position, (x, y) in enumerate(loader):
        model.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        good = x.isfinite().all() and y.isfinite().all()
        if good and loss.isfinite() and norm.isfinite():
            optimizer.step()
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            report["skipped"].append(position)
    model.zero_grad()
    return report


epoch_with_buffers_of_bad_losses = edit(
    SOLUTION,
    {
        "kept = [buffer.clone() for buffer in model.buffers()]": "",
        """
        for buffer, value in zip(model.buffers(), kept, strict=True):
            buffer.copy_(value)
        """: "",
    },
    breaks=hidden_tests.buffers_as_before,
    tells="You keep bad inputs away from the model, which is right, but a batch "
    "whose loss or gradient is bad has gone through it, and batch norm has "
    "counted it. Put the buffers back in that case.",
)

epoch_with_the_counter_left = edit(
    SOLUTION,
    {
        "kept = [buffer.clone() for buffer in model.buffers()]": """
        floats = [b for b in model.buffers() if b.is_floating_point()]
        kept = [buffer.clone() for buffer in floats]
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(floats, kept):",
    },
    breaks=hidden_tests.buffers_as_before,
    tells="You put back the running statistics and not the counter "
    "`num_batches_tracked`. With `momentum=None` batch norm divides by it. Put "
    "back all of `model.buffers()`.",
)


@wrong(
    breaks=hidden_tests.optimizer_as_before,
    tells="For a bad batch you clear the gradients to zeros and step all the same. "
    "Momentum and weight decay move the weights in that step, and Adam counts it. "
    "Do not call `step()`.",
)
def epoch_steps_with_zeros(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        loss = loss_function(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        good = x.isfinite().all() and y.isfinite().all()
        if good and loss.isfinite() and norm.isfinite():
            report["norms"].append(norm.item())
            report["losses"].append(loss.item())
        else:
            report["skipped"].append(position)
            model.zero_grad(set_to_none=False)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        optimizer.step()
        model.zero_grad()
    return report


epoch_with_nan_to_num = edit(
    SOLUTION,
    {
        """
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        """: "x, y = (t.nan_to_num(0.0, 0.0, 0.0) for t in (x, y))",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.bad_inputs,
    tells="You replace NaN and infinity by numbers (`nan_to_num`) and train on "
    "what nobody measured. The batch is bad: skip it.",
)

epoch_with_repaired_gradients = edit(
    SOLUTION,
    {
        "loss.backward()": """
        loss.backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad.nan_to_num_(0.0, 0.0, 0.0)
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.bad_gradients,
    tells="You set the NaN entries of the gradient to 0 and step with the rest. "
    "That rest comes from a fault, too: what the step does, nobody knows. Skip "
    "the batch.",
)


@wrong(
    breaks=hidden_tests.bad_inputs,
    tells="You end the epoch at the first bad batch. The batches after it are "
    "good: skip one and go on (`continue`, not `break`).",
)
def epoch_ends_at_the_first(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        good = takes_step(x, y)
        if not good:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad()
        if not good:
            break
    return report


@wrong(
    breaks=hidden_tests.gradients_are_cleared,
    tells="After a bad batch its gradient stays in `.grad`, and the next batch's "
    "is added to it: NaN from then on, or a wrong step. Clear the gradients when "
    "you skip, too.",
)
def epoch_keeps_bad_gradients(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}
    model.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        good = x.isfinite().all() and y.isfinite().all()
        if good:
            loss = loss_function(model(x), y)
            good = loss.isfinite()
        if good:
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            good = norm.isfinite()
        if not good:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
            continue
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        model.zero_grad()
    return report


@wrong(
    breaks=hidden_tests.gradients_are_cleared,
    tells="You never clear the gradients: each step uses the sum of all batches so "
    "far. Clear them before each backward pass.",
)
def epoch_never_cleared(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
    return report


@wrong(
    breaks=hidden_tests.gradients_are_cleared,
    tells="You clear the gradients after each batch alone. What was in `.grad` "
    "before the epoch is then part of its first step. Clear before the first "
    "backward pass as well.",
)
def epoch_cleared_afterwards(model, optimizer, loss_function, loader, max_norm):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if takes_step(x, y):
            model.zero_grad()
        else:
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
            model.zero_grad()
    return report


epoch_reports_the_norm_after = edit(
    SOLUTION,
    {
        'report["norms"].append(norm.item())': 'report["norms"].append(min(norm.item(), max_norm))',
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.reported_norms,
    tells="You report the norm after clipping: `max_norm`, step after step. The "
    "norm before clipping is what tells of trouble, and `clip_grad_norm_` "
    "returns it.",
)

epoch_reports_tensors = edit(
    SOLUTION,
    {
        """
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        """: """
        report["norms"].append(norm)
        report["losses"].append(loss)
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.reported_norms,
    tells="You collect tensors where floats are asked for. A list of losses as "
    "tensors holds the graph of every batch. Take `.item()`.",
)

epoch_without_a_look_at_targets = edit(
    SOLUTION,
    {
        "if not (x.isfinite().all() and y.isfinite().all()):": "if not x.isfinite().all():",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.bad_inputs,
    tells="You look at the input and not at the target. A NaN in `y` mostly shows in "
    "the loss, but a loss that clips its target hides an infinity. Test both.",
)

epoch_tries_first = edit(
    SOLUTION,
    {
        "loss = loss_function(model(x), y)": """
        trial = copy.deepcopy(model)
        if not loss_function(trial(x), y).isfinite():
            return False
        loss = loss_function(model(x), y)
        """,
        """
        if not loss.isfinite():
            return False
        """: "",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.the_rest_is_left_alone,
    tells="You try the batch first, in a forward pass of its own, and train in a "
    "second one. Each batch may pass once: keep the buffers and put them back.",
)

epoch_in_training_mode = edit(
    SOLUTION,
    {
        """
        model.zero_grad()
        for position, (x, y) in enumerate(loader):
        """: """
        model.train()
        model.zero_grad()
        for position, (x, y) in enumerate(loader):
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.the_rest_is_left_alone,
    tells="You call `model.train()`. A layer that somebody put in eval, such as a "
    "frozen batch norm, is in training from then on. The mode is the caller's.",
)

epoch_over_a_list = edit(
    SOLUTION,
    {
        "for position, (x, y) in enumerate(loader):": """
        for position in range(len(loader)):
            x, y = loader[position]
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.other_loaders,
    tells="You ask for `len(loader)` or an item of it. A generator has neither: go "
    "through it once, with `enumerate`.",
)

epoch_without_a_look_at_the_loss = edit(
    SOLUTION,
    {
        """
        if not loss.isfinite():
            return False
        """: "",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.bad_losses,
    tells="You test inputs and gradients, and not the loss. It can be infinite "
    "where its gradient is finite.",
)

epoch_restores_the_start = edit(
    SOLUTION,
    {
        "for position, (x, y) in enumerate(loader):": """
        kept = [buffer.clone() for buffer in model.buffers()]
        for position, (x, y) in enumerate(loader):
        """,
        "kept = [buffer.clone() for buffer in model.buffers()]": "",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.buffers_as_before,
    tells="You put the buffers back to what they were at the beginning of the "
    "epoch. What the good batches before had added is lost. Keep a copy before "
    "each batch.",
)

epoch_reports_all_losses = edit(
    SOLUTION,
    {
        "def takes_step(x: Tensor, y: Tensor) -> bool:": """
        def takes_step(x, y):
            loss = loss_function(model(x), y)
            report["losses"].append(loss.item())
        """,
        "loss = loss_function(model(x), y)": "",
        'report["losses"].append(loss.item())': "",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.reported_norms,
    tells="You report the losses of the bad batches with the others, NaN among "
    "them. The lists are of good batches: add to them after the step.",
)

epoch_counts_the_skipped = edit(
    SOLUTION,
    {
        'report = {"norms": [], "losses": [], "skipped": []}': 'report = {"norms": [], "losses": [], "skipped": 0}',
        """
        report["skipped"].append(position)
        for buffer, value in zip(model.buffers(), kept, strict=True):
        """: """
        report["skipped"] += 1
        for buffer, value in zip(model.buffers(), kept):
        """,
    },
    breaks=hidden_tests.bad_inputs,
    tells="You count the bad batches. `skipped` is the list of their positions, 0 "
    "for the first: with a number nobody finds the batch.",
)

epoch_skips_what_is_large = edit(
    SOLUTION,
    {
        "if not loss.isfinite():": "if not loss < 1e6:",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.clipped_updates,
    tells="You call a batch bad because its loss or its norm is large. Large is "
    "what clipping is for; bad is NaN or infinity.",
)


@wrong(
    breaks=hidden_tests.optimizer_of_a_part,
    tells="`optimizer.zero_grad()` clears the parameters that the "
    "optimizer holds. The gradients of the others pile up from batch "
    "to batch, and they count in the norm. Use `model.zero_grad()`.",
)
def epoch_clears_by_the_optimizer(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    optimizer.zero_grad()
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        optimizer.zero_grad()
    return report


epoch_clips_what_is_optimized = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        norm = nn.utils.clip_grad_norm_(
            [p for g in optimizer.param_groups for p in g["params"]], max_norm
        )
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.optimizer_of_a_part,
    tells="You clip the parameters that the optimizer holds. The total "
    "norm is that of all parameters of the model.",
)

epoch_restores_the_state_dict = edit(
    SOLUTION,
    {
        "kept = [buffer.clone() for buffer in model.buffers()]": "kept = copy.deepcopy(model.state_dict())",
        """
        for buffer, value in zip(model.buffers(), kept, strict=True):
            buffer.copy_(value)
        """: "model.load_state_dict(kept)",
    },
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put back the buffers of batch norm, or what stands in a `state_dict`, "
    "which leaves out those registered with `persistent=False`. Put back all of "
    "`model.buffers()`.",
)

epoch_restores_batch_norms = edit(
    SOLUTION,
    {
        "kept = [buffer.clone() for buffer in model.buffers()]": """
        norms = [m for m in model.modules() if hasattr(m, "running_mean")]
        touched = [buffer for m in norms for buffer in m.buffers()]
        kept = [buffer.clone() for buffer in touched]
        """,
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(touched, kept):",
    },
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put back the buffers of batch norm, or what stands in a `state_dict`, "
    "which leaves out those registered with `persistent=False`. Put back all of "
    "`model.buffers()`.",
)

PART_OF_X = (
    "You do not test `x`, or only a part of it, such as its first row: what the "
    "model does not look at then goes unseen. One bad number anywhere makes the "
    "batch bad. Test all of it: `x.isfinite().all()`."
)

epoch_without_a_look_at_inputs = edit(
    SOLUTION,
    {
        "if not (x.isfinite().all() and y.isfinite().all()):": "if not y.isfinite().all():",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.inputs_that_do_not_show,
    tells=PART_OF_X,
)

epoch_testing_sums = edit(
    SOLUTION,
    {
        "if not (x.isfinite().all() and y.isfinite().all()):": "if not (x.sum().isfinite() and y.sum().isfinite()):",
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers(), kept):",
    },
    breaks=hidden_tests.inputs_that_do_not_show,
    tells="You ask whether the sum of a batch is finite. A sum of large "
    "finite numbers overflows, and a good batch is skipped. Ask "
    "every entry: `isfinite(x).all()`.",
)


@wrong(
    breaks=hidden_tests.stale_gradients,
    tells="You set old gradients to zero. For the optimizer a zero is a "
    "gradient, and weight decay moves frozen and unused parameters. "
    "Set them to None, as `model.zero_grad()` does.",
)
def epoch_with_zeros_for_none(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    model.zero_grad(set_to_none=False)
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        model.zero_grad(set_to_none=False)
    return report


@wrong(
    breaks=hidden_tests.stale_gradients,
    tells="You clear the gradients of parameters that require one. A "
    "frozen parameter may have an old gradient, and the optimizer "
    "then moves it. Clear all.",
)
def epoch_clears_what_is_trained(
    model, optimizer, loss_function, loader, max_norm
):
    report = {"norms": [], "losses": [], "skipped": []}

    def takes_step(x, y):
        if not (x.isfinite().all() and y.isfinite().all()):
            return False
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            return False
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            return False
        optimizer.step()
        report["norms"].append(norm.item())
        report["losses"].append(loss.item())
        return True

    trained = [p for p in model.parameters() if p.requires_grad]
    for p in trained:
        p.grad = None
    for position, (x, y) in enumerate(loader):
        kept = [buffer.clone() for buffer in model.buffers()]
        if not takes_step(x, y):
            report["skipped"].append(position)
            for buffer, value in zip(model.buffers(), kept):
                buffer.copy_(value)
        for p in trained:
            p.grad = None
    return report


epoch_swallowing_errors = edit(
    epoch_with_a_snapshot,
    {
        "loss = loss_function(model(x), y)": """
        try:
            loss = loss_function(model(x), y)
        except RuntimeError:
            skipped.append(i)
            continue
        """,
    },
    breaks=hidden_tests.errors_reach_the_caller,
    tells="You take an error of the model for a bad batch and go on. A batch is bad "
    "by a NaN or an infinity; a bug must reach the caller.",
)

guarded_epoch_takes_zero_for_bad = edit(
    SOLUTION,
    {
        "if not norm.isfinite():": "if not (norm.isfinite() and norm > 0):",
    },
    breaks=hidden_tests.clipped_updates,
    tells="You take a gradient of exactly 0 for bad. It is finite: a batch that is fitted "
    "well, or a dead ReLU, has one. Weight decay and momentum go on.",
)

guarded_epoch_takes_a_loss_below_zero_for_bad = edit(
    SOLUTION,
    {
        "if not loss.isfinite():": "if not 0 <= loss < math.inf:",
    },
    breaks=hidden_tests.clipped_updates,
    tells="A loss may be below 0, as a log-likelihood is. Bad is one that is not finite.",
)

guarded_epoch_lists_the_buffers_once = edit(
    SOLUTION,
    {
        "model.zero_grad()\nfor position": "buffers = list(model.buffers())\n"
        "model.zero_grad()\n"
        "for position",
        "kept = [buffer.clone() for buffer in model.buffers()]": "kept = [buffer.clone() for buffer in buffers]",
        "zip(model.buffers(), kept, strict=True)": "zip(buffers, kept, strict=True)",
    },
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put values back into tensors that you listed before. A `forward` may put another tensor "
    "into a buffer's place (`self.seen = self.seen + 1`): copy into what `model.buffers()` gives afterwards.",
)

guarded_epoch_puts_clones_by_name = edit(
    SOLUTION,
    {
        "kept = [buffer.clone() for buffer in model.buffers()]": "kept = {name: b.clone() for name, b in model.named_buffers()}",
        """
        for buffer, value in zip(model.buffers(), kept, strict=True):
            buffer.copy_(value)
        """: """
        for name, value in kept.items():
            layer, _, last = name.rpartition(".")
            setattr(model.get_submodule(layer), last, value)
        """,
    },
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put a copy into each buffer's place, by its name. One that stands in two "
    "layers has two names, and `named_buffers()` gives the first alone: the other "
    "layer keeps the spoilt one. Copy the old values into the tensor.",
)

seeding_in_guarded_epoch = edit(
    SOLUTION,
    {
        'report = {"norms": [], "losses": [], "skipped": []}': """
        torch.manual_seed(0)
        report = {"norms": [], "losses": [], "skipped": []}
        """,
    },
    breaks=hidden_tests.the_rest_is_left_alone,
    tells="You seed PyTorch. Whoever calls you then draws the same numbers after each call: leave the generators alone.",
)

epoch_leaves_gradients_of_others = edit(
    epoch_with_a_snapshot,
    {
        """
        optimizer.zero_grad()
        model.zero_grad()
        return dict(norms=norms, losses=losses, skipped=skipped)
        """: """
        optimizer.zero_grad()
        return dict(norms=norms, losses=losses, skipped=skipped)
        """,
    },
    breaks=hidden_tests.gradients_are_cleared,
    tells="At the end you clear the gradients of the parameters that the "
    "optimizer holds. It may hold only some of the model's. Use "
    "`model.zero_grad()`.",
)


epoch_that_tries_a_bad_loss_again = edit(
    SOLUTION,
    {
        """
        loss = loss_function(model(x), y)
        """: """
        loss = loss_function(model(x), y)
        if not loss.isfinite():
            for buffer, value in zip(model.buffers(), kept, strict=True):
                buffer.copy_(value)
            loss = loss_function(model(x), y)
        """
    },
    breaks=hidden_tests.the_rest_is_left_alone,
    tells="A batch whose loss is not finite goes through the model a second time. "
    "The loss is the same again: a bad batch passes at most once.",
)

epoch_swallowing_a_value_error = edit(
    SOLUTION,
    {
        "loss = loss_function(model(x), y)": """
        try:
            loss = loss_function(model(x), y)
        except ValueError:
            return False
        """,
    },
    breaks=hidden_tests.errors_reach_the_caller,
    tells="You take an error of the model for a bad batch and go on. A batch is bad "
    "by a NaN or an infinity; a bug must reach the caller.",
)

epoch_swallowing_a_floating_point_error = edit(
    SOLUTION,
    {
        "loss = loss_function(model(x), y)": """
        try:
            loss = loss_function(model(x), y)
        except FloatingPointError:
            return False
        """,
    },
    breaks=hidden_tests.errors_reach_the_caller,
    tells="You take an error of the model for a bad batch and go on. A batch is bad "
    "by a NaN or an infinity; a bug must reach the caller.",
)

epoch_swallowing_errors_of_python_numbers = edit(
    SOLUTION,
    {
        "loss = loss_function(model(x), y)": """
        try:
            loss = loss_function(model(x), y)
        except (OverflowError, ZeroDivisionError):
            return False
        """,
    },
    breaks=hidden_tests.errors_reach_the_caller,
    tells="You take an error of the model for a bad batch and go on. A batch is bad "
    "by a NaN or an infinity; a bug must reach the caller.",
)

epoch_with_the_norm_in_float64 = edit(
    SOLUTION,
    {
        "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
        norm = nn.utils.get_total_norm(
            [p.grad.double() for p in model.parameters() if p.grad is not None]
        )
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        """,
    },
    breaks=hidden_tests.overflowing_norms,
    tells="You test a norm in float64. In float32 the norm that clips may overflow where "
    "yours is finite: the gradients become 0, and the step is made. Test what "
    "`clip_grad_norm_` returns.",
)

cleared_layer_by_layer = edit(
    SOLUTION,
    {
        """
        model.zero_grad()
        for position, (x, y) in enumerate(loader):
        """: """
        for layer in model.children():
            layer.zero_grad()
        for position, (x, y) in enumerate(loader):
        """
    },
    breaks=hidden_tests.gradients_are_cleared,
    tells="You clear the gradients of the model's layers alone. A parameter that stands beside them "
    "keeps its own: `model.zero_grad()` clears all.",
)


one_tensor_for_two_gradients = edit(
    epoch_by_autograd_grad,
    {
        "grads = [None if g is None else g.clone() for g in grads]": "grads = list(grads)",
    },
    breaks=hidden_tests.clipped_updates,
    tells="What `torch.autograd.grad` gives may be one tensor for two parameters, where the "
    "model adds them up. What is done to it in place then happens twice. Put a `clone()` there.",
)

guarded_epoch_of_a_model_in_training = edit(
    SOLUTION,
    {
        "for buffer, value in zip(model.buffers(), kept, strict=True):": "for buffer, value in zip(model.buffers() if model.training else [], kept):",
    },
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put back the buffers of what is in training alone. A layer may write into its buffer "
    "in eval, too.",
)

guarded_epoch_of_layers_in_training = edit(
    SOLUTION,
    {
        "kept = [buffer.clone() for buffer in model.buffers()]": """
        def buffers():
            for layer in model.modules():
                if layer.training:
                    yield from layer.buffers(recurse=False)

        kept = [buffer.clone() for buffer in buffers()]
        """,
        "zip(model.buffers(), kept, strict=True)": "zip(buffers(), kept, strict=True)",
    },
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put back the buffers of what is in training alone. A layer may write into its buffer "
    "in eval, too.",
)

guarded_epoch_that_parts_a_shared_buffer = edit(
    SOLUTION,
    {
        "kept = [buffer.clone() for buffer in model.buffers()]": """
        kept = [
            (layer, name, buffer.clone())
            for layer in model.modules()
            for name, buffer in layer.named_buffers(recurse=False)
        ]
        """,
        """
        for buffer, value in zip(model.buffers(), kept, strict=True):
            buffer.copy_(value)
        """: """
        for layer, name, value in kept:
            setattr(layer, name, value)
        """,
    },
    breaks=hidden_tests.buffers_of_any_layer,
    tells="You put a copy in the buffer's place. A buffer that two layers share "
    "is two buffers from then on. Write the values back, with `copy_`.",
)

epoch_testing_the_first_row = edit(
    SOLUTION,
    {
        "if not (x.isfinite().all() and y.isfinite().all()):": "if not (x[0].isfinite().all() and y.isfinite().all()):",
    },
    breaks=hidden_tests.inputs_that_do_not_show,
    tells=PART_OF_X,
)

epoch_testing_the_first_feature = edit(
    SOLUTION,
    {
        "if not (x.isfinite().all() and y.isfinite().all()):": "if not (x[:, 0].isfinite().all() and y.isfinite().all()):",
    },
    breaks=hidden_tests.inputs_that_do_not_show,
    tells=PART_OF_X,
)

epoch_testing_the_largest_target = edit(
    SOLUTION,
    {
        "if not (x.isfinite().all() and y.isfinite().all()):": "if not (x.isfinite().all() and y.max().isfinite()):",
    },
    breaks=hidden_tests.bad_inputs,
    tells="A -inf in `y` goes unseen: it is never the largest entry, nor equal to inf, "
    "and the loss can be finite all the same. Test each entry: `y.isfinite().all()`.",
)
