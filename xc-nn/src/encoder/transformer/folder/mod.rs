//! Folders as HuggingFace's libraries and sentence-transformers write them: found, read, written.

mod error;
mod export;
mod files;
mod hub;
mod opening;
mod sentence;

pub use error::FolderError;
pub use hub::{find_folder, find_folder_by};
pub use opening::Folder;
pub use sentence::TextRules;
