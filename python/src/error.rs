//! Errors of the library as exceptions of `xc._errors`.

use pyo3::prelude::*;
use pyo3::types::PyType;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use xc_model::message::chain;
use xc_train::fit::{FitError, FitErrorKind};

/// An exception class of the package with its arguments.
fn raised(py: Python<'_>, class: &str, arguments: impl for<'p> pyo3::call::PyCallArgs<'p>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("xc._errors")?.getattr(class)?.cast_into::<PyType>()?;
        Ok(PyErr::from_value(class.call1(arguments)?))
    };
    made().unwrap_or_else(|error| error)
}

/// Rows or labels that cannot be: a message, and where it is.
pub(crate) fn data(py: Python<'_>, message: &str, row: Option<usize>, column: Option<usize>) -> PyErr {
    raised(py, "DataError", (message, row, column))
}

/// An option that cannot be.
pub(crate) fn option(py: Python<'_>, message: &str) -> PyErr {
    raised(py, "OptionError", (message,))
}

/// A folder that is no model, or cannot be written.
pub(crate) fn model(py: Python<'_>, error: &dyn Error) -> PyErr {
    raised(py, "ModelError", (chain(error),))
}

/// The same, of a message.
pub(crate) fn model_line(py: Python<'_>, line: &str) -> PyErr {
    raised(py, "ModelError", (line,))
}

/// Messages of the library about an option begin with its name.
pub(crate) fn of_line(py: Python<'_>, line: &str) -> PyErr {
    if line.starts_with("--") { option(py, line) } else { data(py, line, None, None) }
}

/// What ended a training run. One that was cancelled has a reason that the caller knows.
pub(crate) fn of_fit(py: Python<'_>, error: &FitError) -> PyErr {
    let line = error.to_string();
    match error.kind() {
        FitErrorKind::Input => of_line(py, &line),
        FitErrorKind::Memory => raised(py, "MemoryLimitError", (line,)),
        FitErrorKind::Cancelled => pyo3::exceptions::PyKeyboardInterrupt::new_err(line),
        _ => raised(py, "ModelError", (line,)),
    }
}

/// Does work whose panic is a defect of the library.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
    })
}

/// The exception of such a panic.
pub(crate) fn defect(py: Python<'_>, message: &str) -> PyErr {
    raised(py, "DefectError", (format!("a defect of xc, please report it: {message}"),))
}
