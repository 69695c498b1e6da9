//! Where texts come from.

use std::path::Path;
use xc_data::{ReadError, ReadOptions, TextInstance, TextRows, open_text};
use xc_sparse::rows::Texts;

/// Texts of a block in memory.
const BLOCK: usize = 4096;

/// Where texts come from. They are gone through twice, rather than kept.
#[derive(Clone, Copy, Debug)]
pub enum TextSource<'a> {
    /// A file, with its labels where these are read.
    File {
        /// The file.
        path: &'a Path,
        /// What it holds.
        options: &'a ReadOptions,
    },
    /// Memory, without labels.
    Memory {
        /// What messages call them.
        name: &'a Path,
        /// The texts.
        texts: Texts<'a>,
    },
}

impl TextSource<'_> {
    /// What messages call it.
    pub fn name(&self) -> &Path {
        match self {
            Self::File { path, .. } => path,
            Self::Memory { name, .. } => name,
        }
    }

    pub(super) fn options(&self) -> ReadOptions {
        match self {
            Self::File { options, .. } => (*options).clone(),
            Self::Memory { .. } => ReadOptions::default(),
        }
    }

    /// The texts block by block, in order.
    pub(super) fn blocks(&self) -> Result<Box<dyn Iterator<Item = Result<TextRows, ReadError>> + '_>, ReadError> {
        Ok(match self {
            Self::File { path, options } => Box::new(open_text(path, options)?),
            Self::Memory { texts, .. } => Box::new((0..texts.len()).step_by(BLOCK).map(|first| {
                let instance = |at| TextInstance { text: texts.get(at).to_owned(), ..TextInstance::default() };
                let instances: Vec<_> = (first..texts.len().min(first + BLOCK)).map(instance).collect();
                let lines = (first as u64..).take(instances.len()).collect();
                Ok(TextRows { instances, lines })
            })),
        })
    }
}
