//! The set of touched pages of a file: a bitmap in pieces, which needs at most a thirty-thousandth of the
//! file's size.

use std::collections::HashMap;

/// Bytes of a page: the unit in which the kernel caches.
pub const PAGE_BYTES: u64 = 4096;
/// Words of a piece of the bitmap, which covers 128 MiB of the file with 4 KiB.
const PIECE_WORDS: usize = 512;
const PIECE_PAGES: u64 = PIECE_WORDS as u64 * 64;
/// Most pieces of a file, 128 MiB of bitmap for 4 TiB of touched positions. Positions beyond are not tracked.
const MOST_PIECES: usize = 1 << 15;

/// Set of touched pages.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    pieces: Vec<Box<[u64; PIECE_WORDS]>>,
    places: HashMap<u64, usize>,
    /// The last used piece, which is nearly always also the next one.
    last: Option<(u64, usize)>,
    touched: u64,
    is_full: bool,
}

impl PageSet {
    /// Number of touched pages; `None` if there were too many pieces to track.
    pub(super) fn touched(&self) -> Option<u64> {
        (!self.is_full).then_some(self.touched)
    }

    /// Touches the pages `first` to `last`, and returns how many of them were touched before.
    pub(super) fn touch(&mut self, first: u64, last: u64) -> u64 {
        let mut again = 0;
        let mut page = first;
        while page <= last {
            let word_last = (page | 63).min(last);
            let count = word_last - page + 1;
            let mask = (u64::MAX >> (64 - count)) << (page % 64);
            if let Some(piece) = self.piece(page / PIECE_PAGES) {
                let word = &mut self.pieces[piece][(page % PIECE_PAGES / 64) as usize];
                let before = u64::from((*word & mask).count_ones());
                *word |= mask;
                again += before;
                self.touched += count - before;
            }
            page = word_last + 1;
        }
        again
    }

    fn piece(&mut self, key: u64) -> Option<usize> {
        if let Some((_, place)) = self.last.filter(|(last, _)| *last == key) {
            return Some(place);
        }
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None if self.pieces.len() >= MOST_PIECES => {
                self.is_full = true;
                return None;
            }
            None => {
                self.pieces.push(Box::new([0; PIECE_WORDS]));
                self.places.insert(key, self.pieces.len() - 1);
                self.pieces.len() - 1
            }
        };
        self.last = Some((key, place));
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_once_and_again() {
        let mut pages = PageSet::default();
        assert_eq!(pages.touch(0, 0), 0);
        assert_eq!(pages.touch(0, 200), 1);
        assert_eq!(pages.touch(63, 64), 2);
        assert_eq!(pages.touched(), Some(201));
        let far = 5 * PIECE_PAGES - 3;
        assert_eq!(pages.touch(far, far + 9), 0);
        assert_eq!(pages.touch(far + 2, far + 3), 2);
        assert_eq!(pages.touched(), Some(211));
    }

    #[test]
    fn places_beyond_the_bound_are_unknown() {
        let mut pages = PageSet::default();
        for piece in 0..=MOST_PIECES as u64 {
            pages.touch(piece * PIECE_PAGES, piece * PIECE_PAGES);
        }
        assert_eq!(pages.touched(), None);
    }
}
