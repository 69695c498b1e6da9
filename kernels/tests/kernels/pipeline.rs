//! Batches whose copies and kernels overlap, and what happens where an event is forgotten.

use std::sync::Arc;
use xc_kernels::cudarc::driver::CudaStream;
use xc_kernels::{Device, Done, Emulated, Error, Kernel, Pipeline, Shape, Staged};

const N: usize = 200;
const K: usize = 3;

/// The memory of a batch: one row of keys, and the smallest of them.
struct Slot {
    keys: Staged<u64>,
    lengths: Staged<u32>,
    best: Staged<u64>,
    n_best: Staged<u32>,
}

impl Slot {
    fn new(device: &Device) -> Self {
        let mut slot = Self { keys: Staged::new(), lengths: Staged::new(), best: Staged::new(), n_best: Staged::new() };
        slot.keys.reserve(device, N).unwrap();
        slot.lengths.reserve(device, 1).unwrap();
        slot.best.reserve(device, K).unwrap();
        slot.n_best.reserve(device, 1).unwrap();
        slot
    }

    fn fill(&mut self, batch: u64) {
        self.keys.host().unwrap()[..N].iter_mut().zip(0..).for_each(|(key, i)| *key = key_of(batch, i));
        self.lengths.host().unwrap()[0] = N as u32;
    }

    fn copy_in(&mut self, stream: &CudaStream) -> Result<(), Error> {
        self.keys.send(N, stream)?;
        self.lengths.send(1, stream)
    }

    fn compute(&mut self, kernel: &Kernel, stream: &Arc<CudaStream>) -> Result<(), Error> {
        let (stride, k, room) = (N as u64, K as u32, K.next_power_of_two() as u32);
        let call = kernel
            .call(stream)
            .arg(&*self.keys.on_card())
            .arg(&*self.lengths.on_card())
            .arg(&stride)
            .arg(&k)
            .arg(&room);
        let call = call.arg(self.best.on_card()).arg(self.n_best.on_card());
        // SAFETY: as the kernel's text asks.
        unsafe { call.launch(Shape { grid: [1, 1, 1], threads: 256, shared: 8 * K.next_power_of_two() }) }
    }

    fn copy_out(&mut self, stream: &CudaStream) -> Result<(), Error> {
        self.best.fetch(K, stream)
    }
}

fn key_of(batch: u64, i: u64) -> u64 {
    (i * 7919 + batch * 31) % 100_003 + 1
}

fn expected(batch: u64) -> Vec<u64> {
    let mut keys: Vec<u64> = (0..N as u64).map(|i| key_of(batch, i)).collect();
    keys.sort_unstable();
    keys.truncate(K);
    keys
}

#[test]
fn batches_that_overlap_do_not_mix() {
    let emulated = Emulated::hold();
    for seed in 1..=10 {
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let kernel = device.kernel("xc_select_k").unwrap();
        let pipeline = Pipeline::new(&device).unwrap();
        let mut slots = [Slot::new(&device), Slot::new(&device)];
        let mut under_way: [Option<(u64, Done)>; 2] = [None, None];
        for batch in 0..8u64 {
            let (slot, before) = (&mut slots[batch as usize % 2], &mut under_way[batch as usize % 2]);
            if let Some((batch, done)) = before.take() {
                done.wait().unwrap();
                assert_eq!(slot.best.host().unwrap()[..K], expected(batch), "seed {seed}");
            }
            slot.fill(batch);
            let compute = |slot: &mut Slot, stream: &Arc<CudaStream>| slot.compute(&kernel, stream);
            let done = pipeline.start(slot, |s, stream| s.copy_in(stream), compute, |s, stream| s.copy_out(stream));
            *before = Some((batch, done.unwrap()));
        }
        pipeline.wait().unwrap();
        for (slot, before) in slots.iter_mut().zip(under_way) {
            assert_eq!(slot.best.host().unwrap()[..K], expected(before.unwrap().0));
        }
    }
}

/// What may be forgotten of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Forgotten {
    Nothing,
    EventBeforeKernel,
    EventBeforeCopy,
    CopyIn,
    CopyOut,
}

/// Eight batches on three streams; whether all answers are right.
fn batches_in_order(device: &Device, forgotten: Forgotten) -> Result<bool, Error> {
    let kernel = device.kernel("xc_select_k").unwrap();
    let streams = [(); 3].map(|()| device.new_stream().unwrap());
    let mut slot = Slot::new(device);
    let mut are_right = true;
    for batch in 0..8 {
        slot.fill(batch);
        if forgotten != Forgotten::CopyIn {
            slot.copy_in(&streams[0])?;
        }
        if forgotten != Forgotten::EventBeforeKernel {
            streams[1].join(&streams[0]).unwrap();
        }
        slot.compute(&kernel, &streams[1])?;
        if forgotten != Forgotten::EventBeforeCopy {
            streams[2].join(&streams[1]).unwrap();
        }
        if forgotten != Forgotten::CopyOut {
            slot.copy_out(&streams[2])?;
        }
        for stream in &streams {
            stream.synchronize().map_err(|source| Error::Driver { what: "the streams", source })?;
        }
        are_right &= slot.best.host()?[..K] == expected(batch);
    }
    Ok(are_right)
}

#[test]
fn what_is_forgotten_is_caught_at_every_seed() {
    let emulated = Emulated::hold();
    // A card may happen to be in time.
    if !emulated.is_emulated() {
        return;
    }
    for seed in 1..=10 {
        emulated.set_seed(seed);
        let batches = |forgotten| batches_in_order(&Device::open(0).unwrap(), forgotten);
        assert_eq!(batches(Forgotten::Nothing), Ok(true), "seed {seed}");
        for forgotten in [Forgotten::EventBeforeKernel, Forgotten::EventBeforeCopy] {
            let error = batches(forgotten);
            let fault = emulated.take_fault();
            assert!(error.is_err() && fault.is_some_and(|f| f.contains("a race")), "seed {seed}: {forgotten:?}");
        }
        for forgotten in [Forgotten::CopyIn, Forgotten::CopyOut] {
            assert_eq!(batches(forgotten), Ok(false), "seed {seed}: {forgotten:?}");
        }
    }
}
