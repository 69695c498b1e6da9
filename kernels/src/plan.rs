//! What a model and its batches need of a card's memory, part by part.

use crate::{Device, Error};

/// Bytes by part, added up before the first of them is allocated.
///
/// ```
/// # use xc_kernels::Plan;
/// let plan = Plan::new().of::<f32>("weights", 1000).of::<u64>("answers", 20);
/// assert_eq!(plan.bytes(), 4160);
/// assert!(plan.fits(4160).is_ok());
/// let error = plan.fits(4159).unwrap_err();
/// assert_eq!(error.to_string(), "the device has 4159 bytes free, 4160 expected, of these 4000 for weights");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Plan {
    parts: Vec<(&'static str, u64)>,
}

impl Plan {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `n` values of a part.
    #[must_use]
    pub fn of<T>(mut self, part: &'static str, n: usize) -> Self {
        let bytes = (n as u64).saturating_mul(size_of::<T>() as u64);
        match self.parts.iter_mut().find(|(name, _)| *name == part) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => self.parts.push((part, bytes)),
        }
        self
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// The parts with their bytes.
    pub fn parts(&self) -> &[(&'static str, u64)] {
        &self.parts
    }

    /// Whether all parts fit into `free` bytes; the error names the largest.
    pub fn fits(&self, free: u64) -> Result<(), Error> {
        let needed = self.bytes();
        let largest = self.parts.iter().max_by_key(|(_, bytes)| bytes);
        match largest {
            Some(&(part, largest)) if needed > free => Err(Error::Memory { needed, free, part, largest }),
            _ => Ok(()),
        }
    }

    /// Whether all parts fit into what is free on `device` now.
    pub fn fits_on(&self, device: &Device) -> Result<(), Error> {
        self.fits(device.free_memory()?)
    }
}
