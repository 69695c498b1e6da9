import os
from typing import Any, Callable, Iterable, Iterator, Literal, Mapping, Sequence, Union

import numpy as np
import numpy.typing as npt

from ._options import plan as plan, train as train, tune as tune

__version__: str

RowsLike = Any
"""Instances: a sparse matrix of compressed rows, a 2-D array of floats, a list of str, or a DataFrame with text_fields."""

LabelsLike = Any
"""Labels: a sparse matrix, an array or DataFrame of 0 and 1, lists of ids or of names, or one of them a row."""

Path = Union[str, os.PathLike[str]]
Callback = Callable[[dict[str, Any]], object]

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
    def to_csr(self) -> Any: ...
    def to_frame(self) -> Any: ...

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
        **search: Any,
    ) -> Ranked: ...
    def predict_one(
        self,
        query: Any,
        top_k: int = 5,
        min_score: Union[float, None] = None,
        candidates: Union[Sequence[Union[int, str]], None] = None,
        exclude: Union[Sequence[Union[int, str]], None] = None,
        raw_scores: bool = False,
        threshold: Union[str, None] = None,
        **search: Any,
    ) -> list[tuple[Union[str, int], float]]: ...
    def explain(
        self, x: Any, label: Union[int, str], n_features: int = 200, raw_scores: bool = False
    ) -> dict[str, Any]: ...
    def save(self, path: Path) -> None: ...
    def build_index(
        self,
        X: Union[RowsLike, None] = None,
        Y: Union[LabelsLike, None] = None,
        *,
        degree: Union[int, None] = None,
        keep: Union[int, None] = None,
        passes: Union[int, None] = None,
        factor: Union[float, None] = None,
        cells: Union[int, None] = None,
        top_k: Union[int, None] = None,
        target_recall: Union[float, None] = None,
        min_recall: Union[float, None] = None,
        max_loss: Union[float, None] = None,
        output: Union[Path, None] = None,
        seed: int = 0,
        threads: Union[int, None] = None,
        text_fields: Union[str, Sequence[str], None] = None,
    ) -> dict[str, Any]: ...

class Embedder:
    def __init__(
        self,
        folder: Path,
        *,
        max_tokens: int = 64,
        prefix: Union[str, None] = None,
        precision: Literal["f32", "bf16"] = "f32",
        normalise: bool = True,
    ) -> None: ...
    @property
    def width(self) -> int: ...
    def embed(
        self, texts: RowsLike, *, text_fields: Union[str, Sequence[str], None] = None, threads: Union[int, None] = None
    ) -> npt.NDArray[np.float32]: ...

class Index:
    report: Union[dict[str, Any], None]
    def __len__(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def metric(self) -> str: ...
    def search(
        self,
        q: RowsLike,
        top_k: int = 10,
        filter: Any = None,
        search_width: Union[float, None] = None,
        cells: Union[int, None] = None,
        exact: bool = False,
        threads: Union[int, None] = None,
    ) -> Ranked: ...
    def insert(
        self, vectors: RowsLike, threads: Union[int, None] = None, callback: Union[Callback, None] = None
    ) -> npt.NDArray[np.int64]: ...
    def delete(self, rows: Any) -> int: ...
    def refresh(
        self,
        vectors: RowsLike,
        fit_queries: Union[RowsLike, None] = None,
        policy: Union[str, None] = None,
        threads: Union[int, None] = None,
        callback: Union[Callback, None] = None,
    ) -> dict[str, Any]: ...
    def save(self, folder: Path) -> None: ...

class SparseIndex(Index): ...

class Report(dict[str, Any]):
    def plot(self, ax: Any = None) -> Any: ...

class TrainingReport(Report):
    @property
    def metrics(self) -> Union[dict[str, float], None]: ...

class Evaluation(Report):
    text: str
    comparison: Union[dict[str, Any], None]
    comparison_text: Union[str, None]
    labels: Union[list[dict[str, Any]], None]
    def to_frame(self) -> Any: ...

class Trained:
    model: Model
    report: TrainingReport

class Fitted:
    model: Model
    report: Report

class Tuned:
    found: dict[str, Any]
    model: Union[Model, None]
    report: Union[TrainingReport, None]
    @property
    def options(self) -> dict[str, str]: ...
    @property
    def runs(self) -> list[dict[str, Any]]: ...
    def to_frame(self) -> Any: ...

def load(
    path: Path,
    in_memory: bool = False,
    use_index: bool = True,
    post_processor: Union[str, None] = None,
    repetitions: Union[Iterable[int], None] = None,
    verify: bool = False,
) -> Model: ...
def settings(kind: str) -> dict[str, dict[str, Any]]: ...
def blend(
    members: Iterable[Model],
    X: RowsLike,
    Y: LabelsLike,
    *,
    held_out: bool = False,
    refits: Union[Iterable[Model], None] = None,
    rule: Union[str, None] = None,
    folds: Union[int, None] = None,
    hidden: Union[int, None] = None,
    networks: Union[int, None] = None,
    output: Union[Path, None] = None,
    unknown_rows: bool = False,
    seed: int = 0,
    threads: Union[int, None] = None,
    max_memory: Union[int, str, None] = None,
    progress: Union[bool, None] = None,
    callbacks: Union[Callback, Iterable[Callback]] = (),
    text_fields: Union[str, Sequence[str], None] = None,
) -> Fitted: ...
def calibrate(
    model: Model,
    X: RowsLike,
    Y: LabelsLike,
    *,
    method: str = "isotonic",
    held_out: bool = False,
    top_k: Union[int, None] = None,
    least_true: Union[int, None] = None,
    folds: Union[int, None] = None,
    output: Union[Path, None] = None,
    unknown_rows: bool = False,
    seed: int = 0,
    threads: Union[int, None] = None,
    max_memory: Union[int, str, None] = None,
    progress: Union[bool, None] = None,
    callbacks: Union[Callback, Iterable[Callback]] = (),
    text_fields: Union[str, Sequence[str], None] = None,
) -> Fitted: ...
def convert(
    model: Union[Model, Path],
    output: Path,
    *,
    precision: Union[str, None] = None,
    prune_below: Union[float, None] = None,
    trees: Union[int, None] = None,
    keep_labels: Union[Iterable[Union[int, str]], None] = None,
    post_processor: Union[str, None] = None,
    wide: Union[bool, None] = None,
    label_names: Union[Iterable[str], None] = None,
    source_format: Union[str, None] = None,
    n_labels: Union[int, None] = None,
) -> Model: ...
def merge(
    parts: Iterable[Union[Model, Path]],
    output: Path,
    *,
    n_labels: Union[int, None] = None,
    label_names: Union[Iterable[str], None] = None,
) -> Model: ...
def inspect(path: Union[Model, Path], verify: bool = False) -> dict[str, Any]: ...
def evaluate(
    Y: LabelsLike,
    ranked: Any,
    k: Union[int, Iterable[int]] = (1, 3, 5),
    propensity_from: Union[LabelsLike, None] = None,
    compare: Any = None,
    intervals: bool = False,
    threshold: Union[float, str, None] = None,
    weights: Union[Iterable[float], None] = None,
    per_label: bool = False,
    label_names: Union[Sequence[str], None] = None,
    resamples: Union[int, None] = None,
    level: Union[float, None] = None,
    seed: int = 0,
    propensity_a: float = 0.55,
    propensity_b: float = 1.5,
) -> Evaluation: ...
def index(
    vectors: RowsLike,
    metric: str,
    folder: Union[Path, None] = None,
    *,
    fit_queries: Union[RowsLike, None] = None,
    degree: Union[int, None] = None,
    keep: Union[int, None] = None,
    passes: Union[int, None] = None,
    factor: Union[float, None] = None,
    cells: Union[int, None] = None,
    top_k: Union[int, None] = None,
    target_recall: Union[float, None] = None,
    min_recall: Union[float, None] = None,
    seed: int = 0,
    threads: Union[int, None] = None,
    callback: Union[Callback, None] = None,
) -> Index: ...
def load_index(folder: Path, in_memory: bool = False) -> Index: ...
