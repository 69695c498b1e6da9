//! Models that are replaced while others open them: what opens is one of the two, whole.

use crate::program::Folder;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use xc_model::Model;
use xc_model::{Answer, QueryOptions, Row, Scratch};

const DATA: &str = "generate --instances 400 --features 300 --labels 60 --no-text --no-names --output d";
const SMALL: &str = "--network.widths 8 --epochs 2";

/// Labels and scores that a model gives for a few queries; nothing may be left out.
fn answers(model: &Model) -> Vec<(u32, u32)> {
    assert_eq!(model.warnings().count(), 0, "{:?}", model.warnings().next().map(ToString::to_string));
    let (mut scratch, mut answer, mut all) = (Scratch::default(), Answer::default(), Vec::new());
    for feature in [3, 50, 120, 200] {
        let features = [feature, feature + 1];
        let row = xc_sparse::SparseRow::try_new(&features, &[1.0, 0.5]).unwrap();
        model.predict(&Row::Sparse(row), &QueryOptions::top(5), &mut scratch, &mut answer).unwrap();
        all.extend(answer.labels.iter().map(|best| (best.label, best.score.to_bits())));
    }
    all
}

/// Opens `live` again and again while it names `a` and `b` in turn.
fn open_while_replaced(folder: &Folder, a: &str, b: &str, has_index: bool) {
    let live = folder.path("live");
    let expected: BTreeSet<_> = [a, b].map(|name| answers(&Model::open(folder.path(name)).unwrap())).into();
    assert_eq!(expected.len(), 2, "answers that differ");
    let stop = AtomicBool::new(false);
    symlink(a, &live).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let next = folder.path("next");
            for name in [b, a].iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                symlink(name, &next).unwrap();
                std::fs::rename(&next, &live).unwrap();
                // Where no opening ever meets one model for long enough, it gives up.
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let opened = std::panic::catch_unwind(|| {
            for _ in 0..300 {
                let model = Model::open(&live).unwrap();
                assert_eq!(model.index().is_some(), has_index);
                assert!(expected.contains(&answers(&model)), "an answer of neither model");
            }
        });
        stop.store(true, Ordering::Relaxed);
        opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    std::fs::remove_file(&live).unwrap();
}

#[test]
fn a_model_and_its_index_are_of_one_save() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (name, seed) in [("a", 0), ("b", 1)] {
        folder.ok(&format!("train lns --train d/train.txt {SMALL} --model {name} --seed {seed}"));
        folder.ok(&format!("index build --model {name}"));
    }
    open_while_replaced(&folder, "a", "b", true);
}

#[test]
fn a_blend_and_its_members_are_of_one_save() {
    let folder = Folder::new();
    folder.ok(DATA);
    for (name, seed) in [("a", 0), ("b", 1)] {
        let of = format!("--train d/train.txt --validation-fraction 0.2 --seed {seed}");
        folder.ok(&format!("train tree {of} --trees 1 --linear.cost {} --model {name}.tree", seed + 1));
        folder.ok(&format!("train dense {of} {SMALL} --model {name}.dense"));
        let members = format!("{name}.tree {name}.dense");
        folder.ok(&format!(
            "blend {members} --validation d/train.txt --held-out --rule reciprocal-ranks --output {name}"
        ));
    }
    open_while_replaced(&folder, "a", "b", false);
}
