//! Rates of a card: what predictions are made from.

use crate::{Failed, write};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;
use xc_kernels::{Device, Error, Kernel, Shape, watch};

const TIMES: usize = 7;

/// The median milliseconds of the kernel that `call` runs once; the first call is not counted.
fn median_ms(mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Failed> {
    let mut all = Vec::new();
    for i in 0..=TIMES {
        watch::begin();
        call()?;
        let ms: f32 = watch::launches()?.iter().map(|launch| launch.1).sum();
        if i > 0 {
            all.push(f64::from(ms));
        }
    }
    all.sort_unstable_by(f64::total_cmp);
    Ok(all[TIMES / 2])
}

/// Blocks that fill the card.
fn shape(device: &Device) -> Shape {
    Shape { grid: [8 * device.limits().processors as usize, 1, 1], threads: 256, shared: 0 }
}

pub(crate) fn run(file: &str) -> Result<bool, Failed> {
    let emulated = crate::hold();
    let device = Device::open(0)?;
    // The emulated driver runs everything a thousand times smaller, for its results alone.
    let by = if emulated.is_emulated() { 1024 } else { 1 };
    let mut rates = BTreeMap::new();
    rates.insert("copy_tb_s".to_owned(), copy(&device, (1 << 26) / by)?);
    for (bytes, megabytes) in [(32, 8), (64, 8), (32, 40), (64, 40), (32, 1536), (64, 1536)] {
        let rate = gather(&device, bytes, (megabytes << 20) / by, (1 << 26) / by)?;
        rates.insert(format!("gather_{bytes}_bytes_{megabytes}_mb_tb_s"), rate);
    }
    rates.insert("fma_warps_per_ns_sm".to_owned(), fma(&device, (1 << 15) / by as u32)?);
    for (name, cells) in [("l2_ns", 1 << 18), ("memory_ns", 1 << 27)] {
        rates.insert(name.to_owned(), chain(&device, cells / by, 20_000 / by as u32)?);
    }
    let empty = device.kernel("xc_rate_empty")?;
    let began = Instant::now();
    let launches = 2000 / by.min(100);
    for _ in 0..launches {
        launch_empty(&empty, &device)?;
    }
    device.wait()?;
    rates.insert("launch_us".to_owned(), began.elapsed().as_secs_f64() * 1e6 / launches as f64);
    let alone = median_ms(|| launch_empty(&empty, &device))?;
    rates.insert("empty_kernel_by_events_us".to_owned(), alone * 1e3);
    let value = json!({"card": device.name(), "emulated": emulated.is_emulated(), "rates": rates});
    eprintln!("{value}");
    write(file, &value)?;
    Ok(true)
}

fn launch_empty(kernel: &Kernel, device: &Device) -> Result<(), Error> {
    // SAFETY: the kernel has no parameters.
    unsafe { kernel.call(device.stream()).launch(Shape { grid: [1, 1, 1], threads: 32, shared: 0 }) }
}

/// TB/s, read and written, of `n` times 16 bytes.
fn copy(device: &Device, n: usize) -> Result<f64, Failed> {
    let kernel = device.kernel("xc_rate_copy")?;
    let (from, mut to) = (device.zeros::<u64>(2 * n)?, device.zeros::<u64>(2 * n)?);
    let of = n as u64;
    // SAFETY: both have 16 n bytes.
    let ms =
        median_ms(|| unsafe { kernel.call(device.stream()).arg(&from).arg(&mut to).arg(&of).launch(shape(device)) })?;
    Ok(32.0 * n as f64 / ms / 1e9)
}

/// TB/s of rows at random places of a table.
fn gather(device: &Device, bytes: usize, table: usize, n_reads: usize) -> Result<f64, Failed> {
    let kernel = device.kernel("xc_rate_gather")?;
    let (on_device, mut out) = (device.zeros::<u8>(table)?, device.zeros::<u32>(1)?);
    let (n_rows, lanes, reads) = ((table / bytes) as u32, bytes as u32 / 16, n_reads as u32);
    // SAFETY: the table has so many rows.
    let ms = median_ms(|| unsafe {
        let call = kernel.call(device.stream()).arg(&on_device).arg(&n_rows).arg(&lanes).arg(&reads);
        call.arg(&mut out).launch(shape(device))
    })?;
    Ok((n_reads * bytes) as f64 / ms / 1e9)
}

/// Warps' fused multiply-adds a nanosecond and multiprocessor.
fn fma(device: &Device, n: u32) -> Result<f64, Failed> {
    let kernel = device.kernel("xc_rate_fma")?;
    let mut out = device.zeros::<f32>(1)?;
    let factor = 0.9f32;
    // SAFETY: at most one value is written.
    let ms =
        median_ms(|| unsafe { kernel.call(device.stream()).arg(&factor).arg(&n).arg(&mut out).launch(shape(device)) })?;
    // 8 blocks of 8 warps on each.
    Ok(8.0 * 8.0 * 8.0 * f64::from(n) / (ms * 1e6))
}

/// Nanoseconds of a load that waits for the one before, over `cells` words.
fn chain(device: &Device, cells: usize, n: u32) -> Result<f64, Failed> {
    let kernel = device.kernel("xc_rate_chain")?;
    // Steps are long, and go through all of the words.
    let step = (cells as f64 * 0.618) as usize / 32 * 32 + 33;
    let next: Vec<u32> = (0..cells).map(|at| ((at + step) % cells) as u32).collect();
    let (on_device, mut place) = (device.upload(&next)?, device.zeros::<u32>(1)?);
    // SAFETY: every word is the number of a word.
    let ms = median_ms(|| unsafe {
        let shape = Shape { grid: [1, 1, 1], threads: 1, shared: 0 };
        kernel.call(device.stream()).arg(&on_device).arg(&n).arg(&mut place).launch(shape)
    })?;
    Ok(ms * 1e6 / f64::from(n))
}
