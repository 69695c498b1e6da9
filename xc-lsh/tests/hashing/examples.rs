//! The examples that stand alone are run: their recall is what they promise.

#[expect(dead_code, unreachable_pub, reason = "an example has its main, which reads arguments, at the root")]
#[path = "../../examples/near_duplicates.rs"]
mod near_duplicates;
#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/nearest_vectors.rs"]
mod nearest_vectors;

#[test]
fn near_duplicates_of_the_built_in_texts_are_found() {
    let report = near_duplicates::of_built_in_texts().unwrap();
    assert_eq!((report.found, report.exact), (2, 2));
    assert!(report.candidates <= 4, "{} candidates", report.candidates);
}

#[test]
fn nearest_vectors_are_found() {
    nearest_vectors::main().unwrap();
}
