//! Decompositions of the crate faer beside latent semantic analysis.

use xc_dense::{DenseMatrix, MatRef, faer};
use xc_nn::encoder::lsa::embeddings;
use xc_sparse::CsrMatrix;

/// Rows of decaying directions, the same for everyone.
fn rows(n: usize, n_features: usize) -> DenseMatrix {
    let value = |i: usize, j: usize| {
        let direction = |r: usize| {
            let (i, j) = (i as f32, j as f32);
            0.5f32.powi(r as i32) * ((i + 1.0) * (r as f32 + 0.7)).sin() * ((j + 1.0) * (r as f32 + 1.3)).cos()
        };
        (0..12).map(direction).sum::<f32>()
    };
    DenseMatrix::new(
        n,
        n_features,
        (0..n * n_features).map(|at| value(at / n_features, at % n_features)).collect::<Vec<_>>(),
    )
}

#[test]
fn embeddings_span_the_leading_singular_vectors_of_faer() {
    let (n, n_features, k) = (60, 40, 6);
    let x = rows(n, n_features);
    let sparse = CsrMatrix::from_vectors(x.view());
    let which: Vec<u32> = (0..n as u32).collect();
    let found = embeddings(sparse.view(), &which, k, 6, 1.0, 3, &|| false).unwrap();

    let svd = faer::MatRef::from(x.view()).thin_svd().unwrap();
    let leading = svd.V().subcols(0, k);
    let ours = faer::MatRef::from(MatRef::new(&found, n_features, k));
    // Columns of equal length at right angles: an orthonormal basis times that length.
    let gram = ours.transpose() * ours;
    let square = gram[(0, 0)];
    for i in 0..k {
        for j in 0..k {
            let expected = if i == j { square } else { 0.0 };
            assert!((gram[(i, j)] - expected).abs() < 1e-4 * square, "{i}, {j}: {}, expected {expected}", gram[(i, j)]);
        }
    }
    // Of a basis within the span of another the products with it are a rotation: their squares sum to 1 a vector.
    let shared = leading.transpose() * ours;
    for i in 0..k {
        let share: f32 = (0..k).map(|j| shared[(i, j)].powi(2)).sum::<f32>() / square;
        assert!(share > 0.999, "singular vector {i}: {share} of it is in the span");
    }
}

#[test]
fn columns_made_orthonormal_are_the_first_factor_of_faer() {
    // Orthonormal columns are the first factor of their own QR decomposition, but for their signs.
    let (n, n_features, k) = (80, 20, 6);
    let sparse = CsrMatrix::from_vectors(rows(n, n_features).view());
    let which: Vec<u32> = (0..n as u32).collect();
    let found = embeddings(sparse.view(), &which, k, 1, 1.0, 3, &|| false).unwrap();
    let ours = faer::MatRef::from(MatRef::new(&found, n_features, k));
    let q = ours.qr().compute_thin_Q();
    for j in 0..k {
        let (mut along, mut square) = (0.0, 0.0);
        for i in 0..n_features {
            along += ours[(i, j)] * q[(i, j)];
            square += ours[(i, j)].powi(2);
        }
        assert!(square > 0.0 && (along.abs() / square.sqrt() - 1.0).abs() < 1e-4, "column {j}: {along} of {square}");
    }
}
