"""Writes `xc/_options.pyi`, the options of each kind as keywords, and `xc/_estimators.py`, the constructors of the estimators
of scikit-learn, from the table of settings of the installed package.

    python generate.py            # writes the files beside this one
    python generate.py --check    # says whether they are what the table says
"""

import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
# The package as it is installed; that beside this file has no extension module.
sys.path[:] = [path for path in sys.path if pathlib.Path(path or ".").resolve() != HERE]

import xc  # noqa: E402
from xc import _native  # noqa: E402


HEAD = '''\
"""Options of training by keyword. Written by `python/generate.py` from the table of settings: change that."""

import os
from typing import Iterable, Literal, Mapping, Sequence, TypedDict, Union, overload

from typing_extensions import Unpack

from . import Callback, LabelsLike, Report, RowsLike, Trained, Tuned

Value = Union[bool, int, float, str, os.PathLike[str], Sequence[int], None]
"""What an option may be given as."""
'''

TYPES = {
    "int": "int",
    "ints": "Union[int, Sequence[int]]",
    "float": "float",
    "bool": "bool",
    "switch": "bool",
    "text": "Union[str, int]",
}

DATA = """\
    validation: Union[tuple[RowsLike, LabelsLike], None] = ...,
    label_names: Union[Iterable[str], None] = ...,
    label_features: Union[RowsLike, None] = ...,
    instance_weights: Union[Iterable[float], None] = ...,
    label_costs: Union[Iterable[float], None] = ...,
    seed: int = ...,
    threads: Union[int, None] = ...,
    max_memory: Union[int, str, None] = ...,
    text_fields: Union[str, Sequence[str], None] = ...,
    options: Union[Mapping[str, Value], None] = ...,
"""

WORK = """\
    resume: bool = ...,
    restart: bool = ...,
    progress: Union[bool, None] = ...,
    callbacks: Union[Callback, Iterable[Callback]] = ...,
"""

CALLS = {
    "train": (
        "Trained",
        "    Y: Union[LabelsLike, None] = ...,\n",
        "    model: Union[str, os.PathLike[str], None] = ...,\n    checkpoint: Union[str, os.PathLike[str], None] = ...,\n"
        "    refit: Union[str, os.PathLike[str], None] = ...,\n    device: str = ...,\n" + WORK,
    ),
    "plan": ("Report", "    Y: Union[LabelsLike, None] = ...,\n", ""),
    "tune": (
        "Tuned",
        "    Y: LabelsLike,\n",
        "    budget: Union[str, None] = ...,\n    trials: Union[int, None] = ...,\n    metric: str = ...,\n"
        "    output: Union[str, os.PathLike[str], None] = ...,\n    train_model: bool = ...,\n" + WORK,
    ),
}


OTHERS = [
    ("index", "index build"), ("blend", "blend"), ("calibrate", "calibrate"), ("search", "predict"),
    ("convert", "convert --from xc --to xc"), ("embed", "embed"), ("evaluate", "evaluate"),
]
"""What has options beside kinds of models."""

OWN = {"evaluate": ("k",)}
"""Options that calls have as parameters."""


def of_arrays(kind):
    """The settings that arrays can have, by keyword: those about the form of a file are not among them, nor those that stand
    among parameters of the call."""
    own = OWN.get(kind, ())
    return {name: row for name, row in xc.settings(kind).items() if row["heading"] != "Input options" and name not in own}


def type_of(row):
    """The type of a setting's values."""
    if row["type"] == "name":
        names = list(row["names"])
        if set(names) == {"true", "false"}:
            return "bool"
        if "off" in names:
            return "bool, Literal[" + ", ".join(f'"{name}"' for name in names) + "]"
        return "Literal[" + ", ".join(f'"{name}"' for name in names) + "]"
    if row["name"] == "threshold":
        return 'float, Literal["best"]'
    if row["unit"] == "DIR":
        return "Union[str, os.PathLike[str]]"
    return TYPES[row["type"]]


def said(row):
    """What a setting means, as a docstring."""
    text = row["help"].rstrip(".")
    text = text[:1].upper() + text[1:]
    if row["usual"]:
        text += f" [default: {row['usual']}]"
    if row["belongs_to"]:
        other, values = row["belongs_to"]
        keyword = xc._errors.keyword(other)
        text += f". Needs {keyword}" + (f" {' or '.join(values)}" if values else "")
    text = xc._errors.keywords_in(text).replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.wrap(f'"""{text}."""', 112)


def options_of(kind, command):
    """A class with the options of a kind, or of an index."""
    lines = [f"class {kind.capitalize()}Options(TypedDict, total=False):"]
    lines.append(f'    """Options of `xc {command}`."""')
    for name, row in of_arrays(kind).items():
        lines += ["", f"    {name}: Union[{type_of(row)}, None]"]
        lines += [f"    {line}" for line in said(row)]
    return "\n".join(lines)


def overloads(call):
    """The signatures of a function, one a kind: one for any ``str`` would take every keyword."""
    returns, labels, own = CALLS[call]
    out = []
    for kind in _native.kinds():
        out.append(
            f'@overload\ndef {call}(\n    kind: Literal["{kind}"],\n    X: RowsLike,\n{labels}    *,\n{own}{DATA}'
            f"    **keywords: Unpack[{kind.capitalize()}Options],\n) -> {returns}: ..."
        )
    return out


def text():
    """The whole file."""
    parts = [HEAD, *(options_of(kind, f"train {kind}") for kind in _native.kinds()), *(options_of(name, command) for name, command in OTHERS)]
    for call in CALLS:
        parts += overloads(call)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


ESTIMATORS = '''\
"""Estimators of scikit-learn, with a parameter a setting. Written by `python/generate.py` from the table of settings."""

import os
from typing import Literal, Mapping, Sequence, Union

from ._estimator import Classifier, Vectorizer

Value = Union[bool, int, float, str, os.PathLike[str], Sequence[int], None]
'''

CLASSIFIERS = {
    "tree": ("Trees of clusters of labels with linear rankers", ""),
    # Labels are hashed to fewer buckets, of which there are two or more.
    "mach": ("Networks over buckets that labels are hashed to", "    _least_labels = 3\n"),
    "dense": ("A network that scores every label", ""),
    "uniform": ("A network whose labels have few connections each", ""),
    "lns": ("A network that learns from sampled negative labels", ""),
    "astra": ("A network that learns from labels that are hard to tell apart", ""),
}
"""What each kind is, and lines of its class."""

OF_RUN = {"text_fields": "Union[str, Sequence[str], None]", "threads": "Union[int, None]", "max_memory": "Union[int, str, None]"}
"""Parameters that are no settings."""

OF_CLASSIFIER = {
    "top_k": ("Union[int, None]", "None"),
    "threshold": ("float", "0.5"),
    "calibration": ('Literal["isotonic", "platt", None]', "None"),
    "seed": ("int", "0"),
    "options": ("Union[Mapping[str, Value], None]", "None"),
}
"""Those of classifiers, with their defaults."""


def constructor(settings, others):
    """A constructor with a keyword for each setting, under its own name alone: two for one would be set apart."""
    own = {name: row for name, row in settings.items() if xc._errors.keyword(row["name"]) == name}
    lines = [f"        {name}: Union[{type_of(row)}, None] = None," for name, row in own.items()]
    lines += [f"        {name}: {of} = {usual}," for name, (of, usual) in others.items()]
    return "\n".join(["    def __init__(", "        self,", "        *,", *lines, "    ) -> None:", "        self._set(locals())"])


def estimators():
    """The whole file of estimators."""
    parts, run = [ESTIMATORS], {name: (of, "None") for name, of in OF_RUN.items()}
    for kind, (what, more) in CLASSIFIERS.items():
        made = constructor(of_arrays(kind), {**OF_CLASSIFIER, **run})
        head = f'class {kind.capitalize()}Classifier(Classifier):\n    __doc__ = "{what} (kind \\"{kind}\\")." + Classifier.about()\n'
        parts.append(f'{head}    __module__ = "xc.sklearn"\n    _kind = "{kind}"\n{more}\n{made}')
    of_text = {name: row for name, row in of_arrays("tree").items() if name.startswith("text_")}
    head = 'class TextVectorizer(Vectorizer):\n    __doc__ = Vectorizer.__doc__\n    __module__ = "xc.sklearn"\n\n'
    parts.append(head + constructor(of_text, run))
    return "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n"


FILES = {"_options.pyi": text, "_estimators.py": estimators}


if __name__ == "__main__":
    for name, written in FILES.items():
        place = HERE / "xc" / name
        if "--check" not in sys.argv[1:]:
            place.write_text(written(), encoding="utf-8")
        elif place.read_text(encoding="utf-8") != written():
            sys.exit(f"{place}: is not what the table of settings says")
