//! What the lanes of a warp do together.

use super::Machine;
use super::warp::Warp;
use crate::code::{Action, Collective, Reduce, Shuffle, Together, Vote};
use crate::fault::{Fault, Kind};
use crate::ops::{Int, Row, f32_toward_zero, lanes};
use crate::parse::Kernel;

const B32: Int = Int { bits: 32, signed: false };
const S32: Int = Int { bits: 32, signed: true };

impl Warp {
    /// Lanes reach a warp operation. Whether all lanes of their mask are these, so that it is done; else they wait.
    pub(super) fn together(
        &mut self,
        machine: &mut Machine,
        together: &Together,
        pc: u32,
        active: u32,
    ) -> Result<bool, Fault> {
        let masks = self.rows[usize::from(together.mask)];
        let wanted = masks[active.trailing_zeros() as usize] as u32;
        if lanes(active).any(|l| masks[l] as u32 >> l & 1 == 0) {
            return self.apart(format!("a lane that is not in its own mask {wanted:#x}"));
        }
        if wanted == active && lanes(active).all(|l| masks[l] as u32 == wanted) {
            self.perform(machine, &together.what, wanted)?;
            return Ok(true);
        }
        lanes(active).for_each(|l| self.pc[l] = pc);
        self.gathered |= active;
        for lane in lanes(active) {
            if self.gathered >> lane & 1 == 1 {
                self.try_gathered(machine, masks[lane] as u32, pc)?;
            }
        }
        Ok(false)
    }

    fn apart<T>(&self, text: String) -> Result<T, Fault> {
        Err(Fault::new(Kind::Convergence, format!("warp {}: {text}", self.number)))
    }

    /// Does an operation whose lanes have all come.
    fn try_gathered(&mut self, machine: &mut Machine, wanted: u32, pc: u32) -> Result<(), Fault> {
        if wanted & !self.live != 0 {
            let what = if wanted & !self.exist != 0 { "do not exist" } else { "are done" };
            return self.apart(format!("lanes {:#x} of the mask {wanted:#x} {what}", wanted & !self.live));
        }
        let kernel: &Kernel = machine.kernel;
        let here = |l: usize| of(kernel, self.pc[l]);
        let Some(own) = of(kernel, pc) else { unreachable!("lanes wait at warp operations alone") };
        // Lanes may wait for each other at different lines, but what they exchange has to be one operation. A lane with
        // another mask waits for others first.
        let is_wait = matches!(own.what, Collective::Wait);
        let has_come = |l: usize| {
            self.gathered >> l & 1 == 1
                && here(l).is_some_and(|t| {
                    (self.pc[l] == pc || (is_wait && matches!(t.what, Collective::Wait)))
                        && self.rows[usize::from(t.mask)][l] as u32 == wanted
                })
        };
        if !lanes(wanted).all(has_come) {
            return Ok(());
        }
        self.perform(machine, &own.what, wanted)?;
        self.gathered &= !wanted;
        lanes(wanted).for_each(|l| self.pc[l] += 1);
        Ok(())
    }

    fn perform(&mut self, machine: &mut Machine, what: &Collective, mask: u32) -> Result<(), Fault> {
        machine.counts.together += 1;
        let n_lanes = mask.count_ones();
        match what {
            Collective::Wait => self.wait(mask),
            Collective::Ballot { of, to } => {
                let bits = self.predicate(*of) & mask;
                self.set_row(*to, &[bits.into(); 32], mask);
            }
            Collective::Vote { how, of, to } => {
                let n = (self.predicate(*of) & mask).count_ones();
                let is = match how {
                    Vote::All => n == n_lanes,
                    Vote::Any => n > 0,
                    Vote::Uniform => n == 0 || n == n_lanes,
                };
                self.set_predicate(*to, if is { mask } else { 0 }, mask);
            }
            Collective::MatchAny { int, value, to } => {
                let values = self.rows[usize::from(*value)].map(|v| int.cut(v));
                let same = |l: usize| lanes(mask).filter(|&o| values[o] == values[l]).fold(0, |m, o| m | 1 << o);
                let out = std::array::from_fn(same);
                self.set_row(*to, &out, mask);
            }
            Collective::MatchAll { int, value, to, all } => {
                let values = self.rows[usize::from(*value)].map(|v| int.cut(v));
                let first = values[mask.trailing_zeros() as usize];
                let is = lanes(mask).all(|l| values[l] == first);
                self.set_row(*to, &[if is { mask.into() } else { 0 }; 32], mask);
                if let Some(all) = all {
                    self.set_predicate(*all, if is { mask } else { 0 }, mask);
                }
            }
            Collective::Reduce { how, value, to } => {
                let values = &self.rows[usize::from(*value)];
                let out = reduce(*how, lanes(mask).map(|l| values[l]));
                self.set_row(*to, &[out; 32], mask);
            }
            Collective::Shuffle { how, value, by, clamp, to, inside } => {
                let row = |r: u16| &self.rows[usize::from(r)];
                let (values, by, clamp) = (row(*value), row(*by), row(*clamp));
                let (mut out, mut within): (Row, u32) = ([0; 32], 0);
                for lane in lanes(mask) {
                    let from = source(*how, lane as u32, by[lane] as u32, clamp[lane] as u32);
                    let read = from.unwrap_or(lane as u32);
                    if mask >> read & 1 == 0 {
                        return self
                            .apart(format!("lane {lane} reads lane {read}, which is not in the mask {mask:#x}"));
                    }
                    out[lane] = B32.cut(values[read as usize]);
                    within |= u32::from(from.is_some()) << lane;
                }
                self.set_row(*to, &out, mask);
                if let Some(inside) = inside {
                    self.set_predicate(*inside, within, mask);
                }
            }
            Collective::Multiply { half, a, b, c, to } => {
                let out = multiply(&self.rows, *half, a, b, c);
                to.iter().zip(&out).for_each(|(to, row)| self.set_row(*to, row, mask));
                machine.counts.flops += 2 * 16 * 8 * 16;
            }
        }
        Ok(())
    }

    /// Orders the accesses of the lanes of a mask.
    fn wait(&mut self, mask: u32) {
        let mut joined = [0; 32];
        for l in lanes(mask) {
            for (joined, &seen) in joined.iter_mut().zip(&self.seen[l]) {
                *joined = seen.max(*joined);
            }
        }
        lanes(mask).for_each(|l| joined[l] = self.stamp);
        lanes(mask).for_each(|l| self.seen[l] = joined);
        self.stamp += 1;
        self.moment = 0;
    }
}

fn of(kernel: &Kernel, pc: u32) -> Option<&Together> {
    match &kernel.code[pc as usize].action {
        Action::Together(together) => Some(together),
        _ => None,
    }
}

/// The lane that a lane reads in a shuffle, if it is inside of its segment.
fn source(how: Shuffle, lane: u32, by: u32, clamp: u32) -> Option<u32> {
    let (segment, clamp, by) = (clamp >> 8 & 31, clamp & 31, by & 31);
    let most = lane & segment | clamp & !segment;
    match how {
        Shuffle::Index => Some(lane & segment | by & !segment).filter(|&j| j <= most),
        Shuffle::Butterfly => Some(lane ^ by).filter(|&j| j <= most),
        Shuffle::Up => lane.checked_sub(by).filter(|&j| j >= most),
        Shuffle::Down => Some(lane + by).filter(|&j| j <= most),
    }
}

fn reduce(how: Reduce, values: impl Iterator<Item = u64>) -> u64 {
    let signed = |v: u64| S32.sign_extended(v);
    let values = values.map(|v| B32.cut(v));
    let out = match how {
        Reduce::Add => values.reduce(u64::wrapping_add),
        Reduce::Min => values.min(),
        Reduce::Max => values.max(),
        Reduce::MinSigned => values.min_by_key(|&v| signed(v)),
        Reduce::MaxSigned => values.max_by_key(|&v| signed(v)),
        Reduce::And => values.reduce(|a, b| a & b),
        Reduce::Or => values.reduce(|a, b| a | b),
        Reduce::Xor => values.reduce(|a, b| a ^ b),
    };
    B32.cut(out.unwrap_or(0))
}

/// m16n8k16, row by column: each lane holds four of the 16 x 8 sums.
fn multiply(rows: &[Row], half: fn(u64) -> f64, a: &[u16; 4], b: &[u16; 2], c: &[u16; 4]) -> [Row; 4] {
    let row = |r: u16| &rows[usize::from(r)];
    let value = |r: u16, lane: usize, high: usize| half(row(r)[lane] >> (16 * high));
    let mut out = [[0; 32]; 4];
    for lane in 0..32 {
        for (i, out) in out.iter_mut().enumerate() {
            let (m, n) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
            let products: [(f64, f64); 16] = std::array::from_fn(|k| {
                let of_a = value(a[m / 8 + k / 8 * 2], m % 8 * 4 + k % 8 / 2, k % 2);
                let of_b = value(b[k / 8], n * 4 + k % 8 / 2, k % 2);
                (of_a, of_b)
            });
            out[lane] = sum(&products, f64::from(f32::from_bits(row(c[i])[lane] as u32)));
        }
    }
    out
}

/// As an H100 adds: products are exact, all are cut toward zero at the same place, 25 bits below the largest of their
/// exponents (a product's is the sum of its factors'), then added exactly, and the sum is cut toward zero.
fn sum(products: &[(f64, f64); 16], start: f64) -> u64 {
    let exact: f64 = products.iter().map(|(a, b)| a * b).sum::<f64>() + start;
    if !exact.is_finite() {
        return f32_toward_zero(exact);
    }
    let exponent = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let of_products = products.iter().filter(|(a, b)| *a != 0.0 && *b != 0.0).map(|(a, b)| exponent(*a) + exponent(*b));
    let of_start = Some(exponent(start)).filter(|_| start != 0.0);
    let Some(largest) = of_products.chain(of_start).max() else { return (start as f32).to_bits().into() };
    let unit = 2f64.powi(largest - 25);
    let cut = |x: f64| (x / unit).trunc();
    let total = products.iter().map(|(a, b)| cut(a * b)).sum::<f64>() + cut(start);
    if total == 0.0 { 0 } else { f32_toward_zero(total * unit) }
}
