//! `--device`: where answers are computed.

use crate::context::Context;
use crate::error::{CliError, chain};
#[cfg(not(feature = "cuda"))]
pub(crate) use absent::Device;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::Instant;
use xc_ann::{Filter, Index, QueryError, SearchParams};
use xc_dense::DenseRows;
#[cfg(feature = "cuda")]
pub(crate) use xc_kernels::Device;
use xc_model::{Model, SearchOptions};
use xc_sparse::rank::RankedBatch;

#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct DeviceArgs {
    /// Where answers are computed: cpu, cuda or cuda:N (an NVIDIA card, by default number 0), or auto (card 0 if it can,
    /// else the CPU, which is said). The answers have the same bytes, but those of trees whose post-processor is a
    /// sigmoid: their ranking scores may differ by 4 units in the last place a level
    #[arg(long, value_name = "DEVICE", default_value_t = Place::Cpu, value_parser = parse,
        hide = crate::described::is_left_out(cfg!(feature = "cuda")))]
    device: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cpu,
    Cuda(usize),
    Auto,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(0) => f.write_str("cuda"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

fn parse(text: &str) -> Result<Place, String> {
    let number = |text: &str| text.strip_prefix("cuda:")?.parse::<u16>().ok();
    match text {
        "cpu" => Ok(Place::Cpu),
        "cuda" => Ok(Place::Cuda(0)),
        "auto" => Ok(Place::Auto),
        _ => number(text)
            .map(|number| Place::Cuda(number.into()))
            .ok_or_else(|| format!("got {text:?}, expected cpu, cuda, cuda:N or auto")),
    }
}

impl DeviceArgs {
    /// The CPU computes the answers: said where either will do, else refused (exit code 2).
    pub(crate) fn stay(self, why: impl fmt::Display, context: &Context) -> Result<(), CliError> {
        match self.device {
            Place::Cpu => {}
            Place::Auto => context.note(format_args!("--device auto: the CPU answers: {why}")),
            place @ Place::Cuda(_) => return Err(CliError::usage(format_args!("--device {place}: {why}"))),
        }
        Ok(())
    }

    /// The device that is wanted; none where the CPU answers.
    ///
    /// # Errors
    /// Exit code 3: what is missing, unless the CPU will do, too.
    pub(crate) fn open(self, context: &Context) -> Result<Option<Device>, CliError> {
        match self.device {
            Place::Cpu => Ok(None),
            Place::Auto => self.done(Device::open(0), context),
            Place::Cuda(number) => self.done(Device::open(number), context),
        }
    }

    /// What was done on the device; nothing where it failed and the CPU will do, too.
    ///
    /// # Errors
    /// As [`DeviceArgs::open`].
    pub(crate) fn done<T>(
        self,
        outcome: Result<T, impl Error + 'static>,
        context: &Context,
    ) -> Result<Option<T>, CliError> {
        match (outcome, self.device) {
            (Ok(done), _) => Ok(Some(done)),
            (Err(error), Place::Auto) => self.stay(chain(&error), context).map(|()| None),
            (Err(error), place) => Err(CliError::missing(format_args!("--device {place}: {}", chain(&error)))),
        }
    }

    /// Brings a model to the device that is wanted. `labels` is the option by which labels are given, if one is.
    ///
    /// # Errors
    /// As [`DeviceArgs::open`]; an option that keeps all answers on the CPU (exit code 2).
    pub(crate) fn put(
        self,
        model: &mut Model,
        search: &SearchOptions,
        labels: Option<&str>,
        context: &Context,
    ) -> Result<(), CliError> {
        #[cfg(feature = "cuda")]
        {
            use xc_model::{Candidates, QueryOptions};
            let candidates = if labels.is_some() { Candidates::Labels(&[]) } else { Candidates::All };
            let options = QueryOptions { candidates, search: *search, ..QueryOptions::default() };
            if let Some(option) = model.bound_to_cpu_by(&options).filter(|_| self.device != Place::Cpu) {
                let (option, kind) =
                    (labels.filter(|_| option == "candidates").unwrap_or(option), model.describe().kind);
                return self.stay(format_args!("--{option} of a model of kind {kind:?} stays on the CPU"), context);
            }
            if let Some(device) = self.open(context)? {
                self.done(model.put_on(&device), context)?;
            }
        }
        #[cfg(not(feature = "cuda"))]
        if let Some(device) = self.open(context)? {
            let _ = (model, search, labels);
            match device {}
        }
        Ok(())
    }
}

impl DeviceArgs {
    /// Says which batches the CPU answered though the model is on a device.
    pub(crate) fn report(self, model: &Model, context: &Context) {
        #[cfg(feature = "cuda")]
        if let Some(why) = model.left_to_cpu() {
            context
                .note(format_args!("--device {}: batches that have no room there are the CPU's: {why}", self.device));
        }
        #[cfg(not(feature = "cuda"))]
        let _ = (model, context);
    }
}

/// Exact answers, and the seconds that the search for them took.
pub(crate) struct Exact {
    pub(crate) found: RankedBatch,
    pub(crate) seconds: f64,
}

impl DeviceArgs {
    /// The exact answers of an index, of the device that is wanted.
    ///
    /// # Errors
    /// As [`DeviceArgs::open`].
    pub(crate) fn exact(
        self,
        index: &Index,
        queries: DenseRows<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
        context: &Context,
    ) -> Result<Exact, CliError> {
        if let Some(device) = self.open(context)? {
            let answers = context.on_threads(|| exact_on(&device, index, queries, k, filter));
            if let Some(answers) = self.done(answers, context)? {
                return Ok(answers);
            }
        }
        let begin = Instant::now();
        let found = context.on_threads(|| index.exact(queries, k, filter));
        Ok(Exact { found, seconds: begin.elapsed().as_secs_f64() })
    }
}

impl DeviceArgs {
    /// The answers of an index from cells, of the device that is wanted; none where the CPU answers.
    ///
    /// # Errors
    /// As [`DeviceArgs::open`]; a query that has no answers anywhere, of the file `path`.
    pub(crate) fn cells(
        self,
        index: &Index,
        path: &Path,
        queries: DenseRows<'_>,
        params: SearchParams,
        context: &Context,
    ) -> Result<Option<RankedBatch>, CliError> {
        let Some(device) = self.open(context)? else { return Ok(None) };
        let found = context.on_threads(|| cells_on(&device, index, queries, params));
        self.done(found, context)?.transpose().map_err(|e| CliError::input(path, &e))
    }
}

/// The answers from cells of an index that has some, on a device, or what is wrong with a query.
#[cfg(feature = "cuda")]
fn cells_on(
    device: &Device,
    index: &Index,
    queries: DenseRows<'_>,
    params: SearchParams,
) -> Result<Result<RankedBatch, QueryError>, xc_kernels::Error> {
    use xc_ann::cuda::CellsError;
    let found = index.cells_on(device).and_then(|cells| cells.expect("cells").search_batch(queries, params));
    match found {
        Ok((found, _)) => Ok(Ok(found)),
        Err(CellsError::Query(error)) => Ok(Err(error)),
        Err(CellsError::Device(error)) => Err(error),
        Err(_) => unreachable!("two kinds of errors"),
    }
}

#[cfg(not(feature = "cuda"))]
fn cells_on(
    device: &Device,
    _: &Index,
    _: DenseRows<'_>,
    _: SearchParams,
) -> Result<Result<RankedBatch, QueryError>, absent::NotBuilt> {
    match *device {}
}

/// Exact answers of a device; the time is that of the search, without the copy of the rows.
#[cfg(feature = "cuda")]
fn exact_on(
    device: &Device,
    index: &Index,
    queries: DenseRows<'_>,
    k: usize,
    filter: Option<&Filter<'_>>,
) -> Result<Exact, xc_kernels::Error> {
    let scan = index.exact_scan_on(device)?;
    let begin = Instant::now();
    let found = scan.exact(queries, k, filter)?;
    Ok(Exact { found, seconds: begin.elapsed().as_secs_f64() })
}

#[cfg(not(feature = "cuda"))]
fn exact_on(
    device: &Device,
    _: &Index,
    _: DenseRows<'_>,
    _: usize,
    _: Option<&Filter<'_>>,
) -> Result<Exact, absent::NotBuilt> {
    match *device {}
}

/// A build without CUDA.
#[cfg(not(feature = "cuda"))]
mod absent {
    use thiserror::Error;

    /// There is none.
    pub(crate) enum Device {}

    #[derive(Debug, Error)]
    #[error("this program was built without CUDA (feature cuda of xc-cli)")]
    pub(crate) struct NotBuilt;

    impl Device {
        pub(crate) fn open(_: usize) -> Result<Self, NotBuilt> {
            Err(NotBuilt)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["cpu", "cuda", "cuda:1", "cuda:17", "auto"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("cuda:0"), Ok(Place::Cuda(0)));
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA", "cuda:70000"] {
            assert!(parse(text).unwrap_err().contains("expected cpu, cuda, cuda:N or auto"), "{text}");
        }
    }
}
