//! One tree's arrays on the device, and the structs by which kernels know them.

use crate::model::Tree;
use xc_buffer::dtype::DType;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Device, Error, Kernel, Plan, address, arguments};
use xc_sparse::chunked::LevelArrays;

arguments! {
    /// `XcTreeLevel` of `tree.cuh`: addresses of a level's arrays.
    pub(super) struct LevelArgument {
        records: u64,
        headers: u64,
        values: u64,
        directory: u64,
        bias: u64,
        part_ptr: u64,
    }

    /// `XcTree`.
    pub(super) struct TreeArgument {
        levels: u64,
        slot_map: u64,
        labels: u64,
        n_levels: u32,
        n_features: u32,
    }
}

/// A tree on the device.
pub(super) struct TreeMemory {
    pub(super) argument: TreeArgument,
    /// For queries whose features stand in shared memory, and for the others.
    pub(super) beam: Kernel,
    pub(super) long: Kernel,
    /// Children of the widest chunk.
    pub(super) widest: usize,
    /// Nodes of the largest level above the leaves.
    pub(super) most_nodes: usize,
    pub(super) n_leaves: usize,
    /// Leaves of each parent of leaves, descending.
    pub(super) families: Vec<u32>,
    _levels: Vec<LevelMemory>,
    _arguments: CudaSlice<LevelArgument>,
    _slot_map: CudaSlice<u32>,
    _labels: CudaSlice<u32>,
}

struct LevelMemory {
    records: CudaSlice<u64>,
    headers: CudaSlice<u32>,
    values: CudaSlice<u8>,
    directory: CudaSlice<u64>,
    bias: CudaSlice<f32>,
    part_ptr: CudaSlice<u32>,
}

/// The type that a tree's weights have on the device: that of its levels, or f32 where they differ.
fn stored(tree: &Tree) -> DType {
    let mut types = tree.levels.iter().map(|level| level.arrays().values.dtype());
    let first = types.next().unwrap_or(DType::F32);
    if types.all(|other| other == first) { first } else { DType::F32 }
}

impl TreeMemory {
    /// Adds what a tree needs to a plan.
    pub(super) fn plan(mut plan: Plan, tree: &Tree) -> Plan {
        let n_bytes = stored(tree).n_bytes();
        for LevelArrays { records, headers, values, directory, bias, part_ptr } in
            tree.levels.iter().map(|l| l.arrays())
        {
            plan = plan.of::<u8>("weights", values.len() * n_bytes).of::<f32>("weights", bias.len());
            plan = plan.of::<u64>("rows of weights", records.len() + directory.len());
            plan = plan.of::<u32>("rows of weights", headers.len() + part_ptr.len());
        }
        plan.of::<u32>("features", tree.slot_map().n_features()).of::<u32>("labels", tree.labels().len())
    }

    /// Copies a tree.
    pub(super) fn new(device: &Device, tree: &Tree) -> Result<Self, Error> {
        let stored = stored(tree);
        let name = match stored {
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            _ => "f32",
        };
        let kernel = |what: &str| device.kernel(&format!("xc_tree_{what}_{name}"));
        let (beam, long) = (kernel("beam")?, kernel("long")?);
        let levels = tree.levels.iter().map(|level| LevelMemory::new(device, level.arrays(), stored));
        let levels = levels.collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<LevelArgument> = levels.iter().map(LevelMemory::argument).collect();
        let arguments = device.upload(&addresses)?;
        let (slot_map, labels) = (device.upload(tree.slot_map().as_slice())?, device.upload(tree.labels())?);
        let argument = TreeArgument {
            levels: address(&arguments),
            slot_map: address(&slot_map),
            labels: address(&labels),
            n_levels: tree.depth() as u32,
            n_features: tree.slot_map().n_features() as u32,
        };
        let last = tree.depth() - 1;
        let views = || (0..=last).map(|level| tree.level(level));
        let widest = views().flat_map(|view| (0..view.n_chunks()).map(move |chunk| view.chunk(chunk).width())).max();
        let parents = tree.level(last);
        let mut families: Vec<u32> = (0..parents.n_parents()).map(|p| parents.children(p).len() as u32).collect();
        families.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Self {
            argument,
            beam,
            long,
            widest: widest.unwrap_or(0).max(1),
            most_nodes: views().take(last).map(|view| view.n_columns()).max().unwrap_or(0).max(1),
            n_leaves: tree.labels().len(),
            families,
            _levels: levels,
            _arguments: arguments,
            _slot_map: slot_map,
            _labels: labels,
        })
    }
}

impl LevelMemory {
    fn new(device: &Device, level: &LevelArrays, stored: DType) -> Result<Self, Error> {
        let values = if level.values.dtype() == stored {
            device.upload(level.values.bytes())?
        } else {
            let wide: Vec<u8> = (0..level.values.len()).flat_map(|i| level.values.get(i).to_le_bytes()).collect();
            device.upload(&wide)?
        };
        Ok(Self {
            records: device.upload(&level.records)?,
            headers: device.upload(&level.headers)?,
            values,
            directory: device.upload(&level.directory)?,
            bias: device.upload(&level.bias)?,
            part_ptr: device.upload(&level.part_ptr)?,
        })
    }

    fn argument(&self) -> LevelArgument {
        LevelArgument {
            records: address(&self.records),
            headers: address(&self.headers),
            values: address(&self.values),
            directory: address(&self.directory),
            bias: address(&self.bias),
            part_ptr: address(&self.part_ptr),
        }
    }
}
