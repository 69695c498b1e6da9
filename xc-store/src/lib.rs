#![doc = include_str!("../README.md")]
#![deny(unsafe_code)] // mapping files and the system alone may have it

pub mod atomic;
mod checkpoint;
mod config;
mod container;
mod copy;
mod error;
mod header;
mod in_memory;
mod memory;
mod opened;
mod replace;
mod spill;
mod stream;
mod tensors;
mod verify;
mod writer;

pub use checkpoint::{
    Checkpoint, CheckpointError, CheckpointFolder, CheckpointKey, CheckpointLayout, KIND as CHECKPOINT_KIND,
};
pub use config::{ArrayEntry, FORMAT_VERSION, to_parameter};
pub use container::{Container, OpenMode};
pub use error::{OpenError, WriteError};
pub use replace::{PART_FOLDER, member_folder};
pub use spill::MmapVec;
pub use stream::ArrayStream;
pub use tensors::{NamedFloats, TensorFile, write_tensors};
pub use verify::{Damage, Mismatch};
pub use writer::{ArrayRef, ContainerWriter};

/// What git-lfs keeps in the place of a file that it has not fetched begins with.
pub const LFS_POINTER: &[u8] = b"version https://git-lfs";

/// Every array starts at a multiple of this many bytes in its file.
pub const ALIGNMENT: usize = 64;

#[cfg(target_endian = "big")]
compile_error!("model files are little-endian and mapped as they are: a big-endian machine cannot read them");

#[cfg(test)]
mod tests;
