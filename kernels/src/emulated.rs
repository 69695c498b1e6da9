//! The driver that runs kernels on the CPU, and its knobs: for tests.

use crate::Device;
use cudarc::driver::{CudaSlice, DeviceRepr};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use std::ffi::{c_char, c_int};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The emulated driver, held by one test at a time; dropping it fails the test if a kernel did something wrong.
///
/// With `XC_REQUIRE_GPU=1` there is none, the machine's own driver is used, knobs do nothing, and counts are empty.
#[derive(Debug)]
#[must_use = "another test gets the driver when this is dropped"]
pub struct Emulated {
    library: Option<&'static Library>,
    _alone: MutexGuard<'static, ()>,
}

/// Version of the driver as it is without [`Emulated::set_device`].
const DRIVER_VERSION: u32 = 13000;

impl Emulated {
    /// Builds the driver if it is missing or old, loads it, and sets all knobs to what is usual.
    ///
    /// # Panics
    /// If it cannot be built or loaded.
    pub fn hold() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let library = LIBRARY.get_or_init(|| {
            let is_card = std::env::var("XC_REQUIRE_GPU").is_ok_and(|value| value == "1");
            (!is_card).then(|| load(&build()))
        });
        if library.is_none() {
            // While a device is open, others open at once.
            static OPEN: OnceLock<Option<Device>> = OnceLock::new();
            OPEN.get_or_init(|| Device::open(0).ok());
        }
        let held = Self { library: library.as_ref(), _alone: alone };
        held.reset();
        held.set_seed(1);
        held.set_turn(0);
        held.set_blocks(0..u64::MAX);
        held.set_device((8, 0), 1 << 30, 1, DRIVER_VERSION);
        held.set_processors(132);
        held.clear_counts();
        held
    }

    /// The same with a card whose memory is larger than any machine's, of which the machine needs what is touched, for
    /// arrays of 2^32 values; none where the card is a real one.
    pub fn hold_vast() -> Option<Self> {
        let held = Self::hold();
        held.set_device((8, 0), 1 << 44, 1, DRIVER_VERSION);
        held.is_emulated().then_some(held)
    }

    /// Room for `n` values on `device`, of which those of the parts are written, each from its place on.
    ///
    /// # Panics
    /// If there is not so much memory, or a part ends behind the last value.
    pub fn scattered<T: DeviceRepr>(&self, device: &Device, n: usize, parts: &[(usize, &[T])]) -> CudaSlice<T> {
        // SAFETY: who reads what is not written gets a fault of this driver.
        let room = unsafe { device.stream().alloc(n) };
        let mut room = room.unwrap_or_else(|e| panic!("{n} values: {e}"));
        for (at, values) in parts {
            let written = device.write(values, &mut room.slice_mut(*at..at + values.len()));
            written.unwrap_or_else(|e| panic!("{} values from {at} on: {e}", values.len()));
        }
        room
    }

    /// Whether kernels run on the CPU.
    pub fn is_emulated(&self) -> bool {
        self.library.is_some()
    }

    /// Another order in which threads, blocks and streams go on.
    pub fn set_seed(&self, seed: u64) {
        self.with::<unsafe extern "C" fn(u64)>("xc_emulated_set_seed", |set| {
            // SAFETY: the type is that of the driver.
            unsafe { set(seed) }
        });
    }

    /// How many instructions a thread runs before another one goes on; 0: until it waits.
    pub fn set_turn(&self, instructions: u32) {
        self.with::<unsafe extern "C" fn(u32)>("xc_emulated_set_turn", |set| {
            // SAFETY: the type is that of the driver.
            unsafe { set(instructions) }
        });
    }

    /// Of launches from now on only these blocks run, by number: x counts first, then y. Memory that nothing touches
    /// takes none: with [`Emulated::set_device`] a test has arrays of 2^32 values and sees their last ones.
    pub fn set_blocks(&self, blocks: Range<u64>) {
        self.with::<unsafe extern "C" fn(u64, u64)>("xc_emulated_set_blocks", |set| {
            // SAFETY: the type is that of the driver.
            unsafe { set(blocks.start, blocks.end) }
        });
    }

    /// Compute capability and memory of the card, number of cards, version of the driver (13000 for 13.0).
    pub fn set_device(&self, capability: (u32, u32), memory: u64, n_cards: u32, driver_version: u32) {
        self.with::<unsafe extern "C" fn(u32, u32, u64, u32, u32)>("xc_emulated_set_device", |set| {
            // SAFETY: the type is that of the driver.
            unsafe { set(capability.0, capability.1, memory, n_cards, driver_version) }
        });
    }

    /// Multiprocessors of the card: how many queries are few depends on them.
    pub fn set_processors(&self, n: u32) {
        self.with::<unsafe extern "C" fn(u32)>("xc_emulated_set_processors", |set| {
            // SAFETY: the type is that of the driver.
            unsafe { set(n) }
        });
    }

    /// What was launched since the counts were cleared, a JSON object a line and launch.
    pub fn counts(&self) -> String {
        self.text("xc_emulated_counts")
    }

    /// Forgets the launches so far.
    pub fn clear_counts(&self) {
        self.with::<unsafe extern "C" fn()>("xc_emulated_clear_counts", |clear| {
            // SAFETY: the type is that of the driver.
            unsafe { clear() }
        });
    }

    /// The first race, access out of bounds or value that nobody wrote. Nothing runs after it.
    pub fn fault(&self) -> Option<String> {
        Some(self.text("xc_emulated_fault")).filter(|text| !text.is_empty())
    }

    /// The fault, if there was one, which is then forgotten with everything on the device: open it again.
    pub fn take_fault(&self) -> Option<String> {
        let fault = self.fault();
        self.reset();
        fault
    }

    fn reset(&self) {
        self.with::<unsafe extern "C" fn()>("xc_emulated_reset", |reset| {
            // SAFETY: the type is that of the driver.
            unsafe { reset() }
        });
    }

    fn with<F>(&self, name: &str, then: impl FnOnce(Symbol<F>)) {
        if let Some(library) = self.library {
            // SAFETY: each caller names the type that the driver exports.
            let symbol = unsafe { library.get::<F>(name.as_bytes()) };
            then(symbol.unwrap_or_else(|e| panic!("the emulated driver has no {name}: {e}")));
        }
    }

    /// A text that the driver writes: it returns how many bytes it is long.
    fn text(&self, name: &str) -> String {
        let mut bytes: Vec<u8> = Vec::new();
        self.with::<unsafe extern "C" fn(*mut c_char, usize) -> usize>(name, |write| {
            // SAFETY: no room is given, so nothing is written.
            let needed = unsafe { write(std::ptr::null_mut(), 0) };
            bytes.resize(needed, 0);
            // SAFETY: the driver writes `needed` bytes at most.
            unsafe { write(bytes.as_mut_ptr().cast(), needed) };
        });
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        if let Some(fault) = self.fault() {
            if std::thread::panicking() {
                use std::io::Write;
                let _ = writeln!(std::io::stderr(), "the emulated driver: {fault}");
            } else {
                panic!("the emulated driver: {fault}");
            }
        }
    }
}

/// Builds the driver, which cargo does only where it is missing or old, one process at a time.
fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("emulated");
    let target = folder.join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(folder.join("driver/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .output()
        .unwrap_or_else(|e| panic!("cargo does not start: {e}"));
    assert!(output.status.success(), "the emulated driver: {}", String::from_utf8_lossy(&output.stderr));
    target.join("release/libcuda.so")
}

/// Loads the driver so that whoever asks for `libcuda.so` later gets it: that is its name inside.
fn load(path: &Path) -> Library {
    // SAFETY: our own library; its initialisers do nothing.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    let library = library.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // SAFETY: libraries are looked for by their usual names.
    let found = unsafe { cudarc::driver::sys::culib().get::<unsafe extern "C" fn() -> c_int>(b"xc_emulated_fault") };
    assert!(found.is_ok(), "another libcuda than {} is loaded", path.display());
    library
}
