//! Training: networks, calibration, the examples.

mod calibrate;
mod examples;
mod networks;
