//! Files of data: every format read, written, cut into parts and refused.

mod csv;
mod errors;
mod parts;
mod ranked_lists;
mod read;
mod round_trip;
