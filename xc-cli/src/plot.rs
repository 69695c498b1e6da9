//! The picture of a training: losses over steps, as SVG.

use std::fmt::Write as _;

/// Losses over steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    training: Vec<(u64, f64)>,
    validation: Vec<(u64, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const MARGIN: f64 = 24.0;
const BOTTOM: f64 = 44.0;

impl Curve {
    pub(crate) fn push(&mut self, validation: bool, step: u64, loss: f64) {
        if loss.is_finite() {
            if validation { &mut self.validation } else { &mut self.training }.push((step, loss));
        }
    }

    pub(crate) fn svg(&self) -> String {
        let all = || self.training.iter().chain(&self.validation);
        let last = all().map(|p| p.0).max().unwrap_or(0).max(1) as f64;
        let (mut low, mut high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| (a.min(p.1), b.max(p.1)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let tick = nice((high - low).max(1e-9) / 5.0);
        (low, high) = ((low / tick).floor() * tick, (high / tick).ceil() * tick);
        high = high.max(low + tick);
        let x = |step: f64| LEFT + step / last * (WIDTH - LEFT - MARGIN);
        let y = |loss: f64| HEIGHT - BOTTOM - (loss - low) / (high - low) * (HEIGHT - BOTTOM - MARGIN);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        // Writing to a string does not fail.
        for i in 0..=((high - low) / tick).round() as u32 {
            let value = low + f64::from(i) * tick;
            let at = y(value);
            let _ = writeln!(out, "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/>", WIDTH - MARGIN);
            let digits = (-tick.log10().floor()).max(0.0) as usize;
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.digits$}</text>",
                LEFT - 6.0,
                at + 4.0
            );
        }
        let step_tick = nice(last / 6.0).max(1.0);
        for i in 0..=(last / step_tick) as u32 {
            let step = f64::from(i) * step_tick;
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{step}</text>",
                x(step),
                HEIGHT - BOTTOM + 16.0
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">step</text>",
            WIDTH / 2.0,
            HEIGHT - 8.0
        );
        for (points, colour, name, at) in
            [(&self.training, "#4477aa", "training loss", 0.0), (&self.validation, "#cc6677", "validation loss", 110.0)]
        {
            if points.is_empty() {
                continue;
            }
            let line: Vec<String> = points.iter().map(|&(s, l)| format!("{:.1},{:.1}", x(s as f64), y(l))).collect();
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
                line.join(" ")
            );
            if points.len() < 100 {
                for &(s, l) in points {
                    let _ = writeln!(
                        out,
                        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
                        x(s as f64),
                        y(l)
                    );
                }
            }
            let _ = writeln!(out, "<text x=\"{:.1}\" y=\"16\" fill=\"{colour}\">{name}</text>", LEFT + at);
        }
        out.push_str("</svg>\n");
        out
    }
}

/// The next number above that is 1, 2 or 5 times a power of ten.
fn nice(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|f| f * power).into_iter().find(|&f| f >= x).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_holds_every_point_inside_its_frame() {
        for n in [0u64, 1, 2, 300] {
            let mut curve = Curve::default();
            for i in 0..n {
                curve.push(false, i * 10, 9.0 / (i + 1) as f64);
                curve.push(true, i * 10, f64::NAN);
            }
            curve.push(true, n * 10, 3.5);
            let svg = curve.svg();
            assert!(
                svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf")
            );
            let points: Vec<&str> = svg.split("points=\"").skip(1).flat_map(|p| p.split('"').next()).collect();
            let count: usize = points.iter().map(|p| p.split(' ').count()).sum();
            assert_eq!(count as u64, n + 1);
            for pair in points.iter().flat_map(|p| p.split(' ')) {
                let (x, y) = pair.split_once(',').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!((LEFT..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y), "{pair}");
            }
        }
        assert_eq!([0.03, 1.0, 1.2, 4.9, 5.1].map(nice), [0.05, 1.0, 2.0, 5.0, 10.0]);
    }
}
