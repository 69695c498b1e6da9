//! A transformer encoder of texts, trained end to end: BERT, DistilBERT, MPNet, RoBERTa and XLM-RoBERTa
//! (`[devlin2019bert]`), from a folder as HuggingFace's libraries write it, or begun at random.
//!
//! ```text
//!   tokens ──▶ embeddings ──▶ block ──▶ ... ──▶ block ──▶ mean of tokens, or the first ──▶ linear layers, if any ──▶ vector
//! ```
//!
//! Batches are ragged: the tokens of all instances are the rows of one matrix, without padding, and attention alone
//! looks at where an instance ends. A step goes down the layers once: each hands its gradient down, changes its
//! parameters and gives its buffers to the next, so that no gradient of a parameter ever exists whole. Embeddings of
//! words are changed by rows, where the batch has the word.
//!
//! *Determinism*: the same bits at any number of threads and on any instruction set; an instance's vector has the same
//! bits alone and in any batch.
//!
//! *Cost*: 2 operations a token for each weight of the blocks, three times that in a step; memory of a step is ten
//! widths a token and block in f32 where units are four widths, six with products of bf16. Answers take the memory of
//! 2,048 tokens on each thread, or of the longest instance.
//!
//! What a transformer is ([`TransformerParams`]) is known in every build; the network, and folders that it comes from, with
//! feature `transformer` alone ([`IS_BUILT`]).

#[cfg(feature = "transformer")]
mod folder;
#[cfg(feature = "transformer")]
mod network;
#[cfg(not(feature = "transformer"))]
#[path = "absent.rs"]
mod network;
mod params;
mod weights;

#[cfg(feature = "transformer")]
pub use folder::{Folder, FolderError, TextRules, find_folder, find_folder_by};
pub use network::{Transformer, TransformerScratch};
pub use params::{
    Architecture, DenseActivation, DenseParams, Distances, Pooling, TooManyTokens, TransformerLearning,
    TransformerParams, TransformerParamsError,
};

/// Whether this build has the network: without it [`Transformer::new`] fails.
pub const IS_BUILT: bool = cfg!(feature = "transformer");
