//! Models on disk: a folder of named arrays with one `config.json`.
//!
//! The saved file is the mapped file: opening reads the configuration and the headers, and an array
//! is a slice of the mapping. `docs/formats/model.md` is the specification.
//!
//! ```text
//!   MODEL/config.json             format_version, kind, parameters, pipeline; file, dtype, shape, xxh3 of each array
//!   MODEL/model.safetensors       arrays handed over whole, each at a multiple of 64 bytes in the file
//!   MODEL/model-NAME.safetensors  an array whose length was unknown while it was written
//!   MODEL/labels.txt              one name a line, when labels have names
//!   MODEL/member-N/               a model inside, whole
//! ```
//!
//! ```
//! use xc_store::{Container, ContainerWriter, OpenMode};
//!
//! let folder = tempfile::tempdir()?;
//! let model = folder.path().join("model");
//! let mut writer = ContainerWriter::create(&model, "tree")?;
//! writer.set_parameter("beam", 10);
//! writer.add_slice("level0.values", &[0.5f32, -1.0, 2.0])?;
//! writer.finish()?;
//!
//! let container = Container::open(&model, OpenMode::Map)?;
//! let values = container.array::<f32>("level0.values")?;
//! assert_eq!(values[1], -1.0);
//! assert!(container.verify()?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use mapping
//! A mapped file must not change while it is open: if another program truncates it, this process ends
//! with SIGBUS. Saving never writes in place, so the writers of this crate are safe; open files that
//! other programs may rewrite with [`OpenMode::Read`].

#![deny(unsafe_code)] // mapping files and the system alone may have it

pub mod atomic;
mod checkpoint;
mod config;
mod container;
mod copy;
mod error;
mod header;
mod opened;
mod replace;
mod spill;
mod tensors;
mod verify;
mod view;
mod writer;

pub use checkpoint::{Checkpoint, CheckpointError, CheckpointFolder, CheckpointKey, KIND as CHECKPOINT_KIND, Layout};
pub use config::{ArrayEntry, FORMAT_VERSION, is_control, to_parameter};
pub use container::{Advice, Container, OpenMode};
pub use error::{OpenError, WriteError};
pub use replace::{PART_FOLDER, member_folder};
pub use spill::Spill;
pub use tensors::{NamedFloats, TensorFile, write_tensors};
pub use verify::{Damage, Mismatch};
pub use view::map_elements;
pub use writer::{ArrayRef, ArrayStream, ContainerWriter};

/// What git-lfs keeps in the place of a file that it has not fetched begins with.
pub const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// Every array starts at a multiple of this many bytes in its file.
pub const ALIGNMENT: usize = 64;

#[cfg(target_endian = "big")]
compile_error!("model files are little-endian and mapped as they are: a big-endian machine cannot read them");

#[cfg(test)]
mod tests;
