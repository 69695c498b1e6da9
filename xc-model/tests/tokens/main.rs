//! Tokens of texts.

mod file;
mod steps;
mod tokenizer;
