//! Rows: a kernel's work at one shape, through the code that calls it.
//!
//! ```text
//!   rows count FILE        counts of each row at two small sizes, on the driver that runs kernels on the CPU
//!   rows time FILE [ROW]   on a card: bytes against the CPU, times by events       SMALL=1: at the small sizes
//!                        ROW: the beginning of a row's name
//!   rows load FILE         the card, its driver, and the load of every text
//!   rows calibrate FILE    rates of the card
//! ```
//! Exit code 1: a byte differs, or a text does not load.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

mod calibrate;
mod inputs;
mod rows;

use rows::{ROWS, Row};
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use xc_kernels::texts::TEXTS;
use xc_kernels::{Device, Emulated, watch};

/// Calls before those that are timed, and calls that are.
const WARM_UPS: usize = 3;
const TIMES: usize = 20;
/// Multiprocessors of the cards whose times are predicted.
const PROCESSORS: usize = 132;
/// A row's calls end after so many seconds, however many were timed.
const MOST_SECONDS: f64 = 12.0;

type Failed = Box<dyn Error>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", file, ref only @ ..] => count(file, only),
        ["time", file, ref only @ ..] => time(file, only),
        ["load", file] => load(file),
        ["calibrate", file] => calibrate::run(file),
        _ => Err("expected: rows count|time|load|calibrate FILE [ROW...]".into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("rows: {error}");
            ExitCode::from(2)
        }
    }
}

/// The emulated driver with a card that all rows fit on, or the machine's.
fn hold() -> Emulated {
    let emulated = Emulated::hold();
    emulated.set_device((9, 0), 64 << 30, 1, 13000);
    emulated
}

fn chosen<'a>(only: &'a [&str]) -> impl Iterator<Item = &'static Row> + 'a {
    ROWS.iter().filter(move |row| only.is_empty() || only.iter().any(|name| row.name.starts_with(name)))
}

/// Writes what there is so far: a run that is cut short leaves its first rows.
fn write(file: &str, value: &Value) -> Result<(), Failed> {
    Ok(std::fs::write(file, serde_json::to_string_pretty(value)? + "\n")?)
}

fn count(file: &str, only: &[&str]) -> Result<bool, Failed> {
    let emulated = hold();
    let (mut all, mut is_equal) = (Vec::new(), true);
    for row in chosen(only) {
        let began = Instant::now();
        let mut counted = Vec::new();
        for size in row.counted {
            let share = if row.by_processor { PROCESSORS * size / row.timed } else { PROCESSORS };
            emulated.set_processors(share.max(1) as u32);
            let device = Arc::new(Device::open(0)?);
            let mut case = (row.case)(&device, size)?;
            emulated.clear_counts();
            let got = (case.call)()?();
            is_equal &= got == (case.expected)();
            let launches = emulated.counts().lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
            counted.push(json!({"size": size, "launches": launches}));
        }
        eprintln!("{}: {:.1} s, equal {is_equal}", row.name, began.elapsed().as_secs_f64());
        all.push(json!({
            "row": row.name, "size": row.timed, "queries": (row.queries)(row.timed), "flops": (row.flops)(row.timed),
            "most_bytes": (row.most_bytes)(row.timed), "counted": counted,
        }));
        write(file, &json!(all))?;
    }
    Ok(is_equal)
}

fn time(file: &str, only: &[&str]) -> Result<bool, Failed> {
    let emulated = hold();
    let small = std::env::var("SMALL").is_ok();
    let device = Arc::new(Device::open(0)?);
    let (mut all, mut is_equal) = (Vec::new(), true);
    for row in chosen(only) {
        let size = if small { row.counted[0] } else { row.timed };
        let timed = timed(row, &device, size, if small { 2 } else { TIMES });
        let mut value = match timed {
            Ok(value) => value,
            Err(error) => json!({"failed": error.to_string(), "equal": false}),
        };
        is_equal &= value["equal"] == true;
        value["row"] = json!(row.name);
        value["size"] = json!(size);
        value["queries"] = json!((row.queries)(size));
        value["flops"] = json!((row.flops)(size));
        eprintln!("{}", value);
        all.push(value);
        write(file, &json!({"card": device.name(), "emulated": emulated.is_emulated(), "rows": all}))?;
    }
    Ok(is_equal)
}

fn timed(row: &Row, device: &Arc<Device>, size: usize, times: usize) -> Result<Value, Failed> {
    let began = Instant::now();
    let mut case = (row.case)(device, size)?;
    let prepared = began.elapsed().as_secs_f64();
    let got = (case.call)()?();
    let began = Instant::now();
    let is_equal = got == (case.expected)();
    let cpu = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let (mut whole, mut kernels) = (Vec::new(), Vec::<Vec<(&str, f32)>>::new());
    for i in 0..WARM_UPS + times {
        watch::begin();
        let call = Instant::now();
        let again = (case.call)()?;
        let ms = call.elapsed().as_secs_f64() * 1e3;
        let launches = watch::launches()?;
        if again() != got {
            return Ok(json!({"equal": false, "failed": "two calls with different bytes"}));
        }
        if i >= WARM_UPS {
            whole.push(ms);
            kernels.push(launches);
        }
        if began.elapsed().as_secs_f64() > MOST_SECONDS && !whole.is_empty() {
            break;
        }
    }
    let sums = kernels.iter().map(|launches| launches.iter().map(|l| f64::from(l.1)).sum()).collect();
    let mut names: Vec<&str> = kernels[0].iter().map(|l| l.0).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &str, launches: &Vec<(&str, f32)>| -> (usize, f64) {
        let those = launches.iter().filter(|l| l.0 == name);
        (those.clone().count(), those.map(|l| f64::from(l.1)).sum())
    };
    let each: Vec<Value> = names
        .iter()
        .map(|name| {
            let ms = median(kernels.iter().map(|launches| of(name, launches).1).collect());
            json!({"kernel": name, "launches": of(name, &kernels[0]).0, "ms": ms})
        })
        .collect();
    Ok(json!({
        "equal": is_equal, "bytes": got.len(), "times": whole.len(), "kernels_ms": median(sums), "whole_ms": median(whole),
        "kernels": each, "prepare_s": prepared, "cpu_s": cpu,
    }))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn load(file: &str) -> Result<bool, Failed> {
    let emulated = hold();
    let device = Device::open(0)?;
    let (mut kernels, mut is_loaded) = (Vec::new(), true);
    for text in TEXTS {
        let began = Instant::now();
        for name in text.kernels() {
            let kernel = device.kernel(name).and_then(|kernel| kernel.registers_and_local());
            is_loaded &= kernel.is_ok();
            kernels.push(match kernel {
                Ok((registers, local)) => json!({"kernel": name, "registers": registers, "local": local}),
                Err(error) => json!({"kernel": name, "failed": error.to_string()}),
            });
        }
        kernels.push(json!({"text": text.name, "ms": began.elapsed().as_secs_f64() * 1e3}));
    }
    let value = json!({
        "card": device.name(), "emulated": emulated.is_emulated(), "limits": format!("{:?}", device.limits()),
        "free": device.free_memory()?, "kernels": kernels,
    });
    write(file, &value)?;
    Ok(is_loaded)
}
