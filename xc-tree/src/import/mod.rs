//! Models of other systems: PECOS ([`pecos`]), read and written, and [`omikuji`], read.
//!
//! ```no_run
//! use std::path::Path;
//! use xc_buffer::dtype::DType;
//! use xc_tree::import::pecos::{self, PecosModel};
//! use xc_tree::{ModelInfo, TreeModel};
//!
//! // The folder that PECOS's `XLinearModel.save` wrote.
//! let PecosModel { parts, post, beam, n_features, n_labels, .. } = pecos::import(Path::new("pecos-model"))?;
//! let info = ModelInfo { n_features, n_labels, post, normalise_rows: false, row_length: 1.0, beam };
//! TreeModel::from_parts(info, vec![parts], DType::F32)?.save(Path::new("my.model"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod omikuji;
pub mod pecos;
