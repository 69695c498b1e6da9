//! Streams and events.

use super::{calls, put};
use crate::codes::*;
use crate::operation::Operation;
use crate::state::{Answer, Driver, Event};
use std::ffi::{c_int, c_uint};

/// Of `cuStreamCreate`: no waiting for the legacy stream. Of `cuEventCreate`: no time.
const NON_BLOCKING: c_uint = 1;
const DISABLE_TIMING: c_uint = 2;

fn create(d: &mut Driver, flags: c_uint) -> usize {
    let handle = d.handle();
    d.add_stream(handle, flags & NON_BLOCKING == 0);
    handle
}

/// Ready, if all that was asked for is done; else something is done for it.
fn poll(d: &mut Driver, is_done: bool) -> Answer {
    if is_done {
        return Ok(());
    }
    d.advance()?;
    Err(NOT_READY)
}

fn elapsed(d: &mut Driver, from: usize, to: usize) -> Answer<f32> {
    let mut at = |event: usize| {
        let event = d.event(event)?;
        if !event.timed || event.n_asked == 0 {
            return Err(INVALID_HANDLE);
        }
        let last = event.done.last().filter(|_| event.done.len() == event.n_asked);
        last.map(|&(_, time)| time as f32).ok_or(NOT_READY)
    };
    Ok(at(to)? - at(from)?)
}

calls! {
    Context fn cuStreamCreate(out: *mut usize, flags: c_uint) |d| { put(out, create(d, flags)) }

    Context fn cuStreamCreateWithPriority(out: *mut usize, flags: c_uint, _priority: c_int) |d| {
        put(out, create(d, flags))
    }

    Context fn cuStreamDestroy_v2(stream: usize) |d| {
        // What it has been asked for is still done; nothing waits for it.
        let s = d.stream(stream)?;
        let number = s.number;
        d.drain(|d| d.streams.values().filter(|s| s.number == number).all(|s| s.queue.is_empty()))?;
        if stream > 2 {
            d.streams.remove(&stream);
        }
        Ok(())
    }

    Context fn cuStreamSynchronize(stream: usize) |d| {
        if let Some(capture) = &mut d.stream(stream)?.capture {
            capture.invalid = true;
            return Err(CAPTURE_UNSUPPORTED);
        }
        d.wait_for_stream(stream)
    }

    Context fn cuStreamQuery(stream: usize) |d| {
        let s = d.stream(stream)?;
        let is_done = s.queue.is_empty();
        poll(d, is_done)?;
        d.wait_for_stream(stream)
    }

    Context fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) |d| {
        let times = d.event(event)?.n_asked;
        if let Some(capture) = &mut d.stream(stream)?.capture {
            capture.invalid = true;
            return Err(CAPTURE_ISOLATION);
        }
        if times == 0 { Ok(()) } else { d.ask(stream, Operation::Await { event, times }) }
    }

    Context fn cuEventCreate(out: *mut usize, flags: c_uint) |d| {
        let handle = d.handle();
        d.events.insert(handle, Event { timed: flags & DISABLE_TIMING == 0, ..Event::default() });
        put(out, handle)
    }

    Context fn cuEventDestroy_v2(event: usize) |d| {
        d.event(event)?.destroyed = true;
        Ok(())
    }

    Context fn cuEventRecord(event: usize, stream: usize) |d| {
        d.event(event)?;
        d.ask(stream, Operation::Record { event })
    }

    Context fn cuEventSynchronize(event: usize) |d| { d.wait_for_event(event) }

    Context fn cuEventQuery(event: usize) |d| {
        let e = d.event(event)?;
        let is_done = e.done.len() == e.n_asked;
        poll(d, is_done)?;
        d.saw_event(event)
    }

    Context fn cuEventElapsedTime(out: *mut f32, from: usize, to: usize) |d| { put(out, elapsed(d, from, to)?) }

    Context fn cuEventElapsedTime_v2(out: *mut f32, from: usize, to: usize) |d| { put(out, elapsed(d, from, to)?) }
}
