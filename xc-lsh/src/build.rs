//! A family by its parameters.

use crate::dwta::Dwta;
use crate::family::Family;
use crate::minhash::MinHash;
use crate::params::{FamilyParams, FamilyParamsError, Kind};
use crate::simhash::SimHash;
use crate::wta::Wta;

impl FamilyParams {
    /// Draws the functions.
    ///
    /// # Errors
    /// See [`FamilyParamsError`].
    pub fn build(&self) -> Result<Box<dyn Family>, FamilyParamsError> {
        Ok(match self.kind {
            Kind::SimHash { .. } => Box::new(SimHash::new(*self)?),
            Kind::Wta { .. } => Box::new(Wta::new(*self)?),
            Kind::Dwta { .. } => Box::new(Dwta::new(*self)?),
            Kind::MinHash { .. } => Box::new(MinHash::new(*self)?),
        })
    }
}
