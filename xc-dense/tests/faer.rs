//! The crate faer: views of the same memory, and the same products.

use proptest::prelude::*;
use xc_buffer::Isa;
use xc_dense::faer::linalg::matmul::matmul;
use xc_dense::faer::{self, Accum, Mat, Par};
use xc_dense::{DenseMatrix, DenseRows, FromFaerError, MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, product};

/// `a * b` by faer.
fn by_faer(a: MatRef<'_>, b: MatRef<'_>) -> Mat<f32> {
    let mut c = Mat::zeros(a.shape().0, b.shape().1);
    matmul(c.as_mut(), Accum::Replace, faer::MatRef::from(a), faer::MatRef::from(b), 1.0, Par::Seq);
    c
}

/// `a * b` here.
fn here(a: MatRef<'_>, b: MatRef<'_>) -> Vec<f32> {
    let (m, n) = (a.shape().0, b.shape().1);
    let mut c = vec![0.0; m * n];
    product(MatMut::new(&mut c, m, n), a, b, Start::Zero, MatmulPrecision::F32, &mut MatmulScratch::default());
    c
}

/// Sizes of a product, the values of its operands, and whether each lies transposed.
type Operands = (usize, usize, usize, Vec<f32>, Vec<f32>, [bool; 2]);

fn operands(value: impl Strategy<Value = f32> + Clone) -> impl Strategy<Value = Operands> {
    (0usize..40, 0usize..70, 0usize..40, any::<[bool; 2]>()).prop_flat_map(move |(m, k, n, transposed)| {
        let values = |n| prop::collection::vec(value.clone(), n);
        (Just(m), Just(k), Just(n), values(m * k), values(k * n), Just(transposed))
    })
}

fn of(values: &[f32], rows: usize, columns: usize, transposed: bool) -> MatRef<'_> {
    if transposed { MatRef::new(values, columns, rows).t() } else { MatRef::new(values, rows, columns) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn products_are_those_of_faer((m, k, n, a, b, [at, bt]) in operands(-4.0f32..4.0)) {
        let (a, b) = (of(&a, m, k, at), of(&b, k, n, bt));
        let (expected, got) = (by_faer(a, b), here(a, b));
        let (a, b) = (faer::MatRef::from(a), faer::MatRef::from(b));
        for i in 0..m {
            for j in 0..n {
                let size: f64 = (0..k).map(|x| (f64::from(a[(i, x)]) * f64::from(b[(x, j)])).abs()).sum();
                let most = 4.0 * 2f64.powi(-24) * (k as f64).sqrt() * size;
                let difference = (f64::from(got[i * n + j]) - f64::from(expected[(i, j)])).abs();
                prop_assert!(difference <= most, "{difference} above {most} on {}", Isa::current());
            }
        }
    }

    #[test]
    fn products_of_small_whole_numbers_are_equal((m, k, n, a, b, [at, bt]) in operands((-8i8..8).prop_map(f32::from))) {
        let (a, b) = (of(&a, m, k, at), of(&b, k, n, bt));
        let expected = DenseMatrix::from(by_faer(a, b).as_ref());
        prop_assert_eq!(here(a, b), expected.values.to_vec());
    }

    #[test]
    fn views_lie_where_the_values_lie(rows in 1usize..6, columns in 1usize..6) {
        let mut values: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let at = values.as_ptr();
        for ours in [MatRef::new(&values, rows, columns), MatRef::new(&values, rows, columns).t()] {
            let theirs = faer::MatRef::from(ours);
            prop_assert_eq!((theirs.as_ptr(), theirs.shape()), (at, ours.shape()));
            let back = MatRef::try_from(theirs).unwrap();
            prop_assert_eq!((back.values().as_ptr(), back.shape()), (at, ours.shape()));
            prop_assert_eq!(DenseMatrix::from(faer::MatRef::from(back)), DenseMatrix::from(theirs));
        }
        let theirs = faer::MatRef::from(DenseRows::new(&values, columns));
        prop_assert_eq!((theirs.as_ptr(), theirs.shape()), (at, (rows, columns)));
        // Some rows of a column-major matrix have gaps between their columns.
        let some = theirs.transpose().subrows(0, columns - 1);
        if rows > 1 && columns > 2 {
            let strides = (some.row_stride(), some.col_stride());
            prop_assert_eq!(MatRef::try_from(some).unwrap_err(), FromFaerError { shape: (columns - 1, rows), strides });
        }
        let theirs = faer::MatMut::from(MatMut::new(&mut values, rows, columns));
        prop_assert_eq!(theirs.as_ptr(), at);
        let back = MatMut::try_from(theirs).unwrap();
        prop_assert_eq!((back.shape(), back.into_values().as_ptr()), ((rows, columns), at));
    }
}

#[test]
fn a_matrix_without_values_is_a_view_of_none() {
    for shape in [(0, 0), (0, 3), (3, 0)] {
        let theirs = Mat::<f32>::zeros(shape.0, shape.1);
        assert_eq!(MatRef::try_from(theirs.as_ref()).unwrap().shape(), shape);
        assert_eq!(DenseMatrix::from(theirs.as_ref()).values.len(), 0);
    }
    let mut theirs = Mat::<f32>::zeros(3, 2);
    let refused = MatMut::try_from(theirs.as_mut()).unwrap_err().to_string();
    assert!(refused.contains("a 3 x 2 matrix"), "{refused}");
}
