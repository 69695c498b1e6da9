//! Where texts come from.

use std::path::Path;
use xc_sparse::io::{ReadError, ReadOptions, TextInstance, TextRows, open_text};

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
        texts: &'a [String],
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
            Self::Memory { texts, .. } => {
                Box::new((0..).step_by(BLOCK).zip(texts.chunks(BLOCK)).map(|(first, texts)| {
                    let instance = |text: &String| TextInstance { text: text.clone(), ..TextInstance::default() };
                    let instances: Vec<_> = texts.iter().map(instance).collect();
                    let lines = (first..).take(instances.len()).collect();
                    Ok(TextRows { instances, lines })
                }))
            }
        })
    }
}
