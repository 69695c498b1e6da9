//! Up to which operation of each stream something comes after.

/// By the number of a stream: the number of its last operation that comes before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<u32>);

impl Clock {
    pub(crate) fn of(&self, stream: u32) -> u32 {
        self.0.get(stream as usize).copied().unwrap_or(0)
    }

    /// Comes after operation `number` of a stream as well.
    pub(crate) fn pass(&mut self, stream: u32, number: u32) {
        let at = stream as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] = self.0[at].max(number);
    }

    /// Comes after all that the other one does.
    pub(crate) fn join(&mut self, other: &Self) {
        for (stream, &number) in (0..).zip(&other.0) {
            self.pass(stream, number);
        }
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.0.clone()
    }
}
