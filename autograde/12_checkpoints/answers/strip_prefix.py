"""Answers to `strip_prefix` of chapter 12."""

import copy

import torch

from course_grader.bank import accepted, wrong

from .. import hidden_tests


@accepted()
def by_slicing(state_dict, prefix="module."):
    from collections import OrderedDict

    made = OrderedDict()
    for key, value in state_dict.items():
        made[key[len(prefix) :] if key.startswith(prefix) else key] = value
    return made


@wrong(
    breaks=hidden_tests.only_the_first,
    tells="You rename within one dict, yourself or by the library's function. Where the new name of one key is the "
    "old name of another, a tensor is written over: put them into a new dict.",
)
def by_the_library_on_a_deep_copy(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    made = copy.deepcopy(state_dict)
    consume_prefix_in_state_dict_if_present(made, prefix)
    return made


@wrong(
    breaks=hidden_tests.only_the_first,
    tells="You rename within one dict, yourself or by the library's function. Where the new name of one key is the "
    "old name of another, a tensor is written over: put them into a new dict.",
)
def by_the_library_on_a_plain_dict(state_dict, prefix="module."):
    made = dict(state_dict)
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(made, prefix)
    return made


@accepted()
def by_a_regular_expression(state_dict, prefix="module."):
    import re

    start = re.compile("^" + re.escape(prefix))
    return {start.sub("", k): v.clone() for k, v in state_dict.items()}


@accepted()
def by_one_replacement_at_the_start(state_dict, prefix="module."):
    made = {}
    for key in state_dict:
        new = (
            key.replace(prefix, "", 1) if key[: len(prefix)] == prefix else key
        )
        made[new] = state_dict[key]
    return made


@accepted()
def renamed_with_metadata(state_dict, prefix="module."):
    from collections import OrderedDict

    made = OrderedDict()
    for key in state_dict:
        made[key.removeprefix(prefix)] = state_dict[key]
    if hasattr(state_dict, "_metadata"):
        made._metadata = OrderedDict(
            (key.removeprefix(prefix), value)
            for key, value in state_dict._metadata.items()
        )
    return made


@accepted()
def by_partition_in_a_dict_of_the_same_kind(state_dict, prefix="module."):
    made = type(state_dict)()
    for key, value in state_dict.items():
        head, found, tail = key.partition(prefix) if prefix else (key, "", "")
        made[tail if found and not head else key] = value
    return made


@wrong(
    breaks=hidden_tests.only_the_first,
    tells="You remove the prefix wherever it occurs in a key, so "
    "`block.module.weight` loses a part of its name. Remove it only "
    "at the start: `key.removeprefix(prefix)`.",
)
def replaced_everywhere(state_dict, prefix="module."):
    return {key.replace(prefix, ""): v for key, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.only_the_first,
    tells="You remove the first occurrence of the prefix, which need not "
    "stand at the start of the key. Use `key.removeprefix(prefix)`.",
)
def first_occurrence_replaced(state_dict, prefix="module."):
    return {key.replace(prefix, "", 1): v for key, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.false_friends,
    tells="`lstrip` removes all leading characters that occur in the "
    "prefix, in any order: it turns `module.model.fc` into `fc`. Use "
    "`removeprefix`.",
)
def stripped_by_characters(state_dict, prefix="module."):
    return {key.lstrip(prefix): v for key, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.false_friends,
    tells="`lstrip` removes all leading characters that occur in the "
    "prefix, in any order: it turns `module.model.fc` into `fc`. Use "
    "`removeprefix`.",
)
def guarded_but_stripped_by_characters(state_dict, prefix="module."):
    return {
        key.lstrip(prefix) if key.startswith(prefix) else key: v
        for key, v in state_dict.items()
    }


@wrong(
    breaks=hidden_tests.false_friends,
    tells="You look for the prefix without its dot, so "
    "`module_list.0.weight` is cut as well. The dot belongs to the "
    "prefix.",
)
def without_the_dot(state_dict, prefix="module."):
    word = prefix.rstrip(".")
    return {
        key[len(prefix) :] if key.startswith(word) else key: v
        for key, v in state_dict.items()
    }


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You cut the length of the prefix from every key, also from those "
    "that do not have it. Ask `key.startswith(prefix)` first, or use "
    "`removeprefix`.",
)
def every_key_cut(state_dict, prefix="module."):
    return {key[len(prefix) :]: v for key, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You drop the first part of every key, whatever it is called: "
    "`fc.weight` becomes `weight`. Drop it only where it is the "
    "prefix.",
)
def first_part_dropped(state_dict, prefix="module."):
    return {key.partition(".")[2]: v for key, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You look at one key and treat all others like it. A state dict "
    "may have keys of both kinds: decide for each.",
)
def first_key_decides(state_dict, prefix="module."):
    if not any(not key.startswith(prefix) for key in list(state_dict)[:1]):
        return {key[len(prefix) :]: v for key, v in state_dict.items()}
    return dict(state_dict)


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You strip the prefix only if every key has it. A state dict may "
    "have keys of both kinds: decide for each.",
)
def all_or_nothing(state_dict, prefix="module."):
    if all(key.startswith(prefix) for key in state_dict):
        return {key.removeprefix(prefix): v for key, v in state_dict.items()}
    return dict(state_dict)


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You return only the keys that had the prefix. The others belong "
    "to the state dict too, unchanged.",
)
def others_dropped(state_dict, prefix="module."):
    return {
        key.removeprefix(prefix): v
        for key, v in state_dict.items()
        if key.startswith(prefix)
    }


@wrong(
    breaks=hidden_tests.only_the_first,
    tells="You strip the prefix as often as it stands at the start. One "
    "wrapper adds it once: a second one may belong to the model. "
    "Strip it once.",
)
def stripped_until_none_is_left(state_dict, prefix="module."):
    made = {}
    for key, value in state_dict.items():
        while prefix and key.startswith(prefix):
            key = key.removeprefix(prefix)
        made[key] = value
    return made


@wrong(
    breaks=hidden_tests.other_prefixes,
    tells="You strip `module.` whatever prefix was asked for. Use the "
    "argument.",
)
def module_alone(state_dict, prefix="module."):
    return {k.removeprefix("module."): v for k, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.other_prefixes,
    tells="You strip all wrappers' prefixes that you know. Only `prefix` "
    "was asked for: strip that one, and leave the decision about "
    "others to the caller.",
)
def every_known_wrapper(state_dict, prefix="module."):
    made = {}
    for key, value in state_dict.items():
        for one in ("module.", "_orig_mod.", prefix):
            key = key.removeprefix(one)
        made[key] = value
    return made


@wrong(
    breaks=hidden_tests.only_the_first,
    tells="You keep what stands behind the last occurrence of the prefix. "
    "Only the one at the start goes.",
)
def everything_before_the_last(state_dict, prefix="module."):
    return {key.split(prefix)[-1]: v for key, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="You rename the keys in the caller's own dict, who may still need "
    "them. Make a new dict.",
)
def in_place(state_dict, prefix="module."):
    for key in list(state_dict):
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    return state_dict


@wrong(
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="`consume_prefix_in_state_dict_if_present` works in place: you "
    "changed the caller's dict and its metadata. Give it a "
    "`copy.deepcopy`.",
)
def in_place_by_the_library(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    consume_prefix_in_state_dict_if_present(state_dict, prefix)
    return state_dict


@wrong(
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="A shallow copy shares `_metadata` with the original, and the "
    "library's function renames entries in there too. Build a new dict.",
)
def library_on_a_shallow_copy(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    made = copy.copy(state_dict)
    consume_prefix_in_state_dict_if_present(made, prefix)
    return made


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You return what `consume_prefix_in_state_dict_if_present` "
    "returns, which is None: it works in place. Return the dict that "
    "you gave it.",
)
def what_the_library_returns(state_dict, prefix="module."):
    from torch.nn.modules.utils import (
        consume_prefix_in_state_dict_if_present,
    )

    made = copy.deepcopy(state_dict)
    return consume_prefix_in_state_dict_if_present(made, prefix)


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You change the dict while you iterate over it, which raises a "
    "RuntimeError. Iterate over a list of its keys, or build a new "
    "dict.",
)
def renamed_while_iterating(state_dict, prefix="module."):
    made = copy.deepcopy(state_dict)
    for key in made:
        if key.startswith(prefix):
            made[key.removeprefix(prefix)] = made.pop(key)
    return made


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You change the values' dtype. Counters and masks are no floats: "
    "hand the tensors on as they are.",
)
def values_made_floats(state_dict, prefix="module."):
    return {
        key.removeprefix(prefix): value.detach().float()
        for key, value in state_dict.items()
    }


@wrong(
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="You wrap the values as parameters. A state dict holds plain "
    "tensors: hand them on as they are.",
)
def values_made_parameters(state_dict, prefix="module."):
    return {
        key.removeprefix(prefix): torch.nn.Parameter(value, requires_grad=False)
        for key, value in state_dict.items()
    }


@wrong(
    breaks=hidden_tests.other_prefixes,
    tells="You put a dot behind the prefix. A prefix may be any string: take "
    "it as it comes.",
)
def a_dot_put_behind(state_dict, prefix="module."):
    prefix = prefix.rstrip(".") + "."
    return {k.removeprefix(prefix): v for k, v in state_dict.items()}


@wrong(
    breaks=hidden_tests.all_some_or_none,
    tells="You drop `n_averaged`. Which keys the model has no place for is the "
    "caller's to decide: every key without the prefix stays as it is.",
)
def the_averages_counter_dropped(state_dict, prefix="module."):
    return {
        k.removeprefix(prefix): value
        for k, value in state_dict.items()
        if k != "n_averaged"
    }


@wrong(
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="You take the `_metadata` away from the caller's dict. It was to "
    "stay as it was.",
)
def metadata_taken_away(state_dict, prefix="module."):
    made = {k.removeprefix(prefix): v for k, v in state_dict.items()}
    if hasattr(state_dict, "_metadata"):
        del state_dict._metadata
    return made


@wrong(
    breaks=hidden_tests.leaves_the_dict_alone,
    tells="Where no key has the prefix you return the caller's own dict. A new "
    "one was asked for: whoever changes it does not expect to change the file.",
)
def the_same_dict_if_nothing_is_to_do(state_dict, prefix="module."):
    if not any(key.startswith(prefix) for key in state_dict):
        return state_dict
    return {k.removeprefix(prefix): v for k, v in state_dict.items()}
