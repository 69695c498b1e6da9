//! Serving one text allocates nothing once the scratch has seen a text as long.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use xc_hash::text::*;

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

#[test]
fn one_text_at_a_time_without_allocating() {
    let train = ["The cat sat on the mat, été ÉTÉ.", "A dog sat on a cat; the mat was été."];
    let params = PipelineParams {
        blocks: vec![
            Block::words(1, 2),
            Block { grams: Grams::Chars { min: 2, max: 3 }, ..Block::words(1, 1).hashed(256) },
            Block { grams: Grams::CharsInWords { min: 3, max: 3 }, ..Block::words(1, 1) },
        ],
        oov_slots: 100,
        ..PipelineParams::default()
    };
    for fold in [None, Some(HashingParams { n_features: 60, seed: 1, sign: HashSign::Alternate })] {
        serve_without_allocating(&Pipeline::fit(PipelineParams { fold, ..params.clone() }, &train).unwrap(), train);
    }
}

fn serve_without_allocating(pipeline: &Pipeline, train: [&str; 2]) {
    let mut scratch = pipeline.scratch();
    // A longer text first; then any mixture, empty ones included.
    pipeline.transform_one(&train.join(" ").repeat(2), &mut scratch);
    let before = ALLOCATIONS.with(Cell::get);
    let mut nnz = 0;
    for text in train.iter().chain(&["", "mat été", "ÀÉÎÕÜ ẞ İ Σ"]) {
        nnz += pipeline.transform_one(text, &mut scratch).0.len();
    }
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
    assert!(nnz > 100);
    pipeline.transform_one(&train.join(" ").repeat(50), &mut scratch);
    assert!(ALLOCATIONS.with(Cell::get) > before, "the counter counts");
}
