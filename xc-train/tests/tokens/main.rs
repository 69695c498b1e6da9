//! Tokens of texts, and networks over them.

mod made;
mod tokenizer;
#[cfg(feature = "fit")]
mod trained;
