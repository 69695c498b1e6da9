//! Settings and their page, networks with a wide term.

mod idle_settings;
mod rows;
mod wide;
