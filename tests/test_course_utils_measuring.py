"""Devices, seeds, time, memory and recorded results."""

import gc
import itertools
import json
import random

import numpy as np
import pytest
import torch

from course_utils import (
    beside_reference,
    describe_machine,
    devices,
    digit_mlp,
    gaussian_clusters,
    measure_time,
    peak_memory,
    pick_device,
    record,
    recorded,
    saved_tensor_bytes,
    seed_everything,
    show_recorded,
    timing,
)
from course_utils import recorded_results as store


class TestDevices:
    @pytest.mark.parametrize(
        ("cuda", "mps", "picked"),
        [
            (True, True, "cuda"),
            (False, True, "mps"),
            (False, False, "cpu"),
        ],
    )
    def test_the_best_device_is_picked(self, monkeypatch, cuda, mps, picked):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        assert pick_device() == torch.device(picked)

    def test_the_machine_is_described_as_plain_data(self):
        machine = describe_machine()
        assert machine["torch"] == torch.__version__
        assert machine["cuda"] == torch.version.cuda
        assert len(machine["devices"]) >= torch.cuda.device_count()
        assert json.loads(json.dumps(machine)) == machine

    def test_a_broken_driver_is_described_too(self, monkeypatch):
        def broken(*_):
            raise RuntimeError("the driver is too old")

        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "get_device_name", broken)
        monkeypatch.setattr(torch.backends.cudnn, "version", broken)
        machine = describe_machine()
        assert machine["devices"] == []
        assert machine["cudnn"] is None


class TestSeeding:
    @staticmethod
    def drawn():
        return random.random(), np.random.rand(), torch.rand(1).item()

    def test_the_same_seed_gives_the_same_numbers(self):
        seed_everything(3)
        first = self.drawn()
        seed_everything(3)
        assert self.drawn() == first
        seed_everything(4)
        assert not set(self.drawn()) & set(first)

    @pytest.mark.parametrize("seed", [-1, 2**32])
    def test_a_seed_that_numpy_refuses_seeds_nothing(self, seed):
        seed_everything(3)
        first = self.drawn()
        seed_everything(3)
        with pytest.raises(ValueError, match="between 0 and"):
            seed_everything(seed)
        assert self.drawn() == first


class TestTiming:
    def test_median_and_spread_of_the_repeats_after_the_warm_up(
        self, monkeypatch
    ):
        now = itertools.accumulate([0.0, 9.0, 0, 1.0, 0, 2.0, 0, 3.0, 0, 4.0])
        monkeypatch.setattr(timing, "perf_counter", lambda: next(now))
        calls = []
        taken = measure_time(
            lambda: calls.append(1), warmup=2, repeats=5, device="cpu"
        )
        assert len(calls) == 7
        # 9, 1, 2, 3, 4 seconds: the middle half is 2 to 4.
        assert (taken.median_s, taken.spread_s) == (3.0, 2.0)
        assert taken.device == "cpu"
        assert str(taken) == "3 s (spread 2 s, cpu)"
        assert str(timing.Timing(0.0006, 0.000182, "cpu")) == (
            "600 µs (spread 180 µs, cpu)"
        )

    def test_the_device_is_waited_for_on_both_sides(self, monkeypatch):
        events = []
        monkeypatch.setattr(
            torch.cuda, "synchronize", lambda _: events.append("wait")
        )
        measure_time(
            lambda: events.append("call"), warmup=1, repeats=2, device="cuda"
        )
        assert events == ["call", *["wait", "call", "wait"] * 2]

    def test_one_repeat_has_no_spread(self):
        with pytest.raises(ValueError, match="2 repeats"):
            measure_time(lambda: None, repeats=1)


class TestMemory:
    def test_each_storage_counts_once_until_it_is_let_go(self):
        x = torch.randn(1000, dtype=torch.float64, requires_grad=True)
        with saved_tensor_bytes() as saved:
            # exp saves its result, sin saves x, the product saves both again.
            y = (x.exp() * x.sin()).sum()
            assert saved.live_bytes == 3 * 8000
        y.backward()
        assert saved.live_bytes == 0
        assert saved.peak_bytes == 3 * 8000

    def test_a_view_counts_as_its_storage(self):
        x = torch.randn(10, 100, requires_grad=True)
        with saved_tensor_bytes() as saved:
            y = x[:1].sin() + x[1:2].sin()
        assert saved.live_bytes == 4000
        del y
        assert saved.live_bytes == 0

    def test_ignored_tensors_do_not_count(self):
        x = torch.randn(1000, requires_grad=True)
        with saved_tensor_bytes(ignore=[x]) as saved:
            kept = x.sin().sin()
        assert saved.live_bytes == 4000  # of the inner result alone
        del kept

    def test_gradients_are_unchanged_to_the_second_order(self):
        x = torch.randn(5, dtype=torch.float64, requires_grad=True)

        def second(counted):
            with saved_tensor_bytes() if counted else torch.enable_grad():
                y = (x.exp() * x.sigmoid()).sum()
                (first,) = torch.autograd.grad(y, x, create_graph=True)
                return torch.autograd.grad(first.sum(), x)[0]

        assert torch.equal(second(counted=True), second(counted=False))

    def test_a_graph_that_is_dropped_leaves_nothing_behind(self):
        x = torch.randn(1000, requires_grad=True)
        gc.disable()
        try:
            with saved_tensor_bytes() as saved:
                y = x.exp().sum()
            del y
            assert saved.live_bytes == 0
        finally:
            gc.enable()

    def test_an_inplace_change_of_a_saved_tensor_is_still_found(self):
        x = torch.ones(3, requires_grad=True)
        with saved_tensor_bytes():
            y = x.exp()
            y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            y.sum().backward()

    def test_micro_batches_need_less_at_once(self):
        model = digit_mlp()
        X, y = gaussian_clusters(64, (1, 8, 8))
        loss = torch.nn.functional.cross_entropy

        def in_parts(size):
            for part, labels in zip(X.split(size), y.split(size), strict=True):
                loss(model(part), labels).backward()

        whole, micro = (
            peak_memory(
                lambda size=size: in_parts(size),
                device="cpu",
                # The micro-batches are views: all of X would count in each.
                ignore=[*model.parameters(), X, y],
            )
            for size in (64, 8)
        )
        assert whole.counted == micro.counted == "saved tensors"
        # The loss itself saves a count that has no batch dimension.
        assert whole.peak_bytes / micro.peak_bytes == pytest.approx(8, rel=0.01)


class TestRecordedResults:
    @pytest.fixture
    def shipped(self, tmp_path, monkeypatch):
        monkeypatch.setattr(store, "_SHIPPED", tmp_path)
        return tmp_path

    def test_what_was_recorded_comes_back_with_its_source(self, shipped):
        record("10/step_s", 0.25, shipped, "cpu")
        written = record("10/losses", [1.0, 0.5], shipped, "cpu")
        assert recorded("10/losses", "cpu") == written
        found = recorded("10/step_s", "cpu")
        assert found.value == 0.25
        assert found.versions["torch"] == torch.__version__
        assert found.date in found.source
        assert found.device in found.source

    def test_a_later_result_replaces_the_earlier(self, shipped):
        record("10/step_s", 0.25, shipped, "cpu")
        record("10/step_s", 0.5, shipped, "cpu")
        assert recorded("10/step_s", "cpu").value == 0.5

    def test_each_kind_of_device_has_its_own(self, shipped, monkeypatch):
        record("10/step_s", 0.5, shipped, "cpu")
        assert recorded("10/step_s", "cuda") is None
        machine = devices.describe_machine() | {"devices": ["a GPU"]}
        monkeypatch.setattr(store, "describe_machine", lambda: machine)
        record("10/step_s", 0.01, shipped, "cuda:0")
        assert recorded("10/step_s", "cuda").device == "a GPU"
        assert recorded("10/step_s", "cpu").value == 0.5
        assert {path.name for path in shipped.iterdir()} == {"cpu", "cuda"}

    def test_nothing_recorded(self, shipped):
        assert recorded("10/step_s", "cpu") is None

    @pytest.mark.parametrize("value", [float("nan"), torch.ones(2)])
    def test_a_value_that_json_cannot_hold_changes_nothing(
        self, shipped, value
    ):
        record("10/step_s", 0.25, shipped, "cpu")
        with pytest.raises(ValueError, match="10/bad cannot be recorded"):
            record("10/bad", value, shipped, "cpu")
        assert recorded("10/bad", "cpu") is None
        assert recorded("10/step_s", "cpu").value == 0.25

    def test_beside_the_reference(self, shipped, capsys):
        beside_reference("10/step_s", 0.5, unit="s", device="cpu")
        said = capsys.readouterr().out
        assert said.startswith("step s: yours 0.5 s (")
        assert "reference" not in said
        found = record("10/step_s", 0.25, shipped, "cpu")
        beside_reference("10/step_s", 0.5, unit="s", device="cpu")
        said = capsys.readouterr().out
        assert said.endswith(f", reference 0.25 s ({found.source})\n")

    def test_results_of_a_device_that_is_not_here(self, shipped, capsys):
        for name, ms in (("fast", 1.5), ("faster", 0.25)):
            record(f"10/{name}_ms", ms, shipped, "cpu")
        source = recorded("10/fast_ms", "cpu").source
        names = {"fast": "10/fast_ms", "faster": "10/faster_ms"}
        show_recorded(names, unit="ms", device="cpu")
        said = capsys.readouterr().out
        assert said == f"{source}:\n  fast    1.5 ms\n  faster  0.25 ms\n"
        with pytest.raises(ValueError, match="10/fast_ms is not recorded for"):
            show_recorded(names, device="cuda")

    def test_make_record_records_what_is_shown(self, shipped, monkeypatch):
        monkeypatch.setenv("COURSE_UTILS_RECORD", str(shipped))
        beside_reference("10/step_s", 0.5, unit="s", device="cpu")
        assert recorded("10/step_s", "cpu").value == 0.5

    def test_everything_shipped_says_where_it_comes_from(self):
        for path in store._SHIPPED.glob("*/*.json"):
            for name in json.loads(path.read_text(encoding="utf-8")):
                assert name.startswith(f"{path.stem}/")
                found = recorded(name, path.parent.name)
                assert found.device
                assert found.date
                assert found.versions["torch"]
