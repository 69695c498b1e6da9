//! What a build took: `INDEX.log/build.json`, beside the index, whose bytes are the same however long it took.

use crate::context::Context;
use crate::model::beside;
use crate::output::{self, Output};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use xc_store::{Container, OpenMode};

const FILE: &str = "build.json";

fn folder(index: &Path) -> PathBuf {
    beside(index, "log")
}

/// Which index a log is of: one that is built or changed without a log may have taken its place.
fn hash(index: &Path) -> Option<String> {
    Container::open(index, OpenMode::Map).ok().map(|container| container.config_hash().to_owned())
}

/// Writes the log of an index that was saved; the index stands whether the log can be written or not.
pub(super) fn write(index: &Path, build_s: f64, context: &Context) {
    let log = json!({ "build_s": build_s, "threads": context.threads, "config_hash": hash(index) });
    let folder = folder(index);
    let written = output::make_folder(&folder).and_then(|()| {
        let mut file = Output::create(&folder.join(FILE))?;
        file.put(format!("{log:#}\n").as_bytes())?;
        file.commit()
    });
    if let Err(e) = written {
        context.warn(e.line().unwrap_or_default());
    }
}

/// Seconds that the build took, unless there is no log of this index.
pub(super) fn build_s(index: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(folder(index).join(FILE)).ok()?;
    let log: Value = serde_json::from_str(&text).ok()?;
    let of = log["config_hash"].as_str()?;
    (of == hash(index)?).then(|| log["build_s"].as_f64())?
}
