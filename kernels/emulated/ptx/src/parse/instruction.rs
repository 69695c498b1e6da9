//! One instruction.

use super::kernel::Body;
use super::text::operands;
use crate::code::{Action, Barrier, Collective, Reduce, Shuffle, Together, Vote};
use crate::execute::SHARED_WINDOW;
use crate::ops::{self, Compute, Int, Logic};

pub(super) const NOT_KNOWN: &str = "a form of an instruction that is not known";

impl Body {
    pub(super) fn instruction(&mut self, text: &str, line: u32) -> Result<Action, String> {
        let (form, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let list = operands(rest);
        let base = form.split('.').next().unwrap_or_default();
        match base {
            "ld" | "st" | "atom" | "red" | "cp" => return self.memory(form, &list),
            "shfl" | "vote" | "match" | "redux" | "mma" => return self.together(form, &list),
            "bar" | "barrier" => return self.barrier(form, &list),
            "setp" | "testp" => return self.compare(form, &list),
            "selp" => return self.select(form, &list),
            _ => {}
        }
        match (form, list.as_slice()) {
            ("bra" | "bra.uni", [label]) => {
                self.jumps.push((self.kernel.code.len(), (*label).to_owned(), line));
                Ok(Action::Nothing)
            }
            ("brx.idx" | "brx.idx.uni", [index, table]) => {
                self.jumps.push((self.kernel.code.len(), (*table).to_owned(), line));
                Ok(Action::Table { index: self.source(index)?, targets: Vec::new() })
            }
            ("ret" | "ret.uni" | "exit", []) => Ok(Action::Return),
            ("trap", []) => Ok(Action::Trap),
            ("membar.cta" | "membar.gl" | "membar.sys", []) => Ok(Action::Nothing),
            ("fence.sc.cta" | "fence.sc.gpu" | "fence.sc.sys", []) => Ok(Action::Nothing),
            ("fence.acq_rel.cta" | "fence.acq_rel.gpu" | "fence.acq_rel.sys", []) => Ok(Action::Nothing),
            ("mov.b32" | "mov.b64", [to, from]) if to.starts_with('{') => self.unpack(form, to, from),
            ("mov.b32" | "mov.b64", [to, from]) if from.starts_with('{') => self.pack(form, to, from),
            ("mov.pred" | "not.pred", [to, from]) => {
                let mut of = self.predicate(from)?;
                of.negated ^= form == "not.pred";
                Ok(Action::Logic { logic: Logic::And, sources: [of; 2], to: self.predicate_target(to)? })
            }
            ("and.pred" | "or.pred" | "xor.pred", [to, a, b]) => {
                let logic = Logic::named(form.trim_end_matches(".pred")).ok_or(NOT_KNOWN)?;
                let sources = [self.predicate(a)?, self.predicate(b)?];
                Ok(Action::Logic { logic, sources, to: self.predicate_target(to)? })
            }
            (_, [to, from @ ..]) => self.compute(form, to, from),
            _ => Err(NOT_KNOWN.into()),
        }
    }

    fn compute(&mut self, form: &str, to: &str, from: &[&str]) -> Result<Action, String> {
        let (to, width) = self.target(to)?;
        let compute = match form {
            "cvta.to.global.u64" | "cvta.global.u64" => window(0),
            "cvta.shared.u64" => window(SHARED_WINDOW),
            "cvta.to.shared.u64" => window(SHARED_WINDOW.wrapping_neg()),
            _ => ops::compute(form, width, self.allowed).ok_or(NOT_KNOWN)?,
        };
        let is_float = matches!(form.rsplit_once('.').map(|f| f.1), Some("f32" | "f64" | "f16" | "f16x2" | "bf16x2"));
        let unrounded = matches!(form.split_once('.').map(|f| f.0), Some("add" | "sub" | "mul"));
        self.kernel.may_be_fused += usize::from(is_float && unrounded && form.matches('.').count() == 1);
        self.kernel.not_exact += usize::from(form.contains(".approx") || form.contains(".full"));
        if compute.n_sources != from.len() {
            return Err(format!("{} operands, expected {}", from.len() + 1, compute.n_sources + 1));
        }
        let mut sources = [0; 4];
        for (to, text) in sources.iter_mut().zip(from) {
            *to = self.source(text)?;
        }
        Ok(Action::Compute { compute, sources, to })
    }

    fn compare(&mut self, form: &str, list: &[&str]) -> Result<Action, String> {
        let compare = ops::compare(form).ok_or(NOT_KNOWN)?;
        let n = compare.n_sources;
        if list.len() != 1 + n + usize::from(compare.join.is_some()) {
            return Err(format!("{} operands are too few or too many", list.len()));
        }
        let mut sources = [0; 4];
        for (to, text) in sources.iter_mut().zip(&list[1..=n]) {
            *to = self.source(text)?;
        }
        let joined = compare.join.map(|_| self.predicate(list[n + 1])).transpose()?;
        let (to, other) = self.pair(list[0]);
        let other = other.map(|q| self.predicate_target(q)).transpose()?;
        Ok(Action::Compare { compare, sources, joined, to: self.predicate_target(to)?, other })
    }

    fn pair<'a>(&self, text: &'a str) -> (&'a str, Option<&'a str>) {
        text.split_once('|').map_or((text, None), |(a, b)| (a.trim(), Some(b.trim())))
    }

    fn select(&mut self, form: &str, list: &[&str]) -> Result<Action, String> {
        let bits = match form.strip_prefix("selp.").ok_or(NOT_KNOWN)? {
            "f32" => 32,
            "f64" => 64,
            name => Int::named(name).filter(|int| int.bits > 8).ok_or(NOT_KNOWN)?.bits,
        };
        let [to, a, b, by] = list else { return Err("expected four operands".into()) };
        let sources = [self.source(a)?, self.source(b)?];
        Ok(Action::Select { sources, by: self.predicate(by)?, bits, to: self.target(to)?.0 })
    }

    fn unpack(&mut self, form: &str, to: &str, from: &str) -> Result<Action, String> {
        let parts = braced(to);
        let bits = part_bits(form, parts.len())?;
        let to = parts.iter().map(|p| (*p != "_").then(|| self.target(p).map(|t| t.0)).transpose());
        let to = to.collect::<Result<_, _>>()?;
        Ok(Action::Unpack { from: self.source(from)?, bits, to })
    }

    fn pack(&mut self, form: &str, to: &str, from: &str) -> Result<Action, String> {
        let parts = braced(from);
        let bits = part_bits(form, parts.len())?;
        let parts = self.sources(&parts)?;
        Ok(Action::Pack { parts, bits, to: self.target(to)?.0 })
    }

    pub(super) fn sources(&mut self, list: &[&str]) -> Result<Vec<u16>, String> {
        list.iter().map(|text| self.source(text)).collect()
    }

    fn barrier(&mut self, form: &str, list: &[&str]) -> Result<Action, String> {
        if let ("bar.warp.sync", [mask]) = (form, list) {
            return Ok(Action::Together(Together { what: Collective::Wait, mask: self.source(mask)? }));
        }
        let form = form.replacen("barrier.", "bar.", 1).replace(".aligned", "").replace(".cta", "");
        let barrier = match (form.as_str(), list) {
            ("bar.sync", ["0"]) => Barrier::Wait,
            ("bar.red.popc.u32", [to, "0", of]) => Barrier::Count { of: self.predicate(of)?, to: self.target(to)?.0 },
            ("bar.red.and.pred", [to, "0", of]) => {
                Barrier::All { of: self.predicate(of)?, to: self.predicate_target(to)? }
            }
            ("bar.red.or.pred", [to, "0", of]) => {
                Barrier::Any { of: self.predicate(of)?, to: self.predicate_target(to)? }
            }
            _ => return Err("a barrier other than number 0 of all threads is not known".into()),
        };
        Ok(Action::Barrier(barrier))
    }

    fn together(&mut self, form: &str, list: &[&str]) -> Result<Action, String> {
        if let Some(types) = form.strip_prefix("mma.sync.aligned.m16n8k16.row.col.f32.") {
            return self.multiply(types, list);
        }
        let Some((mask, list)) = list.split_last() else { return Err("no operands".into()) };
        let mask = self.source(mask)?;
        let shuffle = |how| (how, 4);
        let (how, n) = match form {
            "shfl.sync.idx.b32" => shuffle(Some(Shuffle::Index)),
            "shfl.sync.bfly.b32" => shuffle(Some(Shuffle::Butterfly)),
            "shfl.sync.up.b32" => shuffle(Some(Shuffle::Up)),
            "shfl.sync.down.b32" => shuffle(Some(Shuffle::Down)),
            _ => (None, 2),
        };
        if list.len() != n {
            return Err(format!("{} operands, expected {}", list.len() + 1, n + 1));
        }
        let (to, second) = self.pair(list[0]);
        let second = second.map(|p| self.predicate_target(p)).transpose()?;
        if let Some(how) = how {
            let [value, by, clamp] = [self.source(list[1])?, self.source(list[2])?, self.source(list[3])?];
            let what = Collective::Shuffle { how, value, by, clamp, to: self.target(to)?.0, inside: second };
            return Ok(Action::Together(Together { what, mask }));
        }
        let is_match_all = form.starts_with("match.all");
        if second.is_some() && !is_match_all {
            return Err(NOT_KNOWN.into());
        }
        let of = list[1];
        let vote = |body: &Self, how| {
            Ok::<_, String>(Collective::Vote { how, of: body.predicate(of)?, to: body.predicate_target(to)? })
        };
        let what = match form {
            "vote.sync.ballot.b32" => Collective::Ballot { of: self.predicate(of)?, to: self.target(to)?.0 },
            "vote.sync.all.pred" => vote(self, Vote::All)?,
            "vote.sync.any.pred" => vote(self, Vote::Any)?,
            "vote.sync.uni.pred" => vote(self, Vote::Uniform)?,
            "match.any.sync.b32" | "match.any.sync.b64" | "match.all.sync.b32" | "match.all.sync.b64" => {
                let int = Int::named(&form[form.len() - 3..]).ok_or(NOT_KNOWN)?;
                let (value, to) = (self.source(of)?, self.target(to)?.0);
                match is_match_all {
                    true => Collective::MatchAll { int, value, to, all: second },
                    false => Collective::MatchAny { int, value, to },
                }
            }
            _ => {
                let how = match form.strip_prefix("redux.sync.").ok_or(NOT_KNOWN)? {
                    "add.u32" | "add.s32" => Reduce::Add,
                    "min.u32" => Reduce::Min,
                    "max.u32" => Reduce::Max,
                    "min.s32" => Reduce::MinSigned,
                    "max.s32" => Reduce::MaxSigned,
                    "and.b32" => Reduce::And,
                    "or.b32" => Reduce::Or,
                    "xor.b32" => Reduce::Xor,
                    _ => return Err(NOT_KNOWN.into()),
                };
                Collective::Reduce { how, value: self.source(of)?, to: self.target(to)?.0 }
            }
        };
        Ok(Action::Together(Together { what, mask }))
    }

    fn multiply(&mut self, types: &str, list: &[&str]) -> Result<Action, String> {
        let half = match types {
            "bf16.bf16.f32" => ops::bf16,
            "f16.f16.f32" => ops::f16,
            _ => return Err(NOT_KNOWN.into()),
        };
        let [to, a, b, c] = list else { return Err("expected four operands".into()) };
        self.kernel.not_exact += 1;
        let to: Vec<u16> = braced(to).iter().map(|t| self.target(t).map(|t| t.0)).collect::<Result<_, _>>()?;
        let [a, b, c] = [self.sources(&braced(a))?, self.sources(&braced(b))?, self.sources(&braced(c))?];
        let wrong = "registers that are too few or too many";
        let what = Collective::Multiply {
            half,
            a: a.try_into().map_err(|_| wrong)?,
            b: b.try_into().map_err(|_| wrong)?,
            c: c.try_into().map_err(|_| wrong)?,
            to: to.try_into().map_err(|_| wrong)?,
        };
        Ok(Action::Together(Together { what, mask: self.source("-1")? }))
    }
}

fn window(by: u64) -> Compute {
    Compute {
        n_sources: 1,
        flops: 0,
        run: Box::new(move |s, _, out| out.iter_mut().zip(s[0]).for_each(|(o, a)| *o = a.wrapping_add(by))),
    }
}

pub(super) fn braced(text: &str) -> Vec<&str> {
    match text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        Some(inner) => operands(inner),
        None => vec![text],
    }
}

fn part_bits(form: &str, n: usize) -> Result<u32, String> {
    match (form, n) {
        ("mov.b32", 2) | ("mov.b64", 4) => Ok(16),
        ("mov.b64", 2) => Ok(32),
        ("mov.b32", 4) | ("mov.b64", 8) => Ok(8),
        _ => Err("so many parts are not known".into()),
    }
}
