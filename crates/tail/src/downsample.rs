//! Reduces a series of any length to few points for a chart, keeping its lowest and highest values.

use dyno_record::tail::ThinPoint;

/// At most `most` points of values by message number; `None` marks a missing value. Each point covers the same number of messages,
/// the last perhaps fewer; points without values are omitted.
pub fn downsample(values: &[Option<i64>], most: usize) -> Vec<ThinPoint> {
    let width = values.len().div_ceil(most.max(1)).max(1);
    let points = values.chunks(width).enumerate().filter_map(|(place, part)| {
        let mut there: Vec<i64> = part.iter().flatten().copied().collect();
        if there.is_empty() {
            return None;
        }
        there.sort_unstable();
        Some(ThinPoint {
            message: (place * width) as u64,
            count: there.len() as u64,
            min_ns: there[0],
            median_ns: there[(there.len() - 1) / 2],
            max_ns: there[there.len() - 1],
        })
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn points_keep_extremes_and_omit_missing_values() {
        let mut values: Vec<Option<i64>> = (0..10).map(Some).collect();
        values[1] = Some(99);
        values[4..8].fill(None);
        let point = |message, count, min_ns, median_ns, max_ns| ThinPoint {
            message,
            count,
            min_ns,
            median_ns,
            max_ns,
        };
        assert_eq!(downsample(&values, 3), [point(0, 4, 0, 2, 99), point(8, 2, 8, 8, 9)]);
        assert_eq!(downsample(&values, 100).len(), 6);
        assert!(downsample(&[], 5).is_empty());
    }

    proptest! {
        #[test]
        fn points_are_bounded_and_no_value_is_dropped(
            values in prop::collection::vec(prop::option::of(-1000i64..1000), 0..500),
            most in 1usize..40,
        ) {
            let points = downsample(&values, most);
            prop_assert!(points.len() <= most);
            let there: Vec<i64> = values.iter().flatten().copied().collect();
            prop_assert_eq!(points.iter().map(|point| point.count).sum::<u64>(), there.len() as u64);
            prop_assert_eq!(points.iter().map(|point| point.max_ns).max(), there.iter().copied().max());
            prop_assert_eq!(points.iter().map(|point| point.min_ns).min(), there.iter().copied().min());
        }
    }
}
