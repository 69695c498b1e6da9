//! Metrics and training loops that every xc system shares.
