use super::*;
use proptest::prelude::*;
use xc_buffer::simd::Isa;

fn matrix(n: usize, salt: usize) -> Vec<f32> {
    (0..n).map(|i| (((i + salt) * 7919 + 13) % 211) as f32 / 105.0 - 1.0).collect()
}

fn naive(a: &[f32], b: &[f32], m: usize, n: usize, k: usize) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                c[i * n + j] += f64::from(a[i * k + p]) * f64::from(b[p * n + j]);
            }
        }
    }
    c
}

fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| values[(i % rows) * columns + i / rows]).collect()
}

fn in_pool<R: Send>(threads: usize, body: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(body)
}

#[test]
fn few_rows_have_the_same_bits_however_many_threads_share_them() {
    let (n, k) = (100, 300);
    let b = matrix(k * n, 2);
    let b = MatRef::new(&b, k, n);
    for (m, products) in [1, 2, 5, 6, 7, 12, 13, 24, 25, 47, 48, 49, 70]
        .into_iter()
        .flat_map(|m| [MatmulPrecision::F32, MatmulPrecision::Bf16].map(|products| (m, products)))
    {
        let a = matrix(m * k, 1);
        let a = MatRef::new(&a, m, k);
        let mut alone = vec![f32::NAN; m * n];
        product_alone(MatMut::new(&mut alone, m, n), a, b, Start::Zero, products, &mut MatmulScratch::default());
        let packed = Packed::new(b, products);
        for threads in [1, 2, 3, 8] {
            let (mut c, mut of_packed) = (vec![f32::NAN; m * n], vec![f32::NAN; m * n]);
            in_pool(threads, || {
                product(MatMut::new(&mut c, m, n), a, b, Start::Zero, products, &mut MatmulScratch::default());
                product_packed(MatMut::new(&mut of_packed, m, n), a, &packed, Start::Zero, false);
            });
            assert!(c == alone && of_packed == alone, "{m} rows, {threads} threads, {products:?}");
        }
    }
}

/// All layouts of two matrices against the plain sums, whole, by rows, alone and packed.
fn layouts_agree(m: usize, n: usize, k: usize) -> Result<(), TestCaseError> {
    let (a, b) = (matrix(m * k, 1), matrix(k * n, 2));
    let bias = matrix(n, 3);
    let wanted = naive(&a, &b, m, n, k);
    let (at, bt) = (transposed(&a, m, k), transposed(&b, k, n));
    // Rows with other values between them.
    let apart: Vec<f32> = a.chunks(k.max(1)).flat_map(|row| [row, &[f32::NAN; 3]].concat()).collect();
    let mut first: Option<Vec<f32>> = None;
    for (a, b) in [
        (MatRef::new(&a, m, k), MatRef::new(&b, k, n)),
        (MatRef::new(&at, k, m).t(), MatRef::new(&b, k, n)),
        (MatRef::new(&a, m, k), MatRef::new(&bt, n, k).t()),
        (MatRef::with_strides(&apart, (m, k), (k + 3, 1)), MatRef::new(&b, k, n)),
    ] {
        let mut c = vec![f32::NAN; m * n];
        product(
            MatMut::new(&mut c, m, n),
            a,
            b,
            Start::Bias(&bias),
            MatmulPrecision::F32,
            &mut MatmulScratch::default(),
        );
        for (at, &met) in c.iter().enumerate() {
            let wanted = wanted[at] + f64::from(bias[at % n]);
            prop_assert!((f64::from(met) - wanted).abs() < 1e-3, "at {}: {} {}", at, met, wanted);
        }
        // A row alone has the bits that it has among others.
        for i in 0..m {
            let mut row = vec![f32::NAN; n];
            let values: Vec<f32> = (0..k).map(|p| a.values[i * a.row_stride + p * a.column_stride]).collect();
            product(
                MatMut::new(&mut row, 1, n),
                MatRef::new(&values, 1, k),
                b,
                Start::Bias(&bias),
                MatmulPrecision::F32,
                &mut MatmulScratch::default(),
            );
            prop_assert_eq!(&row[..], &c[i * n..(i + 1) * n]);
        }
        // The layout changes only the packing.
        prop_assert_eq!(first.get_or_insert_with(|| c.clone()), &c);
        let mut rows = vec![f32::NAN; m * n];
        let mut zero = vec![f32::NAN; m * n];
        let visit = |_: usize, block: &[f32], target: MatMut<'_>| target.values.copy_from_slice(block);
        product_by_rows(
            a,
            b,
            &Blocks::whole(k),
            MatMut::new(&mut rows, m, n),
            MatmulPrecision::F32,
            &mut MatmulScratch::default(),
            &visit,
        );
        product(MatMut::new(&mut zero, m, n), a, b, Start::Zero, MatmulPrecision::F32, &mut MatmulScratch::default());
        prop_assert_eq!(&rows, &zero);
        // One thread alone gives the bits of all.
        for precision in [MatmulPrecision::F32, MatmulPrecision::Bf16] {
            let run =
                |product: fn(MatMut<'_>, MatRef<'_>, MatRef<'_>, Start<'_>, MatmulPrecision, &mut MatmulScratch)| {
                    let mut c = rows.clone();
                    product(MatMut::new(&mut c, m, n), a, b, Start::Kept, precision, &mut MatmulScratch::default());
                    c
                };
            prop_assert_eq!(run(product_alone), run(product));
            let packed = Packed::new(b, precision);
            prop_assert_eq!(packed.shape(), (k, n));
            for is_alone in [false, true] {
                let mut c = rows.clone();
                product_packed(MatMut::new(&mut c, m, n), a, &packed, Start::Kept, is_alone);
                prop_assert_eq!(&c, &run(product));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_layouts_equal_the_naive_product(m in 0usize..70, n in 0usize..70, k in prop_oneof![0usize..40, 250usize..530]) {
        layouts_agree(m, n, k)?;
    }
}

/// Random sizes meet two zeros at once too rarely.
#[test]
fn matrices_without_rows_columns_or_inner_length_have_products() {
    for (m, n, k) in (0..27).map(|at| (at / 9, at / 3 % 3, at % 3)) {
        layouts_agree(m, n, k).unwrap_or_else(|error| panic!("{m} x {k} times {k} x {n}: {error}"));
    }
}

#[test]
fn operands_of_several_pieces_are_packed_whole() {
    // Wider than a piece, deeper than a piece, and both.
    for (n, k) in [(4000, 600), (40, 4500), (1100, 4200)] {
        for (m, precision) in [(1, MatmulPrecision::F32), (3, MatmulPrecision::F32), (17, MatmulPrecision::Bf16)] {
            let (a, b, bias) = (matrix(m * k, 1), matrix(k * n, 2), matrix(n, 3));
            let (a, b) = (MatRef::new(&a, m, k), MatRef::new(&b, n, k).t());
            let (mut expected, mut c) = (vec![f32::NAN; m * n], vec![f32::NAN; m * n]);
            let to = MatMut::new(&mut expected, m, n);
            product(to, a, b, Start::Bias(&bias), precision, &mut MatmulScratch::default());
            product_packed(MatMut::new(&mut c, m, n), a, &Packed::new(b, precision), Start::Bias(&bias), false);
            assert!(c == expected, "{m} x {k} times {k} x {n}, {precision:?}");
        }
    }
}

#[test]
fn instruction_sets_agree_to_the_bit_and_with_plain_sums() {
    // Smaller and larger than what a leaf takes and a panel holds.
    for (m, n, k) in [(37, 75, 300), (79, 35, 1700), (3, 17, 0)] {
        instruction_sets_agree(m, n, k);
    }
}

fn instruction_sets_agree(m: usize, n: usize, k: usize) {
    let (a, b) = (matrix(m * k, 1), matrix(k * n, 2));
    let wanted = naive(&a, &b, m, n, k);
    let mut first: Option<Vec<u32>> = None;
    for isa in Isa::available() {
        let mut c = vec![f32::NAN; m * n];
        let (a, b) = (MatRef::new(&a, m, k), MatRef::new(&b, k, n));
        product_with(
            Tile::of(isa),
            MatMut::new(&mut c, m, n),
            a,
            Operands::Matrix(b, &mut MatmulScratch::default()),
            Start::Zero,
            true,
        );
        assert!(c.iter().zip(&wanted).all(|(&c, &w)| (f64::from(c) - w).abs() < 1e-3), "{isa}");
        let bits: Vec<u32> = c.iter().map(|v| v.to_bits()).collect();
        assert_eq!(first.get_or_insert_with(|| bits.clone()), &bits, "{isa}");
    }
}

/// Numbers with zeros of either sign, and some too small for full precision.
fn signed() -> impl Strategy<Value = f32> {
    prop_oneof![
        2 => Just(0.0f32), 2 => Just(-0.0f32), 1 => Just(-1e-40f32), 1 => Just(1e-40f32), 4 => -2.0f32..2.0,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn instruction_sets_agree_on_the_signs_of_zeros(
        (m, n, k, rounds) in (1usize..14, 1usize..34, 0usize..6, any::<bool>()),
        values in prop::collection::vec(signed(), 14 * 6 + 6 * 34 + 34),
    ) {
        let (a, rest) = values.split_at(m * k);
        let (b, rest) = rest.split_at(k * n);
        let bias = &rest[..n];
        // Sums that are not zero stay out of the range where some machines have 0.
        let bias: Vec<f32> = bias.iter().map(|&v| if v.is_normal() { v } else { 0f32.copysign(v) }).collect();
        let (at, bt) = (transposed(a, m, k), transposed(b, k, n));
        let operand = |value: f32| if rounds { scalar::flushed(value) } else { value };
        let expected: Vec<u32> = (0..m * n).map(|at| {
            let (i, j) = (at / n, at % n);
            let sum = (0..k).fold(bias[j], |sum, p| operand(a[i * k + p]).mul_add(operand(b[p * n + j]), sum));
            sum.to_bits()
        }).collect();
        for isa in Isa::available() {
            let tile = if rounds { Tile::of_bf16(isa) } else { Tile::of(isa) };
            for a in [MatRef::new(a, m, k), MatRef::new(&at, k, m).t()] {
                for b in [MatRef::new(b, k, n), MatRef::new(&bt, n, k).t()] {
                    let mut c = vec![f32::NAN; m * n];
                    product_with(tile, MatMut::new(&mut c, m, n), a, Operands::Matrix(b, &mut MatmulScratch::default()), Start::Bias(&bias), true);
                    let bits: Vec<u32> = c.iter().map(|v| v.to_bits()).collect();
                    prop_assert_eq!(&expected, &bits, "{}", isa);
                }
            }
        }
    }
}

#[test]
fn a_product_that_goes_on_has_the_bits_of_the_whole() {
    let (n, k, half) = (37, 600, 320);
    for (m, precision) in [(1, MatmulPrecision::F32), (21, MatmulPrecision::F32), (21, MatmulPrecision::Bf16)] {
        let (at, b) = (matrix(k * m, 1), matrix(k * n, 2));
        let (mut whole, mut parts) = (vec![0.0; m * n], vec![0.0; m * n]);
        let run = |c: &mut [f32], rows: std::ops::Range<usize>, start: Start<'_>| {
            let a = MatRef::new(&at[rows.start * m..rows.end * m], rows.len(), m).t();
            let b = MatRef::new(&b[rows.start * n..rows.end * n], rows.len(), n);
            product(MatMut::new(c, m, n), a, b, start, precision, &mut MatmulScratch::default());
        };
        run(&mut whole, 0..k, Start::Zero);
        run(&mut parts, 0..half, Start::Zero);
        run(&mut parts, half..k, Start::Kept);
        assert_eq!(whole, parts, "{m} rows");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    // Larger than one chunk in both directions.
    let (m, n, k) = (150, 700, 2300);
    let (a, b) = (matrix(m * k, 1), matrix(k * n, 2));
    let run = |threads| {
        in_pool(threads, || {
            let mut c = vec![0.0; m * n];
            let mut scratch = MatmulScratch::default();
            product(
                MatMut::new(&mut c, m, n),
                MatRef::new(&a, m, k),
                MatRef::new(&b, k, n),
                Start::Zero,
                MatmulPrecision::F32,
                &mut scratch,
            );
            assert!(scratch.packed.len() <= CHUNK + 64 * k);
            c
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
    let wanted = naive(&a, &b, m, n, k);
    assert!(one.iter().zip(&wanted).all(|(&c, &w)| (f64::from(c) - w).abs() < 1e-2));
}

/// As the products take it: by the conversion of a crate of its own, and 0 where that is below the
/// smallest value of full precision.
fn rounded(values: &[f32]) -> Vec<f32> {
    let round = |&v: &f32| if v.abs() < f32::MIN_POSITIVE { 0.0 } else { half::bf16::from_f32(v).to_f32() };
    values.iter().map(round).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn products_in_bf16_are_the_plain_ones_of_rounded_values(
        m in 0usize..40, n in 0usize..70, k in prop_oneof![0usize..40, 500usize..530, 1020usize..1040], tiny in any::<bool>()
    ) {
        let (mut a, b) = (matrix(m * k, 1), matrix(k * n, 2));
        if tiny {
            a.iter_mut().step_by(3).for_each(|v| *v *= f32::MIN_POSITIVE);
        }
        let mut wanted = vec![0.0; m * n];
        let (ra, rb) = (rounded(&a), rounded(&b));
        let of = |a, b| (MatRef::new(a, m, k), MatRef::new(b, k, n));
        let (x, y) = of(&ra[..], &rb[..]);
        product_with(Tile::of(Isa::Scalar), MatMut::new(&mut wanted, m, n), x, Operands::Matrix(y, &mut MatmulScratch::default()), Start::Zero, true);
        let (at, bt) = (transposed(&a, m, k), transposed(&b, k, n));
        for isa in Isa::available() {
            for (a, b) in [
                of(&a, &b),
                (MatRef::new(&at, k, m).t(), MatRef::new(&b, k, n)),
                (MatRef::new(&a, m, k), MatRef::new(&bt, n, k).t()),
            ] {
                let mut c = vec![f32::NAN; m * n];
                product_with(Tile::of_bf16(isa), MatMut::new(&mut c, m, n), a, Operands::Matrix(b, &mut MatmulScratch::default()), Start::Zero, true);
                prop_assert_eq!(&c, &wanted, "{}", isa);
                for i in 0..m {
                    let mut row = vec![f32::NAN; n];
                    let values: Vec<f32> = (0..k).map(|p| a.values[i * a.row_stride + p * a.column_stride]).collect();
                    product_with(Tile::of_bf16(isa), MatMut::new(&mut row, 1, n), MatRef::new(&values, 1, k), Operands::Matrix(b, &mut MatmulScratch::default()), Start::Zero, true);
                    prop_assert_eq!(&row[..], &wanted[i * n..(i + 1) * n]);
                }
            }
        }
    }
}

#[test]
fn what_is_not_a_number_stays_so_in_bf16() {
    for isa in Isa::available() {
        for bad in [f32::NAN, f32::INFINITY, f32::from_bits(0x7f80_0001)] {
            let (mut a, b) = (vec![1.0; 40], vec![0.0; 40]);
            a[7] = bad;
            let mut c = [0.0];
            let (a, b) = (MatRef::new(&a, 1, 40), MatRef::new(&b, 40, 1));
            product_with(
                Tile::of_bf16(isa),
                MatMut::new(&mut c, 1, 1),
                a,
                Operands::Matrix(b, &mut MatmulScratch::default()),
                Start::Zero,
                true,
            );
            assert!(c[0].is_nan(), "{isa}, {bad}: {}", c[0]);
        }
    }
}

/// Leaf after leaf by the plain product, added up as the tree is defined.
fn by_leaves(a: MatRef<'_>, b: MatRef<'_>, blocks: &Blocks, precision: MatmulPrecision) -> Vec<f32> {
    let part = |m: MatRef<'_>, leaf: std::ops::Range<usize>| -> Vec<f32> {
        let places = leaf.flat_map(|p| (0..m.rows).map(move |i| (i, p)));
        places.map(|(i, p)| m.values[i * m.row_stride + p * m.column_stride]).collect()
    };
    let mut tree = TreeSum::default();
    tree.begin(a.rows * b.columns);
    for leaf in (0..blocks.n_leaves()).map(|leaf| blocks.leaf(leaf)) {
        let (left, right) = (part(a, leaf.clone()), part(b.t(), leaf.clone()));
        let (left, right) = (MatRef::new(&left, leaf.len(), a.rows).t(), MatRef::new(&right, leaf.len(), b.columns));
        let (m, n) = (a.rows, b.columns);
        tree.add(|sum| {
            product(MatMut::new(sum, m, n), left, right, Start::Zero, precision, &mut MatmulScratch::default())
        });
    }
    tree.total().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn leaves_are_added_in_the_order_of_the_tree_at_any_number_of_threads(
        m in prop_oneof![0usize..40, 255usize..300], n in 0usize..50, k in 0usize..700, most in 1usize..20, rounds in any::<bool>()
    ) {
        let (a, b) = (matrix(m * k, 1), matrix(k * n, 2));
        let blocks = Blocks::new(k, most, 32);
        let precision = if rounds { MatmulPrecision::Bf16 } else { MatmulPrecision::F32 };
        let at = transposed(&a, m, k);
        for a in [MatRef::new(&a, m, k), MatRef::new(&at, k, m).t()] {
            let b = MatRef::new(&b, k, n);
            let expected = by_leaves(a, b, &blocks, precision);
            for threads in [1, 3] {
                in_pool(threads, || {
                    let mut scratch = MatmulScratch::default();
                    let mut c = vec![f32::NAN; m * n];
                    product_in_leaves(MatMut::new(&mut c, m, n), a, b, &blocks, precision, &mut scratch);
                    assert_eq!(c, expected, "{threads} threads");
                    let mut rows = vec![f32::NAN; m * n];
                    let target = MatMut::new(&mut rows, m, n);
                    let visit = |_: usize, block: &[f32], target: MatMut<'_>| target.values.copy_from_slice(block);
                    product_by_rows(a, b, &blocks, target, precision, &mut scratch, &visit);
                    assert_eq!(rows, expected, "by rows, {threads} threads");
                });
            }
        }
    }
}

#[test]
fn a_visit_may_make_products_of_its_own() {
    let (m, n, k) = (40, 8, 8);
    let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32).collect();
    let one: Vec<f32> = (0..k * n).map(|i| f32::from(u8::from(i % (n + 1) == 0))).collect();
    let (a, one) = (MatRef::new(&a, m, k), MatRef::new(&one, k, n));
    let mut c = vec![f32::NAN; m * n];
    let target = MatMut::new(&mut c, m, n);
    let visit = |_: usize, block: &[f32], target: MatMut<'_>| {
        let block = MatRef::new(block, block.len() / n, n);
        product(target, block, one, Start::Zero, MatmulPrecision::F32, &mut MatmulScratch::default());
    };
    product_by_rows(a, one, &Blocks::whole(k), target, MatmulPrecision::F32, &mut MatmulScratch::default(), &visit);
    assert_eq!(c, a.values);
}
