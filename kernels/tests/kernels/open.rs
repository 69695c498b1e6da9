//! What opening a device says where something is missing: one line each.

use std::path::Path;
use std::process::Command;
use xc_kernels::{Device, Emulated, Error};

/// Opens a device in a process of its own, with `folder` first among those where libraries are looked for.
fn opened_with(folder: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "open::says_what_opening_says", "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().find_map(|line| line.split_once("opening: ")).unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

#[test]
#[ignore = "run by the other tests in a process of its own"]
#[allow(clippy::print_stdout)]
fn says_what_opening_says() {
    match Device::open(0) {
        Ok(device) => println!("opening: {}", device.name()),
        Err(error) => println!("opening: {error}"),
    }
}

/// Makes a library `libcuda.so` of C in `folder`.
fn c_library(folder: &Path, text: &str) {
    let source = folder.join("cuda.c");
    std::fs::write(&source, text).unwrap();
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(folder.join("libcuda.so")).arg(&source).status();
    assert!(built.unwrap().success());
}

#[test]
fn without_a_driver_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let said = opened_with(folder.path());
    let libraries =
        Command::new("ldconfig").arg("-p").output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    // A machine with a driver says something else, whatever it is.
    let has_driver = libraries.is_ok_and(|names| names.contains("libcuda.so"));
    assert_eq!(said == "no CUDA driver: the library libcuda is not installed", !has_driver, "{said}");
}

#[test]
fn a_library_without_functions_is_named_and_does_not_panic() {
    let folder = tempfile::tempdir().unwrap();
    c_library(folder.path(), "int nothing_of_cuda(void) { return 0; }\n");
    let expected = "the CUDA driver's library has no function cuDriverGetVersion: it is damaged, or not NVIDIA's";
    assert_eq!(opened_with(folder.path()), expected);
}

#[test]
fn one_missing_function_is_named() {
    let folder = tempfile::tempdir().unwrap();
    c_library(folder.path(), "int cuDriverGetVersion(int* v) { *v = 13000; return 0; }\n");
    let expected = "the CUDA driver's library has no function cuInit: it is damaged, or not NVIDIA's";
    assert_eq!(opened_with(folder.path()), expected);
}

/// The error of opening card `index` of the emulated driver as it is set.
fn refused(index: usize, capability: (u32, u32), n_cards: u32, version: u32) -> Option<(Error, String)> {
    let emulated = Emulated::hold();
    emulated.set_device(capability, 1 << 30, n_cards, version);
    emulated.is_emulated().then(|| {
        let error = Device::open(index).unwrap_err();
        let text = error.to_string();
        (error, text)
    })
}

#[test]
fn a_driver_without_a_card_says_so() {
    let Some((error, text)) = refused(0, (8, 0), 0, 13000) else { return };
    assert_eq!(error, Error::NoCard);
    assert_eq!(text, "there is a CUDA driver, but no card that it can use");
}

#[test]
fn a_card_that_is_not_there_is_refused() {
    let Some((error, text)) = refused(2, (8, 0), 2, 13000) else { return };
    assert_eq!(error, Error::NoSuchCard { index: 2, n: 2 });
    assert_eq!(text, "no CUDA device 2; there are 2, counted from 0");
}

#[test]
fn an_old_driver_is_refused() {
    let Some((error, text)) = refused(0, (8, 0), 1, 11080) else { return };
    assert_eq!(error, Error::OldDriver { got: 11080, least: 12000 });
    assert_eq!(text, "the CUDA driver is of version 11.8, at least 12.0 expected");
}

#[test]
fn an_old_card_is_refused() {
    let Some((_, text)) = refused(0, (7, 5), 1, 13000) else { return };
    assert!(text.contains("compute capability 7.5, at least 8.0 expected"), "{text}");
}

#[test]
fn a_good_card_is_opened_after_all_these() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let limits = device.limits();
    assert_eq!((limits.grid[0], limits.threads), ((1 << 31) - 1, 1024));
    assert!(limits.shared >= 99 << 10, "{limits:?}");
    assert!(device.free_memory().unwrap() > 0);
}
