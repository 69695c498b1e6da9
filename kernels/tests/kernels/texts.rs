//! What holds for every text of PTX.

use std::path::Path;
use xc_kernels::texts::{TEXTS, Text};
use xxhash_rust::xxh3::xxh3_64;

/// What `kernels/compile` gives the compiler.
const FLAGS: &str = "--gpu-architecture=compute_80 --fmad=false";

/// Texts whose arithmetic is not that of the CPU, by design.
const APPROXIMATE: &[&str] = &[];

fn kernels() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The lines of a source with its includes in place, each once.
fn expand(file: &str, seen: &mut Vec<String>, out: &mut String) {
    for line in std::fs::read_to_string(kernels().join("cu").join(file)).unwrap().lines() {
        match line.strip_prefix("#include \"").and_then(|rest| rest.split_once('"')) {
            Some((name, _)) if seen.iter().any(|s| s == name) => {}
            Some((name, _)) => {
                seen.push(name.to_owned());
                expand(name, seen, out);
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
}

fn source_hash(name: &str) -> String {
    let mut text = format!("{FLAGS}\n");
    expand(&format!("{name}.cu"), &mut Vec::new(), &mut text);
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

/// Names in a folder with this ending, without it, sorted.
fn names(folder: &str, ending: &str) -> Vec<String> {
    let files = std::fs::read_dir(kernels().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> =
        files.filter_map(|name| Some(name.to_str()?.strip_suffix(ending)?.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn every_source_has_a_text_and_every_text_is_built_in() {
    let mut built_in: Vec<String> = TEXTS.iter().map(|text| text.name.to_owned()).collect();
    built_in.sort();
    assert_eq!(names("cu", ".cu"), built_in);
    assert_eq!(names("ptx", ".ptx"), built_in);
}

#[test]
fn texts_are_of_their_sources() {
    for text in TEXTS {
        let line = text.ptx.lines().nth(1).unwrap();
        assert_eq!(line, format!("// source {}", source_hash(text.name)), "{}: run kernels/compile", text.name);
    }
}

#[test]
fn drivers_take_the_texts() {
    for Text { name, ptx } in TEXTS {
        assert!(ptx.is_ascii(), "{name}");
        assert!(ptx.contains("\n.version 7.0\n.target sm_80\n.address_size 64\n"), "{name}");
        assert!(!ptx.contains("used_bytes_mask"), "{name}");
    }
    let mut kernels: Vec<&str> = TEXTS.iter().flat_map(Text::kernels).collect();
    kernels.sort_unstable();
    assert!(kernels.iter().all(|name| name.starts_with("xc_")), "{kernels:?}");
    assert!(kernels.windows(2).all(|pair| pair[0] != pair[1]), "{kernels:?}");
}

#[test]
fn texts_say_what_each_kernel_needs() {
    for text in TEXTS {
        for kernel in text.kernels() {
            let line = text.ptx.lines().find_map(|line| line.strip_prefix(&format!("// {kernel}: sm_80 ")));
            let line = line.unwrap_or_else(|| panic!("{kernel}: run kernels/compile"));
            let (sm_80, sm_90) = line.split_once(", sm_90 ").unwrap();
            for needs in [sm_80, sm_90] {
                let (registers, shared) = needs.strip_suffix(" bytes").unwrap().split_once(" registers ").unwrap();
                assert!((1..=255).contains(&registers.parse::<u32>().unwrap()), "{kernel}: {needs}");
                assert!(shared.parse::<u32>().unwrap() <= 48 << 10, "{kernel}: {needs}");
            }
        }
    }
}

/// Why an instruction may give other bits on a card than on the CPU.
fn inexact(instruction: &str) -> Option<&'static str> {
    let opcode = instruction.split_whitespace().find(|word| !word.starts_with('@'))?;
    let mut parts = opcode.trim_end_matches(';').split('.');
    let (name, rest): (&str, Vec<&str>) = (parts.next()?, parts.collect());
    let has = |part: &str| rest.contains(&part);
    let is_float = ["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"].iter().any(|kind| has(kind));
    match name {
        "mma" | "wmma" | "wgmma" => Some("sums in no stated order"),
        _ if has("approx") => Some("approximate"),
        _ if has("ftz") => Some("without subnormal numbers"),
        "add" | "sub" | "mul" | "fma" | "mad" | "div" | "sqrt" | "rcp" if is_float && !has("rn") => {
            Some("without a rounding")
        }
        "atom" | "red" if is_float && has("add") => Some("added in no order"),
        _ => None,
    }
}

#[test]
fn float_operations_are_the_cpus() {
    for text in TEXTS.iter().filter(|text| !APPROXIMATE.contains(&text.name)) {
        for line in text.ptx.lines() {
            let why = inexact(line.trim());
            assert_eq!(why, None, "{}: {line}", text.name);
        }
    }
}

#[test]
fn operations_that_are_not_would_be_found() {
    let found = [
        "add.f32 %f1, %f2, %f3;",
        "@%p1 mul.f64 %fd1, %fd2, %fd3;",
        "ex2.approx.ftz.f32 %f1, %f2;",
        "sqrt.approx.f32 %f1, %f2;",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1};",
        "red.global.add.f32 [%rd1], %f1;",
        "add.rz.f32 %f1, %f2, %f3;",
        "mul.rn.ftz.f32 %f1, %f2, %f3;",
    ];
    assert!(found.iter().all(|line| inexact(line).is_some()));
    let fine = [
        "add.rn.f32 %f1, %f2, %f3;",
        "add.s32 %r1, %r2, %r3;",
        "atom.shared.add.u32 %r1, [%r2], 1;",
        "max.f32 %f1, %f2, %f3;",
        "}",
        "// add.f32",
    ];
    assert_eq!(fine.map(inexact), [None; 6]);
}
