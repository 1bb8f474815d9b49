"""Figures, the graph of autograd, and widgets in a real kernel."""

import base64
import inspect

import matplotlib.pyplot as plt
import nbclient
import nbformat
import pytest
import torch
from commands import without_ports
from matplotlib.figure import Figure

from course_utils import (
    annotated_matrix,
    bar_chart,
    digit_mlp,
    explore,
    graph,
    line_chart,
    new_figure,
    show_graph,
)

WIDGET = "application/vnd.jupyter.widget-view+json"


def texts_in(figure):
    return [text.get_text() for text in figure.axes[0].texts]


class TestPlots:
    def test_figures_are_forgotten_by_pyplot(self):
        new_figure()
        line_chart({"a": [1, 2]}, title="t", xlabel="x", ylabel="y")
        assert plt.get_fignums() == []

    def test_lines(self):
        figure = line_chart(
            {"SGD": [3, 2], "Adam": [3, 1]},
            x=[1, 10],
            title="Adam is faster",
            xlabel="step",
            ylabel="loss",
            log_x=True,
        )
        (axes,) = figure.axes
        assert [line.get_label() for line in axes.lines] == ["SGD", "Adam"]
        assert axes.lines[1].get_ydata().tolist() == [3, 1]
        assert axes.lines[1].get_xdata().tolist() == [1, 10]
        assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
        assert axes.get_title(loc="left") == "Adam is faster"

    def test_bars_carry_their_numbers(self):
        figure = bar_chart(
            {"float32": 4, "bfloat16": 2.5}, title="t", xlabel="bytes"
        )
        assert texts_in(figure) == ["4", "2.5"]

    def test_a_matrix_carries_its_numbers(self):
        numbers = torch.tensor([[1.0, 0.25], [0.0, 3.0]], requires_grad=True)
        figure = annotated_matrix(numbers, title="t", number_format=".2f")
        assert texts_in(figure) == ["1.00", "0.25", "0.00", "3.00"]

    def test_what_is_not_a_matrix(self):
        with pytest.raises(ValueError, match=r"not \(3,\)"):
            annotated_matrix([1, 2, 3], title="t")


class TestGraph:
    @pytest.fixture
    def network(self):
        torch.manual_seed(0)
        model = digit_mlp(norm="layer")
        return model(torch.rand(2, 1, 8, 8)), dict(model.named_parameters())

    def test_with_graphviz_the_graph_itself_is_shown(
        self, monkeypatch, capsys, network
    ):
        monkeypatch.setattr(graph.shutil, "which", lambda _: "/usr/bin/dot")
        shown = show_graph(*network)
        assert "linear1.weight" in shown.source
        assert hasattr(shown, "_repr_mimebundle_")
        assert capsys.readouterr().out == ""

    def test_without_graphviz_it_is_drawn_all_the_same(
        self, monkeypatch, capsys, network
    ):
        monkeypatch.setattr(graph.shutil, "which", lambda _: None)
        figure = show_graph(*network)
        assert isinstance(figure, Figure)
        said = capsys.readouterr().out
        assert said.count("\n") == 1
        for way in ("apt-get install", "brew install", "conda install"):
            assert f"{way} graphviz" in said

        import torchviz

        digraph = torchviz.make_dot(network[0], params=network[1])
        edges = sum(" -> " in line for line in digraph.body)
        drawn = texts_in(figure)
        assert drawn.count("") == edges  # arrows are texts without a text
        for name, parameter in network[1].items():
            shape = str(tuple(parameter.shape)).replace(",)", ")")
            assert f"{name}\n{shape}" in drawn

    def test_arrows_point_down_and_boxes_keep_their_distance(self, network):
        import torchviz

        nodes, edges = graph._nodes_and_edges(
            torchviz.make_dot(network[0]).body
        )
        place = graph._places(nodes, edges)
        assert all(place[start][1] > place[end][1] for start, end in edges)
        for name, (x, layer) in place.items():
            for other, (other_x, other_layer) in place.items():
                if name != other and layer == other_layer:
                    assert abs(x - other_x) > 1 - 1e-9

    def test_a_tensor_without_a_graph(self):
        with pytest.raises(ValueError, match="no graph"):
            show_graph(torch.ones(2))


def decay(lr=0.1, steps=3, kind="linear", log=False):
    if lr == 1.0:
        raise ArithmeticError("too fast")
    heights = [lr * (1 - i / steps) for i in range(steps)]
    return line_chart(
        {kind: heights},
        title=f"{kind} from {lr:g} in {steps}",
        xlabel="step",
        ylabel="learning rate",
        log_y=log,
    )


DECAY = "from course_utils import *\n" + inspect.getsource(decay)
EXPLORE = """explore(decay, lr=[0.01, 0.1, 1.0], steps=(2, 9),
        kind=["linear", "flat"], log=False)"""
FIND = """import gc
from ipywidgets import Dropdown, IntSlider, Label, SelectionSlider
def made(kind):
    (one,) = [w for w in gc.get_objects() if type(w) is kind]
    return one
"""


def executed(*cells):
    """The outputs of the cells of a notebook run by a kernel."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells]
    )
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", config=without_ports()
    ).execute()
    return [cell.outputs for cell in notebook.cells]


def pictures(outputs):
    return [out.data for out in outputs if "image/png" in out.get("data", {})]


@pytest.fixture(scope="module")
def shown():
    """What one kernel shows of all that the next tests look at."""
    return executed(
        DECAY,
        EXPLORE,
        "from course_utils import bar_chart\n"
        "bar_chart({'a': 1}, title='one bar', xlabel='x')",
        FIND + "made(Dropdown).value = 'flat'\nmade(IntSlider).value = 7",
        "made(SelectionSlider).value = 1.0\nprint(made(Label).value)",
        "made(SelectionSlider).value = 0.01\nprint([made(Label).value])",
        "import matplotlib.pyplot as plt",
        "def own(n=3):\n"
        "    figure, axes = plt.subplots()\n"
        "    axes.plot(range(n))\n"
        "    return figure\n"
        "explore(own, n=(2, 5))",
        'bar_chart({"a": 1}, title="t", xlabel="x")',
    )


class TestExplore:
    def test_controls_and_one_picture_that_is_saved(self, shown):
        controls, picture = shown[1]
        assert WIDGET in controls.data
        assert "run the cell" in controls.data["text/plain"]
        assert "image/png" not in controls.data
        assert picture.data["text/plain"].startswith("Figure: ")
        png = base64.b64decode(picture.data["image/png"])
        assert png.startswith(b"\x89PNG")

    def test_figures_say_their_titles_to_those_who_cannot_see_them(self, shown):
        alternatives = [
            (one.data["text/plain"], one.metadata["image/png"]["alt"])
            for one in (*shown[1], *shown[2])
            if "image/png" in one.data
        ]
        # the first as it was drawn last
        assert alternatives == [
            ("Figure: flat from 0.01 in 7",) * 2,
            ("Figure: one bar",) * 2,
        ]

    def test_a_moved_control_redraws_the_saved_picture(self, shown):
        (picture,) = pictures(shown[1])
        assert picture["text/plain"] == "Figure: flat from 0.01 in 7"
        assert shown[4][-1].text == "Not drawn: ArithmeticError: too fast\n"
        # a stream may come in more than one piece
        assert "".join(one.get("text", "") for one in shown[5]) == "['']\n"

    def test_a_figure_left_open_in_pyplot_is_shown_once(self, shown):
        *_, outputs, as_value = shown
        assert len(pictures(outputs)) == 1
        assert len(pictures(as_value)) == 1

    def test_without_ipywidgets_the_picture_stands_alone(self):
        _, outputs = executed(
            DECAY + "\nimport sys\nsys.modules['ipywidgets'] = None", EXPLORE
        )
        (picture,) = outputs
        assert picture.data["text/plain"] == "Figure: linear from 0.1 in 3"
        assert "image/png" in picture.data

    def test_on_colab_the_picture_is_a_widget_with_a_static_twin(self):
        _, outputs, changed = executed(
            DECAY + "\nimport sys, types\n"
            "sys.modules['google.colab'] = types.ModuleType('google.colab')",
            EXPLORE,
            FIND + "\nfrom ipywidgets import Image\n"
            "before = bytes(made(Image).value)\nmade(IntSlider).value = 7\n"
            "print(before[1:4], bytes(made(Image).value) != before)",
        )
        (both,) = outputs
        assert {WIDGET, "image/png"} <= set(both.data)
        assert changed[-1].text == "b'PNG' True\n"

    def test_in_a_plain_script_it_is_drawn_and_named(self, capsys):
        explore(decay, lr=[0.01, 0.1], steps=range(1, 9))
        assert capsys.readouterr().out == "Figure: linear from 0.1 in 3\n"
        assert plt.get_fignums() == []

    def test_an_argument_without_default_begins_at_the_first(self, capsys):
        def level(height, shown):
            return bar_chart(
                {"a": height}, title=f"{height} {shown}", xlabel=""
            )

        explore(level, height=(2.0, 5.0), shown=True)
        assert capsys.readouterr().out == "Figure: 2.0 True\n"

    @pytest.mark.parametrize(
        ("control", "sentence"),
        [
            ((4, 9), "begins with steps=3"),
            ([1, 2], "begins with steps=3"),
            (range(4, 9), "begins with steps=3"),
            ([], "The control steps is"),
            ("3", "The control steps is"),
            ((1, 2, 3, 4), "The control steps is"),
        ],
    )
    def test_a_control_that_cannot_be(self, control, sentence):
        with pytest.raises(ValueError, match=sentence):
            explore(decay, steps=control)
