//! The index in checkpoints.

use super::Ann;
use super::index::LabelGraph;
use crate::label_rows::BiasCoordinate;
use crate::state::{self, Array, Arrays, Role, State, StateError, Visitor};
use serde_json::json;
use xc_ann::{Graph, GraphState};

const COUNTERS: &str = "sampler.ann.counters";
const NUMBERS: &str = "sampler.ann.numbers";
const CODES: &str = "sampler.ann.codes";
const SIDES: &str = "sampler.ann.sides";
const MEAN: &str = "sampler.ann.mean";
const EDGES: &str = "sampler.ann.edges";
const FIRST_ROWS: &str = "sampler.ann.first-rows";
const NEXT_ROWS: &str = "sampler.ann.next-rows";
const TEXTS: &str = "sampler.ann.texts";

impl Ann {
    /// Step and epoch of the refresh schedule, changes since the last refresh, mean and scale of the
    /// biases, number of vertices of the graph and of rows of its chains; without a graph there are
    /// no vertices.
    fn counters(&self) -> [u64; 7] {
        let bits = |value: f32| u64::from(value.to_bits());
        let of_index = self.index.as_ref().map_or([0; 4], |LabelGraph { graph, bias }| {
            let state = graph.state();
            [bits(bias.mean), bits(bias.scale), state.sides.len() as u64, state.next_rows.len() as u64]
        });
        let [mean, scale, n, n_chained] = of_index;
        [self.next, self.epoch.into(), self.n_changed, mean, scale, n, n_chained]
    }
}

impl State for Ann {
    fn settings(&self) -> serde_json::Value {
        json!({ "ann": self.params, "texts": self.texts.is_some(), "lists": self.lists, "seed": self.seed,
            "from_epoch": self.from_epoch })
    }

    /// Counters, vectors of the labels' texts if these are compared, and codes and edges of all
    /// labels. There are no codes and edges before the index is built, or if all labels are
    /// compared.
    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        let counters = self.counters();
        f(Array::new(COUNTERS, Role::Training, [counters.len(), 1], &counters))?;
        if let Some(texts) = &self.texts {
            f(Array::new(TEXTS, Role::Training, [self.n_labels, self.width], &texts.values))?;
        }
        let Some(LabelGraph { graph, .. }) = &self.index else { return Ok(()) };
        let (of, degree) = (graph.state(), graph.params().max_degree);
        let n = of.sides.len();
        f(Array::new(NUMBERS, Role::Training, [of.numbers.len(), 1], &of.numbers))?;
        f(Array::new(CODES, Role::Training, [n, GraphState::code_bytes(graph.dim())], &of.codes))?;
        f(Array::new(SIDES, Role::Training, [n, 2], bytemuck::cast_slice::<_, f32>(&of.sides[..])))?;
        f(Array::new(MEAN, Role::Training, [of.mean.len(), 1], &of.mean))?;
        f(Array::new(EDGES, Role::Training, [n, degree], &of.edges))?;
        f(Array::new(FIRST_ROWS, Role::Training, [n, 1], &of.first_rows))?;
        f(Array::new(NEXT_ROWS, Role::Training, [of.next_rows.len(), 1], &of.next_rows))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        // If only the arrays for predictions are loaded, everything stays as it is.
        let mut counters = self.counters();
        state::read(from, COUNTERS, Role::Training, [counters.len(), 1], &mut counters)?;
        let [next, epoch, n_changed, mean, scale, n, n_chained] = counters;
        (self.next, self.epoch, self.n_changed) = (next, epoch as u32, n_changed);
        if let Some(texts) = &mut self.texts {
            state::read(from, TEXTS, Role::Training, [self.n_labels, self.width], &mut texts.values)?;
        }
        if n == 0 {
            self.index = None;
            return Ok(());
        }
        let (n, n_chained, params) = (n as usize, n_chained as usize, self.build_params());
        let code_bytes = GraphState::code_bytes(self.width + 1);
        let (mut numbers, mut codes) = ([0; GraphState::N_NUMBERS], vec![0u8; n * code_bytes]);
        let (mut sides, mut edges) = (vec![0.0f32; 2 * n], vec![0u32; n * params.max_degree]);
        let (mut first_rows, mut next_rows) = (vec![0u32; n], vec![0u32; n_chained]);
        let mut mean_row = vec![0.0f32; self.width + 1];
        if let Some(LabelGraph { graph, .. }) = &self.index {
            let of = graph.state();
            numbers = of.numbers;
            codes.copy_from_slice(&of.codes);
            sides.copy_from_slice(bytemuck::cast_slice(&of.sides[..]));
            edges.copy_from_slice(&of.edges);
            mean_row.copy_from_slice(&of.mean);
            first_rows.copy_from_slice(&of.first_rows);
            next_rows.copy_from_slice(&of.next_rows);
        }
        state::read(from, NUMBERS, Role::Training, [numbers.len(), 1], &mut numbers)?;
        state::read(from, CODES, Role::Training, [n, code_bytes], &mut codes)?;
        state::read(from, SIDES, Role::Training, [n, 2], &mut sides)?;
        state::read(from, MEAN, Role::Training, [self.width + 1, 1], &mut mean_row)?;
        state::read(from, EDGES, Role::Training, [n, params.max_degree], &mut edges)?;
        state::read(from, FIRST_ROWS, Role::Training, [n, 1], &mut first_rows)?;
        state::read(from, NEXT_ROWS, Role::Training, [n_chained, 1], &mut next_rows)?;
        let state = GraphState {
            numbers,
            codes: codes.into(),
            sides: sides.as_chunks::<2>().0.to_vec().into(),
            mean: mean_row.into(),
            edges: edges.into(),
            first_rows: first_rows.into(),
            next_rows: next_rows.into(),
        };
        let graph = Graph::restore(&params, self.width + 1, state).map_err(|e| StateError::new(EDGES, e))?;
        if graph.len() != self.n_labels || graph.n_rows_needed() != self.n_labels {
            let what = format!("{} labels, expected {}", graph.len(), self.n_labels);
            return Err(StateError::new(FIRST_ROWS, what));
        }
        let float = |bits: u64| f32::from_bits(bits as u32);
        self.index = Some(LabelGraph { graph, bias: BiasCoordinate { mean: float(mean), scale: float(scale) } });
        Ok(())
    }
}
