//! Hash functions and text features against their definitions, other programs and hostile input.

#[cfg(feature = "text")]
mod compat;
#[cfg(feature = "text")]
mod hostile;
#[cfg(feature = "text")]
mod properties;
#[cfg(feature = "text")]
mod sklearn;
mod universal;
