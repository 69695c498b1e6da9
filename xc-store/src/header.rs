//! The header of a safetensors file: 8 bytes of length, then JSON, padded with blanks to a reserved
//! size.

use super::ALIGNMENT;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;
use xc_buffer::dtype::DType;

/// Arrays of this prefix fill the gaps: safetensors wants arrays without holes between them.
pub(super) const PAD_PREFIX: &str = "_pad.";
/// Bytes of header, length field included, of a file that several arrays share.
pub(super) const SHARED_RESERVE: usize = 16 * 1024;
/// The same for the file of a streamed array.
pub(super) const STREAM_RESERVE: usize = 512;
/// Bytes of a header, at most: parsed, it takes some thirty times its size in memory.
pub(super) const HEADER_LIMIT: u64 = 32_000_000;
/// Longest array name; with [`MAX_RANK`] it keeps one entry within [`STREAM_RESERVE`].
pub(super) const MAX_NAME_BYTES: usize = 128;
/// Most dimensions of an array.
pub(super) const MAX_RANK: usize = 8;

const _: () = assert!(SHARED_RESERVE.is_multiple_of(ALIGNMENT) && STREAM_RESERVE.is_multiple_of(ALIGNMENT));

/// A header under construction.
#[derive(Debug, Default)]
pub(super) struct HeaderText {
    entries: String,
    n_pads: usize,
}

impl HeaderText {
    /// Notes an array at `begin..begin + n_bytes` of the data part. Names need no escapes: the
    /// writer checked them.
    pub(super) fn push(&mut self, name: &str, dtype: DType, shape: &[usize], begin: u64, n_bytes: u64) {
        if !self.entries.is_empty() {
            self.entries.push(',');
        }
        let end = begin + n_bytes;
        let _infallible = write!(
            self.entries,
            "\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{},\"data_offsets\":[{begin},{end}]}}",
            format!("{shape:?}").replace(' ', "")
        );
    }

    /// Notes padding, as an array of its own.
    pub(super) fn push_pad(&mut self, begin: u64, n_bytes: u64) {
        let name = format!("{PAD_PREFIX}{}", self.n_pads);
        self.n_pads += 1;
        self.push(&name, DType::U8, &[n_bytes as usize], begin, n_bytes);
    }

    /// True when one more array of that name, with padding before it, surely fits in `reserve`
    /// bytes.
    pub(super) fn has_room(&self, name: &str, rank: usize, reserve: usize) -> bool {
        // The fixed words of two entries, and every number at its longest (20 digits and a comma).
        let entry = 2 * 64 + name.len() + 16 + 21 * (rank + 6);
        8 + 2 + self.entries.len() + entry <= reserve
    }

    /// The first `reserve` bytes of the file.
    ///
    /// # Panics
    /// If more was pushed than fits.
    pub(super) fn to_bytes(&self, reserve: usize) -> Vec<u8> {
        assert!(8 + 2 + self.entries.len() <= reserve, "header of {} bytes in {reserve}", self.entries.len());
        let mut bytes = ((reserve - 8) as u64).to_le_bytes().to_vec();
        bytes.push(b'{');
        bytes.extend_from_slice(self.entries.as_bytes());
        bytes.push(b'}');
        bytes.resize(reserve, b' ');
        bytes
    }
}

/// A header as it was read.
///
/// # Invariants
/// Arrays follow one another without holes from 0 on, and each has as many bytes as its shape and
/// type say.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RawHeader")]
pub(super) struct Header {
    arrays: BTreeMap<String, ArrayInfo>,
    data_len: u64,
}

/// Where an array lies in the data part, and what it is.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ArrayInfo {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) data_offsets: (usize, usize),
}

#[derive(Deserialize)]
struct RawHeader {
    #[serde(default, rename = "__metadata__")]
    _metadata: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    arrays: BTreeMap<String, ArrayInfo>,
}

/// Why a header describes no file.
#[derive(Debug, Error)]
enum HeaderError {
    #[error("array {name:?} begins at byte {begin} of the data, expected {expected}")]
    Hole { name: String, begin: usize, expected: usize },
    #[error("array {name:?} has {got} bytes, its shape and type make {expected}")]
    Bytes { name: String, got: usize, expected: u128 },
}

impl TryFrom<RawHeader> for Header {
    type Error = HeaderError;

    fn try_from(RawHeader { arrays, .. }: RawHeader) -> Result<Self, HeaderError> {
        let mut by_place: Vec<_> = arrays.iter().collect();
        by_place.sort_by_key(|(_, info)| info.data_offsets);
        let mut at = 0;
        for (name, info) in by_place {
            let (begin, end) = info.data_offsets;
            if begin != at || end < begin {
                return Err(HeaderError::Hole { name: name.clone(), begin, expected: at });
            }
            let n_bytes = info.dtype.n_bytes() as u128;
            let expected = info.shape.iter().fold(n_bytes, |n, &extent| n.saturating_mul(extent as u128));
            if (end - begin) as u128 != expected {
                return Err(HeaderError::Bytes { name: name.clone(), got: end - begin, expected });
            }
            at = end;
        }
        Ok(Self { data_len: at as u64, arrays })
    }
}

impl Header {
    /// The arrays by name.
    pub(super) fn arrays(&self) -> &BTreeMap<String, ArrayInfo> {
        &self.arrays
    }

    /// Bytes of the data part.
    pub(super) fn data_len(&self) -> u64 {
        self.data_len
    }
}

/// Bytes from `length` up to the next multiple of [`ALIGNMENT`].
pub(super) fn gap(length: u64) -> u64 {
    length.next_multiple_of(ALIGNMENT as u64) - length
}
