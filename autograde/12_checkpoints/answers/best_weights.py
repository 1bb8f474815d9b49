"""Answers to `best_weights` of chapter 12."""

import copy
import io
import math
import tempfile

import torch

from course_grader.bank import SOLUTION, accepted, edit, wrong

from .. import hidden_tests


@accepted()
class ByClones:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = {
            k: v.detach().clone() for k, v in self.model.state_dict().items()
        }
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


@accepted()
class ByTheBytesOfAFile:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.weights = io.BytesIO()
        torch.save(self.model.state_dict(), self.weights)
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.weights.seek(0)
        self.model.load_state_dict(torch.load(self.weights))


@accepted()
class ByATemporaryFile:
    def __init__(self, model, mode="max"):
        self.model, self.sign = model, 1 if mode == "max" else -1
        self.metric, self.file = None, tempfile.TemporaryFile()

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        if self.metric is not None:
            if value * self.sign <= self.metric * self.sign:
                return False
        self.metric = value
        self.file.seek(0)
        self.file.truncate()
        torch.save(self.model.state_dict(), self.file)
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.file.seek(0)
        self.model.load_state_dict(torch.load(self.file))


@accepted()
class ByACopyOfTheModel:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        self.best = copy.deepcopy(self.model)
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.best.state_dict())


@accepted()
class ByCopyingTensorByTensor:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric = value
        live = [*self.model.parameters(), *self.model.buffers()]
        self.weights = [(one, one.detach().clone()) for one in live]
        return True

    def restore(self):
        if not self.weights:
            raise RuntimeError("nothing kept")
        with torch.no_grad():
            for live, kept in self.weights:
                live.copy_(kept)


@accepted()
class ByAHistory:
    def __init__(self, model, mode="max"):
        self.model, self.best_of = model, {"max": max, "min": min}[mode]
        self.history, self.weights = [], None
        self.metric = None

    def update(self, metric):
        value = float(metric)
        if not value == value:
            return False
        self.history.append(value)
        self.metric = self.best_of(self.history)
        if self.history.index(self.metric) < len(self.history) - 1:
            return False
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


ByTwoLists = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": """
        live = self.model.state_dict()
        self.weights = list(live), [one.clone() for one in live.values()]
        """,
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(dict(zip(*self.weights)))",
    },
)


@accepted()
class mended_KeepsFloat32:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        if self.metric is not None:
            ahead = value > self.metric
            if self.mode == "min":
                ahead = value < self.metric
            if not ahead:
                return False
        self.metric = value
        self.kept = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


KeepsTheStateDict = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = self.model.state_dict()",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)

KeepsAShallowCopy = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = self.model.state_dict().copy()",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)

KeepsCopyDotCopy = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.copy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)

KeepsDetachedTensors = edit(
    ByClones,
    {").clone() for": ") for"},
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)

KeepsTensorsMovedToTheCpu = edit(
    ByClones,
    {"detach().clone": "cpu"},
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.restored_twice],
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)

KeepsTheModelItself = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = self.model",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights.state_dict())",
    },
    breaks=hidden_tests.best_epoch_comes_back,
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)

KeepsParametersOnly = edit(
    ByClones,
    {
        "state_dict().items": "named_parameters",
        "self.model.load_state_dict(self.weights)": "self.model.load_state_dict(self.weights, strict=False)",
    },
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the parameters and not the buffers. BatchNorm's running "
    "statistics then stay those of the last epoch. A `state_dict()` "
    "has both.",
)


@wrong(
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You copy the weights one epoch too late, after the model has "
    "trained on. The metric belongs to the model as it is when "
    "`update` is called: copy then.",
)
class KeepsAtTheNextUpdate:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None
        self.pending = False

    def update(self, metric):
        value = float(metric)
        if self.pending:
            self.weights = copy.deepcopy(self.model.state_dict())
            self.pending = False
        if value != value:
            return False
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        if not better:
            return False
        self.metric, self.pending = value, True
        return True

    def restore(self):
        if self.metric is None:
            raise RuntimeError("nothing kept")
        if self.pending:
            self.weights = copy.deepcopy(self.model.state_dict())
            self.pending = False
        self.model.load_state_dict(self.weights)


KeepsTheLast = edit(
    ByACopyOfTheModel,
    {
        """
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        """: """
        self.weights = copy.deepcopy(self.model.state_dict())
        better = self.metric is None or (
            value > self.metric if self.mode == "max" else value < self.metric
        )
        """,
        "self.best = copy.deepcopy(self.model)": "",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the weights of every epoch, and so of the last. Keep "
    "them only if the metric is the best so far.",
)

KeepsTheFirst = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": """
        if self.weights is None:
            self.weights = copy.deepcopy(self.model.state_dict())
        """,
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the first weights and never replace them. Copy the "
    "weights each time the metric is the best so far.",
)

WithModesSwapped = edit(
    ByACopyOfTheModel,
    {
        '> self.metric if self.mode == "max" else value <': '< self.metric if self.mode == "max" else value >',
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=[hidden_tests.best_epoch_comes_back, hidden_tests.which_is_best],
    tells='You have the modes the wrong way round: with `"max"` the largest '
    "metric is the best.",
)

AlwaysTheLargest = edit(
    SOLUTION,
    {
        'self.model, self.sign = model, {"max": 1, "min": -1}[mode]': "self.model, self.mode = model, mode",
        "if math.isnan(value):": "if value != value:",
        """
        known = self.metric
        if known is not None and self.sign * value <= self.sign * known:
        """: "if self.metric is not None and value <= self.metric:",
        'raise RuntimeError("no metric has been the best yet")': 'raise RuntimeError("nothing kept")',
    },
    breaks=hidden_tests.which_is_best,
    tells="You take the largest metric, whatever the mode says. With "
    '`mode="min"`, as for a loss, the smallest is the best.',
)

TakesALaterEqual = edit(
    ByACopyOfTheModel,
    {
        '> self.metric if self.mode == "max" else value <': '>= self.metric if self.mode == "max" else value <=',
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.earlier_of_equals,
    tells="Of two equal metrics you keep the later. The earlier was to "
    "stay: compare with `>` and `<`, not with `>=` and `<=`.",
)


@wrong(
    breaks=hidden_tests.which_is_best,
    tells="Your best metric begins at 0. A run whose metrics are all "
    "negative never has a best. Begin with None and take the first "
    "metric, whatever its size.",
)
class BeginsAtZero:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None
        self.best = 0.0 if mode == "max" else float("inf")

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        better = value > self.best if self.mode == "max" else value < self.best
        if not better:
            return False
        self.metric = self.best = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


ShowsInfinityBeforeTheFirst = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        """
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.best.state_dict())
        """: """
        if self.weights is not None:
            self.model.load_state_dict(self.weights)
        """,
    },
    breaks=hidden_tests.nothing_to_restore,
    tells="With nothing kept your `restore` does nothing, and the caller "
    "believes that the best weights are back. Raise a RuntimeError.",
)

RestoresTheStart = edit(
    ByACopyOfTheModel,
    {
        "self.metric, self.weights = None, None": """
        self.metric = None
        self.weights = copy.deepcopy(model.state_dict())
        """,
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        """
        if self.metric is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.best.state_dict())
        """: "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.nothing_to_restore,
    tells="You keep the weights from before training as the first best, so "
    "`restore` has something to load where no metric ever counted. "
    "Raise a RuntimeError there.",
)

TakesAFirstNan = edit(
    ByACopyOfTheModel,
    {
        """
        if value != value:
            return False
        """: "",
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.nan_is_never_best,
    tells="You take the first metric even if it is NaN, and nothing "
    "compares as better than NaN: it stays the best for ever. Turn "
    "NaN away before you compare.",
)

TakesAnyNan = edit(
    SOLUTION,
    {
        'self.model, self.sign = model, {"max": 1, "min": -1}[mode]': "self.model, self.mode = model, mode",
        """
        if math.isnan(value):
            return False
        known = self.metric
        if known is not None and self.sign * value <= self.sign * known:
        """: """
        worse = self.metric is not None and (
            value <= self.metric if self.mode == "max" else value >= self.metric
        )
        if worse:
        """,
        'raise RuntimeError("no metric has been the best yet")': 'raise RuntimeError("nothing kept")',
    },
    breaks=hidden_tests.nan_is_never_best,
    tells="You ask whether the metric is *not worse*. Every comparison with "
    "NaN is false, so a NaN is never worse and becomes the best. Turn "
    "NaN away before you compare.",
)

StopsAtNan = edit(
    ByACopyOfTheModel,
    {
        "if value != value:": """
        if value != value:
            self.metric = None
        """,
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.nan_is_never_best,
    tells="A NaN resets what you have kept, or ends it. Metrics after it "
    "still count, and the best so far stays the best: ignore the NaN.",
)

RaisesAtNan = edit(
    ByACopyOfTheModel,
    {
        """
        if value != value:
            return False
        """: """
        if value != value:
            raise ValueError("the metric is NaN")
        """,
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.nan_is_never_best,
    tells="You raise at a NaN. It was to be passed over: return False and "
    "keep what you have.",
)

AssignsTheSnapshot = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights, assign=True)",
    },
    breaks=hidden_tests.restored_twice,
    tells="You restore with `assign=True`. The model then trains on your "
    "snapshot itself, and its optimizer still holds the old "
    "parameters. Leave `assign` out: the values are copied into the "
    "parameters that are there.",
)

AssignsACopyOfTheSnapshot = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(copy.deepcopy(self.weights), assign=True)",
    },
    breaks=hidden_tests.restored_twice,
    tells="You replace the model's parameters by new ones. Its optimizer "
    "still holds the old: it would train tensors that nobody uses. "
    "Load the state dict into the parameters that are there.",
)

RestoresOnce = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": """
        self.model.load_state_dict(self.weights)
        self.weights = None
        """,
    },
    breaks=hidden_tests.restored_twice,
    tells="Your second `restore` fails or finds nothing: the snapshot was "
    "given away at the first. Keep it.",
)

RestoresACopy = edit(
    ByACopyOfTheModel,
    {
        "self.model.load_state_dict(self.best.state_dict())": "self.model = self.best",
    },
    breaks=hidden_tests.best_epoch_comes_back,
    tells="Your `restore` changes nothing. What you kept may be no copy: "
    "`state_dict()`, `.copy()`, `.detach()` and, on a CPU, `.cpu()` "
    "share memory with the live model and follow it; use "
    "`copy.deepcopy` or `.clone()`. Or `restore` loads into a model "
    "that is not the caller's: load into the one that you were given.",
)

KeepsTheMetricTensor = edit(
    ByACopyOfTheModel,
    {
        "value = float(metric)": "value = metric",
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": "self.model.load_state_dict(self.weights)",
    },
    breaks=hidden_tests.metric_in_a_tensor,
    tells="You keep the metric tensor itself. The caller fills it anew, and "
    "your best follows: nothing is ever better than it. Keep "
    "`float(metric)`.",
)

RestoresInEvalMode = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": """
        self.model.load_state_dict(self.weights)
        self.model.eval()
        """,
    },
    breaks=hidden_tests.restored_twice,
    tells="After `restore` the model is in eval mode. It was to get its "
    "weights back and stay in the mode it was in.",
)

FreezesTheRestored = edit(
    ByACopyOfTheModel,
    {
        "self.best = copy.deepcopy(self.model)": "self.weights = copy.deepcopy(self.model.state_dict())",
        "if self.metric is None:": "if self.weights is None:",
        "self.model.load_state_dict(self.best.state_dict())": """
        self.model.requires_grad_(False)
        self.model.load_state_dict(self.weights)
        """,
    },
    breaks=hidden_tests.restored_twice,
    tells="After `restore` the parameters no longer require gradients, so "
    "training cannot go on. Leave `requires_grad` as it is.",
)

AnswersNothing = edit(
    ByClones,
    {
        """
        self.weights = {
            k: v.detach().clone() for k, v in self.model.state_dict().items()
        }
        return True
        """: "self.weights = copy.deepcopy(self.model.state_dict())",
    },
    breaks=hidden_tests.which_is_best,
    tells="`update` returns nothing. It was to say, True or False, whether "
    "this is the best so far.",
)

KeepsHalfPrecision = edit(
    ByClones,
    {"v.detach().clone": "v.half() if v.is_floating_point() else v.clone"},
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the weights in half precision. What `restore` brings "
    "back is rounded, not the weights of that epoch. Keep them in "
    "their own dtype.",
)


@wrong(
    breaks=hidden_tests.which_is_best,
    tells="You compare with the metric of the epoch before, not with the "
    "best so far. A small recovery then replaces the best weights.",
)
class ComparesWithTheLastEpoch:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.weights = None, None
        self.last = None

    def update(self, metric):
        value = float(metric)
        if value != value:
            return False
        last, self.last = self.last, value
        better = last is None or (
            value > last if self.mode == "max" else value < last
        )
        if not better:
            return False
        self.metric = value
        self.weights = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.weights is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.weights)


KeepsFloat32 = edit(
    mended_KeepsFloat32,
    {
        "self.kept = copy.deepcopy(self.model.state_dict())": """
        self.kept = {
            key: tensor.float().clone()
            for key, tensor in self.model.state_dict().items()
        }
        """,
    },
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the weights in float32. A model in float64 and a "
    "counter of batches come back with other numbers: keep each "
    "tensor in its own dtype.",
)


@wrong(
    breaks=hidden_tests.infinite_metrics,
    tells="Your best metric begins at infinity with its sign turned. A "
    "first metric that is infinite itself is no better and is not "
    "kept. The first is the best so far, whatever its size.",
)
class BeginsAtInfinity:
    def __init__(self, model, mode="max"):
        self.model, self.mode = model, mode
        self.metric, self.kept = None, None
        self.top = -math.inf if mode == "max" else math.inf

    def update(self, metric):
        value = float(metric)
        if math.isnan(value):
            return False
        ahead = value > self.top
        if self.mode == "min":
            ahead = value < self.top
        if not ahead:
            return False
        self.metric = self.top = value
        self.kept = copy.deepcopy(self.model.state_dict())
        return True

    def restore(self):
        if self.kept is None:
            raise RuntimeError("nothing kept")
        self.model.load_state_dict(self.kept)


PassesOverInfinity = edit(
    mended_KeepsFloat32,
    {"if math.isnan(value):": "if not math.isfinite(value):"},
    breaks=hidden_tests.infinite_metrics,
    tells="You pass over infinite metrics as over NaN. Only NaN is never "
    "the best.",
)

ByTheDifference = edit(
    mended_KeepsFloat32,
    {
        """
        ahead = value > self.metric
        if self.mode == "min":
            ahead = value < self.metric
        if not ahead:
        """: """
        sign = 1 if self.mode == "max" else -1
        if sign * (value - self.metric) <= 0:
        """,
    },
    breaks=hidden_tests.infinite_metrics,
    tells="You subtract the best from the metric. Infinity less infinity "
    "is NaN, and a comparison with it comes out as you did not "
    "expect: compare the two numbers.",
)

WantsMoreThanALittle = edit(
    mended_KeepsFloat32,
    {
        "ahead = value > self.metric": "ahead = value > self.metric + 1e-9",
        "ahead = value < self.metric": "ahead = value < self.metric - 1e-9",
    },
    breaks=hidden_tests.which_is_best,
    tells="You ask for an improvement by some least amount. Any metric "
    "that is better is better, by however little.",
)

AnswersNothingToNan = edit(
    mended_KeepsFloat32,
    {
        """
        if math.isnan(value):
            return False
        """: """
        if math.isnan(value):
            return None
        """,
    },
    breaks=hidden_tests.nan_is_never_best,
    tells="Your `update` returns None for a NaN. True or False was asked for.",
)

KeepsByTheModelsId = edit(
    mended_KeepsFloat32,
    {
        "class mended_KeepsFloat32:": """
        class mended_KeepsFloat32:
            store = {}
        """,
        "self.kept = copy.deepcopy(self.model.state_dict())": """
        self.kept = self.store[id(self.model)] = copy.deepcopy(
            self.model.state_dict()
        )
        """,
        "self.model.load_state_dict(self.kept)": "self.model.load_state_dict(self.store[id(self.model)])",
    },
    breaks=hidden_tests.several_at_once,
    tells="Your snapshots lie in one place for all objects of the class, "
    "so that one object overwrites what another kept. Keep them in "
    "`self`.",
)

KeepsInOneFile = edit(
    mended_KeepsFloat32,
    {
        "self.kept = copy.deepcopy(self.model.state_dict())": """
        self.kept = Path(tempfile.gettempdir()) / "best_weights.pt"
        torch.save(self.model.state_dict(), self.kept)
        """,
        "self.model.load_state_dict(self.kept)": "self.model.load_state_dict(torch.load(self.kept))",
    },
    breaks=hidden_tests.several_at_once,
    tells="Your snapshots lie in one place for all objects of the class, "
    "so that one object overwrites what another kept. Keep them in "
    "`self`.",
)


zero_taken_for_none = edit(
    ByClones,
    {"better = self.metric is None or (": "better = not self.metric or ("},
    breaks=hidden_tests.which_is_best,
    tells="You ask whether there is a metric by its truth, and 0.0 is false: a "
    "best of 0.0 counts as none, and the next metric replaces it. Ask "
    "`metric is None`.",
)

ByParametersAndBuffers = edit(
    ByClones,
    {
        "k: v.detach().clone() for k, v in self.model.state_dict().items()": "k: v.detach().clone() for k, v in [*self.model.named_parameters(), *self.model.named_buffers()]",
    },
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep parameters and buffers by name. A layer that stands at two places "
    "has two keys in the `state_dict`, and loading misses the second.",
)

ThroughNumPy = edit(
    ByClones,
    {"k: v.detach().clone()": "k: torch.from_numpy(v.detach().numpy().copy())"},
    breaks=hidden_tests.best_epoch_comes_back,
    tells="You keep the weights as NumPy arrays, which know no bfloat16. `clone()` "
    "copies any tensor.",
)

WithASmallestGain = edit(
    ByClones,
    {
        "value > self.metric if self.mode": "value > self.metric + 1e-15 if self.mode",
    },
    breaks=hidden_tests.which_is_best,
    tells="You ask for a gain of 1e-15 at least. However little better a metric is, it "
    "is the best.",
)

ThawingAfterwards = edit(
    ByClones,
    {
        "self.model.load_state_dict(self.weights)": """
        self.model.load_state_dict(self.weights)
        self.model.requires_grad_(True)
        """,
    },
    breaks=hidden_tests.restored_twice,
    tells="After `restore` frozen parameters are trained. Loading weights changes "
    "values; leave `requires_grad` as it is.",
)

KeepingInEvalMode = edit(
    SOLUTION,
    {
        "self.metric = value": """
        self.model.eval()
        self.metric = value
        """,
    },
    breaks=hidden_tests.restored_twice,
    tells="Your `update` leaves the model in eval mode, and the next epoch trains "
    "without dropout. Copying weights needs no mode.",
)

ClearingGradients = edit(
    SOLUTION,
    {
        "self.model.load_state_dict(self.weights)": """
        self.model.load_state_dict(self.weights)
        self.model.zero_grad()
        """,
    },
    breaks=hidden_tests.restored_twice,
    tells="Your `restore` clears the gradients. It loads weights; when gradients go "
    "is for the training loop to say.",
)

LeavingASetting = edit(
    SOLUTION,
    {
        'self.model, self.sign = model, {"max": 1, "min": -1}[mode]': """
        torch.set_num_threads(2)
        self.model, self.sign = model, {"max": 1, "min": -1}[mode]
        """,
    },
    breaks=hidden_tests.restored_twice,
    tells="You change a setting of PyTorch for the whole process, and it stays changed. That is for who calls you to decide.",
)

KeepsANegatedMetric = edit(
    mended_KeepsFloat32,
    {
        "ahead = value < self.metric": "ahead = -value > self.metric",
        "self.metric = value": """
        self.metric = -value if self.mode == "min" else value
        """,
    },
    breaks=hidden_tests.which_is_best,
    tells='For `"min"` you keep the metric with its sign turned. Inside that compares '
    "well, but `metric` is what the caller reads: the best metric as it was given to "
    "`update`. Keep that, and turn the sign where you compare.",
)

RoundsTheMetric = edit(
    mended_KeepsFloat32,
    {"value = float(metric)": "value = round(float(metric), 6)"},
    breaks=hidden_tests.which_is_best,
    tells="You round the metric. However little one is better than the best so "
    "far, it is the best. And `metric` is read as it was given.",
)
