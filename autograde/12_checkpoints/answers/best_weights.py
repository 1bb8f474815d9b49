"""Answers to `best_weights` of chapter 12."""

import copy
import io
import math
import tempfile

import torch

from course_grader.bank import accepted, wrong

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
        self.weights = [one.detach().clone() for one in self.live()]
        return True

    def live(self):
        return [*self.model.parameters(), *self.model.buffers()]

    def restore(self):
        if not self.weights:
            raise RuntimeError("nothing kept")
        with torch.no_grad():
            for live, kept in zip(self.live(), self.weights, strict=True):
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
