//! A graph in a folder: its arrays are mapped as stored.

use crate::code::codes::stride;
use crate::code::ivf::Cells;
use crate::error::OpenGraphError;
use crate::graph::state::GraphState;
use crate::graph::whole::Graph;
use crate::params::{BuildParams, Fitted};
use std::path::Path;
use xc_buffer::Buffer;
use xc_store::{ArrayRef, Container, ContainerWriter, OpenMode, WriteError, to_parameter};

/// The kind in the configuration of an index folder.
pub const KIND: &str = "ann-index";

impl Graph {
    /// Adds the arrays and parameters of the graph to a container.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let (n, degree) = (self.codes.len(), self.edges.degree());
        writer.set_parameter("build", to_parameter(&self.params));
        writer.set_parameter("fitted", to_parameter(&self.fitted));
        writer.set_parameter("n_vertices", n);
        writer.set_parameter("coordinates", self.codes.width);
        writer.set_parameter("entry", self.entry);
        writer.set_parameter("n_attached", self.n_attached);
        writer.set_parameter("found_itself", self.found_itself);
        writer.set_parameter("is_behind", self.is_behind);
        writer.set_parameter("n_chained", self.items.next_rows().len());
        writer.add("codes", ArrayRef::new(&self.codes.bytes[..], &[n, self.codes.stride()]))?;
        let sides: &[f32] = bytemuck::cast_slice(&self.codes.sides[..]);
        writer.add("sides", ArrayRef::new(sides, &[n, 2]))?;
        writer.add("mean", ArrayRef::new(&self.codes.mean[..], &[self.codes.mean.len()]))?;
        writer.add("edges", ArrayRef::new(self.edges.values(), &[n, degree]))?;
        writer.add("first_rows", ArrayRef::new(self.items.first(), &[n]))?;
        writer.add("next_rows", ArrayRef::new(&self.items.next_rows()[..], &[self.items.next_rows().len()]))?;
        writer.set_parameter("n_cells", self.n_cells());
        self.cells.as_ref().map_or(Ok(()), |cells| cells.write(self.codes.width, writer))
    }

    /// Saves the graph in its own folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let folder = folder.as_ref();
        let mut writer = ContainerWriter::create(folder, KIND)?;
        self.write(&mut writer)?;
        writer.finish()
    }

    /// Opens what [`Graph::save`] wrote; arrays stay in the file until they are first changed.
    ///
    /// # Errors
    /// See [`OpenGraphError`].
    pub fn open(folder: impl AsRef<Path>, mode: OpenMode) -> Result<Self, OpenGraphError> {
        let folder = folder.as_ref();
        let container = Container::open(folder, mode)?;
        container.expect_kind(KIND)?;
        Self::read(&container)
    }

    /// The graph of a container.
    ///
    /// *Cost*: a pass over all arrays, after which no search panics, whatever they hold.
    ///
    /// # Errors
    /// See [`OpenGraphError`].
    pub fn read(container: &Container) -> Result<Self, OpenGraphError> {
        let bad = |what| OpenGraphError::Graph { path: container.folder().to_owned(), what };
        let params: BuildParams = container.parameter("build")?;
        let (n, width): (usize, usize) = (container.parameter("n_vertices")?, container.parameter("coordinates")?);
        params.check(width).map_err(|_| bad("settings that no graph is built with"))?;
        let fitted: Option<Fitted> = container.parameter("fitted")?;
        let (entry, n_chained): (u32, usize) = (container.parameter("entry")?, container.parameter("n_chained")?);
        // A graph that was built empty takes nothing from its rows.
        let n_mean = container.entry("mean").and_then(|entry| entry.n_elements()).filter(|&n| n == 0).unwrap_or(width);
        let sides: Buffer<f32> = container.array_shaped("sides", &[n, 2])?;
        let mut numbers = [0; GraphState::N_NUMBERS];
        numbers[0] = entry.into();
        numbers[3] = params.alpha.unwrap_or(1.0).to_bits().into();
        let state = GraphState {
            numbers,
            codes: container.array_shaped("codes", &[n, stride(width)])?,
            sides: sides.as_chunks::<2>().0.to_vec().into(),
            mean: container.array_shaped("mean", &[n_mean])?,
            edges: container.array_shaped("edges", &[n, params.max_degree])?,
            first_rows: container.array_shaped("first_rows", &[n])?,
            next_rows: container.array_shaped("next_rows", &[n_chained])?,
        };
        let mut graph = Self::restore(&params, width, state).map_err(|e| bad(e.what))?;
        if fitted.is_some_and(|fitted| !fitted.is_sound()) {
            return Err(bad("a fitted search width, count or recall that no fit finds"));
        }
        graph.fitted = fitted;
        graph.is_behind = container.parameter("is_behind")?;
        (graph.n_attached, graph.found_itself) =
            (container.parameter("n_attached")?, container.parameter("found_itself")?);
        graph.cells = match container.parameter("n_cells")? {
            0 => None,
            n_cells => Some(Cells::read(container, n_cells, &graph.codes, &graph.items)?),
        };
        if graph.cells.is_none() && fitted.is_some_and(|fitted| fitted.cells > 0) {
            return Err(bad("a search of cells was fitted, of which there are none"));
        }
        Ok(graph)
    }
}
