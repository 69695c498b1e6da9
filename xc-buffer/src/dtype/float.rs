//! Types that weights are stored in, and how a value is rounded to them.
//!
//! | type | exponent, mantissa bits | largest | smallest step |
//! |---|---|---|---|
//! | f32 | 8, 23 | 3.4e38 | |
//! | bf16 | 8, 7 | 3.4e38 | 2^-133 |
//! | f16 | 5, 10 | 65504 | 2^-24 |
//! | e4m3 | 4, 3 | 448 | 2^-9 |
//! | e5m2 | 5, 2 | 57344 | 2^-16 |
//!
//! Stochastic rounding takes one of the two neighbours with the chance that makes the mean exact,
//! so that updates far below the distance of neighbours are not lost but happen now and then (ELMO,
//! 2025, trains three million labels so). What is too large becomes the largest finite number in
//! all but f32; NaN stays NaN.

use super::Element;
use half::{bf16, f16};

/// A stored floating-point number.
pub trait Float: Element + PartialEq + std::fmt::Debug + Default {
    /// Rounds to the nearest, ties to even.
    fn nearest(value: f32) -> Self;

    /// Rounds to one of the two neighbours; `random` should be even over all u32.
    fn stochastic(value: f32, random: u32) -> Self;

    /// Exact.
    fn widen(self) -> f32;

    /// Whether all are finite.
    fn all_finite(values: &[Self]) -> bool {
        values.iter().all(|value| value.widen().is_finite())
    }

    /// Widens a row.
    #[inline(always)]
    fn widen_all(from: &[Self], to: &mut [f32]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.widen());
    }
}

/// An 8-bit float: 4 bits of exponent, 3 of mantissa; no infinities (OCP's E4M3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct E4m3(u8);

/// An 8-bit float: 5 bits of exponent, 2 of mantissa (OCP's E5M2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct E5m2(u8);

/// A small float's form.
struct Form {
    mantissa: i32,
    /// Exponent of the smallest normal number.
    least: i32,
    /// Largest finite number.
    largest: f32,
}

const F16: Form = Form { mantissa: 10, least: -14, largest: 65504.0 };
const BF16: Form = Form { mantissa: 7, least: -126, largest: 3.389_531_4e38 };
const E4M3: Form = Form { mantissa: 3, least: -6, largest: 448.0 };
const E5M2: Form = Form { mantissa: 2, least: -14, largest: 57344.0 };

/// 2^e for -149 <= e <= 127.
fn power(e: i32) -> f32 {
    if e >= -126 { f32::from_bits(((e + 127) as u32) << 23) } else { f32::from_bits(1 << (e + 149)) }
}

impl Form {
    /// Exponent of the distance to the next number, at a finite value.
    fn step(&self, value: f32) -> i32 {
        let exponent = ((value.to_bits() >> 23) & 0xff) as i32 - 127;
        exponent.max(self.least) - self.mantissa
    }

    /// Rounds up in magnitude when `up` says so of the part between two neighbours, in units of
    /// 2^-32, and of the lower neighbour.
    fn round(&self, value: f32, up: impl Fn(f64, u64) -> bool) -> f32 {
        if value.is_nan() {
            return value;
        }
        let size = value.abs();
        if size >= self.largest {
            return self.largest.copysign(value);
        }
        // All of this is exact in f64.
        let step = f64::from(power(self.step(value)));
        let steps = f64::from(size) / step;
        let below = steps.floor();
        let rounded = if up(steps - below, below as u64) { below + 1.0 } else { below };
        ((rounded * step) as f32).min(self.largest).copysign(value)
    }

    fn nearest(&self, value: f32) -> f32 {
        self.round(value, |part, below| part > 0.5 || (part == 0.5 && below % 2 == 1))
    }

    fn stochastic(&self, value: f32, random: u32) -> f32 {
        self.round(value, |part, _| f64::from(random) < part * 4_294_967_296.0)
    }

    /// The bits of a number of this form, which has `mantissa` bits of mantissa.
    fn bits(&self, value: f32) -> u32 {
        let size = value.abs();
        let sign = u32::from(value.is_sign_negative());
        let exponent_bits = 7 - self.mantissa as u32;
        let bits = if size < power(self.least) {
            (size / power(self.least - self.mantissa)) as u32
        } else {
            let exponent = (size.to_bits() >> 23) as i32 - 127;
            let mantissa = (size.to_bits() >> (23 - self.mantissa)) & ((1 << self.mantissa) - 1);
            (((exponent - self.least + 1) as u32) << self.mantissa) | mantissa
        };
        (sign << (exponent_bits + self.mantissa as u32)) | bits
    }

    /// The value of bits, specials aside.
    const fn value(&self, bits: u8) -> f32 {
        let exponent = (bits & 0x7f) >> self.mantissa;
        let mantissa = (bits & ((1 << self.mantissa) - 1)) as f32;
        // 2^(least - mantissa), a normal f32.
        let mut value = f32::from_bits(((self.least - self.mantissa + 127) as u32) << 23);
        let mut steps = mantissa;
        if exponent > 0 {
            steps += (1u32 << self.mantissa) as f32;
            let mut i = 1;
            while i < exponent {
                value *= 2.0;
                i += 1;
            }
        }
        let value = value * steps;
        if bits & 0x80 != 0 { -value } else { value }
    }

    const fn table(&self, specials_from: u8, infinity: bool) -> [f32; 256] {
        let mut out = [0.0; 256];
        let mut i = 0;
        while i < 256 {
            let bits = i as u8;
            out[i] = if bits & 0x7f < specials_from {
                self.value(bits)
            } else if infinity && bits & 0x7f == specials_from {
                if bits & 0x80 != 0 { f32::NEG_INFINITY } else { f32::INFINITY }
            } else {
                f32::NAN
            };
            i += 1;
        }
        out
    }
}

static E4M3_VALUES: [f32; 256] = E4M3.table(0x7f, false);
static E5M2_VALUES: [f32; 256] = E5M2.table(0x7c, true);

impl Float for f32 {
    fn nearest(value: f32) -> Self {
        value
    }

    fn stochastic(value: f32, _: u32) -> Self {
        value
    }

    fn all_finite(values: &[Self]) -> bool {
        // An exponent of all ones is what is not finite: a maximum over integers, which vectorises.
        values.iter().fold(0, |most, value| most.max(value.to_bits() & 0x7f80_0000)) < 0x7f80_0000
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Float for bf16 {
    fn nearest(value: f32) -> Self {
        if value.is_nan() { Self::NAN } else { Self::from_f32(value.clamp(-BF16.largest, BF16.largest)) }
    }

    #[inline(always)]
    fn stochastic(value: f32, random: u32) -> Self {
        // The lower half decides: adding an even number below 2^16 carries with just the right
        // chance.
        let bits = value.to_bits();
        let (size, random) = (bits & 0x7fff_ffff, random >> 16);
        if size > 0x7f80_0000 {
            return Self::NAN;
        }
        let rounded = (size + random).min(0x7f7f_ffff) >> 16;
        Self::from_bits(rounded as u16 | ((bits >> 16) as u16 & 0x8000))
    }

    fn all_finite(values: &[Self]) -> bool {
        // An exponent of all ones is what is not finite: a maximum over integers, which vectorises.
        values.iter().fold(0, |most, value| most.max(value.to_bits() & 0x7f80)) < 0x7f80
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

impl Float for f16 {
    fn nearest(value: f32) -> Self {
        if value.is_nan() { Self::NAN } else { Self::from_f32(value.clamp(-F16.largest, F16.largest)) }
    }

    fn stochastic(value: f32, random: u32) -> Self {
        Self::from_f32(F16.stochastic(value, random))
    }

    fn all_finite(values: &[Self]) -> bool {
        // An exponent of all ones is what is not finite: a maximum over integers, which vectorises.
        values.iter().fold(0, |most, value| most.max(value.to_bits() & 0x7c00)) < 0x7c00
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn widen_all(from: &[Self], to: &mut [f32]) {
        use half::slice::HalfFloatSliceExt;
        from.convert_to_f32_slice(&mut to[..from.len()]);
    }
}

macro_rules! eight_bits {
    ($name:ident, $form:ident, $values:ident, $nan:literal) => {
        impl Float for $name {
            fn nearest(value: f32) -> Self {
                Self(if value.is_nan() { $nan } else { $form.bits($form.nearest(value)) as u8 })
            }

            fn stochastic(value: f32, random: u32) -> Self {
                Self(if value.is_nan() { $nan } else { $form.bits($form.stochastic(value, random)) as u8 })
            }

            #[inline(always)]
            fn widen(self) -> f32 {
                $values[usize::from(self.0)]
            }
        }
    };
}

eight_bits!(E4m3, E4M3, E4M3_VALUES, 0x7f);
eight_bits!(E5m2, E5M2, E5M2_VALUES, 0x7f);

/// The bits of the nearest bf16, ties to even, computed without branches. NaN stays NaN; values that are
/// too large become infinite.
#[inline(always)]
pub fn nearest_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    if value.is_nan() { 0x7fc0 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounding_is_that_of_the_standard() {
        for bits in (0..=u32::MAX).step_by(977) {
            let value = f32::from_bits(bits);
            let (got, expected) = (bf16::from_bits(nearest_bf16(value)), bf16::from_f32(value));
            assert!(
                got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
                "{value}: {got}, {expected}"
            );
        }
    }

    /// All finite values of a type, ascending.
    fn all<T: Float>() -> Vec<f32> {
        let size = std::mem::size_of::<T>();
        let n = 1u32 << (8 * size);
        let mut out: Vec<f32> =
            (0..n).map(|bits| bytemuck::pod_read_unaligned::<T>(&bits.to_le_bytes()[..size]).widen()).collect();
        out.retain(|v| v.is_finite());
        out.sort_by(f32::total_cmp);
        out.dedup();
        out
    }

    fn every_value_stays<T: Float>() {
        for value in all::<T>() {
            assert_eq!(T::nearest(value).widen().to_bits(), value.to_bits(), "{value}");
            for random in [0, 1 << 31, u32::MAX] {
                assert_eq!(T::stochastic(value, random).widen().to_bits(), value.to_bits(), "{value}");
            }
        }
        assert!(T::nearest(f32::NAN).widen().is_nan() && T::stochastic(f32::NAN, 7).widen().is_nan());
        let largest = all::<T>().pop().unwrap();
        for big in [largest, largest * 1.01, f32::MAX, f32::INFINITY] {
            assert_eq!(T::nearest(big).widen(), largest);
            assert_eq!(T::stochastic(-big, u32::MAX).widen(), -largest);
        }
    }

    #[test]
    fn every_value_of_every_type_stays_as_it_is() {
        every_value_stays::<bf16>();
        every_value_stays::<f16>();
        every_value_stays::<E4m3>();
        every_value_stays::<E5m2>();
    }

    #[test]
    fn the_tables_hold_what_the_standard_says() {
        let (e4m3, e5m2) = (all::<E4m3>(), all::<E5m2>());
        assert_eq!((e4m3.len(), *e4m3.last().unwrap()), (253, 448.0));
        assert_eq!((e5m2.len(), *e5m2.last().unwrap()), (247, 57344.0));
        assert_eq!(E4m3(0x01).widen(), 2f32.powi(-9));
        assert_eq!(E4m3(0x38).widen(), 1.0);
        assert_eq!(E5m2(0x01).widen(), 2f32.powi(-16));
        assert_eq!(E5m2(0x3c).widen(), 1.0);
        assert_eq!(E5m2(0xfc).widen(), f32::NEG_INFINITY);
    }

    fn neighbours<T: Float>(value: f32) -> (f32, f32) {
        let values = all::<T>();
        let at = values.partition_point(|&v| v <= value).clamp(1, values.len() - 1);
        (values[at - 1], values[at])
    }

    fn rounds_well<T: Float>(value: f32) -> Result<(), TestCaseError> {
        let (low, high) = neighbours::<T>(value);
        let got = T::nearest(value).widen();
        prop_assert!(got == low || got == high, "{value}: {got}, neighbours {low} {high}");
        let other = if got == low { high } else { low };
        prop_assert!((got - value).abs() <= (other - value).abs(), "{value}: {got} is farther than {other}");
        // Over evenly spread random numbers the mean is the value.
        const N: u32 = 1 << 12;
        let mut sum = 0.0f64;
        for i in 0..N {
            let got = T::stochastic(value, i << 20 | 1 << 19).widen();
            prop_assert!(got == low || got == high, "{value}: {got}, neighbours {low} {high}");
            sum += f64::from(got);
        }
        let error = (sum / f64::from(N) - f64::from(value)).abs();
        prop_assert!(error <= f64::from(high - low) / f64::from(N), "{value}: mean off by {error}");
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rounding_takes_a_neighbour_and_keeps_the_mean(mantissa in -1.0f32..1.0, exponent in -12i32..8) {
            let value = mantissa * 2f32.powi(exponent);
            rounds_well::<bf16>(value)?;
            rounds_well::<f16>(value)?;
            rounds_well::<E4m3>(value)?;
            rounds_well::<E5m2>(value)?;
        }
    }
}
