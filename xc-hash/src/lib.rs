//! Hash functions and text to weighted features.
