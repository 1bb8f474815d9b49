"""Answers to `choose_gpus` of chapter 00."""

import os
import re

import torch

from course_grader.bank import SOLUTION, accepted, edit

from .. import hidden_tests


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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


@accepted(body=True)
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
            if not text.isdecimal() or int(text) not in range(num_gpus):
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


@accepted(body=True)
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


@accepted(body=True)
def mended_blanks_taken_out_everywhere():
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
        return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"


numbers_as_they_are = edit(
    with_int_and_try,
    {
        'new["CUDA_VISIBLE_DEVICES"] = ",".join(names)': 'new["CUDA_VISIBLE_DEVICES"] = list(gpus)',
    },
    breaks=[hidden_tests.named_in_order, hidden_tests.uuids_as_they_are],
    tells="`CUDA_VISIBLE_DEVICES` is no text in your environment. "
    "`subprocess.run` takes text only: join the GPUs with "
    '`",".join(map(str, gpus))`.',
)

one_number_as_it_is = edit(
    with_int_and_try,
    {
        'new["CUDA_VISIBLE_DEVICES"] = ",".join(names)': """
        text = ",".join(names)
        new["CUDA_VISIBLE_DEVICES"] = gpus[0] if len(names) == 1 else text
        """,
    },
    breaks=hidden_tests.named_in_order,
    tells="A single GPU went into the environment as a number. Values there "
    "are text, also where it is one GPU.",
)

in_sorted_order = edit(
    with_int_and_try,
    {
        'new["CUDA_VISIBLE_DEVICES"] = ",".join(names)': 'new["CUDA_VISIBLE_DEVICES"] = ",".join(sorted(names))',
    },
    breaks=hidden_tests.named_in_order,
    tells="You sorted the GPUs. The order is a choice of the caller: the "
    "first becomes `cuda:0`. Join them as they come.",
)

with_blanks = edit(
    with_int_and_try,
    {
        'new["CUDA_VISIBLE_DEVICES"] = ",".join(names)': 'new["CUDA_VISIBLE_DEVICES"] = ", ".join(names)',
    },
    breaks=hidden_tests.named_in_order,
    tells="You put blanks behind the commas. The text is to have none: join "
    'with `","`.',
)

no_gpu_as_minus_one = edit(
    with_int_and_try,
    {
        'new["CUDA_VISIBLE_DEVICES"] = ",".join(names)': 'new["CUDA_VISIBLE_DEVICES"] = ",".join(names) or "-1"',
    },
    breaks=hidden_tests.no_gpu_is_an_empty_text,
    tells="For no GPU you wrote -1. It hides all of them too, but the task "
    "asks for an empty text, which needs no case of its own: joining "
    "nothing gives it.",
)

no_gpu_not_set = edit(
    with_int_and_try,
    {
        'if override or "CUDA_VISIBLE_DEVICES" not in new:': 'if gpus and (override or "CUDA_VISIBLE_DEVICES" not in new):',
    },
    breaks=hidden_tests.no_gpu_is_an_empty_text,
    tells="Where no GPU was asked for you left `CUDA_VISIBLE_DEVICES` as it "
    "was. A variable that is not set shows all GPUs, an old value those "
    'of somebody else. Set it to "".',
)

always_setdefault = edit(
    with_int_and_try,
    {
        """
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        """: 'new.setdefault("CUDA_VISIBLE_DEVICES", ",".join(names))',
    },
    breaks=hidden_tests.override_or_not,
    tells="You used `setdefault`, which leaves a value that is there. With "
    "`override=True` the new one has to replace it.",
)

always_replaced = edit(
    with_int_and_try,
    {
        """
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        """: 'new["CUDA_VISIBLE_DEVICES"] = ",".join(names)',
    },
    breaks=hidden_tests.override_or_not,
    tells="You replaced a `CUDA_VISIBLE_DEVICES` that was there although "
    "`override` is False. The user or a scheduler has chosen it: leave "
    "it then.",
)

empty_is_taken_for_unset = edit(
    with_int_and_try,
    {
        'if override or "CUDA_VISIBLE_DEVICES" not in new:': 'if override or not new.get("CUDA_VISIBLE_DEVICES"):',
    },
    breaks=hidden_tests.override_or_not,
    tells="You took an empty `CUDA_VISIBLE_DEVICES` for one that is not set. "
    "Empty means: no GPU, on purpose. Ask `in environ`, not whether the "
    "text is true.",
)

override_the_wrong_way_round = edit(
    with_int_and_try,
    {
        'if override or "CUDA_VISIBLE_DEVICES" not in new:': 'if not override or "CUDA_VISIBLE_DEVICES" not in new:',
    },
    breaks=hidden_tests.override_or_not,
    tells="`override` works the wrong way round: True is to replace what is "
    "there, False to leave it.",
)

not_without_a_value = edit(
    with_int_and_try,
    {'if override or "CUDA_VISIBLE_DEVICES" not in new:': "if override:"},
    breaks=hidden_tests.override_or_not,
    tells="With `override=False` and no value in `environ` you set none. Then "
    "all GPUs are seen. Only a value that is there stays.",
)

nothing_but_the_variables = edit(
    with_int_and_try,
    {
        "new = dict(environ)": """
        ours = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
        new = {key: environ[key] for key in ours if key in environ}
        """,
    },
    breaks=hidden_tests.rest_of_the_environment,
    tells="The new environment holds your variables alone. A process needs "
    "the rest as well (PATH, HOME): begin with a copy of `environ`.",
)

no_device_order = edit(
    with_int_and_try,
    {'new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")': ""},
    breaks=hidden_tests.rest_of_the_environment,
    tells="`CUDA_DEVICE_ORDER` is missing. Without it CUDA counts the fastest "
    "card first, and your numbers may mean other cards than those of "
    "`nvidia-smi`.",
)

device_order_always_ours = edit(
    with_int_and_try,
    {
        'new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")': 'new["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"',
    },
    breaks=hidden_tests.rest_of_the_environment,
    tells="You replaced a `CUDA_DEVICE_ORDER` that was there. Set it only if "
    "`environ` has none.",
)

in_the_callers_mapping = edit(
    with_int_and_try,
    {"new = dict(environ)": "new = environ"},
    breaks=hidden_tests.environments_untouched,
    tells="You wrote into the mapping that you were given. The caller's "
    "environment changes with it. Copy first: `dict(environ)`.",
)

in_a_shallow_copy_of_os_environ = edit(
    with_int_and_try,
    {
        "new = dict(environ)": """
        import copy

        new = copy.copy(environ)
        """,
    },
    breaks=hidden_tests.environments_untouched,
    tells="`copy.copy(os.environ)` is another object that writes into the "
    "same, real environment. `dict(os.environ)` is a dict of its own.",
)

in_the_real_environment = edit(
    with_int_and_try,
    {
        "return new": """
        os.environ["CUDA_VISIBLE_DEVICES"] = new["CUDA_VISIBLE_DEVICES"]
        return new
        """,
    },
    breaks=hidden_tests.environments_untouched,
    tells="You set the variable in `os.environ`, for this very process and "
    "every one that it starts. The function is to return a new dict and "
    "touch nothing.",
)

negative_accepted = edit(
    with_int_and_try,
    {') or any(n[0] == "-" for n in names):': "):"},
    breaks=hidden_tests.bad_gpus_raise,
    tells="You accepted a negative number. It would silently end the list and "
    "hide everything after it: raise a `ValueError`.",
)

twice_accepted = edit(
    with_int_and_try,
    {"if len(set(names)) < len(names) or any": "if any"},
    breaks=hidden_tests.bad_gpus_raise,
    tells="You accepted a GPU that is named twice. A program with that list "
    "sees no GPU at all: raise a `ValueError`.",
)

repeats_removed = edit(
    with_int_and_try,
    {
        'if len(set(names)) < len(names) or any(n[0] == "-" for n in names):': """
        names = list(dict.fromkeys(names))
        if any(n[0] == "-" for n in names):
        """,
    },
    breaks=hidden_tests.bad_gpus_raise,
    tells="You left out a GPU's second mention without a word. It is a "
    "mistake of the caller: raise a `ValueError`.",
)

asked_only_where_it_is_used = edit(
    with_int_and_try,
    {
        "names = [str(gpu) for gpu in gpus]": """
        new = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **environ}
        if not override and "CUDA_VISIBLE_DEVICES" in environ:
            return new
        names = list(map(str, gpus))
        """,
        """
        new = dict(environ)
        new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        if override or "CUDA_VISIBLE_DEVICES" not in new:
            new["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        return new
        """: 'return {**new, "CUDA_VISIBLE_DEVICES": ",".join(names)}',
    },
    breaks=hidden_tests.bad_gpus_raise,
    tells="You look at the GPUs only where you use them: with "
    "`override=False` and a value there, bad ones pass. Check first.",
)

ids_sorted = edit(
    with_int_and_try,
    {"return ids": "return sorted(ids)"},
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="You sorted the visible GPUs. The list is an order: its first entry "
    "is `cuda:0`.",
)

ids_one_character_long = edit(
    with_int_and_try,
    {
        'for entry in visible.split(","):': 'for entry in visible.replace(",", "").replace(" ", ""):',
    },
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="You read the text one character at a time: GPU 11 becomes 1 and 1. "
    "Split it at the commas.",
)

blanks_refused = edit(
    with_int_and_try,
    {
        """
        try:
            gpu = int(entry)
        except ValueError:
        """: "if not entry.isdecimal():",
        "if not 0 <= gpu < num_gpus:": """
        gpu = int(entry)
        if not 0 <= gpu < num_gpus:
        """,
    },
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="An entry with a blank beside it ended your list. Blanks around an "
    "entry do not matter: `strip` it.",
)

unset_shows_none = edit(
    with_int_and_try,
    {"return list(range(num_gpus))": "return []"},
    breaks=hidden_tests.not_set_and_empty,
    tells="Where the variable is not set (None) you show no GPU. Then all are "
    "seen; only an empty text hides all of them.",
)

empty_shows_all = edit(
    with_int_and_try,
    {"if visible is None:": "if not visible:"},
    breaks=hidden_tests.not_set_and_empty,
    tells="You took an empty text for a variable that is not set. Empty "
    "means: no GPU. Ask `visible is None`.",
)

invalid_left_out = edit(
    with_int_and_try,
    {
        """
        except ValueError:
            break
        """: """
        except ValueError:
            continue
        """,
        """
        if not 0 <= gpu < num_gpus:
            break
        """: """
        if not 0 <= gpu < num_gpus:
            continue
        """,
    },
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You left out the invalid entries and read on. The list ends at the "
    "first of them: everything after it is hidden.",
)

only_negative_stops = edit(
    with_int_and_try,
    {"if not 0 <= gpu < num_gpus:": "if gpu < 0:"},
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You end the list at a negative number only. A number that the "
    "machine has no GPU for ends it as well.",
)

one_gpu_too_many = edit(
    with_int_and_try,
    {"if not 0 <= gpu < num_gpus:": "if not 0 <= gpu <= num_gpus:"},
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You take `num_gpus` itself for a GPU. They are counted from 0: the "
    "last is `num_gpus - 1`.",
)

invalid_shows_none = edit(
    with_int_and_try,
    {
        """
        except ValueError:
            break
        """: """
        except ValueError:
            return []
        """,
        """
        if not 0 <= gpu < num_gpus:
            break
        """: """
        if not 0 <= gpu < num_gpus:
            return []
        """,
    },
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="At an invalid entry you gave up all GPUs. Those before it stay "
    "visible.",
)

letters_raise = edit(
    with_int_and_try,
    {
        """
        try:
            gpu = int(entry)
        except ValueError:
            break
        """: "gpu = int(entry) if entry.strip() else -1",
    },
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="An entry that is no number makes your function raise. It ends the "
    "list, like any other invalid entry.",
)

ids_as_text = edit(
    with_int_and_try,
    {
        "return list(range(num_gpus))": "return [str(gpu) for gpu in range(num_gpus)]",
        "if gpu in ids:": "if str(gpu) in ids:",
        "ids.append(gpu)": "ids.append(str(gpu))",
        'return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"': 'return f"cuda:{physical_ids(visible, num_gpus).index(str(gpu))}"',
    },
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="Your ids are text. Make numbers of them: `int(entry)`.",
)

ids_as_a_tuple = edit(
    with_int_and_try,
    {"return ids": "return tuple(ids)"},
    breaks=hidden_tests.in_the_order_of_the_list,
    tells="Your ids come back as a tuple. A list is asked for.",
)

the_callers_gpus_sorted = edit(
    with_int_and_try,
    {
        "return new": """
        if isinstance(gpus, list):
            gpus.sort(key=str)
        return new
        """,
    },
    breaks=hidden_tests.environments_untouched,
    tells="You changed the caller's list of GPUs. Work on a copy.",
)

repeats_kept = edit(
    with_int_and_try,
    {
        """
        if gpu in ids:
            return []
        """: "",
    },
    breaks=hidden_tests.twice_leaves_none,
    tells="You kept a GPU that is named twice under two numbers. A repeated "
    "GPU leaves none visible: `[]`.",
)

repeats_left_out = edit(
    with_int_and_try,
    {"return []": "continue"},
    breaks=hidden_tests.twice_leaves_none,
    tells="You left out the second mention of a GPU. A repeated GPU leaves "
    "none visible: `[]`.",
)

repeats_end_the_list = edit(
    with_int_and_try,
    {"return []": "break"},
    breaks=hidden_tests.twice_leaves_none,
    tells="You let a repeated GPU end the list. It does more: it leaves no "
    "GPU visible, `[]`.",
)

repeats_after_the_end = edit(
    with_int_and_try,
    {
        "ids = []": """
        entries = [entry.strip() for entry in visible.split(",")]
        if len(set(entries)) < len(entries):
            return []
        ids = []
        """,
    },
    breaks=hidden_tests.twice_leaves_none,
    tells="You looked for repeated entries in the whole text. What stands "
    "behind an invalid entry is never read.",
)

physical_number_as_name = edit(
    with_int_and_try,
    {
        'return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"': """
        if gpu not in physical_ids(visible, num_gpus):
            raise ValueError(f"GPU {gpu} is hidden")
        return f"cuda:{gpu}"
        """,
    },
    breaks=hidden_tests.name_after_renumbering,
    tells="You used the physical number in the name. Inside the program the "
    "visible GPUs are counted anew, from 0: the place in the list "
    "counts.",
)

the_name_of_tensorflow = edit(
    with_int_and_try,
    {
        'return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"': 'return f"/gpu:{physical_ids(visible, num_gpus).index(gpu)}"',
    },
    breaks=hidden_tests.name_after_renumbering,
    tells="`/gpu:0` is how TensorFlow names a device. PyTorch says `cuda:0`.",
)

hidden_gpu_named = edit(
    with_int_and_try,
    {
        'return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"': """
        ids = physical_ids(visible, num_gpus)
        return f"cuda:{ids.index(gpu) if gpu in ids else gpu}"
        """,
    },
    breaks=hidden_tests.name_after_renumbering,
    tells="You gave a name to a GPU that the program does not see. There is "
    "none: raise a `ValueError`.",
)

the_other_direction = edit(
    with_int_and_try,
    {
        'return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"': """
        ids = physical_ids(visible, num_gpus)
        if gpu not in ids:
            raise ValueError(f"GPU {gpu} is hidden")
        return f"cuda:{(ids + list(range(num_gpus)))[gpu]}"
        """,
    },
    breaks=hidden_tests.name_after_renumbering,
    tells="You looked up which card stands at place `gpu`. It is asked the "
    "other way round: at which place card `gpu` stands. "
    "`ids.index(gpu)`, not `ids[gpu]`.",
)

blanks_taken_out_everywhere = edit(
    mended_blanks_taken_out_everywhere,
    {
        'for entry in visible.split(","):': 'for entry in visible.replace(" ", "").split(","):',
    },
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells='You took the blanks out of the whole text, and "1 2" became '
    "12. `strip` each entry: a blank within it makes it no "
    "number.",
)

entries_read_as_floats = edit(
    with_int_and_try,
    {
        "gpu = int(entry)": "gpu = int(float(entry))",
        "if not 0 <= gpu < num_gpus:": 'if not 0 <= gpu < num_gpus or "-" in entry:',
    },
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You read the entries as numbers with a point and cut that "
    "off. 0.5 is no GPU: it ends the list.",
)

name_by_other_rules = edit(
    mended_blanks_taken_out_everywhere,
    {
        'return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"': """
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
        """,
    },
    breaks=hidden_tests.name_after_renumbering,
    tells="`cuda_name` reads the list by rules of its own, which are "
    "not those of `physical_ids`: ask that function.",
)

name_as_a_device = edit(
    mended_blanks_taken_out_everywhere,
    {
        'return f"cuda:{physical_ids(visible, num_gpus).index(gpu)}"': """
        place = physical_ids(visible, num_gpus).index(gpu)
        return torch.device("cuda", place)
        """,
    },
    breaks=hidden_tests.name_after_renumbering,
    tells="You returned a `torch.device`. Its name is asked for, a "
    "string: `str(...)` of it.",
)

with_the_own_environment = edit(
    mended_blanks_taken_out_everywhere,
    {"new = dict(environ)": "new = {**os.environ, **environ}"},
    breaks=hidden_tests.rest_of_the_environment,
    tells="You mixed this process's own environment into `environ`. "
    "What the caller gave is the whole of it.",
)

empty_order_is_none = edit(
    mended_blanks_taken_out_everywhere,
    {
        'new.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")': """
        order = new.get("CUDA_DEVICE_ORDER") or "PCI_BUS_ID"
        new["CUDA_DEVICE_ORDER"] = order
        """,
    },
    breaks=hidden_tests.rest_of_the_environment,
    tells="You took an empty `CUDA_DEVICE_ORDER` for none. `environ` "
    "has one: it stays. Ask `in environ`.",
)


negative_looked_for_by_min = edit(
    with_int_and_try,
    {
        'if len(set(names)) < len(names) or any(n[0] == "-" for n in names):': """
        some = gpus and isinstance(gpus[0], int)
        if len(set(names)) < len(names) or (some and min(gpus) < 0):
        """,
    },
    breaks=[hidden_tests.uuids_as_they_are, hidden_tests.bad_gpus_raise],
    tells="You look for a negative number with `min`, which cannot compare "
    "a number with a UUID, and not at all where a UUID comes first. Look at "
    "each entry by itself.",
)

negative_only_without_uuids = edit(
    with_int_and_try,
    {
        'if len(set(names)) < len(names) or any(n[0] == "-" for n in names):': """
        uuids = any(isinstance(gpu, str) for gpu in gpus)
        negative = not uuids and any(gpu < 0 for gpu in gpus)
        if len(set(names)) < len(names) or negative:
        """,
    },
    breaks=hidden_tests.bad_gpus_raise,
    tells="Where a UUID is in the list, you let a negative number through. "
    "Look at each entry by itself.",
)

os_environ_for_an_empty_one = edit(
    with_int_and_try,
    {"new = dict(environ)": "new = dict(environ or os.environ)"},
    breaks=hidden_tests.rest_of_the_environment,
    tells="An empty `environ` counts as false, and you took `os.environ` in "
    "its place. The caller asked for a process with nothing but your two "
    "entries.",
)

negative_number_shown = edit(
    with_int_and_try,
    {"if not 0 <= gpu < num_gpus:": "if gpu >= num_gpus:"},
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You take -1 for a GPU. A negative number is none: it ends the list, "
    "and all that stands behind it is hidden.",
)

order_of_the_process = edit(
    SOLUTION,
    {'"PCI_BUS_ID"': 'os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID")'},
    breaks=hidden_tests.rest_of_the_environment,
    tells="Where `environ` has no `CUDA_DEVICE_ORDER` you take that of this process. "
    "The new environment is made of `environ` alone, with `PCI_BUS_ID`.",
)

comma_at_the_front_stripped = edit(
    SOLUTION,
    {'visible.split(",")': 'visible.strip(",").split(",")'},
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="You strip commas. One at the front makes an empty entry, and the list "
    "stops before it: the program sees no GPU.",
)

only_gpu_always_seen = edit(
    with_int_and_try,
    {
        "if visible is None:": """
        if num_gpus == 1:
            return [0]
        if visible is None:
        """
    },
    breaks=[
        hidden_tests.not_set_and_empty,
        hidden_tests.stops_at_the_first_invalid,
    ],
    tells="In a machine with one GPU you do not look at the variable. It may hide that one, "
    "too: an empty text, or one that begins with no number of a GPU, shows none.",
)

raised_digits_taken_for_numbers = edit(
    SOLUTION,
    {"number.isdecimal()": "number.isdigit()"},
    breaks=hidden_tests.stops_at_the_first_invalid,
    tells="`isdigit()` is true of `²`, too, and `int` raises there. Ask with `isdecimal()`: "
    "the list stops before such an entry.",
)
