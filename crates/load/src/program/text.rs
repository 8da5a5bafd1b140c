//! Generated texts and binary values.

use super::law::IntegerLaw;
use super::stream::Draws;
use rand::Rng;

/// Characters of texts whose alphabet is not given.
pub(super) const LETTERS_AND_DIGITS: &str =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Random bits behind each character that are not used, so that no character is more frequent than another by more than one in
/// 2^32.
const SPARE_BITS: f64 = 32.0;

/// Number of things at the front of `count` that are random; the share behind them is one run.
fn random_part(count: usize, compressible: f64) -> usize {
    count - ((count as f64 * compressible).round() as usize).min(count)
}

/// Draws symbols from 0 to `symbols - 1`, several from each word of random bits.
#[derive(Clone, Copy, Debug)]
struct Symbols {
    symbols: u64,
    per_word: usize,
}

impl Symbols {
    const fn digits() -> Self {
        Symbols { symbols: 10, per_word: 9 }
    }

    const fn letters() -> Self {
        Symbols { symbols: 26, per_word: 6 }
    }

    fn new(symbols: usize) -> Self {
        let bits = (symbols.max(2) as f64).log2();
        Symbols { symbols: symbols as u64, per_word: ((SPARE_BITS / bits) as usize).max(1) }
    }

    #[inline]
    fn draw(self, count: usize, draws: &mut Draws, mut each: impl FnMut(usize)) {
        let mut left = count;
        while left > 0 {
            let mut word = draws.next_u64();
            for _ in 0..left.min(self.per_word) {
                // The high half of the product is the symbol, and the low half is the rest of the random fraction.
                let product = u128::from(word) * u128::from(self.symbols);
                each((product >> 64) as usize);
                word = product as u64;
            }
            left -= left.min(self.per_word);
        }
    }
}

/// `%string`.
#[derive(Clone, Debug)]
pub(super) struct Text {
    length: IntegerLaw,
    alphabet: Alphabet,
    symbols: Symbols,
    compressible: f64,
}

#[derive(Clone, Debug)]
enum Alphabet {
    Ascii(Box<[u8]>),
    Unicode(Box<[char]>),
}

impl Text {
    /// `alphabet` may be empty: letters and digits.
    pub(super) fn new(length: IntegerLaw, alphabet: &[char], compressible: f64) -> Self {
        let defaults: Vec<char>;
        let alphabet = if alphabet.is_empty() {
            defaults = LETTERS_AND_DIGITS.chars().collect();
            defaults.as_slice()
        } else {
            alphabet
        };
        let symbols = Symbols::new(alphabet.len());
        let alphabet = if alphabet.iter().all(char::is_ascii) {
            Alphabet::Ascii(alphabet.iter().map(|&character| character as u8).collect())
        } else {
            Alphabet::Unicode(alphabet.into())
        };
        Text { length, alphabet, symbols, compressible }
    }

    /// Appends the characters. The compressible share is a run of the first character of the alphabet.
    #[inline]
    pub(super) fn write(&self, number: u64, draws: &mut Draws, out: &mut Vec<u8>) {
        let count = self.length.draw(number, draws) as usize;
        let random = random_part(count, self.compressible);
        match &self.alphabet {
            Alphabet::Ascii(bytes) => {
                out.reserve(count);
                self.symbols.draw(random, draws, |symbol| out.push(bytes[symbol]));
                out.resize(out.len() + count - random, bytes[0]);
            }
            Alphabet::Unicode(characters) => {
                self.symbols.draw(random, draws, |symbol| push(characters[symbol], out));
                (random..count).for_each(|_| push(characters[0], out));
            }
        }
    }
}

fn push(character: char, out: &mut Vec<u8>) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// `%binary`: random bytes, then a run of zeros.
#[derive(Clone, Debug)]
pub(super) struct Binary {
    pub(super) length: IntegerLaw,
    pub(super) compressible: f64,
}

impl Binary {
    /// Appends the bytes.
    #[inline]
    pub(super) fn write(&self, number: u64, draws: &mut Draws, out: &mut Vec<u8>) {
        let count = self.length.draw(number, draws) as usize;
        let start = out.len();
        out.resize(start + count, 0);
        draws.fill_bytes(&mut out[start..start + random_part(count, self.compressible)]);
    }
}

/// `%mask`: a text with places for digits and letters.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    text: Box<[u8]>,
    digits: Box<[usize]>,
    letters: Box<[usize]>,
}

impl Mask {
    pub(super) fn new(mask: &str) -> Self {
        let places = |wanted| {
            let places = mask.bytes().enumerate().filter(move |&(_, byte)| byte == wanted);
            places.map(|(place, _)| place).collect()
        };
        Mask { text: mask.as_bytes().into(), digits: places(b'#'), letters: places(b'@') }
    }

    /// Appends the characters.
    #[inline]
    pub(super) fn write(&self, draws: &mut Draws, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.text);
        let text = &mut out[start..];
        let mut fill = |symbols: Symbols, first: u8, places: &[usize]| {
            let mut places = places.iter();
            symbols.draw(places.len(), draws, |symbol| {
                if let Some(&place) = places.next() {
                    text[place] = first + symbol as u8;
                }
            });
        };
        fill(Symbols::digits(), b'0', &self.digits);
        fill(Symbols::letters(), b'a', &self.letters);
    }
}

/// `%words`: words separated by spaces.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) count: IntegerLaw,
    pub(super) words: Box<[Box<str>]>,
    /// Law over the places of the words.
    pub(super) place: IntegerLaw,
}

impl Words {
    /// Appends the words.
    #[inline]
    pub(super) fn write(&self, number: u64, draws: &mut Draws, out: &mut Vec<u8>) {
        for index in 0..self.count.draw(number, draws) {
            if index > 0 {
                out.push(b' ');
            }
            let place = self.place.draw(number, draws);
            out.extend_from_slice(self.words[place as usize].as_bytes());
        }
    }
}

/// Least number of syllables, as in TPC-C's last names.
const LEAST_SYLLABLES: usize = 3;

/// Appends one syllable for each digit of `number` in base `syllables.len()`, which is at least 2.
pub(super) fn write_syllables(mut number: u64, syllables: &[Box<str>], out: &mut Vec<u8>) {
    let base = syllables.len() as u64;
    let mut digits = [0; u64::BITS as usize];
    let mut count = 0;
    while number > 0 || count < LEAST_SYLLABLES {
        digits[count] = (number % base) as usize;
        number /= base;
        count += 1;
    }
    for &digit in digits[..count].iter().rev() {
        out.extend_from_slice(syllables[digit].as_bytes());
    }
}
