//! From text to kernels.

mod instruction;
mod kernel;
mod memory;
mod text;

pub(crate) use kernel::{ALWAYS, NEVER};

use crate::code::Instruction;
use crate::ops::Allowed;
use kernel::Body;
use std::fmt;
use text::{Piece, What};

/// An entry of a module.
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Offset and bytes of each parameter.
    pub params: Vec<(usize, usize)>,
    /// Bytes of shared memory that the text declares.
    pub static_shared: usize,
    /// Most threads of a block, where the text limits them.
    pub max_threads: Option<u32>,
    /// Sums and products of floats that the text does not round (`mul.f32`): a driver may fuse them.
    pub may_be_fused: usize,
    /// Instructions whose last bits the architecture leaves open: `.approx` and `mma`.
    pub not_exact: usize,
    pub(crate) code: Vec<Instruction>,
    pub(crate) n_rows: usize,
    pub(crate) n_predicates: usize,
    /// Rows with the same value in all lanes.
    pub(crate) constants: Vec<(u16, Constant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Number(u64),
    /// Where the shared memory begins whose size the launch gives.
    Dynamic,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} instructions)", self.name, self.code.len())
    }
}

/// The kernels of a text.
#[derive(Debug)]
pub struct Module {
    /// In the order of the text.
    pub kernels: Vec<Kernel>,
}

/// What the device that loads a text can do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Compute capability.
    pub capability: (u32, u32),
    /// The newest `.version` that its driver knows.
    pub newest: (u32, u32),
    /// Accept `.approx`: its last bits are not a card's.
    pub approximate: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { capability: (9, 0), newest: (9, 0), approximate: false }
    }
}

/// Why a text is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not begin as PTX does.
    NotPtx,
    /// Its `.version` is newer than the driver.
    Version {
        /// As the text states it.
        found: String,
        /// The newest that is known.
        newest: (u32, u32),
    },
    /// Something in a line.
    Line {
        /// From 1.
        number: u32,
        /// The statement.
        statement: String,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPtx => write!(f, "no PTX: a text begins with .version"),
            Self::Version { found, newest: (major, minor) } => {
                write!(f, ".version {found} is newer than this driver, which knows {major}.{minor}")
            }
            Self::Line { number, statement, what } => write!(f, "line {number}: {what}: {statement}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// The first `.version` that knows a compute capability (times ten).
fn oldest_version(target: u32) -> Option<(u32, u32)> {
    Some(match target {
        80 => (7, 0),
        86 => (7, 1),
        87 => (7, 4),
        89 | 90 => (7, 8),
        100 | 120 => (8, 6),
        50..80 => (4, 0),
        _ => return None,
    })
}

impl Module {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// What a driver refuses, and each form of an instruction that is not done here to the bit.
    pub fn parse(text: &str, options: Options) -> Result<Self, Refusal> {
        let (pieces, left) = text::pieces(&text.replace(|c: char| !c.is_ascii(), "?"));
        let refuse = |number: u32, statement: &str, what: &str| {
            Err(Refusal::Line { number, statement: statement.into(), what: what.into() })
        };
        let header = |at: usize, name: &str| match pieces.get(at) {
            Some(Piece { line, what: What::Statement(s) }) => s.strip_prefix(name).map(|rest| (*line, rest.trim())),
            _ => None,
        };
        let Some((line, stated)) = header(0, ".version") else { return Err(Refusal::NotPtx) };
        if let Some((line, number)) = text.lines().zip(1..).find(|(line, _)| !line.is_ascii()) {
            return refuse(number, line, "a character that is not ASCII");
        }
        let number = |s: &str| s.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let Some(version) = number(stated) else { return refuse(line, stated, "no version") };
        if version > options.newest {
            return Err(Refusal::Version { found: stated.into(), newest: options.newest });
        }
        let Some((line, named)) = header(1, ".target") else { return refuse(line, stated, "no target after it") };
        let name = named.split(',').next().unwrap_or_default().trim();
        let target = name.strip_prefix("sm_").map(|n| n.trim_end_matches('a')).and_then(|n| n.parse::<u32>().ok());
        let Some((target, oldest)) = target.and_then(|t| Some((t, oldest_version(t)?))) else {
            return refuse(line, named, "an unknown target");
        };
        let own = 10 * options.capability.0 + options.capability.1;
        // A name that ends with `a` runs on that capability alone.
        if target > own || version < oldest || (name.ends_with('a') && target != own) {
            return refuse(line, named, "a target that this version or this device does not have");
        }
        let allowed = Allowed { target, approximate: options.approximate };
        if let Some((number, statement)) = left {
            return refuse(number, &statement, "the text ends within a statement");
        }
        Reader { version, allowed, dynamic: None, body: None, kernels: Vec::new() }.read(pieces.into_iter().skip(2))
    }

    /// The kernel of a name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }
}

struct Reader {
    version: (u32, u32),
    allowed: Allowed,
    /// The name of the shared memory whose size the launch gives.
    dynamic: Option<String>,
    body: Option<Body>,
    kernels: Vec<Kernel>,
}

impl Reader {
    fn read(mut self, pieces: impl Iterator<Item = Piece>) -> Result<Module, Refusal> {
        for Piece { line: number, what } in pieces {
            let statement = match &what {
                What::Statement(s) | What::Open(s) | What::Label(s) => s.clone(),
                What::Close => "}".into(),
            };
            self.piece(number, what).map_err(|what| Refusal::Line { number, statement, what })?;
        }
        match self.body {
            Some(_) => {
                Err(Refusal::Line { number: 0, statement: String::new(), what: "a kernel without an end".into() })
            }
            None => Ok(Module { kernels: self.kernels }),
        }
    }

    fn piece(&mut self, number: u32, what: What) -> Result<(), String> {
        if let What::Statement(s) = &what {
            let directive = s.split_whitespace().next().unwrap_or_default();
            match directive {
                ".pragma" if s.contains("used_bytes_mask") && self.version < (8, 3) => {
                    return Err("a pragma of .version 8.3".into());
                }
                ".address_size" | ".file" | ".loc" | ".pragma" => return Ok(()),
                ".extern" if s.contains(".shared") => {
                    self.dynamic = s.split_whitespace().last().map(|name| name.trim_end_matches("[]").to_owned());
                    return Ok(());
                }
                _ => {}
            }
        }
        let Some(body) = &mut self.body else {
            let What::Open(header) = what else { return Err("not known outside of a kernel".into()) };
            let body = Body::begin(&header, self.dynamic.as_deref(), self.allowed)?;
            if self.kernels.iter().any(|k| k.name == body.name()) {
                return Err("two kernels of one name".into());
            }
            self.body = Some(body);
            return Ok(());
        };
        match what {
            What::Open(header) if header.is_empty() => body.open(),
            What::Open(_) => return Err("not known in a kernel".into()),
            What::Label(label) => body.label(label)?,
            What::Statement(s) => body.statement(&s, number)?,
            What::Close => {
                if body.close() {
                    self.kernels.extend(self.body.take().map(Body::end).transpose()?);
                }
            }
        }
        Ok(())
    }
}
