//! Networks over tokens of texts.

mod frozen;
mod made;
mod sentence;
mod trained;
mod words;
