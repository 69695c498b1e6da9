//! Tables and their upkeep in checkpoints.

use super::{Built, Lsh};
use crate::state::{self, Array, Arrays, Role, State, StateError, Visitor};
use serde_json::json;
use std::borrow::Cow;
use std::sync::OnceLock;
use xc_lsh::tables::{Tables, TablesState};
use xc_lsh::upkeep::{Upkeep, UpkeepState};

const BUILT: &str = "sampler.lsh.built";
const KEYS: &str = "sampler.lsh.keys";
const ENDS: &str = "sampler.lsh.ends";
const CHANGES: &str = "sampler.lsh.changes";
const COUNTERS: &str = "sampler.lsh.counters";
const MOVED: &str = "sampler.lsh.moved";
const QUEUE: &str = "sampler.lsh.queue";

impl State for Lsh {
    fn settings(&self) -> serde_json::Value {
        json!({ "lsh": self.by, "params": self.params, "lists": self.lists, "weighting": self.weighting,
            "seed": self.family.params().seed })
    }

    /// Keys of all labels, the changes since each table was sorted, and the state of upkeep: they
    /// determine the tables bit for bit. Before the first step there are none.
    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        let built = self.built.get();
        f(Array::new(BUILT, Role::Training, [1, 1], &[u32::from(built.is_some())]))?;
        let Some(Built { tables, upkeep, .. }) = built else { return Ok(()) };
        let (of_tables, of_upkeep) = (tables.state(), upkeep.state());
        let [n, n_tables] = [tables.n_items(), tables.n_tables()];
        let [rebuilds, next_rebuild, next_sorted] = of_upkeep.counters;
        let counters = [of_tables.n_zero, rebuilds, next_rebuild, next_sorted, of_upkeep.queue.len() as u64];
        f(Array::new(KEYS, Role::Training, [n, n_tables], &of_tables.keys))?;
        f(Array::new(ENDS, Role::Training, [n_tables, 1], &of_tables.ends))?;
        f(Array::new(CHANGES, Role::Training, [of_tables.changes.len() / 3, 3], &of_tables.changes))?;
        f(Array::new(COUNTERS, Role::Training, [counters.len(), 1], &counters))?;
        f(Array::new(MOVED, Role::Training, [n, 1], &of_upkeep.moved))?;
        f(Array::new(QUEUE, Role::Training, [of_upkeep.queue.len(), 1], &of_upkeep.queue))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        // If only the arrays for predictions are loaded, everything stays as it is.
        let mut is_built = [u32::from(self.built.get().is_some())];
        state::read(from, BUILT, Role::Training, [1, 1], &mut is_built)?;
        if is_built == [0] {
            self.built = OnceLock::new();
            return Ok(());
        }
        let (n, params) = (self.n_labels, *self.family.params());
        let n_tables = params.n_tables as usize;
        let mut of_tables = TablesState {
            keys: Cow::Owned(vec![0; n * n_tables]),
            ends: vec![0; n_tables],
            changes: Vec::new(),
            n_zero: 0,
        };
        let mut of_upkeep = UpkeepState { moved: Cow::Owned(vec![0.0; n]), queue: Vec::new(), counters: [0; 3] };
        if let Some(built) = self.built.get() {
            (of_tables, of_upkeep) = (built.tables.state(), built.upkeep.state());
        }
        let mut counters = [0u64; 5];
        counters[0] = of_tables.n_zero;
        counters[1..4].copy_from_slice(&of_upkeep.counters);
        counters[4] = of_upkeep.queue.len() as u64;
        state::read(from, KEYS, Role::Training, [n, n_tables], of_tables.keys.to_mut())?;
        state::read(from, ENDS, Role::Training, [n_tables, 1], &mut of_tables.ends)?;
        let n_changes = of_tables.ends.last().map_or(0, |&end| end as usize);
        of_tables.changes.resize(3 * n_changes, 0);
        state::read(from, CHANGES, Role::Training, [n_changes, 3], &mut of_tables.changes)?;
        state::read(from, COUNTERS, Role::Training, [counters.len(), 1], &mut counters)?;
        state::read(from, MOVED, Role::Training, [n, 1], of_upkeep.moved.to_mut())?;
        of_upkeep.queue.resize(counters[4] as usize, 0);
        state::read(from, QUEUE, Role::Training, [of_upkeep.queue.len(), 1], &mut of_upkeep.queue)?;
        of_tables.n_zero = counters[0];
        of_upkeep.counters.copy_from_slice(&counters[1..4]);
        let tables = Tables::restore(n_tables, self.family.key_bits(), of_tables);
        let tables = tables.map_err(|e| StateError::new(KEYS, e))?;
        let upkeep = Upkeep::restore(self.params.schedule, of_upkeep).map_err(|e| StateError::new(QUEUE, e))?;
        self.built = OnceLock::from(Built { tables, upkeep, done: Default::default() });
        Ok(())
    }
}
