//! gzip of several members, and zeros behind the last one.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// The content of all members, one behind the other. Zeros behind a member are padding, as for `gzip`
/// and Python; anything else that is no member is an error.
pub(super) struct GzipMembers<R> {
    /// `None` behind the last member, and after an error.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    /// The members of `reader`, from the first on.
    pub(super) fn new(reader: R) -> Self {
        Self { member: Some(GzDecoder::new(reader)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let got = member.read(buffer)?;
            if got > 0 {
                return Ok(got);
            }
            let Some(mut rest) = self.member.take().map(GzDecoder::into_inner) else { break };
            if skip_zeros(&mut rest)? {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Whether anything follows the zeros.
fn skip_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = match reader.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().take_while(|&&b| b == 0).count();
        let is_end = zeros < bytes.len();
        reader.consume(zeros);
        if is_end {
            return Ok(true);
        }
    }
}
