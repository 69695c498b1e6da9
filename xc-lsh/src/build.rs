//! A family by its parameters.

use crate::dwta::Dwta;
use crate::family::Family;
use crate::minhash::MinHash;
use crate::params::{FamilyKind, FamilyParams, FamilyParamsError};
use crate::simhash::SimHash;
use crate::wta::Wta;

impl FamilyParams {
    /// Draws the functions.
    ///
    /// # Errors
    /// See [`FamilyParamsError`].
    pub fn build(&self) -> Result<Box<dyn Family>, FamilyParamsError> {
        Ok(match self.kind {
            FamilyKind::SimHash { .. } => Box::new(SimHash::new(*self)?),
            FamilyKind::Wta { .. } => Box::new(Wta::new(*self)?),
            FamilyKind::Dwta { .. } => Box::new(Dwta::new(*self)?),
            FamilyKind::MinHash { .. } => Box::new(MinHash::new(*self)?),
        })
    }
}
