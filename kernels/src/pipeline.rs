//! Batches whose copies and kernels overlap, and memory that is staged for them.

use crate::error::asked;
use crate::{Device, Error};
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{
    CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, HostSlice, PinnedHostSlice, ValidAsZeroBits,
    result,
};
use std::sync::Arc;

/// Three streams: copies to the card, kernels, and copies back. What one batch does on a stream waits for what it did on
/// the stream before, by events, and batches overlap.
#[derive(Debug)]
pub struct Pipeline {
    streams: [Arc<CudaStream>; 3],
}

impl Pipeline {
    /// Makes the streams.
    pub fn new(device: &Device) -> Result<Self, Error> {
        Ok(Self { streams: [device.new_stream()?, device.new_stream()?, device.new_stream()?] })
    }

    /// Starts a batch over `memory` and returns what says that it is done; until then nothing that it uses may be touched.
    ///
    /// The functions put their work on the stream that they are given.
    pub fn start<M>(
        &self,
        memory: &mut M,
        copy_in: impl FnOnce(&mut M, &Arc<CudaStream>) -> Result<(), Error>,
        compute: impl FnOnce(&mut M, &Arc<CudaStream>) -> Result<(), Error>,
        copy_out: impl FnOnce(&mut M, &Arc<CudaStream>) -> Result<(), Error>,
    ) -> Result<Done, Error> {
        let [into, kernels, back] = &self.streams;
        copy_in(memory, into)?;
        kernels.wait(&event(into)?).map_err(asked("ordering streams"))?;
        compute(memory, kernels)?;
        back.wait(&event(kernels)?).map_err(asked("ordering streams"))?;
        copy_out(memory, back)?;
        Ok(Done(event(back)?))
    }

    /// Waits for all that was started.
    pub fn wait(&self) -> Result<(), Error> {
        self.streams.iter().try_for_each(|stream| stream.synchronize().map_err(asked("waiting for the device")))
    }
}

fn event(stream: &CudaStream) -> Result<CudaEvent, Error> {
    stream.record_event(Some(CUevent_flags::CU_EVENT_DISABLE_TIMING)).map_err(asked("an event"))
}

/// The end of a batch.
#[derive(Debug)]
pub struct Done(CudaEvent);

impl Done {
    /// Waits for it.
    pub fn wait(&self) -> Result<(), Error> {
        self.0.synchronize().map_err(asked("waiting for the device"))
    }
}

/// Values in memory that the card reads and writes at full speed, and as many on the card. It grows as needed.
#[derive(Debug, Default)]
pub struct Staged<T> {
    room: Option<(PinnedHostSlice<T>, CudaSlice<T>)>,
}

impl<T: DeviceRepr + ValidAsZeroBits + Default + Copy> Staged<T> {
    /// No room yet.
    pub fn new() -> Self {
        Self { room: None }
    }

    /// Makes room for `n` values, at least one. The values are lost where it grows; nothing may be under way on them.
    pub fn reserve(&mut self, device: &Device, n: usize) -> Result<(), Error> {
        if self.len() >= n.max(1) {
            return Ok(());
        }
        self.room = None;
        let n = n.next_power_of_two();
        // SAFETY: it is written below before anything reads it.
        let host = unsafe { device.context().alloc_pinned_with_flags::<T>(n, 0) };
        let mut host = host.map_err(asked("pinned memory"))?;
        host.as_mut_slice().map_err(asked("pinned memory"))?.fill(T::default());
        let on_card = device.zeros(n)?;
        // Other streams use it.
        device.wait()?;
        self.room = Some((host, on_card));
        Ok(())
    }

    /// How many values there is room for.
    pub fn len(&self) -> usize {
        self.room.as_ref().map_or(0, |(host, _)| host.len())
    }

    /// Whether there is no room.
    pub fn is_empty(&self) -> bool {
        self.room.is_none()
    }

    /// The values here, once copies of them are done.
    ///
    /// # Panics
    /// If there is no room.
    pub fn host(&mut self) -> Result<&mut [T], Error> {
        self.both().0.as_mut_slice().map_err(asked("waiting for pinned memory"))
    }

    /// The values on the card.
    ///
    /// # Panics
    /// If there is no room.
    pub fn on_card(&mut self) -> &mut CudaSlice<T> {
        &mut self.both().1
    }

    /// Starts the copy of the first `n` values to the card.
    ///
    /// # Panics
    /// If there is less room.
    pub fn send(&mut self, n: usize, stream: &CudaStream) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let (host, on_card) = self.both();
        // SAFETY: the slice is used on this stream alone, and its event is recorded when `_copied` goes.
        let (host, _copied) = unsafe { host.stream_synced_slice(stream) };
        let (to, _written) = on_card.device_ptr_mut(stream);
        // SAFETY: both are at least `n` long; the event keeps the pinned memory from being written or freed before.
        unsafe { result::memcpy_htod_async(to, &host[..n], stream.cu_stream()) }.map_err(asked("a copy to the device"))
    }

    /// Starts the copy of the first `n` values from the card.
    ///
    /// # Panics
    /// If there is less room.
    pub fn fetch(&mut self, n: usize, stream: &CudaStream) -> Result<(), Error> {
        if n == 0 {
            return Ok(());
        }
        let (host, on_card) = self.both();
        // SAFETY: as in `send`.
        let (host, _copied) = unsafe { host.stream_synced_mut_slice(stream) };
        let (from, _read) = on_card.device_ptr(stream);
        // SAFETY: as in `send`.
        unsafe { result::memcpy_dtoh_async(&mut host[..n], from, stream.cu_stream()) }
            .map_err(asked("a copy from the device"))
    }

    fn both(&mut self) -> &mut (PinnedHostSlice<T>, CudaSlice<T>) {
        self.room.as_mut().unwrap_or_else(|| panic!("staged memory without room: `reserve` comes first"))
    }
}
