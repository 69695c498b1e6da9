//! Opening a model without checking its content. The only unsafe code of the crate.

use super::TreeModel;
use super::file::{OpenTreeError, Opener};
use xc_sparse::chunked::{ChunkedLevel, SlotMap};
use xc_store::Container;

/// [`TreeModel::from_container`] that checks only sizes and boundaries of the arrays. *Cost*: a few
/// pages.
///
/// # Errors
/// An array is missing or has another shape.
///
/// # Safety
/// The folder was written by this program and has not been damaged or changed since:
/// [`TreeModel::from_container`] would open it. Otherwise answers may be wrong, and a query may
/// read any memory.
#[allow(unsafe_code, reason = "a constructor without checks, for callers who vouch for the folder")]
pub unsafe fn open(container: &Container) -> Result<TreeModel, OpenTreeError> {
    let opener = Opener {
        // SAFETY: the caller vouches for the arrays.
        slot_map: |container, name, n_features| unsafe { SlotMap::open_trusted(container, name, n_features) },
        // SAFETY: as above.
        level: |container, prefix, map| unsafe { ChunkedLevel::open_trusted(container, prefix, map) },
        checks_labels: false,
    };
    TreeModel::open_with(container, &opener)
}
