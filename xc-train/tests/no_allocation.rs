//! One query on an open model allocates nothing after the first, from two threads over one model.

#[path = "model/folders.rs"]
mod folders;

use folders::{Front, N_LABELS, WIDTH};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use xc_buffer::DType;
use xc_model::blend::RuleKind;
use xc_model::classifier;
use xc_model::{Answer, Candidates, Excluded, InputKind, Model, QueryOptions, Row, Scratch};
use xc_nn::Loss;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to `System` unchanged; the counter neither allocates (const-initialised)
// nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's contract is System's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `System` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Asks every query twice: the first time to let the memory grow.
fn asked_without_allocating(model: &Model, options: &QueryOptions<'_>) {
    let texts = ["alpha1 beta1 gamma1 delta", "alpha17", ""];
    let rows = folders::rows(9);
    let vectors: Vec<f32> = (0..4 * WIDTH).map(|i| (i % 7) as f32 - 3.0).collect();
    let queries: Vec<Row<'_>> = match model.describe().takes {
        InputKind::Text => texts.iter().map(|text| Row::Text(text)).collect(),
        InputKind::Sparse => (0..rows.rows()).map(|i| Row::Sparse(rows.view().row(i))).collect(),
        InputKind::Dense => vectors.chunks(WIDTH).map(Row::Dense).collect(),
        InputKind::Tokens => panic!("a model of tokens without texts"),
    };
    let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
    for query in &queries {
        model.predict(query, options, &mut scratch, &mut answer).unwrap();
    }
    let before = ALLOCATIONS.with(Cell::get);
    for _ in 0..5 {
        for query in &queries {
            model.predict(query, options, &mut scratch, &mut answer).unwrap();
            assert_eq!(answer.labels.is_empty(), answer.known_terms == Some(0));
        }
    }
    assert_eq!(ALLOCATIONS.with(Cell::get), before, "{:?} {:?}", model.describe(), options.candidates);
}

fn from_two_threads(make: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    let model = Model::open(folder.path()).unwrap();
    let exclude = [3, 5];
    let candidates: Vec<u32> = (0..N_LABELS as u32).step_by(3).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                asked_without_allocating(&model, &QueryOptions::top(5));
                asked_without_allocating(
                    &model,
                    &QueryOptions { exclude: Excluded::Labels(&exclude), ..QueryOptions::top(5) },
                );
                let candidates = Candidates::Labels(&candidates);
                asked_without_allocating(&model, &QueryOptions { candidates, ..QueryOptions::top(5) });
            });
        }
    });
}

#[test]
fn trees_of_sparse_rows_and_of_text() {
    from_two_threads(|folder| folders::tree(folder, Front::Plain, 1));
    from_two_threads(|folder| folders::tree(folder, Front::Weights, 3));
    from_two_threads(|folder| folders::tree(folder, Front::Text, 1));
}

#[test]
fn blends_of_several_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    folders::tree(&at("tree"), Front::Plain, 1);
    folders::mach(&at("mach"), Front::Plain);
    for rule in RuleKind::ALL {
        from_two_threads(|folder| folders::blend(folder, &[&at("tree"), &at("mach")], rule));
    }
}

#[test]
fn candidates_that_change_from_query_to_query() {
    for trees in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        folders::tree(folder.path(), Front::Plain, trees);
        let model = Model::open(folder.path()).unwrap();
        let rows = folders::rows(9);
        let n = N_LABELS as u32;
        // The largest list lies together, where it needs few clusters; the others lie apart, or are
        // short.
        let lists: [Vec<u32>; 4] =
            [(0..n / 2).collect(), (0..n).step_by(3).collect(), vec![n - 1, 0], (1..n).step_by(2).skip(3).collect()];
        let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
        let mut ask = |labels: &[u32], at: usize| {
            let query = Row::Sparse(rows.view().row(at));
            let options = QueryOptions { candidates: Candidates::Labels(labels), ..QueryOptions::top(5) };
            model.predict(&query, &options, &mut scratch, &mut answer).unwrap();
            assert!(!answer.labels.is_empty() && answer.labels.iter().all(|s| labels.contains(&s.label)));
        };
        (0..rows.rows()).for_each(|at| ask(&lists[0], at));
        let before = ALLOCATIONS.with(Cell::get);
        (0..8).for_each(|i| (0..rows.rows()).for_each(|at| ask(&lists[(at + i) % lists.len()], at)));
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{trees} trees");
    }
}

#[test]
fn mach_of_sparse_rows_and_of_text() {
    from_two_threads(|folder| folders::mach(folder, Front::Plain));
    from_two_threads(|folder| folders::mach(folder, Front::Text));
}

#[test]
fn networks_trained_on_chosen_labels() {
    for rows in [DType::F32, DType::Bf16] {
        from_two_threads(|folder| folders::lns(folder, Front::Plain, Loss::Bce, rows));
        from_two_threads(|folder| folders::lns(folder, Front::Text, Loss::Softmax, rows));
    }
    from_two_threads(|folder| folders::astra(folder, Front::Text));
}

#[test]
fn classifiers_of_sparse_rows_text_and_vectors() {
    from_two_threads(|folder| folders::dense(folder, Front::Plain, Loss::SquaredHinge));
    from_two_threads(|folder| folders::dense(folder, Front::Text, Loss::Softmax));
    from_two_threads(|folder| folders::uniform(folder, classifier::InputKind::Sparse, Loss::SquaredHinge));
    from_two_threads(|folder| folders::uniform(folder, classifier::InputKind::Dense, Loss::Bce));
}
