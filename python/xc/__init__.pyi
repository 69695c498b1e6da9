import os
from typing import Callable, Iterable, Iterator, Literal, Mapping, Protocol, Sequence, TypedDict, Union, overload

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from pandas import DataFrame
from scipy.sparse import csr_matrix

from typing_extensions import Unpack

from ._options import (
    BlendOptions,
    CalibrateOptions,
    ConvertOptions,
    EmbedOptions,
    EvaluateOptions,
    IndexOptions,
    SearchOptions as SearchOptions,
    plan as plan,
    train as train,
    tune as tune,
)

__version__: str

class SparseRows(Protocol):
    """A sparse matrix of compressed rows, such as scipy's csr_matrix."""

    @property
    def indptr(self) -> object: ...
    @property
    def indices(self) -> object: ...
    @property
    def data(self) -> object: ...

class SparseMatrix(Protocol):
    """A sparse matrix of another form."""

    def tocsr(self) -> object: ...

class Array(Protocol):
    """An array, a tensor on the CPU, or a column."""

    def __array__(self) -> npt.NDArray[np.generic]: ...

class Frame(Protocol):
    """A data frame of pandas or of polars, or a table of pyarrow."""

    @property
    def columns(self) -> object: ...

RowsLike = Union[SparseRows, SparseMatrix, Array, Frame, Sequence[str], Sequence[Sequence[float]]]
"""Instances: a sparse matrix, a 2-D array of floats, a list of str, or a DataFrame with text_fields."""

LabelsLike = Union[SparseRows, SparseMatrix, Array, Frame, Iterable[Union[int, str, Iterable[int], Iterable[str]]]]
"""Labels: a sparse matrix, an array or DataFrame of 0 and 1, lists of ids or of names, or one of them a row."""

RowNumbers = Union[Array, Iterable[int], Iterable[bool]]
"""Numbers of rows, or a bool for each row."""

Path = Union[str, os.PathLike[str]]
Json = Union[None, bool, int, float, str, list["Json"], dict[str, "Json"]]
"""What reports hold."""

Callback = Callable[[dict[str, Json]], object]

Lost = TypedDict("Lost", {"P@1": float, "P@3": float, "P@5": float})
"""Shares of P@k that an index loses."""

class IndexReport(TypedDict):
    """An index of the labels of a model; None where it has the form of lists."""

    labels: int
    lost: Union[Lost, None]
    graph: Union[dict[str, Json], None]
    fitted: Union[dict[str, Json], None]
    scan: Union[bool, None]

class Refreshed(TypedDict):
    """How edges were updated, and the shares of neighbours that a narrow search finds with the old ones and the new ones."""

    policy: Json
    before: float
    after: float

Query = Union[str, dict[int, float], tuple[Sequence[int], Sequence[float]], SparseRows, Array, Sequence[float]]
"""One query: a text, a row of features as ids with values, or a vector."""

class XcError(Exception): ...

class OptionError(XcError, ValueError):
    option: Union[str, None]
    def __init__(self, message: str) -> None: ...

class DataError(XcError, ValueError):
    row: Union[int, None]
    column: Union[int, None]
    def __init__(self, message: str, row: Union[int, None] = None, column: Union[int, None] = None) -> None: ...

class ModelError(XcError, OSError):
    def __init__(self, message: str) -> None: ...

class MemoryLimitError(XcError, MemoryError):
    def __init__(self, message: str) -> None: ...

class DefectError(XcError, RuntimeError): ...
class XcWarning(UserWarning): ...

class Ranked:
    indptr: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32]
    scores: npt.NDArray[np.float32]
    known_terms: Union[npt.NDArray[np.int64], None]
    n_labels: int
    def __init__(
        self,
        indptr: npt.NDArray[np.int64],
        ids: npt.NDArray[np.uint32],
        scores: npt.NDArray[np.float32],
        n_labels: int,
        names: Union[Sequence[str], Callable[[], Union[Sequence[str], None]], None] = None,
        known_terms: Union[npt.NDArray[np.int64], None] = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> list[tuple[Union[str, int], float]]: ...
    def __iter__(self) -> Iterator[list[tuple[Union[str, int], float]]]: ...
    @property
    def label_names(self) -> Union[Sequence[str], None]: ...
    def names(self) -> list[list[Union[str, int]]]: ...
    def padded(self, k: Union[int, None] = None, fill: int = -1) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]: ...
    def to_csr(self) -> csr_matrix: ...
    def to_frame(self) -> DataFrame: ...

Predictions = Union[
    Ranked,
    SparseRows,
    SparseMatrix,
    npt.NDArray[np.floating],
    tuple[npt.ArrayLike, npt.ArrayLike],
    tuple[Sequence[Sequence[str]], Sequence[Sequence[float]]],
]
"""Ranked labels of rows: of a model, a matrix of scores, or a pair of labels and of scores, best first."""

class Model:
    @property
    def kind(self) -> str: ...
    @property
    def takes(self) -> str: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def calibrated(self) -> bool: ...
    @property
    def has_index(self) -> bool: ...
    @property
    def n_bytes(self) -> int: ...
    @property
    def folder(self) -> str: ...
    @property
    def labels(self) -> Union[list[str], None]: ...
    def predict(
        self,
        X: RowsLike,
        top_k: int = 5,
        min_score: Union[float, None] = None,
        candidates: Union[LabelsLike, None] = None,
        exclude: Union[LabelsLike, None] = None,
        raw_scores: bool = False,
        threshold: Union[str, None] = None,
        threads: Union[int, None] = None,
        text_fields: Union[str, Sequence[str], None] = None,
        **search: Unpack[SearchOptions],
    ) -> Ranked: ...
    def predict_one(
        self,
        query: Query,
        top_k: int = 5,
        min_score: Union[float, None] = None,
        candidates: Union[Sequence[Union[int, str]], None] = None,
        exclude: Union[Sequence[Union[int, str]], None] = None,
        raw_scores: bool = False,
        threshold: Union[str, None] = None,
        **search: Unpack[SearchOptions],
    ) -> list[tuple[Union[str, int], float]]: ...
    def explain(
        self, x: Query, label: Union[int, str], n_features: int = 200, raw_scores: bool = False
    ) -> dict[str, Json]: ...
    def save(self, path: Path) -> None: ...
    def build_index(
        self,
        X: Union[RowsLike, None] = None,
        Y: Union[LabelsLike, None] = None,
        *,
        max_loss: Union[float, None] = None,
        output: Union[Path, None] = None,
        seed: int = 0,
        threads: Union[int, None] = None,
        text_fields: Union[str, Sequence[str], None] = None,
        **options: Unpack[IndexOptions],
    ) -> IndexReport: ...

class Embedder:
    def __init__(
        self,
        folder: Path,
        **options: Unpack[EmbedOptions],
    ) -> None: ...
    @property
    def width(self) -> int: ...
    def embed(
        self, texts: RowsLike, *, text_fields: Union[str, Sequence[str], None] = None, threads: Union[int, None] = None
    ) -> npt.NDArray[np.float32]: ...

class Index:
    report: Union[dict[str, Json], None]
    def __len__(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def metric(self) -> str: ...
    def search(
        self,
        q: RowsLike,
        top_k: int = 10,
        filter: Union[RowNumbers, None] = None,
        search_width: Union[float, None] = None,
        cells: Union[int, None] = None,
        exact: bool = False,
        threads: Union[int, None] = None,
    ) -> Ranked: ...
    def insert(
        self, vectors: RowsLike, threads: Union[int, None] = None, callback: Union[Callback, None] = None
    ) -> npt.NDArray[np.int64]: ...
    def delete(self, rows: Union[int, RowNumbers]) -> int: ...
    def refresh(
        self,
        vectors: RowsLike,
        fit_queries: Union[RowsLike, None] = None,
        policy: Union[str, None] = None,
        threads: Union[int, None] = None,
        callback: Union[Callback, None] = None,
    ) -> Refreshed: ...
    def save(self, folder: Path) -> None: ...

class SparseIndex(Index): ...

class Report(dict[str, Json]):
    """Figures by name, as a dict."""

    def plot(self, ax: Union[Axes, None] = None) -> Union[Axes, list[Axes]]: ...

class TrainingReport(Report):
    @overload
    def __getitem__(self, key: Literal["wall_s", "read_s", "train_s", "save_s"]) -> float: ...
    @overload
    def __getitem__(self, key: Literal["kind", "model", "what"]) -> str: ...
    @overload
    def __getitem__(self, key: Literal["metrics"]) -> Union[dict[str, float], None]: ...
    @overload
    def __getitem__(self, key: Literal["notes"]) -> list[str]: ...
    @overload
    def __getitem__(self, key: str) -> Json: ...
    @property
    def metrics(self) -> Union[dict[str, float], None]: ...

class Evaluation(Report):
    text: str
    comparison: Union[dict[str, Json], None]
    comparison_text: Union[str, None]
    labels: Union[list[dict[str, Json]], None]
    @overload
    def __getitem__(self, key: Literal["P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5"]) -> float: ...
    @overload
    def __getitem__(self, key: str) -> Json: ...
    def to_frame(self) -> DataFrame: ...

class Trained:
    model: Model
    report: TrainingReport

class Fitted:
    model: Model
    report: Report

class Run(TypedDict):
    """A run of a search."""

    trial: int
    rung: int
    judged_by: str
    options: dict[str, str]
    value: Union[float, None]
    failed: Union[str, None]
    difference: Union[float, None]
    standard_error: Union[float, None]
    wall_s: float
    instances: int

class Found(TypedDict):
    """What a search found; ``value`` and ``default`` are of the best options, and of those of the kind."""

    kind: str
    metric: str
    options: dict[str, str]
    value: float
    default: float
    judged_by: str
    trials: int
    wall_s: float
    verdict: str
    text: str
    runs: list[Run]
    notes: list[str]

class Tuned:
    found: Found
    model: Union[Model, None]
    report: Union[TrainingReport, None]
    @property
    def options(self) -> dict[str, str]: ...
    @property
    def runs(self) -> list[Run]: ...
    def to_frame(self) -> DataFrame: ...

def load(
    path: Path,
    in_memory: bool = False,
    use_index: bool = True,
    post_processor: Union[str, None] = None,
    repetitions: Union[Iterable[int], None] = None,
    verify: bool = False,
) -> Model: ...
def settings(kind: str) -> dict[str, dict[str, Json]]: ...
def blend(
    members: Iterable[Model],
    X: RowsLike,
    Y: LabelsLike,
    *,
    held_out: bool = False,
    refits: Union[Iterable[Model], None] = None,
    output: Union[Path, None] = None,
    unknown_rows: bool = False,
    seed: int = 0,
    threads: Union[int, None] = None,
    max_memory: Union[int, str, None] = None,
    progress: Union[bool, None] = None,
    callbacks: Union[Callback, Iterable[Callback]] = (),
    text_fields: Union[str, Sequence[str], None] = None,
    **options: Unpack[BlendOptions],
) -> Fitted: ...
def calibrate(
    model: Model,
    X: RowsLike,
    Y: LabelsLike,
    *,
    held_out: bool = False,
    output: Union[Path, None] = None,
    unknown_rows: bool = False,
    seed: int = 0,
    threads: Union[int, None] = None,
    max_memory: Union[int, str, None] = None,
    progress: Union[bool, None] = None,
    callbacks: Union[Callback, Iterable[Callback]] = (),
    text_fields: Union[str, Sequence[str], None] = None,
    **options: Unpack[CalibrateOptions],
) -> Fitted: ...
def convert(
    model: Union[Model, Path],
    output: Path,
    *,
    keep_labels: Union[Iterable[Union[int, str]], None] = None,
    label_names: Union[Iterable[str], None] = None,
    source_format: Union[str, None] = None,
    n_labels: Union[int, None] = None,
    **options: Unpack[ConvertOptions],
) -> Model: ...
def merge(
    parts: Iterable[Union[Model, Path]],
    output: Path,
    *,
    n_labels: Union[int, None] = None,
    label_names: Union[Iterable[str], None] = None,
) -> Model: ...
def inspect(path: Union[Model, Path], verify: bool = False) -> dict[str, Json]: ...
def evaluate(
    Y: LabelsLike,
    ranked: Predictions,
    k: Union[int, Iterable[int]] = (1, 3, 5),
    propensity_from: Union[LabelsLike, None] = None,
    compare: Union[Predictions, None] = None,
    *,
    weights: Union[Iterable[float], None] = None,
    per_label: bool = False,
    label_names: Union[Sequence[str], None] = None,
    seed: int = 0,
    **options: Unpack[EvaluateOptions],
) -> Evaluation: ...
def index(
    vectors: RowsLike,
    metric: str,
    folder: Union[Path, None] = None,
    *,
    fit_queries: Union[RowsLike, None] = None,
    seed: int = 0,
    threads: Union[int, None] = None,
    callback: Union[Callback, None] = None,
    **options: Unpack[IndexOptions],
) -> Index: ...
def load_index(folder: Path, in_memory: bool = False) -> Index: ...
