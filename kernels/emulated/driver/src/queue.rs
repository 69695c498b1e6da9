//! Queues of streams, and what makes them go on.

use crate::codes::*;
use crate::operation::{Item, Operation};
use crate::state::{Answer, Driver, LEGACY, Stream};
use xc_emulated_ptx::{Fault, Kind, launch};

impl Driver {
    /// Puts an operation into the queue of a stream, or into the graph that is captured from it.
    pub(crate) fn ask(&mut self, handle: usize, operation: Operation) -> Answer {
        let clock = self.clock.clone();
        let stream = self.stream(handle)?;
        if let Some(capture) = &mut stream.capture {
            if capture.invalid {
                return Err(CAPTURE_INVALIDATED);
            }
            capture.operations.push(operation);
            return Ok(());
        }
        stream.n_asked += 1;
        let (own, number, blocking) = (stream.number, stream.n_asked, stream.blocking);
        let legacy = handle <= 2;
        let others = self.streams.iter().filter(|&(&h, s)| s.blocking && (h == LEGACY) != legacy && blocking);
        let after = others.map(|(_, s)| (s.number, s.n_asked)).collect();
        let asked = match operation {
            Operation::InPinned { from, len, .. } => self.host.ask_in(from, len, own, number),
            Operation::OutPinned { to, len, .. } => self.host.ask_out(to, len, own, number),
            _ => Ok(()),
        };
        if let Operation::Record { event } = operation {
            self.events.get_mut(&event).ok_or(INVALID_HANDLE)?.n_asked += 1;
        }
        self.stream(handle)?.queue.push_back(Item { number, clock, after, operation });
        asked.map_err(|fault| self.fail(&fault))
    }

    /// Lets streams go on until something holds, which then comes before what the host asks for.
    pub(crate) fn drain(&mut self, is_done: impl Fn(&Self) -> bool) -> Answer {
        while !is_done(self) {
            self.advance()?;
        }
        Ok(())
    }

    /// One operation of a stream that can go on, chosen by the seed.
    pub(crate) fn advance(&mut self) -> Answer {
        let able: Vec<usize> = self.streams.iter().filter(|(_, s)| self.can_go_on(s)).map(|(&h, _)| h).collect();
        if able.is_empty() {
            let fault = Fault::new(Kind::Convergence, "streams wait for events that nobody records");
            return Err(self.fail(&fault));
        }
        let which = able[self.random(able.len())];
        let Some(item) = self.stream(which)?.queue.pop_front() else { return Ok(()) };
        let name = item.operation.name();
        self.run(which, item).map_err(|fault| self.fail(&fault.at(name)))
    }

    fn random(&mut self, n: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) as usize) % n
    }

    fn can_go_on(&self, stream: &Stream) -> bool {
        let Some(item) = stream.queue.front() else { return false };
        let has_done = |&(number, n): &(u32, u32)| {
            self.streams.values().find(|s| s.number == number).is_none_or(|s| s.n_done >= n)
        };
        let is_recorded = match &item.operation {
            Operation::Await { event, times } => self.events.get(event).is_none_or(|e| e.done.len() >= *times),
            _ => true,
        };
        is_recorded && item.after.iter().all(has_done)
    }

    fn run(&mut self, handle: usize, item: Item) -> Result<(), Fault> {
        self.time += 1;
        let Item { number, clock: asked, after, operation } = item;
        let mut clock = asked;
        for (other, n) in after {
            clock.pass(other, n);
            if let Some(other) = self.streams.values().find(|s| s.number == other) {
                clock.join(&other.clock);
            }
        }
        if let Operation::Await { event, times } = &operation
            && let Some(at) = self.events.get(event).and_then(|e| e.done.get(times.wrapping_sub(1)))
        {
            clock.join(&at.0);
        }
        let Some(stream) = self.streams.get_mut(&handle) else { return Ok(()) };
        stream.clock.join(&clock);
        stream.clock.pass(stream.number, number);
        stream.n_done = number;
        let (clock, own, time) = (stream.clock.clone(), stream.number, self.time);
        if !matches!(operation, Operation::Record { .. } | Operation::Await { .. }) {
            self.memory.order.begin(own, number, clock.numbers());
        }
        match operation {
            Operation::Launch { module, kernel, launch: how, params } => {
                let kernel = &module.kernels[kernel];
                let counts = launch(&mut self.memory, kernel, &how, &params)?;
                self.counts += &counts.json(&kernel.name, how.grid, how.block);
                self.counts.push('\n');
            }
            Operation::In { to, bytes } => self.memory.write(to, &bytes)?,
            Operation::InPinned { to, from, len } => {
                let bytes = self.host.take_in(from, len, own, number)?;
                self.memory.write(to, &bytes)?;
            }
            Operation::OutPinned { from, len, .. } => {
                let bytes = self.memory.read(from, len)?;
                self.host.give_out(own, number, bytes);
            }
            Operation::Across { to, from, len } => {
                let bytes = self.memory.read(from, len)?;
                self.memory.write(to, &bytes)?;
            }
            Operation::Fill { at, pattern, times } => self.memory.fill(at, &pattern, times)?,
            Operation::Free { at } => {
                self.used -= self.memory.len_at(at).unwrap_or(0) as u64;
                self.memory.free(at)?;
            }
            Operation::Record { event } => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.done.push((clock, time));
                }
            }
            Operation::Await { .. } => {}
        }
        Ok(())
    }

    /// The host waits for a stream.
    pub(crate) fn wait_for_stream(&mut self, handle: usize) -> Answer {
        let number = self.stream(handle)?.number;
        let is_empty = |d: &Self| d.streams.values().filter(|s| s.number == number).all(|s| s.queue.is_empty());
        self.drain(is_empty)?;
        let clock = self.stream(handle)?.clock.clone();
        self.clock.join(&clock);
        self.waited()
    }

    /// The host waits for everything.
    pub(crate) fn wait_for_all(&mut self) -> Answer {
        self.drain(|d| d.streams.values().all(|s| s.queue.is_empty()))?;
        for stream in self.streams.values() {
            self.clock.join(&stream.clock);
        }
        self.waited()
    }

    /// The host waits for what an event was last recorded after.
    pub(crate) fn wait_for_event(&mut self, handle: usize) -> Answer {
        let times = self.event(handle)?.n_asked;
        self.drain(|d| d.events.get(&handle).is_none_or(|e| e.done.len() >= times))?;
        self.saw_event(handle)
    }

    /// The host knows that an event has been recorded.
    pub(crate) fn saw_event(&mut self, handle: usize) -> Answer {
        if let Some((clock, _)) = self.event(handle)?.done.last().cloned() {
            self.clock.join(&clock);
        }
        self.waited()
    }

    pub(crate) fn waited(&mut self) -> Answer {
        let clock = self.clock.clone();
        if self.streams.values().all(|s| s.queue.is_empty() && clock.of(s.number) >= s.n_done) {
            self.memory.order.settle();
            self.events.retain(|_, e| !e.destroyed);
        }
        self.host.waited(&clock).map_err(|fault| self.fail(&fault))
    }
}
