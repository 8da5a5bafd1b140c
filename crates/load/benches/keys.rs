//! Cost of one draw of each key distribution and of one key name.

use criterion::{Criterion, criterion_group, criterion_main};
use dyno_load::keys::{KeyChooser, KeyNames};
use dyno_plan::model::{KeyDistribution, KeyOrder};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use std::hint::black_box;

const DOCUMENTS: u64 = 1_000_000;

fn draws(criterion: &mut Criterion) {
    let distributions = [
        ("uniform", KeyDistribution::Uniform {}),
        ("scrambled_zipfian", KeyDistribution::ScrambledZipfian {}),
        ("zipfian_exact", KeyDistribution::Zipfian { exponent: 0.99 }),
        ("latest", KeyDistribution::Latest {}),
        ("hotspot", KeyDistribution::Hotspot { hot_data_ratio: 0.2, hot_operation_ratio: 0.8 }),
        ("sequential", KeyDistribution::Sequential {}),
        ("exponential", KeyDistribution::Exponential { percentile: 95.0, data_ratio: 0.857 }),
    ];
    let mut group = criterion.benchmark_group("draw");
    for (name, distribution) in distributions {
        let mut chooser = KeyChooser::new(&distribution, 0, DOCUMENTS, 0);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut operation = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                operation += 1;
                chooser.next(operation, &mut rng, DOCUMENTS - 1)
            });
        });
    }
    group.finish();
}

fn key_names(criterion: &mut Criterion) {
    let mut out = Vec::with_capacity(64);
    for (name, order) in [("hashed", KeyOrder::Hashed), ("ordered", KeyOrder::Ordered)] {
        let names = KeyNames::new("user", order, 12);
        let mut number = 0;
        criterion.bench_function(&format!("key_name/{name}"), |bencher| {
            bencher.iter(|| {
                number += 1;
                out.clear();
                names.write(number, &mut out);
                black_box(&out);
            });
        });
    }
}

criterion_group!(benches, draws, key_names);
criterion_main!(benches);
