//! The crates depend on one another only downwards, as docs/ARCHITECTURE.md draws it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What each crate of ours may use. A crate that is not here has no place in the house yet.
const MAY_USE: &[(&str, &[&[&str]])] = &[
    ("xc-buffer", &[]),
    ("xc-hash", &[]),
    ("xc-dense", &[&["xc-buffer"]]),
    ("xc-store", &[&["xc-buffer"]]),
    ("xc-sparse", &[&["xc-buffer", "xc-dense", "xc-store"]]),
    ("xc-data", &[ROWS, &["xc-hash"]]),
    ("xc-kernels", &[&["xc-buffer", "xc-dense", "xc-sparse"]]), // in its tests alone
    ("xc-tree", &[ROWS, &["xc-data", "xc-hash", "xc-kernels"]]),
    ("xc-mach", &[ROWS, &["xc-hash", "xc-kernels"]]),
    ("xc-lsh", &[ROWS, &["xc-hash", "xc-kernels"]]),
    ("xc-ann", &[ROWS, &["xc-data", "xc-hash", "xc-kernels"]]), // xc-data in its examples alone
    ("xc-boost", &[&["xc-buffer", "xc-dense"]]),
    ("xc-metrics", &[ROWS, &["xc-hash"]]),
    ("xc-nn", &[ROWS, &["xc-hash", "xc-lsh", "xc-ann", "xc-metrics", "xc-kernels"]]),
    ("xc-model", &[ROWS, &["xc-data", "xc-hash", "xc-kernels"], IDEAS, &["xc-nn"]]),
    ("xc-train", &[ROWS, &["xc-data", "xc-hash", "xc-kernels"], IDEAS, &["xc-nn", "xc-model"]]),
    ("xc-options", &[ROWS, &["xc-data", "xc-hash", "xc-kernels"], IDEAS, &["xc-nn", "xc-model", "xc-train"]]),
    ("xc-cli", &[ROWS, &["xc-data", "xc-hash", "xc-kernels"], IDEAS, &["xc-nn", "xc-model", "xc-train", "xc-options"]]),
];

/// Sparse rows and what they stand on.
const ROWS: &[&str] = &["xc-buffer", "xc-dense", "xc-store", "xc-sparse"];

/// One idea each; none knows another.
const IDEAS: &[&str] = &["xc-tree", "xc-mach", "xc-lsh", "xc-ann", "xc-boost", "xc-metrics"];

/// The crates of the workspace with what they name of each other (development dependencies
/// included).
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(&manifest)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let used = package["dependencies"].as_array().unwrap().iter();
            let ours = used.filter(|d| d["path"].is_string()).map(name).filter(|n| *n != name(package));
            (name(package), ours.collect())
        })
        .collect()
}

/// The pairs that the drawing does not allow.
fn violations(got: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, used) in got {
        if name == "xtask" {
            continue;
        }
        match MAY_USE.iter().find(|(n, _)| n == name) {
            None => wrong.push(format!("{name} has no place in the drawing")),
            Some((_, allowed)) => {
                wrong.extend(
                    used.iter().filter(|u| !allowed.concat().contains(&&***u)).map(|u| format!("{name} uses {u}")),
                );
            }
        }
    }
    wrong
}

#[test]
fn dependencies_point_down() {
    let got = dependencies();
    assert!(got.len() >= 5, "only {got:?}");
    assert_eq!(violations(&got), Vec::<String>::new());
}

/// One screen that says what for, with an example that its documentation runs, and what it is not for.
#[test]
fn every_crate_has_a_page_of_its_own_that_is_its_documentation() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: String| std::fs::read_to_string(root.join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    for (name, _) in MAY_USE {
        let folder = if *name == "xc-kernels" { "kernels" } else { name };
        let page = read(format!("{folder}/README.md"));
        assert!(
            page.starts_with(&format!("# {name}\n")) && page.lines().count() <= 55,
            "{name}: {} lines",
            page.lines().count()
        );
        for part in ["For whoever", "\n## Not for\n"] {
            assert!(page.contains(part), "{name}: no {part:?}");
        }
        assert!(read(format!("{folder}/Cargo.toml")).contains("readme = \"README.md\""), "{name}");
        if *name != "xc-cli" {
            assert!(page.contains("```rust"), "{name}: no example");
            assert!(read(format!("{folder}/src/lib.rs")).contains("include_str!(\"../README.md\")"), "{name}");
        }
    }
}

#[test]
fn a_default_build_has_nothing_of_cuda_or_tokenizers() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--package",
            "xc-cli",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--manifest-path",
        ])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("xc-tree"), "{names:?}");
    for name in ["xc-kernels", "cudarc", "libloading", "tokenizers"] {
        assert!(!names.contains(name), "{name}");
    }
}

/// The extension of Python is a workspace of its own, built into the same folder: what it shares with this one is compiled once
/// where versions and profile are the same.
#[test]
fn the_extension_of_python_has_the_versions_and_the_test_profile_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let table = |path: &str| toml::from_str::<toml::Table>(&read(path)).unwrap();
    let versions = |path: &str| -> BTreeSet<(String, String)> {
        let packages = table(path)["package"].as_array().unwrap().clone();
        let text = |package: &toml::Value, field: &str| package[field].as_str().unwrap().to_owned();
        packages.iter().map(|package| (text(package, "name"), text(package, "version"))).collect()
    };
    let (ours, theirs) = (versions("Cargo.lock"), versions("python/Cargo.lock"));
    let names: BTreeSet<&String> = ours.iter().map(|(name, _)| name).collect();
    let others: Vec<_> = theirs.iter().filter(|of| names.contains(&of.0) && !ours.contains(of)).collect();
    assert!(others.is_empty() && theirs.len() > 100, "other versions in python/Cargo.lock: {others:?}");

    let profile = |path: &str| table(path)["profile"]["dev"].as_table().unwrap().clone();
    let (mut ours, mut theirs) = (profile("Cargo.toml"), profile("python/Cargo.toml"));
    let packages = |profile: &mut toml::Table| match profile.remove("package") {
        Some(toml::Value::Table(packages)) => packages,
        other => panic!("profile.dev.package: {other:?}"),
    };
    let (of_ours, of_theirs) = (packages(&mut ours), packages(&mut theirs));
    assert_eq!(theirs, ours);
    for (name, settings) in of_theirs.iter().filter(|(name, _)| *name != "xc-python" && !name.starts_with("pyo3")) {
        assert_eq!(Some(settings), of_ours.get(name), "python/Cargo.toml: profile.dev.package.{name}");
    }
    let used = versions("python/Cargo.lock");
    for name in of_ours.keys().filter(|name| used.iter().any(|(used, _)| used == *name)) {
        assert!(of_theirs.contains_key(name), "python/Cargo.toml lacks profile.dev.package.{name}");
    }
}

/// Units of a crate are not optimised together in the release profile, which compiles a fifth faster: loops that call functions of
/// other units would take half as long again.
#[test]
fn crates_with_hot_loops_are_released_as_one_unit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = |path: &str| std::fs::read_to_string(root.join(path)).unwrap().parse::<toml::Table>().unwrap();
    let ours = table("Cargo.toml");
    let members = ours["workspace"]["members"].as_array().unwrap();
    for member in members.iter().map(|member| member.as_str().unwrap()) {
        let manifest = table(&format!("{member}/Cargo.toml"));
        let name = manifest["package"]["name"].as_str().unwrap();
        let units =
            ours["profile"]["release"]["package"].get(name).map(|package| package["codegen-units"].as_integer());
        let expected =
            if matches!(name, "xc-model" | "xc-train" | "xc-options" | "xc-cli") { None } else { Some(Some(1)) };
        assert_eq!(units, expected, "Cargo.toml: profile.release.package.{name}");
    }
    for path in ["Cargo.toml", "python/Cargo.toml"] {
        let release = &table(path)["profile"]["release"];
        assert_eq!(release["lto"].as_str(), Some("off"), "{path}");
        assert_eq!(release["package"]["*"]["codegen-units"].as_integer(), Some(1), "{path}");
    }
}

#[test]
fn an_arrow_that_points_up_or_sideways_would_be_caught() {
    let planted = |from: &str, to: &str| BTreeMap::from([(from.to_owned(), BTreeSet::from([to.to_owned()]))]);
    for (from, to) in [
        ("xc-sparse", "xc-tree"),
        ("xc-tree", "xc-mach"),
        ("xc-hash", "xc-sparse"),
        ("xc-tree", "xc-cli"),
        ("xc-nn", "xc-train"),
        ("xc-model", "xc-train"),
        ("xc-train", "xc-options"),
        ("xc-nn", "xc-tree"),
    ] {
        assert_eq!(violations(&planted(from, to)), [format!("{from} uses {to}")]);
    }
    assert_eq!(violations(&planted("xc-new", "xc-sparse")).len(), 1);
}
