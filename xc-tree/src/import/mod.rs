//! Models of other systems: PECOS ([`pecos`]), read and written, and [`omikuji`], read.

pub mod omikuji;
pub mod pecos;
