//! Rows and ranked lists as values of serde.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use xc_dense::DenseMatrix;
use xc_sparse::rank::{RankedBatch, Scored};
use xc_sparse::rows::{OwnedRows, TokenRows};
use xc_sparse::{CscMatrix, CsrMatrix, LabelRows};

fn goes_back<T: Serialize + DeserializeOwned + Debug + PartialEq>(value: &T, expected: &str) {
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(json, expected);
    assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), value);
}

fn refused<T: DeserializeOwned + Debug>(json: &str) -> String {
    serde_json::from_str::<T>(json).unwrap_err().to_string()
}

#[test]
fn values_are_their_arrays_and_are_checked_when_they_are_read() {
    let x = CsrMatrix::try_new((2, 4), vec![0, 2, 2], vec![1, 3], vec![0.5, -1.0]).unwrap();
    let json = r#"{"rows":2,"cols":4,"indptr":[0,2,2],"indices":[1,3],"data":[0.5,-1.0]}"#;
    goes_back(&x, json);
    goes_back(&OwnedRows::Sparse(x.clone()), &format!(r#"{{"Sparse":{json}}}"#));
    let columns = CscMatrix::try_new((4, 2), vec![0, 2, 2], vec![1, 3], vec![0.5, -1.0]).unwrap();
    goes_back(&columns, r#"{"rows":4,"cols":2,"indptr":[0,2,2],"indices":[1,3],"data":[0.5,-1.0]}"#);
    goes_back(
        &LabelRows::from_lists([vec![2, 0], vec![]], 3).unwrap(),
        r#"{"n_labels":3,"indptr":[0,2,2],"labels":[0,2]}"#,
    );
    goes_back(&DenseMatrix::new(1, 2, vec![1.0, 2.0]), r#"{"rows":1,"columns":2,"values":[1.0,2.0]}"#);
    let tokens = TokenRows::try_new(vec![4, 1], vec![1, 2], 5).unwrap();
    goes_back(&tokens, r#"{"vocabulary":5,"ends":[1,2],"ids":[4,1]}"#);
    let with_words = tokens.with_words(x).unwrap();
    goes_back(&with_words, &format!(r#"{{"vocabulary":5,"ends":[1,2],"ids":[4,1],"words":{json}}}"#));
    let mut ranked = RankedBatch::new();
    ranked.push_row(&[Scored { label: 3, score: 0.5 }]);
    goes_back(&ranked, r#"{"indptr":[0,1],"items":[{"label":3,"score":0.5}]}"#);

    for (got, expected) in [
        (refused::<CsrMatrix>(r#"{"rows":1,"cols":1,"indptr":[0,1],"indices":[1],"data":[1]}"#), "ids below 1"),
        (refused::<CsrMatrix>(r#"{"rows":1,"cols":1,"indptr":[0,1],"indices":[0],"data":[1e60]}"#), "out of range"),
        (
            refused::<CsrMatrix>(r#"{"rows":1,"cols":1,"indptr":[0,0],"indices":[],"data":[],"more":1}"#),
            "unknown field",
        ),
        (refused::<LabelRows>(r#"{"n_labels":1,"indptr":[0,2],"labels":[0,0]}"#), "ascending"),
        (refused::<DenseMatrix>(r#"{"rows":2,"columns":2,"values":[1]}"#), "1 values in 2 rows of 2"),
        (refused::<TokenRows>(r#"{"vocabulary":1,"ends":[1],"ids":[1]}"#), "only 1 tokens"),
        (
            refused::<RankedBatch>(r#"{"indptr":[0,2],"items":[{"label":0,"score":0},{"label":1,"score":1}]}"#),
            "not ranked",
        ),
    ] {
        assert!(got.contains(expected), "{got}");
    }
}
