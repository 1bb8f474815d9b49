"""Answers to `progress` of chapter 04."""

from tqdm import tqdm

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted(body=True)
def with_a_total():
    import re

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        yield from tqdm(
            enumerate(loader), total=total, file=file, position=0, leave=True
        )

    def seconds_for(num_batches, rate):
        number, unit = re.fullmatch(r"\s*([\d.?]+)(\S+)\s*", rate).groups()
        if number == "?":
            return None
        per_batch = unit.startswith("s/")
        each = float(number)
        return num_batches * each if per_batch else num_batches / each


@accepted(body=True)
def printed_by_hand():
    import operator

    def progress(loader, file):
        try:
            total = operator.index(len(loader))
        except TypeError:
            total = None
        done = 0
        for done, batch in enumerate(loader, start=1):
            yield done - 1, batch
            of = "" if total is None else f"/{total}"
            print(f"\r{done}{of} batches", end="", file=file, flush=True)
        print(file=file)

    def seconds_for(num_batches, rate):
        first, second = rate.split("/")
        if "?" in first:
            return None
        if second.strip() == "s":
            number = first.strip()
            while number[-1].isalpha():
                number = number[:-1]
            return float(num_batches) / float(number)
        return float(num_batches) * float(first.strip().rstrip("s"))


@accepted(body=True)
def as_a_class():
    class Bar:
        def __init__(self, loader, file):
            self.loader, self.file = loader, file
            self.total = None
            try:
                self.total = len(loader)
            except TypeError:
                pass

        def __iter__(self):
            count = 0
            for batch in self.loader:
                yield count, batch
                count += 1
                known = f"{count}/{self.total}" if self.total else f"{count}"
                self.file.write(known + "\n")

    def progress(loader, file):
        return Bar(loader, file)

    def seconds_for(num_batches, rate):
        rate = rate.strip()
        inverse = not rate.endswith("/s")
        number = ""
        for character in rate:
            if not (character.isdigit() or character == "."):
                break
            number += character
        if number == "":
            return None
        value = float(number)
        return num_batches * value if inverse else num_batches / value


@accepted(body=True)
def with_manual_updates():
    def progress(loader, file):
        with tqdm(file=file, mininterval=0) as bar:
            try:
                bar.total = len(loader)
            except TypeError:
                bar.total = None
            for i, batch in enumerate(loader):
                yield i, batch
                bar.update()

    def seconds_for(num_batches, rate):
        import re

        found = re.search(r"(\d+\.?\d*)", rate)
        if found is None:
            return None
        number = float(found.group(1))
        per_second = rate.rstrip().endswith("/s")
        return num_batches * (1 / number if per_second else number)


@accepted(body=True)
def zipped_with_a_counter():
    import itertools
    import string

    def progress(loader, file):
        looks = dict(ascii=True, ncols=60, unit=" batches")
        try:
            bar = tqdm(loader, file=file, total=len(loader), **looks)
        except TypeError:
            bar = tqdm(loader, file=file, **looks)
        return zip(itertools.count(), bar)

    def seconds_for(num_batches, rate):
        amount, per = (part.strip() for part in rate.split("/"))
        if amount.startswith("?"):
            return None
        number = float(amount.rstrip(string.ascii_letters))
        if per == "s":
            number = 1.0 / number
        return number * num_batches


@accepted(body=True)
def updated_before_the_last_yield():
    import string

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        with tqdm(total=total, file=file, mininterval=0) as bar:
            for i, batch in enumerate(loader):
                bar.update()
                yield i, batch

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@accepted(body=True)
def written_before_each_batch():
    import string

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        for i, batch in enumerate(loader):
            file.write(f"\r{i + 1}" + ("" if total is None else f"/{total}"))
            yield i, batch
        file.write("\n")

    def seconds_for(num_batches, rate):
        number, _, unit = rate.strip().partition("/")
        if number.startswith("?"):
            return None
        value = float(number.rstrip(string.ascii_letters))
        return num_batches / value if unit == "s" else num_batches * value


@wrong(
    breaks=hidden_tests.knows_the_total,
    tells="`enumerate` has no length, so your bar does not know the total: it only "
    "counts. Give `total=`.",
    body=True,
)
def without_a_total():
    def progress(loader, file):
        return tqdm(enumerate(loader), file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.without_a_length,
    tells="You ask every loader for its length. A generator has none, and the loader "
    "of an IterableDataset raises a TypeError: catch it.",
    body=True,
)
def always_asking_for_the_length():
    def progress(loader, file):
        return tqdm(enumerate(loader), total=len(loader), file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.without_a_length,
    tells="`hasattr(loader, '__len__')` is True for every DataLoader, also where `len` "
    "raises a TypeError. Try `len` and catch it.",
    body=True,
)
def by_hasattr():
    def progress(loader, file):
        total = len(loader) if hasattr(loader, "__len__") else None
        return tqdm(enumerate(loader), total=total, file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=[hidden_tests.takes_as_asked],
    tells="You read the whole loader into a list to know its length. Nothing is given "
    "out before all is read, and all of it lies in memory.",
    body=True,
)
def read_into_a_list():
    def progress(loader, file):
        batches = list(loader)
        return enumerate(tqdm(batches, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=[hidden_tests.takes_as_asked, hidden_tests.without_a_length],
    tells="You go through the loader once to count its batches and again to give them "
    "out. That loads everything twice, and a generator is empty the second time.",
    body=True,
)
def counted_first():
    def progress(loader, file):
        total = sum(1 for _ in loader)
        return tqdm(enumerate(loader), total=total, file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.knows_the_total,
    tells="Your total is the number of samples. The bar counts batches: "
    "`len(loader)`.",
    body=True,
)
def counting_samples():
    def progress(loader, file):
        try:
            total = len(getattr(loader, "dataset", loader))
        except TypeError:
            total = None
        return tqdm(enumerate(loader), total=total, file=file)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.writes_to_its_stream,
    tells="Your bar goes to the screen, where tqdm writes by default. Pass "
    "`file=file`.",
    body=True,
)
def on_the_screen():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=[hidden_tests.gives_pairs, hidden_tests.knows_the_total],
    tells="You number the batches from 1. The first one has the number 0.",
    body=True,
)
def numbered_from_one():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file), start=1)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.takes_as_asked,
    tells="You take a batch ahead of the one that was asked for. Whoever stops early "
    "has lost it, and two batches are in memory.",
    body=True,
)
def one_batch_ahead():
    def progress(loader, file):
        def ahead():
            batches = iter(loader)
            try:
                held = next(batches)
            except StopIteration:
                return
            for following in batches:
                yield held
                held = following
            yield held

        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(ahead(), total=total, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.knows_the_total,
    tells="Your bar says n/n from the beginning. It is to say so when all batches "
    "have been given out.",
    body=True,
)
def complete_at_once():
    def progress(loader, file):
        try:
            file.write(f"{len(loader)}/{len(loader)}\n")
        except TypeError:
            file.write("on the way\n")
        yield from enumerate(loader)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.takes_as_asked,
    tells="You swallow exceptions of the loader. The epoch then ends early and nobody "
    "hears of it.",
    body=True,
)
def swallowing_errors():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        try:
            yield from enumerate(tqdm(loader, total=total, file=file))
        except Exception:
            return

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.gives_the_same_objects,
    tells="You give out copies of the batches. The loader's own were asked for; a "
    "copy costs time and memory.",
    body=True,
)
def giving_copies():
    import copy

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        for i, batch in enumerate(tqdm(loader, total=total, file=file)):
            yield i, copy.deepcopy(batch)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.reads_batches_per_second,
    tells="You read `it/s` as the time of a batch. It is batches per second: at 1.54it/s "
    "a batch takes 1 / 1.54 = 0.65 s. Divide.",
    body=True,
)
def rate_as_a_time():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        number = rate.strip().split("/")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
        return None if number == "?" else num_batches * float(number)


@wrong(
    breaks=hidden_tests.reads_seconds_per_batch,
    tells="You divide by `s/it` too. Below one batch per second tqdm turns the number "
    "over: then it is the time of a batch. Multiply.",
    body=True,
)
def always_dividing():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        number = rate.strip().split("/")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
        return None if number == "?" else num_batches / float(number)


@wrong(
    breaks=hidden_tests.reads_other_units,
    tells="You look for `s/` anywhere in the text. `12samples/s` has it too, and is a "
    "rate per second. Look at what stands after the slash.",
    body=True,
)
def looking_for_s_and_slash():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        number = rate.strip().split("/")[0].rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        if "s/" in rate:
            return num_batches * float(number)
        return num_batches / float(number)


@wrong(
    breaks=hidden_tests.reads_other_units,
    tells="You know the unit `it` only. tqdm writes whatever `unit=` was given, as "
    "`batch` or `samples`.",
    body=True,
)
def for_it_alone():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        rate = rate.strip()
        if rate == "?it/s":
            return None
        if rate.endswith("it/s"):
            return num_batches / float(rate.removesuffix("it/s"))
        return num_batches * float(rate.removesuffix("s/it"))


@wrong(
    breaks=hidden_tests.reads_other_units,
    tells="A rate that is not known yet, `?it/s`, gives 0 or infinity with you. None was "
    "asked for: no time can be told.",
    body=True,
)
def infinite_when_unknown():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return float("inf")
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.reads_batches_per_second,
    tells="You round to whole seconds. A float was asked for.",
    body=True,
)
def whole_seconds():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        number = float(number)
        return round(
            num_batches / number if below == "s" else num_batches * number
        )


@wrong(
    breaks=hidden_tests.writes_to_its_stream,
    tells="You close the stream. It belongs to the caller, who may want to "
    "write on or read it.",
    body=True,
)
def closing_the_stream():
    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        yield from enumerate(tqdm(loader, total=total, file=file))
        file.close()

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=[hidden_tests.knows_the_total, hidden_tests.without_a_length],
    tells="Your total is a number of your own. The loader knows how many "
    "batches it has, or nobody does.",
    body=True,
)
def with_an_invented_total():
    def progress(loader, file):
        return enumerate(tqdm(loader, file=file, total=1000))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=[hidden_tests.knows_the_total, hidden_tests.writes_to_its_stream],
    tells="There is no bar at all: nothing is written to `file`.",
    body=True,
)
def without_a_bar():
    def progress(loader, file):
        return enumerate(loader)

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        return (
            num_batches / float(number)
            if below == "s"
            else (num_batches * float(number))
        )


@wrong(
    breaks=hidden_tests.knows_the_total,
    tells="Your bar is written at the end, when nobody needs it any more. Write as "
    "the batches go.",
    body=True,
)
def only_at_the_end():
    def progress(loader, file):
        done = 0
        for i, batch in enumerate(loader):
            yield i, batch
            done += 1
        try:
            file.write(f"{done}/{len(loader)}\n")
        except TypeError:
            file.write(f"{done}\n")

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip("abcdefghijklmnopqrstuvwxyz")
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    breaks=hidden_tests.gives_pairs,
    tells="You take `loader[i]`. What a loader gives when it is gone through need "
    "not be what it gives by number, and many have no numbers. Go through "
    "it with `for`.",
    body=True,
)
def by_number():
    import string

    def progress(loader, file):
        if not hasattr(loader, "__getitem__"):
            try:
                total = len(loader)
            except TypeError:
                total = None
            yield from enumerate(tqdm(loader, total=total, file=file))
            return
        for i in tqdm(range(len(loader)), file=file):
            yield i, loader[i]

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        number = above.rstrip(string.ascii_letters)
        if number == "?":
            return None
        number = float(number)
        return num_batches / number if below == "s" else num_batches * number


@wrong(
    breaks=hidden_tests.reads_other_units,
    tells="You look for units that you know. The unit may be any word. What "
    "stands after the slash decides.",
    body=True,
)
def for_known_words():
    import re

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        if "?" in rate:
            return None
        number = float(re.match(r"[0-9.]+", rate.strip())[0])
        known = ("it/s", "batch/s", "samples/s")
        if any(word in rate for word in known):
            return num_batches / number
        return num_batches * number


@wrong(
    breaks=hidden_tests.reads_batches_per_second,
    tells="You read a part of the number only. A rate may be long, as `1241.25it/s`.",
    body=True,
)
def one_digit_before_the_point():
    import re

    def progress(loader, file):
        try:
            total = len(loader)
        except TypeError:
            total = None
        return enumerate(tqdm(loader, total=total, file=file))

    def seconds_for(num_batches, rate):
        above, below = rate.strip().split("/")
        found = re.match(r"[0-9][.][0-9]+|[0-9]+", above)
        if found is None:
            return None
        number = float(found[0])
        return num_batches / number if below == "s" else num_batches * number
