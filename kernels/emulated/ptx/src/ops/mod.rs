//! What each form of an arithmetic instruction does, lane by lane.
//!
//! A table maps the name of a form to its definition. A form that is in no table is refused, so a modifier is never
//! ignored. Registers of all widths are rows of 32 `u64`, one a lane, whose unused high bits are zeros.

mod compare;
mod convert;
mod floats;
mod halves;
mod integers;
mod round;

pub(crate) use compare::{Compare, Logic, compare};
pub(crate) use halves::{bf16, f16};

/// The bits of a sum that is cut toward zero.
pub(crate) fn f32_toward_zero(x: f64) -> u64 {
    round::F32.round(x, round::Round::Zero)
}

/// A register of a warp: the value of each lane.
pub(crate) type Row = [u64; 32];

/// All lanes.
pub(crate) const ALL: u32 = u32::MAX;

/// The lanes of a mask.
#[inline(always)]
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            lane
        })
    })
}

type Lanes = Box<dyn Fn(&[&Row; 4], u32, &mut Row) + Send + Sync>;

/// From up to four rows to one.
pub(crate) struct Compute {
    pub(crate) n_sources: usize,
    /// Computes the lanes of a mask; what it leaves in the others is not used.
    pub(crate) run: Lanes,
    /// Products and sums of floats in one lane.
    pub(crate) flops: u32,
}

/// What a text may ask for beyond its instructions.
#[derive(Clone, Copy)]
pub(crate) struct Allowed {
    /// Compute capability of `.target`, times ten.
    pub(crate) target: u32,
    /// Whether `.approx` is computed by the host's library, which has other last bits than a card.
    pub(crate) approximate: bool,
}

/// The definition of a form, or nothing if it is not known. `width` is that of the register that takes the result.
pub(crate) fn compute(form: &str, width: u32, allowed: Allowed) -> Option<Compute> {
    if form.starts_with("cvt.") {
        return convert::convert(form, width, allowed);
    }
    match form.rsplit_once('.')?.1 {
        "f32" | "f64" => floats::compute(form, allowed),
        "f16" | "f16x2" | "bf16" | "bf16x2" => halves::compute(form, allowed),
        _ => integers::compute(form),
    }
}

#[inline(always)]
fn each(mask: u32, of_lane: impl FnMut(usize)) {
    if mask == ALL {
        (0..32).for_each(of_lane);
    } else {
        lanes(mask).for_each(of_lane);
    }
}

fn one(f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Compute {
    Compute { n_sources: 1, flops: 0, run: Box::new(move |s, mask, out| each(mask, |l| out[l] = f(s[0][l]))) }
}

fn two(f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Compute {
    Compute { n_sources: 2, flops: 0, run: Box::new(move |s, mask, out| each(mask, |l| out[l] = f(s[0][l], s[1][l]))) }
}

fn three(f: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static) -> Compute {
    let run: Lanes = Box::new(move |s, mask, out| each(mask, |l| out[l] = f(s[0][l], s[1][l], s[2][l])));
    Compute { n_sources: 3, flops: 0, run }
}

fn four(f: impl Fn(u64, u64, u64, u64) -> u64 + Send + Sync + 'static) -> Compute {
    let run: Lanes = Box::new(move |s, mask, out| each(mask, |l| out[l] = f(s[0][l], s[1][l], s[2][l], s[3][l])));
    Compute { n_sources: 4, flops: 0, run }
}

/// A type of integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

impl Int {
    /// From `u8` to `s64`; untyped bits count as unsigned.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let signed = match name.as_bytes().first()? {
            b's' => true,
            b'u' | b'b' => false,
            _ => return None,
        };
        let bits = match &name[1..] {
            "8" => 8,
            "16" => 16,
            "32" => 32,
            "64" => 64,
            _ => return None,
        };
        Some(Self { bits, signed })
    }

    /// The lowest bits.
    #[inline(always)]
    pub(crate) fn cut(self, v: u64) -> u64 {
        v & (u64::MAX >> (64 - self.bits))
    }

    #[inline(always)]
    pub(crate) fn sign_extended(self, v: u64) -> i64 {
        ((v << (64 - self.bits)) as i64) >> (64 - self.bits)
    }

    /// The number that the lowest bits stand for.
    #[inline(always)]
    pub(crate) fn value(self, v: u64) -> i128 {
        if self.signed { self.sign_extended(v).into() } else { self.cut(v).into() }
    }

    fn least(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    fn most(self) -> i128 {
        (1 << (self.bits - u32::from(self.signed))) - 1
    }

    /// The nearest number of the type, as its bits.
    fn saturate(self, v: i128) -> u64 {
        self.cut(v.clamp(self.least(), self.most()) as u64)
    }

    /// Bits of the type in a register of some width: numbers are extended, as the type says.
    #[inline(always)]
    pub(crate) fn widened(self, v: u64, width: u32) -> u64 {
        if self.signed && width > self.bits {
            Self { bits: width, signed: false }.cut(self.sign_extended(v) as u64)
        } else {
            self.cut(v)
        }
    }
}
