//! A flat graph over the vertices of an index: a row of edges each.

use xc_buffer::Buffer;

/// No vertex: what follows the last edge of a row.
pub(crate) const NONE: u32 = u32::MAX;

/// Edges of all vertices.
///
/// # Invariants
/// Each row holds vertices below their number, and [`NONE`] after the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edges<'a> {
    rows: &'a [u32],
    degree: usize,
}

impl<'a> Edges<'a> {
    /// Edges of a vertex, and [`NONE`] to the end of its row.
    #[inline(always)]
    pub(crate) fn row(&self, vertex: u32) -> &'a [u32] {
        &self.rows[vertex as usize * self.degree..][..self.degree]
    }

    /// Edges of a vertex alone.
    pub(crate) fn of(&self, vertex: u32) -> &'a [u32] {
        filled(self.row(vertex))
    }
}

/// Edges before the first [`NONE`].
pub(crate) fn filled(row: &[u32]) -> &[u32] {
    &row[..row.iter().position(|&vertex| vertex == NONE).unwrap_or(row.len())]
}

/// Rows of edges that can be changed.
#[derive(Clone, Debug)]
pub(crate) struct EdgeRows {
    rows: Buffer<u32>,
    degree: usize,
}

impl EdgeRows {
    /// Rows without edges.
    pub(crate) fn new(n: usize, degree: usize) -> Self {
        let mut rows = xc_buffer::HugePageVec::zeros(n * degree);
        rows.fill(NONE);
        Self { rows: rows.into(), degree }
    }

    /// Rows that were made before.
    pub(crate) fn of(rows: Buffer<u32>, degree: usize) -> Self {
        Self { rows, degree }
    }

    pub(crate) fn view(&self) -> Edges<'_> {
        Edges { rows: &self.rows, degree: self.degree }
    }

    pub(crate) fn degree(&self) -> usize {
        self.degree
    }

    pub(crate) fn values(&self) -> &[u32] {
        &self.rows
    }

    pub(crate) fn buffer(&self) -> &Buffer<u32> {
        &self.rows
    }

    /// Makes the edges of a vertex these.
    ///
    /// # Panics
    /// If there are more than the degree.
    pub(crate) fn set(&mut self, vertex: u32, edges: &[u32]) {
        let row = &mut self.rows.to_mut()[vertex as usize * self.degree..][..self.degree];
        row[..edges.len()].copy_from_slice(edges);
        row[edges.len()..].fill(NONE);
    }

    /// Makes the edges of vertices these: rows as long as the degree.
    pub(crate) fn set_all<'a>(&mut self, of: impl Iterator<Item = (u32, &'a [u32])>) {
        let (rows, degree) = (self.rows.to_mut(), self.degree);
        for (vertex, row) in of {
            rows[vertex as usize * degree..][..degree].copy_from_slice(row);
        }
    }

    /// Further rows without edges.
    pub(crate) fn grow(&mut self, n: usize) {
        let mut rows = self.rows.to_vec();
        rows.resize(n * self.degree, NONE);
        self.rows = rows.into();
    }
}
