//! What `xc --version --verbose` says: the build that a report of a defect is about.

use crate::error::CliError;
use crate::output;
use serde_json::json;
use std::ffi::OsString;
use xc_buffer::Isa;
use xc_store::FORMAT_VERSION;

/// Prints the build where it was asked for; whether it was.
pub(crate) fn was_asked(typed: &[OsString]) -> Result<bool, CliError> {
    let words: Vec<&str> = typed.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let has = |some: &[&str]| words.iter().any(|word| some.contains(word));
    let is_all = words.iter().all(|word| ["--version", "-V", "--verbose", "--json"].contains(word));
    if !is_all || !has(&["--version", "-V"]) || !has(&["--verbose", "--json"]) {
        return Ok(false);
    }
    let version = env!("CARGO_PKG_VERSION");
    let commit = Some(env!("XC_COMMIT")).filter(|commit| !commit.is_empty());
    let features: Vec<&str> = [("transformer", cfg!(feature = "transformer")), ("cuda", cfg!(feature = "cuda"))]
        .into_iter()
        .filter_map(|(name, is_built)| is_built.then_some(name))
        .collect();
    let available: Vec<&str> = Isa::available().map(Isa::name).collect();
    let runs = Isa::from_env().map_err(|e| CliError::usage(e.to_string()))?.name();
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let text = if has(&["--json"]) {
        json!({
            "version": version, "commit": commit, "features": features, "system": system, "machine": machine,
            "instruction_set": runs, "instruction_sets": available, "model_format": FORMAT_VERSION,
        })
        .to_string()
    } else {
        let or_none = |words: &[&str]| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        format!(
            "xc {version}\ncommit: {}\noptional features: {}\nsystem: {system}, {machine}\ninstruction set: {runs} (this \
             machine has {})\nformat of models and indexes: {FORMAT_VERSION}",
            commit.unwrap_or("not a release build, or built without git"),
            or_none(&features),
            available.join(", "),
        )
    };
    output::print(&text)?;
    Ok(true)
}
