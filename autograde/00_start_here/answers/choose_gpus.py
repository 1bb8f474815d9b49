"""Answers to `choose_gpus` of chapter 00."""

import os
import re

import torch

from course_grader.bank import accepted


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
