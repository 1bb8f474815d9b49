"""The answer bank of chapter 00: GPUs, devices, moves and reports."""

import os
import re

import torch
from torch import Tensor, nn

from course_grader.bank import accepted, wrong

from . import hidden_tests

# quiz


@accepted("quiz")
def as_a_literal():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@accepted("quiz")
def in_capital_letters():
    return dict(
        current="B",
        numbers="C",
        assigned="B",
        left_behind="D",
        busy="C",
        versions="B",
    )


@accepted("quiz")
def from_a_string():
    names = "current numbers assigned left_behind busy versions".split()
    return dict(zip(names, "bcbdcb"))


@accepted("quiz")
def with_answers_worked_out():
    index = torch.device("cuda").index
    current = "b" if index is None else "a"
    numbers = "abc"[2 - [3, 1].index(3)]
    x = torch.ones(1)
    x.to("meta")
    assigned = "b" if x.device.type == "cpu" else "d"
    letters = {"current": current, "numbers": numbers, "assigned": assigned}
    return {**letters, "left_behind": "d", "busy": "c", "versions": "b"}


@accepted("quiz")
def with_blanks_around():
    letters = {"versions": " b", "busy": "C ", "left_behind": "d"}
    letters |= {"assigned": "B", "numbers": " c ", "current": "b"}
    return letters


@wrong(
    "quiz",
    breaks=hidden_tests.which_index,
    tells='You took "cuda" for "cuda:0". Without a number it means the '
    "current device, which `torch.cuda.set_device` may have changed: "
    "its index is None.",
)
def index_zero():
    return {
        "current": "a",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_index,
    tells="A `torch.device` is a name. It can be made and asked without any "
    "GPU; only moving something to it needs one.",
)
def index_an_error():
    return {
        "current": "c",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_index,
    tells="The index says which device is meant, not how many there are. "
    "Without a number it is None.",
)
def index_a_count():
    return {
        "current": "d",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_number,
    tells="Inside the program the cards are counted anew, from 0. With two "
    "visible GPUs there is no `cuda:3`.",
)
def old_number():
    return {
        "current": "b",
        "numbers": "a",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_number,
    tells="The list is not sorted: its order counts. The first entry is "
    "`cuda:0`.",
)
def sorted_numbers():
    return {
        "current": "b",
        "numbers": "b",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.which_number,
    tells="GPU 3 is in the list, so it is visible. What is not in the list is "
    "hidden.",
)
def hidden_number():
    return {
        "current": "b",
        "numbers": "d",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_to_keep,
    tells="It is the other way round: a module moves in place, a tensor's "
    "`.to` returns another tensor.",
)
def keeping_the_model():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "a",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_to_keep,
    tells="Assigning `model.to(device)` does no harm, but has no effect of "
    "its own: a module moves in place. Only the tensor's result must be "
    "kept.",
)
def keeping_both():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "c",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_to_keep,
    tells="A tensor's `.to` leaves the tensor where it is and returns "
    "another. Without an assignment that one is lost.",
)
def keeping_neither():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "d",
        "left_behind": "d",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_stays,
    tells="Buffers move: they are registered with the module. A tensor that "
    "is only an attribute does not.",
)
def buffers_stay():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "a",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_stays,
    tells="Freezing (`requires_grad=False`) keeps a weight from being "
    "trained. It is a parameter all the same and moves.",
)
def frozen_stay():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "b",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_stays,
    tells="An `nn.ModuleList` is there for that: its layers are registered "
    "and move. Those in a Python list do not.",
)
def module_list_stays():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "c",
        "busy": "c",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_utilisation_is,
    tells="Memory in use stands in another column. Utilisation is about time: "
    "the share of it in which some kernel ran.",
)
def memory_full():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "a",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_utilisation_is,
    tells="One small kernel that runs all the time gives 100 %, on a chip "
    "that is nearly empty. Utilisation is a share of time, not of the "
    "chip.",
)
def whole_chip_busy():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "b",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.what_utilisation_is,
    tells="Other processes can start and will share the time. Utilisation is "
    "the share of time in which some kernel ran.",
)
def no_other_process():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "d",
        "versions": "b",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.whose_version,
    tells="What the driver supports at most stands in the head of `nvidia- "
    "smi`. `torch.version.cuda` was written down when PyTorch was "
    "built.",
)
def of_the_driver():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "a",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.whose_version,
    tells="A toolkit on the disk (`nvcc --version`) can be another, or none. "
    "`torch.version.cuda` was written down when PyTorch was built.",
)
def of_the_toolkit():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "c",
    }


@wrong(
    "quiz",
    breaks=hidden_tests.whose_version,
    tells="The card is not asked: the number is there on machines without "
    "one. It was written down when PyTorch was built.",
)
def of_the_card():
    return {
        "current": "b",
        "numbers": "c",
        "assigned": "b",
        "left_behind": "d",
        "busy": "c",
        "versions": "d",
    }


# choose_gpus


@accepted("choose_gpus", body=True)
def with_int_and_try():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@accepted("choose_gpus", body=True)
def with_a_merge_and_a_dict():
    def env_for(gpus, environ, override=True):
        for place, gpu in enumerate(gpus):
            if gpu in gpus[:place] or (isinstance(gpu, int) and gpu < 0):
                raise ValueError(gpu)
        text = ",".join(f"{gpu}" for gpu in gpus)
        if not override:
            text = environ.get("CUDA_VISIBLE_DEVICES", text)
        order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        return {**order, **environ, "CUDA_VISIBLE_DEVICES": text}

    def physical_ids(visible, num_gpus):
        known = {str(gpu): gpu for gpu in range(num_gpus)}
        if visible is None:
            return list(known.values())
        seen = []
        for entry in map(str.strip, visible.split(",")):
            if entry not in known:
                break
            seen.append(known[entry])
        return seen if len(seen) == len(set(seen)) else []

    def cuda_name(gpu, visible, num_gpus):
        for number, card in enumerate(physical_ids(visible, num_gpus)):
            if card == gpu:
                return "cuda:" + str(number)
        raise ValueError(f"GPU {gpu} is hidden")


@accepted("choose_gpus", body=True)
def with_copies_and_a_regular_expression():
    def env_for(gpus, environ, override=True):
        if any(str(gpu).startswith("-") for gpu in gpus):
            raise ValueError("negative")
        if len({str(gpu) for gpu in gpus}) != len(gpus):
            raise ValueError("twice")
        new = environ.copy()
        if "CUDA_DEVICE_ORDER" not in new:
            new["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        if override:
            new.pop("CUDA_VISIBLE_DEVICES", None)
        new.setdefault("CUDA_VISIBLE_DEVICES", ",".join(map(str, gpus)))
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return [*range(num_gpus)]
        good = []
        for entry in visible.split(","):
            found = re.fullmatch(r"\s*(\d+)\s*", entry)
            if found is None or int(found[1]) >= num_gpus:
                break
            good += [int(found[1])]
        return [] if len(set(good)) < len(good) else good

    def cuda_name(gpu, visible, num_gpus):
        ids = physical_ids(visible, num_gpus)
        if gpu not in ids:
            raise ValueError("not visible")
        return str(torch.device("cuda", ids.index(gpu)))


@accepted("choose_gpus", body=True)
def with_pytorchs_reader():
    def env_for(gpus, environ, override=True):
        names = list(map(str, gpus))
        for name in names:
            if names.count(name) > 1 or name.lstrip().startswith("-"):
                raise ValueError(name)
        new = {key: value for key, value in environ.items()}
        new = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | new
        text = {"CUDA_VISIBLE_DEVICES": ",".join(names)}
        return new | text if override else text | new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        old = os.environ.get("CUDA_VISIBLE_DEVICES")
        entries = []
        for entry in visible.split(","):
            if not entry.strip().isdecimal() or int(entry) >= num_gpus:
                break
            entries.append(entry)
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(entries)
        try:
            return torch.cuda._parse_visible_devices()
        finally:
            os.environ.pop("CUDA_VISIBLE_DEVICES")
            if old is not None:
                os.environ["CUDA_VISIBLE_DEVICES"] = old

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@accepted("choose_gpus", body=True)
def with_the_order_kept_in_a_dict():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        entries = range(num_gpus) if visible is None else visible.split(",")
        order = {}
        for entry in entries:
            text = str(entry).strip()
            if not text.isdigit() or int(text) not in range(num_gpus):
                break
            if int(text) in order:
                return []
            order[int(text)] = len(order)
        return list(order)

    def cuda_name(gpu, visible, num_gpus):
        numbers = {g: i for i, g in enumerate(physical_ids(visible, num_gpus))}
        try:
            return f"cuda:{numbers[gpu]}"
        except KeyError as error:
            raise ValueError(gpu) from error


@wrong(
    "choose_gpus",
    breaks=[hidden_tests.named_in_order, hidden_tests.uuids_as_they_are],
    tells="`CUDA_VISIBLE_DEVICES` is no text in your environment. "
    "`subprocess.run` takes text only: join the GPUs with "
    '`",".join(map(str, gpus))`.',
    body=True,
)
def numbers_as_they_are():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = list(gpus)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.named_in_order,
    tells="A single GPU went into the environment as a number. Values there "
    "are text, also where it is one GPU.",
    body=True,
)
def one_number_as_it_is():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            text = ",".join(names)
            new["CUDA_VISIBLE_DEVICES"] = gpus[0] if len(names) == 1 else text
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.named_in_order,
    tells="You sorted the GPUs. The order is a choice of the caller: the "
    "first becomes `cuda:0`. Join them as they come.",
    body=True,
)
def in_sorted_order():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(sorted(names))
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.named_in_order,
    tells="You put blanks behind the commas. The text is to have none: join "
    'with `","`.',
    body=True,
)
def with_blanks():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ", ".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.no_gpu_is_an_empty_text,
    tells="For no GPU you wrote -1. It hides all of them too, but the task "
    "asks for an empty text, which needs no case of its own: joining "
    "nothing gives it.",
    body=True,
)
def no_gpu_as_minus_one():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names) or "-1"
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.no_gpu_is_an_empty_text,
    tells="Where no GPU was asked for you left `CUDA_VISIBLE_DEVICES` as it "
    "was. A variable that is not set shows all GPUs, an old value those "
    'of somebody else. Set it to "".',
    body=True,
)
def no_gpu_not_set():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if gpus and (override or "CUDA_VISIBLE_DEVICES" not in new):
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.override_or_not,
    tells="You used `setdefault`, which leaves a value that is there. With "
    "`override=True` the new one has to replace it.",
    body=True,
)
def always_setdefault():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        new.setdefault("CUDA_VISIBLE_DEVICES", ",".join(names))
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.override_or_not,
    tells="You replaced a `CUDA_VISIBLE_DEVICES` that was there although "
    "`override` is False. The user or a scheduler has chosen it: leave "
    "it then.",
    body=True,
)
def always_replaced():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.override_or_not,
    tells="You took an empty `CUDA_VISIBLE_DEVICES` for one that is not set. "
    "Empty means: no GPU, on purpose. Ask `in environ`, not whether the "
    "text is true.",
    body=True,
)
def empty_is_taken_for_unset():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or not new.get("CUDA_VISIBLE_DEVICES"):
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.override_or_not,
    tells="`override` works the wrong way round: True is to replace what is "
    "there, False to leave it.",
    body=True,
)
def override_the_wrong_way_round():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if not override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.override_or_not,
    tells="With `override=False` and no value in `environ` you set none. Then "
    "all GPUs are seen. Only a value that is there stays.",
    body=True,
)
def not_without_a_value():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.rest_of_the_environment,
    tells="The new environment holds your variables alone. A process needs "
    "the rest as well (PATH, HOME): begin with a copy of `environ`.",
    body=True,
)
def nothing_but_the_variables():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        ours = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
        new = {key: environ[key] for key in ours if key in environ}
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.rest_of_the_environment,
    tells="`CUDA_DEVICE_ORDER` is missing. Without it CUDA counts the fastest "
    "card first, and your numbers may mean other cards than those of "
    "`nvidia-smi`.",
    body=True,
)
def no_device_order():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.rest_of_the_environment,
    tells="You replaced a `CUDA_DEVICE_ORDER` that was there. Set it only if "
    "`environ` has none.",
    body=True,
)
def device_order_always_ours():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.environments_untouched,
    tells="You wrote into the mapping that you were given. The caller's "
    "environment changes with it. Copy first: `dict(environ)`.",
    body=True,
)
def in_the_callers_mapping():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = environ
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.environments_untouched,
    tells="`copy.copy(os.environ)` is another object that writes into the "
    "same, real environment. `dict(os.environ)` is a dict of its own.",
    body=True,
)
def in_a_shallow_copy_of_os_environ():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        import copy

        new = copy.copy(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.environments_untouched,
    tells="You set the variable in `os.environ`, for this very process and "
    "every one that it starts. The function is to return a new dict and "
    "touch nothing.",
    body=True,
)
def in_the_real_environment():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        os.environ["CUDA_VISIBLE_DEVICES"] = new["CUDA_VISIBLE_DEVICES"]
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.bad_gpus_raise,
    tells="You accepted a negative number. It would silently end the list and "
    "hide everything after it: raise a `ValueError`.",
    body=True,
)
def negative_accepted():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.bad_gpus_raise,
    tells="You accepted a GPU that is named twice. A program with that list "
    "sees no GPU at all: raise a `ValueError`.",
    body=True,
)
def twice_accepted():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.bad_gpus_raise,
    tells="You left out a GPU's second mention without a word. It is a "
    "mistake of the caller: raise a `ValueError`.",
    body=True,
)
def repeats_removed():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        names = list(dict.fromkeys(names))
        if any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.bad_gpus_raise,
    tells="You look at the GPUs only where you use them: with "
    "`override=False` and a value there, bad ones pass. Check first.",
    body=True,
)
def asked_only_where_it_is_used():
    def env_for(gpus, environ, override=True):
        new = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environ}
        if not override and "CUDA_VISIBLE_DEVICES" in environ:
            return new
        names = list(map(str, gpus))
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        return {**new, "CUDA_VISIBLE_DEVICES": ",".join(names)}

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="You sorted the visible GPUs. The list is an order: its first entry "
    "is `cuda:0`.",
    body=True,
)
def ids_sorted():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return sorted(ids)

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="You read the text one character at a time: GPU 11 becomes 1 and 1. "
    "Split it at the commas.",
    body=True,
)
def ids_one_character_long():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.replace(",", "").replace(" ", ""):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="An entry with a blank beside it ended your list. Blanks around an "
    "entry do not matter: `strip` it.",
    body=True,
)
def blanks_refused():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            if not entry.isdecimal():
                break
            gpu = int(entry)
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.not_set_and_empty,
    tells="Where the variable is not set (None) you show no GPU. Then all are "
    "seen; only an empty text hides all of them.",
    body=True,
)
def unset_shows_none():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return []
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.not_set_and_empty,
    tells="You took an empty text for a variable that is not set. Empty "
    "means: no GPU. Ask `visible is None`.",
    body=True,
)
def empty_shows_all():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if not visible:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You left out the invalid entries and read on. The list ends at the "
    "first of them: everything after it is hidden.",
    body=True,
)
def invalid_left_out():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                continue
            if not 0 <= gpu < num_gpus:
                continue
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You end the list at a negative number only. A number that the "
    "machine has no GPU for ends it as well.",
    body=True,
)
def only_negative_stops():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if gpu < 0:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You take `num_gpus` itself for a GPU. They are counted from 0: the "
    "last is `num_gpus - 1`.",
    body=True,
)
def one_gpu_too_many():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu <= num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="At an invalid entry you gave up all GPUs. Those before it stay "
    "visible.",
    body=True,
)
def invalid_shows_none():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                return []
            if not 0 <= gpu < num_gpus:
                return []
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="An entry that is no number makes your function raise. It ends the "
    "list, like any other invalid entry.",
    body=True,
)
def letters_raise():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            gpu = int(entry) if entry.strip() else -1
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="Your ids are text. Make numbers of them: `int(entry)`.",
    body=True,
)
def ids_as_text():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return [str(gpu) for gpu in range(num_gpus)]
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if str(gpu) in ids:
                return []
            ids.append(str(gpu))
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(str(gpu))}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="Your ids come back as a tuple. A list is asked for.",
    body=True,
)
def ids_as_a_tuple():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return tuple(ids)

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.environments_untouched,
    tells="You changed the caller's list of GPUs. Work on a copy.",
    body=True,
)
def the_callers_gpus_sorted():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        if isinstance(gpus, list):
            gpus.sort(key=str)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.twice_leaves_none,
    tells="You kept a GPU that is named twice under two numbers. A repeated "
    "GPU leaves none visible: `[]`.",
    body=True,
)
def repeats_kept():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.twice_leaves_none,
    tells="You left out the second mention of a GPU. A repeated GPU leaves "
    "none visible: `[]`.",
    body=True,
)
def repeats_left_out():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                continue
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.twice_leaves_none,
    tells="You let a repeated GPU end the list. It does more: it leaves no "
    "GPU visible, `[]`.",
    body=True,
)
def repeats_end_the_list():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                break
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.twice_leaves_none,
    tells="You looked for repeated entries in the whole text. What stands "
    "behind an invalid entry is never read.",
    body=True,
)
def repeats_after_the_end():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        entries = [entry.strip() for entry in visible.split(",")]
        if len(set(entries)) < len(entries):
            return []
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.name_after_renumbering,
    tells="You used the physical number in the name. Inside the program the "
    "visible GPUs are counted anew, from 0: the place in the list "
    "counts.",
    body=True,
)
def physical_number_as_name():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        if gpu not in physical_ids(visible, num_gpus):
            raise ValueError(f"GPU {gpu} is hidden")
        return f"cuda:{gpu}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.name_after_renumbering,
    tells="`/gpu:0` is how TensorFlow names a device. PyTorch says `cuda:0`.",
    body=True,
)
def the_name_of_tensorflow():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"/gpu:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.name_after_renumbering,
    tells="You gave a name to a GPU that the program does not see. There is "
    "none: raise a `ValueError`.",
    body=True,
)
def hidden_gpu_named():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        ids = physical_ids(visible, num_gpus)
        return f"cuda:{ids.index(gpu) if gpu in ids else gpu}"


@wrong(
    "choose_gpus",
    breaks=hidden_tests.name_after_renumbering,
    tells="You looked up which card stands at place `gpu`. It is asked the "
    "other way round: at which place card `gpu` stands. "
    "`ids.index(gpu)`, not `ids[gpu]`.",
    body=True,
)
def the_other_direction():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(entry)
            except ValueError:
                break
            if not 0 <= gpu < num_gpus:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        ids = physical_ids(visible, num_gpus)
        if gpu not in ids:
            raise ValueError(f"GPU {gpu} is hidden")
        return f"cuda:{(ids + list(range(num_gpus)))[gpu]}"


@wrong(
    "choose_gpus",
    body=True,
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells='You took the blanks out of the whole text, and "1 2" became '
    "12. `strip` each entry: a blank within it makes it no "
    "number.",
)
def blanks_taken_out_everywhere():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.replace(" ", "").split(","):
            number = entry.strip()
            if not number.isdecimal() or int(number) >= num_gpus:
                break
            if int(number) in ids:
                return []
            ids.append(int(number))
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    body=True,
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You read the entries as numbers with a point and cut that "
    "off. 0.5 is no GPU: it ends the list.",
)
def entries_read_as_floats():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            try:
                gpu = int(float(entry))
            except ValueError:
                break
            if not 0 <= gpu < num_gpus or "-" in entry:
                break
            if gpu in ids:
                return []
            ids.append(gpu)
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    body=True,
    breaks=hidden_tests.name_after_renumbering,
    tells="`cuda_name` reads the list by rules of its own, which are "
    "not those of `physical_ids`: ask that function.",
)
def name_by_other_rules():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            number = entry.strip()
            if not number.isdecimal() or int(number) >= num_gpus:
                break
            if int(number) in ids:
                return []
            ids.append(int(number))
        return ids

    def cuda_name(gpu, visible, num_gpus):
        if visible is None:
            visible = ",".join(map(str, range(num_gpus)))
        entries = visible.split(",")
        if len(set(entries)) < len(entries):
            raise ValueError("a GPU is named twice")
        for number, entry in enumerate(entries):
            if entry == str(gpu):
                return f"cuda:{number}"
            if entry.startswith("-"):
                break
        raise ValueError("a hidden GPU")


@wrong(
    "choose_gpus",
    body=True,
    breaks=hidden_tests.name_after_renumbering,
    tells="You returned a `torch.device`. Its name is asked for, a "
    "string: `str(...)` of it.",
)
def name_as_a_device():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            number = entry.strip()
            if not number.isdecimal() or int(number) >= num_gpus:
                break
            if int(number) in ids:
                return []
            ids.append(int(number))
        return ids

    def cuda_name(gpu, visible, num_gpus):
        place = physical_ids(visible, num_gpus).index(gpu)
        return torch.device("cuda", place)


@wrong(
    "choose_gpus",
    body=True,
    breaks=hidden_tests.rest_of_the_environment,
    tells="You mixed this process's own environment into `environ`. "
    "What the caller gave is the whole of it.",
)
def with_the_own_environment():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = {**os.environ, **environ}
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            number = entry.strip()
            if not number.isdecimal() or int(number) >= num_gpus:
                break
            if int(number) in ids:
                return []
            ids.append(int(number))
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@wrong(
    "choose_gpus",
    body=True,
    breaks=hidden_tests.rest_of_the_environment,
    tells="You took an empty `CUDA_DEVICE_ORDER` for none. `environ` "
    "has one: it stays. Ask `in environ`.",
)
def empty_order_is_none():
    def env_for(gpus, environ, override=True):
        names = [str(gpu) for gpu in gpus]
        if len(set(names)) < len(names) or any(n[0] == "-" for n in names):
            raise ValueError("a GPU is negative or named twice")
        new = dict(environ)
        order = new.get("CUDA_DEVICE_ORDER") or "PCI_BUS_ID"
        new["CUDA_DEVICE_ORDER"] = order
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new

    def physical_ids(visible, num_gpus):
        if visible is None:
            return list(range(num_gpus))
        ids = []
        for entry in visible.split(","):
            number = entry.strip()
            if not number.isdecimal() or int(number) >= num_gpus:
                break
            if int(number) in ids:
                return []
            ids.append(int(number))
        return ids

    def cuda_name(gpu, visible, num_gpus):
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


@accepted("choose_gpus", body=True)
def with_an_error_of_its_own():
    class NoSuchGpu(ValueError):
        pass

    def env_for(gpus, environ, override=True):
        text = ",".join(map(str, gpus))
        if len({*gpus}) != len(gpus) or "-" in {g[:1] for g in text.split(",")}:
            raise NoSuchGpu(text)
        new = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | {**environ}
        if not override and "CUDA_VISIBLE_DEVICES" in environ:
            return new
        return new | {"CUDA_VISIBLE_DEVICES": text}

    def physical_ids(visible, num_gpus):
        if visible is None:
            return [*range(num_gpus)]
        every = {str(gpu): gpu for gpu in range(num_gpus)}
        found = [every.get(one.strip()) for one in visible.split(",")] + [None]
        found = found[: found.index(None)]
        return found * (len(found) == len(set(found)))

    def cuda_name(gpu, visible, num_gpus):
        ids = physical_ids(visible, num_gpus)
        if ids.count(gpu) == 0:
            raise NoSuchGpu(gpu)
        return str(torch.device("cuda", ids.index(gpu)))


# to_device


@accepted("to_device")
def by_cases(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, by_cases(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(by_cases(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(by_cases(one, device) for one in batch)
    return batch


@accepted("to_device")
def by_tree_map(batch, device):
    from torch.utils._pytree import tree_map

    def move(leaf):
        return leaf.to(device) if isinstance(leaf, Tensor) else leaf

    return tree_map(move, batch)


@accepted("to_device")
def by_tree_map_only(batch, device):
    from torch.utils import _pytree as pytree

    return pytree.tree_map_only(Tensor, lambda t: t.to(device), batch)


@accepted("to_device")
def by_match(batch, device):
    from collections import OrderedDict

    match batch:
        case Tensor():
            return batch.to(device=device, copy=True)
        case OrderedDict():
            moved = OrderedDict()
            for key in batch:
                moved[key] = by_match(batch[key], device)
            return moved
        case dict():
            return {key: by_match(one, device) for key, one in batch.items()}
        case list():
            return [by_match(one, device) for one in batch]
        case tuple():
            items = [by_match(one, device) for one in batch]
            make = getattr(type(batch), "_make", tuple)
            return make(items)
        case _:
            return batch


@accepted("to_device")
def by_other(batch, device):
    pattern = torch.empty(0, device=device)

    def go(one):
        if torch.is_tensor(one):
            return one.to(pattern.device)
        if isinstance(one, dict):
            filled = one.copy()
            for key, value in one.items():
                filled[key] = go(value)
            return filled
        if hasattr(one, "_replace"):
            return one._replace(
                **{name: go(value) for name, value in one._asdict().items()}
            )
        if type(one) in (list, tuple):
            return type(one)(map(go, one))
        return one

    return go(batch)


@accepted("to_device")
def old_where_nothing_changes(batch, device):
    device = torch.device(device)
    if isinstance(batch, Tensor):
        return batch if batch.device == device else batch.to(device)
    if isinstance(batch, dict):
        values = [old_where_nothing_changes(v, device) for v in batch.values()]
        if all(a is b for a, b in zip(values, batch.values())):
            return batch
        return type(batch)(zip(batch, values))
    if isinstance(batch, (list, tuple)):
        values = [old_where_nothing_changes(v, device) for v in batch]
        if all(a is b for a, b in zip(values, batch)):
            return batch
        if hasattr(batch, "_make"):
            return batch._make(values)
        return type(batch)(values)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.tensor_alone, hidden_tests.plain_containers],
    tells="The tensors stayed where they were. Either you returned the tensor "
    "from before, since `.to` leaves it where it is and returns "
    "another, or you chose a device yourself. Return "
    "`batch.to(device)`.",
)
def result_thrown_away(batch, device):
    if isinstance(batch, Tensor):
        batch.to(device)
        return batch
    if isinstance(batch, dict):
        return type(batch)(
            (key, result_thrown_away(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(result_thrown_away(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(result_thrown_away(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.tensor_alone, hidden_tests.any_device],
    tells="You wrote `.cuda()`, whatever `device` says. It raises on a "
    "machine without a GPU. Use `.to(device)`.",
)
def by_cuda(batch, device):
    if isinstance(batch, Tensor):
        return batch.cuda()
    if isinstance(batch, dict):
        return type(batch)(
            (key, by_cuda(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(by_cuda(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(by_cuda(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.any_device,
    tells="Your tensors go to one device, whatever `device` says. Use the "
    "device you are given.",
)
def always_meta(batch, device):
    if isinstance(batch, Tensor):
        return batch.to("meta")
    if isinstance(batch, dict):
        return type(batch)(
            (key, always_meta(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(always_meta(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(always_meta(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.tensor_alone,
    tells="The tensors stayed where they were. Either you returned the tensor "
    "from before, since `.to` leaves it where it is and returns "
    "another, or you chose a device yourself. Return "
    "`batch.to(device)`.",
)
def best_device_of_the_machine(batch, device):
    if isinstance(batch, Tensor):
        return batch.to("cuda" if torch.cuda.is_available() else "cpu")
    if isinstance(batch, dict):
        return type(batch)(
            (key, best_device_of_the_machine(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(best_device_of_the_machine(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(
            best_device_of_the_machine(one, device) for one in batch
        )
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.plain_containers,
    tells="You moved the first item of a list or tuple and left the others "
    "behind. Go through all of them.",
)
def only_the_first(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, only_the_first(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(only_the_first(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(
            only_the_first(one, device) if i == 0 else one
            for i, one in enumerate(batch)
        )
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.nested_containers,
    tells="You moved the tensors of the outermost container only. For each "
    "item the function has to call itself.",
)
def one_level(batch, device):
    def move(one):
        return one.to(device) if isinstance(one, Tensor) else one

    if isinstance(batch, dict):
        return type(batch)((key, move(one)) for key, one in batch.items())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(move, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(move, batch))
    return move(batch)


@wrong(
    "to_device",
    breaks=hidden_tests.nested_containers,
    tells="You stop at some depth. Let the function call itself for each "
    "item: then no depth is special.",
)
def two_levels(batch, device, depth=0):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if depth == 4:
        return batch
    if isinstance(batch, dict):
        return type(batch)(
            (key, two_levels(one, device, depth + 1))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(two_levels(one, device, depth + 1) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(two_levels(one, device, depth + 1) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.plain_containers, hidden_tests.nested_containers],
    tells="A tuple came back as a list. Containers keep their type: "
    "`type(batch)(...)`.",
)
def tuples_as_lists(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, tuples_as_lists(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(tuples_as_lists(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return [tuples_as_lists(one, device) for one in batch]
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.plain_containers, hidden_tests.nested_containers],
    tells="A list came back as a tuple. Containers keep their type: "
    "`type(batch)(...)`.",
)
def lists_as_tuples(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, lists_as_tuples(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(lists_as_tuples(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return tuple(lists_as_tuples(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.plain_containers, hidden_tests.nested_containers],
    tells="A dict came back as a list of its values, and its keys are lost. "
    "Make a dict of the moved items.",
)
def dicts_as_lists(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return [dicts_as_lists(one, device) for one in batch.values()]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(dicts_as_lists(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(dicts_as_lists(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.types_of_containers,
    tells="A named tuple came back as a plain tuple: `batch.first` no longer "
    "works. Make one of its own type: `type(batch)(*items)`.",
)
def named_tuples_as_tuples(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, named_tuples_as_tuples(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return tuple(named_tuples_as_tuples(one, device) for one in batch)
    if isinstance(batch, (list, tuple)):
        return type(batch)(named_tuples_as_tuples(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.types_of_containers,
    tells="A named tuple wants its items as arguments, one by one: "
    "`type(batch)(*items)`. With all of them in one argument it raises.",
)
def named_tuples_from_one_argument(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, named_tuples_from_one_argument(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            [named_tuples_from_one_argument(one, device) for one in batch]
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(
            named_tuples_from_one_argument(one, device) for one in batch
        )
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.types_of_containers,
    tells="You returned named tuples as they were, with their tensors where "
    "they were.",
)
def named_tuples_left_alone(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, named_tuples_left_alone(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return batch
    if isinstance(batch, (list, tuple)):
        return type(batch)(
            named_tuples_left_alone(one, device) for one in batch
        )
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.types_of_containers,
    tells="An `OrderedDict` came back as a plain dict. Containers keep their "
    "type: `type(batch)(...)`.",
)
def ordered_dicts_as_dicts(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {
            key: ordered_dicts_as_dicts(one, device)
            for key, one in batch.items()
        }
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(ordered_dicts_as_dicts(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(ordered_dicts_as_dicts(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.types_of_containers,
    tells="You sorted the keys of the dicts. Their order is to stay, and not "
    "all keys can be sorted.",
)
def sorted_keys(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, sorted_keys(one, device))
            for key, one in sorted(batch.items(), key=lambda pair: str(pair[0]))
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(sorted_keys(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(sorted_keys(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.plain_containers,
    tells="You turned the keys of the dicts into text. They stay what they "
    "are.",
)
def keys_as_text(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (str(key), keys_as_text(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(keys_as_text(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(keys_as_text(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.other_objects, hidden_tests.nested_containers],
    tells="You left out what is None. The structure has to stay: None comes "
    "back as None.",
)
def none_dropped(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, none_dropped(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(none_dropped(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(
            none_dropped(one, device) for one in batch if one is not None
        )
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.other_objects, hidden_tests.nested_containers],
    tells="You raise an error at what is neither tensor nor container. "
    "Batches hold names and numbers too: return them as they are.",
)
def others_raise(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, others_raise(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(others_raise(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(others_raise(one, device) for one in batch)
    raise TypeError(f"cannot move {type(batch)}")


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You copied what is neither tensor nor container. The same object "
    "has to come back: others may hold it too.",
)
def others_copied(batch, device):
    import copy

    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, others_copied(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(others_copied(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(others_copied(one, device) for one in batch)
    return copy.deepcopy(batch)


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You made tensors of numbers. What is no tensor comes back as the "
    "same object.",
)
def numbers_made_tensors(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, (int, float)) and not isinstance(batch, bool):
        return torch.tensor(batch, device=device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, numbers_made_tensors(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(numbers_made_tensors(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(numbers_made_tensors(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You made a tensor of a NumPy array. What is no tensor comes back "
    "as the same object.",
)
def arrays_made_tensors(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if hasattr(batch, "__array__"):
        return torch.from_numpy(batch).to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, arrays_made_tensors(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(arrays_made_tensors(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(arrays_made_tensors(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You go through everything that can be gone through, text included. "
    "Its items are text again, without end. Ask for list and tuple.",
)
def text_gone_through(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, text_gone_through(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(text_gone_through(one, device) for one in batch))
    if hasattr(batch, "__iter__"):
        return type(batch)(text_gone_through(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.callers_batch_stays,
    tells="You moved the tensors inside other objects as well, and so changed "
    "an object of the caller. What is neither tensor nor container "
    "comes back as it is.",
)
def objects_searched(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if hasattr(batch, "__dict__"):
        for name, one in vars(batch).items():
            setattr(batch, name, objects_searched(one, device))
    if isinstance(batch, dict):
        return type(batch)(
            (key, objects_searched(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(objects_searched(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(objects_searched(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.nothing_in_it,
    tells="An empty container came back as None. It is a container: return an "
    "empty one of its type.",
)
def empty_as_none(batch, device):
    if isinstance(batch, (dict, list, tuple)) and not batch:
        return None
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, empty_as_none(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(empty_as_none(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(empty_as_none(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.nothing_in_it,
    tells="You look at the first item of a list or tuple. An empty one has "
    "none.",
)
def first_item_asked(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, first_item_asked(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(first_item_asked(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        if isinstance(batch[0], str) and len(batch) == 1:
            return batch
        return type(batch)(first_item_asked(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.callers_batch_stays,
    tells="You wrote the moved tensors into the caller's dict. It is the "
    "caller's: make a new one.",
)
def dicts_filled_in_place(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        for key, one in batch.items():
            batch[key] = dicts_filled_in_place(one, device)
        return batch
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(dicts_filled_in_place(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(dicts_filled_in_place(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.callers_batch_stays,
    tells="You wrote the moved tensors into the caller's list. It is the "
    "caller's: make a new one.",
)
def lists_filled_in_place(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, lists_filled_in_place(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(lists_filled_in_place(one, device) for one in batch)
        )
    if isinstance(batch, list):
        batch[:] = [lists_filled_in_place(one, device) for one in batch]
        return batch
    if isinstance(batch, (list, tuple)):
        return type(batch)(lists_filled_in_place(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.callers_batch_stays,
    tells="You put the moved values into the caller's tensor (`.data`). "
    "Whoever holds it loses it. Return what `.to` returns.",
)
def tensors_moved_in_place(batch, device):
    if isinstance(batch, Tensor):
        batch.data = batch.data.to(device)
        return batch
    if isinstance(batch, dict):
        return type(batch)(
            (key, tensors_moved_in_place(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(tensors_moved_in_place(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(tensors_moved_in_place(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[
        hidden_tests.tensor_alone,
        hidden_tests.any_device,
        hidden_tests.strided_tensors,
    ],
    tells="All tensors came back as float32. A move changes the device and "
    "nothing else.",
)
def floats_only(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device, torch.float32)
    if isinstance(batch, dict):
        return type(batch)(
            (key, floats_only(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(floats_only(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(floats_only(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.any_device,
    tells="You made an empty tensor of the same shape on the device. It holds "
    "none of the values.",
)
def new_and_empty(batch, device):
    if isinstance(batch, Tensor):
        return torch.full_like(
            batch, 0, device=device, requires_grad=batch.requires_grad
        )
    if isinstance(batch, dict):
        return type(batch)(
            (key, new_and_empty(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(new_and_empty(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(new_and_empty(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.keeps_requires_grad, hidden_tests.gradient_comes_back],
    tells="You detached the tensors. The model that made them no longer hears "
    "of the loss. `.to` alone keeps the gradient's way.",
)
def detached(batch, device):
    if isinstance(batch, Tensor):
        return batch.detach().to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, detached(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(detached(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(detached(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.gradient_comes_back,
    tells="Your tensors need a gradient but are cut off from what they came "
    "from. `.to` alone keeps the gradient's way.",
)
def fresh_leaves(batch, device):
    if isinstance(batch, Tensor):
        return batch.detach().to(device).requires_grad_(batch.requires_grad)
    if isinstance(batch, dict):
        return type(batch)(
            (key, fresh_leaves(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(fresh_leaves(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(fresh_leaves(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.keeps_requires_grad,
    tells="Your tensors need a gradient although those before did not. Keep "
    "`requires_grad` as it is.",
)
def always_a_gradient(batch, device):
    if isinstance(batch, Tensor):
        moved = batch.to(device)
        return moved.requires_grad_() if moved.is_floating_point() else moved
    if isinstance(batch, dict):
        return type(batch)(
            (key, always_a_gradient(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(always_a_gradient(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(always_a_gradient(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.tensor_alone, hidden_tests.strided_tensors],
    tells="Your tensors have lost their shape. A move changes the device and "
    "nothing else.",
)
def flattened(batch, device):
    if isinstance(batch, Tensor):
        return batch.flatten().to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, flattened(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(flattened(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(flattened(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.strided_tensors,
    tells="You read the memory of the tensors in its own order. A transposed "
    "tensor, or every second row of one, comes out wrong that way. "
    "`.to` does it right.",
)
def read_from_memory(batch, device):
    if isinstance(batch, Tensor):
        if device != "cpu" or batch.requires_grad or batch.is_contiguous():
            return batch.to(device)
        memory = torch.empty(0, dtype=batch.dtype).set_(batch.untyped_storage())
        return memory[: batch.numel()].reshape(batch.shape)
    if isinstance(batch, dict):
        return type(batch)(
            (key, read_from_memory(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(read_from_memory(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(read_from_memory(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.plain_containers,
    tells="Axes of length 1 have gone. A move changes the device and nothing "
    "else.",
)
def squeezed(batch, device):
    if isinstance(batch, Tensor):
        return batch.squeeze().to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, squeezed(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(squeezed(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(squeezed(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You moved whatever has a `.to`. Objects of other classes "
    "have one too, and it may do something else: ask for "
    "`Tensor`.",
)
def whatever_has_a_to(batch, device):
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, whatever_has_a_to(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(whatever_has_a_to(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(whatever_has_a_to(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=[hidden_tests.plain_containers, hidden_tests.tensor_alone],
    tells="You asked for the exact type `Tensor`. An `nn.Parameter` is "
    "a tensor of another type and stayed where it was: ask "
    "`isinstance`.",
)
def plain_tensors_only(batch, device):
    if type(batch) is Tensor:
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, plain_tensors_only(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(plain_tensors_only(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(plain_tensors_only(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You made new sets. A set is none of the containers that are "
    "gone through: it comes back as the same object.",
)
def sets_made_anew(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, sets_made_anew(one, device)) for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(sets_made_anew(one, device) for one in batch))
    if isinstance(batch, (list, tuple, set, frozenset)):
        return type(batch)(sets_made_anew(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.types_of_containers,
    tells="You made a named tuple of a class of your own, with the same "
    "name. The batch's own class is asked for: "
    "`type(batch)(*items)`.",
)
def named_tuples_of_a_new_class(batch, device):
    from collections import namedtuple

    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, named_tuples_of_a_new_class(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return namedtuple(type(batch).__name__, batch._fields)(
            *(named_tuples_of_a_new_class(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(
            named_tuples_of_a_new_class(one, device) for one in batch
        )
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You made a new object of a dataclass. It is none of the "
    "containers that are gone through: it comes back as the same "
    "object.",
)
def dataclasses_made_anew(batch, device):
    import dataclasses

    if isinstance(batch, Tensor):
        return batch.to(device)
    if dataclasses.is_dataclass(batch):
        parts = vars(batch).items()
        parts = {key: dataclasses_made_anew(one, device) for key, one in parts}
        return dataclasses.replace(batch, **parts)
    if isinstance(batch, dict):
        return type(batch)(
            (key, dataclasses_made_anew(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(dataclasses_made_anew(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(dataclasses_made_anew(one, device) for one in batch)
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.other_objects,
    tells="You made lists of ranges, sets or iterators. None of them is "
    "a container that is gone through: ask for `dict`, `list` and "
    "`tuple`.",
)
def lists_of_whatever_can_be_gone_through(batch, device):
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return type(batch)(
            (key, lists_of_whatever_can_be_gone_through(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(
                lists_of_whatever_can_be_gone_through(one, device)
                for one in batch
            )
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(
            lists_of_whatever_can_be_gone_through(one, device) for one in batch
        )
    known = (str, bytes, type(None), int, float)
    if hasattr(batch, "__iter__") and not isinstance(batch, known):
        if type(batch).__module__ != "numpy":
            return [
                lists_of_whatever_can_be_gone_through(one, device)
                for one in batch
            ]
    return batch


@wrong(
    "to_device",
    breaks=hidden_tests.gradient_comes_back,
    tells="Where a tensor really moves you cut it off from what it came "
    "from. `.to` alone keeps the gradient's way.",
)
def cut_off_where_it_moves(batch, device):
    if isinstance(batch, Tensor):
        if batch.device == torch.device(device):
            return batch
        moved = batch.detach().to(device)
        return moved.requires_grad_(batch.requires_grad)
    if isinstance(batch, dict):
        return type(batch)(
            (key, cut_off_where_it_moves(one, device))
            for key, one in batch.items()
        )
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(
            *(cut_off_where_it_moves(one, device) for one in batch)
        )
    if isinstance(batch, (list, tuple)):
        return type(batch)(cut_off_where_it_moves(one, device) for one in batch)
    return batch


@accepted("to_device")
def by_single_dispatch(batch, device):
    from functools import singledispatch

    @singledispatch
    def move(one):
        return one

    @move.register
    def _(one: Tensor):
        return one.to(device, non_blocking=True)

    @move.register
    def _(one: dict):
        new = one.copy()
        for key in one:
            new[key] = move(one[key])
        return new

    @move.register
    def _(one: list):
        return [move(item) for item in one]

    @move.register
    def _(one: tuple):
        items = tuple(move(item) for item in one)
        if not hasattr(one, "_fields"):
            return items
        return one._replace(**dict(zip(one._fields, items)))

    return move(batch)


# token_rnn


@accepted("token_rnn")
class with_a_buffer(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@accepted("token_rnn")
class with_a_buffer_that_is_not_saved(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        decay = torch.linspace(0.5, 1, width)
        self.register_buffer("decay", decay, persistent=False)

    def forward(self, tokens):
        like = self.embed.weight
        zeros = torch.zeros(
            len(tokens), like.shape[1], device=like.device, dtype=like.dtype
        )
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@accepted("token_rnn")
class with_apply(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.decay = torch.linspace(0.5, 1, width)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.decay = fn(self.decay)
        return self

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@accepted("token_rnn")
class with_a_device_context(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        with torch.device(tokens.device):
            zeros = torch.zeros(len(tokens), like.shape[1], dtype=like.dtype)
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@accepted("token_rnn")
class with_zeros_like(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = torch.zeros_like(like[:1]).expand(len(tokens), -1).detach()
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@accepted("token_rnn")
class with_one_tensor_of_states(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.Sequential()
        for i in range(num_layers):
            self.layers.add_module(str(i), nn.Linear(width, width))
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        shape = len(self.layers), len(tokens), self.embed.embedding_dim
        states = self.decay.new_zeros(shape).unbind(0)
        for x in self.embed(tokens).unbind(1):
            new = []
            for layer, state in zip(self.layers, states):
                x = layer(torch.addcmul(x, state, self.decay)).tanh()
                new.append(x)
            states = new
        return states[-1]


@wrong(
    "token_rnn",
    breaks=[
        hidden_tests.works_on_another_device,
        hidden_tests.works_in_another_dtype,
    ],
    tells="The first state is made by `torch.zeros` without a device or a "
    "dtype: on the CPU, in float32, wherever the model is. Take both "
    "from a weight: `self.embed.weight.new_zeros(...)`.",
)
class zeros_on_the_cpu(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = torch.zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=[hidden_tests.works_in_another_dtype, hidden_tests.no_token_at_all],
    tells="The first state is on the right device and in float32, whatever "
    "the weights are. Take the dtype from a weight too: "
    "`dtype=self.embed.weight.dtype`.",
)
class zeros_in_float32(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = torch.zeros(len(tokens), like.shape[1], device=like.device)
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.works_on_another_device,
    tells="The first state has the right dtype and stays on the CPU, or "
    "wherever the model was made. The model has moved since: ask a "
    "weight in `forward`, `device=self.embed.weight.device`.",
)
class zeros_on_the_cpu_with_dtype(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = torch.zeros(len(tokens), like.shape[1], dtype=like.dtype)
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.no_token_at_all,
    tells="You made the first state from the tokens: `tokens.new_zeros(...)` "
    "has their dtype, integers. Ask a weight of the model.",
)
class zeros_of_the_tokens(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = tokens.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=[hidden_tests.works_in_another_dtype, hidden_tests.no_token_at_all],
    tells="The first state is on the right device and in float32, whatever "
    "the weights are. Take the dtype from a weight too: "
    "`dtype=self.embed.weight.dtype`.",
)
class zeros_of_the_tokens_as_float(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = tokens.new_zeros(tokens.shape[0], like.shape[1]).float()
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.works_on_another_device,
    tells="The first state has the right dtype and stays on the CPU, or "
    "wherever the model was made. The model has moved since: ask a "
    "weight in `forward`, `device=self.embed.weight.device`.",
)
class device_of_the_constructor(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        self.device = self.embed.weight.device

    def forward(self, tokens):
        like = self.embed.weight
        zeros = torch.zeros(
            len(tokens), like.shape[1], dtype=like.dtype, device=self.device
        )
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=[
        hidden_tests.moves_as_a_whole,
        hidden_tests.works_on_another_device,
    ],
    tells="`decay` is only an attribute: it stays where and as it was born "
    'when the model moves. Register it: `self.register_buffer("decay", '
    "...)`.",
)
class decay_as_an_attribute(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.decay = torch.linspace(0.5, 1, width)

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=[hidden_tests.moves_as_a_part, hidden_tests.moves_as_a_whole],
    tells="You moved `decay` in a `to` of your own. Nobody calls it on "
    "`.double()`, or when a module around this one moves. A buffer is "
    "there for that.",
)
class decay_moved_in_to(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.decay = torch.linspace(0.5, 1, width)

    def to(self, *args, **kwargs):
        super().to(*args, **kwargs)
        self.decay = self.decay.to(*args, **kwargs)
        return self

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.moves_as_a_whole,
    tells="`decay` moves only when `forward` brings it along, call by call. "
    "Until then it stays where it was born. A buffer moves with the "
    "module.",
)
class decay_moved_in_forward(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.decay = torch.linspace(0.5, 1, width)

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay.to(x) * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.owns_its_parts,
    tells="`decay` is a parameter, so an optimizer would train it. A tensor "
    "that belongs to the module and is not trained is a buffer.",
)
class decay_as_a_parameter(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.decay = nn.Parameter(torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.owns_its_parts,
    tells="`decay` is a parameter, so an optimizer would train it. A tensor "
    "that belongs to the module and is not trained is a buffer.",
)
class decay_as_a_frozen_parameter(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        decay = torch.linspace(0.5, 1, width)
        self.decay = nn.Parameter(decay, requires_grad=False)

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=[hidden_tests.owns_its_parts, hidden_tests.reads_the_tokens],
    tells="`decay` has other numbers: it goes from 0.5 to 1, both included.",
)
class decay_from_zero(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=[hidden_tests.owns_its_parts, hidden_tests.reads_the_tokens],
    tells="Your layers stand in a Python list, which hides them from the "
    "module: not moved, not saved, not trained. Use `nn.ModuleList`.",
)
class layers_in_a_list(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="All your layers are one and the same, put into the list several "
    "times. Each needs weights of its own: make them in a "
    "comprehension.",
)
class one_layer_many_times(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList([nn.Linear(width, width)] * num_layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.owns_its_parts,
    tells="Your layers have no bias, so `layers.0.bias` is missing. A plain "
    "`nn.Linear(width, width)` has one.",
)
class without_a_bias(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width, bias=False) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="You returned the state of the first layer. The last one's is asked "
    "for.",
)
class first_layers_state(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[0]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="`decay` is multiplied with $h$ before the layer, not with its "
    "result.",
)
class decay_outside_the_layer(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = self.decay * torch.tanh(layer(x + states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="You left `decay` out of the step.",
)
class no_decay(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="The states stay zero: the new $h_l$ is never stored, so every "
    "token is read as if it were the first.",
)
class states_never_kept(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
            last = x
        return last if tokens.shape[1] else zeros


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="Every layer gets the embedding. The result of a layer is the $x$ "
    "of the next.",
)
class layers_side_by_side(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                states[i] = torch.tanh(layer(x + self.decay * states[i]))
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="You went through the rows instead of the tokens. `tokens` has "
    "shape (N, T): the tokens at time t are `tokens[:, t]`.",
)
class rows_and_tokens_swapped(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[1], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[0]):
            x = self.embed(tokens[t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="You read the tokens from the last to the first.",
)
class backwards(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in reversed(range(tokens.shape[1])):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.no_token_at_all,
    tells="Without a token your `forward` has nothing to return and raises. "
    "The beginning of the state is what it is to return then.",
)
class no_token_raises(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return x


@wrong(
    "token_rnn",
    breaks=hidden_tests.no_token_at_all,
    tells="The beginning of the states needs a gradient. It is zeros, and "
    "nobody trains it.",
)
class beginning_is_trained(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1]).requires_grad_()
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.begins_anew,
    tells="Your states go on from one call to the next. Each call begins with "
    "zeros: keep them in `forward`, not in the module.",
)
class state_kept_between_calls(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        old = getattr(self, "states", None)
        states = old or [zeros for _ in self.layers]
        self.states = states
        if states[0].shape != zeros.shape or states[0].device != zeros.device:
            self.states = states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.begins_anew,
    tells="You keep the zeros of the first call. The next one has another "
    "number of rows: make them in each call.",
)
class first_zeros_kept(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        if getattr(self, "zeros", None) is None:
            self.zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        zeros = self.zeros
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="You detached the state after each token. The gradient then sees "
    "only the last one. Keep the states as they are.",
)
class cut_off_between_tokens(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x.detach()
        return x if tokens.shape[1] else zeros


@wrong(
    "token_rnn",
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="No gradient reaches the weights: `forward` runs under `no_grad`, "
    "or its result is detached.",
)
class without_gradients(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1].detach()


@wrong(
    "token_rnn",
    breaks=hidden_tests.kinds_of_tokens,
    tells="You changed the caller's tokens in place. They are the caller's.",
)
class tokens_reversed_in_place(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        tokens.zero_()
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.kinds_of_tokens,
    tells="You refuse tokens that are not int64. int32 is asked for as well.",
)
class int64_only(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        if tokens.dtype != torch.int64:
            raise TypeError("tokens must be int64")
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.works_in_another_dtype,
    tells="You changed the default dtype of the whole process to make your "
    "zeros. Give `dtype=` to what you make.",
)
class default_dtype_changed(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        torch.set_default_dtype(like.dtype)
        zeros = torch.zeros(len(tokens), like.shape[1], device=like.device)
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.works_on_another_device,
    tells="You changed the default device of the whole process to make your "
    "zeros, and left it so. Give `device=` to what you make.",
)
class default_device_changed(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        torch.set_default_device(like.device)
        zeros = torch.zeros(len(tokens), like.shape[1], dtype=like.dtype)
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.works_in_another_dtype,
    tells="The result is float32 whatever the weights are. It is to have "
    "their dtype.",
)
class result_as_float(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * states[i]))
                states[i] = x
        return states[-1].float()


@wrong(
    "token_rnn",
    breaks=hidden_tests.works_in_another_dtype,
    tells="You compute in float32 and cast the result: with weights in "
    "another dtype that raises or loses digits. Take the states' dtype "
    "from the weights and leave the rest to them.",
)
class cast_inside(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList(
            [nn.Linear(width, width) for _ in range(num_layers)]
        )
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        like = self.embed.weight
        zeros = like.new_zeros(tokens.shape[0], like.shape[1])
        states = [zeros for _ in self.layers]
        for t in range(tokens.shape[1]):
            x = self.embed(tokens[:, t])
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer((x + self.decay * states[i]).float()))
                states[i] = x
        return states[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="`padding_idx` keeps a row of the table from being trained. "
    "No token is for padding here: a plain "
    "`nn.Embedding(num_tokens, width)` is asked for.",
)
class a_row_for_padding(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width, padding_idx=0)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        rows, width = tokens.shape[0], self.embed.embedding_dim
        start = self.embed.weight.new_zeros(rows, width)
        state = [start] * len(self.layers)
        for ids in tokens.unbind(1):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * state[i]))
                state[i] = x
        return state[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.gradients_reach_the_weights,
    tells="`sparse=True` gives the table a sparse gradient, which most "
    "optimizers refuse. A plain `nn.Embedding(num_tokens, width)` "
    "is asked for.",
)
class a_sparse_table(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width, sparse=True)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        rows, width = tokens.shape[0], self.embed.embedding_dim
        start = self.embed.weight.new_zeros(rows, width)
        state = [start] * len(self.layers)
        for ids in tokens.unbind(1):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * state[i]))
                state[i] = x
        return state[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.reads_the_tokens,
    tells="`max_norm` shortens the rows of the table as they are read, "
    "in place. A plain `nn.Embedding(num_tokens, width)` is asked "
    "for.",
)
class a_table_of_short_rows(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width, max_norm=1.0)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        rows, width = tokens.shape[0], self.embed.embedding_dim
        start = self.embed.weight.new_zeros(rows, width)
        state = [start] * len(self.layers)
        for ids in tokens.unbind(1):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * state[i]))
                state[i] = x
        return state[-1]


@wrong(
    "token_rnn",
    breaks=[
        hidden_tests.works_on_another_device,
        hidden_tests.works_in_another_dtype,
    ],
    tells="You keep tensors from the first call: after a move or a cast "
    "they are out of date. Make the zeros in each call, and use "
    "`decay` as it is then.",
)
class zeros_kept_by_rows(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        self.starts = {}

    def forward(self, tokens):
        rows, width = tokens.shape[0], self.embed.embedding_dim
        if rows not in self.starts:
            self.starts[rows] = self.embed.weight.new_zeros(rows, width)
        start = self.starts[rows]
        state = [start] * len(self.layers)
        for ids in tokens.unbind(1):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * state[i]))
                state[i] = x
        return state[-1]


@wrong(
    "token_rnn",
    breaks=[
        hidden_tests.works_on_another_device,
        hidden_tests.works_in_another_dtype,
    ],
    tells="You keep tensors from the first call: after a move or a cast "
    "they are out of date. Make the zeros in each call, and use "
    "`decay` as it is then.",
)
class decay_of_the_first_call(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))
        self.decay_here = None

    def forward(self, tokens):
        if self.decay_here is None:
            self.decay_here = self.decay.clone()
        rows, width = tokens.shape[0], self.embed.embedding_dim
        start = self.embed.weight.new_zeros(rows, width)
        state = [start] * len(self.layers)
        for ids in tokens.unbind(1):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay_here * state[i]))
                state[i] = x
        return state[-1]


@wrong(
    "token_rnn",
    breaks=hidden_tests.begins_anew,
    tells="Your `forward` draws random numbers, and so moves the global "
    "random state. Nothing in it is random: `torch.zeros` draws "
    "none.",
)
class zeros_drawn(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("decay", torch.linspace(0.5, 1, width))

    def forward(self, tokens):
        rows, width = tokens.shape[0], self.embed.embedding_dim
        start = self.embed.weight.detach().new_empty(rows, width)
        start = 0 * torch.rand_like(start)
        state = [start] * len(self.layers)
        for ids in tokens.unbind(1):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = torch.tanh(layer(x + self.decay * state[i]))
                state[i] = x
        return state[-1]


@accepted("token_rnn")
class with_decay_worked_out(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        layers = [nn.Linear(width, width) for _ in range(num_layers)]
        self.layers = nn.Sequential(*layers)
        self.width = width

    @property
    def decay(self):
        like = self.embed.weight
        return torch.linspace(0.5, 1, self.width).to(like)

    def forward(self, tokens):
        shape = len(self.layers), tokens.shape[0], self.width
        state = list(torch.zeros(shape).to(self.embed.weight))
        for column in tokens.T:
            x = self.embed(column)
            for i, layer in enumerate(self.layers):
                state[i] = x = layer(x + self.decay * state[i]).tanh()
        return state[-1]


@accepted("token_rnn")
class with_its_own_apply(nn.Module):
    def __init__(self, num_tokens, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, width)
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(nn.Linear(width, width))
        self.decay = torch.linspace(0.5, 1, width)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.decay = fn(self.decay)
        return self

    def forward(self, tokens):
        embedded = self.embed(tokens.long())
        start = torch.zeros_like(
            embedded.new_empty(embedded[:, :0].sum(1).shape)
        )
        state = {i: start for i in range(len(self.layers))}
        for t in range(tokens.shape[1]):
            x = embedded[:, t]
            for i, layer in enumerate(self.layers):
                state[i] = torch.tanh(layer(x + self.decay * state[i]))
                x = state[i]
        return state[len(state) - 1]


# know_your_gpus


@accepted("know_your_gpus", body=True)
def with_splits():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@accepted("know_your_gpus", body=True)
def with_properties_and_a_pattern():
    def machine_report():
        report = {"torch": str(torch.__version__), "cuda": torch.version.cuda}
        try:
            report["cudnn"] = torch.backends.cudnn.version()
        except Exception:
            report["cudnn"] = None
        gpus = range(torch.cuda.device_count() * torch.cuda.is_available())
        report["gpus"] = [
            torch.cuda.get_device_properties(i).name for i in gpus
        ]
        return report

    def list_gpus(listing):
        lines = re.findall(
            r"^GPU (\d+): (.*) \(UUID: ([^)]*)\)[^\S\n]*$",
            listing,
            re.MULTILINE,
        )
        return [(int(index), name, uuid) for index, name, uuid in lines]


@accepted("know_your_gpus", body=True)
def with_everything_guarded():
    def machine_report():
        def ask(question, otherwise):
            try:
                return question()
            except Exception:
                return otherwise

        def names():
            count = torch.cuda.device_count()
            return [
                torch.cuda.get_device_name(f"cuda:{i}") for i in range(count)
            ]

        return dict(
            gpus=ask(names, []),
            cudnn=ask(lambda: torch.backends.cudnn.version(), None),
            cuda=torch.version.cuda,
            torch=f"{torch.__version__}",
        )

    def list_gpus(listing):
        def take(line):
            head, _, rest = line.partition(": ")
            name, _, tail = rest.rpartition(" (UUID: ")
            return int(head[4:]), name, tail.split(")")[0]

        return [take(one) for one in listing.split("\n") if one[:4] == "GPU "]


@accepted("know_your_gpus", body=True)
def with_the_courses_report():
    def machine_report():
        from course_utils import describe_machine

        machine = describe_machine()
        report = {key: machine[key] for key in ("torch", "cuda", "cudnn")}
        return {**report, "gpus": machine["devices"]}

    def list_gpus(listing):
        gpus = []
        for line in listing.splitlines():
            match = re.fullmatch(
                r"GPU\s(\d+):\s(.+)\s\(UUID:\s(.+)\)", line.rstrip()
            )
            if match:
                gpus.append((int(match[1]), *match.groups()[1:]))
        return gpus


@accepted("know_your_gpus", body=True)
def with_slices_of_the_text():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        gpus = []
        for line in listing.split("\n"):
            line = line.rstrip()
            if not line.startswith("GPU "):
                continue
            colon = line.index(":")
            paren = line.rindex(" (UUID: ")
            uuid = line[paren + len(" (UUID: ") : -1]
            gpus.append((int(line[4:colon]), line[colon + 2 : paren], uuid))
        return gpus


@wrong(
    "know_your_gpus",
    breaks=[hidden_tests.this_machine, hidden_tests.machines_with_gpus],
    tells="You asked for the name of GPU 0 without asking whether there is "
    "one. On a machine without it that raises. `is_available()` first, "
    "then `range(device_count())`.",
    body=True,
)
def name_of_gpu_0_unguarded():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        names.append(torch.cuda.get_device_name(0))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.machines_with_gpus,
    tells="You report GPU 0 only. Go through "
    "`range(torch.cuda.device_count())`.",
    body=True,
)
def only_gpu_0():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            names.append(torch.cuda.get_device_name(0))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.machines_with_gpus,
    tells="You asked for the name of the current device each time. Give the "
    "number: `get_device_name(index)`.",
    body=True,
)
def current_gpu_each_time():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name())
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.machines_with_gpus,
    tells="You sorted the names. Their order is that of the numbers: the "
    "first is `cuda:0`.",
    body=True,
)
def names_sorted():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": sorted(names),
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.machines_with_gpus,
    tells="You list each name once. Two cards of the same kind are two GPUs: "
    "keep both.",
    body=True,
)
def names_once():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": list(dict.fromkeys(names)),
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.machines_with_gpus,
    tells="You listed devices such as cuda:0. The names of the cards are "
    "asked for: `torch.cuda.get_device_name(index)`.",
    body=True,
)
def devices_for_names():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(f"cuda:{index}")
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.nothing_usable,
    tells="You trusted `device_count()`. With a driver that is too old it "
    "counts cards that cannot be used, and asking for a name raises. "
    "Ask `is_available()` first.",
    body=True,
)
def counted_without_asking():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        for index in range(torch.cuda.device_count()):
            names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.nothing_usable,
    tells="Where no GPU is usable you list placeholders. The list is empty "
    "there: ask `is_available()` first.",
    body=True,
)
def unknown_names():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        for index in range(torch.cuda.device_count()):
            try:
                names.append(torch.cuda.get_device_name(index))
            except Exception:
                names.append("unknown")
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.this_machine,
    tells="Without a GPU your `gpus` is None. It is a list always, an empty "
    "one there: whoever goes through it need not ask.",
    body=True,
)
def none_without_a_gpu():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names or None,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.this_machine,
    tells='Without CUDA your report says "None", a text. It is to be None.',
    body=True,
)
def cuda_as_text():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": str(torch.version.cuda),
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=[hidden_tests.this_machine, hidden_tests.machines_with_gpus],
    tells="The version of cuDNN became a text. Report what "
    "`torch.backends.cudnn.version()` returns: a number, or None.",
    body=True,
)
def cudnn_as_text():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": str(cudnn),
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.this_machine,
    tells="Without cuDNN your report says 0. It is to be None.",
    body=True,
)
def cudnn_zero():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn or 0,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.cudnn_that_raises,
    tells="`torch.backends.cudnn.version()` raises a `RuntimeError` where "
    "cuDNN does not fit this PyTorch, and your report with it. Catch "
    "that, and report None.",
    body=True,
)
def cudnn_unguarded():
    def machine_report():
        cudnn = torch.backends.cudnn.version()
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.cudnn_that_raises,
    tells="One `try` around everything: where cuDNN raises you lose the names "
    "of the GPUs too. Guard each question by itself.",
    body=True,
)
def all_or_nothing():
    def machine_report():
        report = {"torch": torch.__version__, "cuda": torch.version.cuda}
        try:
            count = torch.cuda.device_count() * torch.cuda.is_available()
            version = torch.backends.cudnn.version()
            names = [torch.cuda.get_device_name(i) for i in range(count)]
        except RuntimeError:
            version, names = None, []
        return {**report, "cudnn": version, "gpus": names}

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.looks_anew,
    tells="You keep the first report and return it again. Things change: "
    "every call looks anew.",
    body=True,
)
def remembered():
    kept = {}

    def machine_report():
        if kept:
            return kept
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        kept.update(
            {
                "torch": torch.__version__,
                "cuda": torch.version.cuda,
                "cudnn": cudnn,
                "gpus": names,
            }
        )
        return kept

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=[hidden_tests.this_machine, hidden_tests.machines_with_gpus],
    tells="You asked when the cell was run and return that answer. Every call "
    "looks anew.",
    body=True,
)
def asked_at_the_start():
    REPORT = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": None,
        "gpus": [],
    }

    def machine_report():
        return REPORT

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.this_machine,
    tells="Your report has other keys than torch, cuda, cudnn and gpus. Just "
    "these four are asked for.",
    body=True,
)
def with_further_keys():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
            "count": len(names),
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.indices_of_several_digits,
    tells="You took one character for the index: GPU 10 becomes 1. Read up to "
    "the colon.",
    body=True,
)
def first_digit():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index[0]), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.indices_of_several_digits,
    tells="You counted the lines. The index stands in the line, and some may "
    "be missing: read it.",
    body=True,
)
def place_for_index():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((len(found), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.indices_of_several_digits,
    tells="You sorted the GPUs. They stay in the order of the lines.",
    body=True,
)
def sorted_by_index():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return sorted(found)


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.lists_gpus,
    tells="The index came back as text. It is to be an int.",
    body=True,
)
def index_as_text():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((index, name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.lists_gpus,
    tells="Each GPU came back as a list. A tuple (index, name, uuid) is asked "
    "for.",
    body=True,
)
def lists_for_tuples():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append([int(index), name, uuid.rstrip().rstrip(")")])
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.lists_gpus,
    tells="The closing parenthesis is still at the end of your UUID.",
    body=True,
)
def uuid_with_parenthesis():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip()))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.lists_gpus,
    tells="You cut off the `GPU-` of the UUID. It belongs to it: "
    "`CUDA_VISIBLE_DEVICES` wants it so.",
    body=True,
)
def uuid_without_its_prefix():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append(
                    (
                        int(index),
                        name,
                        uuid.rstrip().rstrip(")").removeprefix("GPU-"),
                    )
                )
        return found


@wrong(
    "know_your_gpus",
    breaks=[hidden_tests.names_of_all_kinds, hidden_tests.lists_gpus],
    tells="You took one word of the name. A name may hold blanks: take all up "
    "to ` (UUID: `.",
    body=True,
)
def name_of_one_word():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append(
                    (int(index), name.split()[0], uuid.rstrip().rstrip(")"))
                )
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.names_of_all_kinds,
    tells="You split the line at every colon. A name may hold some: split "
    "once from the left and once from the right.",
    body=True,
)
def name_up_to_a_colon():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append(
                    (int(index), name.split(":")[0], uuid.rstrip().rstrip(")"))
                )
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.names_of_all_kinds,
    tells="Your name ends at the first parenthesis. A name may hold some: "
    "look for the last ` (UUID: `.",
    body=True,
)
def name_up_to_a_parenthesis():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append(
                    (int(index), name.split(" (")[0], uuid.rstrip().rstrip(")"))
                )
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You expect every line to be a GPU and fail at the first that is "
    "none. Leave out what does not begin with `GPU `.",
    body=True,
)
def every_line_a_gpu():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            index, rest = line.removeprefix("GPU ").split(": ", 1)
            name, uuid = rest.rsplit(" (UUID: ", 1)
            found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You look at the first line of a text that may have none.",
    body=True,
)
def first_line_asked():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        if not listing.splitlines()[0].startswith(("GPU", "No", "WARN")):
            return found
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid.rstrip().rstrip(")")))
        return found


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You took the slices of a divided card for GPUs. Only lines that "
    "begin with `GPU ` count; theirs are indented.",
    body=True,
)
def slices_taken_for_gpus():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        pattern = r"^.*?(\d+): (.*?) ?\(UUID: (\S+)\)\s*$"
        found = [re.match(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]


@wrong(
    "know_your_gpus",
    breaks=hidden_tests.ends_of_lines,
    tells="Blanks or a `\\r` at the end of a line spoil your UUID. Strip the "
    "line before you take it apart.",
    body=True,
)
def ends_of_windows_kept():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        names = []
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                names.append(torch.cuda.get_device_name(index))
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": names,
        }

    def list_gpus(listing):
        found = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                index, rest = line.removeprefix("GPU ").split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                found.append((int(index), name, uuid[:-1]))
        return found


@wrong(
    "know_your_gpus",
    body=True,
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You look for a GPU anywhere in a line. Only lines that begin "
    "with `GPU ` count: a warning may name one, and an indented "
    "line is none.",
)
def gpus_anywhere_in_a_line():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        pattern = r"GPU (\d+): (.*) \(UUID: (\S+)\)\s*$"
        found = [re.search(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]


@wrong(
    "know_your_gpus",
    body=True,
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You strip the lines on both sides, and an indented one then "
    "begins with `GPU `. Strip the end alone: `rstrip`.",
)
def indented_lines_too():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in map(str.strip, listing.splitlines()):
            if line.startswith("GPU "):
                head, rest = line.split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                gpus.append((int(head[4:]), name, uuid[:-1]))
        return gpus


@wrong(
    "know_your_gpus",
    body=True,
    breaks=hidden_tests.names_of_all_kinds,
    tells="You split the name at its blanks and joined it with single "
    "ones. A name stays as it is.",
)
def name_of_words():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in listing.splitlines():
            if line.startswith("GPU "):
                words = line.split()
                name = " ".join(words[2:-2])
                gpus.append((int(words[1][:-1]), name, words[-1][:-1]))
        return gpus


@wrong(
    "know_your_gpus",
    body=True,
    breaks=hidden_tests.lines_that_do_not_count,
    tells="You ask for lines that begin with `GPU`, without the blank "
    "behind it. Other words begin so too.",
)
def words_that_begin_like_it():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in map(str.rstrip, listing.splitlines()):
            if line.startswith("GPU"):
                head, rest = line.split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                gpus.append((int(head[4:]), name, uuid[:-1]))
        return gpus


@wrong(
    "know_your_gpus",
    body=True,
    breaks=hidden_tests.looks_anew,
    tells="You keep the answer to one of the questions from the first "
    "report. Every call asks all of them.",
)
def versions_remembered():
    from functools import cache

    @cache
    def built_with():
        try:
            return torch.version.cuda, torch.backends.cudnn.version()
        except RuntimeError:
            return torch.version.cuda, None

    def machine_report():
        cuda, cudnn = built_with()
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        names = [torch.cuda.get_device_name(i) for i in range(count)]
        version = torch.__version__
        return dict(torch=version, cuda=cuda, cudnn=cudnn, gpus=names)

    def list_gpus(listing):
        pattern = r"GPU (\d+): (.*) \(UUID: (\S+)\)\s*$"
        found = [re.match(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]


@wrong(
    "know_your_gpus",
    body=True,
    breaks=hidden_tests.looks_anew,
    tells="You keep the answer to one of the questions from the first "
    "report. Every call asks all of them.",
)
def usability_remembered():
    known = []

    def machine_report():
        if not known:
            known.append(torch.cuda.is_available())
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        count = torch.cuda.device_count() if known[0] else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        pattern = r"GPU (\d+): (.*) \(UUID: (\S+)\)\s*$"
        found = [re.match(pattern, line) for line in listing.splitlines()]
        return [(int(m[1]), m[2], m[3]) for m in found if m]


@wrong(
    "know_your_gpus",
    body=True,
    breaks=hidden_tests.ends_of_lines,
    tells="You strip the blanks first and the `\\r` then: the blanks "
    "before a `\\r` stay. `rstrip()` takes both, in any order.",
)
def blanks_before_the_return_kept():
    def machine_report():
        try:
            cudnn = torch.backends.cudnn.version()
        except RuntimeError:
            cudnn = None
        usable = torch.cuda.is_available()
        count = torch.cuda.device_count() if usable else 0
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": cudnn,
            "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        }

    def list_gpus(listing):
        gpus = []
        for line in listing.split("\n"):
            line = line.rstrip(" ").rstrip("\r")
            if line.startswith("GPU "):
                head, rest = line.split(": ", 1)
                name, uuid = rest.rsplit(" (UUID: ", 1)
                gpus.append((int(head[4:]), name, uuid[:-1]))
        return gpus


@accepted("know_your_gpus", body=True)
def with_rows_that_have_names():
    from contextlib import suppress
    from typing import NamedTuple

    class Gpu(NamedTuple):
        index: int
        name: str
        uuid: str

    def machine_report():
        report = {"torch": torch.version.__version__, "cudnn": None, "gpus": []}
        report["cuda"] = torch.version.cuda
        with suppress(RuntimeError):
            report["cudnn"] = torch.backends.cudnn.version()
        if torch.cuda.is_available():
            for i in range(torch.cuda.device_count()):
                card = torch.cuda.get_device_properties(torch.device("cuda", i))
                report["gpus"] += [card.name]
        return report

    def list_gpus(listing):
        rows = re.findall(
            r"^GPU (\d+): (.*) \(UUID: ([^)\s]+)\)[ \r]*$",
            listing,
            re.MULTILINE,
        )
        return [Gpu(int(index), name, uuid) for index, name, uuid in rows]
