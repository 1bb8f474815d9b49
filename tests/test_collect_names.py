"""Whose work a file is and of which chapter, by its name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_grader.classroom.collect_names import (
    Owner,
    Student,
    chapter_of,
    is_notebook,
    new_student_id,
    num_wrapping_folders,
    owner_of,
)

CHAPTERS = [
    "00_start_here",
    "02_tensors",
    "03_one_hot_and_losses",
    "05_normalization",
    "15_capstone",
]
THREE = "03_one_hot_and_losses"
ALICE = Student("alice", "Alice", "Liddell", "alice@example.org", "4711")
BOB = Student("bob_b", "Bob", "Müller")
ANN = Student("ann", "Ann", "Lee")
LEE = Student("lee", "Lee", "Ann")
ROSTER = [ALICE, BOB, ANN, LEE]


@pytest.mark.parametrize(
    "name",
    [
        "03_one_hot_and_losses.ipynb",
        "Copy of 03_one_hot_and_losses (1).ipynb",
        "Copy of Copy of 03_one_hot_and_losses.ipynb",
        "03 one hot and losses.ipynb",
        "Copy_of_03_one_hot_and_losses-2.ipynb",
        "03_one_hot_and_losses - Copy (2).ipynb",
        "03_one_hot_and_losses-Copy1.ipynb",
        "03-One-Hot-and-Losses.IPYNB",
        "3 one-hot and losses.ipynb",
        "Kopie von 03_one_hot_and_losses.ipynb",
        "one_hot_and_losses.ipynb",
        "Copy of one hot and losses (3).ipynb",
        "03.ipynb",
        "03_one_hot_and_losses_Alice_Liddell_final.ipynb",
        "HW 2 - 03_one_hot_and_losses.ipynb",
        "03_one_hot_and_losses.ipynb.txt",
        "０３_one_hot_and_losses.ipynb",
    ],
)
def test_renamed_notebooks_are_recognised(name):
    assert is_notebook(name)
    assert chapter_of(name, CHAPTERS) == THREE


@pytest.mark.parametrize(
    "name",
    [
        "Untitled.ipynb",
        "homework.ipynb",
        "04_one_hot_and_losses.ipynb",  # the words of one, another's number
        "03_tensors.ipynb",
        "33_one_hot_and_losses.ipynb",
        "my_tensors.ipynb",
        "2024.ipynb",
        "99.ipynb",
        "one_hot.ipynb",
        ".ipynb",
        "(1).ipynb",
    ],
)
def test_other_names_are_no_chapter(name):
    assert chapter_of(name, CHAPTERS) is None


def test_the_longer_of_two_names_that_fit_wins():
    chapters = ["03_a", "03_a_b"]
    assert chapter_of("03_a_b.ipynb", chapters) == "03_a_b"
    assert chapter_of("03_a.ipynb", chapters) == "03_a"
    assert chapter_of("03.ipynb", chapters) is None
    assert chapter_of("03_a 04_b.ipynb", ["03_a", "04_b"]) is None


@pytest.mark.parametrize(
    ("path", "student", "file_name"),
    [
        # Moodle, in folders and flat
        (
            "Alice Liddell_123456_assignsubmission_file_/03.ipynb",
            "alice",
            "03.ipynb",
        ),
        ("Alice Liddell_123456_assignsubmission_file/a.ipynb", "alice", None),
        (
            "Alice Liddell_123456_assignsubmission_file_03.ipynb",
            "alice",
            "03.ipynb",
        ),
        ("LIDDELL Alice_1_assignsubmission_file_/03.ipynb", "alice", None),
        ("Bob Muller_9_assignsubmission_file_/03.ipynb", "bob_b", None),
        # Canvas: by the user's number, else by name
        ("liddellalice_4711_67890_03-1.ipynb", "alice", "03-1.ipynb"),
        ("x_LATE_4711_67890_Copy of 03_a.ipynb", "alice", None),
        ("mullerbob_12345_67890_03.ipynb", "bob_b", None),
        ("müllerbob_12345_67890_03.ipynb", "bob_b", None),
        # plain
        ("alice/03.ipynb", "alice", "03.ipynb"),
        ("Alice/03.ipynb", "alice", None),
        ("alice@example.org/03.ipynb", "alice", None),
        ("Alice Liddell/03.ipynb", "alice", None),
        (f"alice/{THREE}/{THREE}.ipynb", "alice", None),
        (f"{THREE}/alice/{THREE}.ipynb", "alice", None),
        (f"alice_{THREE}.ipynb", "alice", f"{THREE}.ipynb"),
        (f"alice__{THREE}.ipynb", "alice", f"{THREE}.ipynb"),
        (f"bob_b_Copy of {THREE} (1).ipynb", "bob_b", None),
        ("alice_homework.ipynb", "alice", "homework.ipynb"),
        ("alice__homework.ipynb", "alice", "homework.ipynb"),
    ],
)
def test_students_are_recognised(path, student, file_name):
    *folders, name = path.split("/")
    owner = owner_of(folders, name, ROSTER, CHAPTERS)
    assert owner.ids == (student,)
    if file_name is not None:
        assert owner.file_name == file_name


def test_canvas_says_who_is_late():
    late = owner_of([], "liddellalice_LATE_4711_67890_03.ipynb", ROSTER, [])
    assert late.late
    assert not owner_of([], "liddellalice_4711_67890_03.ipynb", [], []).late


@pytest.mark.parametrize(
    ("path", "claimed"),
    [
        ("Zed Zorn_1_assignsubmission_file_/03.ipynb", "Zed Zorn"),
        ("zornzed_12345_67890_03.ipynb", "zornzed_12345"),
        ("zed/03.ipynb", "zed"),
        (f"zed_{THREE}.ipynb", "zed"),
        (f"zed_Copy of {THREE} (1).ipynb", "zed"),
        ("zed__homework.ipynb", "zed"),
        (f"{THREE}.ipynb", ""),
        (f"Copy_of_{THREE}-2.ipynb", ""),
        ("homework.ipynb", ""),
    ],
)
def test_nobody_is_invented(path, claimed):
    *folders, name = path.split("/")
    owner = owner_of(folders, name, ROSTER, CHAPTERS)
    assert owner.ids == ()
    assert owner.claimed == claimed


def test_a_name_that_two_students_bear_is_nobodys():
    owner = owner_of(
        ["Ann Lee_7_assignsubmission_file_"], "03.ipynb", ROSTER, CHAPTERS
    )
    assert set(owner.ids) == {"ann", "lee"}


@pytest.mark.parametrize(
    "path",
    [
        # what the system wrote goes before what the learner may have chosen
        "Bob Müller_9_assignsubmission_file_/alice__03.ipynb",
        "Bob Müller_9_assignsubmission_file_/alice/03.ipynb",
        "Bob Müller_9_assignsubmission_file_/"
        "Alice Liddell_1_assignsubmission_file_/03.ipynb",
        "mullerbob_12345_67890_alice_03_one_hot_and_losses.ipynb",
        "mullerbob_12345_67890_liddellalice_4711_67890_03.ipynb",
        "bob_b/alice__03_one_hot_and_losses.ipynb",
        "bob_b/liddellalice_4711_67890_03.ipynb",
    ],
)
def test_a_learner_cannot_hand_in_as_another(path):
    *folders, name = path.split("/")
    assert owner_of(folders, name, ROSTER, CHAPTERS).ids == ("bob_b",)


def test_an_unknown_learner_cannot_hand_in_as_a_known_one():
    owner = owner_of(
        ["zed"], "liddellalice_4711_67890_03.ipynb", ROSTER, CHAPTERS
    )
    assert owner.ids == ()
    assert owner.claimed == "zed"


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["submissions/alice/03.ipynb", "submissions/zed/03.ipynb"], 1),
        (["down/load/alice/03.ipynb", "down/load/zed/03.ipynb"], 2),
        ([f"all/alice_{THREE}.ipynb", f"all/zed_{THREE}.ipynb"], 1),
        ([f"all/{THREE}/alice/03.ipynb"], 2),
        (["alice/03.ipynb", "alice/05.ipynb"], 0),
        (["zed/03.ipynb", "zed/05.ipynb"], 0),
        ([f"zed/{THREE}/03.ipynb", "zed/05_normalization/05.ipynb"], 0),
        (["alice/03.ipynb", "zed/03.ipynb"], 0),
        (["x/alice/03.ipynb", "03.ipynb"], 0),
        (["Zed Z_1_assignsubmission_file_/03.ipynb"], 0),
        ([], 0),
    ],
)
def test_outer_folders_are_told_from_students(paths, expected):
    split = [tuple(path.split("/")) for path in paths]
    assert num_wrapping_folders(split, ROSTER, CHAPTERS) == expected


def test_who_was_added_by_name_is_recognised_by_that_name():
    new = new_student_id("Zed van Zorn")
    owner = owner_of(
        ["Zed van Zorn_1_assignsubmission_file_"],
        "03.ipynb",
        [*ROSTER, Student(new)],
        CHAPTERS,
    )
    assert owner.ids == (new,)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(st.text(min_size=1), max_size=3),
    st.text() | st.from_regex(r"[\w (_)-]{0,20}(\.ipynb)?", fullmatch=True),
)
def test_any_name_gets_an_answer(folders, name):
    assert chapter_of(name, CHAPTERS) in (None, *CHAPTERS)
    owner = owner_of(folders, name, ROSTER, CHAPTERS)
    assert isinstance(owner, Owner)
    made = new_student_id(owner.claimed)
    assert "/" not in made
    assert not made.startswith(".")
