//! Tokens of texts, and networks over them.

#[cfg(feature = "fit")]
mod frozen;
mod made;
#[cfg(feature = "fit")]
mod sentence;
mod steps;
mod tokenizer;
#[cfg(feature = "fit")]
mod trained;
#[cfg(feature = "fit")]
mod words;
