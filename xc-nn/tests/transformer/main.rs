//! Transformers as a user meets them: against HuggingFace's values, against differences, bit for bit, and folders that
//! are none.

mod bits;
mod folders;
mod gradients;
mod hub;
mod huggingface;
mod made;
mod sentence;
