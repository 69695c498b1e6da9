use super::made::clustered;
use proptest::prelude::*;
use xc_ann::{BuildParams, Index, Lengths, Metric, SearchParams, Silent};
use xc_dense::DenseMatrix;

fn index(rows: DenseMatrix) -> Index {
    let params = BuildParams::new(Metric::InnerProduct);
    Index::build(rows.values, rows.columns, &params, &Silent).expect("rows that a graph may have")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_proven_is_exact(n in 1usize..700, columns in 1usize..40, k in 0usize..20, most in 0usize..800, seed: u64) {
        let mut index = index(clustered(n, columns, 6, seed));
        let queries = clustered(20, columns, 6, seed ^ 1);
        prop_assert_eq!(index.delete(&[0]), 1);
        let lengths = index.lengths().expect("inner products");
        let truth = index.exact(queries.view(), k, None);
        // So narrow that many answers are wrong.
        let (found, _) = index.search_batch(queries.view(), SearchParams::top(k).with_width(-0.5), None).unwrap();
        let (proven, n_proven) = lengths.complete(index.rows(), queries.view(), (k, most), &found);
        let mut n = 0;
        for (number, query) in queries.view().iter().enumerate() {
            let is_proven = lengths.open(query, k, found.row(number)).len() <= most;
            n += usize::from(is_proven);
            let expected = if is_proven { truth.row(number) } else { found.row(number) };
            prop_assert_eq!(proven.row(number), expected);
            // Nothing that is better than the answers is left out.
            let open = lengths.open(query, k, truth.row(number));
            prop_assert!(truth.row(number).iter().all(|found| open.contains(&found.label)));
        }
        prop_assert_eq!(n_proven, n);
    }
}

#[test]
fn one_long_row_is_proven_and_rows_of_one_length_are_not() {
    let mut rows = DenseMatrix { rows: 200, columns: 2, values: Vec::new().into() };
    rows.values = (0..200).flat_map(|i| [(i as f32).cos(), (i as f32).sin()]).collect();
    let query = [1.0, 0.3];
    let round = index(rows.clone());
    let best = round.exact(xc_dense::DenseRows::new(&query, 2), 3, None).row(0).to_vec();
    let lengths = round.lengths().expect("inner products");
    // Rounded lengths of 1 stand on both sides of the third score; half of them is not short.
    assert!(lengths.open(&query, 3, &best).len() > 100);
    assert_eq!(lengths.open(&query, 3, &best[..2]).len(), 200, "an answer is missing");
    assert!(lengths.open(&query, 0, &best).is_empty());
    rows.values.to_mut()[..2].copy_from_slice(&[50.0, 0.0]);
    let long = Lengths::new(rows.view(), (0..200).collect());
    let best = [xc_sparse::rank::Scored { label: 0, score: 50.0 }];
    assert_eq!(long.open(&query, 1, &best), [0]);
    let other = Index::build(rows.values, 2, &BuildParams::new(Metric::L2), &Silent).unwrap();
    assert!(other.lengths().is_none());
}
