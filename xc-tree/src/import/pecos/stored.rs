//! The mapped form of a PECOS model: files of numbered blocks.
//!
//! ```text
//!   blocks, each at a multiple of 16 bytes        a vector is two blocks: u64 length, elements
//!   u64 n, then (u64 offset, u64 bytes) a block   the table
//!   93 'P' 'E' 'C' 'O' 'S' '<' 1, u64 offset of the table      the last 16 bytes
//! ```

use super::error::{PecosError, io_error};
use super::matrix::Columns;
use std::{fs, path::Path};
use xc_sparse::chunked::ChunkRows;

/// A file read whole, and a cursor over its blocks.
struct Blocks<'a> {
    path: &'a Path,
    bytes: Vec<u8>,
    table: Vec<(u64, u64)>,
    next: usize,
}

impl<'a> Blocks<'a> {
    fn open(path: &'a Path) -> Result<Self, PecosError> {
        let bytes = fs::read(path).map_err(io_error(path))?;
        let fail = |what: &str| PecosError::Blocks { path: path.to_owned(), what: what.to_owned() };
        let tail = bytes.len().checked_sub(16).ok_or_else(|| fail("shorter than its 16 last bytes"))?;
        if &bytes[tail..tail + 8] != b"\x93PECOS<\x01" {
            return Err(fail("does not end as a block file of version 1, little-endian"));
        }
        let table_at = word(&bytes, tail + 8).unwrap_or_default();
        let body = usize::try_from(table_at).ok().and_then(|at| bytes.get(at..tail));
        let body = body.filter(|body| body.len() >= 8).ok_or_else(|| fail("the table of blocks lies outside"))?;
        let n_blocks = (body.len() - 8) / 16;
        if word(body, 0) != Some(n_blocks as u64) || body.len() != 8 + 16 * n_blocks {
            return Err(fail("the table of blocks has another length than it says"));
        }
        let entry = |i: usize| Some((word(body, 8 + 16 * i)?, word(body, 16 + 16 * i)?));
        let table: Vec<_> = (0..n_blocks).filter_map(entry).collect();
        Ok(Self { path, table, next: 0, bytes })
    }

    fn fail(&self, what: String) -> PecosError {
        PecosError::Blocks { path: self.path.to_owned(), what: format!("block {}: {what}", self.next) }
    }

    /// The next block, which must hold `n` elements of `N` bytes.
    fn take<const N: usize>(&mut self, n: u64) -> Result<&[[u8; N]], PecosError> {
        let Some(&(offset, n_bytes)) = self.table.get(self.next) else {
            return Err(self.fail("is missing".to_owned()));
        };
        if n.checked_mul(N as u64) != Some(n_bytes) {
            return Err(self.fail(format!("{n_bytes} bytes, expected {n} elements of {N}")));
        }
        let end = offset.checked_add(n_bytes).and_then(|end| usize::try_from(end).ok());
        let found = end.filter(|&end| end <= self.bytes.len()).map(|end| offset as usize..end);
        let Some(range) = found else { return Err(self.fail("lies outside the file".to_owned())) };
        self.next += 1;
        Ok(self.bytes[range].as_chunks::<N>().0)
    }

    fn number(&mut self) -> Result<u32, PecosError> {
        Ok(u32::from_le_bytes(self.take::<4>(1)?[0]))
    }

    fn length(&mut self) -> Result<u64, PecosError> {
        Ok(u64::from_le_bytes(self.take::<8>(1)?[0]))
    }

    /// A length block, then that many elements.
    fn vector<const N: usize>(&mut self) -> Result<&[[u8; N]], PecosError> {
        let n = self.length()?;
        self.take::<N>(n)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads `C.mmap_store`. Rows count nodes in tree order.
pub(super) fn read_clusters(path: &Path) -> Result<Columns, PecosError> {
    let mut blocks = Blocks::open(path)?;
    let n_rows = blocks.number()? as usize;
    let n_columns = u64::from(blocks.number()?);
    let nnz = blocks.length()?;
    let indptr = blocks.take::<8>(n_columns + 1)?.iter().map(|&b| u64::from_le_bytes(b) as usize).collect();
    let rows = blocks.take::<4>(nnz)?.iter().map(|&b| u32::from_le_bytes(b)).collect();
    let values = blocks.take::<4>(nnz)?.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let mut clusters = Columns { n_rows, indptr, rows, values };
    clusters.check(path)?;
    Ok(clusters)
}

/// Reads `perm.mmap_store`: the label at each of `n` places of the tree order. The file holds the
/// place of each label first, then what is read here.
pub(super) fn read_permutation(path: &Path, n: usize) -> Result<Vec<u32>, PecosError> {
    let mut blocks = Blocks::open(path)?;
    let _places = blocks.vector::<4>()?;
    let labels: Vec<u32> = blocks.vector::<4>()?.iter().map(|&b| u32::from_le_bytes(b)).collect();
    if labels.len() != n {
        let (what, got) = ("length of the permutation", labels.len());
        return Err(PecosError::Size { path: path.to_owned(), what, got, expected: n });
    }
    if let Some(&label) = labels.iter().find(|&&label| label as usize >= n) {
        return Err(blocks.fail(format!("label {label}, there are only {n}")));
    }
    Ok(labels)
}

/// What the file says of one chunk.
struct ChunkHead {
    columns: std::ops::Range<u32>,
    n_rows: usize,
}

/// Reads `W.mmap_store`: one chunk a column of `clusters`; also gives the number of rows.
///
/// # Errors
/// Chunks that do not cover the children that `clusters` names; anything that [`ChunkRows::check`]
/// refuses.
pub(super) fn read_chunks(
    path: &Path,
    clusters: &Columns,
    bias: Option<f32>,
) -> Result<(Vec<ChunkRows>, usize), PecosError> {
    let mut blocks = Blocks::open(path)?;
    let n_chunks = blocks.number()?;
    let n_rows = blocks.number()? as usize;
    let n_columns = blocks.number()? as usize;
    let size = |what, got, expected| Err(PecosError::Size { path: path.to_owned(), what, got, expected });
    if n_columns != clusters.n_rows {
        return size("number of columns", n_columns, clusters.n_rows);
    }
    if n_chunks as usize != clusters.n_columns() {
        return size("number of chunks", n_chunks as usize, clusters.n_columns());
    }
    let field = |head: &[u8; 32], at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let heads: Vec<ChunkHead> = blocks
        .vector::<32>()?
        .iter()
        .map(|head| ChunkHead { columns: field(head, 0)..field(head, 4), n_rows: field(head, 8) as usize })
        .collect();
    if heads.len() != n_chunks as usize {
        return size("number of chunks", heads.len(), n_chunks as usize);
    }
    let features: Vec<u32> = blocks.vector::<4>()?.iter().map(|&b| u32::from_le_bytes(b)).collect();
    let row_ptr: Vec<u64> = blocks.vector::<8>()?.iter().map(|&b| u64::from_le_bytes(b)).collect();
    let entries = blocks.vector::<8>()?;
    let mut features_at = 0;
    let mut ptr_at = 0;
    let mut out = Vec::with_capacity(heads.len());
    for (c, head) in heads.into_iter().enumerate() {
        let fail = |what: &str| PecosError::Blocks { path: path.to_owned(), what: format!("chunk {c}: {what}") };
        let (children, _) = clusters.column(c);
        if !head.columns.clone().eq(children.iter().copied()) {
            return Err(fail("its columns are not the children of its cluster"));
        }
        let features = features.get(features_at..features_at + head.n_rows);
        let features = features.ok_or_else(|| fail("more rows than the file holds"))?;
        let ptr = row_ptr.get(ptr_at..ptr_at + head.n_rows + 1).ok_or_else(|| fail("row pointers missing"))?;
        let range = ptr[0]..ptr[head.n_rows];
        let in_file = usize::try_from(range.end).is_ok_and(|end| end <= entries.len());
        if !in_file || ptr.windows(2).any(|w| w[0] > w[1]) || range.end - range.start > u64::from(u32::MAX) {
            return Err(fail("row pointers fall or lie outside the entries"));
        }
        let entries = &entries[range.start as usize..range.end as usize];
        let mut chunk = ChunkRows {
            n_columns: children.len(),
            features: features.to_vec(),
            row_ptr: ptr.iter().map(|&at| (at - range.start) as u32).collect(),
            columns: entries.iter().map(|e| u32::from_le_bytes([e[0], e[1], e[2], e[3]])).collect(),
            values: entries.iter().map(|e| f32::from_le_bytes([e[4], e[5], e[6], e[7]])).collect(),
            bias: vec![0.0; children.len()],
        };
        chunk.check().map_err(|error| fail(&error.to_string()))?;
        if chunk.features.last().is_some_and(|&f| f as usize >= n_rows) {
            return Err(fail("a row beyond the matrix"));
        }
        if let Some(input) = bias {
            split_bias(&mut chunk, n_rows as u32 - 1, input);
        }
        features_at += head.n_rows;
        ptr_at += head.n_rows + 1;
        out.push(chunk);
    }
    Ok((out, n_rows))
}

/// Moves the row of the bias, which is the last if it is there, to `ChunkRows::bias`.
fn split_bias(chunk: &mut ChunkRows, bias_row: u32, input: f32) {
    if chunk.features.last() != Some(&bias_row) {
        return;
    }
    chunk.features.pop();
    chunk.row_ptr.pop();
    let start = chunk.row_ptr[chunk.features.len()] as usize;
    for (column, value) in chunk.columns.drain(start..).zip(chunk.values.drain(start..)) {
        chunk.bias[column as usize] = value * input;
    }
}
