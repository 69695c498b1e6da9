//! A `libcuda` for tests: the part of the driver's interface that our host code uses, over the interpreter of `xc-ptx`.
//!
//! What a program does through cudarc it does here too, without a card: `LD_LIBRARY_PATH=<folder of this library>`.
//! Operations of a stream wait in a queue; who waits lets all streams go on in an order that a seed shuffles, so that a
//! forgotten event shows. Copies from and to pinned memory read and write it when they run, not when they are asked
//! for. A fault of a kernel is written to stderr and stays: every later call answers with it, as a card does.
//!
//! Knobs are exported functions, `xc_emulated_*`.
#![allow(non_snake_case, unsafe_op_in_unsafe_fn, clippy::missing_safety_doc)]

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use xc_emulated_ptx::{How, Memory, Module, launch};

type Code = c_uint;
const OK: Code = 0;
const INVALID: Code = 1;
const OUT_OF_MEMORY: Code = 2;
const INVALID_PTX: Code = 218;
const NO_DEVICE: Code = 100;
const INVALID_DEVICE: Code = 101;
const NOT_FOUND: Code = 500;
const NOT_READY: Code = 600;
const ILLEGAL_ADDRESS: Code = 700;

#[derive(Clone)]
enum Step {
    Launch { module: Arc<Module>, kernel: usize, how: How, params: Vec<u8> },
    In { to: u64, from: Source, len: usize },
    Out { to: usize, from: u64, len: usize },
    Across { to: u64, from: u64, len: usize },
    Fill { at: u64, value: Vec<u8> },
    Free(u64),
    Record(usize),
    Await(usize, u64),
}
#[derive(Clone)]
enum Source {
    Copied(Vec<u8>),
    Pinned(usize),
}

#[derive(Default)]
struct Stream {
    steps: VecDeque<Step>,
    capturing: Option<Vec<Step>>,
}
#[derive(Default, Clone, Copy)]
struct Event {
    asked: u64,
    done: u64,
    at: u64,
}

#[derive(Default)]
struct Driver {
    memory: Memory,
    sizes: HashMap<u64, usize>,
    used: usize,
    modules: HashMap<usize, Arc<Module>>,
    functions: HashMap<usize, (Arc<Module>, usize)>,
    streams: HashMap<usize, Stream>,
    events: HashMap<usize, Event>,
    graphs: HashMap<usize, Vec<Step>>,
    pinned: HashMap<usize, usize>,
    next: usize,
    random: u64,
    clock: u64,
    sticky: Code,
    knobs: Knobs,
    lines: String,
    fault: String,
    refused: String,
}
static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(Mutex::default);
fn driver() -> MutexGuard<'static, Driver> {
    DRIVER.lock().unwrap_or_else(|e| e.into_inner())
}

#[derive(Clone, Copy)]
struct Knobs {
    seed: u64,
    turn: u32,
    major: u32,
    minor: u32,
    memory: usize,
    n_cards: u32,
    version: u32,
}
impl Default for Knobs {
    fn default() -> Self {
        Self { seed: 1, turn: 0, major: 8, minor: 0, memory: 16 << 30, n_cards: 1, version: 13000 }
    }
}

fn hand_over(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    if capacity > 0 {
        let n = text.len().min(capacity - 1);
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, n);
            *buffer.add(n) = 0;
        }
    }
    text.len() + 1
}

#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_seed(seed: u64) {
    let mut d = driver();
    d.knobs.seed = seed;
    d.random = seed;
}
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_turn(turn: u32) {
    driver().knobs.turn = turn;
}
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_set_device(major: u32, minor: u32, memory_bytes: u64, n_cards: u32, driver_version: u32) {
    let mut d = driver();
    (d.knobs.major, d.knobs.minor, d.knobs.memory, d.knobs.n_cards, d.knobs.version) =
        (major, minor, memory_bytes as usize, n_cards, driver_version);
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xc_emulated_counts(buffer: *mut c_char, capacity: usize) -> usize {
    hand_over(&driver().lines, buffer, capacity)
}
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_clear_counts() {
    driver().lines.clear();
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xc_emulated_fault(buffer: *mut c_char, capacity: usize) -> usize {
    let d = driver();
    if d.fault.is_empty() {
        if capacity > 0 {
            *buffer = 0;
        }
        0
    } else {
        hand_over(&d.fault, buffer, capacity)
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn xc_emulated_reset() {
    let mut d = driver();
    let knobs = d.knobs;
    let next = d.next;
    *d = Driver { knobs, next, random: knobs.seed, ..Driver::default() };
}

impl Driver {
    fn handle(&mut self) -> usize {
        self.next += 1;
        0x1000 + 16 * self.next
    }
    fn is_pinned(&self, at: usize, len: usize) -> bool {
        self.pinned.iter().any(|(&base, &n)| base <= at && at + len <= base + n)
    }
    fn push(&mut self, stream: usize, step: Step) -> Code {
        if self.sticky != OK {
            return self.sticky;
        }
        let stream = self.streams.entry(stream).or_default();
        match &mut stream.capturing {
            Some(list) => list.push(step),
            None => stream.steps.push_back(step),
        }
        OK
    }
    fn random(&mut self, n: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) as usize) % n.max(1)
    }
    /// Lets streams go on until `done` holds.
    fn drain(&mut self, done: impl Fn(&Self) -> bool) -> Code {
        loop {
            if self.sticky != OK {
                return self.sticky;
            }
            if done(self) {
                return OK;
            }
            let ready = |d: &Self, s: &Stream| match s.steps.front() {
                None => false,
                Some(Step::Await(event, n)) => d.events.get(event).is_none_or(|e| e.done >= *n),
                _ => true,
            };
            let mut able: Vec<usize> = self.streams.iter().filter(|(_, s)| ready(self, s)).map(|(&h, _)| h).collect();
            able.sort_unstable();
            if able.is_empty() {
                eprintln!("emulated driver: streams wait for events that nobody records");
                self.sticky = ILLEGAL_ADDRESS;
                continue;
            }
            let which = able[self.random(able.len())];
            if let Some(step) = self.streams.get_mut(&which).and_then(|s| s.steps.pop_front())
                && let Err(e) = self.go(step)
            {
                eprintln!("emulated driver: {e}");
                if self.fault.is_empty() {
                    self.fault = e.to_string();
                }
                self.sticky = ILLEGAL_ADDRESS;
            }
        }
    }
    fn go(&mut self, step: Step) -> Result<(), xc_emulated_ptx::Fault> {
        self.clock += 1;
        match step {
            Step::Launch { module, kernel, how, params } => {
                let kernel = &module.kernels[kernel];
                let counts = launch(&mut self.memory, kernel, how, &params)?;
                let ([gx, gy, gz], [bx, by, bz]) = (how.grid, how.block);
                self.lines += &format!(
                    "{{\"kernel\": \"{}\", \"grid\": [{gx}, {gy}, {gz}], \"block\": [{bx}, {by}, {bz}], \"thread_instructions\": {}, \"warp_instructions\": {}, \"loads\": {}, \"sectors\": {}, \"footprint\": {}, \"barriers\": {}}}\n",
                    kernel.name,
                    counts.instructions,
                    counts.issued,
                    counts.loads,
                    counts.sectors_read + counts.sectors_written,
                    32 * counts.footprint,
                    counts.barriers
                );
                Ok(())
            }
            Step::In { to, from: Source::Copied(bytes), .. } => self.memory.write(to, &bytes),
            // SAFETY: pinned memory that its owner keeps until the copy is done; that is what is being tested.
            Step::In { to, from: Source::Pinned(at), len } => {
                self.memory.write(to, unsafe { std::slice::from_raw_parts(at as *const u8, len) })
            }
            Step::Out { to, from, len } => {
                let bytes = self.memory.read(from, len)?;
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, len) };
                Ok(())
            }
            Step::Across { to, from, len } => {
                let bytes = self.memory.read(from, len)?.to_vec();
                self.memory.write(to, &bytes)
            }
            Step::Fill { at, value } => self.memory.write(at, &value),
            Step::Free(at) => {
                self.used -= self.sizes.remove(&at).unwrap_or(0);
                self.memory.free(at)
            }
            Step::Record(event) => {
                let at = self.clock;
                if let Some(e) = self.events.get_mut(&event) {
                    e.done += 1;
                    e.at = at;
                }
                Ok(())
            }
            Step::Await(..) => Ok(()),
        }
    }
    fn all_done(&self) -> bool {
        self.streams.values().all(|s| s.steps.is_empty())
    }
}

macro_rules! driver_calls { ($(fn $name:ident($($arg:ident: $ty:ty),*) $body:block)*) => { $(#[unsafe(no_mangle)] pub unsafe extern "C" fn $name($($arg: $ty),*) -> Code $body)* } }

driver_calls! {
    fn cuInit(_flags: c_uint) { if driver().knobs.n_cards == 0 { NO_DEVICE } else { OK } }
    fn cuDriverGetVersion(out: *mut c_int) { *out = driver().knobs.version as c_int; OK }
    fn cuDeviceGetCount(out: *mut c_int) { *out = driver().knobs.n_cards as c_int; OK }
    fn cuDeviceGet(out: *mut c_int, ordinal: c_int) { *out = ordinal; if (ordinal as u32) < driver().knobs.n_cards { OK } else { INVALID_DEVICE } }
    fn cuDeviceGetName(out: *mut c_char, len: c_int, _device: c_int) {
        let name = b"emulated\0";
        std::ptr::copy_nonoverlapping(name.as_ptr().cast(), out, name.len().min(len as usize)); OK
    }
    fn cuDeviceTotalMem_v2(out: *mut usize, _device: c_int) { *out = driver().knobs.memory; OK }
    fn cuDeviceGetAttribute(out: *mut c_int, which: c_uint, _device: c_int) {
        let d = driver(); let cc = (10 * d.knobs.major + d.knobs.minor) as c_int;
        *out = match which { 75 => cc / 10, 76 => cc % 10, 16 => 1, 10 => 32, 1 => 1024, 5 => i32::MAX, 6 | 7 => 65535, 8 => 49152, 97 => 227 * 1024, 39 => 2048, 115 => 0, _ => 0 }; OK
    }
    fn cuDevicePrimaryCtxRetain(out: *mut usize, _device: c_int) { *out = 8; OK }
    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) { OK }
    fn cuCtxSetCurrent(_context: usize) { OK }
    fn cuCtxGetCurrent(out: *mut usize) { *out = 8; OK }
    fn cuCtxSynchronize() { let mut d = driver(); d.drain(Driver::all_done) }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) { let d = driver(); let all = d.knobs.memory; *total = all; *free = all - d.used.min(all); OK }
    fn cuMemAlloc_v2(out: *mut u64, len: usize) {
        let mut d = driver();
        if d.sticky != OK { return d.sticky; }
        if d.used + len > d.knobs.memory { return OUT_OF_MEMORY; }
        d.used += len;
        let at = d.memory.alloc(len);
        d.sizes.insert(at, len);
        *out = at; OK
    }
    fn cuMemFree_v2(at: u64) { let mut d = driver(); let code = d.drain(Driver::all_done); if code != OK { return code; } let r = d.go(Step::Free(at)); if r.is_ok() { OK } else { INVALID } }
    fn cuMemAllocAsync(out: *mut u64, len: usize, _stream: usize) { cuMemAlloc_v2(out, len) }
    fn cuMemFreeAsync(at: u64, stream: usize) { driver().push(stream, Step::Free(at)) }
    fn cuMemHostAlloc(out: *mut *mut c_void, len: usize, _flags: c_uint) {
        let mut bytes = vec![0u8; len.max(1)].into_boxed_slice();
        *out = bytes.as_mut_ptr().cast();
        driver().pinned.insert(bytes.as_ptr() as usize, len);
        std::mem::forget(bytes); OK
    }
    fn cuMemFreeHost(at: *mut c_void) { driver().pinned.remove(&(at as usize)); OK }
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, len: usize) { let mut d = driver(); let code = d.drain(Driver::all_done); if code != OK { return code; } let bytes = std::slice::from_raw_parts(from.cast::<u8>(), len); if d.memory.write(to, bytes).is_ok() { OK } else { INVALID } }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, len: usize, stream: usize) {
        let mut d = driver();
        let idle = d.sticky == OK && d.streams.values().all(|s| s.steps.is_empty() && s.capturing.is_none());
        if idle && !d.is_pinned(from as usize, len) { return if d.memory.write(to, std::slice::from_raw_parts(from.cast::<u8>(), len)).is_ok() { OK } else { INVALID }; }
        let from = if d.is_pinned(from as usize, len) { Source::Pinned(from as usize) } else { Source::Copied(std::slice::from_raw_parts(from.cast::<u8>(), len).to_vec()) };
        d.push(stream, Step::In { to, from, len })
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, len: usize, stream: usize) {
        let mut d = driver();
        let code = d.push(stream, Step::Out { to: to as usize, from, len });
        if code != OK || d.is_pinned(to as usize, len) { return code; }
        d.drain(|d| d.streams.get(&stream).is_none_or(|s| s.steps.is_empty()))
    }
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, len: usize) { let mut d = driver(); d.push(0, Step::Out { to: to as usize, from, len }); d.drain(Driver::all_done) }
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, len: usize, stream: usize) { driver().push(stream, Step::Across { to, from, len }) }
    fn cuMemsetD8Async(at: u64, value: u8, n: usize, stream: usize) { driver().push(stream, Step::Fill { at, value: vec![value; n] }) }
    fn cuMemsetD32Async(at: u64, value: c_uint, n: usize, stream: usize) { driver().push(stream, Step::Fill { at, value: value.to_le_bytes().repeat(n) }) }
    fn cuModuleLoadData(out: *mut usize, image: *const c_void) {
        let text = CStr::from_ptr(image.cast()).to_string_lossy();
        match Module::parse(&text) {
            Ok(module) => { let mut d = driver(); let h = d.handle(); d.modules.insert(h, Arc::new(module)); *out = h; OK }
            Err(e) => { eprintln!("emulated driver: {e}"); driver().refused = e.to_string(); INVALID_PTX }
        }
    }
    fn cuModuleLoadDataEx(out: *mut usize, image: *const c_void, _n: c_uint, _options: usize, _values: usize) { cuModuleLoadData(out, image) }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(out: *mut c_int, _f: usize, _block: c_int, _shared: usize) { *out = 0; OK }
    fn cuModuleUnload(module: usize) { driver().modules.remove(&module); OK }
    fn cuModuleGetFunction(out: *mut usize, module: usize, name: *const c_char) {
        let mut d = driver();
        let name = CStr::from_ptr(name).to_string_lossy();
        let Some(module) = d.modules.get(&module).cloned() else { return INVALID };
        let Some(at) = module.kernels.iter().position(|k| k.name == name) else { return NOT_FOUND };
        let h = d.handle();
        d.functions.insert(h, (module, at));
        *out = h; OK
    }
    fn cuFuncGetAttribute(out: *mut c_int, which: c_uint, function: usize) {
        let d = driver();
        let Some((module, at)) = d.functions.get(&function) else { return INVALID };
        *out = match which { 0 => module.kernels[*at].max_threads.unwrap_or(1024) as c_int, 1 => module.kernels[*at].static_shared as c_int, _ => 0 }; OK
    }
    fn cuFuncSetAttribute(_function: usize, _which: c_uint, _value: c_int) { OK }
    fn cuFuncSetCacheConfig(_function: usize, _which: c_uint) { OK }
    fn cuLaunchKernel(function: usize, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, stream: usize, params: *mut *mut c_void, _extra: *mut *mut c_void) {
        let mut d = driver();
        let Some((module, at)) = d.functions.get(&function).cloned() else { return INVALID };
        if [gx, gy, gz, bx, by, bz].contains(&0) { return INVALID; }
        let mut bytes = Vec::new();
        for (i, &(at, len)) in module.kernels[at].params.iter().enumerate() {
            bytes.resize(at, 0);
            bytes.extend_from_slice(std::slice::from_raw_parts((*params.add(i)).cast::<u8>(), len));
        }
        let how = How { grid: [gx, gy, gz], block: [bx, by, bz], shared, seed: d.knobs.seed, quantum: d.knobs.turn, count: true };
        d.push(stream, Step::Launch { module, kernel: at, how, params: bytes })
    }
    fn cuStreamCreate(out: *mut usize, _flags: c_uint) { let mut d = driver(); let h = d.handle(); d.streams.insert(h, Stream::default()); *out = h; OK }
    fn cuStreamCreateWithPriority(out: *mut usize, flags: c_uint, _priority: c_int) { cuStreamCreate(out, flags) }
    fn cuStreamDestroy_v2(stream: usize) { let mut d = driver(); let code = d.drain(|d| d.streams.get(&stream).is_none_or(|s| s.steps.is_empty())); d.streams.remove(&stream); code }
    fn cuStreamSynchronize(stream: usize) { driver().drain(|d| d.streams.get(&stream).is_none_or(|s| s.steps.is_empty())) }
    fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) { let mut d = driver(); let n = d.events.get(&event).map_or(0, |e| e.asked); d.push(stream, Step::Await(event, n)) }
    fn cuEventCreate(out: *mut usize, _flags: c_uint) { let mut d = driver(); let h = d.handle(); d.events.insert(h, Event::default()); *out = h; OK }
    fn cuEventRecord(event: usize, stream: usize) { let mut d = driver(); if let Some(e) = d.events.get_mut(&event) { e.asked += 1; } d.push(stream, Step::Record(event)) }
    fn cuEventSynchronize(event: usize) { driver().drain(|d| d.events.get(&event).is_none_or(|e| e.done >= e.asked)) }
    fn cuEventQuery(event: usize) { let d = driver(); if d.sticky != OK { d.sticky } else if d.events.get(&event).is_none_or(|e| e.done >= e.asked) { OK } else { NOT_READY } }
    fn cuEventElapsedTime_v2(out: *mut f32, from: usize, to: usize) { let d = driver(); let at = |e| d.events.get(&e).map_or(0, |e| e.at); *out = at(to).saturating_sub(at(from)) as f32; OK }
    fn cuEventElapsedTime(out: *mut f32, from: usize, to: usize) { cuEventElapsedTime_v2(out, from, to) }
    fn cuEventDestroy_v2(_event: usize) { OK }
    fn cuStreamBeginCapture_v2(stream: usize, _mode: c_uint) { let mut d = driver(); d.streams.entry(stream).or_default().capturing = Some(Vec::new()); OK }
    fn cuStreamEndCapture(stream: usize, out: *mut usize) { let mut d = driver(); let Some(list) = d.streams.entry(stream).or_default().capturing.take() else { return INVALID }; let h = d.handle(); d.graphs.insert(h, list); *out = h; OK }
    fn cuStreamIsCapturing(stream: usize, out: *mut c_uint) { *out = u32::from(driver().streams.get(&stream).is_some_and(|s| s.capturing.is_some())); OK }
    fn cuGraphInstantiateWithFlags(out: *mut usize, graph: usize, _flags: u64) { let mut d = driver(); let Some(list) = d.graphs.get(&graph).cloned() else { return INVALID }; let h = d.handle(); d.graphs.insert(h, list); *out = h; OK }
    fn cuGraphLaunch(graph: usize, stream: usize) { let mut d = driver(); let Some(list) = d.graphs.get(&graph).cloned() else { return INVALID }; for step in list { let code = d.push(stream, step); if code != OK { return code; } } OK }
    fn cuGraphUpload(_graph: usize, _stream: usize) { OK }
    fn cuGraphExecDestroy(graph: usize) { driver().graphs.remove(&graph); OK }
    fn cuGraphDestroy(graph: usize) { driver().graphs.remove(&graph); OK }
    fn cuGetErrorName(_code: Code, out: *mut *const c_char) { *out = c"CUDA_ERROR_OF_THE_EMULATED_DRIVER".as_ptr(); OK }
    fn cuGetErrorString(code: Code, out: *mut *const c_char) { *out = if code == ILLEGAL_ADDRESS { c"a kernel failed, see stderr" } else { c"see the code" }.as_ptr(); OK }
}
