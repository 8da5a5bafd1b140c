//! Gains that a search without an answer rules out, tested against gains of exactly that size.

use super::*;

/// Searches of each kind.
const SEARCHES: u64 = 200;

/// Some values of the first knob gain this much, as a logarithm; everything else has no effect. Ordered values
/// gain from large ones, otherwise a single value gains.
struct Truth {
    options: TuneOptions,
    noise: f64,
    gain: f64,
    seed: u64,
}

/// A search's claim: the gain that is ruled out, and whether a setting with the gain was compared.
struct Claim {
    visible: f64,
    was_tried: bool,
}

impl Truth {
    /// Typical searches: one switch with two values in noisy runs, a few knobs, more knobs.
    fn new(seed: u64) -> Truth {
        let (knobs, values, noise, trials, pairs) = match seed % 3 {
            0 => (1, 2, 0.1, 5, 4),
            1 => (2, 5, 0.05, 8, 8),
            _ => (3, 4, 0.02, 10, 12),
        };
        let mut options = TuneOptions {
            seed,
            margin_ratio: 0.05,
            trials: Some(trials),
            max_pairs: Some(pairs),
            ..options(TuneGoal::Rate)
        };
        for knob in options.knobs.iter_mut() {
            knob.values.truncate(values);
            knob.default = Some(0);
            knob.ordered = seed % 3 == 2;
        }
        options.knobs.truncate(knobs);
        Truth { options, noise, gain: 0.0, seed }
    }

    /// `None` if the search has an answer.
    fn claim(&self) -> Option<Claim> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed + 5000);
        let gaining = |keys: &Keys| {
            let engine = keys.get("server.runtime_parameters.engine");
            let threads = engine.and_then(|text| text.split("threads_max=").nth(1));
            let threads = threads.map(|text| text.split(')').next().unwrap_or_default());
            let gains: &[&str] = if self.seed % 3 == 2 { &["4", "8"] } else { &["2"] };
            threads.is_some_and(|threads| gains.contains(&threads))
        };
        let mut run = |keys: &Keys| {
            let noise: f64 = StandardNormal.sample(&mut random);
            let gain = if gaining(keys) { self.gain } else { 0.0 };
            figures_of(TuneGoal::Rate, gain + self.noise * noise)
        };
        let mut baseline = Baseline::new(&self.options, 0);
        while !baseline.is_complete() {
            baseline.take(run(&Keys::new()));
        }
        let mut progress = TuneProgress::new(&self.options, &baseline).expect("a harmless run");
        let mut was_tried = false;
        while let Some(TuneRun { keys, .. }) = progress.next_run() {
            was_tried |= gaining(&keys);
            let figures = run(&keys);
            progress.take(Ok(&figures)).expect("a harmless run");
        }
        let answer = progress.answer();
        answer
            .settings
            .is_empty()
            .then_some(Claim { visible: answer.visible_ratio.ln_1p(), was_tried })
    }
}

#[test]
fn ruled_out_gain_exists_in_at_most_one_of_20_searches() {
    let (mut found, mut claimed, mut wrong) = (0, 0, Vec::new());
    for seed in 0..SEARCHES {
        let mut truth = Truth::new(seed);
        let Some(of_flat) = truth.claim() else {
            found += 1;
            continue;
        };
        truth.gain = of_flat.visible;
        let claim = truth.claim().filter(|claim| claim.was_tried);
        claimed += 1;
        if let Some(claim) = claim.filter(|claim| claim.visible <= truth.gain) {
            wrong.push((seed, truth.gain, claim.visible));
        }
    }
    let most = SEARCHES as usize / 20;
    assert!(found <= most, "{found} answers without a gain");
    assert!(wrong.len() <= most, "{} of {claimed}: {wrong:?}", wrong.len());
}
