//! The extension module `xc._native`: what Python cannot do itself of the package `xc`.
//!
//! ```text
//!   xc/*.py        any object of Python ──> arrays, strings            names, tables, pictures
//!   src/input.rs   arrays ──> rows, checked while they are copied      foreign.rs: memory that others may write
//!   src/labels.rs  lists, names, arrays ──> label rows
//!   src/work.rs    long work on a thread of its own; Ctrl-C, callbacks pools.rs: threads of predictions
//!   src/model.rs, vectorizer.rs, embed.rs, train.rs, fitting.rs, metrics.rs, index.rs, sparse_index.rs, change.rs: calls of
//!                  xc-train, xc-model, xc-metrics, xc-ann
//! ```
//!
//! Nothing about training or options is decided here.

#![deny(unsafe_code)]

mod change;
mod embed;
mod error;
mod fitting;
mod foreign;
mod index;
mod input;
mod json;
mod labels;
mod metrics;
mod model;
mod pools;
mod ranked;
mod sparse_index;
mod train;
mod vectorizer;
mod work;

use pyo3::prelude::*;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<model::Model>()?;
    m.add_class::<input::Input>()?;
    m.add_class::<labels::Labels>()?;
    m.add_class::<index::Index>()?;
    m.add_class::<sparse_index::SparseIndex>()?;
    m.add_class::<vectorizer::Vectorizer>()?;
    m.add_class::<embed::Embedder>()?;
    for function in [
        wrap_pyfunction!(train::train, m)?,
        wrap_pyfunction!(train::tune, m)?,
        wrap_pyfunction!(train::explain, m)?,
        wrap_pyfunction!(train::settings, m)?,
        wrap_pyfunction!(train::kinds, m)?,
        wrap_pyfunction!(fitting::blend, m)?,
        wrap_pyfunction!(fitting::calibrate, m)?,
        wrap_pyfunction!(index::build_index, m)?,
        wrap_pyfunction!(metrics::evaluate, m)?,
        wrap_pyfunction!(metrics::picture, m)?,
        wrap_pyfunction!(change::convert, m)?,
        wrap_pyfunction!(change::import_model, m)?,
        wrap_pyfunction!(change::merge, m)?,
        wrap_pyfunction!(change::inspect, m)?,
    ] {
        m.add_function(function)?;
    }
    Ok(())
}
