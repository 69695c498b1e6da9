use super::*;
use crate::{FamilyParams, Kind, Projection, Scratch};
use proptest::prelude::*;
use xc_kernels::Emulated;
use xc_kernels::layout::{Argument, check};

fn family(width: usize, n_codes: u32, n_tables: u32, key_bits: u32, projection: Projection) -> SimHash {
    let kind = Kind::SimHash { projection };
    SimHash::new(FamilyParams { kind, width, n_codes, n_tables, key_bits, seed: 5 }).unwrap()
}

/// Keys on the device, and those of the CPU.
fn both(device: &Device, family: &SimHash, rows: DenseRows<'_>) -> [Result<Keys, DeviceKeysError>; 2] {
    let n_tables = family.params().n_tables as usize;
    let (mut got, mut expected) = (Keys::from_rows(n_tables, vec![9; n_tables]), Keys::new(n_tables));
    let on = SimHashOn::new(device, family).unwrap().keys_dense(rows, &mut got);
    assert!(on.is_ok() || got.is_empty());
    let of_cpu = family.keys_dense(rows, &mut expected, &mut Scratch::default());
    [on.map(|()| got), of_cpu.map(|()| expected).map_err(Into::into)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn keys_are_those_of_the_cpu(
        n in prop_oneof![Just(0usize), Just(1), Just(33), 2..12usize, Just(100)],
        width in prop_oneof![Just(1usize), Just(16), 2..40usize],
        n_codes in prop_oneof![Just(1u32), 2..12u32, Just(33), Just(64)], n_tables in prop_oneof![Just(1u32), 2..9u32],
        key_bits in prop_oneof![Just(32u32), 3..31u32], is_sparse in any::<bool>(), seed in 1u64..4,
        values in prop::collection::vec(prop_oneof![8 => -2f32..2.0, 1 => Just(0.0f32), 1 => Just(-0.0), 1 => Just(3e38)], 97),
        odd in prop_oneof![4 => Just(None), 1 => (0usize..4000, prop_oneof![Just(f32::NAN), Just(f32::INFINITY)]).prop_map(Some)],
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Device::open(0).unwrap();
        let projection = if is_sparse { Projection::Sparse } else { Projection::Gaussian };
        let family = family(width, n_codes, n_tables, key_bits, projection);
        let mut rows: Vec<f32> = (0..n * width).map(|i| values[i * 7 % 97] * values[i / 97 % 97].min(2.0)).collect();
        rows.iter_mut().take(width).for_each(|v| *v = -0.0);
        if let Some((at, odd)) = odd && at < rows.len() {
            rows[at] = odd;
        }
        let [got, expected] = both(&device, &family, DenseRows::new(&rows, width));
        match (got, expected) {
            (Ok(got), Ok(expected)) => prop_assert_eq!(got, expected),
            // NaN differs from itself.
            (got, expected) => prop_assert_eq!(format!("{got:?}"), format!("{expected:?}")),
        }
    }
}

#[test]
fn threads_may_take_turns_after_every_instruction() {
    let emulated = Emulated::hold();
    emulated.set_turn(1);
    let device = Device::open(0).unwrap();
    let family = family(10, 9, 8, 32, Projection::Gaussian);
    let values: Vec<f32> = (0..98 * 10).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    for n in [2, 98] {
        let [got, expected] = both(&device, &family, DenseRows::new(&values[..n * 10], 10));
        assert_eq!(got, expected);
    }
}

#[test]
fn what_a_device_does_not_compute_is_refused() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    let family = family(10, 9, 8, 32, Projection::Hadamard);
    assert_eq!(SimHashOn::new(&device, &family).map(|_| ()).unwrap_err(), DeviceKeysError::Hadamard);
}

#[test]
fn structs_are_laid_out_as_on_the_host() {
    let _emulated = Emulated::hold();
    let device = Device::open(0).unwrap();
    assert_eq!(check(&device, "xc_layout_lsh", &[Signs::LAYOUT]), Ok(()));
}
