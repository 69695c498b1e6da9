"""What a person reads of a run: figures, tables, pictures."""

import html

from . import _native


def table(headers, lines):
    """A table of HTML; cells are escaped."""
    head = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in headers)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in line) + "</tr>" for line in lines
    )
    return f"<table><tr>{head}</tr>{body}</table>"


class Report(dict):
    """Figures by name, as a dict; ``charts`` are lines for pictures."""

    def _lines(self):
        charts = self.get("charts") or {"charts": []}
        return [
            (name, [(line, [tuple(point) for point in points]) for line, points in lines if points])
            for name, lines in charts["charts"]
        ]

    def _repr_svg_(self):
        """The picture of the run, or None where there is none."""
        charts = [(name, lines) for name, lines in self._lines() if lines]
        return _native.picture(self["charts"]["title"], self["charts"]["x"], charts) if charts else None

    def plot(self, ax=None):
        """Draws the lines with matplotlib: one chart on ``ax``, or all charts one below the other; returns the axes."""
        import matplotlib.pyplot as plt

        charts = [(name, lines) for name, lines in self._lines() if lines]
        if not charts:
            raise ValueError("this report has no picture")
        if ax is None:
            _, axes = plt.subplots(len(charts), sharex=True, squeeze=False)
            axes = list(axes[:, 0])
        else:
            axes = [ax]
        for axis, (name, lines) in zip(axes, charts):
            for line, points in lines:
                axis.plot(*zip(*points), label=line)
            axis.set_ylabel(name)
            axis.legend()
        axes[-1].set_xlabel(self["charts"]["x"])
        return axes[0] if len(axes) == 1 else axes


class Trained:
    """A trained model and the report of its training."""

    def __init__(self, model, report):
        self.model, self.report = model, TrainingReport(report)

    def __repr__(self):
        return f"<xc.Trained {self.model!r}: {self.report['what']} in {self.report['wall_s']:.1f} s>"

    def _repr_html_(self):
        return self.report._repr_html_()

    def _repr_svg_(self):
        return self.report._repr_svg_()


class TrainingReport(Report):
    """Figures of a training run: seconds, settings, and metrics where rows were held out."""

    @property
    def metrics(self):
        """Metrics of the rows that judge, by name, or None."""
        return self["metrics"]

    def _repr_html_(self):
        lines = [("kind", self["kind"]), ("model", self["what"]), ("seconds", f"{self['wall_s']:.1f}")]
        metrics = self["metrics"] or {}
        lines += [(name, f"{100 * value:.2f} %") for name, value in metrics.items() if "@" in name]
        return table(("", ""), lines)


class Evaluation(Report):
    """Metrics by name (``report["P@1"]``, fractions of 1); ``intervals``, ``counts``, ``comparison`` where asked for."""

    def __init__(self, found, names=None):
        super().__init__(found["metrics"])
        self.text, self.comparison = found["table"], found["comparison"]
        self.comparison_text, self.labels = found["comparison_table"], found["labels"]
        self._names = names

    def to_frame(self):
        """A line a label: support, precision, recall and F1 at each k (``per_label=True``)."""
        import pandas as pd

        if self.labels is None:
            raise ValueError("per_label=True is expected with it")
        frame = pd.DataFrame(self.labels)
        first = [column for column in ("label", "support") if column in frame]
        frame = frame[first + [column for column in frame if column not in first]]
        names = self._names() if callable(self._names) else self._names
        if names is not None:
            named = lambda label: names[int(label)] if label == label and label < len(names) else None
            frame.insert(1, "name", frame["label"].map(named))
            if "confused_with" in frame:
                frame["confused_with_name"] = frame["confused_with"].map(named)
        return frame

    def _lines(self):
        found = {}
        for name, value in self.items():
            family, _, k = name.partition("@")
            if k.isdigit() and isinstance(value, float):
                found.setdefault(family, []).append((int(k), value))
        return [("metric", [(family, sorted(points)) for family, points in found.items()])]

    def _repr_svg_(self):
        return _native.picture("Metrics", "k", self._lines())

    def plot(self, ax=None):
        self_with_charts = Report(charts={"title": "Metrics", "x": "k", "charts": self._lines()})
        return self_with_charts.plot(ax)

    def __str__(self):
        return self.text if self.comparison_text is None else f"{self.text}\n\n{self.comparison_text}"

    def _repr_html_(self):
        intervals = self.get("intervals") or {}
        lines = []
        for name, value in self.items():
            if "@" in name and isinstance(value, float):
                low, high = intervals.get(name, (None, None))
                between = "" if low is None else f"{100 * low:.2f} to {100 * high:.2f}"
                lines.append((name, f"{100 * value:.2f} %", between))
        return table(("metric", "value", "interval" if intervals else ""), lines)


class Tuned:
    """What a search found: ``options`` that are best, ``runs``, and ``model`` with its ``report`` where one was trained."""

    def __init__(self, found, model, report):
        self.found, self.model = found, model
        self.report = None if report is None else TrainingReport(report)

    @property
    def options(self):
        """Settings that differ from the defaults, by the program's names."""
        return self.found["options"]

    @property
    def runs(self):
        """Every run: trial, options, value."""
        return self.found["runs"]

    def to_frame(self):
        """A line a run."""
        import pandas as pd

        return pd.DataFrame(self.runs)

    def __repr__(self):
        return f"<xc.Tuned {self.found['trials']} trials: {self.found['verdict']}>"

    def __str__(self):
        return self.found["text"]
